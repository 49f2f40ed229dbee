/* Where the files of a task lie: whether the task will find them, and who else may change them. */
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <windows.h>
#include <sddl.h>

#include "core/os.h"
#include "core/utf_windows.h"
#include "snapshot/schedule/rights_windows.h"
#include "snapshot/schedule/scheduler.h"

/* ---------------------------------------------------------------- drives */

/* What subst makes is a name for a folder: "\??\C:\folder" ("QueryDosDevice function", Microsoft Learn). */
static bool is_subst(const wchar_t *drive)
{
	wchar_t target[MAX_PATH + 8];

	return QueryDosDeviceW(drive, target, MAX_PATH + 8) && !wcsncmp(target, L"\\??\\", 4);
}

/* Letters of the network and of subst are those of one session: no task has them. */
static int check_drive(const char *path, bool is_system, struct err *err)
{
	wchar_t root[] = L"?:\\", drive[] = L"?:";

	if (path[1] != ':')
		return 0;
	root[0] = drive[0] = (wchar_t)path[0];
	if (is_subst(drive))
		return err_set(err, ERR_USAGE, path,
			"%c: is made by subst, which tasks do not see; give the folder itself",
			path[0]);
	if (GetDriveTypeW(root) != DRIVE_REMOTE)
		return 0;
	return err_set(err, ERR_USAGE, path,
		"%c: is a network drive, which tasks do not have; give %s", path[0],
		is_system ? "\\\\server\\share, where this machine's account has the rights" :
			    "a folder on this machine");
}

/* ---------------------------------------------------------------- folders */

/* Makes every folder on the way; one that is there already is no failure. */
static void make_all(wchar_t *path, size_t from, SECURITY_ATTRIBUTES *rights)
{
	for (wchar_t *at = path + from; *at; at++) {
		if (*at != L'\\')
			continue;
		*at = L'\0';
		CreateDirectoryW(path, rights);
		*at = L'\\';
	}
	CreateDirectoryW(path, rights);
}

static int make_folder(const char *path, SECURITY_ATTRIBUTES *rights, struct err *err)
{
	wchar_t *wide = wide_path(path);
	DWORD attributes, error;
	char text[300];

	if (!wide)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	make_all(wide, wcscspn(wide, L"\\") + 1, rights);
	error = GetLastError();
	attributes = GetFileAttributesW(wide);
	free(wide);
	if (attributes != INVALID_FILE_ATTRIBUTES && attributes & FILE_ATTRIBUTE_DIRECTORY)
		return 0;
	return err_set(err, ERR_CREATE, path, "%s", windows_error(error, text, sizeof(text)));
}

/* What is made for the system nobody else may write into from the first moment on. */
static int make_for_system(const char *path, struct err *err)
{
	SECURITY_ATTRIBUTES rights = {.nLength = sizeof(rights)};
	char text[300];
	int rc;

	if (!ConvertStringSecurityDescriptorToSecurityDescriptorW(
		    RIGHTS_OF_ADMINISTRATORS, SDDL_REVISION_1, &rights.lpSecurityDescriptor, NULL))
		return err_set(err, ERR_SYSTEM, path, "%s",
			windows_error(GetLastError(), text, sizeof(text)));
	rc = make_folder(path, &rights, err);
	LocalFree(rights.lpSecurityDescriptor);
	return rc;
}

/* ---------------------------------------------------------------- all of it */

static int check_program(const char *path, struct err *err)
{
	struct os_file file;
	int rc = os_open(&file, path, err);

	if (!rc)
		os_close(&file);
	return rc;
}

/* len bytes of path; a drive's root keeps its end. */
static int warn_of(const char *path, size_t len, struct err *err)
{
	char *place = len ? calloc(1, len + 2) : NULL;
	wchar_t *wide = NULL;

	if (place) {
		memcpy(place, path, len);
		if (place[len - 1] == ':')
			place[len] = '\\';
		wide = wide_path(place);
	}
	if (wide && rights_of_path_are_everybodys(wide))
		fprintf(stderr,
			"hsnap: %s: warning: every user may change it, and so have the rights of "
			"the task; leave that to administrators\n",
			place);
	free(place);
	free(wide);
	return wide ? 0 : err_set(err, ERR_NOMEM, NULL, NULL);
}

int scheduler_places(const char *folder, const char *program, bool is_system, struct err *err)
{
	size_t home = (size_t)(strrchr(program, '\\') - program);
	int rc = check_drive(folder, is_system, err);

	if (!rc)
		rc = check_drive(program, is_system, err);
	if (!rc)
		rc = check_program(program, err);
	if (!rc)
		rc = is_system ? make_for_system(folder, err) : make_folder(folder, NULL, err);
	if (!rc)
		rc = warn_of(folder, strlen(folder), err);
	if (!rc)
		rc = warn_of(program, strlen(program), err);
	return rc ? rc : warn_of(program, home, err);
}
