#include "snapshot/by_stack.h"

#include <stdlib.h>

#include "core/buf.h"
#include "core/u64map.h"

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

int by_stack(struct snapshot *snapshot)
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
