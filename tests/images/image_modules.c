/* Modules: PE headers that are sufficient to name sections and the PDB, code with calls, and
 * writable data. The format is the PE format as Microsoft publishes it. */
#include "tests/images/image_inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER_PE 0x80
#define TEXT_OFFSET 0x1000
#define TEXT_BYTES 0x10000
#define RDATA_OFFSET 0x11000
#define RDATA_BYTES 0x2000
#define DATA_OFFSET 0x13000
#define CODEVIEW_OFFSET 0x11100

static void write_section(struct image *image, uint64_t at, const char *name, uint32_t offset,
	uint32_t bytes, uint32_t flags)
{
	image_write_bytes(image, at, name, strlen(name));
	image_write(image, at + 8, bytes, 4);
	image_write(image, at + 12, offset, 4);
	image_write(image, at + 16, bytes, 4);
	image_write(image, at + 20, offset, 4);
	image_write(image, at + 36, flags, 4);
}

static void write_debug_directory(struct image *image, const struct made_module *module)
{
	uint64_t directory = module->base + RDATA_OFFSET;
	uint64_t record = module->base + CODEVIEW_OFFSET;
	size_t bytes = 24 + strlen(module->pdb) + 1;
	image_write(image, directory + 4, module->timestamp, 4);
	image_write(image, directory + 12, 2, 4); /* IMAGE_DEBUG_TYPE_CODEVIEW */
	image_write(image, directory + 16, bytes, 4);
	image_write(image, directory + 20, CODEVIEW_OFFSET, 4);
	image_write(image, directory + 24, CODEVIEW_OFFSET, 4);
	image_write_bytes(image, record, "RSDS", 4);
	image_write_bytes(image, record + 4, module->guid, 16);
	image_write(image, record + 20, module->age, 4);
	image_write_bytes(image, record + 24, module->pdb, strlen(module->pdb));
}

static void write_headers(struct image *image, const struct made_module *module)
{
	uint64_t pe = module->base + HEADER_PE;
	bool is_64 = module->bits == 64;
	unsigned optional_bytes = is_64 ? 0xf0 : 0xe0;
	image_write_bytes(image, module->base, "MZ", 2);
	image_write(image, module->base + 0x3c, HEADER_PE, 4);
	image_write_bytes(image, pe, "PE", 2);
	image_write(image, pe + 4, is_64 ? 0x8664 : 0x14c, 2);
	image_write(image, pe + 6, 3, 2);
	image_write(image, pe + 8, module->timestamp, 4);
	image_write(image, pe + 20, optional_bytes, 2);
	image_write(image, pe + 22, 0x2022, 2);
	uint64_t optional = pe + 24;
	image_write(image, optional, is_64 ? 0x20b : 0x10b, 2);
	image_write(image, optional + 16, TEXT_OFFSET, 4);
	image_write(image, optional + (is_64 ? 24 : 28), module->base, is_64 ? 8 : 4);
	image_write(image, optional + 32, PAGE_BYTES, 4);
	image_write(image, optional + 36, 0x200, 4);
	image_write(image, optional + 56, module->bytes, 4);
	image_write(image, optional + 60, 0x400, 4);
	uint64_t directories = optional + (is_64 ? 112 : 96);
	image_write(image, directories - 4, 16, 4);
	image_write(image, directories + 6 * 8, RDATA_OFFSET, 4);
	image_write(image, directories + 6 * 8 + 4, 28, 4);
	uint64_t sections = optional + optional_bytes;
	write_section(image, sections, ".text", TEXT_OFFSET, TEXT_BYTES, 0x60000020);
	write_section(image, sections + 40, ".rdata", RDATA_OFFSET, RDATA_BYTES, 0x40000040);
	write_section(image, sections + 80, ".data", DATA_OFFSET, module->data_bytes, 0xc0000040);
}

static void name_pdb(struct made_module *module)
{
	const char *name = strrchr(module->path, '\\') + 1;
	snprintf(module->pdb, sizeof(module->pdb), "%.*s.pdb", (int)strcspn(name, "."), name);
}

