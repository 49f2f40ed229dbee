/*
 * Where an address of a dump lies, in a way that can be compared between dumps: a module that is
 * the same in all of them, and an offset into it.
 *
 * Places borrow the dumps. Their modules are numbered by name, from 1.
 */
#ifndef DIFF_PLACES_H
#define DIFF_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "diff/match/modules.h"
#include "diff/read/sum.h"

/* Compares by unit, then by offset. */
struct place {
	uint64_t unit; /* the module's number, 0: in no module; matching has further ones */
	uint64_t offset; /* or the address */
};

/* What was found for addresses that only differ in their last 16 bits. */
struct places_memo {
	uint64_t granule; /* those before them; UINT64_MAX: nothing is known */
	size_t below; /* how many modules start at or below them */
};

/* One dump's modules, packed for searching. Dumps that are alike have one packing in common. */
struct places_dump {
	const struct sums *sums;
	uint64_t *bases;
	struct places_memo *memo; /* 1 << memo_bits of them */
	unsigned memo_bits;
	const uint32_t *ranks; /* by module */
	uint32_t *first; /* by rank: the module's index in the dump; UINT32_MAX: none */
	/* Of the same process, so that an address has the same meaning in both; the nearest ones that know
	 * other modules. */
	const struct places_dump *older, *newer;
};

struct places {
	const struct sums *sums; /* by dump */
	struct places_dump *dumps;
	size_t dump_count;
	uint32_t *alike; /* by dump: the first one in which every address has the same place */
	size_t *carriers; /* the dumps that carry names, the newest first */
	size_t carrier_count;
	struct ranks ranks;
	bool is_one_process; /* all dumps tell their process, and it is the same one */
	struct arena arena;
};

/* Release it in any case. 0 or -ERR_NOMEM. */
int places_make(struct places *places, const struct sums *dumps, size_t count);
void places_release(struct places *places);

/* A dump's module. */
struct place_module {
	const struct module *module; /* NULL: none */
	size_t dump;
};

/*
 * The place of a return address, and the module it lies in (found may be NULL). Between dumps of
 * one process a module that one of them no longer has, or not yet, is known from the others, the
 * older ones first, unless that dump has another module there.
 */
struct place place_of(
	const struct places *places, size_t dump, uint64_t addr, struct place_module *found);

/*
 * How many frames of a dump's stack count, from the innermost on. A tail of frames in no module is what
 * lay on the stack behind a frame that could not be unwound: other values each time, and no calls. A
 * stack that is in no module at all is left whole, as is one whose frames are texts or candidates.
 */
uint32_t place_depth(const struct places *places, size_t dump, const struct stack *stack);

static inline bool same_place(const struct place *a, const struct place *b)
{
	return a->unit == b->unit && a->offset == b->offset;
}

static inline int place_order(const struct place *a, const struct place *b)
{
	if (a->unit != b->unit)
		return a->unit < b->unit ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

#endif
