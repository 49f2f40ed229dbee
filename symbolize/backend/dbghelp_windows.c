#include <stdlib.h>
#include <string.h>

#include "core/base/os_windows.h"
#include "symbolize/backend/backend.h"
#include "symbolize/backend/dbghelp_parts_windows.h"
#include "symbolize/names.h"

#define FIRST_LOW_BASE UINT64_C(0x10000000)
#define LOW_END UINT64_C(0xf0000000)
#define FIRST_BASE UINT64_C(0x100000000)
#define BASES_END UINT64_C(0x7fff00000000) /* 47 bits */
#define GRANULE UINT64_C(0x10000)
#define SYSTEM_UNITS 4096

/* The size of IMAGEHLP_MODULEW64 before it told the machine: an older DbgHelp refuses a larger one. */
#define OLD_INFO_BYTES                                                                             \
	((offsetof(IMAGEHLP_MODULEW64, MachineType) + sizeof(DWORD64) - 1) & ~(sizeof(DWORD64) - 1))

/* UNDNAME: C++ names as the source has them. Not DEFERRED_LOADS: what is loaded here is asked at once.
 * EXACT_SYMBOLS: no PDB of another build, and no exports, which we judge with more care. IGNORE_CVREC:
 * the path in an image is a stranger's and may lead to his machine; ours is in the search path. */
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

/* While a file comes from a server. */
static BOOL CALLBACK on_event(HANDLE handle, ULONG action, ULONG64 data, ULONG64 context)
{
	const struct dbghelp_session *session = (const struct dbghelp_session *)(uintptr_t)context;

	(void)handle;
	(void)data;
	if (!session || !session->loading)
		return FALSE;
	if (action == CBA_DEFERRED_SYMBOL_LOAD_CANCEL || action == CBA_DEFERRED_SYMBOL_LOAD_START ||
		action == CBA_EVENT)
		listener_progress(session->options,
			module_path_base(session->loading->module->path), 0, session->wanted_count);
	return action == CBA_DEFERRED_SYMBOL_LOAD_CANCEL && listener_is_cancelled(session->options);
}

/* A folder where no PDB is but which is not the current one either. */
static wchar_t *system_folder(void)
{
	wchar_t *path = calloc(SYSTEM_UNITS, sizeof(*path));
	UINT len = path ? GetSystemDirectoryW(path, SYSTEM_UNITS) : 0;

	if (len && len < SYSTEM_UNITS)
		return path;
	free(path);
	return NULL;
}

/* A number that no other user of DbgHelp in this process has, nor had: no session ever ends. */
static HANDLE new_handle(void)
{
	static LONG count;

	return (HANDLE)(intptr_t)(0x48530000 + InterlockedIncrement(&count));
}

/* Fills the zeroed *session; false: DbgHelp is not to be had. Both are borrowed. */
static bool dbghelp_session_start(struct dbghelp_session *session,
	const struct symbol_options *options, const struct finder *finder)
{
	wchar_t *path = system_folder();

	session->options = options;
	session->finder = finder;
	session->handle = new_handle();
	session->next_base = FIRST_BASE;
	session->next_low_base = FIRST_LOW_BASE;
	if (path && dbghelp_load(options, &session->dbghelp)) {
		session->dbghelp.SymSetOptions(
			SYMOPT_FAIL_CRITICAL_ERRORS | SYMOPT_NO_PROMPTS | SYMOPT_IGNORE_NT_SYMPATH);
		session->is_started = session->dbghelp.SymInitializeW(session->handle, path, FALSE);
	}
	if (session->is_started && session->dbghelp.SymRegisterCallbackW64)
		session->dbghelp.SymRegisterCallbackW64(
			session->handle, on_event, (uintptr_t)session);
	free(path);
	return session->is_started;
}

static void dbghelp_session_release(struct dbghelp_session *session)
{
	if (session->is_started && session->dbghelp.SymRegisterCallbackW64)
		session->dbghelp.SymRegisterCallbackW64(session->handle, on_event, 0);
	free(session->modules);
	session->modules = NULL;
}

