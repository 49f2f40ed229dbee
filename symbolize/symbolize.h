/*
 * Names for addresses: address -> module!function+offset (file, line). Other folders include only
 * this header of the folder.
 *
 * A name comes from the first of these sources that has one:
 *
 *  1. the dump itself, because hsym writes names into dumps
 *  2. the user's cache
 *  3. the platform's backends, in order (backend/backend.h)
 *  4. the symbol tables in the module files
 *
 * Module files are searched for, and must match the build recorded in the dump; a file of another
 * build is not used. A symbol is not used merely because it is the nearest one below an address: no
 * name is better than a wrong one. If no source has a name, found.count is 0, and the caller shows
 * module+offset.
 *
 * A symbolizer must be used on only one thread.
 */
#ifndef SYMBOLIZE_SYMBOLIZE_H
#define SYMBOLIZE_SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/opt.h"
#include "core/base/terminal.h"
#include "core/dump/kv.h"
#include "core/dump/model.h"
#include "core/io/out.h"

struct symbol {
	const char *function;
	/* Distance from the function's start to the return address. 0: unknown, which is
	 * unambiguous because a return address is never at a function's start. Often unknown for
	 * inlined functions. */
	uint64_t offset_bytes;
	const char *file; /* source file, or NULL */
	uint32_t line; /* counts from 1; 0: unknown */
	/* Names before they were demangled or shortened; NULL: equal. */
	const char *recorded_function, *recorded_file;
};

/* Functions at one return address: inlined functions, innermost first, then the function itself. */
struct symbols {
	const struct symbol *list;
	size_t count; /* 0: no name */
};

/* ---------------------------------------------------------------- names in a dump */

/* Names in one dump ("// hsnap: name" lines), by return address. */
struct symbol_names;
struct symbol_names *symbol_names_new(void);
void symbol_names_free(struct symbol_names *names);

/* Adds a note of kind "name". Returns 0 or -ERR_BAD_LINE. */
int symbol_names_note(struct symbol_names *names, const struct kv *pairs);

/* Finds the names of an address; `count` is 0 if the dump has none. The result is valid until
 * `names` is freed. */
struct symbols symbol_names_find(const struct symbol_names *names, uint64_t addr);

/* Writes the "// hsnap: name" lines for one address. Each line ends with `eol`. */
void symbol_names_write(
	struct out *out, uint64_t addr, const struct symbols *symbols, const char *eol);

/* ---------------------------------------------------------------- options and queries */

/* Callbacks from a symbolizer to its user. Each may be NULL. */
struct symbol_listener {
	void *ctx;
	/* Reports a warning, for example about a file of another build or a server that is not
	 * used. The warning is one sentence on one line without control characters. Each warning is
	 * reported only once. */
	void (*warn)(void *ctx, const char *sentence);
	/* Reports that `done` of `total` addresses have been looked up. `module` is the file name
	 * of the current module. Called at least every 100 ms, except while another process or
	 * DbgHelp blocks. */
	void (*progress)(void *ctx, const char *module, size_t done, size_t total);
	/* Returns true to stop the search. Names found so far remain, and the other addresses get
	 * none. Called as often as progress(). */
	bool (*is_cancelled)(void *ctx);
	/* Reports the beginning and the end of a look-up that may take a long time. */
	void (*busy)(void *ctx, bool is_busy);
	struct symbol_counts *counts; /* set by the symbolizer itself */
};

/* Zeroed options are valid and give the defaults. Data that the members point to must outlive the
 * symbolizer. */
struct symbol_options {
	const char *symbol_path; /* same syntax as _NT_SYMBOL_PATH; NULL: use that variable */
	bool is_path_checked; /* set by symbol_options_warn() */
	const char *const *maps; /* "FROM=TO": look at TO for paths that begin with FROM */
	size_t map_count;
	const char *const *strip_paths; /* prefixes to remove from source file names */
	size_t strip_count;
	bool no_demangle;
	bool allow_mismatch;
	bool no_cache;
	bool no_local_files; /* ignore files at paths that only a dump or an image contains */
	/* The only file is one that the user named. So reasons omit facts already reported by a
	 * warning, and do not mention that a PDB's image is missing. */
	bool is_one_file;
	/* time limit for one answer of another process; 0: the default, 20000 */
	unsigned patience_ms;
	struct symbol_listener listener;
};

struct symbol_query {
	uint64_t addr; /* return address in the dump's process; the look-up uses addr - 1 */
	/* result of module_of_return(); NULL: the address gets no name */
	const struct module *module;
	/* names recorded in the dump, which are used first; or NULL */
	const struct symbol_names *names;
	struct symbols found; /* result */
};

