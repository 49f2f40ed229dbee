/*
 * Backend for DbgHelp. Loads each module from the image and PDB of the dump's build. If these were
 * not found and the user's symbol path names servers, DbgHelp searches the servers. The file that
 * it finds is then checked again.
 *
 * Modules are not loaded at their base in the dump, because two dumps that are compared may have
 * different modules at the same base. Instead, each module is loaded at the next free base. Modules
 * are never unloaded and SymCleanup() is never called, because in Wine 8 both free memory that is
 * still in use.
 *
 * Wine 8's DbgHelp finds no names in DWARF 5 but reports no error; functions in Wine's own DLLs
 * begin 8 bytes late. Wine 10's DbgHelp also searches for PDBs in the image's folder and crashes on
 * a truncated PDB. So a module with an unreadable PDB is not loaded.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/os_windows.h"
#include "symbolize/backend/backend.h"
#include "symbolize/backend/dbghelp_parts_windows.h"
#include "symbolize/names.h"

#define FIRST_LOW_BASE UINT64_C(0x10000000)
#define LOW_END UINT64_C(0xf0000000)
#define FIRST_BASE UINT64_C(0x100000000)
#define BASES_END UINT64_C(0x7fff00000000) /* limit of 47-bit user addresses */
#define GRANULE UINT64_C(0x10000)
#define SYSTEM_UNITS 4096
#define TAG_FUNCTION 5 /* SymTagFunction: excludes public symbols, whose sizes are guessed */
#define NAME_UNITS 4000
/* line numbers from here on (such as 0xfeefee) are markers set by compilers */
#define HIDDEN_LINES 0xf00f00
#define LOOK_UP_EVERY 64 /* number of addresses between two clock reads */
#define TELL_EVERY_MS 50

/* Size of IMAGEHLP_MODULEW64 before MachineType was added. An older DbgHelp refuses a larger
 * size. */
#define OLD_INFO_BYTES                                                                             \
	((offsetof(IMAGEHLP_MODULEW64, MachineType) + sizeof(DWORD64) - 1) & ~(sizeof(DWORD64) - 1))

struct dbghelp_module {
	bool is_tried;
	uint64_t base; /* base address in DbgHelp; 0: DbgHelp has nothing usable */
	bool knows_inlined; /* lines and scopes of inlined functions are correct */
};

struct dbghelp_session {
	const struct symbol_options *options;
	const struct finder *finder;
	bool is_tried, is_started;
	struct dbghelp dbghelp;
	HANDLE handle;
	/* next free base for 64-bit images, and for 32-bit images */
	uint64_t next_base, next_low_base;
	struct dbghelp_module *modules; /* indexed by number of the subject */
	size_t module_count, module_cap;
	const struct module *loading; /* module being loaded, or NULL */
	size_t wanted_count; /* number of addresses to look up in `loading` */
	ULONGLONG told_ms;
	union { /* info, followed by room for the name */
		SYMBOL_INFOW info;
		unsigned char bytes[sizeof(SYMBOL_INFOW) + NAME_UNITS * sizeof(WCHAR)];
	} symbol;
};

/* ---------------------------------------------------------------- loading */

/* Returns DbgHelp's options. UNDNAME: demangle C++ names. DEFERRED_LOADS is not set, because loaded
 * modules are used at once. EXACT_SYMBOLS: use no PDB of another build, and no exports, because our
 * tables check exports more carefully. IGNORE_CVREC: ignore the PDB path in an image, which is
 * untrusted and may lead to another machine; the checked path is in the search path. */
static DWORD options_for(const struct symbol_options *options, const struct module_files *files)
{
	DWORD wanted = SYMOPT_LOAD_LINES | SYMOPT_FAIL_CRITICAL_ERRORS | SYMOPT_NO_PROMPTS |
		       SYMOPT_IGNORE_CVREC | SYMOPT_IGNORE_NT_SYMPATH;

	if (!options->no_demangle)
		wanted |= SYMOPT_UNDNAME;
	if (!options->allow_mismatch || !files->is_mismatch)
		wanted |= SYMOPT_EXACT_SYMBOLS;
	return wanted;
}

