/*
 * The virtual memory that the program took from the system itself: ranges of pages -> who reserved,
 * committed, or mapped them.
 *
 * Neighbours of one allocation that agree in all that is known about them are one node. Each function
 * costs the logarithm of the number of nodes for each node it touches. One lock is held meanwhile, and
 * tracer_ranges.changing is odd while anything that can be seen from outside changes. A lock that is
 * never given back (its thread was ended inside) breaks the table: what comes after is counted in
 * tracer_area.dropped_ranges, and so is what finds no room. Where there is no room to cut a node in
 * two, its upper part is dropped: the table rather knows too little than says what is not so.
 *
 * Addresses are those of pages: start and end of a range are multiples of their size. A range is not
 * empty, and its allocation is known.
 */
#ifndef SNAPSHOT_TRACER_RANGES_H
#define SNAPSHOT_TRACER_RANGES_H

#include <stdbool.h>

#include "snapshot/tracer/shared.h"

/*
 * Memory that was reserved or mapped just now: start, end, allocation, kind and stacks of *range. Every
 * allocation that overlaps it must have gone without being seen, and is forgotten.
 */
void ranges_add(struct tracer_area *area, const struct tracer_range *range);

/* The same where nothing is known yet; what is known stays. For memory that was there before. */
void ranges_fill(struct tracer_area *area, const struct tracer_range *range);

/* True when all of [from, to) is known. */
bool ranges_is_known(struct tracer_area *area, uint64_t from, uint64_t to);

/* What is reserved in [from, to), and nothing else there, becomes of that kind, by this stack. */
void ranges_use(
	struct tracer_area *area, uint64_t from, uint64_t to, uint32_t kind, uint32_t stack);

/* What is of that kind in [from, to) is only reserved again, by whom it was. */
void ranges_give_up(struct tracer_area *area, uint64_t from, uint64_t to, uint32_t kind);

/* What lies in [from, to) is of the allocation with this base from now on. */
void ranges_rebase(struct tracer_area *area, uint64_t from, uint64_t to, uint64_t base);

/* An allocation as far as it is known. */
struct ranges_extent {
	uint64_t base, end;
	uint32_t kind; /* of the first node at or behind the address that was asked for */
};

/* The allocation around an address; false when none is known. */
bool ranges_find(struct tracer_area *area, uint64_t addr, struct ranges_extent *extent);

struct ranges_taken {
	uint32_t nodes;
	uint64_t base, rest, rest_end; /* what lay behind, of the same allocation */
};

/*
 * Takes out what is in [from, to), before the system is asked to free it: then another thread that
 * gets the same memory finds nothing of it. It stays listed, with RANGE_TAKEN, for whoever looks from outside until
 * ranges_drop() frees it, or ranges_put_back() brings it back because the system refused; but where
 * something is known by then that stays. What lies behind it in the same allocation is one by itself
 * meanwhile and after ranges_drop(), as for the system. Returns false when nothing was known; else one
 * of the two has to follow.
 */
bool ranges_take(struct tracer_area *area, uint64_t from, uint64_t to, struct ranges_taken *taken);
void ranges_drop(struct tracer_area *area, const struct ranges_taken *taken);
void ranges_put_back(struct tracer_area *area, const struct ranges_taken *taken);

/* What is in [from, to) belongs to somebody else from now on: a heap that was built there, say. */
void ranges_forget(struct tracer_area *area, uint64_t from, uint64_t to);

#endif
