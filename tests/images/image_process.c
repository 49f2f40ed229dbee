/* The process itself: TEB, PEB, loader lists, parameters and ntdll's data. The offsets are those of
 * facts, section 2.1, which are the same on every Windows since XP. */
#include "tests/images/image_inside.h"

#include <string.h>

/* Offsets that differ only by bitness: {32 bits, 64 bits}. */
enum process_field {
	TEB_STACK_BASE,
	TEB_STACK_LIMIT,
	TEB_SELF,
	TEB_PROCESS_ID,
	TEB_THREAD_ID,
	TEB_PEB,
	TEB_STACK_ALLOCATION, /* DeallocationStack */
	PEB_IMAGE_BASE,
	PEB_LDR,
	PEB_PARAMETERS,
	PEB_PROCESS_HEAP,
	PEB_NT_GLOBAL_FLAG,
	PEB_HEAP_SEGMENT_RESERVE,
	PEB_NUMBER_OF_HEAPS,
	PEB_MAXIMUM_HEAPS,
	PEB_PROCESS_HEAPS,
	PEB_OS_MAJOR,
	PEB_OS_MINOR,
	PEB_OS_BUILD,
	LDR_LISTS,
	ENTRY_BASE,
	ENTRY_START,
	ENTRY_SIZE,
	ENTRY_FULL_NAME,
	ENTRY_BASE_NAME,
	ENTRY_TIMESTAMP,
	PARAMETERS_IMAGE,
	PARAMETERS_COMMAND,
	PARAMETERS_ENVIRONMENT,
};

static const uint16_t process_fields[][2] = {
	[TEB_STACK_BASE] = {0x4, 0x8},
	[TEB_STACK_LIMIT] = {0x8, 0x10},
	[TEB_SELF] = {0x18, 0x30},
	[TEB_PROCESS_ID] = {0x20, 0x40},
	[TEB_THREAD_ID] = {0x24, 0x48},
	[TEB_PEB] = {0x30, 0x60},
	[TEB_STACK_ALLOCATION] = {0xe0c, 0x1478},
	[PEB_IMAGE_BASE] = {0x8, 0x10},
	[PEB_LDR] = {0xc, 0x18},
	[PEB_PARAMETERS] = {0x10, 0x20},
	[PEB_PROCESS_HEAP] = {0x18, 0x30},
	[PEB_NT_GLOBAL_FLAG] = {0x68, 0xbc},
	[PEB_HEAP_SEGMENT_RESERVE] = {0x78, 0xc8},
	[PEB_NUMBER_OF_HEAPS] = {0x88, 0xe8},
	[PEB_MAXIMUM_HEAPS] = {0x8c, 0xec},
	[PEB_PROCESS_HEAPS] = {0x90, 0xf0},
	[PEB_OS_MAJOR] = {0xa4, 0x118},
	[PEB_OS_MINOR] = {0xa8, 0x11c},
	[PEB_OS_BUILD] = {0xac, 0x120},
	[LDR_LISTS] = {0xc, 0x10},
	[ENTRY_BASE] = {0x18, 0x30},
	[ENTRY_START] = {0x1c, 0x38},
	[ENTRY_SIZE] = {0x20, 0x40},
	[ENTRY_FULL_NAME] = {0x24, 0x48},
	[ENTRY_BASE_NAME] = {0x2c, 0x58},
	[ENTRY_TIMESTAMP] = {0x44, 0x80},
	[PARAMETERS_IMAGE] = {0x38, 0x60},
	[PARAMETERS_COMMAND] = {0x40, 0x70},
	[PARAMETERS_ENVIRONMENT] = {0x48, 0x80},
};

#define FEW_HEAPS 512
#define FEW_HEAPS_WITH_RING 0x10
#define DATA_LISTS 0x40
#define DATA_HEAPS 0x200
#define DATA_GLOBALS 0x2000
#define WOW_TEB_OFFSET_64 0x180c
#define WOW_TEB_OFFSET_32 0xfdc

static uint64_t at(const struct image *image, uint64_t base, enum process_field field)
{
	return base + process_fields[field][image->bits == 64];
}

