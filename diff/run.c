/* The run of hdiff, from the options to the report and the exit status. compare() is the sequence
 * of steps. */
#include "diff/hdiff.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>
#include <zstd.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/base/terminal.h"
#include "core/dump/dump.h"
#include "core/dump/file_kind.h"
#include "core/io/file.h"
#include "core/io/out.h"
#include "core/io/temp.h"
#include "core/record/record.h"
#include "diff/file_list.h"
#include "diff/growth_limits.h"
#include "diff/inputs.h"
#include "diff/logs.h"
#include "diff/match/locations.h"
#include "diff/messages.h"
#include "diff/options.h"
#include "diff/query/filter.h"
#include "diff/query/mark_parts.h"
#include "diff/query/pattern.h"
#include "diff/query/strip.h"
#include "diff/query/suppress.h"
#include "diff/query/view.h"
#include "diff/report/report.h"
#include "diff/series_list.h"

/* Objects made from the options before any input is read, and the views that are shown. */
struct comparison_run {
	struct options options;
	struct filter filter;
	struct suppressions suppressions;
	struct strip strip, start_up;
	struct symbol_console console;
	FILE *messages;
	struct growth_limits limits;
	struct view *views; /* indexed by series; each view owns the names of its frames */
	size_t view_count;
	struct mark_parts parts; /* for --by-mark, which has one view */
	struct growth_verdict *verdicts; /* indexed by view or, for --by-mark, by part */
	size_t verdict_count;
	/* maps a message about a filter that matches nothing to the number of series */
	struct table unmatched;
	bool is_partial; /* some input was not read completely */
};

/* `is_filtered`: options select some of the stacks. */
static void print_suppression(const struct suppression *one, bool is_filtered, FILE *messages)
{
	char blocks[24];

	snprintf(blocks, sizeof(blocks), one->lacks_blocks ? "?" : "%" PRIu64, one->over_blocks);
	if (one->is_over)
		message_line(messages,
			"%s: %s is over its limit: its stacks grew by %" PRIu64
			" bytes, %s blocks, and are not suppressed",
			one->place, one->text, one->over_bytes, blocks);
	snprintf(blocks, sizeof(blocks), one->lacks_blocks ? "?" : "%" PRId64, one->block_count);
	if (one->row_count)
		message_line(messages,
			"%s: %s suppressed stacks: %zu, bytes: %" PRId64 ", blocks: %s", one->place,
			one->text, one->row_count, one->requested_bytes, blocks);
	else if (one->is_over)
		return;
	else if (one->is_shipped)
		message_line(messages, "%s: %s suppressed nothing", one->place, one->text);
	else
		message_line(messages, "%s: %s suppressed nothing: %s", one->place, one->text,
			one->is_late ? "an earlier suppression covers what it matches" :
			one->is_part_of_start ?
				       "it matches only functions that start a program or a "
				       "thread; for those, write the whole name between ^ and $" :
			one->differs_in_case ? "it matches only if case is ignored" :
			is_filtered ? "no changed stack that the other options select matches it" :
				      "no changed stack matches it");
}

/* Prints what each suppression removed. The built-in ones are summed up in one line. */
static void print_suppressions(
	const struct suppressions *suppressions, bool is_filtered, FILE *messages)
{
	struct suppression shipped = {.place = "--suppress", .text = "runtime"};

	for (size_t i = 0; i < suppressions->count; i++) {
		const struct suppression *one = &suppressions->items[i];

		if (!one->is_shipped) {
			print_suppression(one, is_filtered, messages);
			continue;
		}
		shipped.is_shipped = true;
		shipped.row_count += one->row_count;
		shipped.requested_bytes += one->requested_bytes;
		shipped.block_count += one->block_count;
		shipped.lacks_blocks |= one->lacks_blocks;
	}
	if (shipped.is_shipped)
		print_suppression(&shipped, is_filtered, messages);
}

