/*
 * Reading much of a target at once: by as many threads as its kind gains from.
 */
#ifndef SNAPSHOT_BULK_READ_H
#define SNAPSHOT_BULK_READ_H

#include <stddef.h>
#include <stdint.h>

#include "snapshot/target/target.h"

/* What one read should take at most: more gains nothing, and what fails fails as a whole. */
#define BULK_PIECE_BYTES ((size_t)1 << 20)

/* len bytes of the target at addr, and where they go. */
struct target_piece {
	uint64_t addr;
	size_t len;
	unsigned char *bytes; /* the caller's */
	int rc; /* filled in: 0, or -ERR_READ when not all of them are there */
};

/* Reads all pieces, each once; returns when all are done. */
void target_read_many(struct target *target, struct target_piece *pieces, size_t count);

#endif
