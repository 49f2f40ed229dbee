/* The lines and rows of a printed comparison while it is read. */
#ifndef DIFF_PRINTED_PRINTED_PARTS_H
#define DIFF_PRINTED_PRINTED_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/hash.h"
#include "diff/match/match.h"
#include "diff/printed/printed.h"

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

/*
 * The rows of a printed comparison while the file is read. At the end, equal stacks are merged, and
 * the rows are converted to a struct comparison.
 *
 * Strings live in the comparison's arena. Everything else is released with the rows. */

struct read_row {
	uint64_t line; /* number of the row's first line */
	const char *id;
	bool has_counts; /* the second line, which contains OLD's number of blocks, is present */
	bool is_own; /* the row's stack is incomplete, so it is never equal to another stack */
	struct growth_text bytes, counts;
	struct number count;
	size_t frame_at, frame_count; /* range in the frames of all rows */
};

struct read_rows {
	struct arena *arena;
	struct read_row *items;
	size_t count, cap;
	uint32_t *frames; /* frames of all rows in sequence, as indexes in `known` */
	size_t frame_count, frame_cap;
	/* Distinct frames; `numbers` maps a text to the index of its frame. */
	struct frame *known;
	size_t known_count, known_cap;
	bool by_id; /* equal stacks with different ids form separate rows */
	bool has_code_page; /* some names are not UTF-8 */
	struct table numbers;
};

void read_rows_init(struct read_rows *rows, struct arena *arena);
void read_rows_release(struct read_rows *rows);

void read_rows_add(struct read_rows *rows, const struct read_row *row);

/* Adds a frame. If the report is not ours and text other than a file follows the frame's offset,
 * removes this text and returns false. */
bool read_rows_frame(struct read_rows *rows, struct words text, bool is_ours);

/* Returns true if a row's numbers are consistent in this base. */
bool read_row_holds(const struct read_row *row, int reading);

/* Computes the comparison's rows and totals. Skips rows that are inconsistent in this base or make
 * the sum overflow, and calls refuse() for each. Merges equal rows and drops merged rows without
 * growth. Sorts the remaining rows by growth, then by their order in the file. */
void read_rows_finish(struct read_rows *rows, int reading, struct comparison *comparison,
	void (*refuse)(void *ctx, uint64_t line, const char *why), void *ctx);

/* Corrects the totals with the total line; before, they are the sums of the rows. Sets `lacks_rows`
 * if the total line includes stacks without rows. Only the growth of such stacks is known: a growth
 * is added to NEW, a decrease to OLD. Returns true if the rows add up to the total line. */
bool read_total_finish(const struct total_text *total, int reading, struct comparison *comparison);

#endif
