#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "snapshot/heap/claims.h"
#include "snapshot/heap/heap.h"
#include "snapshot/target/peb_layout.h"

int extents_add(struct extents *extents, const struct extent *extent)
{
	if (array_try_grow((void **)&extents->list, &extents->cap, extents->count, sizeof(*extent)))
		return -ERR_NOMEM;
	extents->list[extents->count++] = *extent;
	return 0;
}

void extents_release(struct extents *extents)
{
	free(extents->list);
	*extents = (struct extents){0};
}

static int by_addr(const void *a, const void *b)
{
	const struct extent *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

size_t extents_sort(struct extents *extents, uint64_t *addr)
{
	size_t overlaps = 0, count = 0;
	uint64_t end = 0;

	if (extents->count)
		qsort(extents->list, extents->count, sizeof(*extents->list), by_addr);
	for (size_t i = 0; i < extents->count; i++) {
		struct extent extent = extents->list[i];

		if (extent.addr < end && !overlaps++ && addr)
			*addr = extent.addr;
		extent.addr = extent.addr < end ? end : extent.addr;
		if (extent.addr >= extent.end)
			continue;
		end = extent.end;
		extents->list[count++] = extent;
	}
	extents->count = count;
	return overlaps;
}

const struct extent *extents_above(const struct extents *extents, uint64_t addr)
{
	size_t low = 0, high = extents->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (extents->list[middle].end <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < extents->count ? &extents->list[low] : NULL;
}

const struct extent *extents_at(const struct extents *extents, uint64_t addr)
{
	const struct extent *extent = extents_above(extents, addr);

	return extent && extent->addr <= addr ? extent : NULL;
}

void claims_init(struct claims *claims, uint64_t limit_bytes)
{
	*claims = (struct claims){.left_bytes = limit_bytes};
}

void claims_release(struct claims *claims)
{
	extents_release(&claims->extents);
}

int claims_add(struct claims *claims, uint64_t addr, uint64_t bytes)
{
	if (!bytes || addr + bytes < addr || bytes > claims->left_bytes)
		return -ERR_TARGET;
	claims->left_bytes -= bytes;
	return extents_add(&claims->extents, &(struct extent){.addr = addr, .end = addr + bytes});
}

static const struct heap_walker *const walkers[] = {
	&heap_walker_wine,
	&heap_walker_nt,
};

void walk_init(struct walk *walk)
{
	*walk = (struct walk){0};
}

void walk_release(struct walk *walk)
{
	free(walk->heaps);
	free(walk->blocks);
	walk_init(walk);
}

void walk_clear(struct walk *walk)
{
	struct walk kept = *walk;

	*walk = (struct walk){.heaps = kept.heaps,
		.heap_cap = kept.heap_cap,
		.blocks = kept.blocks,
		.block_cap = kept.block_cap};
}

int walk_add_heap(struct walk *walk, const struct heap *heap)
{
	if (array_try_grow((void **)&walk->heaps, &walk->heap_cap, walk->heap_count, sizeof(*heap)))
		return -ERR_NOMEM;
	walk->heaps[walk->heap_count++] = *heap;
	return 0;
}

int walk_add_block(struct walk *walk, uint64_t addr, uint64_t requested_bytes,
	uint64_t overhead_bytes, uint64_t record)
{
	if (array_try_grow((void **)&walk->blocks, &walk->block_cap, walk->block_count,
		    sizeof(*walk->blocks)))
		return -ERR_NOMEM;
	walk->blocks[walk->block_count++] = (struct walked_block){.addr = addr,
		.requested_bytes = requested_bytes,
		.overhead_bytes = overhead_bytes,
		.record = record,
		.heap = (uint32_t)walk->heap_count - 1};
	return 0;
}

/* Notes one place more, the first of which is kept. True for that one. */
static bool note(unsigned *count, uint64_t *first_addr, const char **first_what, uint64_t addr,
	const char *what)
{
	if ((*count)++)
		return false;
	*first_addr = addr;
	*first_what = what;
	return true;
}

int walk_broken(struct walk *walk, uint64_t addr, const char *what)
{
	if (note(&walk->broken_count, &walk->broken_addr, &walk->broken_what, addr, what) &&
		walk->heap_count)
		walk->broken_heap = walk->heaps[walk->heap_count - 1].addr;
	return 0;
}

int walk_missing(struct walk *walk, uint64_t addr, const char *what)
{
	note(&walk->missing_count, &walk->missing_addr, &walk->missing_what, addr, what);
	return 0;
}

int walk_doubt(struct walk *walk, uint64_t addr, const char *what)
{
	note(&walk->doubt_count, &walk->doubt_addr, &walk->doubt_what, addr, what);
	return 0;
}

void walk_unwalked(const struct walk *walk, struct u64map *map)
{
	for (size_t i = 0; i < walk->heap_count; i++) {
		uint32_t index = (uint32_t)i;

		if (walk->heaps[i].unwalked)
			u64map_put(map, walk->heaps[i].addr, &index);
	}
}

/* Who understands the heaps of a process; the last one takes all. */
static const struct heap_walker *walker_of(struct target *target, uint64_t first_heap)
{
	size_t i = 0;

	while (walkers[i]->probe && !walkers[i]->probe(target, first_heap))
		i++;
	return walkers[i];
}

/* The process heap: 0, or -ERR_READ. */
static int first_heap_of(struct target *target, uint64_t *addr)
{
	unsigned char bytes[8];
	int rc = target_read(target, target->peb + peb_layout(target->bits)->process_heap, bytes,
		target->bits / 8);

	if (!rc)
		*addr = bytes_ptr(bytes, target->bits);
	return rc;
}

bool heaps_are_busy(struct target *target)
{
	uint64_t first_heap = 0;

	if (first_heap_of(target, &first_heap) || !first_heap)
		return false;
	return walker_of(target, first_heap)->is_busy(target, first_heap);
}

int heaps_walk(struct memory *memory, struct walk *walk, struct err *err)
{
	struct target *target = memory->target;
	uint64_t first_heap = 0;
	int rc;

	if (first_heap_of(target, &first_heap))
		return target->is_file ? err_set(err, ERR_NO_HEAPS, target->name,
						 "unreadable PEB at %" PRIX64, target->peb) :
					 target_err(target, target->peb, "unreadable PEB", err);
	if (!first_heap)
		return err_set(err, ERR_TARGET, target->name, "it has no heap yet");
	rc = walker_of(target, first_heap)->walk(memory, first_heap, walk, err);
	return rc == -ERR_NOMEM ? err_set(err, ERR_NOMEM, target->name, NULL) : rc;
}
