/* In which order a view's rows are. */
#ifndef DIFF_ORDER_H
#define DIFF_ORDER_H

#include "diff/ask/view.h"

/* Sorts the rows; those alike stay in the order of the default. By name they must have theirs. 0 or
 * -ERR_NOMEM. */
int view_sort_rows(struct view *view, enum view_sort sort);

#endif
