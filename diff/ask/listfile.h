/* Small text files that users write, one thing on a line: blank lines and lines that start with
 * '#' say nothing. */
#ifndef DIFF_LISTFILE_H
#define DIFF_LISTFILE_H

#include "core/err.h"

/* What to do with a line, without blanks at either end: returns 0 or a negative code, and fills
 * err. place is "file:line", for that; both texts are valid during the call only. */
typedef int listfile_line(void *ctx, const char *text, const char *place, struct err *err);

/* Reads the file at path to its end or to the first failure: 0, -ERR_OPEN, -ERR_READ, -ERR_NOMEM,
 * -ERR_USAGE for a line that is no text or too long, or what take returned. */
int listfile_read(const char *path, listfile_line *take, void *ctx, struct err *err);

#endif
