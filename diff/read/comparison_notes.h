/*
 * What hdiff's own reports say in words that UMDH's comparisons do not have, and the comments by
 * which either is known.
 */
#ifndef DIFF_COMPARISON_NOTES_H
#define DIFF_COMPARISON_NOTES_H

#include <stdbool.h>
#include <stddef.h>

#include "diff/read/comparison_line.h"
#include "diff/match/match.h"

/* Whether a comment is of the header of a comparison and of nothing else; whether that is hdiff's
 * own. */
bool note_is_header(struct words comment);
bool note_is_ours(struct words comment);

/* Why a report of our own that begins like this is not read, or NULL; is_behind: behind the total
 * line of another. */
const char *note_refusal(struct words comment, bool is_behind);

/* "// frames: outermost first" */
bool note_is_inverted(struct words comment);

/* Sets the one that a comment of the header names, if it does; the others are left alone. */
void note_base(struct words comment, bool is_said[READINGS]);

/* "//     ambiguous: one of 3 stacks, unknown which": of the row that follows. */
bool note_is_ambiguous(struct words comment);

/* "//     also BackTrace1 BackTrace2 and 5 more": of the row that follows, too. Leaves what
 * note_id() takes the ids from, one by one: false at the end. */
bool note_also(struct words *comment);
bool note_id(struct words *rest, struct words *id);

/* "// NEW: ..., CUT SHORT: sums are of what is there", or the same behind a snapshot of a trend */
bool note_is_of_cut(struct words comment);

/* "// 5 more stacks are not shown; they add up to +500 bytes, -5 blocks" */
struct rest_text {
	struct signed_number bytes, blocks;
};
bool note_rest(struct words comment, struct rest_text *rest);

/* "//    +500      +40     +5  all": what all blocks add up to when the rows are but a part of them.
 * Overhead may be "?". */
struct all_text {
	bool has_overhead;
	struct signed_number requested, overhead, blocks;
};
bool note_all(struct words comment, struct all_text *all);

/* What stands where a stack would. Fills kind and, of ROW_ONE_OF, how many there are. */
bool note_no_stack(struct words words, enum row_kind *kind, size_t *candidate_count);

#endif
