/*
 * The names of the distinct places that were asked about, each looked for once whoever asks:
 * matching, which compares modules that were rebuilt by their names, and reports.
 *
 * The newest dump that carries a name for a place gives it; where none does, the module's own file
 * is asked. Names borrow the dumps and their places, and own the symbols.
 */
#ifndef DIFF_PLACE_NAMES_H
#define DIFF_PLACE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "diff/match/hash_index.h"
#include "diff/match/places.h"
#include "symbolize/symbolize.h"

struct named_place {
	struct place place;
	const struct module *module; /* NULL: in none */
	uint32_t dump; /* the one whose names and module are asked */
	uint32_t class; /* see names_classify(); 0: none */
	bool is_aside; /* a dump's further copy of the module, or an unloaded one, has the name */
	struct symbols found;
};

struct names {
	const struct places *places;
	struct hash_index index;
	struct named_place *list;
	size_t count, cap;
	size_t resolved_count; /* the first ones */
	const struct symbol_options *options; /* or NULL */
	struct symbolizer *symbolizer; /* NULL: not needed yet */
};

/* places, and options, which may be NULL, must outlive it. */
void names_init(
	struct names *names, const struct places *places, const struct symbol_options *options);
void names_release(struct names *names);

/* Asks for the names of a dump's return address. 0 or -ERR_NOMEM. */
int names_want(struct names *names, size_t dump, uint64_t addr);

/* Looks for all names that are wanted and were not looked for yet. 0 or -ERR_NOMEM; -ERR_USAGE when
 * symbol_options_check() was not asked and would have said so. */
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
 * Classes follow the text. 0 or -ERR_NOMEM. */
int names_classify(struct names *names, enum name_class by);

/* NULL: was not asked for. */
const struct named_place *names_find(const struct names *names, const struct place *place);

#endif