/*
 * Counts the series in which a filter matches nothing. Reports the filter once it has matched
 * nothing in every series.
 *
 * Patterns are reported on the first call. A pattern remembers its matches in all series, and is
 * not checked in series that are otherwise empty. */
static void print_unmatched(
	void *ctx, const char *option, const char *value, const char *what, bool is_unsure)
{
	struct comparison_run *run = ctx;
	bool is_pattern = !strcmp(option, run->filter.include.option) ||
			  !strcmp(option, run->filter.exclude.option);
	uint64_t *found;
	struct buf words;

	buf_init(&words);
	buf_printf(&words, "%s %s: warning: %s", option, value, what);
	found = table_find(&run->unmatched, words.data, words.len);
	if (!found) {
		table_add(&run->unmatched, words.data, words.len, 0);
		found = table_find(&run->unmatched, words.data, words.len);
	}
	if (++*found == (is_pattern ? 1 : run->view_count)) {
		message_line(run->messages, "%s", words.data);
		run->limits.is_unlisted |= is_unsure && options_has_limit(&run->options);
	}
	buf_release(&words);
}

/* Reports filters that match nothing. With such a filter, every limit of growth would pass. */
static void print_all_unmatched(struct comparison_run *run)
{
	const struct options *options = &run->options;
	bool is_part = options_select_blocks(options);

	for (size_t i = 0; i < run->view_count; i++)
		unmatched_modules(&run->filter, &run->views[i].naming, print_unmatched, run);
	for (size_t i = 0; i < run->view_count; i++)
		unmatched_heaps(run->views[i].comparison, options->heaps, options->heap_count,
			print_unmatched, run);
	/* With several series, try the patterns in all series before reporting any. */
	for (size_t i = 0; run->view_count > 1 && i < run->view_count; i++)
		unmatched_patterns(&run->filter, &run->views[i].naming, is_part, NULL, NULL);
	for (size_t i = 0; i < run->view_count; i++)
		unmatched_patterns(
			&run->filter, &run->views[i].naming, is_part, print_unmatched, run);
}

/* Decides according to --color, NO_COLOR and the terminal. */
static bool wants_colour(const struct options *options, bool is_terminal)
{
	char *no = os_env("NO_COLOR");
	bool is_no = no && *no;

	free(no);
	if (options->colour == COLOUR_AUTO)
		return is_terminal && !is_no && terminal_shows_colour();
	return options->colour == COLOUR_ALWAYS;
}

static int write_report(struct comparison_run *run, const struct inputs *inputs,
	struct chart_reading *const charts[2], struct err *err)
{
	const struct options *options = &run->options;
	struct report report = {.views = run->views,
		.view_count = run->view_count,
		.style = options->style,
		.strip = &run->strip,
		.start_up = &run->start_up,
		.left_out = inputs->left_out,
		.left_out_count = inputs->left_out_count,
		.charts = {charts[0] ? chart_of(charts[0]) : NULL,
			charts[1] ? chart_of(charts[1]) : NULL},
		.parts = options->by_mark ? &run->parts : NULL,
		.parts_max = options->shown_max};
	struct out out;
	bool is_for_people = options->format->is_for_people;
	bool is_terminal = options_is_shown(options) && os_is_terminal(stdout);
	int rc;

	report.style.columns = is_terminal ? terminal_columns(stdout) : TERMINAL_COLUMNS;
	report.style.is_coloured = is_for_people && wants_colour(options, is_terminal);
	if (report.style.spark == SPARK_AUTO)
		report.style.spark =
			options_is_shown(options) && terminal_is_utf8() ? SPARK_UTF8 : SPARK_ASCII;
	if (is_for_people && is_terminal && !options->no_pager)
		pager_start("HDIFF_PAGER");
	rc = out_open_as(&out, options->output, options->format->is_packed ? OUT_GZIP : 0, err);
	if (!rc) {
		(options->by_mark ? options->format->write_marks : options->format->write)(
			&out, &report);
		rc = out_commit(&out, err);
	}
	return pager_end() ? 0 : rc; /* not an error if the user quit the pager */
}

