#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/os.h"
#include "diff/hdiff.h"
#include "diff/input_parts.h"
#include "diff/printed/printed.h"
#include "diff/read/read_dump.h"
#include "diff/series_list.h"

/* Who is told. */
struct listener {
	const char *path, *name; /* as it was given, and as it is called */
	FILE *say;
	struct inputs *inputs;
};

static int say_skipped(void *ctx, const struct err *why)
{
	const struct listener *listener = ctx;

	listener->inputs->is_partial = true;
	return say_left_out(listener->say, why->place, why->detail);
}

static int say_sentence(void *ctx, const char *text)
{
	const struct listener *listener = ctx;

	return say_warning(listener->say, listener->name, "", text);
}

/* What cannot be asked of a comparison that is read, or NULL. */
static const char *too_much(const struct listener *listener, const struct options *options)
{
	if (listener->inputs->dump_count > 1)
		return "a comparison is read alone";
	if (options->heap_count || options->group == GROUP_HEAP)
		return "a comparison does not tell heaps";
	if (options->match != MATCH_AUTO)
		return "a comparison is matched already";
	return NULL;
}

/* Why growth cannot be held against the limits that are asked for, or NULL: none must be kept only
 * because rows are missing or numbers were guessed. */
static const char *no_limit(const struct options *options, const struct comparison *comparison)
{
	bool has_limit = !options->force && (options->growth_max_bytes != UINT64_MAX ||
						    options->growth_max_blocks != UINT64_MAX);

	if (!has_limit)
		return NULL;
	if (comparison->lacks_rows || comparison->may_lack_rows)
		return "it may not show all that grew; compare the dumps, or use --force";
	if (comparison->is_guess)
		return "whether its numbers are hexadecimal was guessed; say --input-base";
	if (comparison->lacks_counts && options->growth_max_blocks != UINT64_MAX)
		return "it does not tell by how many blocks";
	return NULL;
}

static int read_comparison(const struct options *options, struct listener *listener,
	struct source *source, struct err *err)
{
	struct read_words words = {listener, say_skipped, say_sentence};
	const char *why = too_much(listener, options);
	int rc;

	if (why)
		return err_set(err, ERR_USAGE, listener->name, "%s", why);
	rc = comparison_read(&listener->inputs->series[0].comparison, source,
		(unsigned)options->input_base, &words, err);
	if (rc && rc != -ERR_CUT)
		return rc;
	why = no_limit(options, &listener->inputs->series[0].comparison);
	listener->inputs->is_partial |= why || listener->inputs->series[0].comparison.is_partial;
	if (why &&
		say_warning(listener->say, listener->name, "--max-growth cannot judge it: ", why))
		return err_set(err, ERR_NOMEM, NULL, NULL);
	return rc;
}

static int read_dump(
	struct listener *listener, size_t number, struct source *source, struct err *err)
{
	struct dump_sums *sums = &listener->inputs->dumps[number];
	int rc = sums_read(sums, listener->path, source, err);

	if (sums->skip_count)
		listener->inputs->is_partial = true;
	if ((!rc || rc == -ERR_CUT) && say_warnings(listener->say, listener->name, sums))
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	return rc;
}

static int read_as(const struct options *options, struct listener *listener, size_t number,
	struct source *source, enum file_kind *kind, struct err *err)
{
	const char *words = NULL;
	int rc = input_kind(listener->path, source, kind, &words, err);

	if (rc)
		return rc;
	if (*kind == FILE_COMPARISON)
		return read_comparison(options, listener, source, err);
	rc = read_dump(listener, number, source, err);
	if (rc == -ERR_NOT_DUMP && words)
		return err_set(err, ERR_NOT_DUMP, source_name(source), "%s", words);
	return rc;
}

