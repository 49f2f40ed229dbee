/* Who gives names: the backends, and an image's own tables. */
#ifndef SYMBOLIZE_BACKEND_BACKEND_H
#define SYMBOLIZE_BACKEND_BACKEND_H

#include "core/base/memory.h"
#include "symbolize/files/module_files.h"
#include "symbolize/symbolize.h"

/*
 * What a module's own tables know of an address: the last resort for its name, and the judge of the
 * names that others give without a line.
 *
 * The tables are the symbols that mingw leaves in an image, the private and the public symbols of its PDB,
 * its exports, and its table of functions (exceptions). Each is read when first needed, once. One that cannot be read
 * has nothing in it.
 */

struct tables;

/* Opens nothing yet. files must outlive it; no_demangle: names as they are. */
struct tables *tables_new(const struct module_files *files, bool no_demangle);
void tables_free(struct tables *tables);

/* Closes the files; what was learned stays. */
void tables_rest(struct tables *tables);

/*
 * The last function that begins at or below rva and can reach it, or the one that rva's part was moved
 * away from: 1, *symbol (texts in the arena, offset that of the byte behind rva) and *by, "symbols",
 * "private symbols", "publics" or "exports"; 0: none. said: what another one calls it, which
 * of several names tells the right one; or NULL.
 */
int tables_find(struct tables *tables, uint32_t rva, const char *said, struct arena *arena,
	struct symbol *symbol, const char **by);

/* Whether it is known that the function at start is the one that rva belongs to, as both are of one function
 * in the table of these; or where there is none (32-bit images, PDBs alone), as no other begins between and
 * it is known where all begin. */
bool tables_reach(struct tables *tables, uint32_t start, uint32_t rva);

/* Whether it is known that it is not: the table of functions says so. */
bool tables_deny(struct tables *tables, uint32_t start, uint32_t rva);

/* From the start of the function that covers rva to the byte behind rva; 0: not known, or it starts
 * behind rva, which is in a part of it that was moved away. Unless *is_sure it is that of the last function
 * whose name is known, and another one may be between. */
uint64_t tables_offset(struct tables *tables, uint32_t rva, bool *is_sure);

struct table_name {
	const char *raw; /* as the compiler made it; as long as the tables */
	const char *table; /* as *by above */
	bool is_said; /* it means what was said */
	bool is_for_others; /* an export: it need not be what the source says */
};

/* The best name of a function that begins at exactly this rva: 1; 0: no table has one. said as above. */
int tables_name_at(struct tables *tables, uint32_t rva, const char *said, struct table_name *name);

/* A copy in the arena of such a name, demangled if that is wanted and possible. */
const char *tables_shown(struct tables *tables, const char *raw, struct arena *arena);

/*
 * Who reads debug information: DbgHelp (Windows and Wine) and the program llvm-symbolizer (anywhere).
 * backends_posix.c and backends_windows.c list those of a platform in the order they are asked; an
 * address that one has no name for goes to the next. One that is not there, or dies, is no error: it
 * knows no names.
 */

/* A module that is asked about, with all that is known of it here. */
struct sym_module {
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

/* What make() returns is the backend's own, and is handed to its other functions. */
struct backend_kind {
	const char *name; /* for people */
	bool says_parameters; /* of C++ functions; else tables may know them */

	/* Starts nothing yet. Both are borrowed. */
	void *(*make)(const struct symbol_options *options, const struct finder *finder);
	void (*release)(void *backend);

	/*
	 * Fills in found, in the arena, for those of the lookups that it knows a name for and that have
	 * none yet, and marks those it got an answer for; they are sorted by rva. Returns early when the
	 * listener cancels. May add to
	 * subject->files.reason why it knows none. 0.
	 */
	int (*resolve)(void *backend, struct sym_module *subject, struct lookup *lookups,
		size_t count, struct arena *arena);

	/* What made it give up, a few words, or NULL. That it is not there is no trouble. */
	const char *(*trouble)(const void *backend);
};

/* Ends with NULL; at most 4. */
extern const struct backend_kind *const backends[];
#define BACKENDS_MAX 4

extern const struct backend_kind dbghelp_backend, llvm_backend;

#endif