/* Writes the report. A page of a recording includes the recording's charts. */
static int write_with_charts(
	struct comparison_run *run, const struct inputs *inputs, const char *file, struct err *err)
{
	static const enum chart_kind kinds[] = {CHART_OVER_TIME, CHART_SIZES};
	const bool has_charts = run->options.format->includes_charts && run->view_count == 1 &&
				!run->options.part.still_at && !run->options.part.by_thread &&
				run->views[0].window && run->options.paths.count == 1;
	struct chart_reading *charts[2] = {NULL, NULL};
	int rc = 0;

	/* The page of a window draws its own chart over time. */
	for (size_t i = has_charts && run->views[0].lives; !rc && has_charts && i < 2; i++) {
		charts[i] = chart_read(&run->options, run->views, kinds[i], file, err);
		rc = charts[i] ? 0 : -(int)err->code;
	}
	if (!rc)
		rc = write_report(run, inputs, charts, err);
	chart_free(charts[0]);
	chart_free(charts[1]);
	return rc;
}

/* Prints the final warnings and checks the limits of growth. Called after the report was
 * written. */
static void judge(struct comparison_run *run)
{
	struct buf missing; /* message about missing names, for the first series that lacks names */

	print_suppressions(&run->suppressions, filter_is_active(&run->filter), run->messages);
	/* Make the message before further names are looked up, so that it is only about the rows
	 * shown. */
	buf_init(&missing);
	for (size_t i = 0; !missing.len && !run->options.no_symbols && i < run->view_count; i++)
		naming_missing(&run->views[i].naming, symbol_console_stopped(), &missing);
	print_all_unmatched(run);
	if (run->options.by_mark)
		growth_check_marks(&run->limits, run->views, &run->parts, run->verdicts);
	for (size_t i = 0; !run->options.by_mark && i < run->view_count; i++)
		growth_check(&run->limits, &run->views[i], &run->verdicts[i]);
	for (size_t i = 0; i < run->view_count; i++) {
		const struct names *names = run->views[i].comparison->names;
		const char *trouble = names ? names_trouble(names) : NULL;

		if (trouble)
			message_line(run->messages, "%s", trouble);
	}
	if (missing.len)
		message_line(run->messages, "%s", missing.data);
	buf_release(&missing);
}

/* Prints annotations without the program's name, because GitHub looks at the start of a line. */
static void annotate(struct comparison_run *run)
{
	const struct growth_limit *row = &run->options.row_max;
	struct buf lines;

	buf_init(&lines);
	for (size_t i = 0; i < run->view_count; i++)
		report_annotations(&lines, &run->views[i], &run->verdicts[i], row->bytes,
			row->blocks, &run->strip);
	if (lines.len)
		(void)fputs(lines.data, run->messages);
	buf_release(&lines);
}

/* Writes the results of judge() for a build server. */
static int write_junit(struct comparison_run *run, bool is_partial, struct err *err)
{
	const struct options *options = &run->options;
	struct junit junit = {.views = run->views,
		.verdicts = run->verdicts,
		.parts = options->by_mark ? &run->parts : NULL,
		.view_count = run->view_count,
		.strip = &run->strip,
		.is_unknown = (is_partial && !options->force) || growth_is_unknown(&run->limits)};
	struct out out;
	int rc = out_open(&out, options->junit, err);

	if (rc)
		return rc;
	report_junit(&out, &junit);
	return out_commit(&out, err);
}

/* Returns the number of rows whose names are needed: none for a chart or marks, all for a call
 * tree. */
static size_t shown_max(const struct options *options)
{
	size_t most = options->format->shown_max;

	if (options->chart)
		return 0;
	if (options->style.is_tree)
		return SIZE_MAX;
	if (options->by_mark)
		return 0;
	return options->is_shown_asked || !most ? options->shown_max : most;
}

