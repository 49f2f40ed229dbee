/* What only this system can tell for a task: full paths, this program, and who runs it. */
#include <stdlib.h>
#include <wchar.h>
#include <windows.h>
#include <sddl.h>

#include "core/os.h"
#include "core/utf_windows.h"
#include "snapshot/schedule/scheduler.h"

/* Adds text, which goes; NULL: out of memory. */
static int add_taken(struct buf *to, char *text, struct err *err)
{
	int rc = text ? buf_add_text(to, text) : -ERR_NOMEM;

	free(text);
	return rc ? err_set(err, ERR_NOMEM, NULL, NULL) : 0;
}

int scheduler_full_path(struct buf *full, const char *path, struct err *err)
{
	return add_taken(full, os_full_path(path), err);
}

/* The path may be longer than the system's usual limit: then it is not cut, but refused later. */
int scheduler_program(struct buf *path, struct err *err)
{
	DWORD units = 32768;
	wchar_t *wide = malloc(units * sizeof(*wide));
	DWORD len = wide ? GetModuleFileNameW(NULL, wide, units) : 0;
	int rc = add_taken(path, len && len < units ? utf8_from_wide(wide) : NULL, err);

	free(wide);
	return rc;
}

static char *sid_text(HANDLE token)
{
	union {
		TOKEN_USER user;
		char room[sizeof(TOKEN_USER) + SECURITY_MAX_SID_SIZE];
	} info;
	wchar_t *wide = NULL;
	DWORD size;
	char *text;

	if (!GetTokenInformation(token, TokenUser, &info, sizeof(info), &size) ||
		!ConvertSidToStringSidW(info.user.User.Sid, &wide))
		return NULL;
	text = utf8_from_wide(wide);
	LocalFree(wide);
	return text;
}

int scheduler_user(struct buf *user, struct err *err)
{
	HANDLE token;
	char text[300], *sid;
	int rc;

	if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token))
		return err_set(err, ERR_SYSTEM, "--as-user", "%s",
			windows_error(GetLastError(), text, sizeof(text)));
	sid = sid_text(token);
	rc = add_taken(user, sid, err);
	CloseHandle(token);
	return rc;
}

/* Makes every folder on the way; one that is there already is no failure. */
static void make_all(wchar_t *path, size_t from)
{
	for (wchar_t *at = path + from; *at; at++) {
		if (*at != L'\\')
			continue;
		*at = L'\0';
		CreateDirectoryW(path, NULL);
		*at = L'\\';
	}
	CreateDirectoryW(path, NULL);
}

int scheduler_make_folder(const char *path, struct err *err)
{
	wchar_t *wide = wide_path(path);
	DWORD attributes, error;
	char text[300];

	if (!wide)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	make_all(wide, wcscspn(wide, L"\\") + 1);
	error = GetLastError();
	attributes = GetFileAttributesW(wide);
	free(wide);
	if (attributes != INVALID_FILE_ATTRIBUTES && attributes & FILE_ATTRIBUTE_DIRECTORY)
		return 0;
	return err_set(err, ERR_CREATE, path, "%s", windows_error(error, text, sizeof(text)));
}
