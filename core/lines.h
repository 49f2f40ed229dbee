/*
 * Lines of a source, through a window that moves over it.
 *
 * The window always holds what is left of the source or 2 * DUMP_LINE_MAX bytes, whichever is
 * less, when a line is asked for. Behind what was read are 16 zero bytes, so that looking at a few
 * bytes at once needs no care at the end.
 */
#ifndef CORE_LINES_H
#define CORE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/dump.h"

struct lines {
	const struct dump_source *source;
	struct err *err;
	char *window, *at, *end; /* what was read and not yet used: at to end */
	bool at_eof; /* the source has no more than that */
	bool no_newline; /* the last line had no line end */
	uint64_t number; /* of the last line */
};

struct line {
	const char *text;
	size_t len; /* without the line end */
	bool is_long; /* over DUMP_LINE_MAX: len tells what is at hand, the rest is passed over */
};

/* 0 or -ERR_NOMEM. source and err must outlive lines. */
int lines_init(struct lines *lines, const struct dump_source *source, struct err *err);
void lines_release(struct lines *lines);

/* Fills the window up, which moves what it holds. 0 or the source's error. */
int lines_refill(struct lines *lines);

/* 1 and the next line (valid until the one after it), 0 at the end, or the source's error. */
int lines_next(struct lines *lines, struct line *line);

#endif
