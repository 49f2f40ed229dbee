/* What the dumps of a comparison add up to, whatever is in them. */
#ifndef DIFF_TOTALS_H
#define DIFF_TOTALS_H

#include "diff/match/match.h"

/* Fills in a comparison's totals, of dumps and axis that it has. Address space is counted when it was asked
 * for, and else told apart. */
void totals_count(struct comparison *comparison, const struct match_request *request);

/* Adds sums of several processes, which together may be more than a signed number holds: that stands for
 * it then. */
void totals_add(struct census *to, const struct census *more);

#endif