/* Called by DbgHelp while it loads a file from a server. */
static BOOL CALLBACK on_event(HANDLE handle, ULONG action, ULONG64 data, ULONG64 context)
{
	const struct dbghelp_session *backend = (const struct dbghelp_session *)(uintptr_t)context;

	(void)handle;
	(void)data;
	if (!backend || !backend->loading)
		return FALSE;
	if (action == CBA_DEFERRED_SYMBOL_LOAD_CANCEL || action == CBA_DEFERRED_SYMBOL_LOAD_START ||
		action == CBA_EVENT)
		listener_progress(backend->options, module_path_base(backend->loading->path), 0,
			backend->wanted_count);
	return action == CBA_DEFERRED_SYMBOL_LOAD_CANCEL && listener_is_cancelled(backend->options);
}

/* Returns the system folder, which contains no PDBs and is not the current folder. Returns NULL on
 * failure. */
static wchar_t *system_folder(void)
{
	wchar_t *path = xcalloc(SYSTEM_UNITS, sizeof(*path));
	UINT len = GetSystemDirectoryW(path, SYSTEM_UNITS);

	if (len && len < SYSTEM_UNITS)
		return path;
	free(path);
	return NULL;
}

/* Warns if the symbol path names servers but this copy of DbgHelp cannot query them. */
static void warn_of_servers(const struct dbghelp_session *backend)
{
	const char *servers = finder_servers(backend->finder);

	if (servers && *servers && !backend->dbghelp.has_symsrv)
		listener_warn(backend->options,
			"symbol servers are not used: this copy of DbgHelp has "
			"no symsrv.dll beside it; install the Debugging Tools "
			"for Windows, or name another copy in HSYM_DBGHELP");
}

/* Sets is_started, or leaves it false if DbgHelp is unavailable. */
static void start(struct dbghelp_session *backend)
{
	static LONG count;
	struct dbghelp *dbghelp = &backend->dbghelp;
	wchar_t *path = system_folder();

	backend->is_tried = true;
	/* This handle must be unique among all users of DbgHelp in this process, because sessions
	 * never end. */
	backend->handle = (HANDLE)(intptr_t)(0x48530000 + InterlockedIncrement(&count));
	backend->next_base = FIRST_BASE;
	backend->next_low_base = FIRST_LOW_BASE;
	if (path && dbghelp_load(backend->options, dbghelp)) {
		dbghelp->SymSetOptions(
			SYMOPT_FAIL_CRITICAL_ERRORS | SYMOPT_NO_PROMPTS | SYMOPT_IGNORE_NT_SYMPATH);
		backend->is_started = dbghelp->SymInitializeW(backend->handle, path, FALSE);
	}
	if (backend->is_started)
		warn_of_servers(backend);
	if (backend->is_started && dbghelp->SymRegisterCallbackW64)
		dbghelp->SymRegisterCallbackW64(backend->handle, on_event, (uintptr_t)backend);
	free(path);
}

/* Reserves room for a module. Returns its base, or 0 if no room is left. */
static uint64_t next_base(struct dbghelp_session *backend, bool is_low, uint64_t size)
{
	uint64_t *next = is_low ? &backend->next_low_base : &backend->next_base;
	uint64_t end = is_low ? LOW_END : BASES_END, base = *next;

	size = (size + GRANULE) & ~(GRANULE - 1);
	if (size > end - base)
		return 0;
	*next += size;
	return base;
}

/* Returns the folder of a file. If the path contains ';' or '*', where DbgHelp would split it,
 * returns the system folder instead. */
static wchar_t *folder_of(const char *file)
{
	wchar_t *path = wide_from_utf8(file), *end = path;

	for (wchar_t *at = path; at && *at; at++) {
		if (*at == '\\' || *at == '/')
			end = at;
	}
	if (!path)
		return NULL;
	if (end == path || wcspbrk(path, L";*")) {
		free(path);
		return system_folder();
	}
	end[end[-1] == ':'] = 0; /* keep the backslash of "C:\" */
	return path;
}

/* Returns DbgHelp's search path for the PDB. The path is never empty, because an empty path would
 * mean the current folder. */
static wchar_t *search_path(const struct dbghelp_session *backend, const struct module_files *files)
{
	const char *servers = finder_servers(backend->finder);

	if (files->pdb)
		return folder_of(files->pdb);
	if (servers && *servers)
		return wide_from_utf8(servers);
	return files->image ? folder_of(files->image) : system_folder();
}

