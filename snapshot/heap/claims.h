/* Parts of a target's address space, and which of them heaps have claimed. */
#ifndef SNAPSHOT_HEAP_CLAIMS_H
#define SNAPSHOT_HEAP_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

/* Bytes from addr to end. */
struct extent {
	uint64_t addr, end;
	uint64_t segment; /* of an NT heap's run: the segment's address */
};

struct extents {
	struct extent *list;
	size_t count, cap;
};

/* 0 or -ERR_NOMEM. */
int extents_add(struct extents *extents, const struct extent *extent);
void extents_release(struct extents *extents);

/* Sorts by address. What begins in another extent loses what it has of it: how many did, and in *addr
 * (or NULL) the first such place. */
size_t extents_sort(struct extents *extents, uint64_t *addr);

/* The first of sorted extents that ends above addr, or NULL; and the one that addr lies in. */
const struct extent *extents_above(const struct extents *extents, uint64_t addr);
const struct extent *extents_at(const struct extents *extents, uint64_t addr);

/*
 * Which parts of a target's address space walkers have taken for blocks: together they cannot be
 * more than what the target has, and none should be taken twice.
 */

struct claims {
	struct extents extents;
	uint64_t left_bytes; /* that may still be claimed */
};

void claims_init(struct claims *claims, uint64_t limit_bytes);
void claims_release(struct claims *claims);

/* Takes bytes (> 0) from addr on: 0; -ERR_TARGET when they wrap round or are more than are left;
 * -ERR_NOMEM. */
int claims_add(struct claims *claims, uint64_t addr, uint64_t bytes);

/*
 * Claims of many blocks that lie one after the other: what is nearer than a page is one claim, so
 * claims are few, and no page is claimed that no block touches.
 */

#define CLAIM_PAGE_BYTES 0x1000u

/* Claims what has been gathered in run, which begins as {0}: as claims_add(). */
static inline int claim_run_flush(struct extent *run, struct claims *claims)
{
	struct extent whole = *run;

	*run = (struct extent){0};
	return whole.end == whole.addr ? 0 : claims_add(claims, whole.addr, whole.end - whole.addr);
}

/* Gathers bytes (> 0) from addr on, upwards: as claims_add(), for what came before. */
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
