#include "diff/read/cells.h"

#include <stdlib.h>

#define NUMBER_BYTES 10 /* seven bits in each */
#define CELL_BYTES (1 + 5 * NUMBER_BYTES)

/* What the first byte of a cell says; what it does not say follows as a number, in this order. */
enum {
	NEXT_STACK = 1, /* behind that of the cell before */
	SAME_HEAP = 2,
	ONE_BLOCK = 4,
	IS_BARE = 8,
};

static unsigned char *put_number(unsigned char *to, uint64_t number)
{
	for (; number > 0x7f; number >>= 7)
		*to++ = (unsigned char)(number | 0x80);
	*to++ = (unsigned char)number;
	return to;
}

static uint64_t take_number(const unsigned char **at)
{
	uint64_t number = 0;
	unsigned shift = 0;

	for (; **at > 0x7f; shift += 7)
		number |= (uint64_t)(*(*at)++ & 0x7f) << shift;
	return number | (uint64_t) * (*at)++ << shift;
}

static unsigned char *put_cell(
	unsigned char *to, const struct cell *cell, const struct cell *before)
{
	bool is_next = cell->stack == before->stack + 1, is_same = cell->heap == before->heap;
	bool is_one = cell->sums.block_count == 1;

	*to++ = (unsigned char)((is_next ? NEXT_STACK : 0) | (is_same ? SAME_HEAP : 0) |
				(is_one ? ONE_BLOCK : 0) | (cell->is_bare ? IS_BARE : 0));
	if (!is_next)
		to = put_number(to, cell->stack);
	if (!is_same)
		to = put_number(to, cell->heap);
	if (!is_one)
		to = put_number(to, cell->sums.block_count);
	to = put_number(to, cell->sums.requested_bytes);
	return put_number(to, cell->sums.overhead_bytes);
}

void cells_pack(struct sums *sums)
{
	struct cell before = {.stack = STACK_NONE};
	unsigned char *all, *to, *less;

	if (!sums->cells || sums->cell_count >= SIZE_MAX / CELL_BYTES)
		return;
	all = to = malloc(sums->cell_count * CELL_BYTES + 1);
	if (!all)
		return;
	for (size_t i = 0; i < sums->cell_count; i++) {
		to = put_cell(to, &sums->cells[i], &before);
		before = sums->cells[i];
	}
	less = realloc(all, (size_t)(to - all) + 1);
	sums->packed_cells = less ? less : all;
	free(sums->cells);
	sums->cells = NULL;
}

const struct cell *cell_unpack(struct cell_walk *walk)
{
	const unsigned char *at = walk->packed;
	struct cell *cell = &walk->cell;
	unsigned said = *at++;

	cell->stack = said & NEXT_STACK ? cell->stack + 1 : (uint32_t)take_number(&at);
	if (!(said & SAME_HEAP))
		cell->heap = (uint32_t)take_number(&at);
	cell->is_bare = (said & IS_BARE) != 0;
	cell->sums.block_count = said & ONE_BLOCK ? 1 : take_number(&at);
	cell->sums.requested_bytes = take_number(&at);
	cell->sums.overhead_bytes = take_number(&at);
	walk->packed = at;
	return cell;
}
