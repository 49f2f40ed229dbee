/*
 * Names for addresses: address -> module!function+offset (file, line). This is the only header of
 * the folder that other folders include.
 *
 * A name comes from the first of these sources that has one:
 *
 *  the dump itself: hsym writes names into dumps
 *  the user's cache
 *  the platform's backends, in their order (backend/backend.h)
 *  the module files' own symbol tables
 *
 * Module files are searched for and checked against the build that the dump recorded; a file of
 * another build is not used. A symbol is not used merely because it is the nearest one below an
 * address: no name is better than a wrong one. If no source has a name, found.count is 0 and the
 * caller shows module+offset.
 *
 * A symbolizer belongs to one thread.
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
	/* From the function's start to the return address; 0: unknown (a return address is never at
	 * a start). Often unknown for inlined functions. */
	uint64_t offset_bytes;
	const char *file; /* or NULL */
	uint32_t line; /* from 1; 0: unknown */
};

/* Functions at one return address: first the inlined ones, innermost first, then the function
 * itself. */
struct symbols {
	const struct symbol *list;
	size_t count; /* 0: no name */
};

/* ---------------------------------------------------------------- names in a dump */

/* Names in one dump ("// hsnap: name" lines), by return address. */
struct symbol_names;
struct symbol_names *symbol_names_new(void);
void symbol_names_free(struct symbol_names *names);

/* Adds one note of kind "name". Returns 0 or -ERR_BAD_LINE. */
int symbol_names_note(struct symbol_names *names, const struct kv *pairs);

/* Finds the names of an address; count is 0 if the dump has none. The result is valid as long as
 * names. */
struct symbols symbol_names_find(const struct symbol_names *names, uint64_t addr);

/* Writes the "// hsnap: name" lines for one address, each ended by eol. */
void symbol_names_write(
	struct out *out, uint64_t addr, const struct symbols *symbols, const char *eol);

/* ---------------------------------------------------------------- options and queries */

/* Callbacks from a working symbolizer to its user. Each may be NULL. */
struct symbol_listener {
	void *ctx;
	/* Reports a warning, such as a file of another build or a server that is not used. The
	 * warning is one sentence on one line without control characters, and is reported once. */
	void (*warn)(void *ctx, const char *sentence);
	/* Reports that `done` of `total` addresses have been looked up; module is the file name of
	 * the current one. Called at least every 100 ms, except while another process or DbgHelp
	 * blocks. */
	void (*progress)(void *ctx, const char *module, size_t done, size_t total);
	/* Returns true to stop the search: names found so far stay, the other addresses get none.
	 * Called as often as progress(). */
	bool (*is_cancelled)(void *ctx);
	/* Reports the beginning and the end of a look-up that may take long. */
	void (*busy)(void *ctx, bool is_busy);
	struct symbol_counts *counts; /* the symbolizer's own */
};

/* All zero is a good default. What the fields point to must outlive the symbolizer. */
struct symbol_options {
	const char *symbol_path; /* like _NT_SYMBOL_PATH; NULL: use that variable */
	bool is_path_checked; /* by symbol_options_warn() */
	const char *const *maps; /* "FROM=TO": search at TO for paths that begin with FROM */
	size_t map_count;
	const char *const *strip_paths; /* prefixes to remove from source file names */
	size_t strip_count;
	bool no_demangle;
	bool allow_mismatch;
	bool no_cache;
	bool no_local_files; /* ignore files that only a dump or an image names */
	/* The user named the one file: reasons omit what a warning has reported, and that the image
	 * of a PDB is missing. */
	bool is_one_file;
	unsigned patience_ms; /* for one answer of another process; 0: the default, 20000 */
	struct symbol_listener listener;
};

struct symbol_query {
	uint64_t addr; /* return address in the dump's process; looked up at addr - 1 */
	const struct module *module; /* module_of_return(); NULL: gets no name */
	const struct symbol_names *names; /* names in the dump, used first; or NULL */
	struct symbols found; /* out */
};