/* Reads input number. 1: it was a printed comparison; 0: a dump; or an error. */
static int read_one(
	const struct options *options, struct listener *listener, size_t number, struct err *err)
{
	enum file_kind kind = FILE_UNKNOWN;
	struct source *source;
	int rc = source_open(&source, listener->path, err);

	if (rc)
		return rc;
	listener->name = source_name(source);
	rc = read_as(options, listener, number, source, &kind, err);
	if (rc == -ERR_CUT) {
		listener->inputs->is_partial = true;
		rc = say_cut(listener->say, err) ? err_set(err, ERR_NOMEM, NULL, NULL) : 0;
	}
	source_close(source);
	return rc ? rc : kind == FILE_COMPARISON;
}

/* Reads them in the order in which they were given into inputs->dumps, or a single printed comparison
 * into inputs->series[0]. 1: that was it; 0; or an error. */
static int inputs_read_few(struct inputs *inputs, const struct options *options,
	const struct file_list *files, FILE *say, struct err *err)
{
	int rc = 0;

	inputs->dumps = calloc(files->count + 1, sizeof(*inputs->dumps));
	inputs->series = calloc(1, sizeof(*inputs->series));
	if (!inputs->dumps || !inputs->series)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	inputs->series_count = 1;
	for (; inputs->dump_count < files->count; inputs->dump_count++)
		sums_init(&inputs->dumps[inputs->dump_count]);
	for (size_t i = 0; !rc && i < files->count; i++) {
		const char *path = files->items[i].path;
		struct listener listener = {path, path, say, inputs};

		rc = read_one(options, &listener, i, err);
	}
	inputs->series[0].count = inputs->dump_count;
	return rc;
}

/* Whether a file that was found is the one that the report goes to: one from the last time, in the
 * folder that is read again, is not even foreign there. */
static bool input_is_output(const struct options *options, const char *path)
{
	return options->output && strcmp(options->output, "-") != 0 && strcmp(path, "-") != 0 &&
	       !os_is_special(path) && os_same_file(options->output, path);
}

static bool is_dump(const struct read_file *file)
{
	return file->kind == FILE_DUMP || !file->rc || file->rc == -ERR_CUT;
}

/* What was asked for by its name was to be there, and no dump may be missing in a sum. */
static bool is_missed(const struct read_file *file, const struct options *options)
{
	return !file->item->is_found || (options->sum && file->rc != -ERR_NOT_DUMP);
}

/* Says why a file is left out. */
static int leave_out(struct inputs *inputs, const struct read_file *file,
	const struct options *options, FILE *say, const struct err *why)
{
	inputs->is_partial |= is_missed(file, options);
	if (inputs_leave_out(inputs, file->item->path))
		return -ERR_NOMEM;
	return say_damaged(say, file->item->path, why);
}

/* A dump that is there but for some of its lines or its end. */
static int leave_damaged(struct inputs *inputs, const struct read_file *file,
	const struct options *options, FILE *say)
{
	const struct dump_sums *sums = &file->sums;
	struct err why = {.code = ERR_BAD_LINE};

	if (file->rc == -ERR_CUT)
		return leave_out(inputs, file, options, say, file->err);
	for (size_t i = 0; i < sums->warning_count && i < WARNINGS_MAX; i++) {
		if (!sums->left_out[i].place)
			continue;
		err_set(&why, ERR_BAD_LINE, sums->left_out[i].place, "%s", sums->left_out[i].why);
		break;
	}
	return leave_out(inputs, file, options, say, &why);
}

/* What it lacks is said of its series. */
static int take(
	struct inputs *inputs, struct read_file *file, const struct options *options, FILE *say)
{
	int rc = file->rc ? say_cut(say, file->err) : 0;

	inputs->is_partial |= read_file_is_damaged(file) && is_missed(file, options);
	if (rc)
		return rc;
	inputs->dumps[inputs->dump_count++] = file->sums;
	sums_init(&file->sums);
	file->is_taken = true;
	return 0;
}

