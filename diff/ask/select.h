/* Which rows of a comparison a view has: filters first, then suppressions. */
#ifndef DIFF_SELECT_H
#define DIFF_SELECT_H

#include "diff/ask/view.h"

/* Narrows the rows of a view and sums up what is left: see view_ask(), whose part this is. */
int view_select(struct view *view, struct naming *naming, const struct view_request *request,
	struct err *err);

#endif
