/*
 * The number of frames in a record of a stack. A record has two numbers that may be this number.
 * According to public symbols, it is Depth; programs that were tested on Windows use Index instead.
 * The slot that is not used may contain anything, even a small number in every record.
 *
 * So both numbers are compared with the frames. A record has memory only for its own frames, and no
 * code addresses follow them. The right number is the one that ends where the code addresses end.
 * The habit of a process is the slot that is right in most of its records; that slot is also used
 * for the ambiguous records.
 */
#ifndef SNAPSHOT_STACKS_UST_H
#define SNAPSHOT_STACKS_UST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot/heap/heap.h"
#include "snapshot/stacks/code_ranges.h"

#define UST_DEPTH_MAX 32 /* maximum number of frames; size of RTL_STACK_TRACE_ENTRY.BackTrace */

/* Slots that may contain the number of frames. */
enum ust_slot {
	UST_SLOT_DEPTH,
	UST_SLOT_INDEX,
	UST_SLOTS,
};

/* Agreement between a number and the frames, from worst to best. */
enum ust_fit {
	UST_FIT_NONE,
	UST_FIT_INSIDE, /* all these frames are in code, and so is the next slot */
	UST_FIT_EXACT, /* all these frames are in code, and the next slot is not */
	/*
	 * The last of these frames is in code, and the next slot is not. Some earlier frames are
	 * not in code either, for example because their DLL was unloaded. If the other number is
	 * UST_FIT_EXACT, one of the two is wrong: the other number ends at the first gap by chance,
	 * or data after the stack looks like more frames. The former is more likely, so this fit
	 * counts as better.
	 */
	UST_FIT_WHOLE,
};

/* The two numbers in a record, and their agreement with the frames of the record. */
struct ust_depth {
	uint8_t said[UST_SLOTS]; /* number in the slot; 0: not a number of frames */
	uint8_t fit[UST_SLOTS]; /* enum ust_fit */
	uint8_t room; /* BlockDepth: number of slots in the record's memory; 0: unknown */
	uint8_t in_code; /* number of leading frames that are in code */
	uint8_t count; /* number of readable slots */
};

/* Evidence from all records of a process. Initially all 0. */
struct ust_votes {
	/* Number of records in which this slot fits better than the other slot. */
	size_t fits[UST_SLOTS];
	size_t room, no_room; /* number of records with and without room for their frames */
};

struct ust_habit {
	enum ust_slot slot;
	bool is_clear; /* false: `slot` is only a guess */
	bool has_room; /* BlockDepth is reliable */
};

/*
 * The user-mode stack trace database of Windows ("ust"): records of stacks in the target, to which
 * heap blocks point. A heap walker finds the address of each block's record and collects these
 * addresses in walk.records. ust_read() reads the records while the target is held. Published facts
 * do not determine the number of frames in a record; see above.
 */

/* Facts from the head of the database, if the database was found. */
struct ust_database {
	uint64_t addr; /* 0: not found */
	uint32_t entry_count; /* NumberOfEntriesAdded: number of stacks */
	uint32_t lookup_count;
	uint32_t failure_count; /* number of allocations whose stack did not fit */
	/* Number of entries that are reachable through the index, and through the hash chains. If
	 * both equal `entry_count`, the database has the known layout and is complete. */
	uint32_t indexed_count, chained_count;
	uint64_t used_bytes, reserved_bytes;
};

/* Facts about the records of one snapshot. */
struct ust_facts {
	/* Number of distinct records of blocks, number of invalid records among them, and number of
	 * records that claim too many frames. */
	size_t record_count, broken_count, cut_count;
	struct ust_database database;
};

struct ust; /* The records of one snapshot. */

struct ust *ust_new(void);
void ust_free(struct ust *ust);

/*
 * Replaces the contents of `ust` with the records of a walk. Also searches for the database if
 * there are any records, or if the process's `global_flag` requests stacks. Returns 0 or
 * -ERR_NOMEM. An invalid record has no frames.
 */
int ust_read(struct ust *ust, struct memory *memory, const struct walk *walk,
	const struct module *modules, size_t module_count, uint32_t global_flag);

/* Returns the number of frames of one of the walk's records. Stores the frames, innermost first.
 * Sets `*first_slot` to the address of the first frame's slot, which is the id that UMDH prints. */
uint32_t ust_frames(
	const struct ust *ust, uint32_t number, const uint64_t **frames, uint64_t *first_slot);

const struct ust_facts *ust_facts(const struct ust *ust);

/*
 * Finds the module ntdll of the given bitness, and in it the stack database. Recognizes the database
 * by its structure, and checks it (ust_database.c). Sets database->addr to 0 if there is no
 * database. Returns 0 or -ERR_NOMEM.
 */
int ust_database_find(struct ust_database *database, struct memory *memory, unsigned bits,
	const struct module *modules, size_t module_count);

#endif
