/* Limits of growth: compares the growth of a view with the limits in the options. Reports exceeded
 * limits and limits that cannot be judged. */
#include "diff/growth_limits.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "diff/dump_identity.h"
#include "diff/match/row_series.h"
#include "diff/messages.h"
#include "diff/options.h"
#include "diff/report/numbers.h"
#include "diff/report/report_parts.h"

#define NAMES_MAX 3 /* number of frames that name a stack */
#define NO_ROW UINT32_MAX
#define RATE_MAX 9e18 /* maximum number of bytes that report_size() accepts */

/* Starts a message with "series 2: " if there are several series, or "series 2 (WEB2): " if they are of
 * several machines. */
static void begin(struct buf *words, const struct view *view)
{
	const char *host = report_host(view->comparison);

	buf_clear(words);
	buf_add_text(words, "");
	if (view->series_count < 2)
		return;
	buf_printf(words, "series %zu", view->series_number);
	if (host)
		buf_printf(words, " (%s)", host);
	buf_add_text(words, ": ");
}

/* Prints a message and appends it to the verdict as a line. */
static void add_verdict_line(
	const struct growth_limits *limits, struct buf *verdict, const char *words)
{
	message_line(limits->messages, "%s", words);
	buf_printf(verdict, "%s%s", verdict->len ? "\n" : "", words);
}

/* Reports "series 2: --max-growth cannot judge growth: WHY". */
static void print_unknown(const struct growth_limits *limits, const struct view *view,
	const char *what, const char *why)
{
	struct buf words;

	buf_init(&words);
	begin(&words, view);
	buf_printf(&words, "--max-growth cannot judge %s: %s", what, why);
	add_verdict_line(limits, &limits->verdict->unknown, words.data);
	buf_release(&words);
}

/* Appends "app!leak < app!main": innermost first, without allocators. */
static void add_stack_name(
	struct buf *words, const struct growth_limits *limits, struct view *view, uint32_t number)
{
	const struct row *row = &view->comparison->rows[number];
	char space[ROW_WORDS_BYTES];
	struct frames frames;
	struct buf name;

	frames_init(&frames);
	buf_init(&name);
	naming_find(&view->naming, &number, 1);
	naming_frames(&view->naming, number, &frames);
	strip_frames(limits->strip, &frames);
	for (size_t i = 0; i < frames.count && i < NAMES_MAX; i++) {
		frame_name(&frames.items[i], &name);
		buf_printf(words, "%s%s", i ? " < " : "", name.data);
	}
	if (!frames.count)
		buf_add_text(words, report_row_words(row, space));
	frames_release(&frames);
	buf_release(&name);
}

/* ---------------------------------------------------------------- growth from first to last */

static const char byte_unit[] = "byte", block_unit[] = "block";

/* Appends "1.5 KiB", "20 bytes" or "1 block". */
static void add_amount(struct buf *words, uint64_t amount, const char *unit)
{
	char size[REPORT_SIZE_BYTES];

	if (amount >= 1024 && unit == byte_unit)
		buf_add_text(words, report_size(amount, size));
	else
		buf_printf(words, "%" PRIu64 " %s%s", amount, unit, text_plural(amount));
}

/* Appends a message if growth exceeds the limit. Returns true if it does. */
static bool add_over(
	struct buf *words, const char *what, uint64_t growth, uint64_t limit, const char *unit)
{
	if (growth <= limit)
		return false;
	buf_printf(words, "%s of ", what);
	add_amount(words, growth, unit);
	if (growth >= 1024 && unit == byte_unit)
		buf_printf(words, " (%" PRIu64 " bytes)", growth);
	buf_add_text(words, " is ");
	add_amount(words, growth - limit, unit);
	buf_add_text(words, " over the limit of ");
	add_amount(words, limit, unit);
	return true;
}

/* Appends a message if the first or the last snapshot is cut short. */
static void add_cut_ends(struct buf *words, const struct comparison *comparison)
{
	const struct trend_axis *axis = comparison->axis;
	bool is_first = false, is_last = false;

	for (size_t i = 0; axis && i < axis->count; i++) {
		is_first |= comparison->dumps[i].quality.is_cut && axis_begins(axis, i);
		is_last |= comparison->dumps[i].quality.is_cut && axis_ends(axis, i);
	}
	if (is_first || is_last)
		buf_printf(words, "; the %s%s%s cut short", is_first ? "first" : "",
			is_first && is_last ? " and the " : "",
			!is_last ? " snapshot is" :
			is_first ? "last snapshots are" :
				   "last snapshot is");
}

