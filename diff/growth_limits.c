#include "diff/growth_limits.h"

#include <inttypes.h>
#include <stddef.h>

#include "diff/match/series_ends.h"
#include "diff/report/report_parts.h"

#define NAMES_MAX 3 /* frames that name a stack */
#define NO_ROW UINT32_MAX

static int add_series(struct buf *words, const struct view *view)
{
	return view->series_count > 1 ? buf_printf(words, "series %zu: ", view->series_number) : 0;
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

static int check_ends(struct growth_limits *limits, const struct view *view, struct buf *words)
{
	const struct options *options = limits->options;
	struct delta delta = change_delta(&view->selected);
	bool is_over = false;
	int rc = add_over(
		words, "", delta.requested_bytes, options->growth_max_bytes, "bytes", &is_over);

	if (!rc)
		rc = add_over(words, is_over ? ", " : "", delta.block_count,
			options->growth_max_blocks, "blocks", &is_over);
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
		rc = buf_add_text(words, row_words(row, space));
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

	if (row == NO_ROW)
		return 0;
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
	if (!axis->times_ms) {
		limits->lacks_times = true;
		return "not all snapshots tell when they were taken, or all tell the same time";
	}
	if (axis_longest(axis) < AXIS_TREND_MIN) {
		limits->too_few++;
		return "there are less than three snapshots of a process";
	}
	limits->judged++;
	return NULL;
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

	if (why) {
		rc = buf_printf(words, "--max-growth cannot judge growth per hour: %s", why);
		if (!rc)
			limits->say(limits->ctx, words);
		return rc;
	}
	rates = rates_of(view);
	growth = rates.bytes * options->rate_max_hours;
	if (!(growth > (double)options->rate_max_bytes))
		return 0;
	limits->is_over = true;
	rc = buf_printf(words, "growth of %.0f %s is over the limit of %" PRIu64 " %s", growth,
		unit, options->rate_max_bytes, unit);
	if (!rc)
		rc = add_fastest(words, limits, view, naming, rates.fastest);
	if (!rc)
		limits->say(limits->ctx, words);
	return rc;
}

int growth_check(struct growth_limits *limits, const struct view *view, struct naming *naming)
{
	struct buf words;
	int rc;

	buf_init(&words);
	rc = add_series(&words, view);
	if (!rc)
		rc = check_ends(limits, view, &words);
	buf_clear(&words);
	if (!rc && limits->options->rate_max_hours) {
		rc = add_series(&words, view);
		if (!rc)
			rc = check_rate(limits, view, naming, &words);
	}
	buf_release(&words);
	return rc;
}

bool growth_is_unknown(const struct growth_limits *limits)
{
	return limits->lacks_times || (limits->too_few && !limits->judged);
}
