/* Files of other tools that hdiff reads like dumps: folded stacks and profiles for pprof. */
#ifndef DIFF_READ_FOREIGN_H
#define DIFF_READ_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"
#include "core/dump/source.h"
#include "diff/read/dump_sums.h"

/* Return true if a file that starts with these bytes has this form. */
bool folded_is(const char *bytes, size_t len);
bool pprof_is(const char *bytes, size_t len);

/*
 * Read a file of this form into sums, which the caller must release even after an error. `path` is
 * the user's name for the file. Return 0 or an error.
 *
 * Folded stacks have one line for each stack: the frames, separated by ';' and starting with the
 * outermost, then a blank and the number of bytes. The number of blocks is unknown. -ERR_CUT: the
 * compressed data is cut short, and `sums` contains everything before the cut.
 *
 * A profile, as pprof's profile.proto defines it, may have values of several types. The first of
 * these types that exists is read: inuse_space, alloc_space, the last one. It must be bytes. The
 * number of blocks comes from the type with "objects" in place of "space", and is unknown without
 * it. */
int folded_read(struct dump_sums *sums, const char *path, struct source *source, struct err *err);
int pprof_read(struct dump_sums *sums, const char *path, struct source *source, struct err *err);

#endif