static uint64_t add_up(uint64_t sum, int64_t more)
{
	return more <= 0 ? sum : sum + (uint64_t)more < sum ? UINT64_MAX : sum + (uint64_t)more;
}

static uint64_t above_zero(int64_t growth)
{
	return growth > 0 ? (uint64_t)growth : 0;
}

struct grown {
	uint64_t bytes, blocks; /* sum of all rows that grew, at most UINT64_MAX */
	uint64_t row_bytes, row_blocks; /* largest growth of a single row */
	uint32_t by_bytes, by_blocks; /* the rows with this growth, or NO_ROW */
};

static struct grown grown_of(const struct view *view)
{
	struct grown grown = {.by_bytes = NO_ROW, .by_blocks = NO_ROW};

	for (size_t i = 0; i < view->row_count; i++) {
		const struct row *row = &view->comparison->rows[view->rows[i]];
		struct delta delta = row_delta(view->comparison, row);

		grown.bytes = add_up(grown.bytes, delta.requested_bytes);
		grown.blocks = add_up(grown.blocks, delta.block_count);
		if (above_zero(delta.requested_bytes) > grown.row_bytes) {
			grown.row_bytes = (uint64_t)delta.requested_bytes;
			grown.by_bytes = view->rows[i];
		}
		if (above_zero(delta.block_count) > grown.row_blocks) {
			grown.row_blocks = (uint64_t)delta.block_count;
			grown.by_blocks = view->rows[i];
		}
	}
	return grown;
}

/* Reports an exceeded limit, with bytes and blocks on one line. `row` is the stack that grew, or
 * NO_ROW for a sum. */
static void check_limit(struct growth_limits *limits, struct view *view, struct buf *words,
	const char *what, const struct growth_limit *limit, uint64_t bytes, uint64_t blocks,
	uint32_t row)
{
	bool is_over;

	begin(words, view);
	is_over = add_over(words, what, bytes, limit->bytes, byte_unit);
	if (is_over && blocks > limit->blocks)
		buf_add_text(words, ", ");
	is_over |= add_over(words, what, blocks, limit->blocks, block_unit);
	if (!is_over)
		return;
	if (row != NO_ROW) {
		buf_add_text(words, ": ");
		add_stack_name(words, limits, view, row);
	}
	add_cut_ends(words, view->comparison);
	add_verdict_line(limits, &limits->verdict->over, words->data);
	limits->is_over = true;
	limits->verdict->is_sum_over |= row == NO_ROW;
}

static const char *doubt_words(const struct dump_sums *dump, struct buf *words)
{
	buf_clear(words);
	buf_printf(words, "the date of %s is %s", dump->id.path, dumps_doubt_words(dump));
	return words->data;
}

static const struct dump_sums *find_doubt(const struct comparison *comparison)
{
	return comparison->axis ?
		       dumps_find_doubt(comparison->dumps, comparison->dump_count, true) :
		       NULL;
}

/* Returns a dump whose place is in doubt, or NULL. Another dump may then be the first or the last. */
static const struct dump_sums *find_misplaced(const struct comparison *comparison)
{
	for (size_t i = 0; comparison->axis && i < comparison->dump_count; i++) {
		const struct dump_sums *dump = &comparison->dumps[i];

		if (dump->id.is_misplaced || dump->id.date_doubt == DATE_UNKNOWN)
			return dump;
	}
	return NULL;
}

static void check_ends(struct growth_limits *limits, struct view *view, struct buf *words)
{
	const struct options *options = limits->options;
	const struct growth_limit *row = &options->row_max;
	const struct trend_axis *axis = view->comparison->axis;
	struct delta delta = change_delta(&view->selected);
	struct grown grown = grown_of(view);
	const struct dump_sums *misplaced = find_misplaced(view->comparison);
	const char *why = limits->growth_unknown;

	if (axis && axis_longest(axis) < 2)
		why = "fewer than two snapshots of a process";
	else if (axis && options->trend_verdicts && axis_longest(axis) < AXIS_TREND_MIN &&
		 !(options->trend_verdicts >> TREND_TOO_FEW & 1))
		why = "--verdict needs three snapshots of a process";
	if (!why && misplaced)
		why = doubt_words(misplaced, words);
	if (why) {
		limits->ends_unknown++;
		print_unknown(limits, view, "growth", why);
		return;
	}
	limits->ends_judged++;
	check_limit(limits, view, words, "growth", &options->grown_max, grown.bytes, grown.blocks,
		NO_ROW);
	check_limit(limits, view, words, "growth of one stack", row, grown.row_bytes,
		grown.row_blocks, grown.row_bytes > row->bytes ? grown.by_bytes : grown.by_blocks);
	check_limit(limits, view, words, "net growth", &options->net_max,
		above_zero(delta.requested_bytes), above_zero(delta.block_count), NO_ROW);
}

