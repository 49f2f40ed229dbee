/* Sources of names: the backends, and an image's own tables. */
#ifndef SYMBOLIZE_BACKEND_BACKEND_H
#define SYMBOLIZE_BACKEND_BACKEND_H

#include "core/base/memory.h"
#include "symbolize/files/module_files.h"
#include "symbolize/symbolize.h"

/*
 * Symbol tables of a module. They are the last resort for a name, and confirm or reject names that
 * a backend returns without a line.
 *
 * The tables are the symbols that mingw leaves in an image, the private and public symbols of its
 * PDB, its exports, and its unwind table of functions. Each is read once, when first needed. An
 * unreadable table counts as empty.
 */

struct tables;

/* Opens no file yet. files must outlive the tables. no_demangle keeps names as they are. */
struct tables *tables_new(const struct module_files *files, bool no_demangle);
void tables_free(struct tables *tables);

/* Closes the files; loaded tables stay usable. */
void tables_rest(struct tables *tables);

/*
 * Finds the function that covers rva. It is the last one that begins at or below rva and can reach
 * it, or the one whose part at rva was moved away. Returns 1 and fills *symbol (texts in the arena,
 * offset of the byte after rva) and *by ("symbols", "private symbols", "publics" or "exports").
 * Returns 0 if no function is found. `said` is another source's name of the function, which selects
 * among several names; or NULL.
 */
int tables_find(struct tables *tables, uint32_t rva, const char *said, struct arena *arena,
	struct symbol *symbol, const char **by);

/* Returns true if rva surely belongs to the function at start: the table of functions has both in
 * one function. Without that table (32-bit images, PDBs alone): all function starts are known, and
 * none is between. */
bool tables_reach(struct tables *tables, uint32_t start, uint32_t rva);

/* Returns true if rva surely does not belong to it, by the table of functions. */
bool tables_deny(struct tables *tables, uint32_t start, uint32_t rva);

/* Returns the offset of the byte after rva from the start of its function. Returns 0 if the offset
 * is unknown, or if rva is in a moved part and the function starts after it. If *is_sure is false,
 * the offset is from the last function whose name is known, and an unknown function may be
 * between. */
uint64_t tables_offset(struct tables *tables, uint32_t rva, bool *is_sure);

struct table_name {
	const char *raw; /* as the compiler made it; lives as long as the tables */
	const char *table; /* like *by above */
	bool is_said; /* names the same function as `said` */
	bool is_for_others; /* from the exports: need not be the name in the source */
};

/* Finds the best name of a function that begins exactly at rva. Returns 1, or 0 if no table has
 * one. `said` as above. */
int tables_name_at(struct tables *tables, uint32_t rva, const char *said, struct table_name *name);

/* Returns a copy of the name in the arena, demangled if possible and wanted. */
const char *tables_shown(struct tables *tables, const char *raw, struct arena *arena);

/*
 * Backends: readers of debug information. They are DbgHelp (Windows and Wine) and the program
 * llvm-symbolizer (anywhere). backends_posix.c and backends_windows.c list those of a platform in
 * order of use; an address without a name goes on to the next. A backend that is missing or fails
 * is not an error: it just has no names.
 */

struct sym_module {
	uint32_t number; /* from 0, in order of arrival; unique within a symbolizer */
	const struct module *module;
	struct module_files files;
	struct tables *tables;
	uint16_t answered_by; /* bits, see sources.c */
};

struct lookup {
	uint32_t rva; /* of the call: the return address minus 1 */
	struct symbols found; /* offsets are those of the return address */
	/* The backend has read the files; found is all that they contain, even if empty. False if a
	 * helper is missing or has died. */
	bool is_answered;
	bool is_sure; /* the debug information itself confirms that the function covers rva */
};

/* Operations of a backend. make() returns its state, which is passed to the other functions. */
struct backend_kind {
	const char *name; /* for messages */
	/* names of C++ functions include parameters; otherwise tables may add them */
	bool says_parameters;

	/* Creates the state; starts no process yet. Both arguments are borrowed. */
	void *(*make)(const struct symbol_options *options, const struct finder *finder);
	void (*release)(void *backend);

	/*
	 * Fills in found, in the arena, for lookups that have no name yet, and sets is_answered.
	 * The lookups are sorted by rva. Returns early if the listener cancels. May append to
	 * subject->files.reason why there are no names. Returns 0.
	 */
	int (*resolve)(void *backend, struct sym_module *subject, struct lookup *lookups,
		size_t count, struct arena *arena);

	/* Returns why the backend gave up, in a few words, or NULL. A missing backend is not
	 * trouble. */
	const char *(*trouble)(const void *backend);
};

/* Ends with NULL; at most 4. */
extern const struct backend_kind *const backends[];
#define BACKENDS_MAX 4

extern const struct backend_kind dbghelp_backend, llvm_backend;

#endif
