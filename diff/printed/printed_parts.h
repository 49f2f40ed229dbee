/*
 * The lines of a printed comparison, UMDH's or our own, one at a time. A line is read by its
 * words, never by columns: they differ from version to version and move with large values.
 *
 * A file of UMDH's does not say whether its numbers are hexadecimal or decimal. Each is therefore
 * read both ways at once, and whoever has seen the whole file chooses.
 */
#ifndef DIFF_PRINTED_PRINTED_PARTS_H
#define DIFF_PRINTED_PRINTED_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/hash.h"
#include "diff/match/match.h"
#include "diff/printed/printed.h"

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

/*
 * The rows of a printed comparison while it is read, and what becomes of them: a struct
 * comparison, in which equal stacks are one row.
 *
 * Texts live in the comparison's arena; everything else is released with the rows.
 */

struct read_row {
	uint64_t line; /* its first */
	enum row_kind kind;
	bool has_counts; /* the second line is there: it alone tells OLD's number of blocks */
	bool is_own; /* its stack is not all there: equal to no other */
	struct growth_text bytes, counts;
	struct number count;
	size_t candidate_count;
	size_t frame_at, frame_count; /* in the rows' frames */
	size_t id_at, id_count; /* in the rows' ids; the first is the label */
};

struct read_rows {
	struct arena *arena;
	struct read_row *items;
	size_t count, cap;
	/* Of all rows, one behind the other: numbers in known, or READ_PART where a further
	 * candidate starts. */
	uint32_t *frames;
	size_t frame_count, frame_cap;
	const char **ids;
	size_t id_count, id_cap;
	/* Every frame once, and its number by its text. */
	struct frame *known;
	size_t known_count, known_cap;
	struct table numbers;
};

#define READ_PART UINT32_MAX

void read_rows_init(struct read_rows *rows, struct arena *arena);
void read_rows_release(struct read_rows *rows);

/* Each adds one item at the end. 0 or -ERR_NOMEM. A row without frames is given its kind. */
int read_rows_add(struct read_rows *rows, const struct read_row *row);
int read_rows_frame(struct read_rows *rows, struct words text);
int read_rows_part(struct read_rows *rows);
int read_rows_id(struct read_rows *rows, struct words id);

/* Turns the stack round that was added last, from that frame on; each candidate by itself. */
void read_rows_turn(struct read_rows *rows, size_t frame_at);

/* Whether a row's numbers agree with each other, read this way. */
bool read_row_holds(const struct read_row *row, int reading);

/* How many rows do not tell OLD's number of blocks though there are such. */
size_t read_rows_uncounted(const struct read_rows *rows, int reading);

/* What the rows that hold add up to, NEW - OLD, modulo 2^64. */
uint64_t read_rows_growth(const struct read_rows *rows, int reading);

/*
 * Fills the comparison's rows and totals from all rows that hold in this reading and fit into the
 * sum, merging equal ones; those that cancel are left out, the others come in order of growth and,
 * where that is the same, in the order of the file. refuse() is told of each row that was not
 * taken and may stop it all with a negative code. 0, that code or -ERR_NOMEM.
 */
struct read_refusal {
	void *ctx;
	int (*refuse)(void *ctx, uint64_t line, const char *why);
};
int read_rows_settle(const struct read_rows *rows, int reading, struct comparison *comparison,
	const struct read_refusal *refusal);

/*
 * Whether the numbers of a printed comparison are hexadecimal or decimal. UMDH does not say: what
 * is seen of the file is weighed.
 */

/* All zero: nothing was seen. */
struct base_signs {
	bool is_said[READINGS]; /* by hdiff's own header */
	size_t holds[READINGS]; /* lines that agree with themselves in this reading only */
	bool has_letters; /* digits from a to f */
	size_t padded[READINGS]; /* numbers that are padded as UMDH does in this reading */
	bool is_unsure; /* numbers that the readings differ in */
};

