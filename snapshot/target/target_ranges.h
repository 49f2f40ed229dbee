/*
 * Parts of a target's address space that somebody wants: of heaps, of tables.
 *
 * They come from the target's own lists, which may lie: there are TARGET_RANGES_MAX of them at most, and
 * target_ranges_bytes() tells how much they ask for before anybody takes memory for it.
 */
#ifndef SNAPSHOT_TARGET_RANGES_H
#define SNAPSHOT_TARGET_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TARGET_RANGES_MAX 65536u

struct target_range {
	uint64_t addr, end;
};

struct target_ranges {
	struct target_range *items;
	size_t count, cap;
	bool is_settled;
};

void target_ranges_init(struct target_ranges *ranges);
void target_ranges_release(struct target_ranges *ranges);
void target_ranges_clear(struct target_ranges *ranges);

/* Adds addr..addr + len; nothing when len is 0. 0, or -ERR_NOMEM: there is no memory, there are too
 * many, or that cannot be in an address space. */
int target_ranges_add(struct target_ranges *ranges, uint64_t addr, uint64_t len);

/* Orders them by address and makes one of those that meet, or that begin in the page where another
 * ends: a page can be read as a whole or not at all. */
void target_ranges_settle(struct target_ranges *ranges);

/* The bytes in all of them, which must be settled. */
uint64_t target_ranges_bytes(const struct target_ranges *ranges);

#endif
