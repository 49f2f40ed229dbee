/* Where the files of a 32-bit process's modules lie. */
#ifndef SNAPSHOT_WOW64_PATH_H
#define SNAPSHOT_WOW64_PATH_H

#include "core/arena.h"

/*
 * A 32-bit process on 64-bit Windows sees the folder wow64 under the name of system: path with the
 * one put for the other when it lies there (in any case of ASCII letters), else path itself. All are
 * UTF-8, the folders without a backslash at their end. NULL: out of memory.
 */
const char *wow64_path(
	struct arena *arena, const char *path, const char *system, const char *wow64);

#endif
