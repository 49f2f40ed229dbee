/* Checks of the options before any input is read: combinations that are not allowed, and outputs
 * that cannot be written or would replace an input. */
#include <stdio.h>
#include <string.h>

#include "core/base/err.h"
#include "core/base/os.h"
#include "core/io/file.h"
#include "core/io/out.h"
#include "diff/options.h"

static size_t count_stdin(const char *const *paths, size_t count)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++)
		found += !strcmp(paths[i], "-");
	return found;
}

/* Checks the options for recordings. Some options require a moment, some a window. */
static int check_recording(const struct options *options, struct err *err)
{
	const struct recording_part *part = &options->part;
	const char *whole = options->list ? "--list" : "--extract";

	if (part->older_ms && (part->fate || part->from || part->still_at))
		return err_set(err, ERR_USAGE, "--older-than",
			"needs only the end of a window: leave out --class, --from and --still-at");
	if (part->still_at && part->fate)
		return err_set(err, ERR_USAGE, "--still-at", "is a class: leave out --class");
	if (part->moment &&
		(part->fate || part->from || part->to || part->still_at || part->older_ms))
		return err_set(err, ERR_USAGE, "--peak",
			"selects a moment, but --class, --from, --to and --transient select a "
			"window");
	if (options->list && (part->is_asked || options->extract))
		return err_set(err, ERR_USAGE, "--list",
			"lists the whole recording: leave out --extract and options for a moment "
			"or window");
	if (options->extract && part->is_asked && !part->moment)
		return err_set(err, ERR_USAGE, "--extract",
			"writes a dump of one moment: give FILE@MOMENT or --peak");
	if (options->extract && options->paths.count > 1)
		return err_set(err, ERR_USAGE, whole, "applies to one recording");
	return 0;
}

/* Checks that a chart has a suitable form and content. */
static int check_chart(const struct options *options, struct err *err)
{
	const char *format = options->format->name;
	char form[40];

	snprintf(form, sizeof(form), "-o %s", format);
	if (!options->chart)
		return 0;
	if (!options->format->write_chart)
		return err_set(err, ERR_USAGE, form, "charts are text, csv or svg");
	if (options->part.moment || options->part.fate || options->part.still_at ||
		options->part.older_ms)
		return err_set(err, ERR_USAGE, options_of_recording(options),
			"a chart shows all memory from --from to --to");
	if (options->sum || options_request_trend(options) || options->group != GROUP_STACK ||
		options->sort != SORT_DEFAULT || options_has_limit(options) ||
		options_of_trend(options))
		return err_set(err, ERR_USAGE, options_of_chart(options),
			"a chart has no rows and judges nothing: leave out --sum, --group, --sort, "
			"--max-growth and the options of trends");
	return 0;
}

/* Checks --by-mark, which shows parts of a recording instead of rows. */
static int check_by_mark(const struct options *options, struct err *err)
{
	const struct recording_part *part = &options->part;
	char form[40];

	if (!options->by_mark)
		return 0;
	snprintf(form, sizeof(form), "-o %s", options->format->name);
	if (!options->format->write_marks)
		return err_set(err, ERR_USAGE, form, "--by-mark has the forms text, json and csv");
	if (part->moment || part->fate || part->from || part->to || part->still_at ||
		part->older_ms || part->by_thread || options->chart)
		return err_set(err, ERR_USAGE, "--by-mark",
			"shows a whole recording: leave out options for a moment, window, thread "
			"or chart");
	if (options->list || options->extract || options->sum || options_request_trend(options) ||
		options_of_trend(options) || options_of_blocks(options) ||
		options->group != GROUP_STACK || options->sort != SORT_DEFAULT ||
		options->style.is_tree || options->style.shows_heaps || options->style.no_stacks ||
		options->min_bytes || options->min_blocks)
		return err_set(err, ERR_USAGE, "--by-mark",
			"has no rows: only -n and the options that select stacks apply to it");
	if ((options->row_max.bytes & options->net_max.bytes) != UINT64_MAX ||
		options->figure_max_count)
		return err_set(err, ERR_USAGE, "--by-mark",
			"has one limit, for each mark: --max-growth SIZE[,BLOCKS]");
	if (options->annotate)
		return err_set(err, ERR_USAGE, "--annotate",
			"not with --by-mark, whose limit is not for stacks");
	return 0;
}

/* Checks --sizes, --age and --pinned, which apply to the stacks of one or two dumps. */
static int check_blocks(const struct options *options, struct err *err)
{
	const char *name = options_of_blocks(options);

	if (!name)
		return 0;
	if (!options->format->has_blocks || options->style.is_tree)
		return err_set(err, ERR_USAGE, name,
			"applies only to -o json and to the text report without --tree");
	if (options->chart || options->list || options->extract || options->part.is_asked ||
		options->sum || options_request_trend(options) || options->group != GROUP_STACK)
		return err_set(err, ERR_USAGE, name,
			"applies to the stacks of one or two dumps: leave out --sum, --group, and "
			"the options of trends and recordings");
	if (options->shows_pinned &&
		(options->shows_age || options->style.shows_heaps ||
			options->part.sizes.is_limited || options_has_limit(options)))
		return err_set(err, ERR_USAGE, "--pinned",
			"shows one dump: leave out --age, --size, --heaps and --max-growth");
	return 0;
}

