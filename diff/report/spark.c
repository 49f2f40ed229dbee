/* Spark lines: computes the columns of a trend's lines, and prints the bars. */
#include "diff/report/spark.h"

#include <assert.h>
#include <math.h>

#include "diff/match/row_series.h"

#define LEVELS 8

static const char *const blocks[LEVELS] = {
	"\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588"};
static const char *const letters[LEVELS] = {".", ":", "-", "=", "+", "*", "#", "@"};

/* Returns the end of the part that a snapshot belongs to. */
static size_t part_end(const struct trend_axis *axis, size_t at)
{
	size_t end = at + 1;

	if (!axis->parts)
		return axis->count;
	while (end < axis->count && axis->parts[end] == axis->parts[at])
		end++;
	return end;
}

/* Returns the number of columns that are needed if each column has `at_once` snapshots and parts
 * are separated. */
static size_t columns_of(const struct trend_axis *axis, size_t at_once)
{
	size_t count = 0;

	for (size_t at = 0, end; at < axis->count; at = end) {
		end = part_end(axis, at);
		count += (at != 0) + (end - at + at_once - 1) / at_once;
	}
	return count;
}

/* Adds the snapshots [at, end), `at_once` snapshots per column. */
static void add_columns(struct spark *spark, size_t at, size_t end, size_t at_once)
{
	for (; at < end; at += at_once)
		spark->columns[spark->count++] =
			(struct spark_column){at, end - at < at_once ? end - at : at_once};
}

void spark_make(
	struct spark *spark, const struct trend_axis *axis, enum spark_style style, size_t width)
{
	size_t at_once = 1;

	assert(width && width <= SPARK_WIDTH);
	*spark = (struct spark){.style = style, .axis = axis};
	while (at_once < axis->count && columns_of(axis, at_once) > width)
		at_once++;
	if (columns_of(axis, at_once) > width) { /* too many parts for separators */
		add_columns(spark, 0, axis->count, (axis->count + width - 1) / width);
		return;
	}
	for (size_t at = 0, end; at < axis->count; at = end) {
		end = part_end(axis, at);
		if (at)
			spark->columns[spark->count++] = (struct spark_column){0};
		add_columns(spark, at, end, at_once);
	}
}

static double column_mean(
	const struct spark_column *column, const struct block_totals *sums, bool by_blocks)
{
	double sum = 0;

	for (size_t i = column->first; i < column->first + column->count; i++)
		sum += (double)(by_blocks ? sums[i].block_count : sums[i].requested_bytes);
	return sum / (double)column->count;
}

void spark_print(struct out *out, const struct spark *spark, const struct block_totals *sums)
{
	const char *const *levels = spark->style == SPARK_UTF8 ? blocks : letters;
	bool by_blocks = series_by_blocks(spark->axis, sums);
	double means[SPARK_WIDTH], low = INFINITY, high = -INFINITY;

	if (spark->style == SPARK_NONE)
		return;
	for (size_t i = 0; i < spark->count; i++) {
		if (!spark->columns[i].count)
			continue;
		means[i] = column_mean(&spark->columns[i], sums, by_blocks);
		low = means[i] < low ? means[i] : low;
		high = means[i] > high ? means[i] : high;
	}
	for (size_t i = 0; i < spark->count; i++) {
		size_t level = 0;

		if (spark->columns[i].count && high > low)
			level = (size_t)((means[i] - low) / (high - low) * LEVELS);
		level = level < LEVELS ? level : LEVELS - 1;
		out_text(out, spark->columns[i].count ? levels[level] : "|");
	}
}
