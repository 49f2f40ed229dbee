/*
 * Undecorated names of Microsoft's compiler, reduced to scope and name: "?f@app@@YAXH@Z" ->
 * "app::f". Like the private symbols of a PDB, they have no parameters and no return type.
 *
 * dbghelp_library_windows.c calls DbgHelp's UnDecorateSymbolNameW. undname_posix.c runs
 * llvm-undname, which is installed together with llvm-symbolizer.
 */
#ifndef SYMBOLIZE_BACKEND_UNDNAME_H
#define SYMBOLIZE_BACKEND_UNDNAME_H

#include "core/base/memory.h"
#include "symbolize/symbolize.h"

/* Sets texts[i] to the undecorated form of names[i], in the arena, or to NULL if it is unknown. */
void undname_find(const char *const *names, const char **texts, size_t count, struct arena *arena,
	const struct symbol_options *options);

#endif
