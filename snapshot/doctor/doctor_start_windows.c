/* The life of the doctor's child, controlled by the parent: shared memory and events, flags, a copy
 * of the program with a manifest, and the tracer. */
#include "snapshot/control/control_windows.h"
#include "snapshot/doctor/doctor_windows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "core/base/os_windows.h"
#include "snapshot/live/process.h"
#include "snapshot/target/nt_process.h"
#include "snapshot/target/peb_layout.h"

#define WAIT_MS 60000 /* timeout for each step of the child */
#define END_MS 5000
#define REMOVE_MS 20
#define TABLES_BYTES ((uint64_t)64 << 20) /* size of the tracer's tables */
#define PATH_UNITS 32768 /* maximum length of any path */

int doctor_fail(enum err_code code, const char *what, struct err *err)
{
	char text[300];

	return err_set(err, code, DOCTOR_NAME, "%s: %s", what,
		windows_error(GetLastError(), text, sizeof(text)));
}

static int make_handles(struct doctor_child *child, struct err *err)
{
	SECURITY_ATTRIBUTES inherit = {.nLength = sizeof(inherit), .bInheritHandle = TRUE};
	HANDLE self = GetCurrentProcess(), *handles = child->handles;

	handles[DOCTOR_MEMORY] = CreateFileMappingW(
		INVALID_HANDLE_VALUE, &inherit, PAGE_READWRITE, 0, sizeof(*child->shared), NULL);
	handles[DOCTOR_SAID] = CreateEventW(&inherit, FALSE, FALSE, NULL);
	handles[DOCTOR_GO] = CreateEventW(&inherit, FALSE, FALSE, NULL);
	if (!handles[DOCTOR_MEMORY] || !handles[DOCTOR_SAID] || !handles[DOCTOR_GO] ||
		!DuplicateHandle(self, self, self, &handles[DOCTOR_PARENT], SYNCHRONIZE, TRUE, 0))
		return doctor_fail(ERR_START, "no handles", err);
	child->shared = MapViewOfFile(handles[DOCTOR_MEMORY], FILE_MAP_READ | FILE_MAP_WRITE, 0, 0,
		sizeof(*child->shared));
	return child->shared ? 0 : doctor_fail(ERR_START, "no memory to share", err);
}

/* Returns the path of this program or (is_other) of the 32-bit hsnap; the caller frees it. Returns
 * NULL if the path is unknown or the file does not exist. */
static wchar_t *program_of(bool is_other)
{
	wchar_t *image;

	if (is_other)
		return program_beside(L"" HSNAP_32);
	image = xmalloc(PATH_UNITS * sizeof(*image));
	if (GetModuleFileNameW(NULL, image, PATH_UNITS))
		return image;
	free(image);
	return NULL;
}

/* Creates an environment that does not identify the user, and stores such a current folder in
 * `folder`. The caller frees the environment. */
static wchar_t *make_environment(wchar_t folder[MAX_PATH])
{
	static const wchar_t name[] = L"SystemRoot=";
	const size_t name_units = sizeof(name) / sizeof(*name) - 1;
	wchar_t *block = xcalloc(name_units + MAX_PATH + 2, sizeof(*block));

	if (!GetSystemWindowsDirectoryW(folder, MAX_PATH))
		folder[0] = 0;
	wcscpy(block, name);
	wcscpy(block + name_units, folder);
	return block;
}

/* Starts the child, suspended before its first instruction. The child inherits only the four
 * handles. */
