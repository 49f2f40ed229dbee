#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "core/os.h"
#include "core/utf_windows.h"

/* A folder's own limit is shorter by the room that a name of the oldest kind takes. */
#define SHORT_UNITS (MAX_PATH - 12)

static bool is_device_path(const wchar_t *path)
{
	return path[0] == L'\\' && path[1] == L'\\' && (path[2] == L'?' || path[2] == L'.') &&
	       path[3] == L'\\';
}

/* A full path in the form without a limit, or NULL: out of memory. */
static wchar_t *without_limit(const wchar_t *full)
{
	bool is_share = full[0] == L'\\' && full[1] == L'\\';
	const wchar_t *prefix = is_share ? L"\\\\?\\UNC\\" : L"\\\\?\\";
	const wchar_t *rest = is_share ? full + 2 : full;
	wchar_t *path = malloc((wcslen(prefix) + wcslen(rest) + 1) * sizeof(*path));

	if (path)
		wcscat(wcscpy(path, prefix), rest);
	return path;
}

wchar_t *wide_path_long(wchar_t *path)
{
	DWORD units = path ? GetFullPathNameW(path, 0, NULL, NULL) : 0;
	wchar_t *full, *result = NULL;

	if (units < SHORT_UNITS || is_device_path(path))
		return path;
	full = malloc(units * sizeof(*full));
	if (full && GetFullPathNameW(path, units, full, NULL) < units)
		result = is_device_path(full) ? wcsdup(full) : without_limit(full);
	free(full);
	free(path);
	return result;
}

wchar_t *wide_path(const char *path)
{
	return wide_path_long(wide_from_utf8(path));
}

char *os_full_path(const char *path)
{
	wchar_t *wide = wide_from_utf8(path);
	DWORD units = wide ? GetFullPathNameW(wide, 0, NULL, NULL) : 0;
	wchar_t *full = units ? malloc(units * sizeof(*full)) : NULL;
	char *result = NULL;

	if (full && GetFullPathNameW(wide, units, full, NULL) < units)
		result = utf8_from_wide(full);
	free(full);
	free(wide);
	return result;
}
