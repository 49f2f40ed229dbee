/*
 * What hdiff is given: dumps to be compared or added up, or a comparison that was printed.
 *
 * One or two files by name are compared, two of one process, where they tell it and their times, in
 * that order. More, or those of folders and patterns (diff/inputs/file_list.h), are put in the order
 * of their own times and, when there are more than two of them, or those found are of two processes,
 * or something is asked for that only a trend has, split into series, one for each process. Of many,
 * what is no dump or damaged is left out, and of what is outside of --since and --until no more than
 * the head is read.
 *
 * What a file lacks is said, a line for each thing. A file given by name that is cut short is used as
 * far as it goes, and lines that break the rules are left out, or, of many, all of it: is_partial then
 * tells that not all is there, and whoever uses the numbers must know.
 */
#ifndef DIFF_INPUTS_H
#define DIFF_INPUTS_H

#include <stdbool.h>
#include <stdio.h>

#include "core/err.h"
#include "diff/match/match.h"
#include "diff/options.h"
#include "diff/read/stack_store.h"
#include "diff/read/sum.h"

/* Dumps that are compared with each other: two, or of a trend those of one process, or of several
 * that have the same image. */
struct series {
	size_t first, count; /* of the dumps */
	size_t number, of; /* among all series of a trend, from 1; 0: it is none */
	struct trend_axis axis; /* of a trend */
	int64_t *times_ms; /* what the axis points to, or NULL */
	uint32_t *parts;
	struct comparison comparison;
};

struct inputs {
	struct sums *dumps; /* series by series, each in its order */
	size_t dump_count;
	struct stack_store *store; /* of many dumps: the stacks that they have in common */
	struct series *series; /* at least one, when all was well */
	size_t series_count;
	bool is_partial;
	const char *growth_unknown; /* why no growth can be told from these dumps, or NULL */
	const char *
		*left_out; /* paths of files that are not used, but those that were given twice */
	size_t left_out_count, left_out_cap;
	struct arena paths; /* what these are in */
};

/* Remembers that a file is left out. 0 or -ERR_NOMEM. */
int inputs_leave_out(struct inputs *inputs, const char *path);

/* Reads what the options name and compares it. Release input in any case. 0 or an error; -ERR_USAGE
 * also when a printed comparison is not alone. */
int inputs_read(struct inputs *inputs, const struct options *options, FILE *say, struct err *err);
void inputs_release(struct inputs *inputs);

#endif
