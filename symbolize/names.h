/* Names: listener calls, safe copies, one spelling, stripped paths, demangling. */
#ifndef SYMBOLIZE_NAMES_H
#define SYMBOLIZE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/memory.h"
#include "symbolize/symbolize.h"

/* Calls to a symbolizer's listener (symbol_listener), which may be missing. */

/* Progress over all addresses of one symbolizer_resolve(); a backend sees only some of them. */
struct symbol_counts {
	size_t total, done;
	/* last `done` reported to the listener; progress never goes back when a second backend
	 * retries */
	size_t told;
};

/* Reports one printf-formatted sentence, with control characters replaced. */
void listener_warn(const struct symbol_options *options, const char *format, ...) PRINTF_LIKE(2, 3);

void listener_progress(
	const struct symbol_options *options, const char *module, size_t done, size_t total);

void listener_busy(const struct symbol_options *options, bool is_busy);

bool listener_is_cancelled(const struct symbol_options *options);

/*
 * Copies of names from outside: from debug information or a dump.
 *
 * Such names are untrusted. They are cut to a length that fits on a line of a dump. Control
 * characters are replaced because names are printed on a terminal.
 */

#define SYMBOL_TEXT_MAX 4000 /* bytes; two fit on a line even if every byte is written as \xHH */
#define SYMBOL_CHAIN_MAX 64 /* functions inlined into each other at one address */

/* Copies a chain and its texts to *copy. */
void names_keep(struct arena *arena, const struct symbol *list, size_t count, struct symbols *copy);

size_t symbols_count_lines(const struct symbols *symbols);

/* Own name of a function within its qualified name, such as "grab" in
 * "app::Pool<int>::grab<long>(long)". */

/* Returns the start of the own name in name; *len is its length without template arguments and
 * parameters. */
const char *names_own(const char *name, size_t *len);

/*
 * One spelling for names that compilers and tools write differently, so that one function is one
 * row on every system. Two parts are removed: the suffix of a compiler's clone (".isra.0", " [clone
 * .isra.0]" or " (.isra.0)"), and the decoration of a calling convention ("_f@8", "f@8", "@f@8",
 * "f@@16").
 */

/* Returns name itself if it has that spelling already, otherwise a copy in the arena. Names
 * decorated by Microsoft's compiler ("?f@@...") are unchanged. */
const char *names_plain(struct arena *arena, const char *name);

/* Source file names without a prefix that every reader knows. */

/* Returns the rest of path after `len` bytes of prefix and the slashes that follow; "" if path is
 * the prefix; NULL if path does not begin with the prefix. A prefix must end at a component; its
 * trailing slashes are ignored; '/' equals '\\'. any_case ignores the case of ASCII letters. */
const char *names_behind(const char *path, const char *prefix, size_t len, bool any_case);

/* Returns the rest of file after its longest matching prefix and the slashes that follow. Returns
 * file itself if no prefix matches or nothing would remain. Ignores case in paths with a drive or a
 * backslash. */
const char *names_strip_path(const char *file, const char *const *prefixes, size_t count);

/*
 * C++ demangling: "_ZN3app1fEi" -> "app::f(int)".
 *
 * Only Itanium names (gcc, clang for mingw); backend/undname.h handles Microsoft's ("?f@app@@...").
 * Names are hostile: the output is bounded even if a name repeats parts of itself.
 */

/* Returns true if name looks like one made by a C++ compiler: "_Z", "__Z", "?". */
bool is_mangled(const char *name);

/* Appends the demangled name to text and returns 1. Returns 0 and appends nothing if it is not an
 * Itanium name or is too long. */
int demangle_name(const char *name, struct buf *text);

/* Compares a name, mangled or not, with another tool's spelling, which may omit or change scopes,
 * parameters or a suffix. Returns 2: equal; 1: probably the same function; 0: different. */
int is_name_of(const char *name, const char *said);

/* Longest name that is demangled. */

#define MANGLED_MAX 1024 /* bytes; gcc's demangler has the same limit */

#endif
