/* The rows of a printed comparison while it is read. */
#ifndef DIFF_PRINTED_PRINTED_PARTS_H
#define DIFF_PRINTED_PRINTED_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/hash.h"
#include "core/dump/printed_line.h"
#include "diff/match/match.h"
#include "diff/printed/printed.h"

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
