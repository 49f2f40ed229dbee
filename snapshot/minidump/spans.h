/*
 * Ranges of a target's addresses, in order and without overlaps, each with what is known about it.
 */
#ifndef SNAPSHOT_SPANS_H
#define SNAPSHOT_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot/target/target.h"

struct span {
	uint64_t addr, end;
	uint64_t offset; /* of the first byte in a file */
	unsigned access; /* enum target_access */
	bool is_image;
};

struct spans {
	struct span *list;
	size_t count, cap;
};

void spans_release(struct spans *spans);

/* Adds one as it is; an empty one is left out. 0 or -ERR_NOMEM. */
int spans_add(struct spans *spans, const struct span *span);

/* Puts them in order; of what several have the one that begins lower keeps it, then the one with the lower
 * offset. How many lost a part. */
size_t spans_settle(struct spans *spans);

/* Makes one of those that lie side by side, in the file as well when by_offset. */
void spans_join(struct spans *spans, bool by_offset);

/* The first that ends above addr: its index, or count. */
size_t spans_find(const struct spans *spans, uint64_t addr);

/* The one that addr lies in, or NULL. Then, and else, region is narrowed to what has the same answer. */
const struct span *spans_narrow(
	const struct spans *spans, uint64_t addr, struct target_region *region);

#endif
