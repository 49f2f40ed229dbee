/* What hdiff shows of a recording beside rows: use over time, and sizes. */
#include <stdlib.h>

#include "core/base/memory.h"
#include "core/base/terminal.h"
#include "core/io/out.h"
#include "core/record/record.h"
#include "diff/hdiff.h"
#include "diff/query/filter.h"
#include "diff/read/read_use.h"
#include "diff/report/report.h"

static bool heap_is_wanted(const struct options *options, uint64_t heap)
{
	for (size_t i = 0; i < options->heap_count; i++) {
		if (match_heap(options->heaps[i], heap))
			return true;
	}
	return !options->heap_count;
}

/* By kind: whether one of the rows of the view has its stack. What a filter asks of stacks is asked once, before any
 * event is read. */
static bool *wanted_kinds(
	const struct options *options, const struct view *view, const struct record_facts *facts)
{
	bool *ids = xcalloc(facts->stack_count + 1, sizeof(*ids));
	bool *wanted = xcalloc(facts->kind_count + 1, sizeof(*wanted));

	for (size_t i = 0; i < view->row_count; i++) {
		const struct row *row = &view->comparison->rows[view->rows[i]];

		for (size_t k = 0; k < row->id_count; k++)
			ids[strtoul(row->ids[k], NULL, 16)] = true;
	}
	for (size_t i = 0; i < facts->kind_count; i++) {
		const struct record_kind *kind = &facts->kinds[i];

		wanted[i] = ids[record_stack_id(facts, kind->stack)] &&
			    heap_is_wanted(options, record_kind_heap(facts, kind));
	}
	free(ids);
	return wanted;
}

static int find_window(struct use_window *window, const struct options *options, struct err *err)
{
	const struct recording_part *part = &options->part;
	int rc = recording_position(window->recording, part->from ? part->from : "start",
		&window->from, &window->from_ms, err);

	if (!rc)
		rc = recording_position(window->recording, part->to ? part->to : "end", &window->to,
			&window->to_ms, err);
	if (window->to_ms < window->from_ms) /* marks may say so */
		window->to_ms = window->from_ms;
	for (unsigned i = 0; i < RECORD_MEMORIES; i++)
		window->is_counted[i] = i != RECORD_RESERVED;
	if (options->heap_count)
		window->is_counted[RECORD_RESERVED] = heap_is_wanted(options, HEAP_RESERVED);
	return rc;
}

static int write_chart(const struct options *options, const struct chart *chart, struct err *err)
{
	struct out out;
	int rc = out_open(&out, options->output, err);

	if (rc)
		return rc;
	options->format->write_chart(&out, chart);
	return out_commit(&out, err);
}

static int chart_over_time(const struct options *options, struct chart chart,
	const struct use_window *window, struct err *err)
{
	struct use_over_time over_time;
	int rc = use_read_over_time(&over_time, window, options->format->span_max, err);

	chart.over_time = &over_time;
	if (!rc)
		rc = write_chart(options, &chart, err);
	use_over_time_release(&over_time);
	return rc;
}

static int chart_sizes(const struct options *options, struct chart chart,
	const struct use_window *window, struct err *err)
{
	struct use_sizes *sizes = xmalloc(sizeof(*sizes));
	int rc = use_read_sizes(sizes, window, err);

	chart.sizes = sizes;
	if (!rc)
		rc = write_chart(options, &chart, err);
	free(sizes);
	return rc;
}

int run_chart(
	const struct options *options, const struct view *view, const char *file, struct err *err)
{
	struct chart chart = {.sums = view->comparison->dumps,
		.style = options->style,
		.is_filtered = view->is_filtered || options->heap_count};
	struct use_window window = {0};
	bool *wanted;
	int rc = recording_open(&window.recording, file, err);

	if (rc)
		return rc;
	chart.facts = recording_facts(window.recording);
	chart.style.columns =
		options_is_shown(options) ? terminal_columns(stdout) : TERMINAL_COLUMNS;
	wanted = wanted_kinds(options, view, chart.facts);
	window.is_wanted = wanted;
	rc = find_window(&window, options, err);
	if (!rc)
		rc = options->chart == CHART_OVER_TIME ?
			     chart_over_time(options, chart, &window, err) :
			     chart_sizes(options, chart, &window, err);
	free(wanted);
	recording_close(window.recording);
	return rc;
}
