/*
 * How many frames a record of a stack has.
 *
 * Public symbols say that one of two numbers in it is that (Depth), programs that were tested on
 * Windows take the other (Index). What stands in the slot that is not used may be anything, a small
 * number in every record too. So each number is held against the frames: a record has memory for what
 * it needs only, and what follows is no code; the number that ends where the code ends is right. What
 * most records of a process show so, its habit, is followed for the others.
 */
#ifndef SNAPSHOT_STACKS_UST_H
#define SNAPSHOT_STACKS_UST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot/heap/heap.h"
#include "snapshot/stacks/code_ranges.h"

#define UST_DEPTH_MAX 32 /* frames; RTL_STACK_TRACE_ENTRY.BackTrace */

/* Where the number may stand. */
enum ust_slot {
	UST_SLOT_DEPTH,
	UST_SLOT_INDEX,
	UST_SLOTS,
};

/* How well a number agrees with the frames, the better the more. */
enum ust_fit {
	UST_FIT_NONE,
	UST_FIT_INSIDE, /* so many lie in code, and more do */
	UST_FIT_EXACT, /* so many lie in code, and the next does not */
	/* Between frames that lie in code are some that do not, as of a DLL that was unloaded. That a
	 * number ends with the code by chance is likelier than that what follows looks so. */
	UST_FIT_WHOLE,
};

/* What one record says. */
struct ust_depth {
	uint8_t said[UST_SLOTS]; /* 0: no number of frames */
	uint8_t fit[UST_SLOTS]; /* enum ust_fit */
	uint8_t room; /* BlockDepth: so many slots it has memory for; 0: not known */
	uint8_t in_code; /* how many frames, from the first on, lie in code */
	uint8_t count; /* slots that were there to be read */
};

/* What the records of a process say together; all zero to begin with. */
struct ust_votes {
	size_t fits[UST_SLOTS]; /* records whose number stands there and not in the other */
	size_t room, no_room; /* records with and without room for their frames */
};

struct ust_habit {
	enum ust_slot slot;
	bool is_clear; /* or only a guess */
	bool has_room; /* room is what it is called */
};

/*
 * The user-mode stack trace database of Windows ("ust"): records of stacks in the target, that heap
 * blocks point to.
 *
 * A walker finds for a block where its record lies, and a walk lists them (walk.records). ust_take() reads them while
 * the target is held.
 *
 * How many frames a record has is not certain from published facts; ust.h says what is done
 * about that.
 */

/* What the database says of itself, when it was found. */
struct ust_database {
	uint64_t addr; /* 0: not found */
	uint32_t entry_count; /* stacks in it */
	uint32_t lookup_count;
	uint32_t failure_count; /* allocations whose stack found no room */
	/* How many of the entries its index leads to, and how many of those its hash chains do: where
	 * the three are one, it is laid out as it is known here, and whole. */
	uint32_t indexed_count, chained_count;
	uint64_t used_bytes, reserved_bytes;
};

/* Of one snapshot. */
struct ust_facts {
	/* How many distinct records blocks have, how many of these make no sense, and how many say that they
	 * have more frames than they have. */
	size_t record_count, broken_count, cut_count;
	struct ust_database database;
};

struct ust; /* all records of one snapshot */

struct ust *ust_new(void);
void ust_free(struct ust *ust);

/*
 * Reads the records of a walk, and, when there are any or the process's global_flag says
 * that there should be, looks for the database. What was there before is gone. Returns 0 or -ERR_NOMEM; a record that makes
 * no sense has no frames.
 */
int ust_take(struct ust *ust, struct memory *memory, const struct walk *walk,
	const struct module *modules, size_t module_count, uint32_t global_flag);

/* How many frames a record of the walk has, and the frames, innermost first; in *first_slot the address of the
 * first one's slot, which is the id that UMDH prints. */
uint32_t ust_frames(
	const struct ust *ust, uint32_t number, const uint64_t **frames, uint64_t *first_slot);

const struct ust_facts *ust_facts(const struct ust *ust);

/*
 * Finds the database of the ntdll of that many bits among the modules, by what it looks like, and
 * checks it (ust_database.c); database->addr is 0 when there is none. 0 or -ERR_NOMEM.
 */
int ust_database_find(struct ust_database *database, struct memory *memory, unsigned bits,
	const struct module *modules, size_t module_count);

#endif
