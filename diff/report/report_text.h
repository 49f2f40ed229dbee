/* Declarations shared by the files that write the report for people. */
#ifndef DIFF_REPORT_REPORT_TEXT_H
#define DIFF_REPORT_REPORT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/memory.h"
#include "core/dump/model.h"
#include "core/io/out.h"
#include "diff/query/view.h"
#include "diff/read/frame.h"
#include "diff/report/report.h"
#include "diff/report/spark.h"
#include "diff/trend/trend.h"

struct text_report {
	struct out *out;
	const struct report *whole;
	const struct view *view;
	const struct comparison *comparison;
	bool is_single; /* OLD does not exist, so figures are sizes and not growth */
	unsigned columns;
	struct spark spark;
	struct buf word; /* scratch */
	struct frames frames;
};

/* Widths of columns: a row's number, "+1023.9 MiB" and "+123,456". */
enum { TEXT_NUMBER = 4, TEXT_BYTES = 11, TEXT_BLOCKS = 10 };

/* Starts a colour, or ends it with "0". Writes nothing without colours. */
void report_text_colour(struct text_report *text, const char *code);

/* report_text_bytes() writes "+12.3 MiB" in the colour for growth or for shrinking,
 * report_text_blocks() writes "+1,234". Both are right-justified. */
void report_text_bytes(struct text_report *text, const struct change *change, unsigned width);
void report_text_blocks(struct text_report *text, const struct change *change, unsigned width);

/* Writes "+12.3 MiB, +1,234 blocks". */
void report_text_sum(struct text_report *text, const struct change *change);

/* Like report_text_sum(), but for a sum that includes blocks without a row. If a printed comparison
 * lacks rows, writes '?' for the number of blocks. */
void report_text_rest(struct text_report *text, const struct change *change);

/* Writes "+28.4 GiB/h (11.8 to 50.8)". All three numbers have the same unit, which is chosen for
 * the rate or, if the rate is 0, for the bounds. */
void report_text_rate(
	struct text_report *text, const struct trend *trend, bool with_bounds, unsigned width);

/* Writes a trend: "leaks, +28.4 GiB/h (11.8 to 50.8)", and its spark line. */
void report_text_trend(
	struct text_report *text, const struct trend *trend, const struct block_totals *totals);

/* Appends "parse.cpp:41", or nothing if the place is unknown. */
void report_text_add_place(struct buf *word, const struct frame *frame);

/* Appends the function's name. Includes the module's name if `with_module` is set or the source
 * file is unknown. */
void report_text_add_function(struct buf *word, const struct frame *frame, bool with_module);

/* Writes the lines about the inputs. */
void report_text_head(struct text_report *text);

/* Writes a table of the heaps. */
void report_text_heaps(struct text_report *text);

/* report_text_crossings() writes a table of the blocks that one thread allocated and another freed,
 * in a view grouped by thread. report_text_freers() writes which threads freed, if that is known. */
void report_text_crossings(struct text_report *text);
void report_text_freers(struct text_report *text, const struct window_sums *sums);

/* Writes the stack of row number `shown` of the view. */
void report_text_stack(struct text_report *text, size_t shown);

#endif
