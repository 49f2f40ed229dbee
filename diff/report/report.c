/* Shared parts of reports: the list of formats, numbers as text, spark lines, figures of charts and
 * views, and sanitized names. */
#include "diff/report/report.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/base/text.h"
#include "diff/match/row_series.h"
#include "diff/report/report_parts.h"

const struct report_format report_formats[] = {
	{.name = "text",
		.write = report_text,
		.has_window = true,
		.has_blocks = true,
		.write_chart = chart_text,
		.shown_max = 20,
		.span_max = 50},
	{.name = "umdh", .write = report_umdh, .has_window = true},
	{.name = "html",
		.write = report_html,
		.has_window = true,
		.write_chart = chart_html,
		.span_max = 500},
	{.name = "json", .write = report_json, .has_window = true, .has_blocks = true},
	{.name = "jsonl", .write = report_jsonl, .is_of_dumps = true},
	{.name = "csv",
		.write = report_csv,
		.has_window = true,
		.write_chart = chart_csv,
		.span_max = 500},
	{.name = "pprof", .write = report_pprof, .is_of_one = true, .is_packed = true},
	{.name = "speedscope", .write = report_speedscope, .is_of_one = true},
	{.name = "dhat", .write = report_dhat, .is_of_one = true},
	{.name = "folded", .write = report_folded, .is_of_one = true},
	{.name = "svg",
		.write = report_flame,
		.is_of_one = true,
		.write_chart = chart_svg,
		.span_max = 500},
	{.name = NULL},
};

#define MANTISSA_BITS DBL_MANT_DIG

/* Stores the digits of a whole number, last digit first. Returns the number of digits. */
static size_t whole_digits(double whole, char *digits)
{
	int exponent;
	uint64_t bits = (uint64_t)ldexp(frexp(whole, &exponent), MANTISSA_BITS);
	int doublings = exponent - MANTISSA_BITS;
	size_t count = 0;

	if (doublings < 0) /* the bits below the point are 0 */
		bits = exponent > 0 ? bits >> -doublings : 0;
	do
		digits[count++] = (char)(bits % 10);
	while (bits /= 10);
	for (; doublings > 0; doublings--) {
		int carry = 0;

		for (size_t i = 0; i < count; i++) {
			int digit = 2 * digits[i] + carry;

			carry = digit > 9;
			digits[i] = (char)(digit - 10 * carry);
		}
		if (carry)
			digits[count++] = 1;
	}
	return count;
}

/* Returns a number in [0, 1) in thousandths, rounded, up to 1000. */
static unsigned thousandths(double fraction)
{
	uint64_t bits = (uint64_t)ldexp(fraction, MANTISSA_BITS);

	return (unsigned)((bits * 1000 + (UINT64_C(1) << (MANTISSA_BITS - 1))) >> MANTISSA_BITS);
}

static char *write_fraction(char *to, unsigned part)
{
	if (!part)
		return to;
	*to++ = '.';
	for (unsigned unit = 100; part; part %= unit, unit /= 10)
		*to++ = (char)('0' + part / unit);
	return to;
}

const char *report_fraction(double value, char text[FRACTION_TEXT_BYTES])
{
	double whole, part_of_one = modf(value < 0 ? -value : value, &whole);
	char digits[FRACTION_TEXT_BYTES], *to = text;
	unsigned part;
	size_t count;

	if (!isfinite(value))
		return NULL;
	part = thousandths(part_of_one);
	if (part == 1000) {
		part = 0;
		whole += 1;
	}
	if (value < 0 && (part || whole > 0))
		*to++ = '-';
	for (count = whole_digits(whole, digits); count;)
		*to++ = (char)('0' + digits[--count]);
	*write_fraction(to, part) = '\0';
	return text;
}

const char *report_size(uint64_t bytes, char text[REPORT_SIZE_BYTES])
{
	static const char units[] = "BKMGTPE";
	unsigned unit = 0;
	uint64_t whole, tenths;

	while (bytes >> 10 * unit >= 1024)
		unit++;
	for (;; unit++) { /* rounding up may reach the next unit */
		whole = bytes >> 10 * unit;
		tenths = bytes & (((uint64_t)1 << 10 * unit) - 1);
		tenths = unit ? (tenths * 10 + ((uint64_t)1 << (10 * unit - 1))) >> 10 * unit : 0;
		whole += tenths / 10;
		if (whole < 1024)
			break;
	}
	if (unit)
		snprintf(text, REPORT_SIZE_BYTES, "%" PRIu64 ".%u %ciB", whole,
			(unsigned)(tenths % 10), units[unit]);
	else
		snprintf(text, REPORT_SIZE_BYTES, "%" PRIu64 " B", whole);
	return text;
}