/* Parses 32 hexadecimal digits, the form used by symbol servers. */
static bool read_guid(const char *digits, GUID *guid)
{
	unsigned char bytes[16];

	if (strlen(digits) != 32 || strspn(digits, "0123456789ABCDEFabcdef") != 32)
		return false;
	for (size_t i = 0; i < sizeof(bytes); i++) {
		char pair[] = {digits[2 * i], digits[2 * i + 1], 0};

		bytes[i] = (unsigned char)strtoul(pair, NULL, 16);
	}
	guid->Data1 =
		(ULONG)bytes[0] << 24 | (ULONG)bytes[1] << 16 | (ULONG)bytes[2] << 8 | bytes[3];
	guid->Data2 = (USHORT)(bytes[4] << 8 | bytes[5]);
	guid->Data3 = (USHORT)(bytes[6] << 8 | bytes[7]);
	memcpy(guid->Data4, bytes + 8, 8);
	return true;
}

/* Queries the servers in the user's symbol path for the PDB recorded in the dump. Called if no file
 * of the module was found. Returns the path of the PDB, or NULL. */
static wchar_t *find_on_servers(const struct dbghelp_session *backend, const struct module *module)
{
	const char *servers = finder_servers(backend->finder);
	const char *name = module->has_identity && module->pdb ? module_path_base(module->pdb) : "";
	wchar_t *path, *file, *found;
	GUID guid;

	if (!servers || !*name || *name == '.' || strpbrk(name, ":*?") || !module->pdb_guid ||
		!read_guid(module->pdb_guid, &guid) || !backend->dbghelp.SymFindFileInPathW)
		return NULL;
	path = wide_from_utf8(servers);
	file = wide_from_utf8(name);
	found = xcalloc(MAX_PATH + 1, sizeof(*found)); /* the documented size of the result */
	if (!path || !file ||
		!backend->dbghelp.SymFindFileInPathW(backend->handle, path, file, &guid,
			module->pdb_age, 0, SSRVOPT_GUIDPTR, found, NULL, NULL) ||
		!found[0]) {
		free(found);
		found = NULL;
	}
	free(path);
	free(file);
	return found;
}

/* Loads a module's file into DbgHelp. If there is no image, loads the PDB with the size recorded in
 * the dump; Wine's DbgHelp refuses to do that. */
static uint64_t load_file(struct dbghelp_session *backend, const struct sym_module *subject)
{
	const struct module_files *files = &subject->files;
	uint64_t size = files->image ? files->pe->size_of_image : subject->module->size_bytes;
	wchar_t *file = files->image || files->pdb ?
				wide_path(files->image ? files->image : files->pdb) :
				find_on_servers(backend, subject->module);
	wchar_t *path = file ? search_path(backend, files) : NULL;
	uint64_t base = 0, loaded = 0;

	if (path && size && size <= UINT32_MAX)
		base = next_base(backend, files->image && files->pe->bits == 32, size);
	if (base && backend->dbghelp.SymSetSearchPathW(backend->handle, path)) {
		backend->dbghelp.SymSetOptions(options_for(backend->options, files));
		loaded = backend->dbghelp.SymLoadModuleExW(
			backend->handle, NULL, file, NULL, base, (DWORD)size, NULL, 0);
	}
	free(path);
	free(file);
	return loaded;
}

/* Returns true if DbgHelp loaded the right PDB. This is the PDB of the dump's build. If the dump
 * does not identify a PDB, it is the PDB that the image names. */
static bool is_right_pdb(const struct sym_module *subject, const IMAGEHLP_MODULEW64 *info)
{
	const struct module_files *files = &subject->files;
	const struct module *module = subject->module;
	const char *digits = NULL;
	uint32_t age = 0;
	GUID guid;

	if (files->guid[0]) {
		digits = files->guid;
		age = files->age;
	} else if (module->has_identity && module->pdb_guid) {
		digits = module->pdb_guid;
		age = module->pdb_age;
	} else if (files->pe && files->pe->pdb_guid[0]) {
		digits = files->pe->pdb_guid;
		age = files->pe->pdb_age;
	}
	return !info->PdbUnmatched && digits && read_guid(digits, &guid) &&
	       IsEqualGUID(&guid, &info->PdbSig70) && info->PdbAge == age;
}

/* Returns true if DbgHelp has symbols of this build for the module. Exports do not count. Neither
 * do .sym and .dbg files, because they are not tied to a build. */
