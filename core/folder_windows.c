#include "core/folder.h"

#include <stdlib.h>
#include <string.h>

#include <windows.h>

#include "core/buf.h"
#include "core/utf_windows.h"

const struct folder_rules folder_rules = {
	.separators = "\\/:", .dropped = ". ", .has_devices = true};

bool folder_same_letter(uint32_t a, uint32_t b)
{
	const wchar_t left = (wchar_t)a, right = (wchar_t)b;

	if (a == b)
		return true;
	return a <= 0xffff && b <= 0xffff &&
	       CompareStringOrdinal(&left, 1, &right, 1, TRUE) == CSTR_EQUAL;
}

/* A symbolic link, a junction and the like lead elsewhere; a reparse point of another kind (a file kept
 * in a cloud, one without doubles) is the file itself. */
static bool leads_elsewhere(const WIN32_FIND_DATAW *found)
{
	return found->dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT &&
	       IsReparseTagNameSurrogate(found->dwReserved0);
}

/* A name that is no UTF-16 is none that anybody could ask for. */
static int hand_on(const WIN32_FIND_DATAW *found,
	int (*each)(void *ctx, const struct folder_entry *entry), void *ctx, struct err *err)
{
	struct folder_entry entry = {.is_link = leads_elsewhere(found)};
	char *name;
	int rc;

	if (!wcscmp(found->cFileName, L".") || !wcscmp(found->cFileName, L".."))
		return 0;
	name = utf8_from_wide(found->cFileName);
	entry.name = name;
	entry.is_file =
		!entry.is_link &&
		!(found->dwFileAttributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_DEVICE));
	if (entry.is_file)
		entry.size_bytes = (uint64_t)found->nFileSizeHigh << 32 | found->nFileSizeLow;
	rc = name ? each(ctx, &entry) : err_set(err, ERR_NOMEM, NULL, NULL);
	free(name);
	return rc;
}

/* "D:" alone is the current folder of that drive, so nothing is put behind it. */
static wchar_t *wide_pattern(const char *path)
{
	char last = *path ? path[strlen(path) - 1] : '\\';
	wchar_t *wide = NULL;
	struct buf pattern;

	buf_init(&pattern);
	if (!buf_printf(&pattern, "%s%s*", path, strchr("\\/:", last) ? "" : "\\"))
		wide = wide_path(pattern.data);
	buf_release(&pattern);
	return wide;
}

int folder_each(const char *path, enum folder_want want,
	int (*entry)(void *ctx, const struct folder_entry *entry), void *ctx, struct err *err)
{
	wchar_t *pattern = wide_pattern(path);
	WIN32_FIND_DATAW found;
	char text[300];
	HANDLE handle;
	DWORD code;
	int rc = 0;

	(void)want; /* all of it costs nothing here */
	if (!pattern)
		return err_set(err, ERR_NOMEM, path, NULL);
	handle = FindFirstFileExW(pattern, FindExInfoBasic, &found, FindExSearchNameMatch, NULL,
		FIND_FIRST_EX_LARGE_FETCH);
	code = GetLastError();
	free(pattern);
	if (handle == INVALID_HANDLE_VALUE && code == ERROR_FILE_NOT_FOUND)
		return 0; /* the folder is there, and even "." is not in it: the root of a drive */
	if (handle == INVALID_HANDLE_VALUE)
		return err_set(err, ERR_OPEN, path, "%s", windows_error(code, text, sizeof(text)));
	do
		rc = hand_on(&found, entry, ctx, err);
	while (!rc && FindNextFileW(handle, &found));
	code = GetLastError();
	if (!rc && code != ERROR_NO_MORE_FILES)
		rc = err_set(err, ERR_READ, path, "%s", windows_error(code, text, sizeof(text)));
	FindClose(handle);
	return rc;
}
