/* DbgHelp: choosing and loading the library, and its functions. */
#ifndef SYMBOLIZE_BACKEND_DBGHELP_PARTS_WINDOWS_H
#define SYMBOLIZE_BACKEND_DBGHELP_PARTS_WINDOWS_H

#include <stdbool.h>

#include <windows.h>
#include <dbghelp.h>

#include "symbolize/symbolize.h"

/*
 * The DbgHelp library, used according to its public documentation.
 *
 * The library is always loaded by full path, never by name. So a copy in the current folder or in a
 * folder of PATH is not loaded. Copies in order of preference:
 *
 * 1. the full path in HSYM_DBGHELP, which the user sets
 * 2. the copy in the Debugging Tools' folder, found in the Windows registry; only this copy comes
 *    with symsrv.dll, which queries servers
 * 3. the copy in the system folder
 *
 * The library stays loaded until the process ends.
 */

/* X(result type, name, parameters) */
#define DBGHELP_NEEDED(X)                                                                          \
	X(DWORD, SymSetOptions, (DWORD))                                                           \
	X(BOOL, SymInitializeW, (HANDLE, PCWSTR, BOOL))                                            \
	X(BOOL, SymSetSearchPathW, (HANDLE, PCWSTR))                                               \
	X(DWORD64, SymLoadModuleExW,                                                               \
		(HANDLE, HANDLE, PCWSTR, PCWSTR, DWORD64, DWORD, MODLOAD_DATA *, DWORD))           \
	X(BOOL, SymGetModuleInfoW64, (HANDLE, DWORD64, IMAGEHLP_MODULEW64 *))                      \
	X(BOOL, SymFromAddrW, (HANDLE, DWORD64, DWORD64 *, SYMBOL_INFOW *))                        \
	X(BOOL, SymGetLineFromAddrW64, (HANDLE, DWORD64, DWORD *, IMAGEHLP_LINEW64 *))

/* Needed for inlined functions; not available before Windows 8. */
#define DBGHELP_INLINES(X)                                                                         \
	X(DWORD, SymAddrIncludeInlineTrace, (HANDLE, DWORD64))                                     \
	X(BOOL, SymQueryInlineTrace, (HANDLE, DWORD64, DWORD, DWORD64, DWORD64, DWORD *, DWORD *)) \
	X(BOOL, SymFromInlineContextW, (HANDLE, DWORD64, ULONG, DWORD64 *, SYMBOL_INFOW *))        \
	X(BOOL, SymGetLineFromInlineContextW,                                                      \
		(HANDLE, DWORD64, ULONG, DWORD64, DWORD *, IMAGEHLP_LINEW64 *))

/* Optional functions; each may be NULL. */
#define DBGHELP_WELCOME(X)                                                                         \
	X(BOOL, SymRegisterCallbackW64, (HANDLE, PSYMBOL_REGISTERED_CALLBACK64, ULONG64))          \
	X(BOOL, SymFindFileInPathW,                                                                \
		(HANDLE, PCWSTR, PCWSTR, PVOID, DWORD, DWORD, DWORD, PWSTR,                        \
			PFINDFILEINPATHCALLBACKW, PVOID))                                          \
	X(DWORD, UnDecorateSymbolNameW, (PCWSTR, PWSTR, DWORD, DWORD))

struct dbghelp {
	bool has_inlines;
	bool has_symsrv; /* symsrv.dll is in the same folder, so symbol servers can be queried */
	bool is_wine; /* this is Wine, with its own DbgHelp unless the user chose another copy */
	/* NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define X(type, name, parameters) type(WINAPI *name) parameters;
	DBGHELP_NEEDED(X)
	DBGHELP_INLINES(X)
	DBGHELP_WELCOME(X)
#undef X
};

/* Fills *dbghelp from the first copy that has the needed functions. Returns false if no copy is
 * usable. Warns the listener if a preferred copy cannot be used. `options` may be NULL. */
bool dbghelp_load(const struct symbol_options *options, struct dbghelp *dbghelp);

#endif
