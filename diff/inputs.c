/* Inputs: decides which files are used, and whether they form a comparison, a trend or a sum.
 * Matches the dumps. read_files.c reads files, series_list.c sorts dumps into series, and
 * inputs_check.c checks dumps. */
#include "diff/inputs.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/os.h"
#include "core/base/parse.h"
#include "core/base/text.h"
#include "diff/chain.h"
#include "diff/dump_identity.h"
#include "diff/file_list.h"
#include "diff/messages.h"
#include "diff/options.h"
#include "diff/printed/printed.h"
#include "diff/query/group.h"
#include "diff/read_files.h"
#include "diff/series_list.h"

/* ---------------------------------------------------------------- a printed comparison */

/* Returns the reason why the options do not apply to a printed comparison, or NULL. */
static const char *too_much(const struct options *options)
{
	if (options->heap_count || group_is_by_heap(options->group))
		return "a comparison does not record heaps";
	if (options->part.by_thread)
		return "a comparison does not record threads";
	if (options->only_lost)
		return "a comparison does not record which blocks are lost";
	if (options_of_blocks(options) || options->part.sizes.is_limited)
		return "a comparison does not list blocks";
	if (options->match != MATCH_AUTO)
		return "the stacks of a comparison are already matched: leave out --match";
	return NULL;
}

static int read_comparison(struct inputs *inputs, const struct file_list *list,
	struct read_file *file, struct err *err)
{
	const struct options *options = inputs->options;
	const char *why = list->count > 1 ? "a comparison can be read only alone, or with "
					    "comparisons that continue it" :
					    too_much(options);
	const char *name = source_name(file->printed);
	struct comparison *comparison;
	int rc;

	if (why)
		return err_set(err, ERR_USAGE, name, "%s", why);
	inputs->is_printed = true;
	inputs->series = xcalloc(1, sizeof(*inputs->series));
	inputs->series_count = 1;
	comparison = &inputs->series[0].comparison;
	rc = chain_read_comparison(inputs, comparison, file->printed, name, false, err);
	if (rc && rc != -ERR_CUT)
		return rc;
	inputs_judge_printed(inputs, comparison);
	return rc;
}

/* ---------------------------------------------------------------- recordings */

/* Returns true if an input is also the output of the report. A folder may contain the report of an
 * earlier run; such a report is ignored silently. */
static bool input_is_output(const struct options *options, const char *path)
{
	return options->output && strcmp(options->output, "-") != 0 && strcmp(path, "-") != 0 &&
	       !os_is_special(path) && os_same_file(options->output, path);
}

/* Chooses which part is read of a recording that is named without a moment. If the recording is the
 * only file, all allocations are read that were not freed; for a chart, all allocations. If there
 * are other files, the state at the end of the recording is read. */
static int ask_parts(const struct inputs *inputs, const struct file_list *list, struct err *err)
{
	const struct options *options = inputs->options;
	struct file_item *only = list->items;

	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i].part.moment && input_is_output(options, list->items[i].file))
			return err_set(err, ERR_USAGE, options->output,
				"input and output are the same file");
		list->items[i].part.wants_blocks = options_of_blocks(options) != NULL;
		list->items[i].part.wants_creators = options->style.shows_heaps;
		list->items[i].part.sizes = options->part.sizes;
		list->items[i].part.by_thread = options->part.by_thread;
		list->items[i].part.thread = options->part.thread;
	}
	if (options->part.is_asked) {
		if (list->count != 1 || only->part.moment)
			return err_set(err, ERR_USAGE, options_of_recording(options),
				"applies to one recording, given without @MOMENT");
		only->part = options->part;
	}
	if (list->count == 1 && !only->part.moment && !only->part.fate &&
		(!options->sum || options->part.is_asked))
		only->part.fate = options->chart      ? FATE_ALL :
				  only->part.older_ms ? FATE_AOFO :
							FATE_AIFO;
	return 0;
}

/* ---------------------------------------------------------------- files that are used */

/* Moves a dump to the inputs. The warnings of a series are printed later, all together. */
static void use(struct inputs *inputs, struct read_file *file)
{
	inputs->dumps[inputs->dump_count++] = file->sums;
	sums_init(&file->sums);
	file->is_used = true;
}

