/*
 * How many frames a record of a stack has.
 *
 * Public symbols say that one of two numbers in it is that (Depth), programs that were tested on
 * Windows take the other (Index). What stands in the slot that is not used may be anything, a small
 * number in every record too. So each number is held against the frames: a record has memory for what
 * it needs only, and what follows is no code; the number that ends where the code ends is right. What
 * most records of a process show so, its habit, is followed for the others.
 */
#ifndef SNAPSHOT_STACKS_UST_DEPTH_H
#define SNAPSHOT_STACKS_UST_DEPTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* The two numbers and the room of a record, with its first count (at most UST_DEPTH_MAX) slots. */
void ust_depth_read(struct ust_depth *depth, const uint16_t said[UST_SLOTS], unsigned room,
	struct code_ranges *code, const uint64_t *frames, uint32_t count);

/* No more frames of a record than these are ever chosen. */
uint32_t ust_depth_most(const struct ust_depth *depth);

void ust_votes_add(struct ust_votes *votes, const struct ust_depth *depth);

/* guess is where the number stands if the records leave that open. */
struct ust_habit ust_votes_habit(const struct ust_votes *votes, enum ust_slot guess);

/* How many of the frames, ust_depth_most() of them, are the stack. *is_cut: the record says that there
 * are more, and what is there is no stack. */
uint32_t ust_depth_choose(const struct ust_depth *depth, const struct ust_habit *habit,
	struct code_ranges *code, const uint64_t *frames, bool *is_cut);

#endif
