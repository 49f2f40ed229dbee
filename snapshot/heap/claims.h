/* Which parts of the address space heaps have claimed. */
#ifndef SNAPSHOT_HEAP_CLAIMS_H
#define SNAPSHOT_HEAP_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

/*
 * Which parts of a target's address space walkers have taken for blocks: together they cannot be
 * more than what the target has, and none should be taken twice.
 */

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

/*
 * Claims of many blocks that lie one after the other: what is nearer than a page is one claim, so
 * claims are few, and no page is claimed that no block touches.
 */

#define CLAIM_PAGE_BYTES 0x1000u

struct claim_run {
	uint64_t addr, end; /* equal: nothing */
};

/* Claims what has been gathered: as claims_add(). */
static inline int claim_run_flush(struct claim_run *run, struct claims *claims)
{
	struct claim_run whole = *run;

	*run = (struct claim_run){0};
	return whole.end == whole.addr ? 0 : claims_add(claims, whole.addr, whole.end - whole.addr);
}

/* Gathers bytes (> 0) from addr on, upwards: as claims_add(), for what came before. */
static inline int claim_run_add(
	struct claim_run *run, struct claims *claims, uint64_t addr, uint64_t bytes)
{
	int rc = 0;

	if (addr + bytes < addr)
		return -ERR_TARGET;
	if (run->end != run->addr && addr >= run->end && addr - run->end < CLAIM_PAGE_BYTES) {
		run->end = addr + bytes;
		return 0;
	}
	rc = claim_run_flush(run, claims);
	*run = (struct claim_run){addr, addr + bytes};
	return rc;
}

#endif
