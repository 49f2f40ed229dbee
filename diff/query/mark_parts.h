/* The parts of a recording between its marks. */
#ifndef DIFF_QUERY_MARK_PARTS_H
#define DIFF_QUERY_MARK_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/dump/model.h"
#include "diff/query/view.h"

#define MARK_NO_ROW UINT32_MAX

/* From one mark to the next. Sums contain only blocks of the selected rows that were allocated in
 * the part. */
struct mark_part {
	const char *label; /* mark at the start; NULL for the part before the first mark */
	uint64_t from_ms, to_ms;
	struct block_totals kept; /* still live at the end of the part */
	struct block_totals left; /* still live at the end of the recording */
	struct block_totals transient; /* freed in the part */
	uint64_t peak_bytes; /* maximum of the blocks that were live at once */
	uint32_t row; /* row that kept most bytes, or MARK_NO_ROW */
	struct block_totals row_kept;
};

struct mark_parts {
	struct mark_part *items; /* in order of time; the first begins at the start */
	size_t count; /* number of marks + 1 */
};

/* Returns true if a part has a limit and a test case: it begins with a mark whose label is not in
 * parentheses. */
static inline bool mark_part_is_judged(const struct mark_part *part)
{
	return part->label && *part->label != '(';
}

/* Computes the parts in one pass over the events. The view must be of a whole recording with
 * FATE_AI, without groups. Looks up the names of the rows in the result. Returns 0; -ERR_USAGE if
 * the recording has no marks; or a read error. Release the parts even after an error. */
int mark_parts_read(struct mark_parts *parts, struct view *view, struct err *err);
void mark_parts_release(struct mark_parts *parts);

#endif
