/*
 * Which modules of several dumps are the same, so that their offsets can be compared.
 *
 * Two modules of different dumps are the same when their files have the same name (without its
 * folder, letters of either case alike) and, where both dumps tell, were made by the same build.
 * Two modules of one dump are the same only when they are the same file.
 */
#ifndef DIFF_MODULES_H
#define DIFF_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "diff/read/sum.h"

/* What the modules of several dumps are numbered by: the same modules have the same rank, ranks
 * follow the names. */
struct ranks {
	uint32_t **of; /* by dump and module: its rank */
	size_t count; /* of ranks */
	uint32_t *group; /* by rank: the first rank whose file has the same name */
	/* By rank: another dump has files of this name, and all of them are other builds. */
	bool *is_rebuilt;
};

/* Fills ranks, all of it in arena. 0 or -ERR_NOMEM. */
int modules_rank(const struct sums *dumps, size_t count, struct ranks *ranks, struct arena *arena);

#endif
