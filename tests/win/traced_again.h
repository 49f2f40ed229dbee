/* Starts this test again with the tracer's DLL loaded, and switches the tracer on and off from
 * outside. The child calls traced_load_dll(), sets the event "ready", and waits for "end". */
#ifndef TESTS_WIN_TRACED_AGAIN_H
#define TESTS_WIN_TRACED_AGAIN_H

#include <stddef.h>
#include <wchar.h>

#include "snapshot/control/tracee_windows.h"
#include "snapshot/live/process.h"
#include "tests/win/again.h"

#define WAIT_MS 60000
#define LIMIT ((uint64_t)64 << 20)

/* Loads the DLL from two folders above the test. */
static inline bool traced_load_dll(void)
{
	wchar_t path[MAX_PATH];
	DWORD len = GetModuleFileNameW(NULL, path, MAX_PATH);

	for (int folders = 0; folders < 2; folders++) {
		while (len && path[len - 1] != L'\\')
			len--;
		len -= len && !folders;
	}
	if (!len || len + wcslen(L"" TRACER_DLL_64) >= MAX_PATH)
		return false;
	wcscpy(path + len, L"" TRACER_DLL_64);
	return LoadLibraryW(path);
}

static struct child {
	PROCESS_INFORMATION info;
	HANDLE end;
	struct target target;
	uint64_t area_addr;
	struct err err; /* error of the last call */
} child; /* only one child exists at a time */

static inline bool child_find(void)
{
	return !target_open_handle(&child.target, child.info.hProcess, &child.err) &&
	       !tracee_find(&child.target, &child.area_addr, &child.err);
}

/* Starts the child with the arguments "target READY END", where READY and END are events, and with
 * further arguments. */
static inline bool child_start(const wchar_t *more)
{
	HANDLE ready = shared_event();
	wchar_t arguments[120];

	memset(&child, 0, sizeof(child));
	child.end = shared_event();
	_snwprintf(arguments, 120, L"target %llx %llx %ls", (unsigned long long)ready,
		(unsigned long long)child.end, more);
	return start_again(arguments, &child.info) &&
	       WaitForSingleObject(ready, WAIT_MS) == WAIT_OBJECT_0 && child_find();
}

/* Returns the child's exit status, or 99 if the child had to be terminated. */
static inline DWORD child_end(void)
{
	DWORD status = 99;

	child.target.ops->close(&child.target);
	SetEvent(child.end);
	if (WaitForSingleObject(child.info.hProcess, WAIT_MS) == WAIT_OBJECT_0)
		GetExitCodeProcess(child.info.hProcess, &status);
	else
		TerminateProcess(child.info.hProcess, 98);
	return status;
}

/* Switches the tracer on. rings: those of a recording, or NULL. */
static inline int child_install(const struct ring_section *rings)
{
	struct install_options options = {
		.limit_bytes = LIMIT, .flags = TRACER_FLAG_ATTACHED, .rings = rings};

	return install_tracer(
		&child.target, child.info.hProcess, child.area_addr, &options, &child.err);
}

static inline int child_remove(void)
{
	return remove_tracer(&child.target, child.info.hProcess, child.area_addr, &child.err);
}

/* Reads the child's tracer area, without the hooks. */
static inline struct tracer_area child_area(void)
{
	struct tracer_area area = {0};

	target_read(&child.target, child.area_addr, &area, offsetof(struct tracer_area, hooks));
	return area;
}

#endif