struct made_module *image_add_module(
	struct image *image, const char *path, uint64_t base, unsigned bits)
{
	if (image->module_count == MOST_MODULES)
		image_die("too many modules");
	struct made_module *module = &image->modules[image->module_count++];
	*module = (struct made_module){.path = path,
		.bits = bits,
		.base = base,
		.text_offset = TEXT_OFFSET,
		.text_bytes = TEXT_BYTES,
		.data_offset = DATA_OFFSET,
		.data_bytes = strstr(path, "ntdll") ? 0xb000 : 0x3000,
		.timestamp = 0x5f000000 + (uint32_t)image_random(image, 0x1000000),
		.age = 1 + (uint32_t)image_random(image, 3)};
	module->bytes = DATA_OFFSET + module->data_bytes;
	for (size_t i = 0; i < sizeof(module->guid); i++)
		module->guid[i] = (uint8_t)image_random(image, 256);
	name_pdb(module);
	struct region *region = image_reserve_at(image, base, module->bytes);
	region->use = USE_MODULE;
	region->protect = 0x80;
	image_commit(image, base, DATA_OFFSET, IMAGE_READ);
	image_commit(image, base + TEXT_OFFSET, TEXT_BYTES, IMAGE_READ | IMAGE_EXECUTE);
	image_commit(image, base + DATA_OFFSET, module->data_bytes, IMAGE_READ | IMAGE_WRITE);
	if (!strstr(path, "ntdll")) { /* the last page was never written to */
		image_commit(image, base + module->bytes - PAGE_BYTES, PAGE_BYTES,
			IMAGE_READ | IMAGE_WRITE | IMAGE_COPIED);
	}
	write_headers(image, module);
	write_debug_directory(image, module);
	image_fill(image, base + TEXT_OFFSET, 0xcc, TEXT_BYTES);
	return module;
}

/* Returns a return address: a place in code directly after a call instruction. */
static uint64_t make_frame(struct image *image, unsigned place)
{
	uint64_t kind = image_random(image, 64);
	if (kind == 0 && image->options.has_made_code) {
		return image_at_side(image)->made_code + 8 +
		       image_random(image, GRANULE_BYTES - 16);
	}
	if (kind == 1 && image->options.has_unloaded)
		return image_at_side(image)->ntdll - 0x600000 + image_random(image, 0x10000);
	const struct made_module *module;
	do {
		module = &image->modules[image_random(image, image->module_count)];
	} while (module->bits != image->bits);
	/* Innermost frames are in the allocator's code, outer frames in the program's. */
	if (place > 2 && image_random(image, 3) > 0)
		module = &image->modules[0];
	uint64_t frame = module->base + TEXT_OFFSET + 5 + image_random(image, TEXT_BYTES - 16);
	image_write(image, frame - 5, 0xe8, 1);
	return frame;
}

static void make_stack(struct image *image, unsigned number, struct made_stack *stack)
{
	/* Every depth occurs. One stack in eight is cut at the maximum depth. */
	unsigned count = number < MOST_FRAMES ? number + 1 : 3 + image_random(image, 30);
	stack->frame_count =
		image_random(image, 8) == 0 || count > MOST_FRAMES ? MOST_FRAMES : count;
	for (unsigned i = 0; i < stack->frame_count; i++)
		stack->frames[i] = make_frame(image, i);
	/* Later stacks often share their innermost frames with earlier stacks. */
	if (number >= MOST_FRAMES && image_random(image, 2)) {
		const struct made_stack *other = stack - 1;
		unsigned shared = stack->frame_count / 2;
		shared = shared < other->frame_count ? shared : other->frame_count;
		memcpy(stack->frames, other->frames, shared * sizeof(*stack->frames));
	}
}

void image_make_stacks(struct image *image)
{
	struct side *side = image_at_side(image);
	side->stacks = calloc(image->options.stack_count + 1u, sizeof(*side->stacks));
	if (!side->stacks)
		image_die("out of memory");
	for (unsigned i = 0; i < image->options.stack_count; i++)
		make_stack(image, i, &side->stacks[i]);
}
