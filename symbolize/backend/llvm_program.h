/* Which llvm-symbolizer is run. llvm_program.c, llvm_program_posix.c or llvm_program_windows.c. */
#ifndef SYMBOLIZE_LLVM_PROGRAM_H
#define SYMBOLIZE_LLVM_PROGRAM_H

#include "core/buf.h"
#include "symbolize/backend/helper_process.h"
#include "symbolize/symbolize.h"

/*
 * Adds to list, each ended by NUL, the full paths of those that are here, the best first: the one that
 * HSYM_LLVM names, which is then the only one; those beside this program (Windows) and in the folders of
 * PATH, in their order, and of one folder the latest version (Debian calls them llvm-symbolizer-19).
 * Never in the current folder. 0 or -ERR_NOMEM.
 */
int llvm_program_list(struct buf *list);

/* Starts the first that can be, with arguments as for helper_start(), and puts its path into path. NULL:
 * there is none. */
struct helper *llvm_program_start(const char *const *args, struct buf *path);

/* The major version that a program says it has; 0: it does not say, or the listener cancelled. Takes some
 * 10 ms. */
unsigned llvm_program_version(const char *path, const struct symbol_options *options);

#endif