static int find_room(struct dbghelp_session *session, const struct sym_module *subject)
{
	size_t count = session->module_count, more = (size_t)subject->number + 64;
	struct dbghelp_module *modules;

	if (subject->number < count)
		return 0;
	modules = realloc(session->modules, more * sizeof(*modules));
	if (!modules)
		return -ERR_NOMEM;
	memset(modules + count, 0, (more - count) * sizeof(*modules));
	session->modules = modules;
	session->module_count = more;
	return 0;
}

/* 0: there is no more room. */
static uint64_t next_base(struct dbghelp_session *session, bool is_low, uint64_t size)
{
	uint64_t *next = is_low ? &session->next_low_base : &session->next_base;
	uint64_t end = is_low ? LOW_END : BASES_END, base = *next;

	size = (size + GRANULE) & ~(GRANULE - 1);
	if (size > end - base)
		return 0;
	*next += size;
	return base;
}

/* The folder of a file. One with a ';' or '*' in its name would be taken apart: the system's then. */
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
	end[end[-1] == ':'] = 0; /* "C:\" keeps what "C:" must not lose */
	return path;
}

/* Where DbgHelp may look for the PDB. Never nowhere, which would mean the current folder. */
static wchar_t *search_path(const struct dbghelp_session *session, const struct module_files *files)
{
	const char *servers = finder_servers(session->finder);

	if (files->pdb)
		return folder_of(files->pdb);
	if (servers && *servers)
		return wide_from_utf8(servers);
	return files->image ? folder_of(files->image) : system_folder();
}

/* 32 digits, as symbol servers spell it. */
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

/* Nothing of the module is here, but the dump says what its PDB is called and is: DbgHelp asks the
 * servers of the user's symbol path for it. NULL: there is none. */
static wchar_t *find_on_servers(const struct dbghelp_session *session, const struct module *module)
{
	const char *servers = finder_servers(session->finder);
	const char *name = module->has_identity && module->pdb ? module_path_base(module->pdb) : "";
	wchar_t *path = NULL, *file = NULL, *found = NULL;
	bool is_found = false;
	GUID guid;

	if (!servers || !*name || *name == '.' || strpbrk(name, ":*?") || !module->pdb_guid ||
		!read_guid(module->pdb_guid, &guid) || !session->dbghelp.SymFindFileInPathW)
		return NULL;
	path = wide_from_utf8(servers);
	file = wide_from_utf8(name);
	found = calloc(MAX_PATH + 1, sizeof(*found)); /* as long as it is documented to be */
	if (path && file && found)
		is_found = session->dbghelp.SymFindFileInPathW(session->handle, path, file, &guid,
			module->pdb_age, 0, SSRVOPT_GUIDPTR, found, NULL, NULL);
	free(path);
	free(file);
	if (is_found && found[0])
		return found;
	free(found);
	return NULL;
}

static wchar_t *file_to_load(
	const struct dbghelp_session *session, const struct sym_module *subject)
{
	const struct module_files *files = &subject->files;

	if (files->image || files->pdb)
		return wide_path(files->image ? files->image : files->pdb);
	return find_on_servers(session, subject->module);
}

/* Without an image the PDB itself is loaded, which needs the size that the dump tells. Wine's DbgHelp
 * refuses it. */
static uint64_t load_file(struct dbghelp_session *session, const struct sym_module *subject)
{
	const struct module_files *files = &subject->files;
	uint64_t size = files->image ? files->pe->size_of_image : subject->module->size_bytes;
	wchar_t *file = file_to_load(session, subject);
	wchar_t *path = file ? search_path(session, files) : NULL;
	uint64_t base = 0, loaded = 0;

	if (file && path && size && size <= UINT32_MAX)
		base = next_base(session, files->image && files->pe->bits == 32, size);
	if (base && session->dbghelp.SymSetSearchPathW(session->handle, path)) {
		session->dbghelp.SymSetOptions(options_for(session->options, files));
		loaded = session->dbghelp.SymLoadModuleExW(
			session->handle, NULL, file, NULL, base, (DWORD)size, NULL, 0);
	}
	free(path);
	free(file);
	return loaded;
}

