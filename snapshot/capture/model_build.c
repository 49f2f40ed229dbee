#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/io/out.h"
#include "snapshot/capture/capture.h"
#include "snapshot/capture/capture_parts.h"

void traced_stacks_init(
	struct traced_stacks *stacks, struct snapshot *snapshot, const struct tracer_copy *tracer)
{
	*stacks = (struct traced_stacks){.snapshot = snapshot, .tracer = tracer};
	u64map_init(&stacks->known);
}

void traced_stacks_release(struct traced_stacks *stacks)
{
	u64map_release(&stacks->known);
}

int traced_stacks_find(struct traced_stacks *stacks, uint32_t id, uint32_t *index)
{
	uint64_t frames[TRACER_DEPTH_MAX];
	char text[16];
	struct stack stack = {.id = text, .same_id = STACK_NONE, .frames = frames};
	size_t len;
	int rc = 0;

	if (u64map_find(&stacks->known, id, index))
		return 0;
	*index = STACK_NONE;
	len = out_hex_digits(text, id);
	stack.frame_count = tracer_copy_stack(stacks->tracer, id, frames);
	if (stack.frame_count)
		rc = stackset_put(&stacks->snapshot->stacks, &stack, len, index);
	if (!rc)
		rc = u64map_put(&stacks->known, id, index);
	return rc < 0 ? rc : 0;
}

/* In the order of the headings. */
static const struct {
	uint64_t addr;
	enum tracer_range_kind kind;
	const char *name;
} headings[] = {
	{HEAP_VIRTUAL, RANGE_COMMITTED, "virtual"},
	{HEAP_RESERVED, RANGE_RESERVED, "reserved"},
	{HEAP_MAPPED, RANGE_MAPPED, "mapped"},
};

static int add_range(struct traced_stacks *stacks, const struct tracer_range *range, uint32_t heap)
{
	struct snapshot *snapshot = stacks->snapshot;
	struct block made = {
		.addr = range->start, .requested_bytes = range->end - range->start, .heap = heap};
	struct block *block;
	int rc = traced_stacks_find(stacks, range->stack, &made.stack);

	if (rc)
		return rc;
	if (made.stack == STACK_NONE) {
		block_totals_add(&snapshot->heaps[heap].stackless,
			&(struct block_totals){
				.block_count = 1, .requested_bytes = made.requested_bytes});
		return 0;
	}
	block = snapshot_add_block(snapshot);
	if (!block)
		return -ERR_NOMEM;
	*block = made;
	return 0;
}

static int add_heading(struct traced_stacks *stacks, size_t number)
{
	const struct tracer_range_list *ranges = &stacks->tracer->ranges;
	struct snapshot *snapshot = stacks->snapshot;
	struct heap *heap = snapshot_add_heap(snapshot);
	uint64_t bytes = 0;
	int rc = 0;

	if (!heap)
		return -ERR_NOMEM;
	*heap = (struct heap){.addr = headings[number].addr,
		.bits = snapshot->bits,
		.kind = headings[number].name};
	for (size_t i = 0; !rc && i < ranges->count; i++) {
		const struct tracer_range *range = &ranges->items[i];

		if (range->kind != headings[number].kind)
			continue;
		bytes += range->end - range->start;
		rc = add_range(stacks, range, (uint32_t)snapshot->heap_count - 1);
	}
	heap->reserved_bytes = bytes;
	heap->committed_bytes = headings[number].kind == RANGE_RESERVED ? 0 : bytes;
	return rc;
}

/* The functions that tell of it are hooked, or were. */
static bool is_recorded(const struct tracer_copy *tracer)
{
	return tracer->area.hooks[HOOK_VIRTUAL_ALLOCATE].patch_bytes || tracer->ranges.count;
}

int model_add_virtual(struct snapshot *snapshot, const struct raw_capture *captured)
{
	struct traced_stacks stacks;
	int rc = 0;

	if (!captured->has_tracer || !is_recorded(&captured->tracer))
		return 0;
	traced_stacks_init(&stacks, snapshot, &captured->tracer);
	for (size_t i = 0; !rc && i < sizeof(headings) / sizeof(*headings); i++)
		rc = add_heading(&stacks, i);
	traced_stacks_release(&stacks);
	return rc;
}

struct joining {
	struct snapshot *snapshot;
	const struct raw_capture *captured;
	struct u64map traced; /* the tracer's number of a stack -> the snapshot's, or STACK_NONE */
	uint32_t *
		recorded; /* the number of a record -> the snapshot's of its stack, or STACK_NONE */
	struct table named; /* frames that the system gave -> the snapshot's number of the stack */
	uint64_t mismatches;
};

static int put_stack(struct snapshot *snapshot, uint64_t id, const uint64_t *frames, uint32_t count,
	uint32_t *index)
{
	char text[16];
	size_t len = out_hex_digits(text, id);
	struct stack stack = {
		.id = text, .same_id = STACK_NONE, .frames = frames, .frame_count = count};

	*index = STACK_NONE;
	return count ? stackset_put(&snapshot->stacks, &stack, len, index) : 0;
}

