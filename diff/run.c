#include "diff/run.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "core/buf.h"
#include "core/os.h"
#include "core/out.h"
#include "core/text.h"
#include "diff/ask/filter.h"
#include "diff/inputs.h"
#include "diff/naming.h"
#include "diff/options.h"
#include "diff/report/report.h"
#include "diff/ask/strip.h"
#include "diff/ask/suppress.h"
#include "diff/ask/unmatched.h"
#include "diff/ask/view.h"
#include "diff/match/place_names.h"

/* What the options ask for, made from them before anything is read. */
struct run {
	struct options options;
	struct filter filter;
	struct suppressions suppressions;
	struct strip strip;
	struct symbol_console console;
	FILE *say;
	bool is_over; /* a limit of growth */
	bool is_partial; /* what was read */
};

/* One line, whatever the words hold. */
static void say_line(FILE *say, const struct buf *words)
{
	fprintf(say, "hdiff: %s\n", text_harmless(words->data));
	fflush(say);
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

/* What each suppression took away; those that took nothing may be obsolete. */
static int say_suppressions(const struct suppressions *suppressions, FILE *say)
{
	struct buf words;
	int rc = 0;

	buf_init(&words);
	for (size_t i = 0; !rc && i < suppressions->count; i++) {
		const struct suppression *one = &suppressions->items[i];

		buf_clear(&words);
		rc = buf_printf(&words, "%s: %s suppressed ", one->place, one->text);
		if (!rc && one->row_count)
			rc = buf_printf(&words, "stacks: %zu, bytes: %" PRId64 ", blocks: %" PRId64,
				one->row_count, one->requested_bytes, one->block_count);
		else if (!rc)
			rc = buf_add_text(&words, "nothing; it may be obsolete");
		if (!rc)
			say_line(say, &words);
	}
	buf_release(&words);
	return rc;
}

static int say_unmatched(void *ctx, const char *option, const char *value, const char *what)
{
	struct buf words;
	int rc;

	buf_init(&words);
	rc = buf_printf(&words, "%s %s: warning: %s", option, value, what);
	if (!rc)
		say_line(ctx, &words);
	buf_release(&words);
	return rc;
}

/* Filters that name nothing: a limit of growth then holds whatever grew. */
static int say_all_unmatched(struct run *run, struct naming *naming)
{
	const struct options *options = &run->options;
	int rc = unmatched_modules(&run->filter, naming, say_unmatched, run->say);

	if (!rc)
		rc = unmatched_heaps(naming->comparison, options->heaps, options->heap_count,
			say_unmatched, run->say);
	return rc ? rc :
		    unmatched_patterns(&run->filter, naming, options->heap_count != 0,
			    say_unmatched, run->say);
}

/* Adds words on growth when it is over a limit. */
static int add_over(struct buf *words, int64_t growth, uint64_t limit, const char *unit)
{
	if (growth <= 0 || (uint64_t)growth <= limit)
		return 0;
	return buf_printf(words,
		"%sgrowth of %" PRId64 " %s is %" PRIu64 " over the limit of %" PRIu64,
		words->len ? ", " : "", growth, unit, (uint64_t)growth - limit, limit);
}

/* Holds the growth of what was selected against the limits. */
static int check_growth(struct run *run, const struct view *view)
{
	const struct options *options = &run->options;
	struct delta delta = change_delta(&view->selected);
	struct buf words;
	int rc;

	buf_init(&words);
	rc = add_over(&words, delta.requested_bytes, options->growth_max_bytes, "bytes");
	if (!rc)
		rc = add_over(&words, delta.block_count, options->growth_max_blocks, "blocks");
	run->is_over = words.len != 0;
	if (!rc && run->is_over)
		say_line(run->say, &words);
	buf_release(&words);
	return rc;
}

static int write_report(const struct options *options, const struct view *view, struct err *err)
{
	struct out out;
	int rc = out_open(&out, options->output, err);

	if (rc)
		return rc;
	options->format->write(&out, view, &options->style);
	return out_commit(&out, err);
}

/* What there is to be said when the report is written. */
static int say_rest(
	struct run *run, const struct view *view, struct naming *naming, struct err *err)
{
	struct buf missing; /* of the rows that were shown; the last that is said */
	int rc;

	buf_init(&missing);
	rc = run->options.no_symbols ? 0 :
				       naming_missing(naming, symbol_console_stopped(), &missing);
	if (!rc)
		rc = say_suppressions(&run->suppressions, run->say);
	if (!rc)
		rc = say_all_unmatched(run, naming);
	if (!rc)
		rc = check_growth(run, view);
	if (!rc)
		rc = say_trouble(naming, run->say);
	if (!rc && missing.len)
		say_line(run->say, &missing);
	buf_release(&missing);
	return rc ? err_set(err, ERR_NOMEM, NULL, NULL) : 0;
}

static int report(struct run *run, const struct comparison *comparison, struct err *err)
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
	struct naming naming;
	struct view view = {0};
	int rc = naming_make(&naming, comparison, !options->no_symbols, err);

	if (!rc && view_make(&view, comparison, &naming))
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	if (!rc)
		rc = view_ask(&view, &naming, &request, err);
	if (!rc)
		rc = write_report(options, &view, err);
	if (!rc)
		rc = say_rest(run, &view, &naming, err);
	view_release(&view);
	naming_release(&naming);
	return rc;
}

static int compare(struct run *run, struct err *err)
{
	struct inputs inputs;
	int rc = inputs_read(&inputs, &run->options, run->say, err);

	if (!rc)
		rc = report(run, &inputs.comparison, err);
	run->is_partial = inputs.is_partial;
	inputs_release(&inputs);
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

/* The report must not take the place of what it is made from. */
static int check_output(const struct options *options, struct err *err)
{
	const struct option_list *strip = &options->strip_files,
				 *suppress = &options->suppress_files;
	int rc = check_inputs(options->output, options->paths, options->path_count, "dumps", err);

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
static int add_lists(struct run *run, struct err *err)
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

static int prepare(struct run *run, struct err *err)
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
	if (!rc)
		rc = add_patterns(&filter->include, &options->includes, err);
	if (!rc)
		rc = add_patterns(&filter->exclude, &options->excludes, err);
	return rc ? rc : add_lists(run, err);
}

static int run_all(struct run *run, struct err *err)
{
	int rc;

	filter_init(&run->filter);
	suppressions_init(&run->suppressions);
	strip_init(&run->strip);
	rc = prepare(run, err);
	if (!rc)
		rc = compare(run, err);
	filter_release(&run->filter);
	suppressions_release(&run->suppressions);
	strip_release(&run->strip);
	return rc;
}

int hdiff_run(int argc, char **argv, FILE *say)
{
	struct run run = {.say = say};
	struct err err = {0};
	int rc = options_parse(&run.options, argc, argv, &err);
	bool is_empty = !rc && !run.options.path_count;

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
	if (run.is_partial && !run.options.force)
		rc = -ERR_CUT;
	options_release(&run.options);
	return rc ? 2 : run.is_over ? 1 : 0;
}
