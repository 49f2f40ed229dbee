#include "symbolize/backend/backend.h"

#include <stdlib.h>
#include <string.h>

#include <windows.h>

#include <dbghelp.h>

#include "core/utf_windows.h"
#include "symbolize/keep.h"

/*
 * DbgHelp, after its public documentation. It is loaded when first needed, from the system's
 * folder only.
 *
 * Modules are not loaded where the dump has them but one behind the other: two dumps that are
 * compared have other modules at the same place, and unloading is as broken as SymCleanup (below).
 *
 * What Wine 8 does otherwise: DWARF 5 gives no names and no error, so the caller falls back to
 * exports. Functions of its own DLLs begin 8 bytes late. Where something is inlined, lines are
 * those of the nearest code before that was not: such lines are left out (has_true_lines).
 */

#define NAME_UNITS 4000
#define FIRST_BASE 0x10000000 /* within 32 bits, for 32-bit images */
#define HIDDEN_LINES 0xf00f00 /* and above: marks of compilers, no lines */

/* X(type of result, name, parameters); without the last four there are no inlined functions. */
#define NEEDED(X)                                                                                  \
	X(DWORD, SymSetOptions, (DWORD))                                                           \
	X(BOOL, SymInitializeW, (HANDLE, PCWSTR, BOOL))                                            \
	X(DWORD64, SymLoadModuleExW,                                                               \
		(HANDLE, HANDLE, PCWSTR, PCWSTR, DWORD64, DWORD, MODLOAD_DATA *, DWORD))           \
	X(BOOL, SymFromAddrW, (HANDLE, DWORD64, DWORD64 *, SYMBOL_INFOW *))                        \
	X(BOOL, SymGetLineFromAddrW64, (HANDLE, DWORD64, DWORD *, IMAGEHLP_LINEW64 *))
#define WELCOME(X)                                                                                 \
	X(DWORD, SymAddrIncludeInlineTrace, (HANDLE, DWORD64))                                     \
	X(BOOL, SymQueryInlineTrace, (HANDLE, DWORD64, DWORD, DWORD64, DWORD64, DWORD *, DWORD *)) \
	X(BOOL, SymFromInlineContextW, (HANDLE, DWORD64, ULONG, DWORD64 *, SYMBOL_INFOW *))        \
	X(BOOL, SymGetLineFromInlineContextW,                                                      \
		(HANDLE, DWORD64, ULONG, DWORD64, DWORD *, IMAGEHLP_LINEW64 *))

struct backend {
	bool is_tried, is_alive, has_inlines, has_true_lines;
	HANDLE session; /* any number that no other user of DbgHelp in this process has */
	uint64_t next_base;
	/* By number of the subject: where it was loaded; 0: it was not tried yet; 1: in vain. */
	uint64_t *loaded;
	size_t loaded_count;
	/* NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define X(type, name, parameters) type(WINAPI *name) parameters;
	NEEDED(X)
	WELCOME(X)
#undef X
	union { /* room for the name behind it */
		SYMBOL_INFOW info;
		unsigned char bytes[sizeof(SYMBOL_INFOW) + NAME_UNITS * sizeof(WCHAR)];
	} symbol;
};

static struct backend *dbghelp_make(
	const struct symbol_options *options, const struct finder *finder)
{
	(void)options;
	(void)finder;
	return calloc(1, sizeof(struct backend));
}

/* No SymCleanup: in Wine 8 it frees what it must not and crashes; the process ends soon. */
static void dbghelp_release(struct backend *backend)
{
	free(backend->loaded);
	free(backend);
}

static const char *dbghelp_trouble(const struct backend *backend)
{
	(void)backend;
	return NULL;
}

static HMODULE load_library(void)
{
	static const wchar_t name[] = L"\\dbghelp.dll";
	wchar_t path[MAX_PATH + sizeof(name) / sizeof(*name)];
	UINT len = GetSystemDirectoryW(path, MAX_PATH);

	if (!len || len >= MAX_PATH)
		return NULL;
	memcpy(path + len, name, sizeof(name));
	return LoadLibraryW(path);
}

