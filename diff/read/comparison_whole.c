#include "diff/read/comparison_whole.h"

void whole_note(struct whole_text *whole, struct words comment)
{
	struct rest_text rest;
	struct all_text all;

	if (note_rest(comment, &rest)) {
		whole->has_rest = true;
		whole->rest = rest;
	} else if (note_all(comment, &all)) {
		whole->has_all = true;
		whole->all = all;
	}
}

/* What the whole grew by. */
struct whole {
	int64_t bytes, blocks, overhead;
	bool has_overhead;
};

/* *to = a + b, or a - b, where that fits. Neither is -2^63. */
static bool plus(int64_t a, int64_t b, int64_t *to)
{
	if (b > 0 ? a > INT64_MAX - b : a < -INT64_MAX - b)
		return false;
	*to = a + b;
	return true;
}

static bool minus(int64_t a, int64_t b, int64_t *to)
{
	return plus(a, -b, to);
}

/* Growth without a row counts to the side that has more. False: no sum of ours can hold it. */
static bool grow(uint64_t *old, uint64_t *new, int64_t growth, uint64_t old_more, uint64_t new_more)
{
	uint64_t *side = growth < 0 ? old : new;
	uint64_t more = growth < 0 ? (uint64_t)-growth : (uint64_t)growth;
	uint64_t beside = growth < 0 ? old_more : new_more;

	if (*side > INT64_MAX - beside || more > INT64_MAX - beside - *side)
		return false;
	*side += more;
	return true;
}

static bool all_holds(const struct all_text *all, int reading)
{
	return signed_holds(&all->requested, reading) && signed_holds(&all->blocks, reading) &&
	       (!all->has_overhead || signed_holds(&all->overhead, reading));
}

/* What the total line is of: the rows and those that are not shown. False: it does not fit. */
static bool add_rest(const struct whole_text *text, int reading, struct whole *whole)
{
	const struct rest_text *rest = &text->rest;

	return !text->has_rest ||
	       (signed_holds(&rest->bytes, reading) && signed_holds(&rest->blocks, reading) &&
		       plus(whole->bytes, signed_value(&rest->bytes, reading), &whole->bytes) &&
		       plus(whole->blocks, signed_value(&rest->blocks, reading), &whole->blocks));
}

/* Takes the growth of the whole from the words that tell most of it. */
static void take_whole(const struct whole_text *text, int reading, struct whole *whole)
{
	const struct total_text *total = &text->total;
	const struct all_text *all = &text->all;

	if (text->has_all && all_holds(all, reading)) {
		*whole = (struct whole){.bytes = signed_value(&all->requested, reading),
			.blocks = signed_value(&all->blocks, reading),
			.overhead = all->has_overhead ? signed_value(&all->overhead, reading) : 0,
			.has_overhead = all->has_overhead};
		return;
	}
	whole->bytes = total_part(total, 0, reading);
	whole->has_overhead = total->has_overhead;
	if (total->has_overhead)
		whole->overhead = total_part(total, 1, reading);
}

/* False: it is nonsense, and nothing was changed. */
static bool complete(struct comparison *to, const struct whole *whole)
{
	struct delta rows = comparison_delta(to);
	struct census old = to->old_total, new = to->new_total;
	int64_t bytes, blocks;

	if (!minus(whole->bytes, rows.requested_bytes, &bytes) ||
		!minus(whole->blocks, rows.block_count, &blocks) ||
		!grow(&old.requested_bytes, &new.requested_bytes, bytes, 0, 0) ||
		!grow(&old.block_count, &new.block_count, blocks, 0, 0) ||
		!grow(&old.overhead_bytes, &new.overhead_bytes, whole->overhead,
			old.requested_bytes, new.requested_bytes))
		return false;
	to->old_total = old;
	to->new_total = new;
	to->has_overhead = whole->has_overhead;
	to->lacks_rows |= bytes || blocks;
	return true;
}

bool whole_settle(const struct whole_text *text, int reading, struct comparison *to)
{
	struct delta rows = comparison_delta(to);
	struct whole whole = {.bytes = rows.requested_bytes, .blocks = rows.block_count};
	bool adds_up;

	to->lacks_rows = text->has_rest || text->has_all; /* also when these cancel */
	if (!text->has_total)
		return true;
	if (!total_holds(&text->total, reading))
		return false;
	adds_up = add_rest(text, reading, &whole) &&
		  whole.bytes == total_part(&text->total, 0, reading);
	take_whole(text, reading, &whole);
	return complete(to, &whole) && adds_up;
}
