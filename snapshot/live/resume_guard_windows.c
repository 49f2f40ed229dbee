/* The helper process that guards a suspension. It is hsnap's own image, and waits until hsnap is
 * done or has exited. If hsnap exits while the target is held, the helper resumes the target. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/dump/kv.h"
#include "snapshot/live/live_windows.h"
#include "snapshot/live/nt_windows.h"
#include "snapshot/live/process.h"
#include "snapshot/live/spawn_windows.h"

enum {
	HSNAP, /* hsnap's process */
	TARGET,
	ARMED, /* event: the target is held */
	DONE, /* event: the helper may exit */
	HANDLE_COUNT,
};

struct resume_guard {
	HANDLE handles[HANDLE_COUNT];
	HANDLE kept; /* HANDLE passed by the caller, or NULL */
};

static void close_all(struct resume_guard *guard)
{
	for (int i = 0; i < HANDLE_COUNT; i++) {
		if (guard->handles[i])
			CloseHandle(guard->handles[i]);
	}
	free(guard);
}

static bool open_all(struct resume_guard *guard, HANDLE process)
{
	SECURITY_ATTRIBUTES inherit = {.nLength = sizeof(inherit), .bInheritHandle = TRUE};
	HANDLE self = GetCurrentProcess();

	if (!DuplicateHandle(self, self, self, &guard->handles[HSNAP], SYNCHRONIZE, TRUE, 0) ||
		!DuplicateHandle(self, process, self, &guard->handles[TARGET], 0, TRUE,
			DUPLICATE_SAME_ACCESS))
		return false;
	guard->handles[ARMED] = CreateEventW(&inherit, TRUE, FALSE, NULL);
	guard->handles[DONE] = CreateEventW(&inherit, TRUE, FALSE, NULL);
	return guard->handles[ARMED] && guard->handles[DONE];
}

/* Starts the helper: hsnap's own image, with the handles as arguments. The helper inherits only
 * these handles. */
static bool start(struct resume_guard *guard)
{
	HANDLE inherited[HANDLE_COUNT + 1];
	wchar_t image[32768], command[200];
	struct spawn_request request = {.image = image,
		.command = command,
		.flags = DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP | CREATE_BREAKAWAY_FROM_JOB,
		.handles = inherited,
		.handle_count = HANDLE_COUNT + (guard->kept != NULL)};
	struct spawn spawn;

	memcpy(inherited, guard->handles, sizeof(guard->handles));
	inherited[HANDLE_COUNT] = guard->kept;
	_snwprintf(command, 200, L"hsnap " GUARD_COMMAND L" %llx %llx %llx %llx",
		(unsigned long long)(ULONG_PTR)guard->handles[HSNAP],
		(unsigned long long)(ULONG_PTR)guard->handles[TARGET],
		(unsigned long long)(ULONG_PTR)guard->handles[ARMED],
		(unsigned long long)(ULONG_PTR)guard->handles[DONE]);
	if (!GetModuleFileNameW(NULL, image, 32768))
		return false;
	/* Start the helper outside hsnap's job, so that it survives if the job ends all its
	 * processes. Only few jobs permit this. If the start fails, start the helper inside the
	 * job. */
	if (!spawn_start(&spawn, &request)) {
		request.flags &= ~(DWORD)CREATE_BREAKAWAY_FROM_JOB;
		if (!spawn_start(&spawn, &request))
			return false;
	}
	spawn_let_go(&spawn);
	CloseHandle(spawn.info.hThread);
	CloseHandle(spawn.info.hProcess);
	return true;
}

struct resume_guard *guard_start(void *process)
{
	return guard_start_keeping(process, NULL);
}

struct resume_guard *guard_start_keeping(void *process, void *kept)
{
	struct resume_guard *guard = calloc(1, sizeof(*guard));

	if (guard)
		guard->kept = kept;
	if (guard && (!open_all(guard, process) || !start(guard))) {
		close_all(guard);
		guard = NULL;
	}
	return guard;
}

void guard_arm(struct resume_guard *guard)
{
	if (guard)
		SetEvent(guard->handles[ARMED]);
}

void guard_disarm(struct resume_guard *guard)
{
	if (guard)
		ResetEvent(guard->handles[ARMED]);
}

void guard_stop(struct resume_guard *guard)
{
	if (!guard)
		return;
	SetEvent(guard->handles[DONE]);
	close_all(guard);
}

int guard_main(int argc, char **argv)
{
	HANDLE handles[HANDLE_COUNT], wait[2];
	uint64_t value;

	if (argc != 2 + HANDLE_COUNT)
		return 2;
	for (int i = 0; i < HANDLE_COUNT; i++) {
		if (kv_number(argv[2 + i], 16, &value))
			return 2;
		handles[i] = (HANDLE)(ULONG_PTR)value;
	}
	wait[0] = handles[DONE];
	wait[1] = handles[HSNAP];
	if (WaitForMultipleObjects(2, wait, FALSE, INFINITE) == WAIT_OBJECT_0 + 1 &&
		WaitForSingleObject(handles[ARMED], 0) == WAIT_OBJECT_0)
		NtResumeProcess(handles[TARGET]);
	return 0;
}
