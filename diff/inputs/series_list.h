/* Series: which dumps are compared with which. */
#ifndef DIFF_SERIES_LIST_H
#define DIFF_SERIES_LIST_H

#include "diff/inputs.h"

/*
 * Puts inputs->dumps in order, releases those that are not wanted, and fills the series but for their
 * comparisons, as the options ask for. Without is_trend there are one or two dumps, of which one series
 * is made that is none. 0;
 * -ERR_USAGE: nothing is left, or there is no series of that number; -ERR_NOMEM.
 */
int series_list_make(struct inputs *inputs, const struct options *options, bool is_trend, FILE *say,
	struct err *err);

#endif
