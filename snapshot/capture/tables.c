/*
 * Blocks from the tracer's tables. They replace the walk of a held process, or complete a walk that
 * could not read all heaps. A comparison of the tables with a walk reveals a wrong layout.
 */
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

bool tables_are_complete(const struct raw_capture *captured)
{
	const struct tracer_area *area = &captured->tracer.area;

	return captured->source.has_tracer && !(area->flags & TRACER_FLAG_ATTACHED) &&
	       !area->sample_bytes && !area->dropped_blocks && !captured->tracer.broken_shards;
}

/* ---------------------------------------------------------------- heaps */

/* Initialises a map from the address of each of the walk's heaps to its index. */
static void index_heaps(const struct walk *walk, struct u64map *heaps)
{
	u64map_init(heaps);
	for (size_t i = 0; i < walk->heap_count; i++) {
		uint32_t index = (uint32_t)i;

		u64map_add(heaps, walk->heaps[i].addr, &index);
	}
}

/* Returns false if heaps were created or destroyed since the walk, or are being destroyed. */
static bool are_same_heaps(const struct tracer_area *area, const struct u64map *heaps)
{
	for (uint32_t i = 1; i < 1u << TRACER_HEAPS_LOG2; i++) {
		uint64_t state = area->heaps[i] & TRACER_HEAP_STATE;
		uint32_t unused;

		if (area->heaps[i] && state >= TRACER_HEAP_CLEANING)
			return false;
		if (area->heaps[i] && u64map_find(heaps, tracer_heap_handle(area, i), &unused) ==
					      (state >= TRACER_HEAP_DEAD))
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

struct giving {
	struct raw_capture *captured;
	bool *is_known; /* for each of the tracer's blocks: true if the walk has the same block */
	bool *is_kept; /* for each of the walk's blocks: true if the block remains */
	struct u64map heaps;
	struct u64map overheads; /* maps heap and size to the overhead of such a block */
};

/* Returns true if the walk of a heap may have missed blocks, so the tracer's blocks must be
 * added. */
static bool is_incomplete(const struct heap *heap)
{
	return heap->unwalked || heap->is_partial;
}

uint64_t tables_heap_at(const struct tracer_area *area, uint32_t index)
{
	return (area->heaps[index] & TRACER_HEAP_STATE) < TRACER_HEAP_GENERATIONS ?
		       tracer_heap_handle(area, index) :
		       0;
}

int tables_add_heaps(struct raw_capture *captured)
{
	const struct tracer_area *area = &captured->tracer.area;
	struct walk *walk = &captured->walk;
	const unsigned bits = area->pointer_bytes * 8;
	bool is_complete = tables_are_complete(captured);
	struct u64map heaps;
	int rc = 0;

	if (!captured->source.has_tracer)
		return 0;
	index_heaps(walk, &heaps);
	for (uint32_t i = 1; !rc && i < 1u << TRACER_HEAPS_LOG2; i++) {
		uint64_t addr = tables_heap_at(area, i);
		struct heap heap = {
			.addr = addr, .bits = bits, .kind = "unknown", .unwalked = true};
		uint32_t unused;

		if (addr && !u64map_find(&heaps, addr, &unused))
			rc = walk_add_heap(walk, &heap);
	}
	for (size_t i = 0; i < walk->heap_count; i++)
		walk->heaps[i].is_complete = is_complete && is_incomplete(&walk->heaps[i]) &&
					     walk->heaps[i].bits == bits;
	u64map_release(&heaps);
	return rc;
}

/* ---------------------------------------------------------------- sizes */

/*
 * Returns the maximum by which a block size reported by a heap may be too large: one size class. Up
 * to 256 bytes, classes are 16 bytes apart. Above that, each power of two is divided into 16
 * classes.
 */
static uint64_t class_bytes(uint64_t bytes)
{
	uint64_t step = 16;

	while (step * 32 <= bytes + 16)
		step *= 2;
	return step;
}

/* Returns true if the tracer's size of a block is right and the size from the heap is too large. */
static bool is_loose(const struct heap *heap, uint64_t walked_bytes, uint64_t traced_bytes)
{
	return heap->has_loose_sizes && traced_bytes < walked_bytes &&
	       walked_bytes - traced_bytes <= class_bytes(walked_bytes);
}

void tables_correct_sizes(struct raw_capture *captured)
{
	struct walk *walk = &captured->walk;

	if (!captured->source.has_tracer)
		return;
	tracer_copy_sort(&captured->tracer);
	for (size_t i = 0; i < walk->block_count; i++) {
		struct block *walked = &walk->blocks[i];
		const struct heap *heap = &walk->heaps[walked->heap];
		const struct tracer_block *traced;
		uint64_t bytes;

		if (!heap->has_loose_sizes)
			continue;
		traced = tracer_copy_find(&captured->tracer, walked->addr);
		bytes = traced ? tracer_block_bytes(traced) : 0;
		if (!traced || !is_loose(heap, walked->requested_bytes, bytes) ||
			!tracer_copy_matches(&captured->tracer, traced, heap->addr, bytes))
			continue;
		walked->overhead_bytes += walked->requested_bytes - bytes;
		walked->requested_bytes = bytes;
	}
}

/* ---------------------------------------------------------------- comparing walk and tracer */

/* if a heap has more blocks than this, only one in JUDGE_SHARE is looked up */
#define JUDGE_MANY ((size_t)1 << 12)
#define JUDGE_SHARE 16u
#define JUDGE_FEWEST 64 /* a heap with fewer blocks is not judged */
#define JUDGE_MISSING 100 /* one block in JUDGE_MISSING may be missing */

struct lookups {
	/* Number of the tracer's blocks, and number of those that the walk found. */
	uint32_t looked_up, found;
	/* Number of the walk's blocks, and number of those that are in the tracer's tables. */
	uint32_t walked, traced;
	uint64_t walked_bytes; /* total of all walked blocks, including overhead */
	uint64_t missing_bytes; /* requested bytes of the tracer's blocks that were not found */
};

static bool is_sampled(uint64_t addr, size_t count)
{
	return count <= JUDGE_MANY ||
	       (addr * UINT64_C(0x9e3779b97f4a7c15) >> 32) % JUDGE_SHARE == 0;
}

/* Counts the tracer's blocks, all of which initially count as missing. */
static void count_traced(
	const struct tracer_copy *tracer, const struct u64map *heaps, struct lookups *lookups)
{
	const uint64_t share = tracer->block_count > JUDGE_MANY ? JUDGE_SHARE : 1;
	uint32_t heap;

	for (size_t i = 0; i < tracer->block_count; i++) {
		const struct tracer_block *traced = &tracer->blocks[i];

		if (!is_sampled(tracer_block_addr(traced), tracer->block_count) ||
			!u64map_find(heaps, tracer_copy_heap(tracer, traced), &heap))
			continue;
		lookups[heap].looked_up++;
		lookups[heap].missing_bytes += tracer_block_bytes(traced) * share;
	}
}

/* Counts the walk's blocks that match a block of the tracer: in the same heap, and with the same
 * size or a slightly smaller size. */
static void count_found(
	const struct raw_capture *captured, const struct u64map *heaps, struct lookups *lookups)
{
	const struct tracer_copy *tracer = &captured->tracer;
	const struct walk *walk = &captured->walk;
	const uint64_t share = tracer->block_count > JUDGE_MANY ? JUDGE_SHARE : 1;
	uint32_t heap;

	for (size_t i = 0; i < walk->block_count; i++) {
		const struct block *walked = &walk->blocks[i];
		struct lookups *of = &lookups[walked->heap];
		const struct tracer_block *traced;
		uint64_t bytes;

		of->walked_bytes += walked->requested_bytes + walked->overhead_bytes;
		if (!is_sampled(walked->addr, tracer->block_count))
			continue;
		of->walked++;
		traced = tracer_copy_find(tracer, walked->addr);
		of->traced += traced != NULL;
		if (!traced || !u64map_find(heaps, tracer_copy_heap(tracer, traced), &heap) ||
			heap != walked->heap)
			continue;
		bytes = tracer_block_bytes(traced);
		if (bytes != TRACER_SIZE_MAX &&
			walked->requested_bytes - bytes > class_bytes(bytes))
			continue;
		of->found++;
		of->missing_bytes -= bytes * share;
	}
}

/*
 * Returns true if the layout of the heap must be wrong because many of the tracer's blocks were not
 * found.
 *
 * There is another reason for missing blocks: they were freed unseen. This is known to happen only
 * before Windows 10. If the tracer has all blocks, a wrong layout is recognized by blocks in the
 * walk that never existed. Otherwise it is recognized by the size of the missing blocks: if they do
 * not fit into the free space of the heap, they cannot have been freed.
 */
static bool is_contradicted(
	const struct raw_capture *captured, const struct heap *heap, const struct lookups *of)
{
	const uint64_t free_bytes = heap->committed_bytes > of->walked_bytes ?
					    heap->committed_bytes - of->walked_bytes :
					    0;

	if (of->looked_up < JUDGE_FEWEST ||
		of->found >= of->looked_up - of->looked_up / JUDGE_MISSING)
		return false;
	if (!captured->may_free_unseen)
		return true;
	return tables_are_complete(captured) ?
		       !of->walked || of->walked - of->traced > of->walked / JUDGE_MISSING :
		       of->missing_bytes > free_bytes;
}

static void forget_layout(struct walk *walk, const char *layout)
{
	size_t kept = 0;

	for (size_t i = 0; i < walk->heap_count; i++) {
		struct heap *heap = &walk->heaps[i];

		if (heap->unwalked || !heap->layout || strcmp(heap->layout, layout) != 0)
			continue;
		heap->unwalked = true;
		heap->layout = NULL;
		heap->committed_bytes = heap->reserved_bytes = 0;
	}
	for (size_t i = 0; i < walk->block_count; i++) {
		if (!walk->heaps[walk->blocks[i].heap].unwalked)
			walk->blocks[kept++] = walk->blocks[i];
	}
	walk->block_count = kept;
}

const char *tables_judge(struct raw_capture *captured)
{
	struct walk *walk = &captured->walk;
	const char *wrong = NULL;
	struct lookups *lookups;
	struct u64map heaps;

	if (!captured->source.has_tracer || captured->tracer.broken_shards)
		return NULL;
	lookups = xcalloc(walk->heap_count + 1, sizeof(*lookups));
	index_heaps(walk, &heaps);
	count_traced(&captured->tracer, &heaps, lookups);
	count_found(captured, &heaps, lookups);
	for (size_t i = 0; i < walk->heap_count; i++) {
		const struct heap *heap = &walk->heaps[i];

		if (heap->layout && !is_incomplete(heap) &&
			is_contradicted(captured, heap, &lookups[i])) {
			wrong = heap->layout;
			forget_layout(walk, wrong);
		}
	}
	u64map_release(&heaps);
	free(lookups);
	return wrong;
}

/* ---------------------------------------------------------------- replacing the walk */

/* Returns the tracer's entry for a walked block, or NULL. */
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

/* Stores the overhead of the first walked block of each heap and size. */
static void note_overheads(struct giving *giving)
{
	const struct walk *walk = &giving->captured->walk;

	for (size_t i = 0; i < walk->block_count; i++) {
		const struct block *walked = &walk->blocks[i];
		uint32_t overhead = (uint32_t)walked->overhead_bytes;

		if (walked->requested_bytes < TRACER_SIZE_MAX)
			u64map_add(&giving->overheads,
				size_key(walked->heap, walked->requested_bytes), &overhead);
	}
}

/* Returns true if a block belongs to the 64-bit half of a 32-bit process, which the tracer does not
 * see. */
static bool is_of_other_half(const struct raw_capture *captured, const struct block *walked)
{
	const struct heap *heap = &captured->walk.heaps[walked->heap];

	return heap->bits && heap->bits != captured->tracer.area.pointer_bytes * 8;
}

/* Finds the walk's blocks that still exist, and matches each with at most one of the tracer's
 * blocks. Returns the number of matches. Keeps blocks that the tracer cannot see. */
static size_t find_known(struct giving *giving)
{
	const struct raw_capture *captured = giving->captured;
	size_t count = 0;

	for (size_t i = 0; i < captured->walk.block_count; i++) {
		const struct block *walked = &captured->walk.blocks[i];
		const struct tracer_block *traced = same_block(captured, walked);
		size_t at = traced ? (size_t)(traced - captured->tracer.blocks) : 0;
		bool is_known = traced && !giving->is_known[at];

		giving->is_kept[i] = is_known || is_of_other_half(captured, walked);
		if (is_known)
			giving->is_known[at] = true;
		count += is_known;
	}
	return count;
}

static void remove_unknown(struct giving *giving)
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
	if (is_incomplete(&walk->heaps[heap]))
		return true; /* such blocks are added later, without using the walk */
	/* The block is older than the walk, but the walk did not find it. So it was freed without a
	 * call of the tracer's hooks. */
	if (tracer_copy_is_old(traced))
		return false;
	if (!u64map_find(&giving->overheads, size_key(heap, bytes), &overhead))
		return false;
	array_grow(
		(void **)&walk->blocks, &walk->block_cap, walk->block_count, sizeof(*walk->blocks));
	walk->blocks[walk->block_count++] =
		(struct block){tracer_block_addr(traced), bytes, overhead, heap, STACK_NONE};
	return true;
}

bool tables_add_blocks(struct raw_capture *captured)
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
	remove_unknown(&giving);
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
	uint64_t found = 0, unseen = 0;

	tracer_copy_sort(&captured->tracer);
	for (size_t i = 0; i < walk->block_count; i++) {
		found += same_block(captured, &walk->blocks[i]) != NULL;
		unseen += is_of_other_half(captured, &walk->blocks[i]);
	}
	captured->untraced_count = walk->block_count - found - unseen;
	captured->unfound_count = captured->tracer.block_count - found;
}
