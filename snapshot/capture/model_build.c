/* Builds the model from a capture: the heaps, the stack of each block, the blocks that only the
 * tracer has, and virtual memory. The last part replaces blocks with sums per stack. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/sorted.h"
#include "core/io/out.h"
#include "snapshot/capture/capture.h"
#include "snapshot/capture/capture_parts.h"

struct joining {
	struct snapshot *snapshot;
	struct raw_capture *captured;
	/* Maps the tracer's id of a stack to the index in the snapshot, or to STACK_NONE. */
	struct u64map traced;
	/* For each record: the index of its stack in the snapshot, or STACK_NONE. */
	uint32_t *records;
	uint64_t mismatches;
	/* Maps the address of a lost block that holds other lost blocks to an index into
	 * snapshot->lost. */
	struct u64map lost;
	bool is_sample;
	/* for each of the tracer's blocks: the walk also found a block at its address */
	bool *is_joined;
};

/* ---------------------------------------------------------------- stacks */

static uint32_t add_stack(
	struct snapshot *snapshot, uint64_t id, const uint64_t *frames, uint32_t count)
{
	char text[16];
	size_t len = out_hex_digits(text, id);
	struct stack stack = {
		.id = text, .same_id = STACK_NONE, .frames = frames, .frame_count = count};
	uint32_t index = STACK_NONE;

	if (count)
		stackset_add(&snapshot->stacks, &stack, len, &index);
	return index;
}

/* Returns the index of the tracer's stack with this id, or STACK_NONE. */
static uint32_t traced_stack(struct joining *joining, uint32_t id)
{
	uint64_t frames[TRACER_DEPTH_MAX];
	uint32_t index, count;

	if (u64map_find(&joining->traced, id, &index))
		return index;
	count = tracer_copy_stack(&joining->captured->tracer, id, frames);
	index = add_stack(joining->snapshot, id, frames, count);
	u64map_add(&joining->traced, id, &index);
	return index;
}

static void add_records(struct joining *joining)
{
	const struct ust *ust = joining->captured->ust;
	size_t count = joining->captured->wants_ust ? ust_facts(ust)->record_count : 0;

	joining->records = xcalloc(count, sizeof(*joining->records));
	for (size_t i = 0; i < count; i++) {
		const uint64_t *frames;
		uint64_t id;
		uint32_t frame_count = ust_frames(ust, (uint32_t)i, &frames, &id);

		joining->records[i] = add_stack(joining->snapshot, id, frames, frame_count);
	}
}

/* Returns true if the tracer's size of a block should be used because the walk of the block's heap
 * was not sound. */
static bool is_size_traced(
	struct joining *joining, const struct block *walked, const struct tracer_block *traced)
{
	const struct heap *heap = &joining->captured->walk.heaps[walked->heap];
	uint64_t bytes = tracer_block_bytes(traced);

	return heap->is_partial && bytes != TRACER_SIZE_MAX &&
	       tracer_copy_matches(&joining->captured->tracer, traced, heap->addr, bytes);
}

/* Returns the tracer's entry for a walked block, or NULL. An entry with another size or heap
 * belongs to a different block. */
static const struct tracer_block *traced_block(struct joining *joining, struct block *walked)
{
	struct raw_capture *captured = joining->captured;
	const struct tracer_block *traced;

	if (!captured->source.has_tracer)
		return NULL;
	traced = tracer_copy_find(&captured->tracer, walked->addr);
	if (!traced)
		return NULL;
	joining->is_joined[traced - captured->tracer.blocks] = true;
	if (tracer_copy_matches(&captured->tracer, traced, captured->walk.heaps[walked->heap].addr,
		    walked->requested_bytes))
		return traced;
	if (is_size_traced(joining, walked, traced)) {
		walked->requested_bytes = tracer_block_bytes(traced);
		walked->overhead_bytes = 0;
		return traced;
	}
	joining->mismatches++;
	return NULL;
}

/* Returns the stack of a block. The tracer's stack takes precedence. If the tracer did not see the
 * block, the block may have a record from before the tracer was attached. */
static uint32_t stack_of(
	struct joining *joining, const struct block *walked, const struct tracer_block *traced)
{
	const struct raw_capture *captured = joining->captured;
	uint32_t index = STACK_NONE;

	if (traced)
		index = traced_stack(joining, tracer_block_stack(traced));
	if (index == STACK_NONE && walked->stack != STACK_NONE && captured->wants_ust &&
		!captured->is_from_tables)
		index = joining->records[walked->stack];
	return index;
}

