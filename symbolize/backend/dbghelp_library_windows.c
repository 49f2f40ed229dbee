#include <stdlib.h>
#include <string.h>

#include "core/base/os_windows.h"
#include "symbolize/backend/dbghelp_parts_windows.h"
#include "symbolize/backend/undname.h"
#include "symbolize/names.h"

#define PATH_UNITS 4096
#define KITS L"SOFTWARE\\Microsoft\\Windows Kits\\Installed Roots"
#define KITS_ROOT L"KitsRoot10"
#if defined(__x86_64__)
#define KITS_COPY L"Debuggers\\x64\\dbghelp.dll"
#else
#define KITS_COPY L"Debuggers\\x86\\dbghelp.dll"
#endif

/* A place where a copy may be: writes its full path, or an empty text when there is none. */
struct choice {
	void (*find)(const struct symbol_options *options, wchar_t *path);
	bool is_asked_for; /* that it cannot be loaded is worth a word */
};

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

static void find_configured(const struct symbol_options *options, wchar_t *path)
{
	DWORD len = GetEnvironmentVariableW(L"HSYM_DBGHELP", path, PATH_UNITS);

	if (!len || len >= PATH_UNITS) {
		path[0] = 0;
		return;
	}
	if (is_on_drive(path) || (path[0] == '\\' && path[1] == '\\'))
		return;
	warn(options, path, "in HSYM_DBGHELP is not a full path");
	path[0] = 0;
}

static void append(wchar_t *path, const wchar_t *name)
{
	size_t len = wcslen(path);

	if (len && path[len - 1] != '\\' && len + 1 < PATH_UNITS)
		path[len++] = '\\';
	if (len + wcslen(name) < PATH_UNITS)
		memcpy(path + len, name, (wcslen(name) + 1) * sizeof(*name));
	else
		path[0] = 0;
}

/* A program can write to what the registry names, but not easily to another machine's disk. */
static bool is_here(const wchar_t *path)
{
	wchar_t root[] = {path[0], ':', '\\', 0};
	DWORD attributes;

	if (!is_on_drive(path) || GetDriveTypeW(root) == DRIVE_REMOTE)
		return false;
	attributes = GetFileAttributesW(path);
	return attributes != INVALID_FILE_ATTRIBUTES && !(attributes & FILE_ATTRIBUTE_DIRECTORY);
}

static void find_in_kits(wchar_t *path, REGSAM view)
{
	DWORD size = (PATH_UNITS - 1) * sizeof(*path), type = 0;
	HKEY key;
	LSTATUS rc;

	path[0] = 0;
	if (RegOpenKeyExW(HKEY_LOCAL_MACHINE, KITS, 0, KEY_QUERY_VALUE | view, &key))
		return;
	rc = RegQueryValueExW(key, KITS_ROOT, NULL, &type, (BYTE *)path, &size);
	RegCloseKey(key);
	if (rc || type != REG_SZ)
		size = 0;
	path[size / sizeof(*path)] = 0; /* nobody promises that it was stored with one */
	if (path[0])
		append(path, KITS_COPY);
	if (path[0] && !is_here(path))
		path[0] = 0;
}

static void find_in_kits64(const struct symbol_options *options, wchar_t *path)
{
	(void)options;
	find_in_kits(path, KEY_WOW64_64KEY);
}

static void find_in_kits32(const struct symbol_options *options, wchar_t *path)
{
	(void)options;
	find_in_kits(path, KEY_WOW64_32KEY);
}

static void find_in_system(const struct symbol_options *options, wchar_t *path)
{
	UINT len = GetSystemDirectoryW(path, PATH_UNITS);

	(void)options;
	if (!len || len >= PATH_UNITS)
		path[0] = 0;
	else
		append(path, L"dbghelp.dll");
}

/* The address of a function, through a type that any function pointer may be converted to. */
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

/* With the altered search path what it needs (symsrv.dll) is looked for beside it. */
static bool load(const struct symbol_options *options, const struct choice *choice, wchar_t *path,
	struct dbghelp *dbghelp)
{
	HMODULE library = LoadLibraryExW(path, NULL, LOAD_WITH_ALTERED_SEARCH_PATH);
	DWORD code = GetLastError();
	char error[200], why[300];

	if (library && find_functions(dbghelp, library))
		return true;
	if (library)
		snprintf(why, sizeof(why), "lacks functions: it is too old");
	else
		snprintf(why, sizeof(why), "cannot be loaded: %s",
			windows_error(code, error, sizeof(error)));
	if (choice->is_asked_for)
		warn(options, path, why);
	if (library)
		FreeLibrary(library);
	return false;
}

bool dbghelp_load(const struct symbol_options *options, struct dbghelp *dbghelp)
{
	static const struct choice choices[] = {
		{find_configured, true},
		{find_in_kits64, true},
		{find_in_kits32, true},
		{find_in_system, false},
	};
	wchar_t *path = malloc(PATH_UNITS * sizeof(*path));
	bool is_loaded = false;

	SetDllDirectoryW(L""); /* nor shall what it loads by name come from the current folder */
	for (size_t i = 0; path && !is_loaded && i < sizeof(choices) / sizeof(*choices); i++) {
		choices[i].find(options, path);
		is_loaded = path[0] && load(options, &choices[i], path, dbghelp);
	}
	free(path);
	return is_loaded;
}

#define NAME_MAX_BYTES                                                                             \
	4096 /* as long as Microsoft's compilers make them; deeper nesting is no name */
#define TEXT_UNITS 4000

/* Loaded once; what it says has no state. */
static const struct dbghelp *library(void)
{
	static struct dbghelp dbghelp;
	static bool is_tried, is_there;

	if (!is_tried)
		is_there = dbghelp_load(NULL, &dbghelp) && dbghelp.UnDecorateSymbolNameW;
	is_tried = true;
	return is_there ? &dbghelp : NULL;
}

/* Microsoft names are ASCII; that of another letter is left as it is. */
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

/* 0 or -ERR_NOMEM. */
static int undname_one(
	const struct dbghelp *dbghelp, const char *name, const char **text, struct arena *arena)
{
	wchar_t said[TEXT_UNITS] = {0}, *wide = wide_from_utf8(name);
	char *utf8 = NULL;
	DWORD len;
	int rc = wide ? 0 : -ERR_NOMEM;

	/* A text that fills the room may have been cut. */
	len = wide ? dbghelp->UnDecorateSymbolNameW(wide, said, TEXT_UNITS, UNDNAME_NAME_ONLY) : 0;
	said[TEXT_UNITS - 1] = 0;
	if (len && len < TEXT_UNITS - 1 && said[0] && said[0] != '?') {
		utf8 = wide_to_utf8(said);
		*text = utf8 ? arena_text(arena, utf8, strlen(utf8)) : NULL;
		rc = *text ? 0 : -ERR_NOMEM;
	}
	free(utf8);
	free(wide);
	return rc;
}

int undname_find(const char *const *names, const char **texts, size_t count, struct arena *arena,
	const struct symbol_options *options)
{
	const struct dbghelp *dbghelp = library();
	int rc = 0;

	(void)options;
	memset(texts, 0, count * sizeof(*texts));
	for (size_t i = 0; dbghelp && !rc && i < count; i++) {
		if (is_askable(names[i]))
			rc = undname_one(dbghelp, names[i], &texts[i], arena);
	}
	return rc;
}
