/* hdiff as a function, and its actions on a recording. */
#ifndef DIFF_HDIFF_H
#define DIFF_HDIFF_H

#include <stdio.h>

#include "core/base/err.h"
#include "diff/options.h"
#include "diff/query/view.h"
#include "diff/report/report.h"

/* Actions on a recording other than comparing. They report defects of the recording, and fill `err`
 * on failure. */

int run_list(const struct options *options, FILE *messages, struct err *err);

/* Writes the state at a moment of a recording as a dump. Writes single blocks if the recording
 * contains addresses, otherwise sums per stack. */
int run_extract(const struct options *options, FILE *messages, struct err *err);

/* Reads a chart of the view's stacks from the recording in `file`. Returns NULL and fills `err` on
 * failure. */
struct chart_reading *chart_read(const struct options *options, const struct view *view,
	enum chart_kind kind, const char *file, struct err *err);
const struct chart *chart_of(const struct chart_reading *reading);
void chart_free(struct chart_reading *reading); /* NULL is allowed */

/* Writes the requested chart of the view's stacks. Reads the recording in `file`. */
int run_chart(
	const struct options *options, const struct view *view, const char *file, struct err *err);

/* Runs hdiff. `argv` excludes the program's name. Messages go to `messages`; an error is one line.
 * Returns the exit status: 0 success, 1 growth over a limit, 2 failure. Called by main() and
 * tests. */
int hdiff_run(int argc, char **argv, FILE *messages);

#endif
