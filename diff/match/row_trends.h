/* What the series of each row says. */
#ifndef DIFF_ROW_TRENDS_H
#define DIFF_ROW_TRENDS_H

#include "diff/match/match.h"

/* Fills in the trend of each row of a comparison that has an axis, several at once. 0 or
 * -ERR_NOMEM. */
int rows_judge(struct comparison *comparison);

#endif
