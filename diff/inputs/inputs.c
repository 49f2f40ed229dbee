#include "diff/inputs.h"

#include <stdlib.h>
#include <string.h>

#include "core/table.h"
#include "diff/inputs/dump_order.h"
#include "diff/inputs/file_list.h"
#include "diff/inputs/input_say.h"
#include "diff/inputs/inputs_few.h"
#include "diff/inputs/inputs_many.h"
#include "diff/read/sum_reader.h"

/* The same of the snapshots of a series: the first that is not like the one before it is named. */
static int check_series_samples(struct inputs *inputs, const struct series *series, FILE *say)
{
	struct sums *dumps = &inputs->dumps[series->first];
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
	struct sums *dumps = &inputs->dumps[series->first], *newest = &dumps[series->count - 1];
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
static int order_pair(struct sums *dumps, bool has_found, FILE *say)
{
	struct sums newer = dumps[0];
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
	struct sums *dumps = inputs->dumps;
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
	struct sums *dumps = inputs->dumps;

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
	const struct sums *dumps = inputs->dumps;
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

static int compare_all(struct inputs *inputs, const struct options *options, FILE *say)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < inputs->series_count; i++) {
		if (!options->sum)
			rc = check_samples(inputs, &inputs->series[i], say);
		if (!rc)
			rc = compare(inputs, &inputs->series[i], options);
	}
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

int inputs_read(struct inputs *inputs, const struct options *options, FILE *say, struct err *err)
{
	struct file_list files;
	int rc;

	*inputs = (struct inputs){0};
	arena_init(&inputs->paths);
	rc = file_list_make(&files, options->paths.items, options->paths.count, err);
	if (!rc && are_few(&files, options))
		rc = inputs_read_few(inputs, options, &files, say, err);
	else if (!rc)
		rc = inputs_read_many(inputs, options, &files, say, err);
	if (!rc)
		rc = settle_processes(inputs, options, files.has_found, say, err);
	if (!rc && compare_all(inputs, options, say))
		rc = err_set(err, ERR_NOMEM, NULL,
			inputs->store ? "for so many dumps; --since takes fewer" : NULL);
	file_list_release(&files);
	return rc < 0 ? rc : 0;
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
