#include "diff/hdiff.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "diff/match/row_series.h"
#include "diff/report/report_parts.h"

#define NAMES_MAX 3 /* frames that name a stack */
#define NO_ROW UINT32_MAX

/* "series 2: " where there are several: what all that is said begins with. */
static void begin(struct buf *words, const struct view *view)
{
	buf_clear(words);
	buf_add_text(words, "");
	if (view->series_count > 1)
		buf_printf(words, "series %zu: ", view->series_number);
}

/* Says it, and keeps it as a line of the verdict. */
static void say(const struct growth_limits *limits, struct buf *verdict, const char *words)
{
	say_line(limits->say, "%s", words);
	buf_printf(verdict, "%s%s", verdict->len ? "\n" : "", words);
}

/* "series 2: --max-growth cannot judge growth: WHY" */
static void say_unknown(const struct growth_limits *limits, const struct view *view,
	const char *what, const char *why)
{
	struct buf words;

	buf_init(&words);
	begin(&words, view);
	buf_printf(&words, "--max-growth cannot judge %s: %s", what, why);
	say(limits, &limits->verdict->unknown, words.data);
	buf_release(&words);
}

/* ---------------------------------------------------------------- from first to last */

/* Adds words on growth when it is over a limit. */
static bool add_over(
	struct buf *words, const char *before, int64_t growth, uint64_t limit, const char *unit)
{
	if (growth <= 0 || (uint64_t)growth <= limit)
		return false;
	buf_printf(words, "%sgrowth of %" PRId64 " %s is %" PRIu64 " over the limit of %" PRIu64,
		before, growth, unit, (uint64_t)growth - limit, limit);
	return true;
}

/* What growth is told from, and lacks something. */
static void add_cut_ends(struct buf *words, const struct comparison *comparison)
{
	const struct trend_axis *axis = comparison->axis;
	bool is_first = false, is_last = false;

	for (size_t i = 0; axis && i < axis->count; i++) {
		is_first |= comparison->dumps[i].is_cut && axis_begins(axis, i);
		is_last |= comparison->dumps[i].is_cut && axis_ends(axis, i);
	}
	if (is_first || is_last)
		buf_printf(words, "; the %s%s%s snapshot is cut short", is_first ? "first" : "",
			is_first && is_last ? " and the " : "", is_last ? "last" : "");
}

static void check_ends(struct growth_limits *limits, const struct view *view, struct buf *words)
{
	const struct options *options = limits->options;
	const struct trend_axis *axis = view->comparison->axis;
	struct delta delta = change_delta(&view->selected);
	const char *why = limits->growth_unknown;
	bool is_over;

	if (axis && axis_longest(axis) < 2)
		why = "there are no two snapshots of a process";
	if (why) {
		limits->ends_unknown++;
		say_unknown(limits, view, "growth", why);
		return;
	}
	limits->ends_judged++;
	begin(words, view);
	is_over = add_over(words, "", delta.requested_bytes, options->growth_max_bytes, "bytes");
	is_over |= add_over(words, is_over ? ", " : "", delta.block_count,
		options->growth_max_blocks, "blocks");
	if (!is_over)
		return;
	add_cut_ends(words, view->comparison);
	say(limits, &limits->verdict->over, words->data);
	limits->is_over = true;
}

/* ---------------------------------------------------------------- by the hour */

/* What grows, per hour, and what of it grows fastest. */
struct rates {
	double bytes;
	uint32_t fastest; /* row, or NO_ROW */
};

static double rate_of(const struct view *view, uint32_t row)
{
	return view->comparison->trends[row].bytes_per_hour;
}

static struct rates rates_of(const struct view *view)
{
	struct rates rates = {.fastest = NO_ROW};

	for (size_t i = 0; i < view->row_count; i++) {
		uint32_t row = view->rows[i];

		if (view->comparison->trends[row].verdict != TREND_GROWS)
			continue;
		rates.bytes += rate_of(view, row);
		if (rates.fastest == NO_ROW || rate_of(view, row) > rate_of(view, rates.fastest))
			rates.fastest = row;
	}
	if (view->trend.verdict == TREND_GROWS && view->trend.bytes_per_hour > rates.bytes)
		rates.bytes = view->trend.bytes_per_hour;
	return rates;
}

/* "; fastest: app!leak < app!main, by 1234": innermost first, without allocators. */
static void add_fastest(
	struct buf *words, const struct growth_limits *limits, struct view *view, uint32_t number)
{
	const struct row *row = &view->comparison->rows[number];
	char space[ROW_WORDS_BYTES];
	struct frames frames;
	struct buf name;

