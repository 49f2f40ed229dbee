/* Shared parts of reports: figures of views and charts, and words for rows, groups and dumps. */
#include "diff/report/report.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/base/text.h"
#include "diff/match/row_series.h"
#include "diff/report/report_parts.h"

void report_ways(const struct view *view, size_t first, struct report_ways *ways)
{
	*ways = (struct report_ways){0};
	for (size_t i = 0; i < view->row_count; i++) {
		struct change change =
			row_change(view->comparison, &view->comparison->rows[view->rows[i]]);
		struct growth growth =
			growth_of(change.now.requested_bytes, change.old.requested_bytes);

		if (growth.sign == '-' && growth.amount) {
			ways->shrunk_count++;
			ways->shrunk_bytes += growth.amount;
		} else if (growth.amount) {
			ways->grown_count++;
			ways->grown_bytes += growth.amount;
			ways->first_bytes += i < first ? growth.amount : 0;
		}
	}
}

struct growth growth_of(uint64_t now, uint64_t old)
{
	return now < old ? (struct growth){'-', old - now} : (struct growth){'+', now - old};
}

static void subtract(uint64_t *old, uint64_t *now, uint64_t part_old, uint64_t part_new)
{
	uint64_t growth;

	*old -= part_old;
	*now -= part_new;
	if (*old <= INT64_MAX && *now <= INT64_MAX)
		return;
	growth = *now - *old;
	*old = growth > INT64_MAX ? 0 - growth : 0;
	*now = growth > INT64_MAX ? 0 : growth;
}

const enum record_memory chart_memories[RECORD_MEMORIES] = {
	RECORD_HEAP, RECORD_COMMITTED, RECORD_MAPPED, RECORD_STACK, RECORD_RESERVED};

const struct record_mark *chart_mark(const struct chart *chart, size_t *at, uint64_t end_ms)
{
	const struct record_facts *facts = chart->facts;
	const struct use_window *window = &chart->over_time->window;

	while (*at < facts->mark_count && facts->marks[*at].position < window->from)
		++*at;
	if (*at == facts->mark_count || facts->marks[*at].position > window->to ||
		facts->marks[*at].time_ms > end_ms)
		return NULL;
	return &facts->marks[(*at)++];
}

double chart_log(uint64_t value)
{
	int exponent;
	double part = frexp((double)value, &exponent), sum = exponent;

	if (!value)
		return 0;
	part *= 2; /* in [1, 2) */
	for (int bit = 1; bit < 14; bit++) {
		part *= part;
		if (part < 2)
			continue;
		part /= 2;
		sum += ldexp(1, -bit);
	}
	return sum;
}

struct change report_left_out(const struct view *view)
{
	struct change rest = view->all, taken = view->selected;
	struct block_totals *old = &rest.old, *now = &rest.now;

	change_add(&taken, &view->suppressed);
	subtract(
		&old->block_count, &now->block_count, taken.old.block_count, taken.now.block_count);
	subtract(&old->requested_bytes, &now->requested_bytes, taken.old.requested_bytes,
		taken.now.requested_bytes);
	subtract(&old->overhead_bytes, &now->overhead_bytes, taken.old.overhead_bytes,
		taken.now.overhead_bytes);
	return rest;
}

struct change report_not_shown(const struct view *view, size_t *count)
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

bool report_rows_have_overhead(const struct comparison *comparison)
{
	return comparison->has_overhead && comparison->dumps;
}

bool report_has_overhead(const struct view *view)
{
	return view->is_filtered ? report_rows_have_overhead(view->comparison) :
				   view->comparison->has_overhead;
}

const char *report_host(const struct comparison *comparison)
{
	return comparison->shows_hosts && comparison->dump_count ? comparison->dumps[0].id.host :
								   NULL;
}

bool report_has_rates(const struct comparison *comparison)
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

double report_window_rate(const struct comparison *comparison, const struct window_sums *sums)
{
	uint64_t ms = comparison->dumps[0].window.born_ms - comparison->dumps[0].window.from_ms;

	return ms ? (double)sums->by_fate[FATE_AI].block_count * 1000 / (double)ms : NAN;
}

double report_window_life(const struct window_sums *sums)
{
	return sums->lives_ms / (double)sums->by_fate[FATE_AIFI].block_count;
}

const char *report_dump_time(const struct dump_sums *dump, char text[DATE_TEXT_BYTES])
{
	*text = '\0';
	if (dump->id.time_ms)
		date_text(dump->id.time_ms, text);
	if (dump->id.has_wall_time && strlen(text) > strlen("2026-11-20T10:25"))
		text[strlen("2026-11-20T10:25")] = '\0';
	return text;
}

const char *report_dump_role(const struct comparison *comparison, size_t index)
{
	if (comparison->is_sum || index + 1 == comparison->dump_count)
		return "new";
	return index ? "between" : "old";
}

const char *report_row_kind(enum row_kind kind)
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

const char *report_row_words(const struct row *row, char space[ROW_WORDS_BYTES])
{
	if (row->kind == ROW_ONE_OF || row->id_stack_count > 1) {
		snprintf(space, ROW_WORDS_BYTES, "(one of %u stacks under this id)",
			row->kind == ROW_ONE_OF ? row->candidate_count : row->id_stack_count);
		return space;
	}
	switch (row->kind) {
	case ROW_ONE_OF:
	case ROW_UNKNOWN: return "(stack not in the dump)";
	case ROW_STACKLESS: return NO_STACK;
	case ROW_STACK:
	case ROW_AMBIGUOUS: break;
	}
	return "(no frames to show)";
}

const char *report_group_kind(enum view_group group)
{
	static const char *const names[] = {
		[GROUP_STACK] = "stack",
		[GROUP_FUNCTION] = "function",
		[GROUP_FILE] = "file",
		[GROUP_MODULE] = "module",
		[GROUP_HEAP] = "heap",
		[GROUP_THREAD] = "thread",
		[GROUP_MEMORY] = "memory",
	};

	return names[group];
}
