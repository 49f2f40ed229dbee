#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "snapshot/capture/capture_parts.h"

bool tables_may_have_all(const struct tracer_area *area)
{
	return area->flags & TRACER_FLAG_LISTED && !area->sample_bytes && !area->dropped_blocks &&
	       !tracer_is_reallocating(area->shards);
}

/* ---------------------------------------------------------------- heaps */

/* The heaps that were walked: address -> index. */
static void index_heaps(const struct walk *walk, struct u64map *heaps)
{
	u64map_init(heaps);
	for (size_t i = 0; i < walk->heap_count; i++) {
		uint32_t index = (uint32_t)i;

		u64map_put(heaps, walk->heaps[i].addr, &index);
	}
}

/* Heaps that have come or gone since, or are just going. */
static bool are_same_heaps(const struct tracer_area *area, const struct u64map *heaps)
{
	for (uint32_t i = 1; i < 1u << TRACER_HEAPS_LOG2; i++) {
		uint64_t state = area->heaps[i] & TRACER_HEAP_STATE;
		uint32_t unused;

		if (area->heaps[i] && state >= TRACER_HEAP_CLEANING)
			return false;
		if (area->heaps[i] && u64map_find(heaps, tracer_heap_handle(area, i), &unused) ==
					      (state == TRACER_HEAP_DEAD))
			return false;
	}
	return true;
}

bool tables_have_all(const struct raw_capture *captured)
{
	const struct tracer_copy *tracer = &captured->tracer;
	struct u64map heaps;
	bool result;

	if (!tables_may_have_all(&tracer->area) || tracer->broken_shards)
		return false;
	for (size_t i = 0; i < tracer->block_count; i++) {
		if (!tracer_block_heap(&tracer->blocks[i]) ||
			tracer_block_bytes(&tracer->blocks[i]) == TRACER_SIZE_MAX)
			return false;
	}
	index_heaps(&captured->walk, &heaps);
	result = are_same_heaps(&tracer->area, &heaps);
	u64map_release(&heaps);
	return result;
}

/* ---------------------------------------------------------------- blocks */

struct giving {
	struct raw_capture *captured;
	bool *is_known; /* of each block of the tracer's: the walk has it as it is */
	bool *is_kept; /* of each block of the walk: it is one of those */
	struct u64map heaps;
	struct u64map overheads; /* heap and size -> what a block of it had */
};

/* The block of the tracer's that a walked one is, or NULL. */
static const struct tracer_block *same_block(
	const struct raw_capture *captured, const struct block *walked)
{
	const struct tracer_block *traced = tracer_copy_find(&captured->tracer, walked->addr);

	return traced && tracer_copy_matches(&captured->tracer, traced,
				 captured->walk.heaps[walked->heap].addr, walked->requested_bytes) ?
		       traced :
		       NULL;
}

static uint64_t size_key(uint32_t heap, uint64_t bytes)
{
	return (uint64_t)heap << (64 - TRACER_STACK_BITS) | bytes;
}

/* What the first block of each size has. */
static void note_overheads(struct giving *giving)
{
	const struct walk *walk = &giving->captured->walk;

	for (size_t i = 0; i < walk->block_count; i++) {
		const struct block *walked = &walk->blocks[i];
		uint32_t overhead = (uint32_t)walked->overhead_bytes;

		if (walked->requested_bytes < TRACER_SIZE_MAX)
			u64map_put(&giving->overheads,
				size_key(walked->heap, walked->requested_bytes), &overhead);
	}
}

/* Finds those of the walk that are still there, each once; how many. */
static size_t find_known(struct giving *giving)
{
	const struct raw_capture *captured = giving->captured;
	size_t count = 0;

	for (size_t i = 0; i < captured->walk.block_count; i++) {
		const struct tracer_block *traced = same_block(captured, &captured->walk.blocks[i]);
		size_t at = traced ? (size_t)(traced - captured->tracer.blocks) : 0;

		giving->is_kept[i] = traced && !giving->is_known[at];
		if (giving->is_kept[i])
			giving->is_known[at] = true;
		count += giving->is_kept[i];
	}
	return count;
}

static void keep_known(struct giving *giving)
{
	struct walk *walk = &giving->captured->walk;
	size_t kept = 0;

	for (size_t i = 0; i < walk->block_count; i++) {
		if (giving->is_kept[i])
			walk->blocks[kept++] = walk->blocks[i];
	}
	walk->block_count = kept;
}

static bool add_new(struct giving *giving, const struct tracer_block *traced)
{
	struct raw_capture *captured = giving->captured;
	struct walk *walk = &captured->walk;
	const uint64_t bytes = tracer_block_bytes(traced);
	uint32_t heap = 0, overhead;

	u64map_find(&giving->heaps, tracer_copy_heap(&captured->tracer, traced), &heap);
	if (!u64map_find(&giving->overheads, size_key(heap, bytes), &overhead))
		return false;
	array_grow(
		(void **)&walk->blocks, &walk->block_cap, walk->block_count, sizeof(*walk->blocks));
	walk->blocks[walk->block_count++] =
		(struct block){tracer_block_addr(traced), bytes, overhead, heap, STACK_NONE};
	return true;
}

bool tables_give_blocks(struct raw_capture *captured)
{
	const struct tracer_copy *tracer = &captured->tracer;
	struct giving giving = {.captured = captured};
	bool is_whole = true;

	tracer_copy_sort(&captured->tracer);
	index_heaps(&captured->walk, &giving.heaps);
	u64map_init(&giving.overheads);
	giving.is_known = xcalloc(tracer->block_count + 1, sizeof(*giving.is_known));
	giving.is_kept = xcalloc(captured->walk.block_count + 1, sizeof(*giving.is_kept));
	if (find_known(&giving) < tracer->block_count)
		note_overheads(&giving);
	keep_known(&giving);
	for (size_t i = 0; is_whole && i < tracer->block_count; i++)
		is_whole = giving.is_known[i] || add_new(&giving, &tracer->blocks[i]);
	free(giving.is_known);
	free(giving.is_kept);
	u64map_release(&giving.overheads);
	u64map_release(&giving.heaps);
	return is_whole;
}

void tables_compare(struct raw_capture *captured)
{
	const struct walk *walk = &captured->walk;
	uint64_t found = 0;

	tracer_copy_sort(&captured->tracer);
	for (size_t i = 0; i < walk->block_count; i++)
		found += same_block(captured, &walk->blocks[i]) != NULL;
	captured->untraced_count = walk->block_count - found;
	captured->unfound_count = captured->tracer.block_count - found;
}