/* The index of the stack that the tracer has under id, or STACK_NONE. */
static int traced_stack(struct joining *joining, uint32_t id, uint32_t *index)
{
	uint64_t frames[TRACER_DEPTH_MAX];
	uint32_t count;
	int rc;

	if (u64map_find(&joining->traced, id, index))
		return 0;
	count = tracer_copy_stack(&joining->captured->tracer, id, frames);
	rc = put_stack(joining->snapshot, id, frames, count, index);
	if (!rc)
		rc = u64map_put(&joining->traced, id, index);
	return rc < 0 ? rc : 0;
}

/* Adds the stacks of all records, each once. */
static int put_records(struct joining *joining)
{
	const struct ust *ust = joining->captured->ust;
	size_t count = joining->captured->wants_ust ? ust_record_count(ust) : 0;
	int rc = 0;

	joining->recorded = calloc(count + 1, sizeof(*joining->recorded));
	if (!joining->recorded)
		return -ERR_NOMEM;
	for (size_t i = 0; !rc && i < count; i++) {
		const uint64_t *frames;
		uint64_t id;
		uint32_t frame_count = ust_frames(ust, (uint32_t)i, &frames, &id);

		rc = put_stack(joining->snapshot, id, frames, frame_count, &joining->recorded[i]);
	}
	return rc;
}

/* The index of the stack that the system has for a block of that size, or STACK_NONE. It was asked
 * before the target was held: of another size, it is an earlier block's. Its stacks have no ids; they
 * get numbers. */
static int os_stack(struct joining *joining, const struct walked_block *walked, uint32_t *index)
{
	const struct os_stacks *os = joining->captured->os;
	const uint64_t *frames;
	uint32_t count = os_stacks_find(os, walked->addr, &frames);
	uint64_t *known;
	int rc;

	if (!count || os_stacks_bytes(os, walked->addr) != walked->requested_bytes)
		return 0;
	known = table_find(&joining->named, frames, count * sizeof(*frames));
	if (known) {
		*index = (uint32_t)*known;
		return 0;
	}
	rc = put_stack(joining->snapshot, joining->named.count + 1, frames, count, index);
	return rc ? rc : table_add(&joining->named, frames, count * sizeof(*frames), *index);
}

/* An entry of the tracer's of another size or heap is not about this block. */
static const struct tracer_block *traced_block(
	struct joining *joining, const struct walked_block *walked)
{
	const struct raw_capture *captured = joining->captured;
	const struct tracer_block *traced;

	if (!captured->has_tracer)
		return NULL;
	traced = tracer_copy_find(&captured->tracer, walked->addr);
	if (!traced || tracer_copy_matches(&captured->tracer, traced,
			       captured->walk.heaps[walked->heap].addr, walked->requested_bytes))
		return traced;
	joining->mismatches++;
	return NULL;
}

/* The tracer knows best; a block that it did not see may have a record from before. */
static int stack_of(struct joining *joining, const struct walked_block *walked, uint32_t *index)
{
	const struct raw_capture *captured = joining->captured;
	const struct tracer_block *traced = traced_block(joining, walked);
	uint32_t number = UST_NONE;
	int rc = 0;

	*index = STACK_NONE;
	if (captured->os)
		return os_stack(joining, walked, index);
	if (traced)
		rc = traced_stack(joining, tracer_block_stack(traced), index);
	if (rc || *index != STACK_NONE)
		return rc;
	if (captured->wants_ust)
		number = ust_number(captured->ust, (size_t)(walked - captured->walk.blocks));
	if (number != UST_NONE)
		*index = joining->recorded[number];
	return 0;
}

static int add_block(struct snapshot *snapshot, const struct walked_block *walked, uint32_t stack)
{
	struct block *block;

	if (stack == STACK_NONE) {
		struct block_totals more = {1, walked->requested_bytes, walked->overhead_bytes};

		block_totals_add(&snapshot->heaps[walked->heap].stackless, &more);
		return 0;
	}
	block = snapshot_add_block(snapshot);
	if (!block)
		return -ERR_NOMEM;
	*block = (struct block){.addr = walked->addr,
		.requested_bytes = walked->requested_bytes,
		.overhead_bytes = walked->overhead_bytes,
		.heap = walked->heap,
		.stack = stack};
	return 0;
}

static int join_walked(struct joining *joining)
{
	const struct walk *walk = &joining->captured->walk;
	int rc = snapshot_reserve_blocks(joining->snapshot, walk->block_count);

	for (size_t i = 0; !rc && i < walk->block_count; i++) {
		uint32_t stack;

		rc = stack_of(joining, &walk->blocks[i], &stack);
		if (!rc)
			rc = add_block(joining->snapshot, &walk->blocks[i], stack);
	}
	return rc;
}

static int add_traced(struct joining *joining, const struct tracer_block *traced, uint32_t heap)
{
	struct walked_block block = {.addr = tracer_block_addr(traced),
		.requested_bytes = tracer_block_bytes(traced),
		.heap = heap};
	uint32_t stack;
	int rc = traced_stack(joining, tracer_block_stack(traced), &stack);

	return rc ? rc : add_block(joining->snapshot, &block, stack);
}