void image_enter_heap(struct image *image, uint64_t heap, bool is_process_heap)
{
	struct side *side = image_at_side(image);
	if (side->ring.head && !is_process_heap)
		return;
	if (side->heap_count == side->most_heaps)
		image_die("too many heaps");
	image_write_ptr(image, side->heap_list + side->heap_count * image_ptr_bytes(image), heap);
	side->heap_count++;
	image_write(image, at(image, side->peb, PEB_NUMBER_OF_HEAPS), side->heap_count, 4);
	if (is_process_heap)
		image_write_ptr(image, at(image, side->peb, PEB_PROCESS_HEAP), heap);
	image_mark(image, "process.heap-list", side->heap_list);
	image_mark(image, "process.peb", side->peb);
}

uint64_t image_process_heap(struct image *image)
{
	return image_get_ptr(image, at(image, image_at_side(image)->peb, PEB_PROCESS_HEAP));
}

static void fill_peb(struct image *image, const struct made_module *exe, uint64_t peb)
{
	const struct profile *profile = image->profile;
	const struct side *side = image_at_side(image);
	image_write_ptr(image, at(image, peb, PEB_IMAGE_BASE), exe->base);
	image_write_ptr(image, at(image, peb, PEB_LDR), side->ldr);
	image_write_ptr(image, at(image, peb, PEB_PARAMETERS), side->parameters);
	uint32_t flag = image_is_other_side(image) ? 0 : image->options.nt_global_flag;
	image_write(image, at(image, peb, PEB_NT_GLOBAL_FLAG), flag, 4);
	image_write_ptr(image, at(image, peb, PEB_HEAP_SEGMENT_RESERVE), 0x100000);
	image_write(image, at(image, peb, PEB_MAXIMUM_HEAPS), side->most_heaps, 4);
	image_write_ptr(image, at(image, peb, PEB_PROCESS_HEAPS), side->heap_list);
	image_write(image, at(image, peb, PEB_OS_MAJOR), profile->os_major, 4);
	image_write(image, at(image, peb, PEB_OS_MINOR), profile->os_minor, 4);
	image_write(image, at(image, peb, PEB_OS_BUILD), profile->os_build, 2);
}

void image_fill_teb(struct image *image, uint64_t teb, uint64_t stack, uint64_t stack_bytes)
{
	const struct side *side = image_at_side(image);
	image_write_ptr(image, at(image, teb, TEB_STACK_BASE), stack + stack_bytes);
	image_write_ptr(image, at(image, teb, TEB_STACK_LIMIT), stack + stack_bytes - 0x3000);
	image_write_ptr(image, at(image, teb, TEB_SELF), teb);
	image_write_ptr(image, at(image, teb, TEB_PROCESS_ID), 4660);
	image_write_ptr(image, at(image, teb, TEB_THREAD_ID), 4664);
	image_write_ptr(image, at(image, teb, TEB_PEB), side->peb);
	image_write_ptr(image, at(image, teb, TEB_STACK_ALLOCATION), stack);
}

static const char *base_name(const char *path)
{
	return strrchr(path, '\\') + 1;
}

/* Loader entries lie one after another, each followed by its names. */
static void make_loader_entry(struct image *image, uint64_t entry, const struct made_module *module)
{
	const struct side *side = image_at_side(image);
	unsigned ptr = image_ptr_bytes(image);
	for (unsigned i = 0; i < 3; i++) {
		image_list_add(
			image, at(image, side->ldr, LDR_LISTS) + 2 * i * ptr, entry + 2 * i * ptr);
	}
	image_write_ptr(image, at(image, entry, ENTRY_BASE), module->base);
	image_write_ptr(image, at(image, entry, ENTRY_START), module->base + module->text_offset);
	image_write(image, at(image, entry, ENTRY_SIZE), module->bytes, 4);
	image_write_string(image, at(image, entry, ENTRY_FULL_NAME), entry + 0x120, module->path);
	image_write_string(
		image, at(image, entry, ENTRY_BASE_NAME), entry + 0x260, base_name(module->path));
	image_write(image, at(image, entry, ENTRY_TIMESTAMP), module->timestamp, 4);
}

static void make_loader(struct image *image)
{
	const struct side *side = image_at_side(image);
	for (unsigned i = 0; i < 3; i++) {
		image_list_init(
			image, at(image, side->ldr, LDR_LISTS) + 2 * i * image_ptr_bytes(image));
	}
	image_write(image, side->ldr, 0x58, 4);
	image_write(image, side->ldr + 4, 1, 1);
	uint64_t entries = image_reserve(image, MOST_MODULES * 0x400, 0);
	image_commit(image, entries, MOST_MODULES * 0x400, IMAGE_READ | IMAGE_WRITE);
	for (size_t i = 0; i < image->module_count; i++) {
		/* The exe is in its own loader's list and, in a WOW64 process, also in the other
		 * side's list. */
		if (image->modules[i].bits == image->bits || i == 0)
			make_loader_entry(image, entries + 0x400 * i, &image->modules[i]);
	}
}

