#include "symbolize/files/folder_list.h"

#include <stdlib.h>

#include <windows.h>

#include "core/buf.h"
#include "core/utf_windows.h"

/* One that is no UTF-16 has no name that anybody could ask for. */
static int hand_on(const wchar_t *wide, int (*name)(void *ctx, const char *name), void *ctx)
{
	char *text = utf8_from_wide(wide);
	int rc = text ? name(ctx, text) : -ERR_NOMEM;

	free(text);
	return rc;
}

static HANDLE begin(const char *path, WIN32_FIND_DATAW *found)
{
	HANDLE handle = INVALID_HANDLE_VALUE;
	wchar_t *wide = NULL;
	struct buf pattern;

	buf_init(&pattern);
	if (!buf_printf(&pattern, "%s\\*", path))
		wide = wide_path(pattern.data);
	if (wide)
		handle = FindFirstFileExW(wide, FindExInfoBasic, found, FindExSearchNameMatch, NULL,
			FIND_FIRST_EX_LARGE_FETCH);
	free(wide);
	buf_release(&pattern);
	return handle;
}

int folder_list(const char *path, int (*name)(void *ctx, const char *name), void *ctx)
{
	WIN32_FIND_DATAW found;
	HANDLE handle = begin(path, &found);
	int rc = 0;

	if (handle == INVALID_HANDLE_VALUE)
		return -ERR_READ;
	do
		rc = hand_on(found.cFileName, name, ctx);
	while (!rc && FindNextFileW(handle, &found));
	if (!rc && GetLastError() != ERROR_NO_MORE_FILES)
		rc = -ERR_READ;
	FindClose(handle);
	return rc;
}
