/* What "hsnap schedule list" prints. */
#ifndef SNAPSHOT_TASK_TABLE_H
#define SNAPSHOT_TASK_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "snapshot/schedule/task/task_read.h"

#define TASK_TIME_BYTES 24

/* What the scheduler tells of a task. */
struct task_state {
	char last[TASK_TIME_BYTES], next[TASK_TIME_BYTES]; /* local times; empty: it does not say */
	unsigned kind; /* of enumeration TASK_STATE, as "TASK_STATE", Microsoft Learn, numbers it */
	bool has_result;
	uint32_t result; /* of its last run: an exit status, or one of the scheduler's own */
};

void task_table_head(FILE *to);

/* A line of the table. Columns that are not known are "?"; a task that does not run this hsnap, or not as
 * tasks do, has words in its folder's place. 0 or -ERR_NOMEM. */
int task_table_row(FILE *to, const char *name, const struct task_read *task, bool runs_hsnap,
	const struct task_state *state);

/* The words for a result: a number, or what the scheduler's own stand for. Returns text. */
const char *task_result_text(uint32_t result, char text[TASK_TIME_BYTES]);

#endif