static bool get_info(const struct dbghelp_session *session, uint64_t base, IMAGEHLP_MODULEW64 *info)
{
	info->SizeOfStruct = sizeof(*info);
	if (session->dbghelp.SymGetModuleInfoW64(session->handle, base, info))
		return true;
	info->SizeOfStruct = OLD_INFO_BYTES;
	return session->dbghelp.SymGetModuleInfoW64(session->handle, base, info);
}

static bool same_guid(const GUID *guid, const char *digits)
{
	char text[33];

	snprintf(text, sizeof(text), "%08lX%04X%04X%02X%02X%02X%02X%02X%02X%02X%02X", guid->Data1,
		guid->Data2, guid->Data3, guid->Data4[0], guid->Data4[1], guid->Data4[2],
		guid->Data4[3], guid->Data4[4], guid->Data4[5], guid->Data4[6], guid->Data4[7]);
	return !_stricmp(text, digits);
}

/* Is the PDB that DbgHelp loaded the one of the dump's build? That of the image is, when the dump says
 * nothing. */
static bool is_right_pdb(const struct sym_module *subject, const IMAGEHLP_MODULEW64 *info)
{
	const struct module_files *files = &subject->files;
	const struct module *module = subject->module;

	if (info->PdbUnmatched)
		return false;
	if (files->guid[0])
		return same_guid(&info->PdbSig70, files->guid) && info->PdbAge == files->age;
	if (module->has_identity && module->pdb_guid)
		return same_guid(&info->PdbSig70, module->pdb_guid) &&
		       info->PdbAge == module->pdb_age;
	if (files->pe && files->pe->pdb_guid[0])
		return same_guid(&info->PdbSig70, files->pe->pdb_guid) &&
		       info->PdbAge == files->pe->pdb_age;
	return false;
}

static int add_reason(struct module_files *files, const wchar_t *pdb)
{
	char *text = wide_to_utf8(pdb);
	int rc = text ? buf_printf(&files->reason, "%sDbgHelp took %s, which is another build",
				files->reason.len ? "; " : "", text) :
			-ERR_NOMEM;

	free(text);
	return rc;
}

/* Has DbgHelp something to say about the module, and is it about this build? Exports it may have are
 * none of that, nor are .sym and .dbg files, which nothing ties to a build. 1, 0 or -ERR_NOMEM. */
static int is_useful(const struct dbghelp_session *session, struct sym_module *subject,
	const IMAGEHLP_MODULEW64 *info)
{
	bool is_pdb = info->SymType == SymPdb || info->LoadedPdbName[0];

	if (info->SymType != SymPdb && info->SymType != SymDia && info->SymType != SymCoff &&
		info->SymType != SymCv)
		return 0;
	if (session->options->allow_mismatch && subject->files.is_mismatch)
		return 1;
	if (is_pdb && !is_right_pdb(subject, info))
		return add_reason(&subject->files, info->LoadedPdbName);
	return !info->DbgUnmatched;
}

/* Loads a module unless that was tried; wanted_count: for people, how many addresses wait for it.
 * 0, also when there is nothing; or -ERR_NOMEM, then with *module as it was. */
static int dbghelp_session_load(struct dbghelp_session *session, struct sym_module *subject,
	size_t wanted_count, struct dbghelp_module *module)
{
	IMAGEHLP_MODULEW64 info = {0};
	int rc = find_room(session, subject);
	uint64_t base;

	if (rc)
		return rc;
	*module = session->modules[subject->number];
	if (module->is_tried)
		return 0;
	module->is_tried = true;
	session->loading = subject;
	session->wanted_count = wanted_count;
	base = load_file(session, subject);
	session->loading = NULL;
	if (base && get_info(session, base, &info))
		rc = is_useful(session, subject, &info);
	if (rc == 1) {
		module->base = base;
		/* With DWARF, Wine 8 has the lines of what is near inlined code, and names such
		 * functions as if they were in the scope of their caller. */
		module->knows_inlined = !session->dbghelp.is_wine || info.LoadedPdbName[0];
	}
	session->modules[subject->number] = *module;
	return rc < 0 ? rc : 0;
}

/*
 * Asking DbgHelp. With DWARF 5 the one of Wine 8 has no names and says nothing of it; functions of its
 * own DLLs begin 8 bytes late in it.
 */