static bool is_useful(const struct dbghelp_session *backend, struct sym_module *subject,
	const IMAGEHLP_MODULEW64 *info)
{
	struct buf *reason = &subject->files.reason;
	char *pdb;

	if (info->SymType != SymPdb && info->SymType != SymDia && info->SymType != SymCoff &&
		info->SymType != SymCv)
		return false;
	if (backend->options->allow_mismatch && subject->files.is_mismatch)
		return true;
	if ((info->SymType != SymPdb && !info->LoadedPdbName[0]) || is_right_pdb(subject, info))
		return !info->DbgUnmatched;
	pdb = wide_to_utf8(info->LoadedPdbName);
	if (pdb)
		buf_printf(reason, "%sDbgHelp took %s, which is a different build",
			reason->len ? "; " : "", pdb);
	free(pdb);
	return false;
}

/* Loads a module, unless an earlier call has tried to load it. `wanted_count` is the number of
 * addresses to look up in the module, for progress reports. */
static const struct dbghelp_module *load(
	struct dbghelp_session *backend, struct sym_module *subject, size_t wanted_count)
{
	IMAGEHLP_MODULEW64 info = {.SizeOfStruct = sizeof(info)};
	struct dbghelp_module *module;
	uint64_t base;
	BOOL has_info;

	while (backend->module_count <= subject->number) {
		array_grow((void **)&backend->modules, &backend->module_cap, backend->module_count,
			sizeof(*backend->modules));
		backend->modules[backend->module_count++] = (struct dbghelp_module){0};
	}
	module = &backend->modules[subject->number];
	if (module->is_tried)
		return module;
	module->is_tried = true;
	backend->loading = subject->module;
	backend->wanted_count = wanted_count;
	base = subject->files.is_pdb_damaged ? 0 : load_file(backend, subject);
	backend->loading = NULL;
	has_info = base && backend->dbghelp.SymGetModuleInfoW64(backend->handle, base, &info);
	if (base && !has_info) {
		info.SizeOfStruct = OLD_INFO_BYTES;
		has_info = backend->dbghelp.SymGetModuleInfoW64(backend->handle, base, &info);
	}
	if (has_info && is_useful(backend, subject, &info)) {
		module->base = base;
		/* With DWARF, Wine 8 returns wrong lines near inlined code and the caller's scope
		 * for inlined functions. */
		module->knows_inlined = !backend->dbghelp.is_wine || info.LoadedPdbName[0];
	}
	return module;
}

/* ---------------------------------------------------------------- look-up */

struct dbghelp_question {
	const struct dbghelp_module *module;
	uint64_t addr; /* address in DbgHelp */
	/* inline context of the function itself, if functions are inlined at the address; otherwise
	 * 0 */
	DWORD context;
	struct symbol chain[SYMBOL_CHAIN_MAX];
	size_t count;
	struct arena texts;
};

static const char *text_of(const wchar_t *wide, struct arena *arena)
{
	char *text = wide_to_utf8(wide);
	const char *copy = arena_text(arena, text ? text : "", text ? strlen(text) : 0);

	free(text);
	return copy;
}

static SYMBOL_INFOW *symbol_room(struct dbghelp_session *backend)
{
	SYMBOL_INFOW *info = &backend->symbol.info;

	memset(info, 0, sizeof(*info));
	info->SizeOfStruct = sizeof(*info);
	info->MaxNameLen = NAME_UNITS;
	return info;
}

/* Adds the name in `info`, and the line for the question's inline context. */
static void add_symbol(struct dbghelp_session *backend, struct dbghelp_question *question,
	SYMBOL_INFOW *info, uint64_t displacement, bool is_inlined)
{
	struct symbol *symbol = &question->chain[question->count++];
	const struct dbghelp *dbghelp = &backend->dbghelp;
	bool is_true = question->module->knows_inlined;
	IMAGEHLP_LINEW64 line = {.SizeOfStruct = sizeof(line)};
	DWORD from_line;
	BOOL has_line = FALSE;
	size_t len;

	/* a longer name may have been truncated without a terminator */
	info->Name[NAME_UNITS - 1] = 0;
	*symbol = (struct symbol){.function = text_of(info->Name, &question->texts),
		.offset_bytes = displacement + 1};
	if (is_inlined && !is_true) /* the scopes may be wrong, so drop them */
		symbol->function = names_own(symbol->function, &len);
	if (!is_inlined && !question->context)
		has_line = dbghelp->SymGetLineFromAddrW64(
			backend->handle, question->addr, &from_line, &line);
	else if (is_true)
		has_line = dbghelp->SymGetLineFromInlineContextW(
			backend->handle, question->addr, question->context, 0, &from_line, &line);
	if (!has_line || !line.FileName || !line.LineNumber || line.LineNumber >= HIDDEN_LINES)
		return;
	symbol->file = text_of(line.FileName, &question->texts);
	symbol->line = line.LineNumber;
}

