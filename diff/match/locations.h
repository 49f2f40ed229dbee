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
 * Identity of modules across dumps, so that their offsets can be compared.
 *
 * Two modules of different dumps are the same if their files have the same name (without folder,
 * ignoring case). If both dumps record builds, the builds must be equal, too. Two modules of one
 * dump are the same only if they are the same file.
 */

/* Ranks of the modules of several dumps: same modules have the same rank, and ranks are in order of
 * names. */
struct module_ids {
	uint32_t **by_dump; /* rank by dump and module */
	size_t count; /* number of ranks */
	uint32_t *group; /* by rank: the first rank with the same file name */
	/* By rank: another dump has files of this name, all of them of other builds. */
	bool *is_rebuilt;
};

/* Fills ranks; its memory is in arena. */
void module_ids_make(
	const struct dump_sums *dumps, size_t count, struct module_ids *ranks, struct arena *arena);

/*
 * Locations of a dump's addresses that can be compared between dumps: a module that is the same in
 * all dumps, and an offset in it.
 *
 * Locations borrow the dumps. Modules are numbered by name, from 1.
 */

/* Ordered by unit, then by offset. */
struct location {
	uint64_t unit; /* module number; 0: in no module; matching adds further units */
	uint64_t offset; /* or the address, if in no module */
};

/* One dump's modules, arranged for searching. Equal dumps share the arrays. */
struct places_dump {
	const struct dump_sums *sums;
	uint64_t *bases;
	/*
	 * Cache of 1 << memo_bits results for addresses that differ only in their low 16 bits. An
	 * entry holds the other bits and, in place of the low ones, the number of modules that
	 * start at or below these addresses. UINT64_MAX: empty. Any thread reads and writes single
	 * entries.
	 */
	_Atomic uint64_t *memo;
	unsigned memo_bits;
	const uint32_t *ranks; /* by module */
	uint32_t *first; /* by rank: index of the module in the dump; UINT32_MAX: none */
	/* Nearest dumps of the same process that have other modules; an address has the same
	 * meaning in both. */
	const struct places_dump *older, *newer;
};

struct locations {
	const struct dump_sums *sums; /* by dump */
	struct places_dump *dumps;
	size_t dump_count;
	uint32_t *alike; /* by dump: the first dump in which every address has the same location */
	size_t *carriers; /* dumps with names, newest first */
	size_t carrier_count;
	struct module_ids ranks;
	bool is_one_process; /* all dumps record their process, and it is the same */
	struct arena arena;
};

void locations_make(struct locations *locations, const struct dump_sums *dumps, size_t count);
void locations_release(struct locations *locations);

struct place_module {
	const struct module *module; /* NULL: none */
	size_t dump;
};

/* Returns the location of a return address and stores its module in found, which may be NULL. If
 * this dump has no module at addr, other dumps of the same process are searched, older ones
 * first. */
struct location location_of(
	const struct locations *locations, size_t dump, uint64_t addr, struct place_module *found);

/*
 * Returns the number of frames of a dump's stack that count, from the innermost. Outer frames in no
 * module are stack content after a frame that could not be unwound: they differ each time and are
 * not calls. A stack entirely in no module counts whole, as does a stack whose frames are texts or
 * candidates.
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
 * Names of the requested locations, each looked up once for all users: matching, which compares
 * rebuilt modules by their names, and reports.
 *
 * The newest dump with a name for a location provides it; if none has one, the module's own file
 * does. Names borrow the dumps and their locations, and own the symbols.
 */

struct named_place {
	struct location place;
	const struct module *module; /* NULL: in no module */
	uint32_t dump; /* dump whose names and module are used */
	uint32_t class; /* see names_classify(); 0: none */
	uint32_t function; /* class by CLASS_FUNCTION */
	/* the name comes from a further copy of the module in the dump, or from an unloaded one */
	bool is_aside;
	struct symbols found;
};

struct names {
	const struct locations *locations;
	struct hash_index index;
	struct named_place *list;
	size_t count, cap;
	size_t resolved_count; /* the first names in list are resolved */
	const struct symbol_options *options; /* or NULL */
	struct symbolizer *symbolizer; /* NULL: not needed yet */
};

/* locations, and options if not NULL, must outlive names. */
void names_init(struct names *names, const struct locations *locations,
	const struct symbol_options *options);
void names_release(struct names *names);

/* Requests the names of a dump's return address. */
void names_want(struct names *names, size_t dump, uint64_t addr);

/* Looks up all requested names that are not resolved yet. Finds none if symbol_options_check()
 * refuses the options. */
int names_resolve(struct names *names, struct err *err);

/* Returns a short text about a failure of the lookup, or NULL. */
const char *names_trouble(const struct names *names);

/* Rule for which locations of a function are the same, across builds of its module. */
enum name_class {
	CLASS_FUNCTION, /* all locations in it */
	CLASS_LINE, /* locations on one line */
	/* Locations at one offset from the function's start, if two builds have that offset: the
	 * function is unchanged there, even if its lines moved. The rest: by line, if the lines of
	 * one build are among those of another; otherwise all of the rest is one class. */
	CLASS_CODE,
};

/* Assigns a class, from 1, to every location that has a name: equal for the same locations. Classes
 * are in order of their texts. */
void names_classify(struct names *names, enum name_class by);

/* Returns NULL if the location was not requested. */
const struct named_place *names_find(const struct names *names, const struct location *place);

#endif
