/* How much work a name can be for a demangler. */
#ifndef SYMBOLIZE_DEMANGLE_WORK_H
#define SYMBOLIZE_DEMANGLE_WORK_H

#include <stdbool.h>
#include <stddef.h>

#define MANGLED_MAX 1024 /* bytes; gcc's demangler takes no longer ones either */

/*
 * An Itanium name may refer to parts of itself, and those to others: a few hundred bytes can stand for
 * terabytes, or for as much work that prints nothing. False when that cannot be ruled out for the name
 * of len bytes, at most MANGLED_MAX.
 */
bool demangle_is_bounded(const char *name, size_t len);

#endif
