/*
 * Loads DbgHelp: finds its copies in order of preference and loads the first usable one, using its
 * full path. Also undecorates names with DbgHelp.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/os_windows.h"
#include "symbolize/backend/dbghelp_parts_windows.h"
#include "symbolize/backend/undname.h"
#include "symbolize/names.h"

#define PATH_UNITS 4096
#define KITS L"SOFTWARE\\Microsoft\\Windows Kits\\Installed Roots"
#define KITS_ROOT L"KitsRoot10"
#define SYSTEM_COPY L"\\dbghelp.dll"
#if defined(__x86_64__)
#define KITS_COPY L"\\Debuggers\\x64\\dbghelp.dll"
#else
#define KITS_COPY L"\\Debuggers\\x86\\dbghelp.dll"
#endif

static void warn(const struct symbol_options *options, const wchar_t *path, const char *why)
{
	char *text = wide_to_utf8(path);

	if (options && text)
		listener_warn(options, "%s %s; another copy of DbgHelp is used", text, why);
	free(text);
}

static bool is_on_drive(const wchar_t *path)
{
	wchar_t letter = path[0] | 0x20;

	return letter >= 'a' && letter <= 'z' && path[1] == ':' &&
	       (path[2] == '\\' || path[2] == '/');
}

/* Possible places of a copy: each function writes a full path, or returns false. */

static bool find_configured(const struct symbol_options *options, wchar_t *path)
{
	DWORD len = GetEnvironmentVariableW(L"HSYM_DBGHELP", path, PATH_UNITS);

	if (!len || len >= PATH_UNITS)
		return false;
	if (is_on_drive(path) || (path[0] == '\\' && path[1] == '\\'))
		return true;
	warn(options, path, "in HSYM_DBGHELP is not a full path");
	return false;
}

/* Any program can write this registry key, so remote disks are refused. */
static bool find_in_kits(wchar_t *path, REGSAM view)
{
	DWORD size = (PATH_UNITS - 1) * sizeof(*path), type = 0, attributes;
	size_t len;
	HKEY key;
	LSTATUS rc;

	if (RegOpenKeyExW(HKEY_LOCAL_MACHINE, KITS, 0, KEY_QUERY_VALUE | view, &key))
		return false;
	rc = RegQueryValueExW(key, KITS_ROOT, NULL, &type, (BYTE *)path, &size);
	RegCloseKey(key);
	if (rc || type != REG_SZ)
		return false;
	path[size / sizeof(*path)] = 0; /* the registry need not store a terminator */
	len = wcslen(path);
	if (!is_on_drive(path) || len + wcslen(KITS_COPY) + 2 > PATH_UNITS ||
		GetDriveTypeW((wchar_t[]){path[0], ':', '\\', 0}) == DRIVE_REMOTE)
		return false;
	wcscpy(path + len, path[len - 1] == '\\' ? &KITS_COPY[1] : KITS_COPY);
	attributes = GetFileAttributesW(path);
	return attributes != INVALID_FILE_ATTRIBUTES && !(attributes & FILE_ATTRIBUTE_DIRECTORY);
}

static bool find_in_system(wchar_t *path)
{
	UINT len = GetSystemDirectoryW(path, PATH_UNITS);

	if (!len || len + wcslen(SYSTEM_COPY) >= PATH_UNITS)
		return false;
	wcscpy(path + len, SYSTEM_COPY);
	return true;
}

/* Returns the address of a function, in a type that can be cast to any function pointer. */
static void (*function_of(HMODULE library, const char *name))(void)
{
	return (void (*)(void))GetProcAddress(library, name);
}

