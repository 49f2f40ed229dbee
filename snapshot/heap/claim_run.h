/*
 * Claims of many blocks that lie one after the other: what is nearer than a page is one claim, so
 * claims are few, and no page is claimed that no block touches.
 */
#ifndef SNAPSHOT_HEAP_CLAIM_RUN_H
#define SNAPSHOT_HEAP_CLAIM_RUN_H

#include "core/err.h"
#include "snapshot/heap/claims.h"

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
