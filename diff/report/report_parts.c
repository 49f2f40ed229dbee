#include "diff/report/report_parts.h"

#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "diff/match/series_ends.h"

struct growth growth_of(uint64_t new, uint64_t old)
{
	return new < old ? (struct growth){'-', old - new} : (struct growth){'+', new - old};
}

static void take(uint64_t *old, uint64_t *new, uint64_t part_old, uint64_t part_new)
{
	uint64_t growth;

	*old -= part_old;
	*new -= part_new;
	if (*old <= INT64_MAX && *new <= INT64_MAX)
		return;
	growth = *new - *old;
	*old = growth > INT64_MAX ? 0 - growth : 0;
	*new = growth > INT64_MAX ? 0 : growth;
}

struct change view_left_out(const struct view *view)
{
	struct change rest = view->all, taken = view->selected;
	struct census *old = &rest.old, *new = &rest.new;

	change_add(&taken, &view->suppressed);
	take(&old->block_count, &new->block_count, taken.old.block_count, taken.new.block_count);
	take(&old->requested_bytes, &new->requested_bytes, taken.old.requested_bytes,
		taken.new.requested_bytes);
	take(&old->overhead_bytes, &new->overhead_bytes, taken.old.overhead_bytes,
		taken.new.overhead_bytes);
	return rest;
}

struct change view_not_shown(const struct view *view, size_t *count)
{
	struct change sum = {0};
	size_t of = view->group == GROUP_STACK ? view->row_count : view->group_count;

	*count = view->shown_count < of ? of - view->shown_count : 0;
	for (size_t i = view->shown_count; view->group == GROUP_STACK && i < of; i++) {
		struct change more =
			row_change(view->comparison, &view->comparison->rows[view->rows[i]]);

		change_add(&sum, &more);
	}
	return sum;
}

bool rows_have_overhead(const struct comparison *comparison)
{
	return comparison->has_overhead && comparison->dumps;
}

bool selected_has_overhead(const struct view *view)
{
	return view->is_filtered ? rows_have_overhead(view->comparison) :
				   view->comparison->has_overhead;
}

bool has_rates(const struct comparison *comparison)
{
	const struct trend_axis *axis = comparison->axis;

	if (!axis || !axis->times_ms)
		return false;
	for (size_t i = 1; i < axis->count; i++) {
		if (!axis_begins(axis, i))
			return true;
	}
	return false;
}

const char *dump_time(const struct sums *dump, char text[DATE_TEXT_BYTES])
{
	*text = '\0';
	if (dump->time_ms)
		date_text(dump->time_ms, text);
	if (dump->has_wall_time && strlen(text) > strlen("2026-11-20T10:25"))
		text[strlen("2026-11-20T10:25")] = '\0';
	return text;
}

const char *dump_role(const struct comparison *comparison, size_t index)
{
	if (comparison->is_sum || index + 1 == comparison->dump_count)
		return "new";
	return index ? "between" : "old";
}

const char *row_kind_name(enum row_kind kind)
{
	static const char *const names[] = {
		[ROW_STACK] = "stack",
		[ROW_AMBIGUOUS] = "ambiguous",
		[ROW_ONE_OF] = "one_of",
		[ROW_UNKNOWN] = "unknown",
		[ROW_STACKLESS] = "stackless",
	};

	return names[kind];
}

const char *row_words(const struct row *row, char space[ROW_WORDS_BYTES])
{
	switch (row->kind) {
	case ROW_ONE_OF:
		snprintf(space, ROW_WORDS_BYTES, "(one of %zu stacks under this id)",
			row->candidate_count);
		return space;
	case ROW_UNKNOWN: return "(stack not in the dump)";
	case ROW_STACKLESS: return NO_STACK;
	case ROW_STACK:
	case ROW_AMBIGUOUS: break;
	}
	return "(no frames to show)";
}

const char *group_kind_name(enum view_group group)
{
	static const char *const names[] = {
		[GROUP_STACK] = "stack",
		[GROUP_FUNCTION] = "function",
		[GROUP_FILE] = "file",
		[GROUP_MODULE] = "module",
		[GROUP_HEAP] = "heap",
	};

	return names[group];
}

/* ---------------------------------------------------------------- names */

static bool stays(char c, bool one_line)
{
	return !one_line && (c == '\t' || c == '\r' || c == '\n');
}

int clean_text(struct buf *buf, const char *text, bool one_line)
{
	const char *from = text; /* what stays as it is and was not added yet */
	size_t all = strlen(text);
	int rc = 0;

	if (text_is_plain(text, all))
		return buf_add(buf, text, all);
	while (!rc && *text) {
		uint32_t code;
		size_t len = text_utf8(text, &code);

		if (len && (!text_obeyed(text) || stays(*text, one_line))) {
			text += len;
			continue;
		}
		rc = buf_add(buf, from, (size_t)(text - from));
		if (!rc)
			rc = buf_add_text(buf, len ? "?" : "\xef\xbf\xbd");
		from = text += len ? len : 1;
	}
	return rc ? rc : buf_add(buf, from, (size_t)(text - from));
}

int clean_hex(struct buf *buf, uint64_t value)
{
	char digits[16];
	size_t at = sizeof(digits);

	do {
		digits[--at] = "0123456789ABCDEF"[value & 15];
	} while (value >>= 4);
	return buf_add(buf, digits + at, sizeof(digits) - at);
}

int clean_frame(struct buf *buf, const struct frame *frame, bool one_line)
{
	int rc = frame->module ? clean_text(buf, frame->module, one_line) : 0;

	if (!rc && frame->module)
		rc = buf_add(buf, frame->function ? "!" : "+", 1);
	if (rc)
		return rc;
	if (frame->function)
		return clean_text(buf, frame->function, one_line);
	if (!frame->module && !frame->has_addr)
		return buf_add_text(buf, "?");
	return clean_hex(buf, frame->module ? frame->offset_bytes : frame->addr);
}
