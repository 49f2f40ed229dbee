/*
 * Spark lines: a series as one line of small bars, scaled between the lowest and the highest number
 * of the series.
 *
 * A line has one bar per snapshot if there is room. Otherwise, neighbouring snapshots are merged
 * and their mean is shown. '|' separates the parts of a series. All lines of a trend have the same
 * layout. */
#ifndef DIFF_REPORT_SPARK_H
#define DIFF_REPORT_SPARK_H

#include <stddef.h>

#include "core/dump/model.h"
#include "core/io/out.h"
#include "diff/trend/trend.h"

enum spark_style {
	SPARK_AUTO, /* UTF-8 if the terminal can show it, otherwise ASCII */
	SPARK_UTF8,
	SPARK_ASCII,
	SPARK_NONE,
};

#define SPARK_WIDTH 60 /* maximum number of columns */

struct spark {
	enum spark_style style;
	const struct trend_axis *axis; /* borrowed */
	size_t count; /* number of columns */
	struct spark_column {
		/* range of snapshots that are merged in the column; if `count` is 0, the column
		 * separates two parts */
		size_t first, count;
	} columns[SPARK_WIDTH];
};

/* Computes the layout of a trend's lines, which are at most `width` (1 to SPARK_WIDTH) columns
 * wide. Parts are separated only if the width is enough for separators. */
void spark_make(
	struct spark *spark, const struct trend_axis *axis, enum spark_style style, size_t width);

/* Prints the line for sums[0..axis->count), in spark->count columns. The line shows requested
 * bytes, or numbers of blocks if the series is judged by its blocks. Prints nothing for
 * SPARK_NONE. */
void spark_print(struct out *out, const struct spark *spark, const struct block_totals *sums);

#endif
