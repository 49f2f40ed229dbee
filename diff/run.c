#include "diff/hdiff.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/base/terminal.h"
#include "core/base/text.h"
#include "core/io/file.h"
#include "core/io/out.h"
#include "diff/input_parts.h"
#include "diff/match/locations.h"
#include "diff/query/filter.h"
#include "diff/query/naming.h"
#include "diff/query/strip.h"
#include "diff/query/suppress.h"
#include "diff/query/view.h"
#include "diff/report/report.h"

/* What the options ask for, made from them before anything is read. */
struct comparison_run {
	struct options options;
	struct filter filter;
	struct suppressions suppressions;
	struct strip strip;
	struct symbol_console console;
	FILE *say;
	struct growth_limits limits;
	size_t series_count;
	struct table unmatched; /* filters that name nothing -> in how many series */
	bool is_partial; /* what was read */
};

/* What is shown of one series. */
struct shown {
	struct naming naming;
	struct view view;
};

/* One line, whatever the words hold. */
static void say_line(FILE *say, const struct buf *words)
{
	fprintf(say, "hdiff: %s\n", text_harmless(words->data));
	fflush(say);
}

/* Callback of growth_limits: prints one line. */
static void say_growth(void *say, const struct buf *words)
{
	say_line(say, words);
}

/* What kept names from being found. */
static int say_trouble(const struct naming *naming, FILE *say)
{
	const struct names *names = naming->comparison->names;
	const char *trouble = names ? names_trouble(names) : NULL;
	struct buf words;
	int rc;

	if (!trouble)
		return 0;
	buf_init(&words);
	rc = buf_add_text(&words, trouble);
	if (!rc)
		say_line(say, &words);
	buf_release(&words);
	return rc;
}

static int say_suppression(const struct suppression *one, FILE *say)
{
	struct buf words;
	int rc;

	buf_init(&words);
	rc = buf_printf(&words, "%s: %s suppressed ", one->place, one->text);
	if (!rc && one->row_count)
		rc = buf_printf(&words, "stacks: %zu, bytes: %" PRId64 ", blocks: %" PRId64,
			one->row_count, one->requested_bytes, one->block_count);
	else if (!rc)
		rc = buf_add_text(
			&words, one->is_shipped ? "nothing" : "nothing; it may be obsolete");
	if (!rc)
		say_line(say, &words);
	buf_release(&words);
	return rc;
}

/* What each suppression took away, of those that are built in all together; those that took nothing may be
 * obsolete. */
static int say_suppressions(const struct suppressions *suppressions, FILE *say)
{
	struct suppression shipped = {.place = "--suppress", .text = "runtime"};
	int rc = 0;

	for (size_t i = 0; !rc && i < suppressions->count; i++) {
		const struct suppression *one = &suppressions->items[i];

		if (!one->is_shipped)
			rc = say_suppression(one, say);
		shipped.is_shipped |= one->is_shipped;
		shipped.row_count += one->is_shipped ? one->row_count : 0;
		shipped.requested_bytes += one->is_shipped ? one->requested_bytes : 0;
		shipped.block_count += one->is_shipped ? one->block_count : 0;
	}
	return rc || !shipped.is_shipped ? rc : say_suppression(&shipped, say);
}

/* Says a line when it came up for the at-th time. */
static int say_unmatched_at(struct comparison_run *run, const struct buf *words, size_t at)
{
	uint64_t *found = table_find(&run->unmatched, words->data, words->len);

	if (!found) {
		if (table_add(&run->unmatched, words->data, words->len, 0))
			return -ERR_NOMEM;
		found = table_find(&run->unmatched, words->data, words->len);
	}
	if (++*found == at)
		say_line(run->say, words);
	return 0;
}

/* What names nothing in one series may do so in another: said is what does in none. Patterns remember
 * what they matched, but a series that is empty otherwise says nothing of them. */
static int say_unmatched(void *ctx, const char *option, const char *value, const char *what)
{
	struct comparison_run *run = ctx;
	bool is_pattern = !strcmp(option, run->filter.include.option);
	struct buf words;
	int rc;

	buf_init(&words);
	rc = buf_printf(&words, "%s %s: warning: %s", option, value, what);
	if (!rc)
		rc = say_unmatched_at(run, &words, is_pattern ? 1 : run->series_count);
	buf_release(&words);
	return rc;
}