static void make_parameters(struct image *image)
{
	struct side *side = image_at_side(image);
	const char *path = image->modules[0].path;
	side->parameters = image_reserve(image, 0x2000, 0);
	image_commit(image, side->parameters, 0x2000, IMAGE_READ | IMAGE_WRITE);
	image_write(image, side->parameters, 0x2000, 4);
	image_write(image, side->parameters + 4, 0x2000, 4);
	image_write_string(image, at(image, side->parameters, PARAMETERS_IMAGE),
		side->parameters + 0x500, path);
	image_write_string(image, at(image, side->parameters, PARAMETERS_COMMAND),
		side->parameters + 0x800, path);
	image_write_ptr(image, at(image, side->parameters, PARAMETERS_ENVIRONMENT),
		side->parameters + 0x1000);
	image_write_text(image, side->parameters + 0x1000, "SystemRoot=C:\\Windows");
}

static uint64_t random_key(struct image *image)
{
	uint64_t key = image_random(image, UINT64_MAX);
	return image->bits == 64 ? key : key & UINT32_MAX;
}

/* Fills the data with typical globals: small numbers, pointers of all kinds, text. */
static void fill_with_globals(struct image *image, const struct made_module *ntdll)
{
	const struct side *side = image_at_side(image);
	unsigned ptr = image_ptr_bytes(image);
	uint64_t data = ntdll->base + ntdll->data_offset;
	for (uint64_t i = DATA_GLOBALS; i + ptr <= ntdll->data_bytes; i += ptr) {
		const uint64_t values[] = {0, 0, 1, image_random(image, 0x10000),
			ntdll->base + image_random(image, ntdll->bytes), side->peb, side->teb,
			side->parameters, side->parameters + image_random(image, 0x1000),
			image_random(image, UINT32_MAX), data + image_random(image, 0x2000)};
		image_write_ptr(image, data + i,
			values[image_random(image, sizeof(values) / sizeof(*values))]);
	}
}

/* Places the variables for which readers search, at addresses that nothing announces. */
static void place_variables(struct image *image, const struct made_module *ntdll)
{
	struct side *side = image_at_side(image);
	unsigned ptr = image_ptr_bytes(image);
	uint64_t data = ntdll->base + ntdll->data_offset + DATA_GLOBALS;
	uint64_t slots = (ntdll->data_bytes - DATA_GLOBALS) / 0x40 / 3;
	side->database_variable =
		data + image_random(image, slots) * 0x40 + image_random(image, 8) * ptr;
	image_write_ptr(image, side->database_variable, 0);
	side->lfh_key = (uint32_t)image_random(image, UINT32_MAX);
	image_write(
		image, data + (slots + image_random(image, slots)) * 0x40 + 4, side->lfh_key, 4);
	side->hp_heap_key = random_key(image);
	side->hp_lfh_key = random_key(image);
	uint64_t globals = data + (2 * slots + image_random(image, slots)) * 0x40;
	image_fill(image, globals, 0, 0x40);
	image_write_ptr(image, globals, side->hp_heap_key);
	image_write_ptr(image, globals + ptr, side->hp_lfh_key);
	image_write_ptr(
		image, globals + 2 * (uint64_t)ptr, ntdll->base + ntdll->data_offset + 0x1800);
}

static struct made_module *add_system_module(
	struct image *image, const char *name64, const char *name_wow, uint64_t base)
{
	bool is_wow = image->profile->is_wow64 && image->bits == 32;
	uint64_t random = image_random(image, 0x100) * GRANULE_BYTES;
	return image_add_module(image, is_wow ? name_wow : name64, base + random, image->bits);
}

#define SYSTEM(name) "C:\\Windows\\System32\\" name, "C:\\Windows\\SysWOW64\\" name

/* Places the list in ntdll's data, or in its own memory once the list has grown. If a ring exists,
 * the list never grows. */
static void place_heap_list(struct image *image, uint64_t in_data)
{
	struct side *side = image_at_side(image);
	uint32_t most = image->options.most_heaps;
	side->heap_list = in_data;
	side->most_heaps = side->ring.head ? FEW_HEAPS_WITH_RING : FEW_HEAPS;
	if (!side->ring.head && most > FEW_HEAPS && !image_is_other_side(image)) {
		uint64_t bytes = (uint64_t)most * image_ptr_bytes(image);
		side->heap_list = image_reserve(image, bytes, 0);
		side->most_heaps = most;
		image_commit(image, side->heap_list, bytes, IMAGE_READ | IMAGE_WRITE);
	}
}

