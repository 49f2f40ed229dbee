/* Sorted blocks of a tracer's tables, and their index. The sort takes a few passes over the blocks,
 * one for each digit in which addresses differ. */
#include <stdlib.h>
#include <string.h>

#include "snapshot/stacks/tracer_parts.h"

/* A radix sort that starts with the lowest digit. Most digits are the same in all addresses of a
 * process. */
#define DIGIT_BITS 11
#define DIGITS ((TRACER_ADDR_BITS + DIGIT_BITS - 1) / DIGIT_BITS)
#define VALUES ((size_t)1 << DIGIT_BITS)
#define FEW 64 /* with fewer blocks, qsort() is used */

static int by_addr(const void *a, const void *b)
{
	uint64_t x = tracer_block_addr(a), y = tracer_block_addr(b);

	return x < y ? -1 : x > y;
}

static unsigned digit_of(const struct tracer_block *block, unsigned digit)
{
	return tracer_block_addr(block) >> digit * DIGIT_BITS & (VALUES - 1);
}

/* Counts the values of each digit. Returns false if the blocks are already sorted. */
static bool count_digits(const struct tracer_block *blocks, size_t count, size_t (*counts)[VALUES])
{
	bool is_ordered = true;

	for (size_t i = 0; i < count; i++) {
		is_ordered = is_ordered && (!i || tracer_block_addr(&blocks[i - 1]) <=
							   tracer_block_addr(&blocks[i]));
		for (unsigned k = 0; k < DIGITS; k++)
			counts[k][digit_of(&blocks[i], k)]++;
	}
	return !is_ordered;
}

/* Sorts the blocks by one digit. Afterwards `counts` contains, for each value of the digit, the
 * index after the last block with that value. */
static void sort_by_digit(struct tracer_block *to, const struct tracer_block *from, size_t count,
	unsigned digit, size_t *counts)
{
	size_t at = 0;

	for (size_t i = 0; i < VALUES; i++) {
		size_t here = counts[i];

		counts[i] = at;
		at += here;
	}
	for (size_t i = 0; i < count; i++)
		to[counts[digit_of(&from[i], digit)]++] = from[i];
}

static void sort_by_digits(struct tracer_block *blocks, struct tracer_block *other, size_t count,
	size_t (*counts)[VALUES])
{
	struct tracer_block *from = blocks, *to = other;

	for (unsigned k = 0; k < DIGITS; k++) {
		struct tracer_block *dealt = to;

		/* Skip digits that are the same in all blocks. */
		if (counts[k][digit_of(&from[0], k)] == count)
			continue;
		sort_by_digit(to, from, count, k, counts[k]);
		to = from;
		from = dealt;
	}
	if (from != blocks)
		memcpy(blocks, from, count * sizeof(*blocks));
}

void tracer_blocks_sort(struct tracer_block *blocks, size_t count)
{
	struct tracer_block *other = count > FEW ? malloc(count * sizeof(*other)) : NULL;
	size_t(*counts)[VALUES] = other ? calloc(DIGITS, sizeof(*counts)) : NULL;

	if (!counts) {
		if (count)
			qsort(blocks, count, sizeof(*blocks), by_addr);
	} else if (count_digits(blocks, count, counts)) {
		sort_by_digits(blocks, other, count, counts);
	}
	free(counts);
	free(other);
}

#define PARTS_MAX ((uint64_t)1 << 24)

void tracer_index_release(struct tracer_index *index)
{
	free(index->starts);
	*index = (struct tracer_index){0};
}

void tracer_index_build(struct tracer_index *index, const struct tracer_block *blocks, size_t count)
{
	uint64_t span, parts = count;
	size_t at = 0;

	*index = (struct tracer_index){0};
	if (!count || count > UINT32_MAX)
		return;
	index->first = tracer_block_addr(&blocks[0]);
	span = tracer_block_addr(&blocks[count - 1]) - index->first;
	parts = parts < PARTS_MAX ? parts : PARTS_MAX;
	while (span >> index->shift >= parts)
		index->shift++;
	index->part_count = tracer_index_part(index, index->first + span) + 1;
	index->starts = malloc((index->part_count + 1) * sizeof(*index->starts));
	for (size_t i = 0; index->starts && i <= index->part_count; i++) {
		while (at < count && tracer_index_part(index, tracer_block_addr(&blocks[at])) < i)
			at++;
		index->starts[i] = (uint32_t)at;
	}
}