/* Each looks at a row or a total that holds in one reading at least. */
void base_see_row(struct base_signs *signs, const struct read_row *row);
void base_see_total(struct base_signs *signs, const struct total_text *total);

/* Whether the rows add up to what the total line (NULL: there is none) says. */
bool base_adds_up(const struct read_rows *rows, const struct total_text *total, int reading);

/* The reading that the signs are for. *is_guess: nothing tells, and it matters. */
int base_choose(const struct base_signs *signs, const struct read_rows *rows,
	const struct total_text *total, bool *is_guess);

/*
 * What there is to say of a printed comparison while it is read: told to whoever asked for it, and
 * kept for reports.
 */

struct reader_voice {
	struct comparison *to; /* keeps what is said */
	const char *name; /* of the file */
	const struct read_words *words;
	struct err *err;
	size_t skips;
};

/* A sentence on what the file lacks. 0, -ERR_NOMEM or what the words' own function returned. */
int voice_warn(struct reader_voice *voice, const char *text);

/* A line or row that is left out. 0; as above; -ERR_BAD_LINE when nobody is told of such, or when
 * there were too many. */
int voice_skip(struct reader_voice *voice, uint64_t line, const char *why);

/*
 * What hdiff's own reports say in words that UMDH's comparisons do not have, and the comments by
 * which either is known.
 */

/* Whether a comment is of the header of a comparison and of nothing else; whether that is hdiff's
 * own. */
bool note_is_header(struct words comment);
bool note_is_ours(struct words comment);

/* Why a report of our own that begins like this is not read, or NULL; is_behind: behind the total
 * line of another. */
const char *note_refusal(struct words comment, bool is_behind);

/* "// frames: outermost first" */
bool note_is_inverted(struct words comment);

/* Sets the one that a comment of the header names, if it does; the others are left alone. */
void note_base(struct words comment, bool is_said[READINGS]);

/* "//     ambiguous: one of 3 stacks, unknown which": of the row that follows. */
bool note_is_ambiguous(struct words comment);

/* "//     also BackTrace1 BackTrace2 and 5 more": of the row that follows, too. Leaves what
 * note_id() takes the ids from, one by one: false at the end. */
bool note_also(struct words *comment);
bool note_id(struct words *rest, struct words *id);

/* "// NEW: ..., CUT SHORT: sums are of what is there", or the same behind a snapshot of a trend */
bool note_is_of_cut(struct words comment);

/* "// 5 more stacks are not shown; they add up to +500 bytes, -5 blocks" */
struct rest_text {
	struct signed_number bytes, blocks;
};
bool note_rest(struct words comment, struct rest_text *rest);

/* "//    +500      +40     +5  all": what all blocks add up to when the rows are but a part of them.
 * Overhead may be "?". */
struct all_text {
	bool has_overhead;
	struct signed_number requested, overhead, blocks;
};
bool note_all(struct words comment, struct all_text *all);

/* What stands where a stack would. Fills kind and, of ROW_ONE_OF, how many there are. */
bool note_no_stack(struct words words, enum row_kind *kind, size_t *candidate_count);

/*
 * What a printed comparison says of the whole: its total line and, in reports of our own that show
 * a part of the stacks, how much they do not show.
 */

/* All zero: it says nothing. */
struct whole_text {
	bool has_total, has_rest, has_all;
	struct total_text total; /* of the rows and the rest */
	struct rest_text rest;
	struct all_text all; /* of more than these: of what was filtered out, too */
};

/* Takes what a comment of a report of our own says, if it is of the whole. */
void whole_note(struct whole_text *whole, struct words comment);

/*
 * Completes the totals of a comparison, which are those of its rows, to what the file says of the
 * whole, and sets lacks_rows when that is more than the rows tell. Only growth is told of what has
 * no rows: it counts to the side that has more. True when the rows and what the file itself leaves
 * out add up to its total line, and also when it has none.
 */
bool whole_settle(const struct whole_text *whole, int reading, struct comparison *comparison);

#endif
