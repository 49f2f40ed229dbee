#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot/doctor/doctor_windows.h"

#include "core/utf_windows.h"
#include "snapshot/target/nt_process.h"
#include "snapshot/target/peb_layout.h"
#include "snapshot/live/process.h"

#define WAIT_MS 60000 /* for each thing the child does */
#define END_MS 5000
#define TABLES_BYTES ((uint64_t)64 << 20) /* for the tracer */
#define NAME "the doctor's child"

static int fail(enum err_code code, const char *what, struct err *err)
{
	char text[300];

	return err_set(
		err, code, NAME, "%s: %s", what, windows_error(GetLastError(), text, sizeof(text)));
}

static int make_handles(struct doctor_child *child, struct err *err)
{
	SECURITY_ATTRIBUTES inherit = {.nLength = sizeof(inherit), .bInheritHandle = TRUE};
	HANDLE self = GetCurrentProcess();

	child->handles[DOCTOR_MEMORY] = CreateFileMappingW(
		INVALID_HANDLE_VALUE, &inherit, PAGE_READWRITE, 0, sizeof(*child->shared), NULL);
	child->handles[DOCTOR_SAID] = CreateEventW(&inherit, FALSE, FALSE, NULL);
	child->handles[DOCTOR_GO] = CreateEventW(&inherit, FALSE, FALSE, NULL);
	if (!child->handles[DOCTOR_MEMORY] || !child->handles[DOCTOR_SAID] ||
		!child->handles[DOCTOR_GO] ||
		!DuplicateHandle(
			self, self, self, &child->handles[DOCTOR_PARENT], SYNCHRONIZE, TRUE, 0))
		return fail(ERR_START, "no handles", err);
	child->shared = MapViewOfFile(child->handles[DOCTOR_MEMORY], FILE_MAP_READ | FILE_MAP_WRITE,
		0, 0, sizeof(*child->shared));
	return child->shared ? 0 : fail(ERR_START, "no memory to share", err);
}

/* This very program, suspended before its first instruction; only the handles are inherited. */
static int spawn(struct doctor_child *child, struct err *err)
{
	wchar_t *image = malloc(32768 * sizeof(*image)), command[200];
	struct spawn_request request = {.image = image,
		.command = command,
		.flags = CREATE_SUSPENDED | DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP,
		.handles = child->handles,
		.handle_count = DOCTOR_HANDLES};
	int rc = 0;

	if (!image)
		return err_set(err, ERR_NOMEM, NAME, NULL);
	_snwprintf(command, 200, L"hsnap doctor " DOCTOR_CHILD L" %llx %llx %llx %llx",
		(unsigned long long)(ULONG_PTR)child->handles[DOCTOR_MEMORY],
		(unsigned long long)(ULONG_PTR)child->handles[DOCTOR_SAID],
		(unsigned long long)(ULONG_PTR)child->handles[DOCTOR_GO],
		(unsigned long long)(ULONG_PTR)child->handles[DOCTOR_PARENT]);
	if (!GetModuleFileNameW(NULL, image, 32768) || !spawn_start(&child->spawn, &request))
		rc = fail(ERR_START, "hsnap itself", err);
	free(image);
	return rc;
}

/*
 * What 'hsnap ust on' leads to, for this one process and without a right to the registry: the loader
 * looks at the flag in the process environment block when the first thread starts.
 */
static int set_ust(struct doctor_child *child, struct err *err)
{
	uint64_t addr = child->target.peb + peb_layout(64)->global_flag;
	uint32_t flag = 0;

	if (target_u32(&child->target, addr, &flag))
		return target_err(&child->target, addr, "unreadable PEB", err);
	flag |= NT_FLAG_UST;
	if (!WriteProcessMemory(
		    child->spawn.info.hProcess, (LPVOID)(ULONG_PTR)addr, &flag, sizeof(flag), NULL))
		return fail(ERR_START, "its flags cannot be set", err);
	return 0;
}

/* Waits for an event of the child's, or its end. */
static int wait_for(struct doctor_child *child, HANDLE event, struct err *err)
{
	HANDLE wait[] = {event, child->spawn.info.hProcess};
	DWORD status = 0;

	switch (WaitForMultipleObjects(2, wait, FALSE, WAIT_MS)) {
	case WAIT_OBJECT_0: return 0;
	case WAIT_OBJECT_0 + 1:
		GetExitCodeProcess(child->spawn.info.hProcess, &status);
		return err_set(err, ERR_GONE, NAME, "exit status %lX", status);
	case WAIT_TIMEOUT: return err_set(err, ERR_START, NAME, "it is silent");
	default: return fail(ERR_START, "no waiting", err);
	}
}

static int bring_up(struct doctor_child *child, enum doctor_start how, struct err *err)
{
	static const struct traced_options options = {.install.limit_bytes = TABLES_BYTES};
	HANDLE process = child->spawn.info.hProcess, thread = child->spawn.info.hThread;
	int rc = target_open_handle(&child->target, process, err);

	if (!rc && how == DOCTOR_WITH_UST)
		rc = set_ust(child, err);
	if (!rc && how == DOCTOR_WITH_TRACER)
		rc = traced_prepare(&child->traced, process, thread, NAME, err);
	if (rc)
		return rc;
	ResumeThread(thread);
	if (how == DOCTOR_WITH_TRACER)
		rc = traced_bring_up(&child->traced, NULL, &options, err);
	return rc ? rc : wait_for(child, child->handles[DOCTOR_SAID], err);
}

int doctor_child_start(struct doctor_child *child, enum doctor_start how, struct err *err)
{
	int rc;

	*child = (struct doctor_child){0};
	rc = make_handles(child, err);
	if (!rc)
		rc = spawn(child, err);
	return rc ? rc : bring_up(child, how, err);
}

int doctor_child_make_heaps(struct doctor_child *child, struct err *err)
{
	SetEvent(child->handles[DOCTOR_GO]);
	return wait_for(child, child->handles[DOCTOR_SAID], err);
}

int doctor_child_work(struct doctor_child *child, struct doctor_truth *truth, struct err *err)
{
	int rc;

	SetEvent(child->handles[DOCTOR_GO]);
	rc = wait_for(child, child->handles[DOCTOR_SAID], err);
	if (rc)
		return rc;
	memcpy(truth, child->shared, sizeof(*truth));
	if (truth->failed_bytes)
		return err_set(err, ERR_SYSTEM, NAME, "it got no block of %" PRIu32 " bytes",
			truth->failed_bytes);
	if (!doctor_truth_is_sound(truth))
		return err_set(err, ERR_SYSTEM, NAME, "what it says makes no sense");
	return 0;
}

void doctor_child_end(struct doctor_child *child)
{
	if (child->spawn.info.hProcess) {
		TerminateProcess(child->spawn.info.hProcess, 0);
		WaitForSingleObject(child->spawn.info.hProcess, END_MS);
	}
	if (child->target.system)
		child->target.ops->close(&child->target);
	traced_release(&child->traced);
	if (child->shared)
		UnmapViewOfFile(child->shared);
	for (int i = 0; i < DOCTOR_HANDLES; i++) {
		if (child->handles[i])
			CloseHandle(child->handles[i]);
	}
	if (child->spawn.info.hThread)
		CloseHandle(child->spawn.info.hThread);
	if (child->spawn.info.hProcess)
		CloseHandle(child->spawn.info.hProcess);
	if (child->spawn.job)
		CloseHandle(child->spawn.job);
	*child = (struct doctor_child){0};
}
