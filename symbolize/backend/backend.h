/*
 * Who reads debug information: DbgHelp (Windows and Wine) and the program llvm-symbolizer (anywhere).
 * backends_posix.c and backends_windows.c list those of a platform in the order they are asked; an
 * address that one has no name for goes to the next. One that is not there, or dies, is no error: it
 * knows no names.
 */
#ifndef SYMBOLIZE_BACKEND_H
#define SYMBOLIZE_BACKEND_H

#include "core/arena.h"
#include "symbolize/files/module_files.h"
#include "symbolize/symbolize.h"
#include "symbolize/tables/symbol_tables.h"

/* A module that is asked about, with all that is known of it here. */
struct subject {
	uint32_t number; /* from 0, in the order they came; no two of a symbolizer's are the same */
	const struct module *module;
	struct module_files files;
	struct tables *tables;
	uint16_t answered_by; /* bits, see sources.c */
};

struct lookup {
	uint32_t rva; /* of the call: one byte before the return address */
	struct symbols found; /* offsets are those of the return address */
	/* The backend asked its files and this is what they know, be it nothing: no answer is what a
	 * helper that is not there, or died, gives. */
	bool is_answered;
	bool is_sure; /* the debug information itself says that the function covers rva */
};

struct backend;

struct backend_kind {
	const char *name; /* for people */
	bool says_parameters; /* of C++ functions; else tables may know them */

	/* Starts nothing yet. Both are borrowed. NULL: out of memory. */
	struct backend *(*make)(const struct symbol_options *options, const struct finder *finder);
	void (*release)(struct backend *backend);

	/*
	 * Fills in found, in the arena, for those of the lookups that it knows a name for and that have
	 * none yet, and marks those it got an answer for; they are sorted by rva. Returns early when the
	 * listener cancels. May add to
	 * subject->files.reason why it knows none. 0 or -ERR_NOMEM.
	 */
	int (*resolve)(struct backend *backend, struct subject *subject, struct lookup *lookups,
		size_t count, struct arena *arena);

	/* What made it give up, a few words, or NULL. That it is not there is no trouble. */
	const char *(*trouble)(const struct backend *backend);
};

/* Ends with NULL; at most 4. */
extern const struct backend_kind *const backends[];
#define BACKENDS_MAX 4

extern const struct backend_kind dbghelp_backend, llvm_backend;

#endif
