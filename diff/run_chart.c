/* Charts of a recording: reads and writes usage over time, or sizes, of the stacks in a view. */
#include <stdlib.h>

#include "core/base/memory.h"
#include "core/base/terminal.h"
#include "core/io/out.h"
#include "core/record/record.h"
#include "diff/hdiff.h"
#include "diff/options.h"
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

/* Returns an array, indexed by kind. An element is true if a row of the view has the kind's stack.
 * This way, filters are applied once per stack instead of once per event. */
static bool *wanted_kinds(
	const struct options *options, const struct view *view, const struct record_facts *facts)
{
	bool *ids = xcalloc(facts->stack_count + 1, sizeof(*ids));
	bool *wanted = xcalloc(facts->kind_count + 1, sizeof(*wanted));

	for (size_t i = 0; i < view->row_count + view->other_count; i++) {
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
			    size_limits_has(&options->part.sizes, kind->bytes) &&
			    heap_is_wanted(options, record_kind_heap(facts, kind));
	}
	free(ids);
	return wanted;
}

/* Copies the window of the sums. */
static void copy_window(
	struct use_window *window, const struct options *options, const struct dump_sums *sums)
{
	window->from = sums->window.from_position;
	window->to = sums->window.position - 1;
	window->from_ms = sums->window.from_ms;
	/* if the time of a mark is wrong, the end may be before the start */
	window->to_ms = sums->window.to_ms > sums->window.from_ms ? sums->window.to_ms :
								    sums->window.from_ms;
	for (unsigned i = 0; i < RECORD_MEMORIES; i++)
		window->is_counted[i] = i != RECORD_RESERVED;
	if (options->heap_count)
		window->is_counted[RECORD_RESERVED] = heap_is_wanted(options, HEAP_RESERVED);
}

struct chart_reading {
	struct chart chart;
	struct use_window window;
	struct use_over_time over_time;
	struct use_sizes sizes;
	bool *wanted;
};

struct chart_reading *chart_read(const struct options *options, const struct view *view,
	enum chart_kind kind, const char *file, struct err *err)
{
	struct chart_reading *reading = xcalloc(1, sizeof(*reading));
	struct chart *chart = &reading->chart;
	int rc = recording_open(&reading->window.recording, file, err);

	if (rc) {
		free(reading);
		return NULL;
	}
	*chart = (struct chart){.sums = view->comparison->dumps,
		.facts = recording_facts(reading->window.recording),
		.style = options->style,
		.is_filtered = view->is_filtered || options_select_blocks(options)};
	chart->style.columns =
		options_is_shown(options) ? terminal_columns(stdout) : TERMINAL_COLUMNS;
	reading->window.is_wanted = reading->wanted = wanted_kinds(options, view, chart->facts);
	copy_window(&reading->window, options, chart->sums);
	if (kind == CHART_OVER_TIME) {
		chart->over_time = &reading->over_time;
		rc = use_read_over_time(
			&reading->over_time, &reading->window, options->format->span_max, err);
	} else {
		chart->sizes = &reading->sizes;
		rc = use_read_sizes(&reading->sizes, &reading->window, err);
	}
	if (!rc)
		return reading;
	chart_free(reading);
	return NULL;
}

const struct chart *chart_of(const struct chart_reading *reading)
{
	return &reading->chart;
}

void chart_free(struct chart_reading *reading)
{
	if (!reading)
		return;
	use_over_time_release(&reading->over_time);
	free(reading->wanted);
	recording_close(reading->window.recording);
	free(reading);
}

int run_chart(
	const struct options *options, const struct view *view, const char *file, struct err *err)
{
	struct chart_reading *reading = chart_read(options, view, options->chart, file, err);
	struct out out;
	int rc = reading ? out_open(&out, options->output, err) : -(int)err->code;

	if (!rc) {
		options->format->write_chart(&out, chart_of(reading));
		rc = out_commit(&out, err);
	}
	chart_free(reading);
	return rc;
}
