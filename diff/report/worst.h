/* The stacks that grew most, for build servers. */
#ifndef DIFF_REPORT_WORST_H
#define DIFF_REPORT_WORST_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"
#include "diff/query/strip.h"
#include "diff/query/view.h"

/* Finds the rows that grew most, at most `max`, regardless of the view's order, and looks up their
 * names. Stores their numbers in `worst`, the largest growth first. Returns how many there are. */
size_t worst_find(struct view *view, uint32_t *worst, size_t max);

/* Appends "+1234 bytes, +5 blocks". */
void worst_add_growth(struct buf *text, const struct comparison *comparison, struct delta delta);

/* Appends "app!leak (leak.c:41)": the innermost function that does not belong to an allocator. Returns
 * its frame, or NULL if the row has no frames. `frames` is scratch. */
const struct frame *worst_add_name(struct buf *text, const struct view *view, uint32_t number,
	struct strip *strip, struct frames *frames);

#endif
