#include "tests/images/image_inside.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

void truth_heap(struct image *image, uint64_t heap, const char *kind)
{
	image->heaps = image_grow(
		image->heaps, &image->heap_capacity, image->heap_count, sizeof(*image->heaps));
	image->heaps[image->heap_count++] =
		(struct truth_heap_row){heap, kind, image_is_other_side(image), 0, 0};
}

void truth_heap_bytes(struct image *image, uint64_t heap, uint64_t committed, uint64_t reserved)
{
	for (size_t i = 0; i < image->heap_count; i++) {
		if (image->heaps[i].heap == heap) {
			image->heaps[i].committed = committed;
			image->heaps[i].reserved = reserved;
		}
	}
}

void truth_block(struct image *image, uint64_t heap, uint64_t addr, uint64_t requested_bytes,
	uint64_t overhead_bytes, unsigned stack)
{
	image->blocks = image_grow(
		image->blocks, &image->block_capacity, image->block_count, sizeof(*image->blocks));
	image->blocks[image->block_count++] = (struct truth_block_row){
		heap, addr, requested_bytes, overhead_bytes, stack, image_is_other_side(image)};
	if (stack != STACK_NOTHING)
		image_at_side(image)->stacks[stack].is_used = true;
}

void truth_container(
	struct image *image, uint64_t heap, const char *kind, uint64_t addr, uint64_t bytes)
{
	image->containers = image_grow(image->containers, &image->container_capacity,
		image->container_count, sizeof(*image->containers));
	image->containers[image->container_count++] =
		(struct truth_container_row){heap, addr, bytes, kind, image_is_other_side(image)};
}

/* Writes the committed ranges of a container. */
static void write_committed(
	FILE *file, struct image *image, const struct truth_container_row *container)
{
	uint64_t end = container->addr + container->bytes, from = 0;
	for (uint64_t at = container->addr; at < end;) {
		uint64_t page = at & ~(uint64_t)(PAGE_BYTES - 1);
		uint64_t next = page + PAGE_BYTES < end ? page + PAGE_BYTES : end;
		bool is_there = image_committed(image, page, PAGE_BYTES) != 0;
		if (is_there && !from)
			from = at;
		if (from && (!is_there || next == end)) {
			fprintf(file, " %" PRIX64 "-%" PRIX64, from, is_there ? next : at);
			from = 0;
		}
		at = next;
	}
}

static void write_containers(FILE *file, struct image *image)
{
	for (size_t i = 0; i < image->container_count; i++) {
		const struct truth_container_row *container = &image->containers[i];
		fprintf(file, "container%s %" PRIX64 " %s %" PRIX64 " %" PRIu64,
			container->is_other ? "64" : "", container->heap, container->kind,
			container->addr, container->bytes);
		write_committed(file, image, container);
		fputc('\n', file);
	}
}

static void write_places(FILE *file, const struct image *image)
{
	for (size_t i = 0; i < image->module_count; i++) {
		const struct made_module *module = &image->modules[i];
		fprintf(file, "module %" PRIX64 " %" PRIu32 " %s\n", module->base, module->bytes,
			module->path);
	}
	for (size_t i = 0; i < image->heap_count; i++) {
		const struct truth_heap_row *heap = &image->heaps[i];
		fprintf(file, "heap%s %" PRIX64 " %s\n", heap->is_other ? "64" : "", heap->heap,
			heap->kind);
		if (heap->reserved) {
			fprintf(file, "heapsize%s %" PRIX64 " %" PRIu64 " %" PRIu64 "\n",
				heap->is_other ? "64" : "", heap->heap, heap->committed,
				heap->reserved);
		}
	}
}

static void write_stacks(FILE *file, const struct image *image, const struct side *side)
{
	uint64_t frames_at = side->profile.bits == 64 ? 0x10 : 0xc;
	for (unsigned i = 0; side->stacks && i < image->options.stack_count; i++) {
		const struct made_stack *stack = &side->stacks[i];
		if (!stack->is_used)
			continue;
		fprintf(file, "stack %u %" PRIX64, i, stack->record + frames_at);
		for (unsigned k = 0; k < stack->frame_count; k++)
			fprintf(file, " %" PRIX64, stack->frames[k]);
		fputc('\n', file);
	}
	if (side->database) {
		fprintf(file,
			"database %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu64 " %" PRIu64 "\n",
			side->database_entries, side->database_lookups, side->database_failures,
			side->database_used, side->database_reserved);
	}
}

static void write_block(FILE *file, const struct truth_block_row *block)
{
	fprintf(file, "block%s %" PRIX64 " %" PRIX64 " %" PRIu64 " %" PRIu64,
		block->is_other ? "64" : "", block->heap, block->addr, block->requested,
		block->overhead);
	if (block->stack == STACK_NOTHING)
		fputs(" -\n", file);
	else
		fprintf(file, " %u\n", block->stack);
}

static void write_blocks(FILE *file, const struct image *image, bool is_other)
{
	size_t count = 0;
	uint64_t requested = 0;
	uint64_t overhead = 0;
	for (size_t i = 0; i < image->block_count; i++) {
		if (image->blocks[i].is_other == is_other) {
			write_block(file, &image->blocks[i]);
			count++;
			requested += image->blocks[i].requested;
			overhead += image->blocks[i].overhead;
		}
	}
	fprintf(file, "total%s %zu %" PRIu64 " %" PRIu64 "\n", is_other ? "64" : "", count,
		requested, overhead);
}

void image_write_truth(struct image *image, const char *path)
{
	FILE *file = fopen(path, "wb");
	if (!file)
		image_die("%s: %s", path, strerror(errno));
	fprintf(file, "process pid=%u bits=%u build=%u flags=%" PRIX32 "\n", 4660u,
		image->profile->bits, image->profile->os_build, image->options.nt_global_flag);
	write_places(file, image);
	write_containers(file, image);
	write_stacks(file, image, &image->sides[0]);
	write_stacks(file, image, &image->sides[1]);
	write_blocks(file, image, false);
	if (image->profile->is_wow64)
		write_blocks(file, image, true);
	image_write_balance(image, file);
	if (ferror(file) | fclose(file))
		image_die("%s: cannot be written", path);
}