/* ---------------------------------------------------------------- figures of the process */

/* Appends bytes like add_amount(), or a number of objects. */
static void add_figure(struct buf *words, uint64_t amount, const char *unit)
{
	if (unit == byte_unit)
		add_amount(words, amount, unit);
	else
		buf_printf(words, "%" PRIu64, amount);
}

/* Checks a limit for a figure of the process's balance. A type of handles that no dump lists did not
 * grow, if the dumps list other types. */
static void check_figure(struct growth_limits *limits, struct view *view,
	const struct figure_limit *limit, struct buf *words)
{
	const struct balance_view *balance = &view->balance;
	const struct balance_row *row = balance_view_find(balance, limit->key, limit->key_len);
	const bool is_type = memchr(limit->key, ':', limit->key_len) != NULL;
	const char *unit = row && row->is_count ? "" : byte_unit;
	uint64_t growth;

	if (!row && is_type && balance->has_types)
		return;
	if (!row || !row->has_change) {
		buf_clear(words);
		buf_printf(words, "%.*s", (int)limit->key_len, limit->key);
		limits->lacks_data = true;
		print_unknown(limits, view, words->data, "not all dumps record it");
		return;
	}
	growth = above_zero(balance_row_change(row));
	if (growth <= limit->most)
		return;
	begin(words, view);
	buf_printf(words, "%s%s grew by ", row->words, row->role == BALANCE_TYPE ? " handles" : "");
	add_figure(words, growth, unit);
	buf_add_text(words, ", which is ");
	add_figure(words, growth - limit->most, unit);
	buf_add_text(words, " over the limit of ");
	add_figure(words, limit->most, unit);
	add_verdict_line(limits, &limits->verdict->over, words->data);
	limits->is_over = limits->verdict->is_sum_over = true;
}

/* ---------------------------------------------------------------- growth per hour */

/* Growth per hour of the rows that grow, and the fastest-growing row. */
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

#define DIGITS_MAX 17

/* Appends "34.3 MiB/h (35925579 bytes/h)", with enough digits to show that `rate` is greater than
 * `above`. */
static void add_rate(struct buf *words, const struct options *options, double rate, double above)
{
	const char unit = options->rate_max_hours == 1 ? 'h' : 'd';
	char exact[400], size[REPORT_SIZE_BYTES];
	int digits = 0;

	do {
		snprintf(exact, sizeof(exact), "%.*f", digits, rate);
	} while (!(strtod(exact, NULL) > above) && ++digits <= DIGITS_MAX);
	if (rate < 1024 || rate >= RATE_MAX)
		buf_printf(words, "%s bytes/%c", exact, unit);
	else
		buf_printf(words, "%s/%c (%s bytes/%c)", report_size((uint64_t)rate, size), unit,
			exact, unit);
}

/* Appends "; fastest: app!leak < app!main, by 2.0 KiB/h". */
static void add_fastest(
	struct buf *words, const struct growth_limits *limits, struct view *view, uint32_t number)
{
	buf_add_text(words, "; fastest: ");
	add_stack_name(words, limits, view, number);
	buf_add_text(words, ", by ");
	add_rate(words, limits->options, rate_of(view, number) * limits->options->rate_max_hours,
		-1);
}

/* Returns the reason why the rate limit cannot be judged, or NULL. */
static const char *no_rate(
	struct growth_limits *limits, const struct comparison *comparison, struct buf *words)
{
	const struct trend_axis *axis = comparison->axis;
	const struct dump_sums *doubt = find_doubt(comparison);

	if (axis_longest(axis) < AXIS_TREND_MIN) {
		limits->too_few++;
		return "fewer than three snapshots of a process";
	}
	limits->lacks_times |= doubt || !axis->times_ms;
	if (doubt)
		return doubt_words(doubt, words);
	if (!axis->times_ms) {
		return "not all snapshots have a usable time, or all have the same time";
	}
	limits->judged++;
	return NULL;
}

