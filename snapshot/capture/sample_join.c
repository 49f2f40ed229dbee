#include "snapshot/capture/capture_parts.h"

#include <stdlib.h>

#include "core/base/memory.h"

#define COUNT_MAX ((uint64_t)1 << 53) /* what a double counts; more there cannot be */

/* A block that was recorded. */
struct sampled {
	uint64_t requested_bytes, overhead_bytes;
	uint32_t heap, stack;
};

struct sampling {
	struct snapshot *snapshot;
	const struct raw_capture *captured;
	struct traced_stacks stacks;
	struct sampled *items;
	size_t count, cap;
};

/* 1 - exp(-x) for x >= 0, to a few units of the last place: exp(-x) - 1 by its series where x is
 * small, and doubled: e(2y) = e(y) * (e(y) + 2). */
static double chance(double x)
{
	double sum = 0, term;
	unsigned halvings = 0;

	if (x > 64)
		return 1;
	while (x > 0.25) {
		x /= 2;
		halvings++;
	}
	term = -x;
	for (int i = 2; i < 20; i++) {
		sum += term;
		term *= -x / i;
	}
	while (halvings--)
		sum *= sum + 2;
	return -sum;
}

double sample_weight(uint64_t requested_bytes, uint64_t sample_bytes)
{
	/* A block of 0 bytes is recorded as one of 1. */
	double bytes = requested_bytes ? (double)requested_bytes : 1;

	return 1 / chance(bytes / (double)sample_bytes);
}

/* ---------------------------------------------------------------- what was recorded */

static int add(struct sampling *sampling, const struct sampled *sampled)
{
	if (array_grow((void **)&sampling->items, &sampling->cap, sampling->count,
		    sizeof(*sampling->items)))
		return -ERR_NOMEM;
	sampling->items[sampling->count++] = *sampled;
	return 0;
}

/* An entry of another size or heap is of an earlier block. */
static int add_walked(struct sampling *sampling, const struct walked_block *walked)
{
	const struct raw_capture *captured = sampling->captured;
	const struct tracer_block *traced = tracer_copy_find(&captured->tracer, walked->addr);
	struct sampled sampled = {
		.requested_bytes = walked->requested_bytes,
		.overhead_bytes = walked->overhead_bytes,
		.heap = walked->heap,
	};
	int rc;

	if (!traced || !tracer_copy_matches(&captured->tracer, traced,
			       captured->walk.heaps[walked->heap].addr, walked->requested_bytes))
		return 0;
	rc = traced_stacks_find(&sampling->stacks, tracer_block_stack(traced), &sampled.stack);
	return rc ? rc : add(sampling, &sampled);
}

static int add_all_walked(struct sampling *sampling)
{
	const struct walk *walk = &sampling->captured->walk;
	struct snapshot *snapshot = sampling->snapshot;
	int rc = 0;

	for (size_t i = 0; i < walk->heap_count; i++)
		snapshot->heaps[i].has_exact = !walk->heaps[i].unwalked;
	for (size_t i = 0; !rc && i < walk->block_count; i++) {
		const struct walked_block *walked = &walk->blocks[i];

		block_totals_add(&snapshot->heaps[walked->heap].exact,
			&(struct block_totals){1, walked->requested_bytes, walked->overhead_bytes});
		rc = add_walked(sampling, walked);
	}
	return rc;
}

/* Of heaps that no walker knows, what was recorded is all there is. */
static int add_unwalked(struct sampling *sampling)
{
	const struct walk *walk = &sampling->captured->walk;
	const struct tracer_copy *tracer = &sampling->captured->tracer;
	struct u64map unwalked; /* address -> index */
	int rc = 0;

	u64map_init(&unwalked);
	walk_unwalked(walk, &unwalked);
	for (size_t i = 0; !rc && unwalked.index.count && i < tracer->block_count; i++) {
		const struct tracer_block *traced = &tracer->blocks[i];
		struct sampled sampled = {.requested_bytes = tracer_block_bytes(traced)};

		if (!u64map_find(&unwalked, tracer_copy_heap(tracer, traced), &sampled.heap))
			continue;
		rc = traced_stacks_find(
			&sampling->stacks, tracer_block_stack(traced), &sampled.stack);
		if (!rc)
			rc = add(sampling, &sampled);
	}
	u64map_release(&unwalked);
	return rc;
}

