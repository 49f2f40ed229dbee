/*
 * Whether the numbers of a printed comparison are hexadecimal or decimal. UMDH does not say: what
 * is seen of the file is weighed.
 */
#ifndef DIFF_COMPARISON_BASE_H
#define DIFF_COMPARISON_BASE_H

#include <stdbool.h>
#include <stddef.h>

#include "diff/read/comparison_rows.h"

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

#endif
