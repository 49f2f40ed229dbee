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
 * Identity of modules across dumps. It makes the offsets of frames comparable.
 *
 * Two modules of different dumps are the same if their files have the same name, ignoring folder
 * and case. If both dumps record builds, the builds must also be equal. Two modules of one dump are
 * the same only if they are the same file. */

/* Numbers for the modules of several dumps, called ranks, in the order of the modules' names. A
 * module has the same rank in every dump. */
struct module_ids {
	uint32_t **by_dump; /* rank, indexed by dump and module */
	size_t count; /* number of ranks */
	uint32_t *group; /* indexed by rank: first rank with the same file name */
	/* Indexed by rank: true if at least one dump has another build of this module instead of
	 * this build. */
	bool *is_rebuilt;
};

/* Fills `ranks`, allocating from `arena`. */
void module_ids_make(
	const struct dump_sums *dumps, size_t count, struct module_ids *ranks, struct arena *arena);

/*
 * Locations: a dump's addresses in a form that can be compared between dumps. A location is an
 * offset in a module, and the number of a module is the same in all dumps.
 *
 * Locations borrow the dumps. Modules are numbered by name, from 1. */

/* Ordered by unit, then by offset. */
struct location {
	/* module number, or 0 for an address in no module; stack_classes.c adds larger units */
	uint64_t unit;
	uint64_t offset; /* or the address, if in no module */
};

/* One dump's modules, arranged for searching. Dumps with equal modules share the arrays. */
struct places_dump {
	const struct dump_sums *sums;
	uint64_t *bases;
	/*
	 * Cache of 1 << memo_bits entries. All addresses with the same upper 48 bits share an
	 * entry. The upper 48 bits of an entry are the upper bits of these addresses. The low 16
	 * bits are the number of modules that start at or below these addresses. An empty entry is
	 * UINT64_MAX. Threads read and write single entries without a lock. */
	_Atomic uint64_t *memo;
	unsigned memo_bits;
	const uint32_t *ranks; /* indexed by module */
	/* indexed by rank: index of the module in the dump; UINT32_MAX: not in the dump */
	uint32_t *first;
	/* Nearest dumps of the same process with different modules. They can identify addresses
	 * that this dump's own modules cannot. */
	const struct places_dump *older, *newer;
};

struct locations {
	const struct dump_sums *sums; /* indexed by dump */
	struct places_dump *dumps;
	size_t dump_count;
	/* indexed by dump: the first dump with the same modules at the same addresses, so that
	 * every address has the same location in both dumps */
	uint32_t *alike;
	size_t *carriers; /* dumps that contain names of functions, newest first */
	size_t carrier_count;
	struct module_ids ranks;
	struct arena arena;
};

void locations_make(struct locations *locations, const struct dump_sums *dumps, size_t count,
	bool is_one_process);
void locations_release(struct locations *locations);

struct place_module {
	const struct module *module; /* NULL: no module found */
	size_t dump;
};

/* Returns the location of a return address. Stores the module in `*found` unless `found` is NULL.
 * If the dump has no module at `addr`, searches other dumps of the same process, older ones
 * first. */
struct location location_of(
	const struct locations *locations, size_t dump, uint64_t addr, struct place_module *found);

/*
 * Returns the number of frames to compare in a dump's stack, starting at the innermost one.
 * Outermost frames in no module are ignored. Such frames are not calls, but arbitrary stack content
 * after a frame that could not be unwound. However, all frames are compared if no frame is in a
 * module, if the frames are texts, or if the stack is ambiguous. */
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
 * Names of the requested locations. Each name is looked up only once. Matching uses the names to
 * compare frames of rebuilt modules, and reports print them.
 *
 * A location's name comes from the newest dump that contains a name for it, otherwise from the
 * module's own file. struct names borrows the dumps and locations, and owns the symbols. */

struct named_place {
	struct location place;
	const struct module *module; /* NULL: in no module */
	uint32_t dump; /* dump that provides the names and the module */
	uint32_t row_class; /* assigned by names_classify(); 0: no class */
	uint32_t function; /* class according to CLASS_FUNCTION */
	/* the name comes from a second copy of the module in the dump, or from an unloaded
	 * module */
	bool is_aside;
	struct symbols found;
};

struct names {
	const struct locations *locations;
	struct hash_index index;
	struct named_place *list;
	size_t count, cap;
	size_t resolved_count; /* number of names at the start of `list` that are resolved */
	const struct symbol_options *options; /* may be NULL */
	struct symbolizer *symbolizer; /* NULL until needed */
};

/* `locations` and `options` (which may be NULL) must outlive `names`. */
void names_init(struct names *names, const struct locations *locations,
	const struct symbol_options *options);
void names_release(struct names *names);

/* Requests the name of a return address in a dump. */
void names_want(struct names *names, size_t dump, uint64_t addr);

/* Looks up all requested names that are not resolved yet. Finds no names if symbol_options_check()
 * rejects the options. */
void names_resolve(struct names *names);

/* Returns a short message about a failed lookup, or NULL. */
const char *names_trouble(const struct names *names);

/* Rule for treating locations in a function as equal across builds of the module. */
enum name_class {
	CLASS_FUNCTION, /* all locations in the function */
	CLASS_LINE, /* all locations on one line */
	/* All locations at one offset from the function's start, if at least two builds have a
	 * location at that offset. The code there is unchanged, even if its lines moved. The
	 * remaining locations are compared by line if one build has all of their lines. Otherwise,
	 * the remaining locations form one class. */
	CLASS_CODE,
};

/* Assigns a class, from 1, to every location that has a name. Equal locations get equal classes.
 * Classes are in order of their names. */
void names_classify(struct names *names, enum name_class by);

/* Returns the named location, or NULL if it was not requested. */
const struct named_place *names_find(const struct names *names, const struct location *place);

#endif