#define TAG_FUNCTION 5 /* SymTagFunction: not a public symbol, whose size is guessed */
#define NAME_UNITS 4000
#define HIDDEN_LINES 0xf00f00 /* and above (0xfeefee): marks of compilers, no lines */
#define LOOK_UP_EVERY 64 /* addresses between two looks at the clock */
#define TELL_EVERY_MS 50

struct backend {
	bool is_tried, is_alive;
	const struct symbol_options *options;
	const struct finder *finder;
	struct dbghelp_session session;
	ULONGLONG told_ms;
	union { /* room for the name behind it */
		SYMBOL_INFOW info;
		unsigned char bytes[sizeof(SYMBOL_INFOW) + NAME_UNITS * sizeof(WCHAR)];
	} symbol;
};

/* One address that is asked about. */
struct question {
	const struct dbghelp_module *module;
	uint64_t addr; /* in DbgHelp */
	DWORD context; /* of the function itself, when others are inlined there; or 0 */
	struct symbol chain[SYMBOL_CHAIN_MAX];
	size_t count;
	bool is_sure; /* as in struct lookup */
	struct arena texts;
};

static struct backend *dbghelp_make(
	const struct symbol_options *options, const struct finder *finder)
{
	struct backend *backend = calloc(1, sizeof(*backend));

	if (backend) {
		backend->options = options;
		backend->finder = finder;
	}
	return backend;
}

static void dbghelp_release(struct backend *backend)
{
	dbghelp_session_release(&backend->session);
	free(backend);
}

static const char *dbghelp_trouble(const struct backend *backend)
{
	(void)backend;
	return NULL;
}

/* One UTF-8 text into the arena; NULL: out of memory. */
static const char *text_of(const wchar_t *wide, struct arena *arena)
{
	char *text = wide_to_utf8(wide);
	char *copy = text ? arena_text(arena, text, strlen(text)) : NULL;

	free(text);
	return copy;
}

static SYMBOL_INFOW *symbol_room(struct backend *backend)
{
	SYMBOL_INFOW *info = &backend->symbol.info;

	memset(info, 0, sizeof(*info));
	info->SizeOfStruct = sizeof(*info);
	info->MaxNameLen = NAME_UNITS;
	return info;
}

static int take_name(struct question *question, const wchar_t *name, uint64_t displacement)
{
	struct symbol *symbol = &question->chain[question->count];

	*symbol = (struct symbol){
		.function = text_of(name, &question->texts), .offset_bytes = displacement + 1};
	if (!symbol->function)
		return -ERR_NOMEM;
	question->count++;
	return 0;
}

static int take_line(const IMAGEHLP_LINEW64 *line, struct question *question, struct symbol *symbol)
{
	if (!line->FileName || !line->LineNumber || line->LineNumber >= HIDDEN_LINES)
		return 0;
	symbol->file = text_of(line->FileName, &question->texts);
	symbol->line = line->LineNumber;
	return symbol->file ? 0 : -ERR_NOMEM;
}

static int inlined_line(struct backend *backend, struct question *question, struct symbol *symbol)
{
	struct dbghelp_session *session = &backend->session;
	IMAGEHLP_LINEW64 line = {.SizeOfStruct = sizeof(line)};
	DWORD columns;

	if (!question->module->knows_inlined ||
		!session->dbghelp.SymGetLineFromInlineContextW(
			session->handle, question->addr, question->context, 0, &columns, &line))
		return 0;
	return take_line(&line, question, symbol);
}

static int finish_inlined(struct backend *backend, struct question *question, struct symbol *symbol)
{
	size_t len;

	if (!question->module->knows_inlined) /* the scopes may be those of others */
		symbol->function = names_own(symbol->function, &len);
	return inlined_line(backend, question, symbol);
}

