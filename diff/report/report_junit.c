/* Results of growth limits as JUnit's XML, for build servers. One suite contains a test case for
 * each series or, with --by-mark, for each mark. The next build must give a series the same name, so names contain no pid and no
 * time. */
#include <inttypes.h>
#include <string.h>

#include "core/dump/model.h"
#include "diff/query/mark_parts.h"
#include "diff/query/strip.h"
#include "diff/report/clean.h"
#include "diff/report/report.h"
#include "diff/report/report_parts.h"
#include "diff/report/worst.h"

#define WORST_MAX 5 /* stacks in a result */

/* ---------------------------------------------------------------- XML */

static void write_attribute(struct out *out, const char *name, const char *text)
{
	out_printf(out, " %s=\"", name);
	xml_lines(out, text);
	out_char(out, '"');
}

/* Appends the stacks that grew most, each as a line. */
static void add_worst(struct buf *text, struct view *view, struct strip *strip)
{
	uint32_t worst[WORST_MAX];
	size_t count = worst_find(view, worst, WORST_MAX);
	struct frames frames;

	frames_init(&frames);
	for (size_t i = 0; i < count; i++) {
		buf_add_text(text, "\n");
		worst_add_growth(text, view->comparison,
			row_delta(view->comparison, &view->comparison->rows[worst[i]]));
		buf_add_text(text, ": ");
		worst_add_name(text, view, worst[i], strip, &frames);
	}
	frames_release(&frames);
}

/* ---------------------------------------------------------------- cases */

/* Writes "app.exe", or "app.exe, series 2" if there are several series, with the machine if there are
 * several. */
static void write_case_name(struct out *out, const struct view *view)
{
	const struct comparison *comparison = view->comparison;
	const char *image = comparison->dumps && comparison->dump_count ?
				    comparison->dumps[comparison->dump_count - 1].id.image :
				    NULL;
	struct buf name;

	buf_init(&name);
	clean_text(&name, image ? module_path_base(image) : "heap", true);
	if (view->series_count > 1)
		buf_printf(&name, ", series %zu", view->series_number);
	if (report_host(comparison)) {
		buf_add_text(&name, ", ");
		clean_text(&name, report_host(comparison), true);
	}
	write_attribute(out, "name", name.data);
	buf_release(&name);
}

static void write_result(
	struct out *out, const char *element, const char *type, const char *message)
{
	out_printf(out, "      <%s", element);
	write_attribute(out, "message", message);
	if (type)
		write_attribute(out, "type", type);
	out_char(out, '>');
	xml_lines(out, message);
	out_printf(out, "</%s>\n", element);
}

static void write_case(struct out *out, const struct junit *junit, size_t index)
{
	struct view *view = &junit->views[index];
	const struct growth_verdict *verdict = &junit->verdicts[index];
	struct buf text;

	out_text(out, "    <testcase classname=\"hdiff\"");
	write_case_name(out, view);
	out_text(out, " time=\"0\">\n");
	buf_init(&text);
	if (verdict->over.len) {
		buf_add(&text, verdict->over.data, verdict->over.len);
		add_worst(&text, view, junit->strip);
		write_result(out, "failure", "growth", text.data);
	} else if (verdict->unknown.len) {
		write_result(out, junit->is_unknown ? "error" : "skipped",
			junit->is_unknown ? "unknown" : NULL, verdict->unknown.data);
	} else if (junit->is_unknown) {
		write_result(out, "error", "unknown",
			"not all of the dumps could be used, so growth is not known; see hdiff's "
			"messages");
	}
	buf_clear(&text);
	buf_add_text(&text, "growth: ");
	worst_add_growth(&text, view->comparison, change_delta(&view->selected));
	if (!verdict->over.len)
		add_worst(&text, view, junit->strip);
	out_text(out, "      <system-out>");
	xml_lines(out, text.data);
	out_text(out, "</system-out>\n    </testcase>\n");
	buf_release(&text);
}

