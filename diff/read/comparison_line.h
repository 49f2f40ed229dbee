/*
 * The lines of a printed comparison, UMDH's or our own, one at a time. A line is read by its
 * words, never by columns: they differ from version to version and move with large values.
 *
 * A file of UMDH's does not say whether its numbers are hexadecimal or decimal. Each is therefore
 * read both ways at once, and whoever has seen the whole file chooses.
 */
#ifndef DIFF_COMPARISON_LINE_H
#define DIFF_COMPARISON_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ways to read a number; both index what holds one of each. */
enum { AS_HEX, AS_DECIMAL, READINGS };

struct number {
	uint64_t value[READINGS];
	bool fits[READINGS]; /* it has such digits only, and at most 64 bits */
};

/* "SIGN GROWTH ( NEW - OLD)" */
struct growth_text {
	bool is_minus;
	struct number growth, new, old;
	/* OLD is padded to as many columns as UMDH gives it in this reading. */
	bool is_padded[READINGS];
};

/* Not NUL-terminated; part of the line. */
struct words {
	const char *text;
	size_t len;
};

/* "GROWTH-TEXT COUNT allocs BackTraceID", or "GROWTH-TEXT BackTraceID allocations", which has no
 * count. */
struct row_text {
	struct growth_text growth;
	struct number count;
	struct words id; /* without blanks around it; not empty */
};

/* "Total increase == REQUESTED requested + OVERHEAD overhead = SUM", or "... == REQUESTED". */
struct total_text {
	bool is_decrease, has_overhead;
	bool is_minus[3];
	struct number part[3];
};

enum line_kind {
	LINE_BLANK, /* nothing, or nothing but blanks */
	LINE_COMMENT, /* "// ..." */
	LINE_CHATTER, /* what the symbol engine says in between */
	LINE_BYTES, /* first line of a row */
	LINE_COUNTS, /* second line of a row */
	LINE_BAD_ROW, /* begins like a row and does not go on like one */
	LINE_TOTAL,
	LINE_BAD_TOTAL,
	LINE_FRAME, /* a TAB and something */
	LINE_OTHER, /* anything else; in logs of old, frames */
};

/* Says what a line (without its line end) is; fills row of BYTES and COUNTS, total of TOTAL. */
enum line_kind line_parse(
	const char *text, size_t len, struct row_text *row, struct total_text *total);

/* True when text begins with prefix. */
bool words_start(struct words words, const char *prefix);

bool words_equal(struct words words, const char *text);

/* Takes a number with its sign, '+' or '-', and the blanks before it off words. False: there is
 * none, and words are as they were. */
struct signed_number {
	bool is_minus;
	struct number number;
};
bool words_signed(struct words *words, struct signed_number *number);

/* Whether it fits into 63 bits in this reading, and what it is then. */
bool signed_holds(const struct signed_number *number, int reading);
int64_t signed_value(const struct signed_number *number, int reading);

/* words without blanks around them. */
struct words words_trim(struct words words);

/* True when NEW - OLD is what the text says, in this reading, and all fit into 63 bits. */
bool growth_holds(const struct growth_text *growth, int reading);

/* The same for REQUESTED + OVERHEAD = SUM; the first of them alone just has to fit. */
bool total_holds(const struct total_text *total, int reading);

/* A part of the total with its sign: what grew is positive. The total must hold. */
int64_t total_part(const struct total_text *total, int part, int reading);

/* True for what only dumps hold: entries, headings, notes. */
bool line_is_of_dump(struct words line);

#endif