/* The functions inlined at the address, innermost first. */
static int ask_inlined(struct backend *backend, struct question *question)
{
	struct dbghelp_session *session = &backend->session;
	const struct dbghelp *dbghelp = &session->dbghelp;
	uint64_t addr = question->addr;
	DWORD depth = dbghelp->SymAddrIncludeInlineTrace(session->handle, addr), index = 0;
	int rc = 0;

	if (!depth || !dbghelp->SymQueryInlineTrace(
			      session->handle, addr, 0, addr, addr, &question->context, &index)) {
		question->context = 0;
		return 0;
	}
	for (DWORD i = 0; !rc && i < depth; i++, question->context++) {
		SYMBOL_INFOW *info = symbol_room(backend);
		DWORD64 displacement = 0;

		if (question->count == SYMBOL_CHAIN_MAX - 1 ||
			!dbghelp->SymFromInlineContextW(
				session->handle, addr, question->context, &displacement, info) ||
			!info->Name[0])
			continue;
		info->Name[NAME_UNITS - 1] = 0; /* a longer name may have been cut */
		rc = take_name(question, info->Name, displacement);
		if (!rc)
			rc = finish_inlined(
				backend, question, &question->chain[question->count - 1]);
	}
	return rc;
}

static int function_line(struct backend *backend, struct question *question, struct symbol *symbol)
{
	struct dbghelp_session *session = &backend->session;
	IMAGEHLP_LINEW64 line = {.SizeOfStruct = sizeof(line)};
	DWORD displacement;

	if (question->context)
		return inlined_line(backend, question, symbol);
	if (!session->dbghelp.SymGetLineFromAddrW64(
		    session->handle, question->addr, &displacement, &line))
		return 0;
	return take_line(&line, question, symbol);
}

/* The function itself. What is inlined in one without a name is left out with it. */
static int ask_function(struct backend *backend, struct question *question)
{
	struct dbghelp_session *session = &backend->session;
	SYMBOL_INFOW *info = symbol_room(backend);
	DWORD64 displacement = 0;
	int rc;

	if (!session->dbghelp.SymFromAddrW(session->handle, question->addr, &displacement, info) ||
		!info->Name[0] || (info->Flags & SYMFLAG_EXPORT)) {
		question->count = 0;
		return 0;
	}
	info->Name[NAME_UNITS - 1] = 0;
	question->is_sure = info->Tag == TAG_FUNCTION && displacement < info->Size;
	rc = take_name(question, info->Name, displacement);
	return rc ? rc : function_line(backend, question, &question->chain[question->count - 1]);
}

static int look_up(struct backend *backend, const struct dbghelp_module *module,
	struct lookup *lookup, struct arena *arena)
{
	struct question question = {.module = module, .addr = module->base + lookup->rva};
	int rc = 0;

	arena_init(&question.texts);
	if (backend->session.dbghelp.has_inlines)
		rc = ask_inlined(backend, &question);
	if (!rc)
		rc = ask_function(backend, &question);
	if (!rc && question.count)
		rc = names_keep(arena, question.chain, question.count, &lookup->found);
	lookup->is_answered = !rc;
	lookup->is_sure = question.is_sure;
	arena_release(&question.texts);
	return rc;
}

/* Tells how far it is, not too often. false: it is to stop. */
static bool go_on(struct backend *backend, const struct module *module, size_t done, size_t total)
{
	ULONGLONG now_ms;

	if (done % LOOK_UP_EVERY)
		return true;
	now_ms = GetTickCount64();
	if (now_ms - backend->told_ms >= TELL_EVERY_MS) {
		backend->told_ms = now_ms;
		listener_progress(backend->options, module_path_base(module->path), done, total);
	}
	return !listener_is_cancelled(backend->options);
}

static int dbghelp_resolve(struct backend *backend, struct sym_module *subject,
	struct lookup *lookups, size_t count, struct arena *arena)
{
	struct dbghelp_module module = {0};
	int rc;

	if (!backend->is_tried) {
		backend->is_tried = true;
		backend->is_alive =
			dbghelp_session_start(&backend->session, backend->options, backend->finder);
	}
	if (!backend->is_alive)
		return 0;
	rc = dbghelp_session_load(&backend->session, subject, count, &module);
	for (size_t i = 0; !rc && module.base && i < count; i++) {
		if (!go_on(backend, subject->module, i, count))
			break;
		if (!lookups[i].found.count)
			rc = look_up(backend, &module, &lookups[i], arena);
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
