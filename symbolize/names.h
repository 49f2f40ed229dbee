/* Names: how they are kept, cut and shown, and C++ names as their source has them. */
#ifndef SYMBOLIZE_NAMES_H
#define SYMBOLIZE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/memory.h"
#include "symbolize/symbolize.h"

/* Talking to the listener of a symbolizer (symbol_listener), which may not be there. */

/* Of all addresses that a symbolizer is asked for at once; backends see a few of them. */
struct symbol_counts {
	size_t total, done;
	size_t told; /* what a second backend asks again was told before */
};

/* Says one sentence, printf-formatted; what is not harmless on a terminal is made so. */
void listener_warn(const struct symbol_options *options, const char *format, ...) PRINTF_LIKE(2, 3);

void listener_progress(
	const struct symbol_options *options, const char *module, size_t done, size_t total);

void listener_busy(const struct symbol_options *options, bool is_busy);

bool listener_is_cancelled(const struct symbol_options *options);

/*
 * Keeping names that came from elsewhere: from debug information, from a dump.
 *
 * Such names are never trusted: they are cut to a length that fits on a line of a dump, and
 * control characters in them are made harmless, for they end on someone's terminal.
 */

#define SYMBOL_TEXT_MAX 4000 /* bytes; even if every one is written \xHH, two fit on a line */
#define SYMBOL_CHAIN_MAX 64 /* functions inlined into each other at one address */

/* Copies a chain, its texts with it, to *copy. Returns 0. */
void names_keep(struct arena *arena, const struct symbol *list, size_t count, struct symbols *copy);

/* How many of a chain have a line. */
size_t symbols_count_lines(const struct symbols *symbols);

/* A function's own name in one with all its scopes, "app::Pool<int>::grab<long>(long)". */

/* Where it begins in name; *len: how long it is without arguments of templates and parameters. */
const char *names_own(const char *name, size_t *len);

/*
 * One form for the names that compilers and tools spell in several ways, so that one function is one row on every
 * system: without the suffix of a compiler's clone (".isra.0", " [clone .isra.0]" or " (.isra.0)"), and without
 * the decoration of a calling convention ("_f@8", "f@8", "@f@8", "f@@16").
 */

/* Returns name itself if it has that form already, or a copy in the arena. Names that Microsoft's compiler
 * decorated ("?f@@...") stay as they are. */
const char *names_plain(struct arena *arena, const char *name);

/* Names of source files without the part of their path that everybody here knows. */

/* What is left of path behind the len bytes of prefix and the slashes that follow, "" when it is the prefix, or
 * NULL: it does not begin so. A prefix ends where a component does, slashes at its end mean nothing, and both
 * slashes are the same. any_case: letters of ASCII are alike in either case. */
const char *names_behind(const char *path, const char *prefix, size_t len, bool any_case);

/* What is left of file without the longest of the prefixes that it begins with, and without the slashes
 * behind that; file when it begins with none, or nothing would be left. In paths with a drive or a
 * backslash upper and lower case are the same. */
const char *names_strip_path(const char *file, const char *const *prefixes, size_t count);

/*
 * C++ names as their source has them: "_ZN3app1fEi" -> "app::f(int)".
 *
 * Itanium names (gcc, clang for mingw); Microsoft's ("?f@app@@...") are for backend/undname.h.
 * Names are hostile: what comes out is bounded, however often a name repeats itself.
 */

/* Whether a name is one that a C++ compiler made: "_Z", "__Z", "?". */
bool is_mangled(const char *name);

/* Adds the demangled name to text: 1; 0 and nothing when it is no Itanium name or too long. */
int demangle_name(const char *name, struct buf *text);

/* Whether a name, as a compiler made it or as the source has it, means what another reader of it said, who may
 * leave out scopes, parameters or a suffix, or spell them differently: 2: they are the same; 1: as far as can
 * be told; 0: no. */
int is_name_of(const char *name, const char *said);

/* How much work a name can be for a demangler. */

#define MANGLED_MAX 1024 /* bytes; gcc's demangler takes no longer ones either */

#endif
