/*
 * A printed comparison among the arguments, and what is to be said about it.
 */
#ifndef DIFF_OPEN_COMPARISON_H
#define DIFF_OPEN_COMPARISON_H

#include <stdio.h>

#include "core/err.h"
#include "core/source.h"
#include "diff/match.h"

/* Opens path as *source (the caller closes it) if a printed comparison is there; else *source is
 * left alone, and path can be read from its start. 0 or an error of source_open(). */
int comparison_open(struct source **source, const char *path, struct err *err);

/* comparison_read() that prints its warnings and what it left out, one line each. */
int comparison_read_aloud(struct comparison *comparison, struct source *source, unsigned base,
	FILE *say, struct err *err);

#endif
