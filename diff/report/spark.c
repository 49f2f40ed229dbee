#include "diff/report/spark.h"

#include <assert.h>
#include <stdbool.h>

#include "diff/match/series_ends.h"

#define LEVELS 8

static const char *const blocks[LEVELS] = {
	"\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588"};
static const char *const letters[LEVELS] = {".", ":", "-", "=", "+", "*", "#", "@"};

/* ---------------------------------------------------------------- columns */

/* The end of the part that a snapshot is of. */
static size_t part_end(const struct trend_axis *axis, size_t at)
{
	size_t end = at + 1;

	if (!axis->parts)
		return axis->count;
	while (end < axis->count && axis->parts[end] == axis->parts[at])
		end++;
	return end;
}

/* How many columns that many snapshots at once make, with a mark between parts. */
static size_t columns_of(const struct trend_axis *axis, size_t at_once)
{
	size_t count = 0;

	for (size_t at = 0, end; at < axis->count; at = end) {
		end = part_end(axis, at);
		count += (at != 0) + (end - at + at_once - 1) / at_once;
	}
	return count;
}

/* Snapshots from at to end, in columns of at_once. */
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
	if (columns_of(axis, at_once) > width) { /* so many parts */
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

/* ---------------------------------------------------------------- bars */

/* What is drawn. */
struct drawing {
	const struct spark *spark;
	const struct census *of;
	bool is_of_blocks;
};

static double mean(const struct drawing *drawing, const struct spark_column *column)
{
	double sum = 0;

	for (size_t i = 0; i < column->count; i++) {
		const struct census *sums = &drawing->of[column->first + i];

		sum += (double)(drawing->is_of_blocks ? sums->block_count : sums->requested_bytes);
	}
	return sum / (double)column->count;
}

/* What is shown, from the lowest to the highest. */
static void find_range(const struct drawing *drawing, double *low, double *high)
{
	const struct spark *spark = drawing->spark;
	bool is_first = true;

	for (size_t i = 0; i < spark->count; i++) {
		double value;

		if (!spark->columns[i].count)
			continue;
		value = mean(drawing, &spark->columns[i]);
		*low = is_first || value < *low ? value : *low;
		*high = is_first || value > *high ? value : *high;
		is_first = false;
	}
}

static size_t level_of(double value, double low, double high)
{
	size_t level = high > low ? (size_t)((value - low) / (high - low) * LEVELS) : 0;

	return level < LEVELS ? level : LEVELS - 1;
}

void spark_put(struct out *out, const struct spark *spark, const struct census *of)
{
	const char *const *levels = spark->style == SPARK_UTF8 ? blocks : letters;
	struct drawing drawing = {spark, of, false};
	double low = 0, high = 0;

	if (spark->style == SPARK_NONE)
		return;
	drawing.is_of_blocks = series_by_blocks(spark->axis, of);
	find_range(&drawing, &low, &high);
	for (size_t i = 0; i < spark->count; i++) {
		const struct spark_column *column = &spark->columns[i];

		out_text(out,
			column->count ? levels[level_of(mean(&drawing, column), low, high)] : "|");
	}
}