/* ---------------------------------------------------------------- blocks */

/* Appends a block with this stack. `block` may be an element of snapshot->blocks, which was the
 * walk's array. */
static void append_block(struct snapshot *snapshot, const struct block *block, uint32_t stack)
{
	struct block *put = snapshot->block_count < snapshot->block_cap ?
				    &snapshot->blocks[snapshot->block_count++] :
				    snapshot_add_block(snapshot);

	*put = *block;
	put->stack = stack;
}

static void count_stackless(struct joining *joining, const struct block *block, uint32_t reach)
{
	struct raw_capture *captured = joining->captured;
	struct heap *heap = &joining->snapshot->heaps[block->heap];
	const struct block_totals one = {1, block->requested_bytes, block->overhead_bytes};

	block_totals_add(&heap->stackless, &one);
	if (reach >= BLOCK_LOST)
		block_totals_add(&heap->stackless_lost, &one);
	if (heap_name(heap->addr) || joining->is_sample)
		return;
	array_grow((void **)&captured->stackless, &captured->stackless_cap,
		captured->stackless_count, sizeof(*captured->stackless));
	captured->stackless[captured->stackless_count] = *block;
	captured->stackless[captured->stackless_count++].stack = reach;
}

/* Counts a block without a stack if the block is older than the attached tracer. Usually the
 * tracer's tables list the older blocks, with stack 0. If they do not (TRACER_FLAG_LISTED is not
 * set), every block that is not in the tables counts as older. */
static void count_older(
	struct raw_capture *captured, const struct block *block, const struct tracer_block *traced)
{
	if (traced ? !tracer_block_stack(traced) :
		     !(captured->tracer.area.flags & TRACER_FLAG_LISTED))
		block_totals_add(&captured->older,
			&(struct block_totals){1, block->requested_bytes, block->overhead_bytes});
}

/* inline, because there are millions of blocks */
static inline void add_block(
	struct joining *joining, const struct block *block, uint32_t stack, uint32_t reach)
{
	struct snapshot *snapshot = joining->snapshot;

	if (stack == STACK_NONE) {
		count_stackless(joining, block, reach);
		return;
	}
	append_block(snapshot, block, stack);
	if (!snapshot->has_reach)
		return;
	array_grow((void **)&snapshot->reach, &snapshot->reach_cap, snapshot->reach_count,
		sizeof(*snapshot->reach));
	snapshot->reach[snapshot->reach_count++] = reach;
}

static uint32_t reach_of_walked(struct joining *joining, size_t number)
{
	const struct reach *reach = joining->captured->reach.reach;
	struct snapshot *snapshot = joining->snapshot;
	uint32_t place = (uint32_t)snapshot->lost_count;
	struct reach_found found;

	if (!reach)
		return BLOCK_HELD;
	found = reach_of(reach, number);
	if (found.reach != BLOCK_LOST_WITH)
		return found.reach;
	if (u64map_add(&joining->lost, found.with, &place)) {
		array_grow((void **)&snapshot->lost, &snapshot->lost_cap, snapshot->lost_count,
			sizeof(*snapshot->lost));
		snapshot->lost[snapshot->lost_count++] = found.with;
	}
	return BLOCK_LOST_WITH + place;
}

/* Turns the walk's blocks into the snapshot's blocks, in place: blocks that are dropped are
 * overwritten. With a sampling tracer, all walked blocks are counted, but only the recorded blocks
 * remain. They represent all blocks. */
static void join_walked(struct joining *joining)
{
	struct walk *walk = &joining->captured->walk;
	struct snapshot *snapshot = joining->snapshot;

	snapshot->blocks = walk->blocks;
	snapshot->block_cap = walk->block_cap;
	walk->blocks = NULL;
	walk->block_cap = 0;
	for (size_t i = 0; i < walk->block_count; i++) {
		struct block *block = &snapshot->blocks[i];
		const struct tracer_block *traced = traced_block(joining, block);
		uint32_t reach = reach_of_walked(joining, i), stack;

		if (!joining->is_sample) {
			stack = stack_of(joining, block, traced);
			if (stack == STACK_NONE)
				count_older(joining->captured, block, traced);
			add_block(joining, block, stack, reach);
			continue;
		}
		block_totals_add(&snapshot->heaps[block->heap].exact,
			&(struct block_totals){1, block->requested_bytes, block->overhead_bytes});
		if (traced)
			append_block(
				snapshot, block, traced_stack(joining, tracer_block_stack(traced)));
	}
}

