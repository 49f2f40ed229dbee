#include "diff/hdiff.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "diff/match/row_series.h"
#include "diff/report/report_parts.h"

#define NAMES_MAX 3 /* frames that name a stack */
#define NO_ROW UINT32_MAX

static int add_series(struct buf *words, const struct view *view)
{
	return view->series_count > 1 ? buf_printf(words, "series %zu: ", view->series_number) : 0;
}

/* "series 2: --max-growth cannot judge growth: WHY" */
static int say_unknown(
	struct growth_limits *limits, const struct view *view, const char *what, const char *why)
{
	struct buf words;
	int rc;

	buf_init(&words);
	rc = add_series(&words, view);
	if (!rc)
		rc = buf_printf(&words, "--max-growth cannot judge %s: %s", what, why);
	if (!rc)
		limits->say(limits->ctx, &words);
	buf_release(&words);
	return rc;
}

/* ---------------------------------------------------------------- from first to last */

/* Adds words on growth when it is over a limit. */
static int add_over(struct buf *words, const char *before, int64_t growth, uint64_t limit,
	const char *unit, bool *is_over)
{
	if (growth <= 0 || (uint64_t)growth <= limit)
		return 0;
	*is_over = true;
	return buf_printf(words,
		"%sgrowth of %" PRId64 " %s is %" PRIu64 " over the limit of %" PRIu64, before,
		growth, unit, (uint64_t)growth - limit, limit);
}

/* Why growth from first to last cannot be held against a limit, or NULL. */
static const char *no_ends(const struct growth_limits *limits, const struct view *view)
{
	const struct trend_axis *axis = view->comparison->axis;

	if (axis && axis_longest(axis) < 2)
		return "there are no two snapshots of a process";
	return limits->growth_unknown;
}

/* What growth is told from, and lacks something. */
static int add_cut_ends(struct buf *words, const struct comparison *comparison)
{
	const struct trend_axis *axis = comparison->axis;
	bool is_first = false, is_last = false;

	for (size_t i = 0; axis && i < axis->count; i++) {
		is_first |= comparison->dumps[i].is_cut && axis_begins(axis, i);
		is_last |= comparison->dumps[i].is_cut && axis_ends(axis, i);
	}
	if (!is_first && !is_last)
		return 0;
	return buf_printf(words, "; the %s%s%s snapshot is cut short", is_first ? "first" : "",
		is_first && is_last ? " and the " : "", is_last ? "last" : "");
}

static int check_ends(struct growth_limits *limits, const struct view *view, struct buf *words)
{
	const struct options *options = limits->options;
	struct delta delta = change_delta(&view->selected);
	const char *why = no_ends(limits, view);
	bool is_over = false;
	int rc;

	if (why) {
		limits->ends_unknown++;
		return say_unknown(limits, view, "growth", why);
	}
	limits->ends_judged++;
	rc = add_over(
		words, "", delta.requested_bytes, options->growth_max_bytes, "bytes", &is_over);
	if (!rc)
		rc = add_over(words, is_over ? ", " : "", delta.block_count,
			options->growth_max_blocks, "blocks", &is_over);
	if (!rc && is_over)
		rc = add_cut_ends(words, view->comparison);
	if (!rc && is_over)
		limits->say(limits->ctx, words);
	limits->is_over |= is_over;
	return rc;
}

/* ---------------------------------------------------------------- by the hour */

/* What grows, per hour, and what of it grows fastest. */
struct rates {
	double bytes;
	uint32_t fastest; /* row, or NO_ROW */
};

static double rate_of(const struct view *view, uint32_t row)
{
	return view->comparison->rows[row].trend.bytes_per_hour;
}

static struct rates rates_of(const struct view *view)
{
	struct rates rates = {.fastest = NO_ROW};

	for (size_t i = 0; i < view->row_count; i++) {
		uint32_t row = view->rows[i];

		if (view->comparison->rows[row].trend.verdict != TREND_GROWS)
			continue;
		rates.bytes += rate_of(view, row);
		if (rates.fastest == NO_ROW || rate_of(view, row) > rate_of(view, rates.fastest))
			rates.fastest = row;
	}
	if (view->trend.verdict == TREND_GROWS && view->trend.bytes_per_hour > rates.bytes)
		rates.bytes = view->trend.bytes_per_hour;
	return rates;
}

/* "app!leak < app!main", innermost first, without allocators. */
static int add_names(struct buf *words, const struct growth_limits *limits,
	const struct naming *naming, const struct row *row, uint32_t number)
{
	char space[ROW_WORDS_BYTES];
	struct frames frames;
	struct buf name;
	int rc;

	frames_init(&frames);
	buf_init(&name);
	rc = naming_frames(naming, number, &frames);
	if (!rc)
		rc = strip_frames(limits->strip, &frames);
	for (size_t i = 0; !rc && i < frames.count && i < NAMES_MAX; i++) {
		rc = frame_name(&frames.items[i], &name);
		if (!rc)
			rc = buf_printf(words, "%s%s", i ? " < " : "", name.data);
	}
	if (!rc && !frames.count)
		rc = buf_add_text(words, report_row_words(row, space));
	frames_release(&frames);
	buf_release(&name);
	return rc;
}