static int say_nothing(void *ctx, const char *option, const char *value, const char *what)
{
	(void)ctx;
	(void)option;
	(void)value;
	(void)what;
	return 0;
}

/* Of several series, each tries the patterns before any is said to match nothing. */
static int try_patterns(struct comparison_run *run, struct shown *shown, size_t count)
{
	bool has_heaps = run->options.heap_count != 0;
	int rc = 0;

	for (size_t i = 0; !rc && count > 1 && i < count; i++)
		rc = unmatched_patterns(
			&run->filter, &shown[i].naming, has_heaps, say_nothing, NULL);
	for (size_t i = 0; !rc && i < count; i++)
		rc = unmatched_patterns(
			&run->filter, &shown[i].naming, has_heaps, say_unmatched, run);
	return rc;
}

/* Filters that name nothing: a limit of growth then holds whatever grew. */
static int say_all_unmatched(struct comparison_run *run, struct shown *shown, size_t count)
{
	const struct options *options = &run->options;
	int rc = 0;

	for (size_t i = 0; !rc && i < count; i++)
		rc = unmatched_modules(&run->filter, &shown[i].naming, say_unmatched, run);
	for (size_t i = 0; !rc && i < count; i++)
		rc = unmatched_heaps(shown[i].view.comparison, options->heaps, options->heap_count,
			say_unmatched, run);
	return rc ? rc : try_patterns(run, shown, count);
}

/* The style that is printed in: bars where a terminal shows them. */
static struct report_style style_of(const struct options *options)
{
	struct report_style style = options->style;
	bool is_shown = !options->output || !strcmp(options->output, "-");

	if (style.spark == SPARK_AUTO)
		style.spark = is_shown && terminal_is_utf8() ? SPARK_UTF8 : SPARK_ASCII;
	return style;
}

static int write_report(const struct options *options, const struct inputs *inputs,
	const struct shown *shown, size_t count, struct err *err)
{
	const struct view **views = calloc(count + 1, sizeof(const struct view *));
	struct report report = {.views = views,
		.view_count = count,
		.style = style_of(options),
		.left_out = inputs->left_out,
		.left_out_count = inputs->left_out_count};
	struct out out;
	int rc;

	if (!views)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	for (size_t i = 0; i < count; i++)
		views[i] = &shown[i].view;
	rc = out_open(&out, options->output, err);
	if (!rc) {
		options->format->write(&out, &report);
		rc = out_commit(&out, err);
	}
	free(views);
	return rc;
}

/* Adds words on names that are missing, of the first series that lacks some. */
static int find_missing(const struct comparison_run *run, const struct shown *shown, size_t count,
	struct buf *missing)
{
	int rc = 0;

	for (size_t i = 0; !rc && !missing->len && !run->options.no_symbols && i < count; i++)
		rc = naming_missing(&shown[i].naming, symbol_console_stopped(), missing);
	return rc;
}

/* What there is to be said when the report is written. */
static int say_rest(struct comparison_run *run, struct shown *shown, size_t count, struct err *err)
{
	struct buf missing; /* of the rows that were shown; the last that is said */
	int rc = say_suppressions(&run->suppressions, run->say);

	buf_init(&missing);
	if (!rc)
		rc = find_missing(run, shown, count, &missing);
	if (!rc)
		rc = say_all_unmatched(run, shown, count);
	for (size_t i = 0; !rc && i < count; i++)
		rc = growth_check(&run->limits, &shown[i].view, &shown[i].naming);
	for (size_t i = 0; !rc && i < count; i++)
		rc = say_trouble(&shown[i].naming, run->say);
	if (!rc && missing.len)
		say_line(run->say, &missing);
	buf_release(&missing);
	return rc ? err_set(err, ERR_NOMEM, NULL, NULL) : 0;
}

