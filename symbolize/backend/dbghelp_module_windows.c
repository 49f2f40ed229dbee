#include "symbolize/backend/dbghelp_module_windows.h"

#include <stdlib.h>
#include <string.h>

#include "core/utf_windows.h"
#include "symbolize/listen.h"

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
		listener_progress(session->options, path_base(session->loading->module->path), 0,
			session->wanted_count);
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

bool dbghelp_session_start(struct dbghelp_session *session, const struct symbol_options *options,
	const struct finder *finder)
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

void dbghelp_session_release(struct dbghelp_session *session)
{
	if (session->is_started && session->dbghelp.SymRegisterCallbackW64)
		session->dbghelp.SymRegisterCallbackW64(session->handle, on_event, 0);
	free(session->modules);
	session->modules = NULL;
}

static int find_room(struct dbghelp_session *session, const struct subject *subject)
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

/* Without an image the PDB itself is loaded, which needs the size that the dump tells. Wine's DbgHelp
 * refuses it. */
static uint64_t load_file(struct dbghelp_session *session, const struct subject *subject)
{
	const struct module_files *files = &subject->files;
	uint64_t size = files->image ? files->pe->size_of_image : subject->module->size_bytes;
	wchar_t *file = wide_path(files->image ? files->image : files->pdb);
	wchar_t *path = search_path(session, files);
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
static bool is_right_pdb(const struct subject *subject, const IMAGEHLP_MODULEW64 *info)
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
	char *text = utf8_from_wide(pdb);
	int rc = text ? buf_printf(&files->reason, "%sDbgHelp took %s, which is another build",
				files->reason.len ? "; " : "", text) :
			-ERR_NOMEM;

	free(text);
	return rc;
}

/* Has DbgHelp something to say about the module, and is it about this build? Exports it may have are
 * none of that, nor are .sym and .dbg files, which nothing ties to a build. 1, 0 or -ERR_NOMEM. */
static int is_useful(const struct dbghelp_session *session, struct subject *subject,
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

int dbghelp_session_load(struct dbghelp_session *session, struct subject *subject,
	size_t wanted_count, struct dbghelp_module *module)
{
	IMAGEHLP_MODULEW64 info = {0};
	int rc = find_room(session, subject);
	uint64_t base;

	*module = rc ? (struct dbghelp_module){0} : session->modules[subject->number];
	if (rc || module->is_tried)
		return rc;
	module->is_tried = true;
	session->loading = subject;
	session->wanted_count = wanted_count;
	base = subject->files.image || subject->files.pdb ? load_file(session, subject) : 0;
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
