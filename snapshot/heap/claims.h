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
	/* Address of the segment that contains the extent, if the extent is a run of an NT heap. */
	uint64_t segment;
};

struct extents {
	struct extent *list;
	size_t count, cap;
};

/* Returns 0 or -ERR_NOMEM. */
int extents_add(struct extents *extents, const struct extent *extent);
void extents_release(struct extents *extents);

/* Sorts the extents by address. If an extent begins inside an earlier one, shortens the later
 * extent so that they do not overlap. Returns the number of overlaps. Stores the address of the
 * first overlap in `*addr`, which may be NULL. */
size_t extents_sort(struct extents *extents, uint64_t *addr);

/* Search sorted extents. extents_above() returns the first extent that ends above `addr`;
 * extents_at() returns the extent that contains `addr`. Both return NULL if no such extent
 * exists. */
const struct extent *extents_above(const struct extents *extents, uint64_t addr);
const struct extent *extents_at(const struct extents *extents, uint64_t addr);

/* Memory that walkers have claimed for blocks. The total of all claims is limited to the target's
 * memory. In sound heaps, no memory is claimed twice. */

struct claims {
	struct extents extents;
	uint64_t left_bytes; /* bytes that may still be claimed */
};

void claims_init(struct claims *claims, uint64_t limit_bytes);
void claims_release(struct claims *claims);

/* Claims `bytes` (> 0) bytes starting at addr. Returns 0, -ERR_TARGET if the range wraps around or
 * exceeds left_bytes, or -ERR_NOMEM. */
int claims_add(struct claims *claims, uint64_t addr, uint64_t bytes);

/* Claims for many adjacent blocks. Blocks less than a page apart share one claim, which keeps the
 * number of claims small. A page that contains no part of a block is never claimed. */

#define CLAIM_PAGE_BYTES 0x1000u

/* Claims the run that was gathered, and resets it to its initial value {0}. Returns the result of
 * claims_add(). */
static inline int claim_run_flush(struct extent *run, struct claims *claims)
{
	struct extent whole = *run;

	*run = (struct extent){0};
	return whole.end == whole.addr ? 0 : claims_add(claims, whole.addr, whole.end - whole.addr);
}

/* Adds `bytes` (> 0) bytes at `addr` to the run. Addresses must ascend from call to call. If the
 * new bytes are a page or more away from the run, claims the run and starts a new one. Returns the
 * result of claims_add(). */
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