/* Selects and sorts the rows of one series, and looks up the names needed for this. */
static int select_view(struct comparison_run *run, struct view *view, struct err *err)
{
	const struct options *options = &run->options;
	struct view_request request = {.group = options->group,
		.sort = options->sort,
		.shown_max = shown_max(options),
		.is_inverted = options->is_inverted,
		.is_part = options_select_blocks(options) || view->comparison->lacks_rows,
		.wants_lives = options->format->includes_charts && !options->part.still_at,
		.filter = &run->filter,
		.suppressions = run->suppressions.count ? &run->suppressions : NULL,
		.strip = options_strip(options) ? &run->strip : NULL};
	int rc;

	if (options->chart)
		return view_select(view, &request, err);
	strip_find_nameless(&run->strip, &view->naming);
	if (options->shows_pinned)
		view_find_pinned(view);
	rc = view_select(view, &request, err);
	if (!rc && options->format->is_for_people)
		view_find_uncalled(view, &run->strip);
	return rc;
}

/* Compares the inputs: list, read, match, name, select, report, judge. */
static int compare(struct comparison_run *run, struct err *err)
{
	const struct options *options = &run->options;
	struct inputs inputs = {.options = options, .messages = run->messages};
	struct file_list list;
	int rc = file_list_make(&list, options->paths.items, options->paths.count, err);

	if (!rc)
		rc = logs_read(&list, options, run->messages, err);
	if (!rc)
		rc = inputs_read(&inputs, &list, err);
	if (!rc) {
		inputs_match(&inputs);
		inputs_check_whole(&inputs);
		rc = inputs_check_options(&inputs, err);
	}
	if (!rc) {
		run->limits.growth_unknown = inputs.growth_unknown;
		run->views = xcalloc(inputs.series_count, sizeof(*run->views));
		for (; run->view_count < inputs.series_count; run->view_count++)
			view_make(&run->views[run->view_count],
				&inputs.series[run->view_count].comparison, !options->no_symbols);
	}
	for (size_t i = 0; !rc && i < run->view_count; i++)
		rc = select_view(run, &run->views[i], err);
	for (size_t i = 0; !rc && !options->chart && !options->by_mark &&
			   options->format->has_window && i < run->view_count;
		i++)
		rc = view_window(&run->views[i], err);
	for (size_t i = 0; !rc && options->format->has_blocks && i < run->view_count; i++)
		view_contents(&run->views[i]);
	if (!rc && options->by_mark)
		rc = mark_parts_read(&run->parts, run->views, err);
	run->verdict_count = options->by_mark ? run->parts.count : run->view_count;
	run->verdicts = xcalloc(run->verdict_count + 1, sizeof(*run->verdicts));
	if (!rc && options->style.shows_heaps)
		view_find_creators(run->views);
	if (!rc && (options->shows_sizes || options->shows_age))
		view_blocks(run->views, options->shows_sizes, options->shows_age);
	if (!rc)
		rc = options->chart ? run_chart(options, run->views, list.items->file, err) :
				      write_with_charts(run, &inputs, list.items->file, err);
	if (!rc)
		judge(run);
	if (!rc && options->annotate)
		annotate(run);
	if (!rc && options->junit)
		rc = write_junit(run, inputs.is_partial, err);
	run->is_partial = inputs.is_partial;
	for (size_t i = 0; i < run->view_count; i++)
		view_release(&run->views[i]);
	for (size_t i = 0; i < run->verdict_count; i++) {
		buf_release(&run->verdicts[i].over);
		buf_release(&run->verdicts[i].unknown);
	}
	mark_parts_release(&run->parts);
	free(run->views);
	free(run->verdicts);
	inputs_release(&inputs);
	file_list_release(&list);
	return rc;
}

/* Checks the outputs and reads all lists. Errors are reported even in lists that will not be
 * used. */
