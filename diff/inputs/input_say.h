/* What is said of the files that hdiff is given: a line each, whatever their names and texts hold. */
#ifndef DIFF_INPUT_SAY_H
#define DIFF_INPUT_SAY_H

#include <stdio.h>

#include "core/err.h"
#include "diff/read/sum.h"

/* "hdiff: PLACE: warning: WHAT TEXT". 0 or -ERR_NOMEM, as all of these. */
int say_warning(FILE *say, const char *place, const char *what, const char *text);

/* That a file is not used, and why. */
int say_left_out(FILE *say, const char *place, const char *why);
int say_damaged(FILE *say, const char *place, const struct err *why);

/* What a dump lacks that is used. */
int say_warnings(FILE *say, const char *name, const struct sums *sums);

/* What the dumps of a series lack, each thing once. */
int say_series_warnings(FILE *say, const struct sums *dumps, size_t count);

/* That it is cut short. */
int say_cut(FILE *say, const struct err *err);

#endif