/* Selects and orders what is asked for of one series. */
static int show(struct comparison_run *run, struct shown *shown,
	const struct comparison *comparison, struct err *err)
{
	const struct options *options = &run->options;
	struct view_request request = {.group = options->group,
		.sort = options->sort,
		.shown_max = options->shown_max,
		.is_inverted = options->is_inverted,
		.is_part = options->heap_count != 0 || comparison->lacks_rows,
		.filter = &run->filter,
		.suppressions = run->suppressions.count ? &run->suppressions : NULL,
		.strip = options_strip(options) ? &run->strip : NULL};
	int rc = naming_make(&shown->naming, comparison, !options->no_symbols, err);

	if (!rc && view_make(&shown->view, comparison, &shown->naming))
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	return rc ? rc : view_ask(&shown->view, &shown->naming, &request, err);
}

/* What was asked for and cannot be answered of what was read: said before anything is written. */
static int check_asked(const struct options *options, const struct inputs *inputs, struct err *err)
{
	const char *of_trend = options_of_trend(options);
	char form[40];

	if (of_trend && !inputs->series[0].comparison.axis)
		return err_set(
			err, ERR_USAGE, of_trend, "only a trend has that, of more than two dumps");
	if (inputs->series_count < 2 || !options->format->is_of_one)
		return 0;
	snprintf(form, sizeof(form), "-o %s", options->format->name);
	return err_set(err, ERR_USAGE, form,
		"it shows one series, and there are %zu; say which with --series N",
		inputs->series_count);
}

/* Growth to or from what is known to lack something keeps no limit. */
static int check_whole(struct comparison_run *run, struct inputs *inputs)
{
	const struct options *options = &run->options;
	const bool has_limit = options->growth_max_bytes != UINT64_MAX ||
			       options->growth_max_blocks != UINT64_MAX || options->rate_max_hours;
	int rc = 0;

	for (size_t i = 0; !rc && has_limit && !options->force && i < inputs->dump_count; i++) {
		if (!inputs->dumps[i].is_incomplete)
			continue;
		inputs->is_partial = true;
		rc = say_warning(run->say, inputs->dumps[i].path, "--max-growth cannot judge it: ",
			"the snapshot is incomplete; take it again, or use --force");
	}
	return rc;
}

/* Names, filters, groups and orders the rows of each series; *count: how many were begun. */
static int select_all(struct comparison_run *run, const struct inputs *inputs, struct shown **shown,
	size_t *count, struct err *err)
{
	int rc = 0;

	*shown = calloc(inputs->series_count, sizeof(**shown));
	if (!*shown)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	run->series_count = inputs->series_count;
	run->limits.growth_unknown = inputs->growth_unknown;
	for (; !rc && *count < inputs->series_count; ++*count)
		rc = show(run, &(*shown)[*count], &inputs->series[*count].comparison, err);
	return rc;
}

/* From the files to the report: list, read, match, select (which finds names), report, judge. */
static int compare(struct comparison_run *run, struct err *err)
{
	const struct options *options = &run->options;
	struct inputs inputs = {0};
	struct file_list files;
	struct shown *shown = NULL;
	size_t count = 0;
	int rc = file_list_make(&files, options->paths.items, options->paths.count, err);

	if (!rc)
		rc = inputs_read(&inputs, options, &files, run->say, err);
	if (!rc)
		rc = inputs_match(&inputs, options, run->say, err);
	if (!rc && check_whole(run, &inputs))
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	if (!rc)
		rc = check_asked(options, &inputs, err);
	if (!rc)
		rc = select_all(run, &inputs, &shown, &count, err);
	if (!rc)
		rc = write_report(options, &inputs, shown, count, err);
	if (!rc)
		rc = say_rest(run, shown, count, err);
	run->is_partial = inputs.is_partial;
	for (size_t i = 0; i < count; i++) {
		view_release(&shown[i].view);
		naming_release(&shown[i].naming);
	}
	free(shown);
	inputs_release(&inputs);
	file_list_release(&files);
	return rc;
}

/* ---------------------------------------------------------------- before anything is read */

static int check_inputs(const char *output, const char *const *paths, size_t count,
	const char *what, struct err *err)
{
	for (size_t i = 0; output && i < count; i++) {
		if (strcmp(paths[i], "-") != 0 && !os_is_special(paths[i]) &&
			os_same_file(output, paths[i]))
			return err_set(err, ERR_USAGE, output, "it is one of the %s", what);
	}
	return 0;
}