static int spawn(struct doctor_child *child, struct err *err)
{
	wchar_t *image = child->copy ? child->copy : program_of(child->is_other);
	wchar_t command[200], folder[MAX_PATH], *environment = make_environment(folder);
	struct spawn_request request = {.image = image,
		.command = command,
		.flags = CREATE_SUSPENDED | DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP,
		.environment = environment,
		.folder = *folder ? folder : NULL,
		.handles = child->handles,
		.handle_count = DOCTOR_HANDLES};
	int rc = 0;

	_snwprintf(command, 200, L"hsnap doctor " DOCTOR_CHILD L" %llx %llx %llx %llx",
		(unsigned long long)(ULONG_PTR)child->handles[DOCTOR_MEMORY],
		(unsigned long long)(ULONG_PTR)child->handles[DOCTOR_SAID],
		(unsigned long long)(ULONG_PTR)child->handles[DOCTOR_GO],
		(unsigned long long)(ULONG_PTR)child->handles[DOCTOR_PARENT]);
	if (!image || !spawn_start(&child->spawn, &request))
		rc = doctor_fail(ERR_START, child->is_other ? HSNAP_32 : "hsnap itself", err);
	if (image != child->copy)
		free(image);
	free(environment);
	return rc;
}

/* Since Windows 10 2004, this manifest makes the process heap and the heaps of HeapCreate() segment
 * heaps (Microsoft, "Application manifests"). */
static const char segment_manifest[] =
	"<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\r\n"
	"<assembly xmlns=\"urn:schemas-microsoft-com:asm.v1\" manifestVersion=\"1.0\">\r\n"
	"<application xmlns=\"urn:schemas-microsoft-com:asm.v3\"><windowsSettings>\r\n"
	"<heapType xmlns=\"http://schemas.microsoft.com/SMI/2020/WindowsSettings\">SegmentHeap"
	"</heapType>\r\n"
	"</windowsSettings></application></assembly>\r\n";

