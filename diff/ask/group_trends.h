/* Groups of a trend: what a group adds up to at each snapshot. */
#ifndef DIFF_GROUP_TRENDS_H
#define DIFF_GROUP_TRENDS_H

#include <stdbool.h>

#include "diff/ask/view.h"

/* Adds a row's series to that of the group, to self, to total, or to both. 0 or -ERR_NOMEM. */
int group_add_series(struct view *view, struct view_group_row *group, const struct row *row,
	bool to_self, bool to_total);

/* Judges the series of all groups. 0 or -ERR_NOMEM. */
int groups_judge(struct view *view);

#endif