/* ": app!leak < app!main by 1234 of them" */
static int add_fastest(struct buf *words, const struct growth_limits *limits,
	const struct view *view, struct naming *naming, uint32_t row)
{
	struct err err;
	int rc;

	if (naming_find(naming, &row, 1, &err) || buf_add_text(words, "; fastest: "))
		return -ERR_NOMEM;
	rc = add_names(words, limits, naming, &view->comparison->rows[row], row);
	return rc ? rc :
		    buf_printf(words, ", by %.0f",
			    rate_of(view, row) * limits->options->rate_max_hours);
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
static int add_rate(struct buf *words, double growth, double limit)
{
	char text[400];

	for (int digits = 0; digits <= DIGITS_MAX; digits++) {
		snprintf(text, sizeof(text), "%.*f", digits, growth);
		if (strtod(text, NULL) > limit)
			break;
	}
	return buf_printf(words, "growth of %s ", text);
}

/* What it is that grows. */
static int add_growing(struct buf *words, const struct growth_limits *limits,
	const struct view *view, struct naming *naming, uint32_t row)
{
	if (row == NO_ROW)
		return buf_add_text(words,
			"; it is that of all together, and no single stack keeps "
			"growing: try --group function or --group module");
	return add_fastest(words, limits, view, naming, row);
}

static int check_rate(struct growth_limits *limits, const struct view *view, struct naming *naming,
	struct buf *words)
{
	const struct options *options = limits->options;
	const char *why = no_rate(limits, view->comparison->axis);
	const char *unit = options->rate_max_hours == 1 ? "bytes/h" : "bytes/d";
	struct rates rates;
	double growth;
	int rc;

	if (why)
		return say_unknown(limits, view, "growth per hour", why);
	rates = rates_of(view);
	growth = rates.bytes * options->rate_max_hours;
	if (!(growth > (double)options->rate_max_bytes))
		return 0;
	limits->is_over = true;
	rc = add_rate(words, growth, (double)options->rate_max_bytes);
	if (!rc)
		rc = buf_printf(words, "%s is over the limit of %" PRIu64 " %s", unit,
			options->rate_max_bytes, unit);
	if (!rc)
		rc = add_growing(words, limits, view, naming, rates.fastest);
	if (!rc)
		limits->say(limits->ctx, words);
	return rc;
}

/* ---------------------------------------------------------------- both */

/* What a damaged dump lacks comes and goes like what is given back: no limit is kept by that. */
static int check_damage(struct growth_limits *limits, const struct view *view)
{
	const struct comparison *comparison = view->comparison;
	const struct dump_sums *damaged = NULL;
	struct buf why;
	size_t count = 0;
	int rc;

	for (size_t i = 0; comparison->axis && i < comparison->dump_count; i++) {
		const struct dump_sums *dump = &comparison->dumps[i];

		if (!dump->is_cut && !dump->skip_count)
			continue;
		damaged = damaged ? damaged : dump;
		count++;
	}
	if (!count)
		return 0;
	limits->is_damaged = true;
	buf_init(&why);
	rc = buf_printf(&why, "%s is %s", damaged->path, damaged->is_cut ? "cut short" : "damaged");
	if (!rc && count > 1)
		rc = buf_printf(&why, ", and %zu more are cut short or damaged", count - 1);
	if (!rc)
		rc = say_unknown(limits, view, "growth", why.data);
	buf_release(&why);
	return rc;
}

/* Whether there is something of a limit to be said of a damaged dump: it is not over one, and was judged. */
static bool is_kept(const struct growth_limits *limits, const struct growth_limits *before)
{
	return !limits->is_over &&
	       limits->ends_judged + limits->judged > before->ends_judged + before->judged;
}

int growth_check(struct growth_limits *limits, const struct view *view, struct naming *naming)
{
	const struct options *options = limits->options;
	struct growth_limits before = *limits;
	bool was_over = limits->is_over;
	struct buf words;
	int rc;

	limits->is_over = false;
	buf_init(&words);
	rc = add_series(&words, view);
	if (!rc && (options->growth_max_bytes != UINT64_MAX ||
			   options->growth_max_blocks != UINT64_MAX))
		rc = check_ends(limits, view, &words);
	buf_clear(&words);
	if (!rc && options->rate_max_hours) {
		rc = add_series(&words, view);
		if (!rc)
			rc = check_rate(limits, view, naming, &words);
	}
	buf_release(&words);
	if (!rc && is_kept(limits, &before))
		rc = check_damage(limits, view);
	limits->is_over |= was_over;
	return rc;
}

bool growth_is_unknown(const struct growth_limits *limits)
{
	return limits->lacks_times || limits->is_damaged || (limits->too_few && !limits->judged) ||
	       (limits->ends_unknown && !limits->ends_judged);
}
