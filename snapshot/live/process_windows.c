/* Processes, by pid and by name: opening a process, the lock between hsnaps, and the list of all
 * processes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <windows.h>
#include <tlhelp32.h>

#include "core/base/memory.h"
#include "core/base/os_windows.h"
#include "snapshot/live/live_windows.h"
#include "snapshot/live/nt_windows.h"
#include "snapshot/live/process.h"

/* Enables a privilege. AdjustTokenPrivileges() succeeds even if it has not enabled anything, so the
 * last error must be checked. */
static bool enable(HANDLE token, const wchar_t *name)
{
	TOKEN_PRIVILEGES wanted = {
		.PrivilegeCount = 1, .Privileges = {{.Attributes = SE_PRIVILEGE_ENABLED}}};

	return LookupPrivilegeValueW(NULL, name, &wanted.Privileges[0].Luid) &&
	       AdjustTokenPrivileges(token, FALSE, &wanted, 0, NULL, NULL) &&
	       GetLastError() == ERROR_SUCCESS;
}

bool process_enable_debug(void)
{
	static bool is_tried, is_enabled;
	HANDLE token;

	if (is_tried)
		return is_enabled;
	is_tried = true;
	if (!OpenProcessToken(GetCurrentProcess(), TOKEN_ADJUST_PRIVILEGES | TOKEN_QUERY, &token))
		return false;
	is_enabled = enable(token, L"SeDebugPrivilege");
	CloseHandle(token);
	return is_enabled;
}

static int refused(const char *place, DWORD code, struct err *err)
{
	char text[300];

	if (code == ERROR_ACCESS_DENIED)
		return err_set(err, ERR_RIGHTS, place, NULL);
	return err_set(err, ERR_NO_PROCESS, place, code == ERROR_INVALID_PARAMETER ? NULL : "%s",
		windows_error(code, text, sizeof(text)));
}

/* Checks an opened process. The system ignores the two lowest bits of a pid, so it may have opened
 * another process. */
static int check(HANDLE process, uint32_t pid, const char *place, struct err *err)
{
	if (GetProcessId(process) != pid)
		return err_set(err, ERR_NO_PROCESS, place, NULL);
	if (pid == GetCurrentProcessId())
		return err_set(err, ERR_USAGE, place, "this is hsnap itself");
	return 0;
}

int process_open(uint32_t pid, DWORD rights, DWORD more, HANDLE *process, struct err *err)
{
	HANDLE opened;
	char place[40];
	int rc;

	snprintf(place, sizeof(place), "pid %" PRIu32, pid);
	process_enable_debug();
	opened = OpenProcess(rights | more, FALSE, pid);
	if (!opened && more)
		opened = OpenProcess(rights, FALSE, pid);
	if (!opened)
		return refused(place, GetLastError(), err);
	rc = check(opened, pid, place, err);
	if (rc)
		CloseHandle(opened);
	else
		*process = opened;
	return rc;
}

int64_t process_start_ms(HANDLE process)
{
	FILETIME start, exit, kernel, user;

	if (!GetProcessTimes(process, &start, &exit, &kernel, &user))
		return 0;
	/* Converts from 100 ns units since 1601. There are 11644473600 s between 1601 and 1970. */
	return (int64_t)(((uint64_t)start.dwHighDateTime << 32 | start.dwLowDateTime) / 10000) -
	       11644473600000;
}

/* The lock's name is machine-wide, because a program that may change a process can be in another
 * session. With these rights, another user's lock can be opened; with all rights, it cannot. */
#define NAME L"Global\\hsnap-control-%" PRIu32
#define RIGHTS (SYNCHRONIZE | MUTEX_MODIFY_STATE)
#define AGAIN_MS 10

