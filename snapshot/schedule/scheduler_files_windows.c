/* Files of a task: their full paths, checks that the task will find them, and checks of other
 * users' rights to change them. */
#include "snapshot/schedule/scheduler_parts_windows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <windows.h>
#include <aclapi.h>
#include <sddl.h>

#include "core/base/os.h"
#include "core/base/os_windows.h"
#include "snapshot/schedule/scheduler.h"

static void add_wide(struct buf *to, const wchar_t *wide)
{
	char *text = wide_to_utf8(wide);

	if (!text)
		memory_out();
	buf_add_text(to, text);
	free(text);
}

int scheduler_full_path(struct buf *full, const char *path, struct err *err)
{
	char *text = os_full_path(path);

	if (!text)
		return err_set(err, ERR_OPEN, path, NULL);
	buf_add_text(full, text);
	free(text);
	return 0;
}

/* The buffer is large enough for any path. */
int scheduler_program(struct buf *path, struct err *err)
{
	static wchar_t wide[32768];

	(void)err;
	GetModuleFileNameW(NULL, wide, 32768);
	add_wide(path, wide);
	return 0;
}

int scheduler_user(struct buf *user, struct err *err)
{
	union {
		TOKEN_USER user;
		char room[sizeof(TOKEN_USER) + SECURITY_MAX_SID_SIZE];
	} info;
	wchar_t *sid = NULL;
	HANDLE token = NULL;
	char text[300];
	DWORD size;
	int rc = 0;

	if (OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token) &&
		GetTokenInformation(token, TokenUser, &info, sizeof(info), &size) &&
		ConvertSidToStringSidW(info.user.User.Sid, &sid))
		add_wide(user, sid);
	else
		rc = err_set(err, ERR_SYSTEM, "--as-user", "%s",
			windows_error(GetLastError(), text, sizeof(text)));
	LocalFree(sid);
	if (token)
		CloseHandle(token);
	return rc;
}

/* ---------------------------------------------------------------- rights */

#define CHANGES                                                                                    \
	(FILE_WRITE_DATA | FILE_APPEND_DATA | FILE_DELETE_CHILD | DELETE | WRITE_DAC |             \
		WRITE_OWNER | GENERIC_WRITE | GENERIC_ALL)

static bool is_everybody(SID *who)
{
	return IsWellKnownSid(who, WinWorldSid) || IsWellKnownSid(who, WinBuiltinUsersSid) ||
	       IsWellKnownSid(who, WinAuthenticatedUserSid) ||
	       IsWellKnownSid(who, WinInteractiveSid);
}

bool rights_are_everybodys(ACL *list)
{
	for (DWORD i = 0; list && i < list->AceCount; i++) {
		ACCESS_ALLOWED_ACE *entry;

		if (GetAce(list, i, (void **)&entry) &&
			entry->Header.AceType == ACCESS_ALLOWED_ACE_TYPE &&
			!(entry->Header.AceFlags & INHERIT_ONLY_ACE) && entry->Mask & CHANGES &&
			is_everybody((SID *)&entry->SidStart))
			return true;
	}
	return !list;
}

bool rights_of_path_are_everybodys(const char *path)
{
	wchar_t *wide = wide_path(path);
	PSECURITY_DESCRIPTOR all = NULL;
	ACL *list = NULL;
	bool result = wide &&
		      GetNamedSecurityInfoW(wide, SE_FILE_OBJECT, DACL_SECURITY_INFORMATION, NULL,
			      NULL, &list, NULL, &all) == ERROR_SUCCESS &&
		      rights_are_everybodys(list);

	LocalFree(all);
	free(wide);
	return result;
}

static void warn_if_everybodys(const char *path)
{
	if (rights_of_path_are_everybodys(path))
		fprintf(stderr,
			"hsnap: %s: warning: every user can change it, and so gain the rights of "
			"the task; let only administrators change it\n",
			path);
}

/* ---------------------------------------------------------------- places */

/* Refuses network drives. Their letters exist only in one session, so no task has them. */
static int check_drive(const char *path, bool is_system, struct err *err)
{
	wchar_t root[] = L"?:\\";

	root[0] = (wchar_t)path[0];
	if (path[1] != ':' || GetDriveTypeW(root) != DRIVE_REMOTE)
		return 0;
	return err_set(err, ERR_USAGE, path,
		"%c: is a network drive, which tasks cannot see; give %s", path[0],
		is_system ? "\\\\server\\share, where this machine's account has the rights" :
			    "a folder on this machine");
}

/* Creates all folders of the path; folders may already exist. Folders for the system get their
 * rights when they are created, so no other user can ever write to them. */
static int make_folder(const char *path, bool is_system, struct err *err)
{
	SECURITY_ATTRIBUTES rights = {.nLength = sizeof(rights)};
	DWORD attributes = INVALID_FILE_ATTRIBUTES, error = ERROR_PATH_NOT_FOUND;
	wchar_t *wide = wide_path(path);
	char text[300];

	if (is_system &&
		!ConvertStringSecurityDescriptorToSecurityDescriptorA(RIGHTS_OF_ADMINISTRATORS,
			SDDL_REVISION_1, &rights.lpSecurityDescriptor, NULL)) {
		error = GetLastError();
	} else if (wide) {
		for (wchar_t *at = wide + wcscspn(wide, L"\\"); (at = wcschr(at + 1, L'\\'));) {
			*at = L'\0';
			CreateDirectoryW(wide, &rights);
			*at = L'\\';
		}
		CreateDirectoryW(wide, &rights);
		error = GetLastError();
		attributes = GetFileAttributesW(wide);
	}
	LocalFree(rights.lpSecurityDescriptor);
	free(wide);
	if (attributes != INVALID_FILE_ATTRIBUTES && attributes & FILE_ATTRIBUTE_DIRECTORY)
		return 0;
	return err_set(err, ERR_CREATE, path, "%s", windows_error(error, text, sizeof(text)));
}

int scheduler_places(
	const char *folder, const char *program, const char *home, bool is_system, struct err *err)
{
	struct os_file file;
	int rc = check_drive(folder, is_system, err);

	if (!rc)
		rc = check_drive(program, is_system, err);
	if (!rc)
		rc = os_open(&file, program, err);
	if (rc)
		return rc;
	os_close(&file);
	rc = make_folder(folder, is_system, err);
	if (rc)
		return rc;
	warn_if_everybodys(folder);
	warn_if_everybodys(program);
	warn_if_everybodys(home);
	return 0;
}