const char *report_count(uint64_t count, char text[REPORT_COUNT_BYTES])
{
	char digits[REPORT_COUNT_BYTES];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, count);
	char *to = text;

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return text;
}

unsigned report_percent(uint64_t part, uint64_t whole)
{
	return whole ? (unsigned)((double)part * 100 / (double)whole + 0.5) : 0;
}

unsigned report_write_cut(struct out *out, const char *text, unsigned columns)
{
	unsigned used = 0, width, room = columns;

	if (text_columns(text) > columns)
		room = columns > 3 ? columns - 3 : 0;
	while (*text) {
		size_t len = text_char(text, &width);

		if (used + width > room)
			break;
		out_write(out, text, len);
		text += len;
		used += width;
	}
	for (unsigned i = 0; *text && used < columns && i < 3; i++, used++)
		out_char(out, '.');
	return used;
}

const char *report_tenths(double value, char text[REPORT_SIZE_BYTES])
{
	const char *sign = value <= -0.05 ? "-" : "";
	double amount = fabs(value);
	uint64_t tenths = amount <= 1e17 ? (uint64_t)(amount * 10 + 0.5) : 0;

	if (amount <= 1e17)
		snprintf(text, REPORT_SIZE_BYTES, "%s%" PRIu64 ".%u", sign, tenths / 10,
			(unsigned)(tenths % 10));
	else
		snprintf(text, REPORT_SIZE_BYTES, "%s> 1e17", sign);
	return text;
}

