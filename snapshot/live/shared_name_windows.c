/*
 * Named objects that two hsnaps of one machine can see, even from two sessions: a task of Task
 * Scheduler runs in session 0.
 *
 * "Global\" is visible in all sessions. Not every process may create every kind of object there:
 * sections need SeCreateGlobalPrivilege (Microsoft Learn, "Kernel object namespaces"). In that
 * case, the object is created in "Local\" and is visible only in its own session.
 */
#include <windows.h>
#include <sddl.h>

#include "snapshot/live/live_windows.h"

#define NAME_UNITS 100
#define SDDL_UNITS 300

static const wchar_t *const spaces[] = {L"Global\\", L"Local\\"};

/* Returns true if an object of any type has the name, even if it cannot be opened. Preserves the
 * last error. */
static bool is_taken(const wchar_t *full)
{
	DWORD code = GetLastError(), answer;
	HANDLE event = OpenEventW(SYNCHRONIZE, FALSE, full);

	answer = event ? ERROR_SUCCESS : GetLastError();
	if (event)
		CloseHandle(event);
	SetLastError(code);
	return answer != ERROR_FILE_NOT_FOUND && answer != ERROR_PATH_NOT_FOUND;
}

HANDLE shared_name_make(const wchar_t *name, shared_name_fn make, void *ctx, const wchar_t **space)
{
	wchar_t full[NAME_UNITS];
	HANDLE made;

	_snwprintf(full, NAME_UNITS, L"%ls%ls", spaces[0], name);
	*space = spaces[0];
	made = make(full, ctx);
	if (made || GetLastError() != ERROR_ACCESS_DENIED || is_taken(full))
		return made;
	_snwprintf(full, NAME_UNITS, L"%ls%ls", spaces[1], name);
	*space = spaces[1];
	return make(full, ctx);
}

HANDLE shared_name_find(const wchar_t *name, shared_name_fn find, void *ctx, const wchar_t **space)
{
	wchar_t full[NAME_UNITS];
	HANDLE found = NULL;

	for (size_t i = 0; i < sizeof(spaces) / sizeof(*spaces); i++) {
		_snwprintf(full, NAME_UNITS, L"%ls%ls", spaces[i], name);
		*space = spaces[i];
		found = find(full, ctx);
		if (found || GetLastError() != ERROR_FILE_NOT_FOUND)
			break;
	}
	return found;
}

/* Returns the SID of this process's user as a string, or NULL. The caller frees the string with
 * LocalFree(). */
static wchar_t *own_user(void)
{
	union {
		TOKEN_USER user;
		char room[sizeof(TOKEN_USER) + SECURITY_MAX_SID_SIZE];
	} answer;
	wchar_t *text = NULL;
	HANDLE token;
	DWORD bytes;

	if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token))
		return NULL;
	if (!GetTokenInformation(token, TokenUser, &answer, sizeof(answer), &bytes) ||
		!ConvertSidToStringSidW(answer.user.User.Sid, &text))
		text = NULL;
	CloseHandle(token);
	return text;
}

void shared_name_rights(SECURITY_ATTRIBUTES *rights)
{
	wchar_t text[SDDL_UNITS], *user = own_user();

	*rights = (SECURITY_ATTRIBUTES){.nLength = sizeof(*rights)};
	if (!user)
		return;
	_snwprintf(text, SDDL_UNITS, L"D:(A;;GA;;;SY)(A;;GA;;;BA)(A;;GA;;;%ls)", user);
	if (!ConvertStringSecurityDescriptorToSecurityDescriptorW(
		    text, SDDL_REVISION_1, &rights->lpSecurityDescriptor, NULL))
		rights->lpSecurityDescriptor = NULL;
	LocalFree(user);
}