static bool write_new(const wchar_t *path, const char *text)
{
	HANDLE file =
		CreateFileW(path, GENERIC_WRITE, 0, NULL, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
	DWORD len = (DWORD)strlen(text), put = 0;
	bool ok = file != INVALID_HANDLE_VALUE && WriteFile(file, text, len, &put, NULL) &&
		  put == len;

	if (file != INVALID_HANDLE_VALUE)
		CloseHandle(file);
	return ok;
}

static wchar_t *manifest_path(const wchar_t *image)
{
	static const wchar_t ending[] = L".manifest";
	wchar_t *path = xmalloc(wcslen(image) * sizeof(*path) + sizeof(ending));

	wcscpy(path, image);
	wcscat(path, ending);
	return path;
}

/* Removes the program's copy and the manifest. A process that has just exited may block the
 * deletion for a moment. */
static void remove_copy(struct doctor_child *child)
{
	wchar_t *manifest;

	if (!child->copy)
		return;
	manifest = manifest_path(child->copy);
	DeleteFileW(manifest);
	for (int waited = 0; !DeleteFileW(child->copy) && GetLastError() != ERROR_FILE_NOT_FOUND &&
			     waited < END_MS;
		waited += REMOVE_MS)
		Sleep(REMOVE_MS);
	free(manifest);
	free(child->copy);
	child->copy = NULL;
}

int doctor_child_copy(struct doctor_child *child, const char *folder, struct err *err)
{
	wchar_t *image = program_of(child->is_other);
	const wchar_t *base = image ? wcsrchr(image, '\\') : NULL;
	char *name = base ? wide_to_utf8(base) : NULL;
	struct buf path = {0};
	wchar_t *manifest;
	int rc = 0;

	buf_printf(&path, "%s%s", folder, name ? name : "\\");
	child->copy = name ? wide_path(path.data) : NULL;
	manifest = child->copy ? manifest_path(child->copy) : NULL;
	if (!manifest || !CopyFileW(image, child->copy, TRUE) ||
		!write_new(manifest, segment_manifest))
		rc = doctor_fail(ERR_CREATE, "a copy of its program", err);
	buf_release(&path);
	free(manifest);
	free(name);
	free(image);
	return rc;
}

static uint64_t global_flag_addr(const struct doctor_child *child)
{
	return child->target.peb + peb_layout(child->target.bits)->global_flag;
}

uint32_t doctor_child_flag(struct doctor_child *child)
{
	uint32_t flag = 0;

	return target_u32(&child->target, global_flag_addr(child), &flag) ? 0 : flag;
}

/*
 * Sets the flag that 'hsnap ust on' sets, but for one process and without registry rights. The
 * loader reads the flag in the process environment block when the first thread starts. */
static int set_ust(struct doctor_child *child, struct err *err)
{
	uint32_t flag = doctor_child_flag(child) | NT_FLAG_UST;

	return WriteProcessMemory(child->spawn.info.hProcess,
		       (LPVOID)(ULONG_PTR)global_flag_addr(child), &flag, sizeof(flag), NULL) ?
		       0 :
		       doctor_fail(ERR_START, "its flags cannot be set", err);
}

static int wait_for(struct doctor_child *child, struct err *err)
{
	HANDLE wait[] = {child->handles[DOCTOR_SAID], child->spawn.info.hProcess};
	DWORD status = 0;

	switch (WaitForMultipleObjects(2, wait, FALSE, WAIT_MS)) {
	case WAIT_OBJECT_0: return 0;
	case WAIT_OBJECT_0 + 1:
		GetExitCodeProcess(child->spawn.info.hProcess, &status);
		return err_set(err, ERR_GONE, DOCTOR_NAME, "exit status %lX", status);
	case WAIT_TIMEOUT: return err_set(err, ERR_START, DOCTOR_NAME, "no answer in time");
	default: return doctor_fail(ERR_START, "waiting for it failed", err);
	}
}

/* Makes the 32-bit hsnap attach to the child. The child has not allocated any of its blocks yet. */
static int attach_other(const struct doctor_child *child, struct err *err)
{
	wchar_t words[40];
	uint32_t status = 0;
	int rc;

	_snwprintf(words, 40, L"attach -p %lu", child->spawn.info.dwProcessId);
	rc = run_other_hsnap_for(DOCTOR_NAME, words, &status, err);
	return !rc && status ? err_set(err, ERR_INJECT, DOCTOR_NAME,
				       HSNAP_32 " has ended with status %" PRIX32, status) :
			       rc;
}

int doctor_child_start(struct doctor_child *child, enum doctor_trial trial, struct err *err)
{
	static const struct traced_options options = {.install.limit_bytes = TABLES_BYTES};
	const PROCESS_INFORMATION *info = &child->spawn.info;
	int rc = make_handles(child, err);

	rc = rc ? rc : spawn(child, err);
	rc = rc ? rc : target_open_handle(&child->target, info->hProcess, err);
	if (!rc && (trial == TRIAL_UST || trial == TRIAL_SEGMENT))
		rc = set_ust(child, err);
	if (!rc && trial == TRIAL_TRACER && !child->is_other)
		rc = traced_prepare(
			&child->traced, info->hProcess, info->hThread, DOCTOR_NAME, err);
	if (rc)
		return rc;
	ResumeThread(info->hThread);
	if (trial == TRIAL_TRACER && !child->is_other)
		rc = traced_bring_up(&child->traced, NULL, &options, err);
	rc = rc ? rc : wait_for(child, err);
	return rc || trial != TRIAL_TRACER || !child->is_other ? rc : attach_other(child, err);
}

int doctor_child_work(struct doctor_child *child, struct doctor_truth *truth, struct err *err)
{
	int rc;

	SetEvent(child->handles[DOCTOR_GO]);
	rc = wait_for(child, err);
	if (rc)
		return rc;
	memcpy(truth, child->shared, sizeof(*truth));
	if (truth->failed_bytes)
		return err_set(err, ERR_SYSTEM, DOCTOR_NAME, "no block of %" PRIu32 " bytes",
			truth->failed_bytes);
	return doctor_truth_is_sound(truth) ?
		       0 :
		       err_set(err, ERR_TARGET, DOCTOR_NAME, "its data are invalid");
}

void doctor_child_end(struct doctor_child *child)
{
	HANDLE process = child->spawn.info.hProcess;

	if (process) {
		TerminateProcess(process, 0);
		WaitForSingleObject(process, END_MS);
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
	if (process) {
		CloseHandle(child->spawn.info.hThread);
		CloseHandle(process);
	}
	if (child->spawn.job)
		CloseHandle(child->spawn.job);
	remove_copy(child);
}
