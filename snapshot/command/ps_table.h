/* What 'hsnap ps' prints about processes. */
#ifndef SNAPSHOT_PS_TABLE_H
#define SNAPSHOT_PS_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct ps_row {
	uint32_t pid;
	unsigned bits; /* 0: the process could not be looked at */
	int64_t heap_count; /* -1: not known */
	/* Where they would come from: "tracer", "attached" (it was traced later), "ust", "none",
	 * "detached" (none any more); NULL: not known. */
	const char *stacks;
	const char *name; /* hostile */
};

/* A header line, and one line for each row, in columns. Characters that a terminal would obey are
 * made harmless. Returns 0 or -ERR_NOMEM. */
int ps_print(FILE *to, const struct ps_row *rows, size_t count);

/* Of the processes that could not be looked at: how many let nobody in, and how many had ended. One
 * line for each, if any. */
void ps_print_missing(FILE *to, size_t closed_count, size_t ended_count);

#endif
