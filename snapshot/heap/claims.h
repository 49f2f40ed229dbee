/* Ranges of a target's address space, and the ranges that heaps have claimed. */
#ifndef SNAPSHOT_HEAP_CLAIMS_H
#define SNAPSHOT_HEAP_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

/* Range of addresses: [addr, end). */
struct extent {
	uint64_t addr, end;
	uint64_t segment; /* in a run of an NT heap: address of its segment */
};

struct extents {
	struct extent *list;
	size_t count, cap;
};

/* Returns 0 or -ERR_NOMEM. */
int extents_add(struct extents *extents, const struct extent *extent);
void extents_release(struct extents *extents);

/* Sorts by address. An extent that begins inside an earlier one loses the overlapping part. Returns
 * the number of overlaps and, in *addr (may be NULL), the address of the first. */
size_t extents_sort(struct extents *extents, uint64_t *addr);

/* Search sorted extents: extents_above() returns the first that ends above addr, extents_at() the
 * extent that contains addr. Both return NULL if there is no such extent. */
const struct extent *extents_above(const struct extents *extents, uint64_t addr);
const struct extent *extents_at(const struct extents *extents, uint64_t addr);

/*
 * Memory that walkers have claimed for blocks. Together the claims cannot exceed the target's
 * memory, and no memory should be claimed twice. */

struct claims {
	struct extents extents;
	uint64_t left_bytes; /* bytes that may still be claimed */
};

void claims_init(struct claims *claims, uint64_t limit_bytes);
void claims_release(struct claims *claims);

/* Claims bytes (> 0) from addr on. Returns 0, -ERR_TARGET if the range wraps round or exceeds
 * left_bytes, or -ERR_NOMEM. */
int claims_add(struct claims *claims, uint64_t addr, uint64_t bytes);

/*
 * Claims for many adjacent blocks: blocks less than a page apart share one claim. So claims stay
 * few, and no page without a block is claimed. */

#define CLAIM_PAGE_BYTES 0x1000u

/* Claims the gathered run, which starts as {0}, and clears it. Returns what claims_add()
 * returns. */
static inline int claim_run_flush(struct extent *run, struct claims *claims)
{
	struct extent whole = *run;

	*run = (struct extent){0};
	return whole.end == whole.addr ? 0 : claims_add(claims, whole.addr, whole.end - whole.addr);
}

/* Adds bytes (> 0) at addr to the run; addresses ascend. If they do not adjoin, claims the run so
 * far and starts a new one. Returns what claims_add() returns. */
static inline int claim_run_add(
	struct extent *run, struct claims *claims, uint64_t addr, uint64_t bytes)
{
	int rc = 0;

	if (addr + bytes < addr)
		return -ERR_TARGET;
	if (run->end != run->addr && addr >= run->end && addr - run->end < CLAIM_PAGE_BYTES) {
		run->end = addr + bytes;
		return 0;
	}
	rc = claim_run_flush(run, claims);
	*run = (struct extent){.addr = addr, .end = addr + bytes};
	return rc;
}

#endif