/* Adds blocks that only the tracer has. Does so only for heaps that were not walked, or were walked
 * only in part. */
static void join_unwalked(struct joining *joining)
{
	struct raw_capture *captured = joining->captured;
	const struct tracer_copy *tracer = &captured->tracer;
	struct u64map incomplete; /* address -> index */

	u64map_init(&incomplete);
	for (size_t i = 0; i < captured->walk.heap_count; i++) {
		const struct heap *heap = &captured->walk.heaps[i];
		uint32_t index = (uint32_t)i;

		if (heap->unwalked || heap->is_partial)
			u64map_add(&incomplete, heap->addr, &index);
	}
	for (size_t i = 0; incomplete.index.count && i < tracer->block_count; i++) {
		const struct tracer_block *traced = &tracer->blocks[i];
		struct block block = {.addr = tracer_block_addr(traced),
			.requested_bytes = tracer_block_bytes(traced)};
		uint32_t heap, stack;

		if (joining->is_joined[i] ||
			!u64map_find(&incomplete, tracer_copy_heap(tracer, traced), &heap))
			continue;
		block.heap = heap;
		stack = traced_stack(joining, tracer_block_stack(traced));
		joining->snapshot->heaps[heap].traced_only++;
		if (stack == STACK_NONE)
			count_older(captured, &block, traced);
		if (joining->is_sample)
			append_block(joining->snapshot, &block, stack);
		else
			add_block(joining, &block, stack, BLOCK_HELD);
	}
	u64map_release(&incomplete);
}

/* Returns the number of blocks that are in the tracer's tables but were not found by a sound walk
 * of their heap. */
static uint64_t count_freed_unseen(struct joining *joining)
{
	const struct raw_capture *captured = joining->captured;
	const struct tracer_copy *tracer = &captured->tracer;
	struct u64map sound; /* address -> index */
	uint64_t count = 0;
	uint32_t index = 0;

	if (captured->is_from_tables)
		return 0;
	u64map_init(&sound);
	for (size_t i = 0; i < captured->walk.heap_count; i++) {
		const struct heap *heap = &captured->walk.heaps[i];

		if (!heap->unwalked && !heap->is_partial)
			u64map_add(&sound, heap->addr, &index);
	}
	for (size_t i = 0; i < tracer->block_count; i++)
		count += !joining->is_joined[i] &&
			 u64map_find(&sound, tracer_copy_heap(tracer, &tracer->blocks[i]), &index);
	u64map_release(&sound);
	return count;
}

/* Sets the stacks that created the heaps. */
static void add_creators(struct joining *joining)
{
	const struct tracer_area *area = &joining->captured->tracer.area;
	struct snapshot *snapshot = joining->snapshot;
	uint64_t frames[TRACER_DEPTH_MAX];
	struct u64map stacks; /* heap's address -> stack id */

	if (!joining->captured->source.has_tracer)
		return;
	u64map_init(&stacks);
	for (uint32_t i = 1; i < 1u << TRACER_HEAPS_LOG2; i++) {
		uint32_t stack = area->heap_stacks[i];

		if (stack && tables_heap_at(area, i))
			u64map_add(&stacks, tables_heap_at(area, i), &stack);
	}
	for (size_t i = 0; i < snapshot->heap_count; i++) {
		struct heap *heap = &snapshot->heaps[i];
		uint32_t stack, depth = 0;

		if (u64map_find(&stacks, heap->addr, &stack))
			depth = tracer_copy_stack(&joining->captured->tracer, stack, frames);
		if (!depth)
			continue;
		heap->creator = memcpy(arena_alloc(&snapshot->arena, depth * sizeof(*frames)),
			frames, depth * sizeof(*frames));
		heap->creator_depth = depth;
	}
	u64map_release(&stacks);
}

/* ---------------------------------------------------------------- virtual memory */

/* Headings, in order, and the kinds of ranges under each. */
static const struct {
	uint64_t addr;
	enum tracer_range_kind kind;
} headings[] = {
	{HEAP_VIRTUAL, RANGE_COMMITTED},
	{HEAP_RESERVED, RANGE_RESERVED},
	{HEAP_MAPPED, RANGE_MAPPED},
	{HEAP_STACKS, RANGE_STACK},
};

/* Maps the start of each recorded stack of a thread to the index of the live thread, or to
 * STACK_NONE if the thread has ended unseen. */
