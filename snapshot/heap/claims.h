/*
 * Which parts of a target's address space walkers have taken for blocks: together they cannot be
 * more than what the target has, and none should be taken twice.
 */
#ifndef SNAPSHOT_HEAP_CLAIMS_H
#define SNAPSHOT_HEAP_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct claim {
	uint64_t addr, end;
};

struct claims {
	struct claim *list;
	size_t count, cap;
	uint64_t left_bytes; /* that may still be claimed */
};

void claims_init(struct claims *claims, uint64_t limit_bytes);
void claims_release(struct claims *claims);

/* Takes bytes (> 0) from addr on: 0; -ERR_TARGET when they wrap round or are more than are left;
 * -ERR_NOMEM. */
int claims_add(struct claims *claims, uint64_t addr, uint64_t bytes);

/* Sorts the claims. How many overlap one before them, and in *addr the first such place. */
size_t claims_overlaps(struct claims *claims, uint64_t *addr);

#endif
