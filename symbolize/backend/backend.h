/* Sources of names: the backends, and the image's own tables. */
#ifndef SYMBOLIZE_BACKEND_BACKEND_H
#define SYMBOLIZE_BACKEND_BACKEND_H

#include "core/base/memory.h"
#include "symbolize/files/module_files.h"
#include "symbolize/symbolize.h"

/*
 * Symbol tables of a module. They are the last resort for finding a name. They also confirm or
 * reject names that a backend returns without a line.
 *
 * The tables are: the symbols that mingw leaves in an image, the private and public symbols of its
 * PDB, its exports, and its unwind table of functions. Each table is read once, when first needed.
 * An unreadable table counts as empty.
 */

struct tables;

/* Creates the tables of a module without opening a file. `files` must outlive the tables. If
 * `no_demangle` is set, names stay as the compiler made them. */
struct tables *tables_new(const struct module_files *files, bool no_demangle);
void tables_free(struct tables *tables);

/* Closes the files. Tables already loaded stay usable. */
void tables_rest(struct tables *tables);

/*
 * Finds the function that covers rva. This is either the last function that begins at or below rva
 * and extends to rva, or a function whose part at rva was separated from it. `other_name` is the
 * name that another source has for the function, or NULL. It helps to choose among several names.
 *
 * Returns 1 and sets `*symbol` and `*by`. The strings of the symbol are in the arena, and its
 * offset is that of the byte after rva. `*by` is "symbols", "private symbols", "publics" or
 * "exports". Returns 0 if no function is found.
 */
int tables_find(struct tables *tables, uint32_t rva, const char *other_name, struct arena *arena,
	struct symbol *symbol, const char **by);

/* Returns true if rva certainly belongs to the function at `start`: according to the table of
 * functions, both are in the same function. Without that table (32-bit images, PDBs without an
 * image), all function starts must be known, and none may lie between `start` and rva. */
bool tables_reach(struct tables *tables, uint32_t start, uint32_t rva);

/* Returns true if, according to the table of functions, rva certainly does not belong to the
 * function at `start`. */
bool tables_deny(struct tables *tables, uint32_t start, uint32_t rva);

/* Returns the distance from the start of rva's function to the byte after rva. Returns 0 if the
 * distance is unknown. Also returns 0 if rva is in a separated part of a function that starts after
 * rva. If `*is_sure` is false, the distance is from the last function whose name is known; an
 * unknown function may lie in between. */
uint64_t tables_offset(struct tables *tables, uint32_t rva, bool *is_sure);

struct table_name {
	const char *raw; /* mangled name; valid until tables_free() */
	const char *table; /* "symbols", "private symbols", "publics" or "exports" */
	bool is_said; /* names the same function as `other_name` */
	bool is_for_others; /* an export's name, which may differ from the name in the source */
};

/* Finds the best name of a function that begins exactly at rva. Returns 1, or 0 if no table has a
 * name. `other_name` has the same meaning as for tables_find(). */
int tables_name_at(
	struct tables *tables, uint32_t rva, const char *other_name, struct table_name *name);

/* Returns a copy of the name in the arena, demangled if that is possible and not disabled. */
const char *tables_shown(struct tables *tables, const char *raw, struct arena *arena);

/*
 * Backends: readers of debug information, which are DbgHelp (Windows and Wine) and the program
 * llvm-symbolizer (all systems). backends_posix.c and backends_windows.c list the backends of each
 * platform in order of use. An address for which a backend has no name is passed to the next
 * backend. A backend that is missing or fails is not an error: it just has no names.
 */

struct sym_module {
	uint32_t number; /* counts from 0, in order of arrival; unique within a symbolizer */
	const struct module *module;
	struct module_files files;
	struct tables *tables;
	uint16_t answered_by; /* bits defined in sources.c */
};

struct lookup {
	uint32_t rva; /* rva of the call: the return address minus 1 */
	struct symbols found; /* offsets are computed for the return address */
	/* true: a backend has read the files, so `found` is complete, even if it is empty; false: a
	 * helper is missing or has died */
	bool is_answered;
	bool is_sure; /* the debug information itself confirms that the function covers rva */
};

/* Operations of a backend. Its state is created by make() and passed to all other functions. */
struct backend_kind {
	const char *name; /* name for messages */
	/* The backend's C++ names include parameters. If not, the tables may add parameters. */
	bool says_parameters;

	/* Creates the state. Does not start a process yet. `options` and `finder` must outlive the
	 * state. */
	void *(*make)(const struct symbol_options *options, const struct finder *finder);
	void (*release)(void *backend);

	/*
	 * For each lookup without a name, fills in `found` (strings in the arena) and sets
	 * `is_answered`. The lookups must be sorted by rva. Returns early if the listener cancels.
	 * If there are no names, may append the reason to subject->files.reason.
	 */
	void (*resolve)(void *backend, struct sym_module *subject, struct lookup *lookups,
		size_t count, struct arena *arena);

	/* Returns why the backend gave up, in a few words, or NULL. A missing backend does not
	 * count as a failure. */
	const char *(*trouble)(const void *backend);
};

/* Terminated by NULL; at most 4 backends. */
extern const struct backend_kind *const backends[];
#define BACKENDS_MAX 4

extern const struct backend_kind dbghelp_backend, llvm_backend;

#endif