static void add_modules(struct image *image)
{
	uint64_t high = image->bits == 32		? 0x70000000 :
			image->profile->os_build < 9200 ? 0x7fef0000000 :
							  0x7ffa00000000;
	struct side *side = image_at_side(image);
	struct made_module *ntdll = add_system_module(image, SYSTEM("ntdll.dll"), high + 0x7000000);
	side->ntdll = ntdll->base;
	uint64_t data = ntdll->base + ntdll->data_offset;
	side->ldr = data + DATA_LISTS;
	image_place_ring(image, data);
	place_heap_list(image, data + DATA_HEAPS);
	add_system_module(image, SYSTEM("kernel32.dll"), high + 0x5000000);
	if (image_is_other_side(image)) {
		add_system_module(image, SYSTEM("wow64.dll"), high + 0x4000000);
		return;
	}
	add_system_module(image, SYSTEM("msvcrt.dll"), high + 0x3000000);
	if (image->options.nt_global_flag & FLAG_PAGE_HEAP) {
		struct made_module *verifier =
			add_system_module(image, SYSTEM("verifier.dll"), high + 0x2000000);
		side->page_heap_list = verifier->base + verifier->data_offset + 0x180 +
				       8 * image_random(image, 0x40);
		image_list_init(image, side->page_heap_list);
	}
}

static void make_side(struct image *image)
{
	struct side *side = image_at_side(image);
	unsigned ptr = image_ptr_bytes(image);
	uint64_t stack_bytes = 0x100000;
	uint64_t stack = image_reserve(image, stack_bytes, 0);
	image_commit(image, stack + stack_bytes - 0x3000, 0x3000, IMAGE_READ | IMAGE_WRITE);
	uint64_t blocks = image_reserve(image, 0x10000, 0);
	image_commit(image, blocks, 0x6000, IMAGE_READ | IMAGE_WRITE);
	side->peb = blocks;
	side->teb = blocks + 0x2000;
	add_modules(image);
	make_parameters(image);
	make_loader(image);
	fill_peb(image, &image->modules[0], side->peb);
	image_fill_teb(image, side->teb, stack, stack_bytes);
	image_region(image, stack)->use = USE_STACK;
	image_region(image, blocks)->use = USE_SYSTEM;
	for (size_t i = 0; i < image->module_count; i++) {
		if (image->modules[i].base == side->ntdll) {
			fill_with_globals(image, &image->modules[i]);
			place_variables(image, &image->modules[i]);
		}
	}
	for (uint64_t i = 0; i < 0x100; i++)
		image_write_ptr(image, stack + stack_bytes - 0x1000 + i * ptr, stack + 8 * i);
}

/* The 64-bit TEB points to the 32-bit TEB (facts, section 2.1). */
void image_join_tebs(struct image *image, uint64_t teb32, uint64_t teb64)
{
	image_write(image, teb64, teb32, 8);
	image_write(image, teb64 + WOW_TEB_OFFSET_64, (uint32_t)(teb32 - teb64), 4);
	image_write(image, teb32 + WOW_TEB_OFFSET_32, (uint32_t)(teb64 - teb32), 4);
}

void image_make_process(struct image *image)
{
	uint64_t exe = image->profile->bits == 32 ? 0x400000 : 0x140000000;
	image_add_module(image, "C:\\Program Files\\Leaky\\leaky.exe", exe, image->profile->bits);
	if (image->profile->is_wow64) {
		/* Both sides of the process lie below 2 GB, except for 64-bit modules. */
		image->sides[1].cursor = 0x500000;
		image_side(image, 64);
		make_side(image);
		image_side(image, 32);
	}
	make_side(image);
	if (image->profile->is_wow64) {
		image_join_tebs(image, image->sides[0].teb, image->sides[1].teb);
		image->sides[1].cursor = 0x100000000;
	}
	struct side *side = image_at_side(image);
	side->made_code = image_reserve(image, GRANULE_BYTES, 0);
	image_commit(
		image, side->made_code, GRANULE_BYTES, IMAGE_READ | IMAGE_WRITE | IMAGE_EXECUTE);
	image_make_threads(image);
	image_make_views(image);
	image_make_stacks(image);
	if (image_has_ust(image))
		ust_model_make(image);
}