static void find_threads(const struct raw_capture *captured, struct u64map *threads)
{
	const struct tracer_range_list *ranges = &captured->tracer.ranges;
	const struct thread_stack *stacks = captured->thread_stacks;
	const size_t count = captured->thread_stack_count;

	u64map_init(threads);
	for (size_t i = 0; i < ranges->count; i++) {
		const uint64_t addr = ranges->items[i].allocation;
		uint32_t index = (uint32_t)sorted_below(
			stacks, count, sizeof(*stacks), offsetof(struct thread_stack, addr), addr);

		if (ranges->items[i].kind != RANGE_STACK)
			continue;
		if (index == count || stacks[index].addr != addr)
			index = STACK_NONE;
		u64map_add(threads, addr, &index);
	}
}

/*
 * Finds the block that a range is under a heading. Returns false if it has no block there. The stack of
 * a live thread is one block of committed memory and one of reserved address space, both with the
 * stack of the call that created the thread. Their present sizes come from the system. If the
 * threads cannot be listed, all recorded ones count, with their sizes at creation.
 */
static bool range_block(const struct raw_capture *captured, const struct u64map *threads,
	const struct tracer_range *range, enum tracer_range_kind kind, struct block *block)
{
	const struct thread_stack *thread;
	uint32_t index;

	block->addr = range->start;
	block->requested_bytes = range->end - range->start;
	if (!captured->thread_stacks || !u64map_find(threads, range->allocation, &index))
		return range->kind == kind;
	if (index == STACK_NONE || range->kind != RANGE_STACK)
		return false;
	thread = &captured->thread_stacks[index];
	block->addr = thread->addr;
	block->requested_bytes = kind == RANGE_STACK	? thread->committed_bytes :
				 kind == RANGE_RESERVED ? thread->bytes - thread->committed_bytes :
							  0;
	return block->requested_bytes;
}

/* Adds the headings after the heaps, if the functions for virtual memory are or were hooked.
 * Headings without ranges are added too. */
static void join_virtual(struct joining *joining)
{
	const struct tracer_copy *tracer = &joining->captured->tracer;
	struct snapshot *snapshot = joining->snapshot;
	struct u64map threads;

	if (!joining->captured->source.has_tracer ||
		(!tracer->area.hooks[HOOK_VIRTUAL_ALLOCATE].patch_bytes && !tracer->ranges.count))
		return;
	find_threads(joining->captured, &threads);
	for (size_t i = 0; i < sizeof(headings) / sizeof(*headings); i++) {
		struct heap *heap = snapshot_add_heap(snapshot);

		*heap = (struct heap){.addr = headings[i].addr,
			.bits = snapshot->bits,
			.kind = heap_heading_kind(headings[i].addr)};
		for (size_t k = 0; k < tracer->ranges.count; k++) {
			const struct tracer_range *range = &tracer->ranges.items[k];
			struct block block = {.heap = (uint32_t)snapshot->heap_count - 1};

			if (!range_block(
				    joining->captured, &threads, range, headings[i].kind, &block))
				continue;
			add_block(joining, &block, traced_stack(joining, range->stack), BLOCK_HELD);
			heap->reserved_bytes += block.requested_bytes;
		}
		if (headings[i].kind != RANGE_RESERVED)
			heap->committed_bytes = heap->reserved_bytes;
	}
	u64map_release(&threads);
}

/* Adds the headings of handles, if handles are recorded. */
static void join_handles(struct joining *joining)
{
	const struct tracer_copy *tracer = &joining->captured->tracer;
	struct snapshot *snapshot = joining->snapshot;

	if (!joining->captured->source.has_tracer || !(tracer->area.flags & TRACER_FLAG_HANDLES))
		return;
	for (uint32_t type = 0; type < HANDLE_TYPES; type++) {
		struct heap *heap = snapshot_add_heap(snapshot);

		*heap = (struct heap){.addr = HEAP_HANDLES_FIRST + type,
			.bits = snapshot->bits,
			.kind = heap_heading_kind(HEAP_HANDLES_FIRST + type)};
		for (size_t k = 0; k < tracer->ranges.count; k++) {
			const struct tracer_range *range = &tracer->ranges.items[k];
			struct block block = {.heap = (uint32_t)snapshot->heap_count - 1};

			if (range->kind != RANGE_HANDLE + type)
				continue;
			block.addr = tracer_range_handle(range);
			add_block(joining, &block, traced_stack(joining, range->stack), BLOCK_HELD);
		}
	}
}

/* ---------------------------------------------------------------- the whole model */

