/*
 * Undecorated names of Microsoft's compiler, scope and name only: "?f@app@@YAXH@Z" -> "app::f".
 * They have no parameters and result, like the private symbols of a PDB.
 *
 * dbghelp_library_windows.c uses DbgHelp's UnDecorateSymbolNameW. undname_posix.c uses the program
 * llvm-undname, which is installed beside llvm-symbolizer.
 */
#ifndef SYMBOLIZE_BACKEND_UNDNAME_H
#define SYMBOLIZE_BACKEND_UNDNAME_H

#include "core/base/memory.h"
#include "symbolize/symbolize.h"

/* Sets each of texts to the undecorated name, in the arena, or NULL if it is unknown. Returns 0. */
int undname_find(const char *const *names, const char **texts, size_t count, struct arena *arena,
	const struct symbol_options *options);

#endif
