/*
 * What a printed comparison says of the whole: its total line and, in reports of our own that show
 * a part of the stacks, how much they do not show.
 */
#ifndef DIFF_COMPARISON_WHOLE_H
#define DIFF_COMPARISON_WHOLE_H

#include <stdbool.h>

#include "diff/match/match.h"
#include "diff/read/comparison_line.h"
#include "diff/read/comparison_notes.h"

/* All zero: it says nothing. */
struct whole_text {
	bool has_total, has_rest, has_all;
	struct total_text total; /* of the rows and the rest */
	struct rest_text rest;
	struct all_text all; /* of more than these: of what was filtered out, too */
};

/* Takes what a comment of a report of our own says, if it is of the whole. */
void whole_note(struct whole_text *whole, struct words comment);

/*
 * Completes the totals of a comparison, which are those of its rows, to what the file says of the
 * whole, and sets lacks_rows when that is more than the rows tell. Only growth is told of what has
 * no rows: it counts to the side that has more. True when the rows and what the file itself leaves
 * out add up to its total line, and also when it has none.
 */
bool whole_settle(const struct whole_text *whole, int reading, struct comparison *comparison);

#endif
