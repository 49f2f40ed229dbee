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

static int compare(struct inputs *inputs, struct series *series, const struct options *options)
{
	struct match_request match = {.mode = options->match,
		.no_symbols = options->no_symbols,
		.symbols = &options->symbols.options,
		.by_heap = options->group == GROUP_HEAP,
		.heaps = options->heaps,
		.heap_count = options->heap_count,
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
		rc = check_samples(inputs, &inputs->series[i], say);
		if (!rc)
			rc = compare(inputs, &inputs->series[i], options);
	}
	return rc;
}

/* One file is what it is, wherever it was found: it may also be a comparison. */
static bool are_few(const struct file_list *files, const struct options *options)
{
	return !options_ask_trend(options) && !(files->has_found && options_of_trend(options)) &&
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
		inputs->is_found_alone = files.has_found && inputs->dump_count == 1;
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
