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

		for (size_t k = 0; k < row->id_count; k++) {
			unsigned long id = strtoul(row->ids[k], NULL, 16);

			if (id <= facts->stack_count) /* the file may have changed */
				ids[id] = true;
		}
	}
	for (size_t i = 0; i < facts->kind_count; i++) {
		const struct record_kind *kind = &facts->kinds[i];

		wanted[i] = ids[record_stack_id(facts, kind->stack)] &&
			    heap_is_wanted(options, record_kind_heap(facts, kind));
	}
	free(ids);
	return wanted;
}

/* That of which the sums are. */
static void take_window(
	struct use_window *window, const struct options *options, const struct dump_sums *sums)
{
	window->from = sums->from_position;
	window->to = sums->position - 1;
	window->from_ms = sums->from_ms;
	window->to_ms =
		sums->to_ms > sums->from_ms ? sums->to_ms : sums->from_ms; /* marks may lie */
	for (unsigned i = 0; i < RECORD_MEMORIES; i++)
		window->is_counted[i] = i != RECORD_RESERVED;
	if (options->heap_count)
		window->is_counted[RECORD_RESERVED] = heap_is_wanted(options, HEAP_RESERVED);
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

int run_chart(
	const struct options *options, const struct view *view, const char *file, struct err *err)
{
	struct chart chart = {.sums = view->comparison->dumps,
		.style = options->style,
		.is_filtered = view->is_filtered || options->heap_count};
	struct use_window window = {0};
	struct use_over_time over_time = {0};
	struct use_sizes sizes;
	bool *wanted;
	int rc = recording_open(&window.recording, file, err);

	if (rc)
		return rc;
	chart.facts = recording_facts(window.recording);
	chart.style.columns =
		options_is_shown(options) ? terminal_columns(stdout) : TERMINAL_COLUMNS;
	wanted = wanted_kinds(options, view, chart.facts);
	window.is_wanted = wanted;
	take_window(&window, options, chart.sums);
	if (options->chart == CHART_OVER_TIME) {
		chart.over_time = &over_time;
		rc = use_read_over_time(&over_time, &window, options->format->span_max, err);
	} else {
		chart.sizes = &sizes;
		rc = use_read_sizes(&sizes, &window, err);
	}
	if (!rc)
		rc = write_chart(options, &chart, err);
	use_over_time_release(&over_time);
	free(wanted);
	recording_close(window.recording);
	return rc;
}
