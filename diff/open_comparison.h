/*
 * A printed comparison among the arguments, and what is to be said about it.
 */
#ifndef DIFF_OPEN_COMPARISON_H
#define DIFF_OPEN_COMPARISON_H

#include <stdio.h>

#include "core/err.h"
#include "core/source.h"
#include "diff/match.h"

/* 1 when a printed comparison comes next in source, 0 when not, or an error of source_peek(). */
int comparison_is_next(struct source *source, struct err *err);

/* Opens path as *source (the caller closes it) if a printed comparison is there; else *source is
 * left alone, and path can be read from its start: what can be read but once is not looked at. 0 or
 * an error of source_open() or source_peek(). */
int comparison_open(struct source **source, const char *path, struct err *err);

/* comparison_read() that prints its warnings and what it left out, one line each. */
int comparison_read_aloud(struct comparison *comparison, struct source *source, unsigned base,
	FILE *say, struct err *err);

#endif
