/* DbgHelp: the library, and the modules loaded into it. */
#ifndef SYMBOLIZE_BACKEND_DBGHELP_PARTS_WINDOWS_H
#define SYMBOLIZE_BACKEND_DBGHELP_PARTS_WINDOWS_H

#include <stdbool.h>

#include <windows.h>
#include <dbghelp.h>

#include "symbolize/backend/backend.h"
#include "symbolize/symbolize.h"

/*
 * The library DbgHelp, after its public documentation: which copy of it, and its functions.
 *
 * A copy is loaded by its full path and never found by its name: what lies in the current folder, or
 * in one that PATH names, is not run. In this order:
 *
 *   HSYM_DBGHELP   a full path, as the user wants it
 *   the copy of the Debugging Tools, where Windows' registry says that they are; it alone comes with
 *                  symsrv.dll, which asks servers
 *   the copy in the system's folder
 *
 * It stays loaded until the process ends.
 */

/* X(type of result, name, parameters) */
#define DBGHELP_NEEDED(X)                                                                          \
	X(DWORD, SymSetOptions, (DWORD))                                                           \
	X(BOOL, SymInitializeW, (HANDLE, PCWSTR, BOOL))                                            \
	X(BOOL, SymSetSearchPathW, (HANDLE, PCWSTR))                                               \
	X(DWORD64, SymLoadModuleExW,                                                               \
		(HANDLE, HANDLE, PCWSTR, PCWSTR, DWORD64, DWORD, MODLOAD_DATA *, DWORD))           \
	X(BOOL, SymGetModuleInfoW64, (HANDLE, DWORD64, IMAGEHLP_MODULEW64 *))                      \
	X(BOOL, SymFromAddrW, (HANDLE, DWORD64, DWORD64 *, SYMBOL_INFOW *))                        \
	X(BOOL, SymGetLineFromAddrW64, (HANDLE, DWORD64, DWORD *, IMAGEHLP_LINEW64 *))

/* Without all of these there are no inlined functions (before Windows 8). */
#define DBGHELP_INLINES(X)                                                                         \
	X(DWORD, SymAddrIncludeInlineTrace, (HANDLE, DWORD64))                                     \
	X(BOOL, SymQueryInlineTrace, (HANDLE, DWORD64, DWORD, DWORD64, DWORD64, DWORD *, DWORD *)) \
	X(BOOL, SymFromInlineContextW, (HANDLE, DWORD64, ULONG, DWORD64 *, SYMBOL_INFOW *))        \
	X(BOOL, SymGetLineFromInlineContextW,                                                      \
		(HANDLE, DWORD64, ULONG, DWORD64, DWORD *, IMAGEHLP_LINEW64 *))

/* Each may be NULL. */
#define DBGHELP_WELCOME(X)                                                                         \
	X(BOOL, SymRegisterCallbackW64, (HANDLE, PSYMBOL_REGISTERED_CALLBACK64, ULONG64))          \
	X(BOOL, SymFindFileInPathW,                                                                \
		(HANDLE, PCWSTR, PCWSTR, PVOID, DWORD, DWORD, DWORD, PWSTR,                        \
			PFINDFILEINPATHCALLBACKW, PVOID))                                          \
	X(DWORD, UnDecorateSymbolNameW, (PCWSTR, PWSTR, DWORD, DWORD))

struct dbghelp {
	bool has_inlines;
	bool is_wine; /* some copy on Wine; its own, if nobody chose another one */
	/* NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define X(type, name, parameters) type(WINAPI *name) parameters;
	DBGHELP_NEEDED(X)
	DBGHELP_INLINES(X)
	DBGHELP_WELCOME(X)
#undef X
};

/* Fills *dbghelp from the first copy that has what is needed; false: there is none. Tells the listener
 * of a copy that was asked for and cannot be used; options may be NULL. */
bool dbghelp_load(const struct symbol_options *options, struct dbghelp *dbghelp);

/*
 * Modules loaded into DbgHelp: each from the image and the PDB that were found to be the dump's build,
 * or else, where the user's symbol path names servers, from what DbgHelp finds there; and what it found
 * is checked once more.
 *
 * A module is not loaded where the dump has it but behind the one before: two dumps that are compared
 * have other modules at the same place. None is unloaded, and there is no SymCleanup() at the end: both
 * are broken in Wine 8, where they free what they must not.
 */

struct dbghelp_module {
	bool is_tried;
	uint64_t base; /* where DbgHelp has it; 0: it knows nothing of it */
	bool knows_inlined; /* lines and scopes where functions are inlined are true */
};

struct dbghelp_session {
	struct dbghelp dbghelp;
	const struct symbol_options *options;
	const struct finder *finder;
	HANDLE handle;
	bool is_started;
	uint64_t next_base, next_low_base; /* the second: of 32-bit images */
	struct dbghelp_module *modules; /* by number of the subject */
	size_t module_count;
	const struct sym_module *loading; /* or NULL */
	size_t wanted_count; /* addresses that are asked about in it */
};

#endif