static int prepare(struct comparison_run *run, struct err *err)
{
	struct options *options = &run->options;
	struct filter *filter = &run->filter;
	int rc = options_check_outputs(options, err);

	options->symbols.options.listener =
		symbol_console_listener(&run->console, "hdiff", run->messages);
	if (!rc && !options->no_symbols)
		rc = symbol_options_check(&options->symbols.options, err);
	if (!rc && !options->no_symbols)
		symbol_options_warn(&options->symbols.options);
	filter->modules = options->modules.items;
	filter->module_count = options->modules.count;
	filter->min_bytes = options->min_bytes;
	filter->min_blocks = options->min_blocks;
	filter->trend_verdicts = options->trend_verdicts;
	for (size_t i = 0; !rc && i < options->includes.count; i++)
		rc = patterns_add(&filter->include, options->includes.items[i], err);
	for (size_t i = 0; !rc && i < options->excludes.count; i++)
		rc = patterns_add(&filter->exclude, options->excludes.items[i], err);
	strip_add_known(&run->strip);
	strip_add_start_up(&run->start_up);
	for (size_t i = 0; !rc && i < options->strip_files.count; i++)
		rc = strip_add_file(&run->strip, options->strip_files.items[i], err);
	for (size_t i = 0; !rc && i < options->suppress_files.count; i++)
		rc = suppressions_add_file(
			&run->suppressions, options->suppress_files.items[i], err);
	return rc;
}

static int run_all(struct comparison_run *run, struct err *err)
{
	int rc;

	filter_init(&run->filter);
	suppressions_init(&run->suppressions);
	strip_init(&run->strip);
	strip_init(&run->start_up);
	run->suppressions.start_up = &run->start_up;
	table_init(&run->unmatched);
	run->limits = (struct growth_limits){
		.options = &run->options, .strip = &run->strip, .messages = run->messages};
	rc = prepare(run, err);
	if (!rc)
		rc = compare(run, err);
	filter_release(&run->filter);
	suppressions_release(&run->suppressions);
	strip_release(&run->strip);
	strip_release(&run->start_up);
	table_release(&run->unmatched);
	return rc;
}

static void print_version(void)
{
	char pcre2[PATTERN_VERSION_BYTES];

	pattern_version(pcre2);
	printf("hdiff %s\nPCRE2 %s, zstd %s, zlib %s\ndump format %d, recording format %d\n",
		HSNAP_VERSION, pcre2, ZSTD_versionString(), zlibVersion(), DUMP_FORMAT,
		RECORD_FORMAT);
}

/* Prints the usage. If an output option took the only file name, reports that. */
static int report_empty(const struct options *options, FILE *messages, struct err *err)
{
	const char *taken = options->junit ? options->junit : options->output;

	options_usage(messages);
	return !taken ? -ERR_USAGE :
			err_set(err, ERR_USAGE, taken, "is the output; also name a file to read");
}

int hdiff_run(int argc, char **argv, FILE *messages)
{
	struct comparison_run run = {.messages = messages};
	struct err err = {0};
	int rc = options_parse(&run.options, argc, argv, &err);
	bool is_empty = !rc && !run.options.paths.count;

	out_protect(run.options.overwrite ? NULL : file_kind_kept);
	if (!rc && run.options.help) {
		options_usage(stdout);
	} else if (!rc && run.options.version) {
		print_version();
	} else if (is_empty) {
		rc = report_empty(&run.options, messages, &err);
	} else if (!rc && run.options.list) {
		rc = run_list(&run.options, messages, &err);
	} else if (!rc && run.options.extract) {
		rc = run_extract(&run.options, messages, &err);
	} else if (!rc) {
		rc = run_all(&run, &err);
	}
	if (!rc && fflush(stdout))
		rc = err_set(&err, ERR_WRITE, "standard output", NULL);
	if (rc && err.code)
		err_print(messages, "hdiff", &err);
	if ((run.is_partial && !run.options.force) || growth_is_unknown(&run.limits))
		rc = -ERR_CUT;
	options_release(&run.options);
	temp_remove_all();
	return rc ? 2 : run.limits.is_over ? 1 : 0;
}