struct symbolizer;

/* Creates a symbolizer. Does not start a process yet. `options` may be NULL. If a map or the symbol
 * path is invalid, returns NULL and fills `err` (ERR_USAGE). */
struct symbolizer *symbolizer_new(const struct symbol_options *options, struct err *err);

/* Stops helper processes, writes new names to the cache, and frees all names that the symbolizer
 * returned. */
void symbolizer_free(struct symbolizer *symbolizer);

/*
 * Fills in `found` for all queries, resolving each distinct address once. The names are valid until
 * symbolizer_free(). Missing names and cancelling are not errors.
 */
void symbolizer_resolve(struct symbolizer *symbolizer, struct symbol_query *queries, size_t count);

/* Returns why names may be missing, in a few words, or NULL if nothing went wrong. */
const char *symbolizer_trouble(const struct symbolizer *symbolizer);

/* Sources of one module's names, or the reason why the module has no names. The strings are valid
 * until the symbolizer resolves more addresses or is freed. */
struct symbol_status {
	const char *image, *debug; /* files used, on this machine; each may be NULL */
	const char *by; /* sources of the names, such as "cache", "DbgHelp" or "exports"; or "" */
	const char *reason; /* one line: why names are missing or poor; or "" */
};

/* Fills in the sources of a module's names. Searches for the module's files even if no query was
 * about the module. */
void symbolizer_explain(
	struct symbolizer *symbolizer, const struct module *module, struct symbol_status *story);

/* ---------------------------------------------------------------- shared by commands */

/* Options shared by all commands that look up names: rows for a table of struct opt. */
enum {
	SYMBOL_OPT_PATH = 900,
	SYMBOL_OPT_MAP,
	SYMBOL_OPT_STRIP,
	SYMBOL_OPT_RAW,
	SYMBOL_OPT_MISMATCH,
	SYMBOL_OPT_NO_CACHE,
	SYMBOL_OPT_NO_LOCAL,
};

/* clang-format off */
#define SYMBOL_OPTS \
	{SYMBOL_OPT_PATH, "y", "symbol-path", "PATH", "look for symbols in PATH, not in _NT_SYMBOL_PATH"}, \
	{SYMBOL_OPT_MAP, NULL, "map", "FROM=TO", "look in TO for files whose paths begin with FROM; repeatable"}, \
	{SYMBOL_OPT_STRIP, NULL, "strip-path", "PREFIX", "show source files without PREFIX; repeatable"}, \
	{SYMBOL_OPT_RAW, NULL, "no-demangle", NULL, "show mangled names, as the compiler made them"}, \
	{SYMBOL_OPT_MISMATCH, NULL, "allow-mismatch", NULL, "also use files from a different build"}, \
	{SYMBOL_OPT_NO_CACHE, NULL, "no-cache", NULL, "neither use nor store cached names"}, \
	{SYMBOL_OPT_NO_LOCAL, NULL, "no-local-files", NULL, "look for files only where -y and --map point"}
/* clang-format on */

/* Parsed options. Must be zeroed first. Strings point into argv, which must outlive the struct. */
struct symbol_arguments {
	struct symbol_options options;
	const char **maps, **strips;
	size_t map_cap, strip_cap;
};

/* Handles an option returned by opt_next(). Returns 1; 0 if `id` is not one of SYMBOL_OPTS; or
 * -ERR_USAGE with the option and its value as the error's place. */
int symbol_arguments_handle(
	struct symbol_arguments *arguments, int id, const char *value, struct err *err);
/* Checks the options and the environment in the same way as symbolizer_new(). Returns 0 or
 * -ERR_USAGE. */
int symbol_options_check(const struct symbol_options *options, struct err *err);
/* Warns the listener about missing folders in an explicit symbol path, even if no name will be
 * looked up. */
void symbol_options_warn(struct symbol_options *options);
void symbol_arguments_release(struct symbol_arguments *arguments);

/* A command's listener: prints warnings as "PROGRAM: SENTENCE", and prints progress on a terminal.
 * The first Ctrl-C during a look-up ends only the look-up (os_hold_interrupt()). */
struct symbol_console {
	const char *program; /* program name, such as "hsym" */
	FILE *to;
	char what[60];
	struct progress progress;
};

/* Returns a listener that uses console and `program`; both must outlive the listener. */
struct symbol_listener symbol_console_listener(
	struct symbol_console *console, const char *program, FILE *to);

/* Returns true if Ctrl-C ended a look-up. */
bool symbol_console_stopped(void);

#endif
