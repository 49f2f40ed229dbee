/*
 * The user-mode stack trace database of Windows ("ust"): records of stacks in the target, that heap
 * blocks point to.
 *
 * A walker finds for a block where its record lies (walked_block.record). ust_take() reads every
 * record that blocks have, once, while the target is held; afterwards each is a number.
 */
#ifndef SNAPSHOT_STACKS_UST_H
#define SNAPSHOT_STACKS_UST_H

#include <stddef.h>
#include <stdint.h>

#include "snapshot/heap/heap.h"

#define UST_DEPTH_MAX 32 /* frames; RTL_STACK_TRACE_ENTRY.BackTrace */

/* What the database says of itself, when it was found. */
struct ust_database {
	uint64_t addr; /* 0: not found */
	uint32_t entry_count; /* stacks in it */
	uint32_t lookup_count;
	uint32_t failure_count; /* allocations whose stack found no room */
	uint64_t used_bytes, reserved_bytes;
};

struct ust; /* all records of one snapshot */

/* NULL: out of memory. */
struct ust *ust_new(void);
void ust_free(struct ust *ust);

/*
 * Reads the records of all blocks of a walk, and looks for the database. modules are sorted by base.
 * What was there before is gone. Returns 0 or -ERR_NOMEM; a record that makes no sense has no frames.
 */
int ust_take(struct ust *ust, struct memory *memory, const struct walk *walk,
	const struct module *modules, size_t module_count);

/* The frames of a record, innermost first, and in *first_slot the address of the first one's slot,
 * which is the id that UMDH prints; 0: the record has none. */
uint32_t ust_frames(const struct ust *ust, uint64_t record, unsigned bits, const uint64_t **frames,
	uint64_t *first_slot);

/* How many distinct records blocks have, and how many of these make no sense. */
size_t ust_record_count(const struct ust *ust);
size_t ust_broken_count(const struct ust *ust);

const struct ust_database *ust_database(const struct ust *ust);

#endif
