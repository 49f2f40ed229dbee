/*
 * A prefix that a program or a person put before each line of a dump or a comparison.
 *
 * Build servers put time stamps before lines, "findstr /n" and editors their numbers, and mail programs
 * marks such as "| ". A prefix is found only if every line of data has it in the same form. Quotes
 * (">") are left to pasted.h.
 */
#ifndef CORE_DUMP_LINE_PREFIX_H
#define CORE_DUMP_LINE_PREFIX_H

#include <stdbool.h>
#include <stddef.h>

enum line_prefix_kind {
	PREFIX_NONE,
	PREFIX_TIME, /* "2026-05-04T09:01:00.0000003Z " */
	PREFIX_NUMBER, /* "12:", which increases */
	PREFIX_MARK, /* "| ", ": " or "KM> " */
};

#define PREFIX_MARK_BYTES 8

struct line_prefix {
	enum line_prefix_kind kind;
	char mark[PREFIX_MARK_BYTES]; /* for PREFIX_MARK, without the blank */
};

/* Looks for a prefix in the start of a text. Returns false if the text has none. */
bool line_prefix_find(struct line_prefix *prefix, const char *text, size_t len);

/* Returns the length of a line's prefix, or 0 if the line has none. */
size_t line_prefix_bytes(const struct line_prefix *prefix, const char *line, size_t len);

#endif
