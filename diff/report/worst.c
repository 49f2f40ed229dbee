/* The stacks that grew most: finding them, and their growth and names as text. */
#include "diff/report/worst.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "diff/match/row_series.h"
#include "diff/report/clean.h"
#include "diff/report/report_parts.h"

static bool is_worse(const struct delta *a, const struct delta *b)
{
	return a->requested_bytes != b->requested_bytes ? a->requested_bytes > b->requested_bytes :
							  a->block_count > b->block_count;
}

size_t worst_find(struct view *view, uint32_t *worst, size_t max)
{
	struct delta *deltas = xcalloc(max, sizeof(*deltas));
	size_t count = 0;

	for (size_t i = 0; i < view->row_count; i++) {
		const struct comparison *comparison = view->comparison;
		struct delta delta = row_delta(comparison, &comparison->rows[view->rows[i]]);
		size_t at = count;

		if (delta.requested_bytes < 0 || (!delta.requested_bytes && delta.block_count <= 0))
			continue;
		while (at && is_worse(&delta, &deltas[at - 1]))
			at--;
		if (at == max)
			continue;
		count += count < max;
		memmove(deltas + at + 1, deltas + at, (count - at - 1) * sizeof(*deltas));
		memmove(worst + at + 1, worst + at, (count - at - 1) * sizeof(*worst));
		deltas[at] = delta;
		worst[at] = view->rows[i];
	}
	free(deltas);
	naming_find(&view->naming, worst, count);
	return count;
}

void worst_add_growth(struct buf *text, const struct comparison *comparison, struct delta delta)
{
	buf_printf(text, "%+" PRId64 " bytes, ", delta.requested_bytes);
	if (comparison->lacks_blocks)
		buf_add_text(text, "? blocks");
	else
		buf_printf(text, "%+" PRId64 " block%s", delta.block_count,
			text_plural(delta.block_count));
}

const struct frame *worst_add_name(struct buf *text, const struct view *view, uint32_t number,
	struct strip *strip, struct frames *frames)
{
	const struct row *row = &view->comparison->rows[number];
	char space[ROW_WORDS_BYTES];
	const struct frame *frame;

	naming_frames(&view->naming, number, frames);
	strip_frames(strip, frames);
	if (!frames->count) {
		buf_add_text(text, report_row_words(row, space));
		return NULL;
	}
	frame = &frames->items[0];
	clean_frame(text, frame, true);
	if (frame->file && frame->line) {
		buf_add_text(text, " (");
		clean_text(text, frame->file, true);
		buf_printf(text, ":%" PRIu32 ")", frame->line);
	}
	return frame;
}