static void check_rate(struct growth_limits *limits, struct view *view, struct buf *words)
{
	const struct options *options = limits->options;
	const char *why = no_rate(limits, view->comparison, words);
	struct rates rates;
	double growth;

	if (why) {
		print_unknown(limits, view, "growth per hour", why);
		return;
	}
	rates = rates_of(view);
	growth = rates.bytes * options->rate_max_hours;
	if (!(growth > (double)options->rate_max_bytes))
		return;
	limits->is_over = limits->verdict->is_sum_over = true;
	begin(words, view);
	buf_add_text(words, "growth of ");
	add_rate(words, options, growth, (double)options->rate_max_bytes);
	buf_add_text(words, " is over the limit of ");
	add_rate(words, options, (double)options->rate_max_bytes, -1);
	if (rates.fastest == NO_ROW)
		buf_add_text(words, "; the total keeps growing, but no single stack does: try "
				    "--group function or --group module");
	else
		add_fastest(words, limits, view, rates.fastest);
	add_verdict_line(limits, &limits->verdict->over, words->data);
}

/* ---------------------------------------------------------------- the check */

/* Reports damaged dumps. The missing blocks look like freed blocks and may hide exceeded limits. */
static void check_damage(struct growth_limits *limits, const struct view *view, struct buf *why)
{
	const struct comparison *comparison = view->comparison;
	const struct dump_sums *damaged = NULL;
	size_t count = 0;

	for (size_t i = 0; comparison->axis && i < comparison->dump_count; i++) {
		const struct dump_sums *dump = &comparison->dumps[i];

		if (!dump->quality.is_cut && !dump->quality.skip_count)
			continue;
		damaged = damaged ? damaged : dump;
		count++;
	}
	if (!count)
		return;
	limits->is_damaged = true;
	buf_clear(why);
	buf_printf(why, "%s is %s", damaged->id.path,
		damaged->quality.is_cut ? "cut short" : "damaged");
	if (count > 1)
		buf_printf(why, ", and %zu more %s cut short or damaged", count - 1,
			count == 2 ? "is" : "are");
	print_unknown(limits, view, "growth", why->data);
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
	if (options_limit_ends(options))
		check_ends(limits, view, &words);
	if (options->rate_max_hours)
		check_rate(limits, view, &words);
	for (size_t i = 0; i < options->figure_max_count; i++)
		check_figure(limits, view, &options->figure_max[i], &words);
	/* Damage matters only if no limit is exceeded and at least one was judged. */
	if (!limits->is_over && limits->ends_judged + limits->judged > judged)
		check_damage(limits, view, &words);
	if (!limits->is_over && view->comparison->doubt) {
		limits->lacks_data = true;
		if (!verdict->unknown.len)
			print_unknown(limits, view, "growth", view->comparison->doubt);
	}
	buf_release(&words);
	limits->is_over |= was_over;
}

void growth_check_marks(struct growth_limits *limits, struct view *view,
	const struct mark_parts *parts, struct growth_verdict *verdicts)
{
	struct buf words, what;

	limits->verdict = verdicts;
	if (options_limit_ends(limits->options) && limits->growth_unknown) {
		limits->ends_unknown++;
		print_unknown(limits, view, "growth", limits->growth_unknown);
		return;
	}
	buf_init(&words);
	buf_init(&what);
	for (size_t i = 0; options_limit_ends(limits->options) && i < parts->count; i++) {
		const struct mark_part *part = &parts->items[i];

		if (!mark_part_is_judged(part))
			continue;
		limits->verdict = &verdicts[i];
		limits->ends_judged++;
		buf_clear(&what);
		buf_printf(&what, "%s: kept memory", part->label);
		check_limit(limits, view, &words, what.data, &limits->options->grown_max,
			part->kept.requested_bytes, part->kept.block_count, part->row);
	}
	buf_release(&words);
	buf_release(&what);
}

bool growth_is_unknown(const struct growth_limits *limits)
{
	return limits->lacks_times || limits->is_damaged || (limits->too_few && !limits->judged) ||
	       (limits->ends_unknown && !limits->ends_judged) ||
	       ((limits->is_unlisted || limits->lacks_data) && !limits->is_over);
}
