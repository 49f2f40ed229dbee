/*
 * A merge sort of the runs that are in order already: of those there are few, so that it costs little
 * more than a look at each block.
 */
#include "core/block_order.h"

#include <stdlib.h>
#include <string.h>

#define RUN_MIN 32 /* shorter ones are made that long first */

static bool is_before(const struct block *a, const struct block *b)
{
	return a->heap != b->heap ? a->heap < b->heap : a->addr < b->addr;
}

static bool is_ordered(const struct snapshot *snapshot)
{
	for (size_t i = 1; i < snapshot->block_count; i++) {
		if (is_before(&snapshot->blocks[i], &snapshot->blocks[i - 1]))
			return false;
	}
	return true;
}

/* Makes a run of order[0..] that is at least RUN_MIN long, or as long as there are; its length. */
static size_t run_length(const struct block **order, size_t count)
{
	size_t len = 1;

	while (len < count && !is_before(order[len], order[len - 1]))
		len++;
	for (; len < count && len < RUN_MIN; len++) {
		const struct block *block = order[len];
		size_t at = len;

		for (; at && is_before(block, order[at - 1]); at--)
			order[at] = order[at - 1];
		order[at] = block;
	}
	return len;
}

/* Merges from[0..middle) and from[middle..count). */
static void merge(const struct block **to, const struct block **from, size_t middle, size_t count)
{
	size_t left = 0, right = middle, at = 0;

	while (left < middle && right < count)
		to[at++] = is_before(from[right], from[left]) ? from[right++] : from[left++];
	memcpy(to + at, from + left, (middle - left) * sizeof(*to));
	memcpy(to + at + (middle - left), from + right, (count - right) * sizeof(*to));
}

/* Runs lie between the places at ends[]; merges each with its neighbour, and returns how many runs
 * are left. */
static size_t merge_pairs(
	const struct block **to, const struct block **from, size_t *ends, size_t run_count)
{
	size_t start = 0, left = 0;

	for (size_t i = 0; i < run_count; i += 2) {
		size_t end = ends[i + 1 < run_count ? i + 1 : i];

		merge(to + start, from + start, ends[i] - start, end - start);
		ends[left++] = end;
		start = end;
	}
	return left;
}

int block_order(const struct snapshot *snapshot, const struct block ***order)
{
	size_t count = snapshot->block_count, run_count = 0, *ends;
	const struct block **from, **to;

	*order = NULL;
	if (is_ordered(snapshot))
		return 0;
	from = malloc(count * sizeof(*from));
	to = malloc(count * sizeof(*to));
	ends = malloc((count / RUN_MIN + 1) * sizeof(*ends));
	for (size_t i = 0; from && i < count; i++)
		from[i] = &snapshot->blocks[i];
	for (size_t at = 0; from && to && ends && at < count; ends[run_count++] = at)
		at += run_length(from + at, count - at);
	while (run_count > 1) {
		const struct block **merged = to;

		run_count = merge_pairs(to, from, ends, run_count);
		to = from;
		from = merged;
	}
	free(to);
	free(ends);
	if (run_count) {
		*order = from;
		return 0;
	}
	free(from);
	return -ERR_NOMEM;
}
