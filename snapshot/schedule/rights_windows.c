#include "snapshot/schedule/rights_windows.h"

#include <aclapi.h>

#define CHANGES                                                                                    \
	(FILE_WRITE_DATA | FILE_APPEND_DATA | FILE_DELETE_CHILD | DELETE | WRITE_DAC |             \
		WRITE_OWNER | GENERIC_WRITE | GENERIC_ALL)

static bool is_everybody(SID *who)
{
	static const WELL_KNOWN_SID_TYPE all[] = {
		WinWorldSid, WinBuiltinUsersSid, WinAuthenticatedUserSid, WinInteractiveSid};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		if (IsWellKnownSid(who, all[i]))
			return true;
	}
	return false;
}

bool rights_are_everybodys(ACL *list)
{
	if (!list)
		return true;
	for (DWORD i = 0; i < list->AceCount; i++) {
		ACCESS_ALLOWED_ACE *entry;

		if (GetAce(list, i, (void **)&entry) &&
			entry->Header.AceType == ACCESS_ALLOWED_ACE_TYPE &&
			!(entry->Header.AceFlags & INHERIT_ONLY_ACE) && entry->Mask & CHANGES &&
			is_everybody((SID *)&entry->SidStart))
			return true;
	}
	return false;
}

/* Of what the path leads to, or with FILE_FLAG_OPEN_REPARSE_POINT of a link there itself. */
static bool is_everybodys(const wchar_t *path, DWORD flags)
{
	HANDLE handle = CreateFileW(path, READ_CONTROL,
		FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, OPEN_EXISTING,
		FILE_FLAG_BACKUP_SEMANTICS | flags, NULL);
	PSECURITY_DESCRIPTOR all = NULL;
	ACL *list = NULL;
	bool is_so = false;

	if (handle == INVALID_HANDLE_VALUE)
		return false;
	if (GetSecurityInfo(handle, SE_FILE_OBJECT, DACL_SECURITY_INFORMATION, NULL, NULL, &list,
		    NULL, &all) == ERROR_SUCCESS) {
		is_so = rights_are_everybodys(list);
		LocalFree(all);
	}
	CloseHandle(handle);
	return is_so;
}

bool rights_of_path_are_everybodys(const wchar_t *path)
{
	return is_everybodys(path, 0) || is_everybodys(path, FILE_FLAG_OPEN_REPARSE_POINT);
}