/* Takes one of the files if it is of use, or says why not. What has two names and is of no use was said of
 * the first. */
static int settle(struct inputs *inputs, struct read_file *read, size_t number,
	const struct options *options, FILE *say, struct err *err)
{
	struct read_file *file = &read[number];
	int rc;

	if (file->item->is_double) {
		rc = read[file->item->twin].is_taken ?
			     say_left_out(say, file->item->path, "it is named twice") :
			     0;
	} else if (input_is_output(options, file->item->path)) {
		return is_dump(file) ?
			       err_set(err, ERR_USAGE, options->output, "it is one of the dumps") :
			       0;
	} else if (file->is_log) {
		rc = 0;
	} else if (file->rc && file->rc != -ERR_CUT) {
		rc = leave_out(inputs, file, options, say, file->err);
	} else if (read_file_is_damaged(file) && !options->force) {
		rc = leave_damaged(inputs, file, options, say);
	} else {
		rc = take(inputs, file, options, say);
	}
	return rc ? err_set(err, ERR_NOMEM, NULL, NULL) : 0;
}

/* Why there is nothing left. */
static int say_none(const struct read_file *read, const struct options *options,
	const struct file_list *files, struct err *err)
{
	bool is_damaged = false;

	for (size_t i = 0; i < files->count; i++)
		is_damaged |= read[i].rc == -ERR_CUT || read[i].sums.skip_count;
	return err_set(err, is_damaged ? ERR_CUT : ERR_NOT_DUMP, options->paths.items[0],
		is_damaged ? "none of %zu files is whole" :
			     "none of %zu files is one that can be used",
		files->count);
}

static int read_all(struct inputs *inputs, struct read_file *read, const struct options *options,
	const struct file_list *files, FILE *say, struct err *err)
{
	struct time_filter wishes = {options->since, options->until, options->force};
	int rc = read_files(read, files->items, files->count, &wishes, inputs->store, err);

	for (size_t i = 0; !rc && i < files->count; i++)
		rc = settle(inputs, read, i, options, say, err);
	if (!rc && !inputs->dump_count)
		rc = say_none(read, options, files, err);
	return rc;
}

/* How many files were to be dumps: one that is found twice is one, and the report and a log are none. */
static size_t count_meant(
	const struct read_file *read, const struct file_list *files, const struct options *options)
{
	size_t count = 0;

	for (size_t i = 0; i < files->count; i++)
		count += !files->items[i].is_double && !read[i].is_log &&
			 !input_is_output(options, files->items[i].path);
	return count;
}

/* More than two, or what there would be else a comparison with nothing of: the others are left out. */
static bool is_trend(const struct inputs *inputs, const struct read_file *read,
	const struct options *options, const struct file_list *files)
{
	const struct dump_sums *dumps = inputs->dumps;

	bool is_asked = options->sum || options_ask_trend(options) ||
			(files->has_found && options_of_trend(options));

	if (is_asked || (files->count > 2 && !files->has_found))
		return true;
	if (inputs->dump_count == 1)
		return count_meant(read, files, options) > 1;
	if (inputs->dump_count > 2 || dump_same_snapshot(&dumps[0], &dumps[1]))
		return true;
	return files->has_found && !dump_same_process(&dumps[0], &dumps[1]);
}

/* Reads them into inputs->dumps and makes the series, of which nothing but the comparison is missing
 * then. 0 or an error; -ERR_NOT_DUMP when there is no dump that can be used. */
static int inputs_read_many(struct inputs *inputs, const struct options *options,
	const struct file_list *files, FILE *say, struct err *err)
{
	struct read_file *read = calloc(files->count + 1, sizeof(*read));
	int rc;

	inputs->dumps = calloc(files->count + 1, sizeof(*inputs->dumps));
	inputs->store = stack_store_new();
	if (read && inputs->dumps && inputs->store) {
		rc = read_all(inputs, read, options, files, say, err);
		if (!rc)
			rc = series_list_make(
				inputs, options, is_trend(inputs, read, options, files), say, err);
	} else {
		rc = err_set(err, ERR_NOMEM, NULL, NULL);
	}
	if (read)
		read_files_release(read, files->count);
	free(read);
	return rc;
}