/* Uses one of at most two named files. If it is cut short, uses the part before the cut. */
static int use_named(struct inputs *inputs, const struct file_list *list, struct read_file *file,
	struct err *err)
{
	int rc = file->rc;

	if (file->printed)
		rc = read_comparison(inputs, list, file, err);
	else if (rc)
		*err = *file->err;
	inputs->is_partial |= file->sums.quality.skip_count || rc == -ERR_CUT;
	if (!file->printed && (!rc || rc == -ERR_CUT))
		message_warnings(inputs->messages,
			!strcmp(file->item->path, "-") ? "standard input" : file->item->path,
			&file->sums);
	if (rc == -ERR_CUT)
		message_cut(inputs->messages, err);
	else if (rc)
		return rc;
	if (!file->printed)
		use(inputs, file);
	return 0;
}

/* Returns the reason for leaving out a dump that is cut short or has malformed lines. */
static struct err why_damaged(const struct read_file *file)
{
	const struct dump_sums *sums = &file->sums;
	struct err why = {.code = ERR_BAD_LINE};

	if (file->rc == -ERR_CUT)
		return *file->err;
	for (size_t i = 0; i < sums->quality.warning_count && i < WARNINGS_MAX; i++) {
		if (!sums->quality.left_out[i].place)
			continue;
		err_set(&why, ERR_BAD_LINE, sums->quality.left_out[i].place, "%s",
			sums->quality.left_out[i].why);
		return why;
	}
	/* the last warning is about the whole file */
	if (sums->quality.warning_count && sums->quality.warning_count <= WARNINGS_MAX)
		err_set(&why, ERR_BAD_LINE, "", "%s",
			sums->quality.warnings[sums->quality.warning_count - 1]);
	return why;
}

/* Uses one of many files, or reports why it is left out. Reports an unusable file only once, even
 * if it was named twice. */
static int use_of_many(
	struct inputs *inputs, struct read_file *files, size_t number, struct err *err)
{
	const struct options *options = inputs->options;
	struct read_file *file = &files[number];
	const char *path = file->item->path;
	bool is_no_dump = file->rc && file->rc != -ERR_CUT, is_damaged = read_file_is_damaged(file);
	struct err why;

	if (file->item->is_double) {
		if (files[file->item->twin].is_used)
			message_left_out(inputs->messages, path, "named twice");
		return 0;
	}
	if (input_is_output(options, path))
		return is_no_dump && file->kind != FILE_DUMP ?
			       0 :
			       err_set(err, ERR_USAGE, options->output,
				       "input and output are the same file");
	if (file->is_log)
		return 0;
	/* A named file must be usable, and a sum needs every dump. */
	inputs->is_partial |= is_damaged && (!file->item->is_found ||
						    (options->sum && file->rc != -ERR_NOT_DUMP));
	if (is_no_dump || (is_damaged && !options->force)) {
		why = is_no_dump ? *file->err : why_damaged(file);
		inputs_leave_out(inputs, path);
		message_damaged(inputs->messages, path, &why);
		return 0;
	}
	if (file->rc)
		message_cut(inputs->messages, file->err);
	use(inputs, file);
	return 0;
}

static int print_none(
	const struct inputs *inputs, const struct read_file *files, size_t count, struct err *err)
{
	bool is_damaged = false;

	for (size_t i = 0; i < count; i++)
		is_damaged |= files[i].rc == -ERR_CUT || files[i].sums.quality.skip_count;
	return err_set(err, is_damaged ? ERR_CUT : ERR_NOT_DUMP, inputs->options->paths.items[0],
		is_damaged ? "none of %zu file%s is complete" : "none of %zu file%s can be used",
		count, text_plural(count));
}

/* Returns true if an option was given that applies only to a series. */
static bool asks_series(const struct options *options, const struct file_list *list)
{
	return options->sum || options_request_trend(options) ||
	       (list->has_found && options_of_trend(options));
}

/* Returns true if the dumps form a trend, for example if there are more than two. A single usable
 * dump is a trend if other files were left out. As a comparison, it would show all blocks as
 * growth. */