bool process_lock_acquire(struct process_lock *lock, uint32_t pid, uint32_t patience_ms)
{
	wchar_t name[60];
	DWORD status;

	*lock = (struct process_lock){0};
	_snwprintf(name, 60, NAME, pid);
	/* A lock that cannot be opened belongs to another user. Wait until it no longer exists. */
	while (!(lock->mutex = CreateMutexExW(NULL, name, 0, RIGHTS))) {
		/* the name is used by another kind of object */
		if (GetLastError() != ERROR_ACCESS_DENIED)
			return true;
		if (patience_ms < AGAIN_MS)
			return false;
		Sleep(AGAIN_MS);
		patience_ms -= AGAIN_MS;
	}
	status = WaitForSingleObject(lock->mutex, patience_ms);
	if (status == WAIT_OBJECT_0 || status == WAIT_ABANDONED)
		return true;
	CloseHandle(lock->mutex);
	lock->mutex = NULL;
	return false;
}

bool process_is_changing(uint32_t pid)
{
	wchar_t name[60];
	HANDLE mutex;

	_snwprintf(name, 60, NAME, pid);
	mutex = OpenMutexW(SYNCHRONIZE, FALSE, name);
	if (!mutex)
		return GetLastError() == ERROR_ACCESS_DENIED;
	CloseHandle(mutex);
	return true;
}

void process_lock_release(struct process_lock *lock)
{
	if (!lock->mutex)
		return;
	ReleaseMutex(lock->mutex);
	CloseHandle(lock->mutex);
	lock->mutex = NULL;
}

/* Converts both names to UTF-16. Returns the length of the first name, or 0 if a conversion
 * failed. */
static size_t wide_pair(const char *image, const char *name, wchar_t **wide)
{
	wide[0] = wide_from_utf8(image);
	wide[1] = wide_from_utf8(name);
	return wide[0] && wide[1] ? wcslen(wide[0]) : 0;
}

/* Compares names as file systems do: ignores case, with a table that does not depend on the
 * language. */
static bool is_same(const wchar_t *text, size_t len, const wchar_t *name)
{
	return CompareStringOrdinal(text, (int)len, name, -1, TRUE) == CSTR_EQUAL;
}

bool process_is_called(const char *image, const char *name)
{
	wchar_t *wide[2];
	size_t len = wide_pair(image, name, wide);
	bool is = len && is_same(wide[0], len, wide[1]);

	if (!is && len > 4 && is_same(wide[0] + len - 4, 4, L".exe"))
		is = is_same(wide[0], len - 4, wide[1]);
	free(wide[0]);
	free(wide[1]);
	return is;
}

static int add(struct process_list *list, const PROCESSENTRY32W *entry)
{
	char *name;

	/*
	 * Skip the idle process, which is not a real process, and hsnap itself, which is never a
	 * target. Also skip processes without threads: such a process is a clone that another
	 * program is reading, or it has exited and is still referenced.
	 */
	if (!entry->th32ProcessID || !entry->cntThreads ||
		entry->th32ProcessID == GetCurrentProcessId())
		return 0;
	name = wide_to_utf8(entry->szExeFile);
	if (!name || array_try_grow((void **)&list->items, &list->cap, list->count,
			     sizeof(*list->items))) {
		free(name);
		return -ERR_NOMEM;
	}
	list->items[list->count++] =
		(struct process_entry){.pid = entry->th32ProcessID, .name = name};
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct process_entry *left = a, *right = b;

	return left->pid < right->pid ? -1 : left->pid > right->pid;
}

int process_list_capture(struct process_list *list, struct err *err)
{
	HANDLE processes = CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0);
	PROCESSENTRY32W entry = {.dwSize = sizeof(entry)};
	char text[300];
	int rc = 0;

	*list = (struct process_list){0};
	if (processes == INVALID_HANDLE_VALUE)
		return err_set(err, ERR_SYSTEM, "the list of processes", "%s",
			windows_error(GetLastError(), text, sizeof(text)));
	for (BOOL more = Process32FirstW(processes, &entry); more && !rc;
		more = Process32NextW(processes, &entry))
		rc = add(list, &entry);
	CloseHandle(processes);
	if (rc)
		return err_set(err, ERR_NOMEM, "the list of processes", NULL);
	if (list->count)
		qsort(list->items, list->count, sizeof(*list->items), compare);
	return 0;
}

void process_list_release(struct process_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i].name);
	free(list->items);
	*list = (struct process_list){0};
}