/* The same of the snapshots of a series: the first that is not like the one before it is named. */
static int check_series_samples(struct inputs *inputs, const struct series *series, FILE *say)
{
	struct dump_sums *dumps = &inputs->dumps[series->first];
	const char *words = "it was sampled in another way than the snapshot before it: growth in "
			    "its series may be an error of the estimates";

	for (size_t i = 1; i < series->count; i++) {
		if (dumps[i].sample_bytes == dumps[i - 1].sample_bytes)
			continue;
		if (sums_warn(&dumps[i], words))
			return -ERR_NOMEM;
		return say_warning(say, dumps[i].path, "", words);
	}
	return 0;
}

/* Of a sample and of all there is, growth may be nothing but the sample's error. */
static int check_samples(struct inputs *inputs, const struct series *series, FILE *say)
{
	struct dump_sums *dumps = &inputs->dumps[series->first],
			 *newest = &dumps[series->count - 1];
	const char *words =
		"it was sampled in another way than the dump it is compared with: growth may "
		"be an error of the estimates";

	if (series->number)
		return check_series_samples(inputs, series, say);
	for (size_t i = 0; i + 1 < series->count; i++) {
		if (dumps[i].sample_bytes == newest->sample_bytes)
			continue;
		if (sums_warn(newest, words))
			return -ERR_NOMEM;
		return say_warning(say, newest->path, "", words);
	}
	return 0;
}

/* ---------------------------------------------------------------- whose dumps they are */

/* Two dumps of one process that were named the wrong way round. Those that were found have no order but
 * their times', whether they tell a process or not. */
static int order_pair(struct dump_sums *dumps, bool has_found, FILE *say)
{
	struct dump_sums newer = dumps[0];
	char words[700];

	if ((!dumps[0].pid && !has_found) || !dump_same_process(&dumps[0], &dumps[1]) ||
		!dumps[0].time_ms || !dumps[1].time_ms || dumps[0].time_ms <= dumps[1].time_ms)
		return 0;
	dumps[0] = dumps[1];
	dumps[1] = newer;
	if (has_found)
		return 0;
	snprintf(words, sizeof(words), "it is NEW, for it was taken after %.600s", dumps[0].path);
	return say_warning(say, newer.path, "", words);
}

/* Of a program and another one, nothing is growth. */
static int check_programs(struct inputs *inputs, const struct options *options, FILE *say)
{
	struct dump_sums *dumps = inputs->dumps;
	char words[700];

	if (!dump_other_program(&dumps[0], &dumps[1]))
		return 0;
	if (!options->force)
		inputs->growth_unknown = "the dumps are of different programs; if they are to be "
					 "compared, say --force";
	snprintf(words, sizeof(words), "it is of another program (%.300s) than OLD (%.300s)",
		dump_image(&dumps[1]), dump_image(&dumps[0]));
	if (sums_warn(&dumps[1], words))
		return -ERR_NOMEM;
	return say_warning(say, dumps[1].path, "", words);
}

static int settle_pair(struct inputs *inputs, const struct options *options, bool has_found,
	FILE *say, struct err *err)
{
	struct dump_sums *dumps = inputs->dumps;

	for (int i = 0; i < 2; i++) {
		if (dump_is_child(&dumps[i], &dumps[!i]))
			return err_set(err, ERR_USAGE, dumps[i].path,
				"it is of a child process of %s, and no later state of it; --sum "
				"adds up what is in both",
				dumps[!i].path);
	}
	if (order_pair(dumps, has_found, say) || check_programs(inputs, options, say))
		return err_set(err, ERR_NOMEM, NULL, NULL);
	return 0;
}