/* Adds the functions that are inlined at the address, innermost first. */
static void ask_inlined(struct dbghelp_session *backend, struct dbghelp_question *question)
{
	const struct dbghelp *dbghelp = &backend->dbghelp;
	uint64_t addr = question->addr;
	DWORD depth = dbghelp->SymAddrIncludeInlineTrace(backend->handle, addr), index = 0;

	if (!depth || !dbghelp->SymQueryInlineTrace(
			      backend->handle, addr, 0, addr, addr, &question->context, &index)) {
		question->context = 0;
		return;
	}
	for (DWORD i = 0; i < depth; i++, question->context++) {
		SYMBOL_INFOW *info = symbol_room(backend);
		DWORD64 displacement = 0;

		if (question->count < SYMBOL_CHAIN_MAX - 1 &&
			dbghelp->SymFromInlineContextW(
				backend->handle, addr, question->context, &displacement, info) &&
			info->Name[0])
			add_symbol(backend, question, info, displacement, true);
	}
}

static void look_up(struct dbghelp_session *backend, const struct dbghelp_module *module,
	struct lookup *lookup, struct arena *arena)
{
	struct dbghelp_question question = {.module = module, .addr = module->base + lookup->rva};
	SYMBOL_INFOW *info;
	DWORD64 displacement = 0;

	arena_init(&question.texts);
	if (backend->dbghelp.has_inlines)
		ask_inlined(backend, &question);
	info = symbol_room(backend);
	/* If the function has no name, drop the functions inlined in it too. */
	if (backend->dbghelp.SymFromAddrW(backend->handle, question.addr, &displacement, info) &&
		info->Name[0] && !(info->Flags & SYMFLAG_EXPORT)) {
		lookup->is_sure = info->Tag == TAG_FUNCTION && displacement < info->Size;
		add_symbol(backend, &question, info, displacement, false);
		names_copy(arena, question.chain, question.count, &lookup->found);
	}
	lookup->is_answered = true;
	arena_release(&question.texts);
}

static void dbghelp_resolve(void *of_backend, struct sym_module *subject, struct lookup *lookups,
	size_t count, struct arena *arena)
{
	struct dbghelp_session *backend = of_backend;
	const struct dbghelp_module *module;

	if (!backend->is_tried)
		start(backend);
	if (!backend->is_started)
		return;
	module = load(backend, subject, count);
	for (size_t i = 0; module->base && i < count; i++) {
		if (i % LOOK_UP_EVERY == 0) {
			ULONGLONG now_ms = GetTickCount64();

			if (now_ms - backend->told_ms >= TELL_EVERY_MS) {
				backend->told_ms = now_ms;
				listener_progress(backend->options,
					module_path_base(subject->module->path), i, count);
			}
			if (listener_is_cancelled(backend->options))
				break;
		}
		if (!lookups[i].found.count)
			look_up(backend, module, &lookups[i], arena);
	}
}

static void *dbghelp_make(const struct symbol_options *options, const struct finder *finder)
{
	struct dbghelp_session *backend = xcalloc(1, sizeof(*backend));

	backend->options = options;
	backend->finder = finder;
	return backend;
}

static void dbghelp_release(void *of_backend)
{
	struct dbghelp_session *backend = of_backend;

	if (backend->is_started && backend->dbghelp.SymRegisterCallbackW64)
		backend->dbghelp.SymRegisterCallbackW64(backend->handle, on_event, 0);
	free(backend->modules);
	free(backend);
}

static const char *dbghelp_trouble(const void *backend)
{
	(void)backend;
	return NULL;
}

const struct backend_kind dbghelp_backend = {
	.name = "DbgHelp",
	.make = dbghelp_make,
	.release = dbghelp_release,
	.resolve = dbghelp_resolve,
	.trouble = dbghelp_trouble,
};