static bool is_trend(
	const struct inputs *inputs, const struct read_file *files, const struct file_list *list)
{
	const struct dump_sums *dumps = inputs->dumps;
	size_t meant = 0;

	if (asks_series(inputs->options, list) || (list->count > 2 && !list->has_found))
		return true;
	/* Count the files that should be dumps: not duplicates, the report, or hsnap's logs. */
	for (size_t i = 0; inputs->dump_count == 1 && i < list->count; i++)
		meant += !list->items[i].is_double && !files[i].is_log &&
			 !input_is_output(inputs->options, list->items[i].path);
	if (inputs->dump_count == 1)
		return meant > 1;
	if (inputs->dump_count > 2 || dump_same_snapshot(&dumps[0], &dumps[1]))
		return true;
	return list->has_found && !dump_same_process(&dumps[0], &dumps[1]);
}

/* Returns true for one file or two named files. A single file may be a printed comparison, even if
 * it was found. */
static bool are_few(const struct file_list *list, const struct options *options)
{
	return !asks_series(options, list) &&
	       ((list->count == 1 && !input_is_output(options, list->items[0].path)) ||
		       (list->count == 2 && !list->has_found));
}

/* ---------------------------------------------------------------- reading and matching */

/* Reads a chain of printed comparisons as a trend. */
static int read_chain(struct inputs *inputs, const struct file_list *list, struct err *err)
{
	const char *why = too_much(inputs->options);
	int rc = why ? err_set(err, ERR_USAGE, list->items[0].path, "%s", why) : 0;

	inputs->dumps = xcalloc(list->count + 1, sizeof(*inputs->dumps));
	if (!rc)
		rc = chain_read(inputs, list, err);
	return rc ? rc : series_list_trend(inputs, list, err);
}

/* Checks a damaged dump that was left out. Unless it lies between two dumps of its process, it may be
 * the first or the last, so no limit of the series may pass. */
static void doubt_ends(struct inputs *inputs, const struct read_file *file)
{
	const int64_t time_ms = file->sums.id.time_ms;
	/* with equal exact times, both are copies of one snapshot */
	const int64_t least_ms = file->sums.id.has_wall_time || !time_ms;
	const bool is_known = !file->rc || file->rc == -ERR_CUT;
	struct series *owner = NULL;
	bool is_after = false, is_before = false;
	char words[800];

	for (size_t i = 0; is_known && i < inputs->series_count; i++) {
		struct series *series = &inputs->series[i];

		for (size_t k = 0; k < series->count; k++) {
			const struct dump_sums *dump = &inputs->dumps[series->first + k];

			if (!dump_same_process(dump, &file->sums))
				continue;
			owner = series;
			if (dump_is_moved(dump))
				continue;
			is_after |= dump->id.time_ms + least_ms <= time_ms;
			is_before |= dump->id.time_ms >= time_ms + least_ms;
		}
	}
	if ((is_after && is_before) || (!owner && is_known && inputs->options->series))
		return;
	owner = owner ? owner : inputs->series;
	snprintf(words, sizeof(words),
		"%.600s was left out, and may be the first or the last dump of a process; delete "
		"it if it is not needed",
		file->item->path);
	if (!owner->doubt)
		owner->doubt = arena_text(&inputs->paths, words, strlen(words));
}

/* Replaces two dumps with the second one. */
static void use_last(struct inputs *inputs)
{
	sums_release(&inputs->dumps[0]);
	inputs->dumps[0] = inputs->dumps[1];
	inputs->dump_count = inputs->series[0].count = 1;
}

