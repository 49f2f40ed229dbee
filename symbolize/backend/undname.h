/*
 * Names as Microsoft's compiler decorates them, as scope and name: "?f@app@@YAXH@Z" is "app::f". Without
 * parameters and result, as the private symbols of a PDB have them.
 *
 * dbghelp_library_windows.c: through DbgHelp's UnDecorateSymbolNameW. undname_posix.c: through the program
 * llvm-undname, which lies beside llvm-symbolizer.
 */
#ifndef SYMBOLIZE_BACKEND_UNDNAME_H
#define SYMBOLIZE_BACKEND_UNDNAME_H

#include "core/base/memory.h"
#include "symbolize/symbolize.h"

/* Puts into texts what each of the names means, in the arena, or NULL where nobody here can say. 0. */
int undname_find(const char *const *names, const char **texts, size_t count, struct arena *arena,
	const struct symbol_options *options);

#endif