/* Blocks in heaps that no walker knows: what the tracer saw is all there is. */
static int join_unwalked(struct joining *joining)
{
	const struct walk *walk = &joining->captured->walk;
	const struct tracer_copy *tracer = &joining->captured->tracer;
	struct u64map unwalked; /* address -> index */
	uint32_t heap;
	int rc = 0;

	u64map_init(&unwalked);
	walk_unwalked(walk, &unwalked);
	for (size_t i = 0; !rc && unwalked.index.count && i < tracer->block_count; i++) {
		if (u64map_find(&unwalked, tracer_copy_heap(tracer, &tracer->blocks[i]), &heap))
			rc = add_traced(joining, &tracer->blocks[i], heap);
	}
	u64map_release(&unwalked);
	return rc;
}

static int join_all(struct joining *joining)
{
	int rc = join_walked(joining);

	return rc ? rc : join_unwalked(joining);
}

static bool is_sample(const struct raw_capture *captured)
{
	return captured->has_tracer && captured->tracer.area.sample_bytes;
}

static int add_heaps(struct snapshot *snapshot, const struct walk *walk)
{
	for (size_t i = 0; i < walk->heap_count; i++) {
		struct heap *heap = snapshot_add_heap(snapshot);

		if (!heap)
			return -ERR_NOMEM;
		*heap = walk->heaps[i];
	}
	return 0;
}

int model_add_blocks(struct snapshot *snapshot, struct raw_capture *captured)
{
	struct joining joining = {.snapshot = snapshot, .captured = captured};
	int rc = add_heaps(snapshot, &captured->walk);

	table_init(&joining.named);
	u64map_init(&joining.traced);
	tracer_copy_sort(&captured->tracer);
	tracer_modules_place(&captured->tracer.modules, snapshot->bits, snapshot->modules,
		snapshot->module_count);
	if (!rc)
		rc = put_records(&joining);
	if (!rc)
		rc = is_sample(captured) ? join_sampled(snapshot, captured) : join_all(&joining);
	if (!rc)
		rc = model_add_virtual(snapshot, captured);
	if (!rc)
		rc = tracer_modules_list(&captured->tracer.modules, snapshot);
	if (joining.mismatches)
		snapshot_warn(snapshot,
			"%" PRIu64
			" blocks have another size or heap in the tracer's table; they are "
			"counted without a stack",
			joining.mismatches);
	u64map_release(&joining.traced);
	table_release(&joining.named);
	free(joining.recorded);
	return rc;
}

struct summing {
	struct u64map known; /* heap and stack -> the place in sums */
	struct block_sum *sums;
	size_t count, cap;
};

static int add(struct summing *summing, const struct block_sum *more)
{
	uint32_t at = (uint32_t)summing->count;
	int rc = u64map_put(&summing->known, (uint64_t)more->heap << 32 | more->stack, &at);
	struct block_sum *to;

	if (rc < 0)
		return rc;
	if (rc) {
		if (summing->count >= UINT32_MAX ||
			array_grow((void **)&summing->sums, &summing->cap, summing->count,
				sizeof(*to)))
			return -ERR_NOMEM;
		summing->sums[summing->count++] =
			(struct block_sum){.heap = more->heap, .stack = more->stack};
	}
	to = &summing->sums[at];
	to->block_count += more->block_count;
	to->requested_bytes += more->requested_bytes;
	to->overhead_bytes += more->overhead_bytes;
	return 0;
}

static int add_to_stack(struct summing *summing, const struct block *block)
{
	const struct block_sum one = {
		1, block->requested_bytes, block->overhead_bytes, block->heap, block->stack};

	return add(summing, &one);
}

/* Of one heap and stack there is one. */
static int order_of(const void *a, const void *b)
{
	const struct block_sum *x = a, *y = b;

	if (x->heap != y->heap)
		return x->heap < y->heap ? -1 : 1;
	return x->stack < y->stack ? -1 : x->stack > y->stack;
}

/* The sums take the place of all there was. */
static void replace(struct snapshot *snapshot, struct summing *summing)
{
	if (summing->count)
		qsort(summing->sums, summing->count, sizeof(*summing->sums), order_of);
	free(snapshot->blocks);
	free(snapshot->sums);
	snapshot->blocks = NULL;
	snapshot->block_count = snapshot->block_cap = 0;
	snapshot->sums = summing->sums;
	snapshot->sum_count = summing->count;
	snapshot->sum_cap = summing->cap;
	snapshot->is_by_stack = true;
	summing->sums = NULL;
}

int model_sum_by_stack(struct snapshot *snapshot)
{
	struct summing summing = {0};
	int rc = 0;

	u64map_init(&summing.known);
	for (size_t i = 0; !rc && i < snapshot->sum_count; i++)
		rc = add(&summing, &snapshot->sums[i]);
	for (size_t i = 0; !rc && i < snapshot->block_count; i++)
		rc = add_to_stack(&summing, &snapshot->blocks[i]);
	if (!rc)
		replace(snapshot, &summing);
	u64map_release(&summing.known);
	free(summing.sums);
	return rc;
}
