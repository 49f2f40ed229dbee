/*
 * The program that hsnap run is to start: which file that is, and for how many bits.
 */
#ifndef SNAPSHOT_PROGRAM_WINDOWS_H
#define SNAPSHOT_PROGRAM_WINDOWS_H

#include <stdbool.h>
#include <wchar.h>

/* The bitness of this hsnap and of the programs that it can trace. */
#define OUR_BITS ((unsigned)(8 * sizeof(void *)))

/* Where the system would find the program: the caller's to free. NULL: nowhere, as far as it can
 * be told. */
wchar_t *program_find(const char *program);

/* The bitness of the program in a file; 0: it is no image (a script, say). */
unsigned program_bits(const wchar_t *path);

/* The path of a file beside this program, in a form that the system takes however long it is; the
 * caller's to free. NULL: it is not there. */
wchar_t *program_beside(const wchar_t *name);

/* Whether path is the file of this program, by whatever name. */
bool program_is_this(const wchar_t *path);

#endif
