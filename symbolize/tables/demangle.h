/*
 * C++ names as their source has them: "_ZN3app1fEi" -> "app::f(int)".
 *
 * Itanium names (gcc, clang for mingw); Microsoft's ("?f@app@@...") are for backend/undname.h.
 * Names are hostile: what comes out is bounded, however often a name repeats itself.
 */
#ifndef SYMBOLIZE_DEMANGLE_H
#define SYMBOLIZE_DEMANGLE_H

#include <stdbool.h>

#include "core/buf.h"

/* Whether a name is one that a C++ compiler made: "_Z", "__Z", "?". */
bool is_mangled(const char *name);

/* Adds the demangled name to text: 1; 0 and nothing when it is no Itanium name or too long; or
 * -ERR_NOMEM. */
int demangle(const char *name, struct buf *text);

/* Whether a name, as a compiler made it or as the source has it, means what another reader of it said, who may
 * leave out scopes, parameters or a suffix, or spell them differently: 2: they are the same; 1: as far as can
 * be told; 0: no; or -ERR_NOMEM. */
int is_name_of(const char *name, const char *said);

#endif
