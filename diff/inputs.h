/*
 * hdiff's inputs: dumps to compare or add up, or a printed comparison.
 *
 * One or two named files are compared. Two dumps of one process are sorted by time if both have a
 * pid and a time.
 *
 * More than two dumps form a trend. Two dumps also form a trend if they are of different processes
 * and were found in a folder or by a pattern. If an option requires a trend, any dumps form one.
 * The dumps of a trend are sorted by time and split into series, one per process. In a trend or a
 * sum, damaged files and files that are not dumps are left out. If a dump is outside the window of
 * --since and --until, only its head is read.
 *
 * Each defect of a file is reported in a line. A named file that is cut short is used up to the
 * cut. Malformed lines of a named file are skipped. `is_partial` is set if a named file lacks data.
 * In a sum, it is also set if a found dump lacks data. */
#ifndef DIFF_INPUTS_H
#define DIFF_INPUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "diff/file_list.h"
#include "diff/match/match.h"
#include "diff/options.h"
#include "diff/read/dump_sums.h"
#include "diff/read/stack_store.h"

/* Dumps that are compared with each other: two dumps or, in a trend, all dumps of one process or of
 * several processes with the same image. */
struct series {
	size_t first, count; /* range in inputs.dumps */
	size_t number, series_count; /* from 1, among all series of a trend; 0: not a trend */
	struct trend_axis axis; /* only in a trend */
	int64_t *times_ms; /* array that `axis` points to, or NULL */
	uint32_t *parts;
	const char *doubt; /* why a dump that was left out may be an end of the series, or NULL */
	struct comparison comparison;
};

struct inputs {
	const struct options *options;
	FILE *messages; /* receives a line for each defect of a file */
	struct dump_sums *dumps; /* grouped by series, each in order of time */
	size_t dump_count;
	struct stack_store *store; /* stacks shared by the dumps, if there are many dumps */
	struct series *series; /* at least one, on success */
	size_t series_count;
	bool is_partial;
	bool is_few; /* a single file or two named ones; warnings are printed at once */
	bool is_printed; /* a printed comparison: its rows were read, and no stacks are matched */
	const char *printed_name; /* name of the printed comparison; set only while it is read */
	const char *growth_unknown; /* why these dumps cannot show growth, or NULL */
	const char **left_out; /* paths of unused files, except files that were named twice */
	size_t left_out_count, left_out_cap;
	struct arena paths; /* storage of `left_out`, and of the doubts about series */
};

/* Adds a copy of `path` to `left_out`. */
void inputs_leave_out(struct inputs *inputs, const char *path);

/* Reads the files and sorts their dumps into series. The caller sets the first two members of
 * `inputs`, zeroes the rest, and must release `inputs` even after an error. Returns 0 or an error.
 * Returns -ERR_USAGE if printed comparisons are mixed with other files. */
int inputs_read(struct inputs *inputs, struct file_list *list, struct err *err);

/* Checks of inputs that were read. They print warnings.
 *
 * inputs_check_samples() warns if the dumps of a series were sampled differently.
 * inputs_correct_clocks() corrects the times of dumps if the system's clock was wrong, and warns
 * about times that cannot be right. inputs_check_processes() checks that dumps of different
 * processes can be compared. */
void inputs_check_samples(struct inputs *inputs, const struct series *series);
void inputs_correct_clocks(struct inputs *inputs);
int inputs_check_processes(struct inputs *inputs, bool has_found, struct err *err);

/* Warns if a limit of growth cannot be judged because a dump is incomplete. */
void inputs_check_whole(struct inputs *inputs);

/* Rejects options that do not apply to the inputs. */
int inputs_check_options(const struct inputs *inputs, struct err *err);

void inputs_match(struct inputs *inputs);
void inputs_release(struct inputs *inputs);

/* Warns about requested limits that cannot be checked against a printed comparison. */
void inputs_judge_printed(struct inputs *inputs, const struct comparison *comparison);

#endif
