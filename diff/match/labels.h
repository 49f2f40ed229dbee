/*
 * What rows are shown by: their ids, and the dumps and stacks that give their frames.
 */
#ifndef DIFF_LABELS_H
#define DIFF_LABELS_H

#include <stdint.h>

#include "diff/match/contents.h"
#include "diff/match/match.h"

#define ROW_NONE UINT32_MAX

/*
 * Labels the rows of a comparison. rows[dump][cell] is the number of the row that the cell went to,
 * ROW_NONE: to none that is left. 0 or -ERR_NOMEM.
 */
int rows_label(
	struct comparison *comparison, const struct contents *contents, uint32_t *const *rows);

#endif
