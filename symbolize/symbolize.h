/*
 * Names for addresses: address -> module!function+offset (file, line).
 *
 * The only header of this room that others include. A dump may carry names (hsym writes them);
 * else they come from the user's cache, and else from the module's own files, which are looked for,
 * checked to be those that the dump means, and asked through the backends that this platform has
 * (backend/backend.h), in their order, and last the files' own tables of symbols.
 * A file that is not the build which the dump recorded is not asked, and no symbol that merely lies
 * somewhere below an address is given: no name is better than a wrong one.
 * What nobody knows is found.count == 0, and the caller shows module+offset.
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
	/* From the function's start to the return address; 0: not known (a return address is never
	 * at a start). What is inlined often has none. */
	uint64_t offset_bytes;
	const char *file; /* or NULL */
	uint32_t line; /* 1 and up; 0: not known */
};

/* What one return address stands for: functions inlined there first, the function itself last. */
struct symbols {
	const struct symbol *list;
	size_t count; /* 0: no name */
};

/* ---------------------------------------------------------------- names that a dump carries */

/* The names one dump carries ("// hsnap: name" lines), by return address. */
struct symbol_names;
struct symbol_names *symbol_names_new(void);
void symbol_names_free(struct symbol_names *names);

/* Takes in one note of kind "name". Returns 0 or -ERR_BAD_LINE. */
int symbol_names_note(struct symbol_names *names, const struct kv *pairs);

/* count 0 when the dump has no name for it; valid as long as names is. */
struct symbols symbol_names_find(const struct symbol_names *names, uint64_t addr);

/* Writes the "// hsnap: name" lines for one address, each ended by eol. */
void symbol_names_write(
	struct out *out, uint64_t addr, const struct symbols *symbols, const char *eol);

/* ---------------------------------------------------------------- what is asked for */

/* How a symbolizer speaks with the one who uses it, while it works. Each may be NULL. */
struct symbol_listener {
	void *ctx; /* handed to each */
	/* One sentence, one line, harmless to print: a file that is another build, a server that is
	 * not asked. Each once. */
	void (*warn)(void *ctx, const char *sentence);
	/* done of total addresses have been looked up; module: file name of the one whose turn it is.
	 * Called often, at least every 100 ms while another process or DbgHelp lets it. */
	void (*progress)(void *ctx, const char *module, size_t done, size_t total);
	/* true: stop looking. What was found by then stays, the rest has no names. Asked as often as
	 * progress is told. */
	bool (*is_cancelled)(void *ctx);
	/* A look-up that may take long begins, and ends. */
	void (*busy)(void *ctx, bool is_busy);
	struct symbol_counts *counts; /* the symbolizer's own */
};

/* All zero is a good default. Whoever fills it in keeps it alive as long as the symbolizer. */
struct symbol_options {
	const char *symbol_path; /* as _NT_SYMBOL_PATH, which is used when this is NULL */
	bool is_path_checked; /* by symbol_options_warn() */
	const char *const *maps; /* "FROM=TO": paths that begin with FROM are looked for at TO */
	size_t map_count;
	const char *const *strip_paths; /* file names that begin with one are shown without it */
	size_t strip_count;
	bool no_demangle; /* names as the compiler made them */
	bool allow_mismatch; /* use a file that is another build, too */
	bool no_cache;
	bool no_local_files; /* no file that only a dump or an image names */
	/* The user named the one file: reasons leave out what was warned of, and that a PDB's image is not
	 * here. */
	bool is_one_file;
	unsigned patience_ms; /* for one answer of another process; 0: 20000 */
	struct symbol_listener listener;
};

struct symbol_query {
	uint64_t addr; /* a return address in the dump's process: looked up at addr - 1 */
	const struct module *module; /* module_of_return(); NULL: there is no name */
	const struct symbol_names *names; /* of the dump, asked first; or NULL */
	struct symbols found; /* out */
};

struct symbolizer;

/* Starts nothing yet. options may be NULL. Returns NULL and fills err, ERR_USAGE, for a
 * map or a symbol path that makes no sense. */
struct symbolizer *symbolizer_new(const struct symbol_options *options, struct err *err);

/* Ends helper processes, writes what is new to the cache and frees all names it gave. */
void symbolizer_free(struct symbolizer *symbolizer);

/*
 * Answers queries, as many at once as there are: each distinct address is resolved once. The names
 * live as long as the symbolizer. Returns 0, also when there are no names, or it was cancelled.
 */
void symbolizer_resolve(
	struct symbolizer *symbolizer, struct symbol_query *queries, size_t count, struct err *err);

/* Why there may be fewer names than there could be, a few words; NULL: nothing went wrong. */
const char *symbolizer_trouble(const struct symbolizer *symbolizer);

/* How the names of one module came about, or why there are none. Texts live as long as the
 * symbolizer, or until it resolves more. */
struct symbol_status {
	const char *image, *debug; /* the files that were used, on this machine; or NULL */
	const char
		*by; /* who answered: "cache", "DbgHelp", "llvm-symbolizer", "exports", ...; "" */
	const char *reason; /* why there are no names or poor ones, one line; "": nothing to say */
};

/* Looks for the files of a module, also when no query was about it. Returns 0. */
void symbolizer_story(struct symbolizer *symbolizer, const struct module *module,
	struct symbol_status *story, struct err *err);

/* ---------------------------------------------------------------- what commands share */

/* The options that every command that looks up names has: rows of a table of struct opt. */
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

/* What they say. Zeroed at first; texts are those of argv, which must outlive it. */
struct symbol_arguments {
	struct symbol_options options;
	const char **maps, **strips;
	size_t map_cap, strip_cap;
};

/* Takes what opt_next() found: 1; 0 when id is no option of these; -ERR_USAGE, with the option and its
 * value as the place. */
int symbol_arguments_take(
	struct symbol_arguments *arguments, int id, const char *value, struct err *err);
/* Whether symbolizer_new() can make sense of them, and of the environment: 0 or -ERR_USAGE. */
int symbol_options_check(const struct symbol_options *options, struct err *err);
/* Warns the listener of folders in a symbol path that was given and that are missing, also if no name is looked for. */
void symbol_options_warn(struct symbol_options *options);
void symbol_arguments_release(struct symbol_arguments *arguments);

/* The listener of a command: warnings are lines "PROGRAM: SENTENCE", a terminal sees how far it is, and
 * the first Ctrl-C while names are looked up ends that alone (os_hold_interrupt()). */
struct symbol_console {
	const char *program; /* "hsym" */
	FILE *to;
	char what[60];
	struct progress progress;
};

/* The listener borrows console and program. */
struct symbol_listener symbol_console_listener(
	struct symbol_console *console, const char *program, FILE *to);

/* Whether Ctrl-C ended the looking for names. */
bool symbol_console_stopped(void);

#endif