/* ---------------------------------------------------------------- what it stands for */

static int order_of(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* By size first: what is rounded here is made up for there, in blocks of nearly the same size. */
static int by_size(const void *a, const void *b)
{
	const struct sampled *x = a, *y = b;
	int order = order_of(x->requested_bytes, y->requested_bytes);

	if (!order)
		order = order_of(x->heap, y->heap);
	if (!order)
		order = order_of(x->stack, y->stack);
	return order ? order : order_of(x->overhead_bytes, y->overhead_bytes);
}

static int put_sum(struct snapshot *snapshot, const struct sampled *of, uint64_t count)
{
	const struct block_totals all = {
		count, count * of->requested_bytes, count * of->overhead_bytes};
	struct block_sum *sum;

	if (of->stack == STACK_NONE) {
		block_totals_add(&snapshot->heaps[of->heap].stackless, &all);
		return 0;
	}
	sum = snapshot_add_sum(snapshot);
	if (!sum)
		return -ERR_NOMEM;
	*sum = (struct block_sum){
		all.block_count, all.requested_bytes, all.overhead_bytes, of->heap, of->stack};
	return 0;
}

/*
 * Counts are whole numbers: what one is too small or too large by, up to a half, the next makes up
 * for. So all counts together are at most a half off, and all bytes nearly one whole largest block.
 */
static int put_sums(struct sampling *sampling)
{
	uint64_t sample_bytes = sampling->captured->tracer.area.sample_bytes;
	double owed = 0;
	int rc = 0;

	if (sampling->count)
		qsort(sampling->items, sampling->count, sizeof(*sampling->items), by_size);
	for (size_t from = 0, to; !rc && from < sampling->count; from = to) {
		const struct sampled *of = &sampling->items[from];
		uint64_t count;

		for (to = from + 1; to < sampling->count && !by_size(of, &sampling->items[to]);)
			to++;
		owed += (double)(to - from) * sample_weight(of->requested_bytes, sample_bytes);
		/* At least one stands for itself: no less than a half is owed. */
		count = owed < COUNT_MAX ? (uint64_t)(owed + 0.5) : COUNT_MAX;
		count += !count;
		owed -= (double)count;
		rc = put_sum(sampling->snapshot, of, count);
	}
	return rc;
}

/* As the dump lists them; of one stack in one heap, the larger blocks last. */
static int by_heap(const void *a, const void *b)
{
	const struct block_sum *x = a, *y = b;
	int order = order_of(x->heap, y->heap);

	if (!order)
		order = order_of(x->stack, y->stack);
	if (!order)
		order = order_of(
			x->requested_bytes / x->block_count, y->requested_bytes / y->block_count);
	return order ? order :
		       order_of(x->overhead_bytes / x->block_count,
			       y->overhead_bytes / y->block_count);
}

int join_sampled(struct snapshot *snapshot, const struct raw_capture *captured)
{
	struct sampling sampling = {.snapshot = snapshot, .captured = captured};
	int rc;

	traced_stacks_init(&sampling.stacks, snapshot, &captured->tracer);
	rc = add_all_walked(&sampling);
	if (!rc)
		rc = add_unwalked(&sampling);
	if (!rc)
		rc = put_sums(&sampling);
	if (!rc && snapshot->sum_count)
		qsort(snapshot->sums, snapshot->sum_count, sizeof(*snapshot->sums), by_heap);
	traced_stacks_release(&sampling.stacks);
	free(sampling.items);
	return rc;
}