static bool find_functions(struct dbghelp *dbghelp, HMODULE library)
{
	/* NOLINTBEGIN(bugprone-macro-parentheses) */
#define X(type, name, parameters)                                                                  \
	dbghelp->name = (type(WINAPI *) parameters)function_of(library, #name);
	DBGHELP_NEEDED(X)
	DBGHELP_INLINES(X)
	DBGHELP_WELCOME(X)
#undef X
	/* NOLINTEND(bugprone-macro-parentheses) */
	dbghelp->is_wine = os_wine_version() != NULL;
#define X(type, name, parameters) &&dbghelp->name
	dbghelp->has_inlines = true DBGHELP_INLINES(X);
	return true DBGHELP_NEEDED(X);
#undef X
}

static bool find_symsrv(HMODULE library)
{
	static const wchar_t name[] = L"symsrv.dll";
	wchar_t *path = xmalloc(PATH_UNITS * sizeof(*path)), *base;
	DWORD len = GetModuleFileNameW(library, path, PATH_UNITS);
	bool result = false;

	base = len && len < PATH_UNITS ? wcsrchr(path, '\\') : NULL;
	if (base && (size_t)(base + 1 - path) + sizeof(name) / sizeof(*name) <= PATH_UNITS) {
		wcscpy(base + 1, name);
		result = GetFileAttributesW(path) != INVALID_FILE_ATTRIBUTES;
	}
	free(path);
	return result;
}

/* Loads a copy. If `is_asked_for` is set, a failure is reported as a warning. The altered search
 * path makes the loader look for symsrv.dll in the copy's folder. */
static bool load(const struct symbol_options *options, bool is_asked_for, const wchar_t *path,
	struct dbghelp *dbghelp)
{
	HMODULE library = LoadLibraryExW(path, NULL, LOAD_WITH_ALTERED_SEARCH_PATH);
	DWORD code = GetLastError();
	char error[200], why[300];

	if (library && find_functions(dbghelp, library)) {
		dbghelp->has_symsrv = find_symsrv(library);
		return true;
	}
	if (library)
		snprintf(why, sizeof(why), "lacks functions: it is too old");
	else
		snprintf(why, sizeof(why), "cannot be loaded: %s",
			windows_error(code, error, sizeof(error)));
	if (is_asked_for)
		warn(options, path, why);
	if (library)
		FreeLibrary(library);
	return false;
}

bool dbghelp_load(const struct symbol_options *options, struct dbghelp *dbghelp)
{
	wchar_t *path = xmalloc(PATH_UNITS * sizeof(*path));
	bool is_loaded;

	/* excludes the current folder from the search for the library's dependencies */
	SetDllDirectoryW(L"");
	is_loaded = (find_configured(options, path) && load(options, true, path, dbghelp)) ||
		    (find_in_kits(path, KEY_WOW64_64KEY) && load(options, true, path, dbghelp)) ||
		    (find_in_kits(path, KEY_WOW64_32KEY) && load(options, true, path, dbghelp)) ||
		    (find_in_system(path) && load(options, false, path, dbghelp));
	free(path);
	return is_loaded;
}

#define NAME_MAX_BYTES 4096 /* limit of Microsoft's compilers */
#define TEXT_UNITS 4000

/* Returns true for printable ASCII. Names from Microsoft's compilers contain nothing else, so other
 * names are not undecorated. */
static bool is_askable(const char *name)
{
	size_t len = 0;

	for (; name[len]; len++) {
		if ((unsigned char)name[len] < 0x20 || (unsigned char)name[len] > 0x7e ||
			len == NAME_MAX_BYTES)
			return false;
	}
	return name[0] == '?';
}

void undname_find(const char *const *names, const char **texts, size_t count, struct arena *arena,
	const struct symbol_options *options)
{
	/* loaded only once: undecorating needs no session */
	static struct dbghelp dbghelp;
	static bool is_tried, is_there;

	(void)options;
	memset(texts, 0, count * sizeof(*texts));
	if (!is_tried)
		is_there = dbghelp_load(NULL, &dbghelp) && dbghelp.UnDecorateSymbolNameW;
	is_tried = true;
	for (size_t i = 0; is_there && i < count; i++) {
		wchar_t undecorated[TEXT_UNITS] = {0}, *wide = NULL;
		char *utf8 = NULL;
		DWORD len = 0;

		if (is_askable(names[i]))
			wide = wide_from_utf8(names[i]);
		if (wide)
			len = dbghelp.UnDecorateSymbolNameW(
				wide, undecorated, TEXT_UNITS, UNDNAME_NAME_ONLY);
		undecorated[TEXT_UNITS - 1] = 0;
		/* If the result fills the buffer, it may have been truncated. */
		if (len && len < TEXT_UNITS - 1 && undecorated[0] && undecorated[0] != '?')
			utf8 = wide_to_utf8(undecorated);
		if (utf8)
			texts[i] = arena_text(arena, utf8, strlen(utf8));
		free(utf8);
		free(wide);
	}
}