int inputs_read(struct inputs *inputs, struct file_list *list, struct err *err)
{
	const struct options *options = inputs->options;
	struct time_filter window = {options->since, options->until, options->force};
	struct read_file *files;
	int rc = ask_parts(inputs, list, err);

	inputs->is_few = are_few(list, options);
	if (!rc && chain_find(list, inputs->messages))
		return read_chain(inputs, list, err);
	files = xcalloc(list->count + 1, sizeof(*files));
	inputs->dumps = xcalloc(list->count + 1, sizeof(*inputs->dumps));
	if (!inputs->is_few)
		inputs->store = stack_store_new();
	if (!rc)
		rc = read_files(files, list->items, list->count, &window, inputs->store, err);
	for (size_t i = 0; !rc && i < list->count; i++)
		rc = inputs->is_few ? use_named(inputs, list, &files[i], err) :
				      use_of_many(inputs, files, i, err);
	if (!rc && !inputs->is_few && !inputs->dump_count)
		rc = print_none(inputs, files, list->count, err);
	if (!rc && !inputs->is_printed)
		inputs_correct_clocks(inputs);
	if (!rc && !inputs->is_few && is_trend(inputs, files, list)) {
		rc = series_list_trend(inputs, list, err);
	} else if (!rc && !inputs->is_printed) {
		inputs->series = xcalloc(1, sizeof(*inputs->series));
		inputs->series_count = 1;
		inputs->series[0].count = inputs->dump_count;
		for (size_t i = 0; !inputs->is_few && i < inputs->dump_count; i++)
			message_warnings(
				inputs->messages, inputs->dumps[i].id.path, &inputs->dumps[i]);
	}
	if (!rc)
		rc = inputs_check_processes(inputs, list->has_found, err);
	if (!rc && options->shows_pinned && inputs->dump_count == 2 && !inputs->series[0].number)
		use_last(inputs);
	for (size_t i = 0; !rc && options_has_limit(options) && i < list->count; i++) {
		const struct read_file *file = &files[i];

		if (file->item->is_found && file->kind == FILE_DUMP && !file->is_used &&
			read_file_is_damaged(file) && !file->item->is_double)
			doubt_ends(inputs, file);
	}
	read_files_release(files, list->count);
	free(files);
	return rc;
}

static bool has_several_hosts(const struct inputs *inputs)
{
	const char *first = NULL;

	for (size_t i = 0; i < inputs->dump_count; i++) {
		const char *host = inputs->dumps[i].id.host;

		if (first && host && text_compare(first, host) != 0)
			return true;
		first = first ? first : host;
	}
	return false;
}

void inputs_match(struct inputs *inputs)
{
	const struct options *options = inputs->options;
	const bool shows_hosts = has_several_hosts(inputs);

	for (size_t i = 0; !inputs->is_printed && i < inputs->series_count; i++) {
		struct series *series = &inputs->series[i];
		struct match_request match = {.mode = options->match,
			.no_symbols = options->no_symbols,
			.symbols = &options->symbols.options,
			.by_heap = group_is_by_heap(options->group),
			.by_thread = options->group == GROUP_THREAD,
			/* Other ways of grouping would need the names of all stacks, and looking
			 * them up is too slow. */
			.keeps_unchanged = group_is_of_row(options->group),
			.heaps = options->heaps,
			.heap_count = options->heap_count,
			.only_lost = options->only_lost,
			.is_one_process =
				dumps_share_modules(&inputs->dumps[series->first], series->count),
			.is_sum = options->sum,
			.axis = series->number ? &series->axis : NULL};

		/* A chart selects all heaps, so that address space is included. */
		if (options->chart && !match.heap_count) {
			match.heaps = inputs->dumps->heaps;
			match.heap_count = inputs->dumps->heap_count;
		}
		if (!options->sum)
			inputs_check_samples(inputs, series);
		comparison_make(
			&series->comparison, &inputs->dumps[series->first], series->count, &match);
		series->comparison.shows_hosts = shows_hosts;
		series->comparison.doubt = series->doubt;
		series->comparison.series_number = series->number;
		series->comparison.series_count = series->series_count;
		if (series->axis.parts)
			series->comparison.image = dump_image(&inputs->dumps[series->first]);
	}
}

void inputs_release(struct inputs *inputs)
{
	for (size_t i = 0; i < inputs->series_count; i++) {
		comparison_release(&inputs->series[i].comparison);
		free(inputs->series[i].times_ms);
		free(inputs->series[i].parts);
	}
	for (size_t i = 0; i < inputs->dump_count; i++)
		sums_release(&inputs->dumps[i]);
	stack_store_free(inputs->store);
	free(inputs->left_out);
	arena_release(&inputs->paths);
	free(inputs->series);
	free(inputs->dumps);
}
