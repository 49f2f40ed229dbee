/* Locations that can be compared between dumps, their modules, and their names. */
#ifndef DIFF_MATCH_LOCATIONS_H
#define DIFF_MATCH_LOCATIONS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "diff/read/dump_sums.h"
#include "symbolize/symbolize.h"

/*
 * Which modules of several dumps are the same, so that their offsets can be compared.
 *
 * Two modules of different dumps are the same when their files have the same name (without its
 * folder, letters of either case alike) and, where both dumps tell, were made by the same build.
 * Two modules of one dump are the same only when they are the same file.
 */

/* What the modules of several dumps are numbered by: the same modules have the same rank, ranks
 * follow the names. */
struct module_ids {
	uint32_t **by_dump; /* by dump and module: its rank */
	size_t count; /* of ranks */
	uint32_t *group; /* by rank: the first rank whose file has the same name */
	/* By rank: another dump has files of this name, and all of them are other builds. */
	bool *is_rebuilt;
};

/* Fills ranks, all of it in arena. */
void module_ids_make(
	const struct dump_sums *dumps, size_t count, struct module_ids *ranks, struct arena *arena);

/*
 * Where an address of a dump lies, in a way that can be compared between dumps: a module that is
 * the same in all of them, and an offset into it.
 *
 * Places borrow the dumps. Their modules are numbered by name, from 1.
 */

/* Compares by unit, then by offset. */
struct location {
	uint64_t unit; /* the module's number, 0: in no module; matching has further ones */
	uint64_t offset; /* or the address */
};

/* One dump's modules, packed for searching. Dumps that are alike have one packing in common. */
struct places_dump {
	const struct dump_sums *sums;
	uint64_t *bases;
	/* What was found for addresses that only differ in their last 16 bits, 1 << memo_bits of it: the others, and in
	 * place of the last ones how many modules start at or below them. UINT64_MAX: nothing. Any thread reads and
	 * writes one at a time. */
	_Atomic uint64_t *memo;
	unsigned memo_bits;
	const uint32_t *ranks; /* by module */
	uint32_t *first; /* by rank: the module's index in the dump; UINT32_MAX: none */
	/* Of the same process, so that an address has the same meaning in both; the nearest ones that know
	 * other modules. */
	const struct places_dump *older, *newer;
};

struct locations {
	const struct dump_sums *sums; /* by dump */
	struct places_dump *dumps;
	size_t dump_count;
	uint32_t *alike; /* by dump: the first one in which every address has the same place */
	size_t *carriers; /* the dumps that carry names, the newest first */
	size_t carrier_count;
	struct module_ids ranks;
	bool is_one_process; /* all dumps tell their process, and it is the same one */
	struct arena arena;
};

void locations_make(struct locations *locations, const struct dump_sums *dumps, size_t count);
void locations_release(struct locations *locations);

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
struct location location_of(
	const struct locations *locations, size_t dump, uint64_t addr, struct place_module *found);

/*
 * How many frames of a dump's stack count, from the innermost on. A tail of frames in no module is what
 * lay on the stack behind a frame that could not be unwound: other values each time, and no calls. A
 * stack that is in no module at all is left whole, as is one whose frames are texts or candidates.
 */
uint32_t location_depth(const struct locations *locations, size_t dump, const struct stack *stack);

static inline bool same_place(const struct location *a, const struct location *b)
{
	return a->unit == b->unit && a->offset == b->offset;
}

static inline int number_order(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static inline int location_order(const struct location *a, const struct location *b)
{
	int order = number_order(a->unit, b->unit);

	return order ? order : number_order(a->offset, b->offset);
}

/*
 * The names of the distinct places that were asked about, each looked for once whoever asks:
 * matching, which compares modules that were rebuilt by their names, and reports.
 *
 * The newest dump that carries a name for a place gives it; where none does, the module's own file
 * is asked. Names borrow the dumps and their locations, and own the symbols.
 */

struct named_place {
	struct location place;
	const struct module *module; /* NULL: in none */
	uint32_t dump; /* the one whose names and module are asked */
	uint32_t class; /* see names_classify(); 0: none */
	uint32_t function; /* the same with CLASS_FUNCTION */
	bool is_aside; /* a dump's further copy of the module, or an unloaded one, has the name */
	struct symbols found;
};

struct names {
	const struct locations *locations;
	struct hash_index index;
	struct named_place *list;
	size_t count, cap;
	size_t resolved_count; /* the first ones */
	const struct symbol_options *options; /* or NULL */
	struct symbolizer *symbolizer; /* NULL: not needed yet */
};

/* locations, and options, which may be NULL, must outlive it. */
void names_init(struct names *names, const struct locations *locations,
	const struct symbol_options *options);
void names_release(struct names *names);

/* Asks for the names of a dump's return address. */
void names_want(struct names *names, size_t dump, uint64_t addr);

/* Looks for all names that are wanted and were not looked for yet. There are none under options that
 * symbol_options_check() refuses. */
int names_resolve(struct names *names, struct err *err);

/* What went wrong while names were looked for, a few words, or NULL. */
const char *names_trouble(const struct names *names);

/* Which named places of a function are the same, in whichever build of its module. */
enum name_class {
	CLASS_FUNCTION, /* all of them */
	CLASS_LINE, /* those of one line */
	/* Those at one offset from its start where two builds have that: the function is the same there,
	 * however its lines moved. What is left over, by line where the lines of one build are among
	 * those of another; else all of it is one. */
	CLASS_CODE,
};

/* Gives all places found so far that have a name a class, from 1: equal for those that are the same.
 * Classes follow the text. */
void names_classify(struct names *names, enum name_class by);

/* NULL: was not asked for. */
const struct named_place *names_find(const struct names *names, const struct location *place);

#endif