void report_ways(const struct view *view, size_t first, struct report_ways *ways)
{
	*ways = (struct report_ways){0};
	for (size_t i = 0; i < view->row_count; i++) {
		struct change change =
			row_change(view->comparison, &view->comparison->rows[view->rows[i]]);
		struct growth growth =
			growth_of(change.new.requested_bytes, change.old.requested_bytes);

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

#define LEVELS 8

static const char *const blocks[LEVELS] = {
	"\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588"};
static const char *const letters[LEVELS] = {".", ":", "-", "=", "+", "*", "#", "@"};

/* ---------------------------------------------------------------- columns */

/* Returns the end of the part that a snapshot belongs to. */
static size_t part_end(const struct trend_axis *axis, size_t at)
{
	size_t end = at + 1;

	if (!axis->parts)
		return axis->count;
	while (end < axis->count && axis->parts[end] == axis->parts[at])
		end++;
	return end;
}

/* Returns the number of columns if each column has `at_once` snapshots and a separator is between
 * parts. */
static size_t columns_of(const struct trend_axis *axis, size_t at_once)
{
	size_t count = 0;

	for (size_t at = 0, end; at < axis->count; at = end) {
		end = part_end(axis, at);
		count += (at != 0) + (end - at + at_once - 1) / at_once;
	}
	return count;
}

/* Adds the snapshots [at, end), `at_once` snapshots per column. */
static void add_columns(struct spark *spark, size_t at, size_t end, size_t at_once)
{
	for (; at < end; at += at_once)
		spark->columns[spark->count++] =
			(struct spark_column){at, end - at < at_once ? end - at : at_once};
}

void spark_make(
	struct spark *spark, const struct trend_axis *axis, enum spark_style style, size_t width)
{
	size_t at_once = 1;

	assert(width && width <= SPARK_WIDTH);
	*spark = (struct spark){.style = style, .axis = axis};
	while (at_once < axis->count && columns_of(axis, at_once) > width)
		at_once++;
	if (columns_of(axis, at_once) > width) { /* too many parts for separators */
		add_columns(spark, 0, axis->count, (axis->count + width - 1) / width);
		return;
	}
	for (size_t at = 0, end; at < axis->count; at = end) {
		end = part_end(axis, at);
		if (at)
			spark->columns[spark->count++] = (struct spark_column){0};
		add_columns(spark, at, end, at_once);
	}
}

/* ---------------------------------------------------------------- bars */

static double column_mean(
	const struct spark_column *column, const struct block_totals *sums, bool by_blocks)
{
	double sum = 0;

	for (size_t i = column->first; i < column->first + column->count; i++)
		sum += (double)(by_blocks ? sums[i].block_count : sums[i].requested_bytes);
	return sum / (double)column->count;
}

void spark_print(struct out *out, const struct spark *spark, const struct block_totals *sums)
{
	const char *const *levels = spark->style == SPARK_UTF8 ? blocks : letters;
	bool by_blocks = series_by_blocks(spark->axis, sums);
	double means[SPARK_WIDTH], low = INFINITY, high = -INFINITY;

	if (spark->style == SPARK_NONE)
		return;
	for (size_t i = 0; i < spark->count; i++) {
		if (!spark->columns[i].count)
			continue;
		means[i] = column_mean(&spark->columns[i], sums, by_blocks);
		low = means[i] < low ? means[i] : low;
		high = means[i] > high ? means[i] : high;
	}
	for (size_t i = 0; i < spark->count; i++) {
		size_t level = 0;

		if (spark->columns[i].count && high > low)
			level = (size_t)((means[i] - low) / (high - low) * LEVELS);
		level = level < LEVELS ? level : LEVELS - 1;
		out_text(out, spark->columns[i].count ? levels[level] : "|");
	}
}

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

const enum record_memory chart_memories[RECORD_MEMORIES] = {
	RECORD_HEAP, RECORD_COMMITTED, RECORD_MAPPED, RECORD_RESERVED};

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
	struct block_totals *old = &rest.old, *new = &rest.new;

	change_add(&taken, &view->suppressed);
	take(&old->block_count, &new->block_count, taken.old.block_count, taken.new.block_count);
	take(&old->requested_bytes, &new->requested_bytes, taken.old.requested_bytes,
		taken.new.requested_bytes);
	take(&old->overhead_bytes, &new->overhead_bytes, taken.old.overhead_bytes,
		taken.new.overhead_bytes);
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
	uint64_t ms = comparison->dumps[0].to_ms - comparison->dumps[0].from_ms;

	return ms ? (double)sums->by_fate[FATE_AI].block_count * 1000 / (double)ms : NAN;
}

double report_window_life(const struct window_sums *sums)
{
	return sums->lives_ms / (double)sums->by_fate[FATE_AIFI].block_count;
}

static void write_xml(struct out *out, const char *text, bool is_line)
{
	struct buf clean;

	buf_init(&clean);
	buf_add_text(&clean, "");
	clean_text(&clean, text, is_line);
	for (const char *at = clean.data; *at; at++) {
		if (!strncmp(at, "\xef\xbf\xbe", 3) || !strncmp(at, "\xef\xbf\xbf", 3)) {
			out_char(out, '?');
			at += 2;
			continue;
		}
		switch (*at) {
		case '&': out_text(out, "&amp;"); break;
		case '<': out_text(out, "&lt;"); break;
		case '>': out_text(out, "&gt;"); break;
		case '"': out_text(out, "&quot;"); break;
		/* otherwise it becomes a blank in attributes */
		case '\n': out_text(out, "&#10;"); break;
		default: out_char(out, *at);
		}
	}
	buf_release(&clean);
}

void xml_text(struct out *out, const char *text)
{
	write_xml(out, text, true);
}

void xml_lines(struct out *out, const char *text)
{
	write_xml(out, text, false);
}

const char *report_dump_time(const struct dump_sums *dump, char text[DATE_TEXT_BYTES])
{
	*text = '\0';
	if (dump->time_ms)
		date_text(dump->time_ms, text);
	if (dump->has_wall_time && strlen(text) > strlen("2026-11-20T10:25"))
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
	switch (row->kind) {
	case ROW_ONE_OF:
		snprintf(space, ROW_WORDS_BYTES, "(one of %u stacks under this id)",
			row->candidate_count);
		return space;
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
		[GROUP_MEMORY] = "memory",
	};

	return names[group];
}

/* ---------------------------------------------------------------- names */

static bool stays(char c, bool one_line)
{
	return !one_line && (c == '\t' || c == '\r' || c == '\n');
}

void clean_text(struct buf *buf, const char *text, bool one_line)
{
	const char *from = text; /* start of the unchanged text that is not yet appended */
	size_t all = strlen(text);

	if (text_is_plain(text, all)) {
		buf_add(buf, text, all);
		return;
	}
	while (*text) {
		uint32_t code;
		size_t len = text_utf8(text, &code);

		if (len && (!text_obeyed(text) || stays(*text, one_line))) {
			text += len;
			continue;
		}
		buf_add(buf, from, (size_t)(text - from));
		buf_add_text(buf, len ? "?" : "\xef\xbf\xbd");
		from = text += len ? len : 1;
	}
	buf_add(buf, from, (size_t)(text - from));
}

void clean_frame(struct buf *buf, const struct frame *frame, bool one_line)
{
	if (frame->module) {
		clean_text(buf, frame->module, one_line);
		buf_add(buf, frame->function ? "!" : "+", 1);
	}
	if (frame->function)
		clean_text(buf, frame->function, one_line);
	else if (!frame->module && !frame->has_addr)
		buf_add_text(buf, "?");
	else
		buf_printf(buf, "%" PRIX64, frame->module ? frame->offset_bytes : frame->addr);
}
