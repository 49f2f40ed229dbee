/* hdiff's run, and its actions on a recording. */
#ifndef DIFF_HDIFF_H
#define DIFF_HDIFF_H

#include <stdio.h>

#include "core/base/err.h"
#include "diff/options.h"
#include "diff/query/view.h"
#include "diff/report/report.h"

/* Other actions on a recording. Each fills `err` and reports the recording's defects. */

int run_list(const struct options *options, FILE *say, struct err *err);

/* Writes the state at a moment of a recording as a dump: single blocks if the recording has their
 * addresses, otherwise the sums of each stack. */
int run_extract(const struct options *options, FILE *say, struct err *err);

/* Reads a chart of the view's stacks from the recording in `file`. Returns NULL and fills `err` on
 * failure. */
struct chart_reading *chart_read(const struct options *options, const struct view *view,
	enum chart_kind kind, const char *file, struct err *err);
const struct chart *chart_of(const struct chart_reading *reading);
void chart_free(struct chart_reading *reading); /* NULL is allowed */

/* Writes the requested chart of the view's stacks, from the recording in `file`. */
int run_chart(
	const struct options *options, const struct view *view, const char *file, struct err *err);

/* Runs hdiff with argv, without argv[0]. Messages go to the given stream; an error takes one line.
 * Returns the exit status: 0 success, 1 growth over a limit, 2 failure. main() and tests call
 * this. */
int hdiff_run(int argc, char **argv, FILE *say);

#endif
