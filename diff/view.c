#include "diff/view.h"

#include <stdlib.h>

int view_make(struct view *view, const struct comparison *comparison, const struct naming *naming)
{
	*view = (struct view){.comparison = comparison, .naming = naming};
	view->rows = calloc(comparison->row_count + 1, sizeof(*view->rows));
	if (!view->rows)
		return -ERR_NOMEM;
	for (size_t i = 0; i < comparison->row_count; i++)
		view->rows[i] = (uint32_t)i;
	view->row_count = view->shown_count = comparison->row_count;
	view->all = (struct change){comparison->old_total, comparison->new_total};
	view->selected = view->all;
	return 0;
}

void view_release(struct view *view)
{
	free(view->rows);
	*view = (struct view){0};
}

int view_frames(const struct view *view, uint32_t row, struct frames *frames)
{
	return naming_frames(view->naming, row, frames);
}
