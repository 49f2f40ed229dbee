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
 * The lines of a printed comparison, UMDH's or our own, one at a time. A line is read by its
 * words, never by columns: they differ from version to version and move with large values.
 *
 * A file of UMDH's does not say whether its numbers are hexadecimal or decimal. Each is therefore
 * read both ways at once, and whoever has seen the whole file chooses.
 */

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

/* True for what only dumps hold: entries, headings, notes. */
bool line_is_of_dump(struct words line);

/* True when text begins with prefix, ends with suffix, is text. */
bool words_start(struct words words, const char *prefix);
bool words_end(struct words words, const char *suffix);
bool words_equal(struct words words, const char *text);

/* words without blanks around them. */
struct words words_trim(struct words words);

/* True when NEW - OLD is what the text says, in this reading, and all fit into 63 bits. */
bool growth_holds(const struct growth_text *growth, int reading);

/* The same for REQUESTED + OVERHEAD = SUM; the first of them alone just has to fit. */
bool total_holds(const struct total_text *total, int reading);

/* A part of the total with its sign: what grew is positive. The total must hold. */
int64_t total_part(const struct total_text *total, int part, int reading);

/*
 * The rows of a printed comparison while it is read, and what becomes of them: a struct
 * comparison, in which equal stacks are one row.
 *
 * Texts live in the comparison's arena; everything else is released with the rows.
 */

struct read_row {
	uint64_t line; /* its first */
	const char *id;
	bool has_counts; /* the second line is there: it alone tells OLD's number of blocks */
	bool is_own; /* its stack is not all there: equal to no other */
	struct growth_text bytes, counts;
	struct number count;
	size_t frame_at, frame_count; /* in the rows' frames */
};

struct read_rows {
	struct arena *arena;
	struct read_row *items;
	size_t count, cap;
	uint32_t *frames; /* numbers in known; of all rows, one behind the other */
	size_t frame_count, frame_cap;
	/* Every frame once, and its number by its text. */
	struct frame *known;
	size_t known_count, known_cap;
	bool by_id; /* equal stacks with different ids are different rows */
	bool has_code_page; /* there are names that are not UTF-8 */
	struct table numbers;
};

void read_rows_init(struct read_rows *rows, struct arena *arena);
void read_rows_release(struct read_rows *rows);

/* Each adds one item at the end. */
void read_rows_add(struct read_rows *rows, const struct read_row *row);
void read_rows_frame(struct read_rows *rows, struct words text);

/* Whether a row's numbers agree with each other, read this way. */
bool read_row_holds(const struct read_row *row, int reading);

/*
 * Fills the comparison's rows and totals from all rows that hold in this reading and fit into the
 * sum, merging equal ones; those that cancel are left out, the others come in order of growth and,
 * where that is the same, in the order of the file. refuse() is told of each row that was not
 * taken.
 */
void read_rows_settle(struct read_rows *rows, int reading, struct comparison *comparison,
	void (*refuse)(void *ctx, uint64_t line, const char *why), void *ctx);

/*
 * Completes the totals of a comparison, which are those of its rows, to what the total line says,
 * and sets lacks_rows when that is more than the rows tell. Only growth is told of what has no
 * rows: it counts to the side that has more. True when the rows add up to the line.
 */
bool read_total_settle(const struct total_text *total, int reading, struct comparison *comparison);

#endif
