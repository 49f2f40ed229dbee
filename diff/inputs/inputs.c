#include "diff/inputs.h"

#include <stdlib.h>

#include "diff/inputs/file_list.h"
#include "diff/inputs/input_say.h"
#include "diff/inputs/inputs_few.h"
#include "diff/inputs/inputs_many.h"
#include "diff/read/sum_reader.h"

/* Of a sample and of all there is, growth may be nothing but the sample's error. */
static int check_samples(struct inputs *inputs, const struct series *series, FILE *say)
{
	struct sums *dumps = &inputs->dumps[series->first], *newest = &dumps[series->count - 1];
	const char *words =
		"it was sampled in another way than the dump it is compared with: growth may "
		"be an error of the estimates";

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
	return !options_ask_trend(options) &&
	       ((files->count == 1 && !input_is_output(options, files->items[0].path)) ||
		       (files->count == 2 && !files->has_found));
}

int inputs_read(struct inputs *inputs, const struct options *options, FILE *say, struct err *err)
{
	struct file_list files;
	int rc;

	*inputs = (struct inputs){0};
	rc = file_list_make(&files, options->paths.items, options->paths.count, err);
	if (!rc && are_few(&files, options))
		rc = inputs_read_few(inputs, options, &files, say, err);
	else if (!rc)
		rc = inputs_read_many(inputs, options, &files, say, err);
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
	free(inputs->series);
	free(inputs->dumps);
}