/* The address of a function, through a type that any function pointer may be converted to. */
static void (*function_of(HMODULE library, const char *name))(void)
{
	return (void (*)(void))GetProcAddress(library, name);
}

static bool find_functions(struct backend *backend, HMODULE library)
{
	/* NOLINTBEGIN(bugprone-macro-parentheses) */
#define X(type, name, parameters)                                                                  \
	backend->name = (type(WINAPI *) parameters)function_of(library, #name);
	NEEDED(X)
	WELCOME(X)
#undef X
	/* NOLINTEND(bugprone-macro-parentheses) */
#define X(type, name, parameters) &&backend->name
	backend->has_inlines = true WELCOME(X);
	return true NEEDED(X);
#undef X
}

static void start(struct backend *backend)
{
	HMODULE library = load_library(), ntdll = GetModuleHandleW(L"ntdll.dll");

	backend->is_tried = true;
	if (!library || !find_functions(backend, library))
		return;
	backend->has_true_lines = !ntdll || !function_of(ntdll, "wine_get_version");
	/* Not DEFERRED_LOADS: every module loaded here is asked at once. EXACT_SYMBOLS: no PDB of
	 * another build, and no exports, which we judge with more care. */
	backend->SymSetOptions(SYMOPT_UNDNAME | SYMOPT_LOAD_LINES | SYMOPT_FAIL_CRITICAL_ERRORS |
			       SYMOPT_NO_PROMPTS | SYMOPT_EXACT_SYMBOLS);
	backend->session = (HANDLE)backend;
	backend->next_base = FIRST_BASE;
	backend->is_alive = backend->SymInitializeW(backend->session, NULL, FALSE);
}

static int find_room(struct backend *backend, const struct subject *subject)
{
	size_t count = backend->loaded_count;
	uint64_t *more;

	if (subject->number < count)
		return 0;
	more = realloc(backend->loaded, (subject->number + (size_t)64) * sizeof(*more));
	if (!more)
		return -ERR_NOMEM;
	backend->loaded = more;
	backend->loaded_count = subject->number + (size_t)64;
	memset(more + count, 0, (backend->loaded_count - count) * sizeof(*more));
	return 0;
}

/* 0, also when it is refused; or -ERR_NOMEM. */
static int load_image(struct backend *backend, const struct subject *subject)
{
	const struct pe_image *pe = subject->files.pe;
	wchar_t *path = wide_from_utf8(subject->files.image);
	uint64_t size = (pe->size_of_image + UINT64_C(0xffff)) & ~UINT64_C(0xffff), base;

	if (!path)
		return -ERR_NOMEM;
	base = backend->SymLoadModuleExW(
		backend->session, NULL, path, NULL, backend->next_base, pe->size_of_image, NULL, 0);
	backend->loaded[subject->number] = base ? base : 1;
	backend->next_base += size;
	free(path);
	return 0;
}

/* One UTF-8 text into the arena; NULL: out of memory. */
static const char *text_of(const wchar_t *wide, struct arena *arena)
{
	char *text = utf8_from_wide(wide);
	char *copy = text ? arena_text(arena, text, strlen(text)) : NULL;

	free(text);
	return copy;
}

static SYMBOL_INFOW *symbol_room(struct backend *backend)
{
	memset(&backend->symbol, 0, sizeof(backend->symbol));
	backend->symbol.info.SizeOfStruct = sizeof(SYMBOL_INFOW);
	backend->symbol.info.MaxNameLen = NAME_UNITS;
	return &backend->symbol.info;
}

static int take_name(
	const SYMBOL_INFOW *info, uint64_t displacement, struct arena *arena, struct symbol *symbol)
{
	*symbol = (struct symbol){
		.function = text_of(info->Name, arena), .offset_bytes = displacement + 1};
	return symbol->function ? 0 : -ERR_NOMEM;
}

static int take_line(const IMAGEHLP_LINEW64 *line, struct arena *arena, struct symbol *symbol)
{
	if (!line->FileName || !line->LineNumber || line->LineNumber >= HIDDEN_LINES)
		return 0;
	symbol->file = text_of(line->FileName, arena);
	symbol->line = line->LineNumber;
	return symbol->file ? 0 : -ERR_NOMEM;
}

/* The functions inlined at addr, innermost first: adds to chain. *context is then that of the
 * function they are in. */
static int inlined(struct backend *backend, uint64_t addr, struct arena *arena,
	struct symbol *chain, size_t *count, DWORD *context)
{
	DWORD depth = backend->SymAddrIncludeInlineTrace(backend->session, addr), index = 0;
	int rc = 0;

	if (!depth || !backend->SymQueryInlineTrace(
			      backend->session, addr, 0, addr, addr, context, &index)) {
		*context = 0;
		return 0;
	}
	for (DWORD i = 0; !rc && i < depth; i++, ++*context) {
		IMAGEHLP_LINEW64 line = {.SizeOfStruct = sizeof(line)};
		SYMBOL_INFOW *info = symbol_room(backend);
		DWORD64 displacement = 0;
		DWORD columns;

		if (*count == SYMBOL_CHAIN_MAX - 1 ||
			!backend->SymFromInlineContextW(
				backend->session, addr, *context, &displacement, info))
			continue;
		rc = take_name(info, displacement, arena, &chain[*count]);
		if (!rc && backend->has_true_lines &&
			backend->SymGetLineFromInlineContextW(
				backend->session, addr, *context, 0, &columns, &line))
			rc = take_line(&line, arena, &chain[*count]);
		++*count;
	}
	return rc;
}

static int function_line(struct backend *backend, uint64_t addr, DWORD context, struct arena *arena,
	struct symbol *symbol)
{
	IMAGEHLP_LINEW64 line = {.SizeOfStruct = sizeof(line)};
	DWORD columns;

	if (context && backend->SymGetLineFromInlineContextW(
			       backend->session, addr, context, 0, &columns, &line))
		return take_line(&line, arena, symbol);
	if (!backend->SymGetLineFromAddrW64(backend->session, addr, &columns, &line))
		return 0;
	return take_line(&line, arena, symbol);
}

static int look_up(
	struct backend *backend, uint64_t base, struct lookup *lookup, struct arena *arena)
{
	struct symbol chain[SYMBOL_CHAIN_MAX];
	struct arena texts;
	SYMBOL_INFOW *info;
	DWORD64 displacement = 0;
	uint64_t addr = base + lookup->rva;
	size_t count = 0;
	DWORD context = 0;
	int rc = 0;

	arena_init(&texts);
	if (backend->has_inlines)
		rc = inlined(backend, addr, &texts, chain, &count, &context);
	info = symbol_room(backend);
	if (rc || !backend->SymFromAddrW(backend->session, addr, &displacement, info) ||
		!info->Name[0])
		goto out;
	rc = take_name(info, displacement, &texts, &chain[count]);
	if (!rc && (!count || backend->has_true_lines))
		rc = function_line(backend, addr, context, &texts, &chain[count]);
	if (!rc)
		rc = symbols_keep(arena, chain, count + 1, &lookup->found);
out:
	arena_release(&texts);
	return rc;
}

static int dbghelp_resolve(struct backend *backend, struct subject *subject, struct lookup *lookups,
	size_t count, struct arena *arena)
{
	uint64_t *loaded;
	int rc = 0;

	if (!backend->is_tried)
		start(backend);
	if (!backend->is_alive || !subject->files.image)
		return 0;
	rc = find_room(backend, subject);
	if (rc)
		return rc;
	loaded = &backend->loaded[subject->number];
	if (!*loaded)
		rc = load_image(backend, subject);
	for (size_t i = 0; !rc && *loaded > 1 && i < count; i++) {
		rc = look_up(backend, *loaded, &lookups[i], arena);
		lookups[i].is_answered = !rc;
	}
	return rc;
}

const struct backend_kind dbghelp_backend = {
	.name = "DbgHelp",
	.make = dbghelp_make,
	.release = dbghelp_release,
	.resolve = dbghelp_resolve,
	.trouble = dbghelp_trouble,
};