	frames_init(&frames);
	buf_init(&name);
	buf_add_text(words, "; fastest: ");
	naming_find(&view->naming, &number, 1);
	naming_frames(&view->naming, number, &frames);
	strip_frames(limits->strip, &frames);
	for (size_t i = 0; i < frames.count && i < NAMES_MAX; i++) {
		frame_name(&frames.items[i], &name);
		buf_printf(words, "%s%s", i ? " < " : "", name.data);
	}
	if (!frames.count)
		buf_add_text(words, report_row_words(row, space));
	buf_printf(words, ", by %.0f", rate_of(view, number) * limits->options->rate_max_hours);
	frames_release(&frames);
	buf_release(&name);
}

/* Why a trend cannot be held against a rate, or NULL. */
static const char *no_rate(struct growth_limits *limits, const struct trend_axis *axis)
{
	if (axis_longest(axis) < AXIS_TREND_MIN) {
		limits->too_few++;
		return "there are less than three snapshots of a process";
	}
	if (!axis->times_ms) {
		limits->lacks_times = true;
		return "not all snapshots tell when they were taken, or all tell the same time";
	}
	limits->judged++;
	return NULL;
}

#define DIGITS_MAX 17

/* With as many digits as it takes to see that it is over. */
static void add_rate(struct buf *words, double growth, double limit)
{
	char text[400];

	for (int digits = 0; digits <= DIGITS_MAX; digits++) {
		snprintf(text, sizeof(text), "%.*f", digits, growth);
		if (strtod(text, NULL) > limit)
			break;
	}
	buf_printf(words, "growth of %s ", text);
}

static void check_rate(struct growth_limits *limits, struct view *view, struct buf *words)
{
	const struct options *options = limits->options;
	const char *why = no_rate(limits, view->comparison->axis);
	const char *unit = options->rate_max_hours == 1 ? "bytes/h" : "bytes/d";
	struct rates rates;
	double growth;

	if (why) {
		say_unknown(limits, view, "growth per hour", why);
		return;
	}
	rates = rates_of(view);
	growth = rates.bytes * options->rate_max_hours;
	if (!(growth > (double)options->rate_max_bytes))
		return;
	limits->is_over = true;
	begin(words, view);
	add_rate(words, growth, (double)options->rate_max_bytes);
	buf_printf(words, "%s is over the limit of %" PRIu64 " %s", unit, options->rate_max_bytes,
		unit);
	if (rates.fastest == NO_ROW)
		buf_add_text(words, "; it is that of all together, and no single stack keeps "
				    "growing: try --group function or --group module");
	else
		add_fastest(words, limits, view, rates.fastest);
	say(limits, &limits->verdict->over, words->data);
}

/* ---------------------------------------------------------------- both */

/* What a damaged dump lacks comes and goes like what is given back: no limit is kept by that. */
static void check_damage(struct growth_limits *limits, const struct view *view, struct buf *why)
{
	const struct comparison *comparison = view->comparison;
	const struct dump_sums *damaged = NULL;
	size_t count = 0;

	for (size_t i = 0; comparison->axis && i < comparison->dump_count; i++) {
		const struct dump_sums *dump = &comparison->dumps[i];

		if (!dump->is_cut && !dump->skip_count)
			continue;
		damaged = damaged ? damaged : dump;
		count++;
	}
	if (!count)
		return;
	limits->is_damaged = true;
	buf_clear(why);
	buf_printf(why, "%s is %s", damaged->path, damaged->is_cut ? "cut short" : "damaged");
	if (count > 1)
		buf_printf(why, ", and %zu more are cut short or damaged", count - 1);
	say_unknown(limits, view, "growth", why->data);
}

void growth_check(struct growth_limits *limits, struct view *view, struct growth_verdict *verdict)
{
	const struct options *options = limits->options;
	size_t judged = limits->ends_judged + limits->judged;
	bool was_over = limits->is_over;
	struct buf words;

	limits->verdict = verdict;
	limits->is_over = false;
	buf_init(&words);
	if (options->growth_max_bytes != UINT64_MAX || options->growth_max_blocks != UINT64_MAX)
		check_ends(limits, view, &words);
	if (options->rate_max_hours)
		check_rate(limits, view, &words);
	/* Of a damaged dump there is something to be said when no limit is passed, and one was judged. */
	if (!limits->is_over && limits->ends_judged + limits->judged > judged)
		check_damage(limits, view, &words);
	buf_release(&words);
	limits->is_over |= was_over;
}

bool growth_is_unknown(const struct growth_limits *limits)
{
	return limits->lacks_times || limits->is_damaged || (limits->too_few && !limits->judged) ||
	       (limits->ends_unknown && !limits->ends_judged);
}