static int stop(void *ctx, const struct folder_entry *entry)
{
	(void)ctx;
	(void)entry;
	return 1;
}

static int check_no_folder(const char *output, struct err *err)
{
	struct err none;

	if (!output || !*output || !strcmp(output, "-") || os_is_special(output) ||
		folder_each(output, FOLDER_NAMES, stop, NULL, &none) < 0)
		return 0;
	return err_set(err, ERR_USAGE, output, "it is a folder; name a file");
}

/* The report must not take the place of what it is made from. */
static int check_output(const struct options *options, struct err *err)
{
	const struct option_list *strip = &options->strip_files,
				 *suppress = &options->suppress_files;
	int rc = check_no_folder(options->output, err);

	if (!rc)
		rc = check_inputs(
			options->output, options->paths.items, options->paths.count, "dumps", err);
	if (!rc)
		rc = check_inputs(options->output, strip->items, strip->count, "lists", err);
	return rc ? rc :
		    check_inputs(options->output, suppress->items, suppress->count, "lists", err);
}

static int add_patterns(struct patterns *patterns, const struct option_list *texts, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < texts->count; i++)
		rc = patterns_add(patterns, texts->items[i], err);
	return rc;
}

/* Also reads lists that turn out not to be needed: what is wrong with them is said. */
static int add_lists(struct comparison_run *run, struct err *err)
{
	const struct options *options = &run->options;
	int rc = strip_add_known(&run->strip, err);

	for (size_t i = 0; !rc && i < options->strip_files.count; i++)
		rc = strip_add_file(&run->strip, options->strip_files.items[i], err);
	for (size_t i = 0; !rc && i < options->suppress_files.count; i++)
		rc = suppressions_add_file(
			&run->suppressions, options->suppress_files.items[i], err);
	return rc;
}

static int prepare(struct comparison_run *run, struct err *err)
{
	struct options *options = &run->options;
	struct filter *filter = &run->filter;
	int rc = check_output(options, err);

	options->symbols.options.listener =
		symbol_console_listener(&run->console, "hdiff", run->say);
	if (!rc && !options->no_symbols)
		rc = symbol_options_check(&options->symbols.options, err);

	filter->modules = options->modules.items;
	filter->module_count = options->modules.count;
	filter->min_bytes = options->min_bytes;
	filter->min_blocks = options->min_blocks;
	filter->trend_verdicts = options->trend_verdicts;
	if (!rc)
		rc = add_patterns(&filter->include, &options->includes, err);
	if (!rc)
		rc = add_patterns(&filter->exclude, &options->excludes, err);
	return rc ? rc : add_lists(run, err);
}

static int run_all(struct comparison_run *run, struct err *err)
{
	int rc;

	filter_init(&run->filter);
	suppressions_init(&run->suppressions);
	strip_init(&run->strip);
	table_init(&run->unmatched);
	run->limits = (struct growth_limits){
		.options = &run->options, .strip = &run->strip, .say = say_growth, .ctx = run->say};
	rc = prepare(run, err);
	if (!rc)
		rc = compare(run, err);
	filter_release(&run->filter);
	suppressions_release(&run->suppressions);
	strip_release(&run->strip);
	table_release(&run->unmatched);
	return rc;
}

int hdiff_run(int argc, char **argv, FILE *say)
{
	struct comparison_run run = {.say = say};
	struct err err = {0};
	int rc = options_parse(&run.options, argc, argv, &err);
	bool is_empty = !rc && !run.options.paths.count;

	if (!rc && run.options.help) {
		options_usage(stdout);
	} else if (!rc && run.options.version) {
		printf("hdiff %s\n", HSNAP_VERSION);
	} else if (is_empty) {
		options_usage(say);
		rc = -ERR_USAGE;
	} else if (!rc) {
		rc = run_all(&run, &err);
	}
	if (!rc && fflush(stdout))
		rc = err_set(&err, ERR_WRITE, "standard output", NULL);
	if (rc && err.code)
		err_print(say, "hdiff", &err);
	if ((run.is_partial && !run.options.force) || growth_is_unknown(&run.limits))
		rc = -ERR_CUT;
	options_release(&run.options);
	return rc ? 2 : run.limits.is_over ? 1 : 0;
}
