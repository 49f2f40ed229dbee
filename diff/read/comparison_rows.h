/*
 * The rows of a printed comparison while it is read, and what becomes of them: a struct
 * comparison, in which equal stacks are one row.
 *
 * Texts live in the comparison's arena; everything else is released with the rows.
 */
#ifndef DIFF_COMPARISON_ROWS_H
#define DIFF_COMPARISON_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/table.h"
#include "diff/read/comparison_line.h"
#include "diff/match/match.h"

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

#endif
