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

/* Whether a comment is of the header of a comparison and of nothing else. */
bool note_is_header(struct words comment);

/* Sets the one that a comment of the header names, if it does; the others are left alone. */
void note_base(struct words comment, bool is_said[READINGS]);

/* "//     ambiguous: one of 3 stacks, unknown which": of the row that follows. */
bool note_is_ambiguous(struct words comment);

/* "//     also BackTrace1 BackTrace2 and 5 more": of the row that follows, too. Leaves what
 * note_id() takes the ids from, one by one: false at the end. */
bool note_also(struct words *comment);
bool note_id(struct words *rest, struct words *id);

/* What stands where a stack would. Fills kind and, of ROW_ONE_OF, how many there are. */
bool note_no_stack(struct words words, enum row_kind *kind, size_t *candidate_count);

#endif
