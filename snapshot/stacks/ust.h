/*
 * Number of frames in a record of a stack.
 *
 * Public symbols name one of two numbers in a record as that number (Depth); programs that were
 * tested on Windows use the other (Index). The unused slot may contain anything, even a small
 * number in every record. So each number is compared with the frames. A record has memory only for
 * its own frames, and no code addresses follow them. The number that ends where the code addresses
 * end is right. The slot that is right in most records of a process, its habit, is used for its
 * other records. */
#ifndef SNAPSHOT_STACKS_UST_H
#define SNAPSHOT_STACKS_UST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot/heap/heap.h"
#include "snapshot/stacks/code_ranges.h"

#define UST_DEPTH_MAX 32 /* frames; RTL_STACK_TRACE_ENTRY.BackTrace */

/* Slots that may hold the number. */
enum ust_slot {
	UST_SLOT_DEPTH,
	UST_SLOT_INDEX,
	UST_SLOTS,
};

/* Agreement of a number with the frames, in ascending order. */
enum ust_fit {
	UST_FIT_NONE,
	UST_FIT_INSIDE, /* all these frames lie in code, and so does the next */
	UST_FIT_EXACT, /* all these frames lie in code, and the next does not */
	/* The last of these frames lies in code and the next does not. Some before it do not
	 * either, for example frames of an unloaded DLL. A wrong number is likelier to end at the
	 * first gap by chance than data after the stack is to look like more frames. */
	UST_FIT_WHOLE,
};

/* Numbers in one record, and their agreement with its frames. */
struct ust_depth {
	uint8_t said[UST_SLOTS]; /* 0: not a number of frames */
	uint8_t fit[UST_SLOTS]; /* enum ust_fit */
	uint8_t room; /* BlockDepth: slots that the record has memory for; 0: unknown */
	uint8_t in_code; /* number of frames, from the first on, that lie in code */
	uint8_t count; /* readable slots */
};

/* Evidence from all records of a process; starts zeroed. */
struct ust_votes {
	size_t fits[UST_SLOTS]; /* records in which this slot fits better than the other */
	size_t room, no_room; /* records with and without room for their frames */
};

struct ust_habit {
	enum ust_slot slot;
	bool is_clear; /* otherwise slot is only a guess */
	bool has_room; /* the room is reliable */
};

/*
 * The user-mode stack trace database of Windows ("ust"): records of stacks in the target, to which
 * heap blocks point.
 *
 * A walker finds the address of a block's record, and the walk lists these addresses
 * (walk.records). ust_take() reads the records while the target is held. Published facts do not
 * settle the number of frames in a record; see above. */

/* Facts from the database's head, if it was found. */
struct ust_database {
	uint64_t addr; /* 0: not found */
	uint32_t entry_count; /* number of stacks */
	uint32_t lookup_count;
	uint32_t failure_count; /* allocations whose stack found no room */
	/* Number of entries that the index leads to, and number that the hash chains lead to. If
	 * both equal entry_count, the database has the known layout and is complete. */
	uint32_t indexed_count, chained_count;
	uint64_t used_bytes, reserved_bytes;
};

/* Facts about the records of one snapshot. */
struct ust_facts {
	/* Number of distinct records of blocks, number of invalid ones, and number of those that
	 * claim more frames than they have. */
	size_t record_count, broken_count, cut_count;
	struct ust_database database;
};

struct ust; /* all records of one snapshot */

struct ust *ust_new(void);
void ust_free(struct ust *ust);

/*
 * Replaces the contents of ust by the records of a walk. If there are any, or the process's
 * global_flag announces them, also searches for the database. Returns 0 or -ERR_NOMEM. An invalid
 * record has no frames. */
int ust_take(struct ust *ust, struct memory *memory, const struct walk *walk,
	const struct module *modules, size_t module_count, uint32_t global_flag);

/* Returns the number of frames of a record of the walk, and the frames, innermost first.
 * *first_slot is the address of the first frame's slot, which is the id that UMDH prints. */
uint32_t ust_frames(
	const struct ust *ust, uint32_t number, const uint64_t **frames, uint64_t *first_slot);

const struct ust_facts *ust_facts(const struct ust *ust);

/*
 * Finds the database of the ntdll of this bitness among the modules by its form, and checks it
 * (ust_database.c). database->addr is 0 if there is no database. Returns 0 or -ERR_NOMEM. */
int ust_database_find(struct ust_database *database, struct memory *memory, unsigned bits,
	const struct module *modules, size_t module_count);

#endif
