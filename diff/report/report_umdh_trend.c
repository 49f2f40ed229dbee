/* Trends in the report in UMDH's form: the snapshots, and the trend of each series. */
#include "diff/report/report_parts.h"
#include "diff/report/umdh.h"

#include <math.h>

#include "core/base/parse.h"
#include "core/base/text.h"
#include "core/dump/model.h"
#include "diff/match/row_series.h"

/* ---------------------------------------------------------------- rates */

#define RATE_MAX 9e18 /* larger rates are printed with an exponent */
#define TENTHS_BELOW 100 /* smaller rates per hour are printed with one digit after the point */

void umdh_rate(struct out *out, double rate, bool has_sign, unsigned width)
{
	double amount = fabs(rate);
	uint64_t whole, tenths = 0;
	char sign = has_sign ? '+' : '\0';

	if (isfinite(rate) && amount >= RATE_MAX) {
		out_printf(out, has_sign ? "%+*.4g" : "%*.4g", (int)width, rate);
		return;
	}
	if (!isfinite(rate)) {
		out_printf(out, "%*s", (int)width, rate > 0 ? "inf" : rate < 0 ? "-inf" : "?");
		return;
	}
	whole = (uint64_t)(amount + 0.5);
	if (amount < TENTHS_BELOW) {
		tenths = (uint64_t)(amount * 10 + 0.5);
		whole = tenths / 10;
		tenths %= 10;
	}
	if (rate < 0 && (whole || tenths))
		sign = '-';
	out_signed(out, sign, whole, 10, width < 2 || !tenths ? width : width - 2);
	if (tenths)
		out_printf(out, ".%u", (unsigned)tenths);
}

static void write_rates(struct out *out, const struct trend *trend)
{
	out_text(out, ", ");
	umdh_rate(out, trend->bytes_per_hour, true, 0);
	out_text(out, " bytes/h (");
	umdh_rate(out, trend->low_bytes_per_hour, false, 0);
	out_text(out, " to ");
	umdh_rate(out, trend->high_bytes_per_hour, false, 0);
	out_text(out, "), ");
	umdh_rate(out, trend->blocks_per_hour, true, 0);
	out_text(out, " blocks/h");
}

/* Writes a verdict, with blanks in place of hyphens. */
static void write_verdict(struct out *out, enum trend_verdict verdict)
{
	for (const char *at = trend_verdict_name(verdict); *at; at++)
		out_char(out, *at == '-' ? ' ' : *at);
}

void umdh_trend(
	struct umdh_report *report, const struct trend *trend, const struct block_totals *totals)
{
	struct out *out = report->out;

	write_verdict(out, trend->verdict);
	if (series_by_blocks(report->comparison->axis, totals))
		out_text(out, " by blocks");
	if (report_has_rates(report->comparison))
		write_rates(out, trend);
	if (report->spark.style != SPARK_NONE)
		out_text(out, "  ");
	spark_print(out, &report->spark, totals);
	out_char(out, '\n');
}

/* ---------------------------------------------------------------- snapshots */

static void write_process(struct out *out, const struct dump_sums *sums, bool shows_host)
{
	char time[DATE_TEXT_BYTES];

	if (sums->id.pid)
		out_printf(out, "process %lu", (unsigned long)sums->id.pid);
	else
		out_text(out, "unknown process");
	if (shows_host && sums->id.host) {
		out_text(out, " on ");
		out_harmless(out, sums->id.host);
	}
	if (sums->id.start_ms)
		out_printf(out, ", started %s", date_text(sums->id.start_ms, time));
}

static size_t count_parts(const struct trend_axis *axis)
{
	size_t count = 0;

	for (size_t i = 0; i < axis->count; i++)
		count += axis_begins(axis, i);
	return count;
}

/* Writes "// SERIES 1 of 2: app.exe, process 4242, started TIME, 48 snapshots from TIME to
 * TIME". */
static void write_title(struct umdh_report *report, size_t parts)
{
	const struct trend_axis *axis = report->comparison->axis;
	const struct dump_sums *dumps = report->comparison->dumps;
	const struct view *view = report->view;
	char from[DATE_TEXT_BYTES], to[DATE_TEXT_BYTES];
	struct out *out = report->out;

	out_printf(out, "// SERIES %zu of %zu: ", view->series_number, view->series_count);
	if (dumps[0].id.image || (parts > 1 && report->comparison->image)) {
		out_harmless(out, dumps[0].id.image ? module_path_base(dumps[0].id.image) :
						      report->comparison->image);
		out_text(out, ", ");
	}
	if (parts > 1)
		out_printf(out, "%zu processes", parts);
	else
		write_process(out, &dumps[0], report->comparison->shows_hosts);
	out_printf(out, ", %zu snapshot%s", axis->count, text_plural(axis->count));
	if (axis->times_ms && axis->count > 1)
		out_printf(out, " from %s to %s", report_dump_time(&dumps[0], from),
			report_dump_time(&dumps[axis->count - 1], to));
	out_char(out, '\n');
}

static void write_snapshot(struct umdh_report *report, size_t number)
{
	const struct dump_sums *sums = &report->comparison->dumps[number];
	const struct block_totals *sum = &report->view->series[number];
	char time[DATE_TEXT_BYTES];
	struct out *out = report->out;

	out_printf(out, "//  %4zu  %-24s ", number + 1,
		*report_dump_time(sums, time) ? time : "(unknown time)");
	out_number(out, sum->requested_bytes, report->base, 12);
	out_text(out, " bytes ");
	out_number(out, sum->block_count, report->base, 8);
	out_text(out, " blocks  ");
	out_harmless(out, sums->id.path);
	umdh_dump_notes(out, sums);
	out_char(out, '\n');
}

void umdh_series(struct umdh_report *report)
{
	const struct comparison *comparison = report->comparison;
	size_t parts = count_parts(comparison->axis);

	write_title(report, parts);
	for (size_t i = 0; i < comparison->dump_count; i++) {
		if (parts > 1 && axis_begins(comparison->axis, i)) {
			out_text(report->out, "//   ");
			write_process(report->out, &comparison->dumps[i], comparison->shows_hosts);
			out_char(report->out, '\n');
		}
		write_snapshot(report, i);
	}
	out_text(report->out, "//   sum: ");
	umdh_trend(report, &report->view->trend, report->view->series);
}

void umdh_trend_legend(struct umdh_report *report)
{
	const struct trend_axis *axis = report->comparison->axis;
	struct out *out = report->out;

	if (count_parts(axis) > 1)
		out_text(out, "// OLD adds up the first snapshots of all processes, NEW the last "
			      "ones: NEW - OLD\n"
			      "// is what grew while they ran.\n");
	else
		out_text(out, "// OLD is the first snapshot and NEW the last.\n");
	if (axis_longest(axis) < AXIS_TREND_MIN)
		out_text(out,
			"// Fewer than three snapshots of a process are too few for a verdict.\n");
	if (axis_longest(axis) < 2)
		return;
	if (!axis->times_ms)
		out_text(out, "// Not all snapshots record their time, or all record the same "
			      "time: they count\n"
			      "// as one hour apart, and there are no rates.\n");
	else if (report->view->group != GROUP_STACK)
		out_text(out, "// Rates are decimal.\n");
	else if (axis_has_bounds(axis))
		out_text(out,
			"// Rates are decimal: bytes grow by FROM to TO per hour, with 95 percent\n"
			"// confidence.\n");
	else
		out_text(out, "// Rates are decimal: bytes grow by FROM to TO per hour, the least "
			      "and the\n"
			      "// greatest growth from one snapshot to another.\n");
}
