/*
 * What hdiff is given: dumps to be compared, or a comparison that was printed.
 *
 * What a file lacks is said while it is read, a line for each thing. A file that is cut short is used
 * as far as it goes, and lines that break the rules are left out: is_partial then tells that not all
 * is there, and whoever uses the numbers must know.
 */
#ifndef DIFF_INPUTS_H
#define DIFF_INPUTS_H

#include <stdbool.h>
#include <stdio.h>

#include "core/err.h"
#include "diff/match/match.h"
#include "diff/options.h"
#include "diff/read/sum.h"

struct inputs {
	struct sums *dumps; /* as many as the options name */
	size_t dump_count;
	struct comparison comparison;
	bool is_partial;
};

/* Reads what the options name and compares it. Release input in any case. 0 or an error; -ERR_USAGE
 * also when a printed comparison is not alone. */
int inputs_read(struct inputs *inputs, const struct options *options, FILE *say, struct err *err);
void inputs_release(struct inputs *inputs);

#endif
