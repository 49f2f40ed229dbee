/* Names: listener calls, safe copies, uniform spelling, stripped paths, demangling. */
#ifndef SYMBOLIZE_NAMES_H
#define SYMBOLIZE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/memory.h"
#include "symbolize/symbolize.h"

/* Calls to a symbolizer's listener (symbol_listener), which may be NULL. */

/* Progress over all addresses in one call of symbolizer_resolve(). A backend knows only some of
 * these addresses. */
struct symbol_counts {
	size_t total, done;
	/* last `done` reported to the listener; prevents progress from going back when a second
	 * backend retries */
	size_t told;
};

/* Reports one printf-formatted sentence, with control characters replaced. */
void listener_warn(const struct symbol_options *options, const char *format, ...) PRINTF_LIKE(2, 3);

void listener_progress(
	const struct symbol_options *options, const char *module, size_t done, size_t total);

void listener_busy(const struct symbol_options *options, bool is_busy);

bool listener_is_cancelled(const struct symbol_options *options);

/*
 * Safe copies of names from debug information or a dump.
 *
 * Such names are untrusted. They are truncated to a length that fits on a line of a dump. Control
 * characters are replaced, because names are printed on a terminal.
 */

/* bytes; two such strings fit on one line even if every byte is written as \xHH */
#define SYMBOL_TEXT_MAX 4000
#define SYMBOL_CHAIN_MAX 64 /* maximum number of functions inlined into each other at one address */

/* Copies a chain and its strings to `*copy`. */
void names_copy(struct arena *arena, const struct symbol *list, size_t count, struct symbols *copy);

size_t symbols_count_lines(const struct symbols *symbols);

/* Own name of a function within its qualified name, such as "grab" in
 * "app::Pool<int>::grab<long>(long)". */

/* Returns the start of the own name in `name`. Sets `*len` to its length without template arguments
 * and parameters. */
const char *names_own(const char *name, size_t *len);

/*
 * Uniform spelling of names. Compilers and tools write some names differently, but one function
 * must be one row on every system. Two things are removed: the suffix of a compiler's clone
 * (".isra.0", " [clone .isra.0]" or " (.isra.0)"), and the decoration of a calling convention
 * ("_f@8", "f@8", "@f@8", "f@@16").
 */

/* Returns `name` itself if it already has the uniform spelling, otherwise a copy in the arena.
 * Names decorated by Microsoft's compiler ("?f@@...") are unchanged. */
const char *names_plain(struct arena *arena, const char *name);

/* Source file names, shortened by prefixes that every reader knows. */

/* If `path` begins with the first `len` bytes of `prefix`, returns the rest of `path`, without
 * leading slashes; otherwise returns NULL. If `path` equals the prefix, returns "". The prefix must
 * end at the end of a component. Trailing slashes of the prefix are ignored, and '/' equals '\\'.
 * If `any_case` is set, the case of ASCII letters is ignored. */
const char *names_behind(const char *path, const char *prefix, size_t len, bool any_case);

/* Removes the longest matching prefix, and any slashes after it, from `file`. Returns `file` itself
 * if no prefix matches or if nothing would remain. Ignores case if `file` has a drive letter or a
 * backslash. */
const char *names_strip_path(const char *file, const char *const *prefixes, size_t count);

/*
 * C++ demangling: "_ZN3app1fEi" -> "app::f(int)".
 *
 * Handles only Itanium names (gcc, and clang for mingw); backend/undname.h handles Microsoft's
 * ("?f@app@@..."). Names may be hostile: the output is bounded even if a name repeats parts of
 * itself.
 */

/* Returns true if `name` begins like a mangled C++ name: with "_Z", "__Z" or "?". */
bool is_mangled(const char *name);

/* Appends the demangled name to `text` and returns 1. If `name` is not an Itanium name or is too
 * long, appends nothing and returns 0. */
int demangle_name(const char *name, struct buf *text);

/* Compares a name, mangled or not, with another tool's spelling, which may omit or change scopes,
 * parameters or suffixes. Returns 2 if they are equal, 1 if they are probably the same function, 0
 * if they differ. */
int is_name_of(const char *name, const char *other_name);

/* Longest name that is demangled. */

#define MANGLED_MAX 1024 /* bytes; gcc's demangler has the same limit */

#endif