/* Checks --heaps, which shows the heaps of one or two dumps. */
static int check_heaps(const struct options *options, struct err *err)
{
	if (!options->style.shows_heaps)
		return 0;
	if (!options->format->has_heaps || options->style.is_tree || options->style.no_stacks)
		return err_set(err, ERR_USAGE, "--heaps",
			"only the text report, without --tree and --no-stacks, -o json and -o csv "
			"show heaps");
	if (options->chart || options->list || options->extract || options->part.is_asked ||
		options->sum || options_request_trend(options))
		return err_set(err, ERR_USAGE, "--heaps",
			"applies to one or two dumps: leave out --sum and the options of trends "
			"and recordings");
	return 0;
}

int options_check(const struct options *options, struct err *err)
{
	const struct option_list *strip = &options->strip_files,
				 *suppress = &options->suppress_files;
	const char *verdict = options->junit ? "--junit" : options->annotate ? "--annotate" : NULL;
	int rc;

	if (count_stdin(options->paths.items, options->paths.count) +
			count_stdin(strip->items, strip->count) +
			count_stdin(suppress->items, suppress->count) >
		1)
		return err_set(err, ERR_USAGE, "-", "standard input can be read only once");
	if (options->style.is_tree &&
		(options->group != GROUP_STACK || !options->format->is_for_people))
		return err_set(err, ERR_USAGE, "--tree",
			"applies only to the text report, without --group");
	if (options->style.no_stacks &&
		(!options->format->is_for_people || options->shows_sizes || options->shows_age ||
			options->list || options->extract || options->chart))
		return err_set(err, ERR_USAGE, "--no-stacks",
			"applies only to the text report, without --sizes and --age");
	if (options->sort == SORT_TOTAL && options->group == GROUP_STACK)
		return err_set(err, ERR_USAGE, "--sort total",
			"only groups have totals: for instance --group function");
	if (options->is_inverted && options->group != GROUP_STACK)
		return err_set(err, ERR_USAGE, "--invert", "groups have no frames to invert");
	if (options->style.is_reverse && !options->format->can_reverse)
		return err_set(err, ERR_USAGE, "--reverse", "applies only to -o folded");
	if (options->sum && options_request_trend(options))
		return err_set(err, ERR_USAGE, "--sum",
			"makes no trend: leave out --warm-up, --since, --until, --across-restarts "
			"and --series");
	if (verdict && (options->chart || options->list || options->extract))
		return err_set(
			err, ERR_USAGE, verdict, "applies to the growth of dumps or moments");
	if (verdict && !options_has_limit(options))
		return err_set(err, ERR_USAGE, verdict,
			"needs a limit: give --max-growth, for instance --max-growth 0");
	if (options->junit && (!*options->junit || !strcmp(options->junit, "-")))
		return err_set(err, ERR_USAGE, "--junit", "give the name of a file");
	if (options->part.sizes.is_limited &&
		(options->style.shows_heaps || options->list || options->extract))
		return err_set(err, ERR_USAGE, "--size",
			"selects blocks of stacks: leave out --heaps, --list and --extract");
	if (options->part.by_thread && (options->chart || options->list || options->extract))
		return err_set(err, ERR_USAGE, options_of_thread(options),
			"divides what a report shows: leave out --over-time, --histogram, --list "
			"and --extract");
	rc = check_recording(options, err);
	if (!rc)
		rc = check_blocks(options, err);
	if (!rc)
		rc = check_heaps(options, err);
	if (!rc)
		rc = check_by_mark(options, err);
	return rc ? rc : check_chart(options, err);
}

static int check_inputs(const char *output, const char *const *paths, size_t count, struct err *err)
{
	for (size_t i = 0; output && i < count; i++) {
		if (strcmp(paths[i], "-") != 0 && !os_is_special(paths[i]) &&
			os_same_file(output, paths[i]))
			return err_set(
				err, ERR_USAGE, output, "input and output are the same file");
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
	return err_set(err, ERR_USAGE, output, "a folder; give the name of a file");
}

/* Checks that the output can be written, before dumps are read. Reading may take a long time. */
static int check_output(const struct options *options, const char *output, struct err *err)
{
	const struct option_list *strip = &options->strip_files,
				 *suppress = &options->suppress_files;
	int rc = check_no_folder(output, err);

	if (!rc)
		rc = check_inputs(output, options->paths.items, options->paths.count, err);
	if (!rc)
		rc = check_inputs(output, strip->items, strip->count, err);
	if (!rc)
		rc = check_inputs(output, suppress->items, suppress->count, err);
	return rc ? rc : out_check(output, err);
}

/* The JUnit file and the report must be different files. */
int options_check_outputs(const struct options *options, struct err *err)
{
	const char *output = options->output, *junit = options->junit;
	int rc = check_output(options, output, err);

	if (!rc)
		rc = check_output(options, junit, err);
	if (rc || !output || !junit || os_is_special(junit))
		return rc;
	return !strcmp(output, junit) || os_same_file(output, junit) ?
		       err_set(err, ERR_USAGE, junit, "the report is written to the same file") :
		       0;
}
