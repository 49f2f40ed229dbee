/*
 * Spark lines: a series as one line of small bars, each as high as its number is between the lowest
 * and the highest of the series.
 *
 * A line has as many bars as there are snapshots, as long as these fit in its width; where there are
 * more, neighbours are put together and their mean is shown. '|' stands between the parts of a
 * series. All lines of one trend look alike, whatever numbers they show.
 */
#ifndef DIFF_SPARK_H
#define DIFF_SPARK_H

#include <stddef.h>

#include "core/model.h"
#include "core/out.h"
#include "diff/trend/trend.h"

enum spark_style {
	SPARK_AUTO, /* UTF8 where that can be shown, else ASCII */
	SPARK_UTF8,
	SPARK_ASCII,
	SPARK_NONE,
};

#define SPARK_WIDTH 60 /* columns at most */

struct spark {
	enum spark_style style;
	const struct trend_axis *axis; /* borrowed */
	size_t count; /* of columns */
	struct spark_column {
		size_t first, count; /* snapshots that are put together; none: a new part begins */
	} columns[SPARK_WIDTH];
};

/* Lays the lines of a trend out, in width columns (1 to SPARK_WIDTH) at most. Where not even one for
 * each part has room, parts are not told apart. */
void spark_make(
	struct spark *spark, const struct trend_axis *axis, enum spark_style style, size_t width);

/* Prints the line of the requested bytes of[0..axis->count), or of the blocks where that is what is judged:
 * spark->count columns; of SPARK_NONE nothing. */
void spark_put(struct out *out, const struct spark *spark, const struct census *of);

#endif