/* Returns true if the series, or the part, is a test case. */
static bool is_case(const struct junit *junit, size_t index)
{
	return !junit->parts || mark_part_is_judged(&junit->parts->items[index]);
}

/* Writes the test case of a part. */
static void write_mark_case(struct out *out, const struct junit *junit, size_t index)
{
	const struct mark_part *part = &junit->parts->items[index];
	const struct growth_verdict *verdict = &junit->verdicts[index];
	const uint64_t ms = part->to_ms > part->from_ms ? part->to_ms - part->from_ms : 0;
	struct buf text;

	buf_init(&text);
	clean_text(&text, part->label, true);
	out_text(out, "    <testcase classname=\"hdiff\"");
	write_attribute(out, "name", text.data);
	out_printf(out, " time=\"%" PRIu64 ".%03u\">\n", ms / 1000, (unsigned)(ms % 1000));
	if (verdict->over.len)
		write_result(out, "failure", "growth", verdict->over.data);
	else if (junit->is_unknown)
		write_result(out, "error", "unknown",
			"the recording is incomplete, so growth is not known; see hdiff's "
			"messages");
	buf_clear(&text);
	buf_printf(&text, "kept: %" PRIu64 " bytes, %" PRIu64 " blocks; left: %" PRIu64 " bytes, ",
		part->kept.requested_bytes, part->kept.block_count, part->left.requested_bytes);
	buf_printf(&text, "%" PRIu64 " blocks; peak: %" PRIu64 " bytes", part->left.block_count,
		part->peak_bytes);
	out_text(out, "      <system-out>");
	xml_lines(out, text.data);
	out_text(out, "</system-out>\n    </testcase>\n");
	buf_release(&text);
}

static void write_property(
	struct out *out, const struct view *view, const char *name, char sign, uint64_t value)
{
	out_text(out, "      <property name=\"");
	if (view->series_count > 1)
		out_printf(out, "series %zu ", view->series_number);
	out_printf(out, "%s\" value=\"", name);
	if (sign == '-')
		out_char(out, sign);
	out_number(out, value, 10, 0);
	out_text(out, "\"/>\n");
}

static void write_totals(struct out *out, const struct view *view)
{
	const struct block_totals *old = &view->selected.old, *now = &view->selected.now;
	struct growth bytes = growth_of(now->requested_bytes, old->requested_bytes);
	struct growth blocks = growth_of(now->block_count, old->block_count);

	write_property(out, view, "old bytes", 0, old->requested_bytes);
	write_property(out, view, "new bytes", 0, now->requested_bytes);
	write_property(out, view, "growth bytes", bytes.sign, bytes.amount);
	if (view->comparison->lacks_blocks)
		return;
	write_property(out, view, "old blocks", 0, old->block_count);
	write_property(out, view, "new blocks", 0, now->block_count);
	write_property(out, view, "growth blocks", blocks.sign, blocks.amount);
}

void report_junit(struct out *out, const struct junit *junit)
{
	const size_t end = junit->parts ? junit->parts->count : junit->view_count;
	size_t cases = 0, failures = 0, errors = 0, skipped = 0;

	for (size_t i = 0; i < end; i++) {
		const struct growth_verdict *verdict = &junit->verdicts[i];

		if (!is_case(junit, i))
			continue;
		cases++;
		if (verdict->over.len)
			failures++;
		else if (junit->is_unknown)
			errors++;
		else if (verdict->unknown.len)
			skipped++;
	}
	out_text(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
	out_printf(out,
		"  <testsuite name=\"hdiff\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" "
		"skipped=\"%zu\" time=\"0\">\n    <properties>\n",
		cases, failures, errors, skipped);
	for (size_t i = 0; !junit->parts && i < junit->view_count; i++)
		write_totals(out, &junit->views[i]);
	out_text(out, "    </properties>\n");
	for (size_t i = 0; i < end; i++) {
		if (is_case(junit, i))
			(junit->parts ? write_mark_case : write_case)(out, junit, i);
	}
	out_text(out, "  </testsuite>\n</testsuites>\n");
}
