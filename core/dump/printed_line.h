/* Single lines of a printed comparison. */
#ifndef CORE_DUMP_PRINTED_LINE_H
#define CORE_DUMP_PRINTED_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Parsing single lines of a printed comparison made by UMDH or hdiff. A line is split into words.
 * Columns cannot be used: they differ between versions and shift with large values.
 *
 * A file from UMDH does not state whether its numbers are hexadecimal or decimal. Each number is
 * therefore parsed in both bases. The base is chosen after the whole file was read. */

/* Bases in which a number is parsed; indexes of arrays with one element per base. */
enum { AS_HEX, AS_DECIMAL, READINGS };

struct number {
	uint64_t value[READINGS];
	bool fits[READINGS]; /* the number has only digits of this base, and fits in 64 bits */
};

/* "SIGN GROWTH ( NEW - OLD)" */
struct growth_text {
	bool is_minus;
	struct number growth, now, old;
	/* OLD is padded to the width that UMDH uses in this base. */
	bool is_padded[READINGS];
};

/* Part of a line; not NUL-terminated. */
struct words {
	const char *text;
	size_t len;
};

/* "GROWTH-TEXT COUNT allocs BackTraceID", or "GROWTH-TEXT BackTraceID allocations" without a
 * count. */
struct row_text {
	struct growth_text growth;
	struct number count;
	struct words id; /* without surrounding blanks; not empty */
};

/* "Total increase == REQUESTED requested + OVERHEAD overhead = SUM", or "... == REQUESTED". */
struct total_text {
	bool is_decrease, has_overhead;
	bool is_minus[3];
	struct number part[3];
};

enum line_kind {
	LINE_BLANK, /* empty or only blanks */
	LINE_COMMENT, /* "// ..." */
	LINE_CHATTER, /* output of the symbol engine between lines */
	LINE_BYTES, /* first line of a row */
	LINE_COUNTS, /* second line of a row */
	LINE_BAD_ROW, /* begins like a row but is malformed */
	LINE_TOTAL,
	LINE_BAD_TOTAL,
	LINE_FRAME, /* a TAB and text */
	LINE_OTHER, /* any other line; in old logs, a frame */
};

/* Parses a line without its line end. Returns the line's kind. Fills `row` for LINE_BYTES and
 * LINE_COUNTS, and `total` for LINE_TOTAL. */
enum line_kind line_parse(
	const char *text, size_t len, struct row_text *row, struct total_text *total);

/* Returns true for lines that occur only in dumps: entries, headings, notes. */
bool line_is_of_dump(struct words line);

/* Returns true for a message of the symbol engine: "DBGHELP: module - kind", "BASE-END DBGHELP:
 * module - kind" and "SYMSRV:  text". */
bool line_is_message(struct words line);

/* Return true if `words` begins with a prefix, ends with a suffix, or equals a text. */
bool words_start(struct words words, const char *prefix);
bool words_end(struct words words, const char *suffix);
bool words_equal(struct words words, const char *text);

struct words words_trim(struct words words);

/* Returns true if GROWTH is NEW - OLD in this base, and all fit in 63 bits. */
bool growth_holds(const struct growth_text *growth, int reading);

/* Returns true if REQUESTED + OVERHEAD = SUM in this base. If only REQUESTED is present, it only
 * has to fit. */
bool total_holds(const struct total_text *total, int reading);

/* Returns a part of the total, positive for an increase. Requires total_holds(). */
int64_t total_part(const struct total_text *total, int part, int reading);

/* Returns true for a comment that hdiff's own reports begin with. */
bool line_is_ours(struct words comment);

/* Returns true for a comment that occurs only in the header of a comparison. */
bool line_is_header(struct words comment);

#endif
