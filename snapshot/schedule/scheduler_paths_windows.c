/* What only this system can tell for a task: full paths, this program, and who runs it. Where its files lie is in
 * scheduler_places_windows.c. */
#include <stdlib.h>
#include <string.h>
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

/* On the word of a task no other machine is asked, which would learn who asks. */
static bool is_own_program(const char *own, const char *program)
{
	return (program[0] != '\\' || own[0] == '\\') && os_same_file(own, program);
}

int scheduler_own_program(const char *program, struct buf *own, struct err *err)
{
	static const char *const siblings[] = {"hsnap.exe", "hsnap32.exe"};
	int rc = scheduler_program(own, err);
	size_t home = rc ? 0 : (size_t)(strrchr(own->data, '\\') + 1 - own->data);
	bool is_own = !rc && is_own_program(own->data, program);

	for (size_t i = 0; !rc && !is_own && i < sizeof(siblings) / sizeof(*siblings); i++) {
		own->len = home;
		rc = buf_add_text(own, siblings[i]) ? err_set(err, ERR_NOMEM, NULL, NULL) : 0;
		is_own = !rc && is_own_program(own->data, program);
	}
	return rc ? rc : is_own;
}