struct symbolizer;

/* Creates a symbolizer; starts no process yet. options may be NULL. Returns NULL and fills err
 * (ERR_USAGE) if a map or a symbol path is invalid. */
struct symbolizer *symbolizer_new(const struct symbol_options *options, struct err *err);

/* Ends helper processes, writes new names to the cache, and frees all names that the symbolizer
 * returned. */
void symbolizer_free(struct symbolizer *symbolizer);

/*
 * Answers all queries; resolves each distinct address once. Names live as long as the symbolizer.
 * Missing names and cancelling are not errors.
 */
void symbolizer_resolve(
	struct symbolizer *symbolizer, struct symbol_query *queries, size_t count, struct err *err);

/* Returns why names may be missing, in a few words; NULL if nothing went wrong. */
const char *symbolizer_trouble(const struct symbolizer *symbolizer);

/* Sources of one module's names, or the reason for having none. The texts live until the symbolizer
 * resolves more or is freed. */
struct symbol_status {
	const char *image, *debug; /* files used, on this machine; or NULL */
	const char *by; /* source of the names, such as "cache", "DbgHelp" or "exports"; or "" */
	const char *reason; /* why names are missing or poor, one line; or "" */
};

/* Fills in the sources of a module's names; searches for its files even if no query was about
 * it. */
void symbolizer_story(struct symbolizer *symbolizer, const struct module *module,
	struct symbol_status *story, struct err *err);

/* ---------------------------------------------------------------- shared by commands */

/* Options of every command that looks up names: rows of a table of struct opt. */
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
	{SYMBOL_OPT_MAP, NULL, "map", "FROM=TO", "look for paths that begin with FROM at TO; repeatable"}, \
	{SYMBOL_OPT_STRIP, NULL, "strip-path", "PREFIX", "show source files without PREFIX; repeatable"}, \
	{SYMBOL_OPT_RAW, NULL, "no-demangle", NULL, "show names as the compiler made them"}, \
	{SYMBOL_OPT_MISMATCH, NULL, "allow-mismatch", NULL, "use files of another build, too"}, \
	{SYMBOL_OPT_NO_CACHE, NULL, "no-cache", NULL, "use no names found before, and keep none"}, \
	{SYMBOL_OPT_NO_LOCAL, NULL, "no-local-files", NULL, "look for files only where -y and --map say"}
/* clang-format on */

/* Parsed options. Must start zeroed; texts point into argv, which must outlive the struct. */
struct symbol_arguments {
	struct symbol_options options;
	const char **maps, **strips;
	size_t map_cap, strip_cap;
};

/* Handles an option found by opt_next(). Returns 1; 0 if id is not one of SYMBOL_OPTS; -ERR_USAGE,
 * with the option and its value as the place. */
int symbol_arguments_take(
	struct symbol_arguments *arguments, int id, const char *value, struct err *err);
/* Checks options and environment as symbolizer_new() does. Returns 0 or -ERR_USAGE. */
int symbol_options_check(const struct symbol_options *options, struct err *err);
/* Warns the listener of missing folders in an explicit symbol path, even if no name is looked
 * up. */
void symbol_options_warn(struct symbol_options *options);
void symbol_arguments_release(struct symbol_arguments *arguments);

/* Listener of a command: prints warnings as "PROGRAM: SENTENCE" and progress on a terminal. The
 * first Ctrl-C during a look-up ends only the look-up (os_hold_interrupt()). */
struct symbol_console {
	const char *program; /* "hsym" */
	FILE *to;
	char what[60];
	struct progress progress;
};

/* Returns a listener that borrows console and program. */
struct symbol_listener symbol_console_listener(
	struct symbol_console *console, const char *program, FILE *to);

/* Returns true if Ctrl-C ended a look-up. */
bool symbol_console_stopped(void);

#endif
