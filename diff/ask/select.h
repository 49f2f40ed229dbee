/* Which rows of a comparison a view has: filters first, then suppressions. */
#ifndef DIFF_SELECT_H
#define DIFF_SELECT_H

#include "diff/ask/view.h"

/* Narrows the rows of a view and sums up what is left: see view_ask(), whose part this is. */
int view_select(struct view *view, struct naming *naming, const struct view_request *request,
	struct err *err);

/* Of a trend: sums up what the view's rows add up to at each snapshot, with rows that did not change
 * unless is_filtered, and judges that. suppressed: what is taken off, by snapshot; NULL: nothing. 0 or
 * -ERR_NOMEM. */
int view_sum_series(struct view *view, const struct census *suppressed, bool is_filtered);

#endif