/* Of a trend of as many processes as dumps: whether they are of one program and those it started. */
static int check_family(const struct inputs *inputs, FILE *say)
{
	const struct dump_sums *dumps = inputs->dumps;
	char words[700];

	for (size_t i = 0; i < inputs->dump_count; i++) {
		for (size_t k = 0; dumps[i].parent_pid && k < inputs->dump_count; k++) {
			if (!dump_is_child(&dumps[i], &dumps[k]))
				continue;
			snprintf(words, sizeof(words),
				"it is of a child process of %.600s; --sum adds up what is in all "
				"dumps",
				dumps[k].path);
			return say_warning(say, dumps[i].path, "", words);
		}
	}
	return 0;
}

/* What the dumps of different processes have to do with each other. */
static int settle_processes(struct inputs *inputs, const struct options *options, bool has_found,
	FILE *say, struct err *err)
{
	if (options->sum || !inputs->dump_count)
		return 0;
	if (inputs->dump_count == 1 && has_found)
		inputs->growth_unknown = "a single dump was found";
	if (inputs->dump_count == 2 && !inputs->series[0].number)
		return settle_pair(inputs, options, has_found, say, err);
	if (inputs->series_count == inputs->dump_count && check_family(inputs, say))
		return err_set(err, ERR_NOMEM, NULL, NULL);
	return 0;
}

/* ---------------------------------------------------------------- all of it */

static int compare(struct inputs *inputs, struct series *series, const struct options *options)
{
	struct match_request match = {.mode = options->match,
		.no_symbols = options->no_symbols,
		.symbols = &options->symbols.options,
		.by_heap = options->group == GROUP_HEAP,
		.heaps = options->heaps,
		.heap_count = options->heap_count,
		.is_sum = options->sum,
		.axis = series->number ? &series->axis : NULL};
	int rc = comparison_make(
		&series->comparison, &inputs->dumps[series->first], series->count, &match);

	series->comparison.series_number = series->number;
	series->comparison.series_count = series->of;
	if (series->axis.parts)
		series->comparison.image = dump_image(&inputs->dumps[series->first]);
	return rc;
}

/* One file is what it is, wherever it was found: it may also be a comparison. */
static bool are_few(const struct file_list *files, const struct options *options)
{
	return !options->sum && !options_ask_trend(options) &&
	       !(files->has_found && options_of_trend(options)) &&
	       ((files->count == 1 && !input_is_output(options, files->items[0].path)) ||
		       (files->count == 2 && !files->has_found));
}

int inputs_leave_out(struct inputs *inputs, const char *path)
{
	const char *own = arena_text(&inputs->paths, path, strlen(path));

	if (!own || array_grow((void **)&inputs->left_out, &inputs->left_out_cap,
			    inputs->left_out_count, sizeof(*inputs->left_out)))
		return -ERR_NOMEM;
	inputs->left_out[inputs->left_out_count++] = own;
	return 0;
}

int inputs_read(struct inputs *inputs, const struct options *options, const struct file_list *files,
	FILE *say, struct err *err)
{
	int rc = are_few(files, options) ? inputs_read_few(inputs, options, files, say, err) :
					   inputs_read_many(inputs, options, files, say, err);

	inputs->is_printed = rc > 0;
	if (!rc)
		rc = settle_processes(inputs, options, files->has_found, say, err);
	return rc < 0 ? rc : 0;
}

int inputs_match(struct inputs *inputs, const struct options *options, FILE *say, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; !rc && !inputs->is_printed && i < inputs->series_count; i++) {
		if (!options->sum)
			rc = check_samples(inputs, &inputs->series[i], say);
		if (!rc)
			rc = compare(inputs, &inputs->series[i], options);
	}
	return rc ? err_set(err, ERR_NOMEM, NULL,
			    inputs->store ? "for so many dumps; --since takes fewer" : NULL) :
		    0;
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