void model_add_blocks(struct snapshot *snapshot, struct raw_capture *captured)
{
	struct joining joining = {.snapshot = snapshot, .captured = captured};
	uint64_t sample_bytes =
		captured->source.has_tracer ? captured->tracer.area.sample_bytes : 0;

	joining.is_sample = sample_bytes != 0;
	for (size_t i = 0; i < captured->walk.heap_count; i++) {
		struct heap *heap = snapshot_add_heap(snapshot);

		*heap = captured->walk.heaps[i];
		heap->has_exact = joining.is_sample && !heap->unwalked;
	}
	snapshot->has_reach = captured->reach.reach;
	snapshot->by_middle = !captured->only_starts;
	if (snapshot->has_reach)
		snapshot->part_held_count = reach_part_count(captured->reach.reach);
	u64map_init(&joining.lost);
	u64map_init(&joining.traced);
	tracer_copy_sort(&captured->tracer);
	joining.is_joined = xcalloc(captured->tracer.block_count + 1, sizeof(*joining.is_joined));
	tracer_modules_place(&captured->tracer.modules, snapshot->bits, snapshot->modules,
		snapshot->module_count);
	add_records(&joining);
	join_walked(&joining);
	join_unwalked(&joining);
	captured->freed_unseen = count_freed_unseen(&joining);
	if (joining.is_sample)
		sample_add_sums(snapshot, sample_bytes);
	add_creators(&joining);
	join_virtual(&joining);
	join_handles(&joining);
	tracer_modules_list(&captured->tracer.modules, snapshot);
	if (joining.mismatches && !joining.is_sample)
		snapshot_warn(snapshot,
			"%" PRIu64 " block%s a different size or heap in the tracer's table; "
			"counted without a stack",
			joining.mismatches, joining.mismatches == 1 ? " has" : "s have");
	u64map_release(&joining.lost);
	u64map_release(&joining.traced);
	free(joining.is_joined);
	free(joining.records);
}

/* ---------------------------------------------------------------- sums instead of blocks */

struct summing {
	struct u64map known; /* maps heap and stack to an index into sums */
	struct block_sum *sums;
	size_t count, cap;
};

static void add_sum(struct summing *summing, const struct block_sum *more)
{
	uint32_t at = (uint32_t)summing->count;
	struct block_sum *to;

	if (u64map_add(&summing->known,
		    (uint64_t)more->reach << 60 | (uint64_t)more->heap << 32 | more->stack, &at)) {
		array_grow((void **)&summing->sums, &summing->cap, summing->count,
			sizeof(*summing->sums));
		summing->sums[summing->count++] = (struct block_sum){
			.heap = more->heap, .stack = more->stack, .reach = more->reach};
	}
	to = &summing->sums[at];
	to->block_count += more->block_count;
	to->requested_bytes += more->requested_bytes;
	to->overhead_bytes += more->overhead_bytes;
}

/* Sorts by heap, reach and stack. No two sums are equal. */
static int order_of(const void *a, const void *b)
{
	const struct block_sum *x = a, *y = b;

	if (x->heap != y->heap)
		return x->heap < y->heap ? -1 : 1;
	if (x->reach != y->reach)
		return x->reach < y->reach ? -1 : 1;
	return x->stack < y->stack ? -1 : x->stack > y->stack;
}

void model_sum_by_stack(struct snapshot *snapshot)
{
	struct summing summing = {0};

	u64map_init(&summing.known);
	for (size_t i = 0; i < snapshot->sum_count; i++)
		add_sum(&summing, &snapshot->sums[i]);
	for (size_t i = 0; i < snapshot->block_count; i++) {
		const struct block *block = &snapshot->blocks[i];
		uint32_t reach = snapshot_reach(snapshot, i);

		add_sum(&summing, &(struct block_sum){1, block->requested_bytes,
					  block->overhead_bytes, block->heap, block->stack,
					  reach < BLOCK_LOST_WITH ? (enum block_reach)reach :
								    BLOCK_LOST_WITH});
	}
	u64map_release(&summing.known);
	if (summing.count)
		qsort(summing.sums, summing.count, sizeof(*summing.sums), order_of);
	free(snapshot->blocks);
	free(snapshot->sums);
	snapshot->blocks = NULL;
	snapshot->block_count = snapshot->block_cap = snapshot->reach_count = 0;
	snapshot->sums = summing.sums;
	snapshot->sum_count = summing.count;
	snapshot->sum_cap = summing.cap;
	snapshot->has_containers = false;
	snapshot->is_by_stack = true;
}
