/*
 * The hsnap of the other bitness, which is next to this one. It traces programs that this hsnap
 * cannot trace. It uses this hsnap's arguments and streams, and ends when this hsnap is terminated.
 *
 * If the program itself has the other bitness, the other hsnap does all the work. A child process
 * of a traced program is different: it already exists and waits. So this hsnap inserts the ids of
 * the child before the arguments: "hsnap --follow PID TID PARENT READY LOCK UNTIL run --children
 * ...". The other hsnap takes over the child, and follows the child and all its descendants.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <windows.h>

#include "core/base/command_line.h"
#include "core/dump/kv.h"
#include "snapshot/control/control.h"
#include "snapshot/control/control_windows.h"
#include "snapshot/live/spawn_windows.h"

#define OTHER (OUR_BITS == 64 ? L"" HSNAP_32 : L"" HSNAP_64)
#define FOLLOW_UNITS 160 /* maximum length of the words that describe a child */
#define INHERITED_MAX 6 /* three streams, and three handles for a child */

/* The child that was handed over to this hsnap. pid 0: none. */
static struct handed_child handed;

static BOOL WINAPI leave_to_child(DWORD type)
{
	return type == CTRL_C_EVENT || type == CTRL_BREAK_EVENT;
}

void run_leave_interrupts(void)
{
	SetConsoleCtrlHandler(leave_to_child, TRUE);
}

bool follow_is_wanted(int64_t *until_ms)
{
	if (handed.pid)
		*until_ms = handed.until_ms;
	return handed.pid;
}

bool follow_child_handed(struct handed_child *child)
{
	*child = handed;
	return handed.pid;
}

int control_parse_follow(int argc, char **argv)
{
	uint64_t numbers[FOLLOW_WORDS - 1];

	if (argc < FOLLOW_WORDS)
		return -ERR_USAGE;
	for (int i = 1; i < FOLLOW_WORDS; i++) {
		if (kv_number(argv[i], 16, &numbers[i - 1]))
			return -ERR_USAGE;
	}
	handed = (struct handed_child){.pid = (uint32_t)numbers[0],
		.tid = (uint32_t)numbers[1],
		.parent = (HANDLE)(ULONG_PTR)numbers[2],
		.ready = (HANDLE)(ULONG_PTR)numbers[3],
		.output_lock = (HANDLE)(ULONG_PTR)numbers[4],
		.until_ms = (int64_t)numbers[5]};
	return handed.pid ? 0 : -ERR_USAGE;
}

/* Returns this process's arguments, without the words that another hsnap inserted. */
static const wchar_t *own_arguments(void)
{
	const wchar_t *rest = command_line_rest(GetCommandLineW());

	for (int i = 0; handed.pid && i < FOLLOW_WORDS; i++) {
		rest += wcsspn(rest, L" \t");
		rest = command_line_rest(rest);
	}
	return rest;
}

/* Returns the command line of the other hsnap: its path, then `front`, then `rest`. Both begin with
 * a blank or are empty. */
static wchar_t *command_with(const wchar_t *front, const wchar_t *rest)
{
	size_t units = wcslen(OTHER) + wcslen(front) + wcslen(rest) + 1;
	wchar_t *line = xmalloc(units * sizeof(*line));

	wcscpy(line, OTHER);
	wcscat(line, front);
	wcscat(line, rest);
	return line;
}

bool other_bits_can_run(const wchar_t *image)
{
	static const wchar_t name[] = L"\\ntdll.dll";
	wchar_t path[MAX_PATH];
	const UINT room = MAX_PATH - sizeof(name) / sizeof(*name);
	DWORD type;
	UINT units;

	if (OUR_BITS == 32 || !GetBinaryTypeW(image, &type) || type != SCS_32BIT_BINARY)
		return true;
	units = GetSystemWow64DirectoryW(path, room);
	if (!units || units >= room)
		return false;
	wcscpy(path + units, name);
	return GetFileAttributesW(path) != INVALID_FILE_ATTRIBUTES;
}

/* Finds the other hsnap. Returns its path, which the caller frees. Returns NULL and sets `*err` if
 * the file does not exist, is hsnap's own file, or cannot run on this system. */
static wchar_t *find_other(const char *name, struct err *err)
{
	wchar_t *image = program_beside(OTHER);
	bool is_this = image && program_is_this(image);

	if (image && !is_this && other_bits_can_run(image))
		return image;
	if (image && !is_this)
		err_set(err, ERR_START, name, "this system does not run 32-bit programs");
	else if (OUR_BITS == 32)
		err_set(err, ERR_64_BITS, name, HSNAP_64 NOT_BESIDE);
	else
		err_set(err, ERR_BITS, name,
			is_this ? "this " HSNAP_32 " is 64-bit" : HSNAP_32 NOT_BESIDE);
	free(image);
	return NULL;
}

/* Starts the other hsnap, suspended. It inherits the listed handles, or all inheritable handles if
 * none are listed. */
static int start(const char *name, wchar_t *command, HANDLE *handles, size_t handle_count,
	struct spawn *spawn, struct err *err)
{
	wchar_t *image = find_other(name, err);
	struct spawn_request request = {.image = image,
		.command = command,
		.flags = CREATE_SUSPENDED,
		.handles = handles,
		.handle_count = handle_count};
	int rc = 0;

	if (!image)
		return -(int)err->code;
	spawn_pass_streams(&request.startup);
	if (!spawn_start(spawn, &request))
		rc = spawn_fail(GetLastError(), OUR_BITS == 64 ? HSNAP_32 : HSNAP_64, err);
	free(image);
	return rc;
}

/* Waits for the other hsnap. Until that has ended, the other hsnap stays tied to this process: if
 * this process is terminated, the other hsnap ends too. */
static uint32_t finish(struct spawn *spawn)
{
	DWORD status = 2;

	WaitForSingleObject(spawn->info.hProcess, INFINITE);
	GetExitCodeProcess(spawn->info.hProcess, &status);
	CloseHandle(spawn->info.hThread);
	CloseHandle(spawn->info.hProcess);
	spawn_let_go(spawn);
	return status;
}

static int run_with(const char *name, const wchar_t *front, const wchar_t *rest,
	uint32_t *exit_status, struct err *err)
{
	wchar_t *command = command_with(front, rest);
	struct spawn spawn = {0};
	int rc = start(name, command, NULL, 0, &spawn, err);

	free(command);
	if (rc)
		return rc;
	ResumeThread(spawn.info.hThread);
	*exit_status = finish(&spawn);
	return 0;
}

int run_other_hsnap(const char *name, uint32_t *exit_status, struct err *err)
{
	if (OUR_BITS == 32)
		return err_set(err, ERR_64_BITS, name, NULL);
	run_leave_interrupts();
	return run_with(name, L"", own_arguments(), exit_status, err);
}

int run_other_hsnap_for(
	const char *name, const wchar_t *words, uint32_t *exit_status, struct err *err)
{
	return run_with(name, L" ", words, exit_status, err);
}

/* Adds an inheritable handle, unless it was added before. Before Windows 8, such a list cannot
 * contain console handles, whose two low bits are set. */
static void add_handle(HANDLE *handles, size_t *count, HANDLE handle)
{
	if (!handle || handle == INVALID_HANDLE_VALUE || ((ULONG_PTR)handle & 3) == 3)
		return;
	for (size_t i = 0; i < *count; i++) {
		if (handles[i] == handle)
			return;
	}
	handles[(*count)++] = handle;
}

static HANDLE inheritable(HANDLE handle)
{
	HANDLE copy = NULL;

	DuplicateHandle(GetCurrentProcess(), handle, GetCurrentProcess(), &copy, 0, TRUE,
		DUPLICATE_SAME_ACCESS);
	return copy;
}

static int start_to_follow(
	const struct handed_child *child, const char *name, struct spawn *spawn, struct err *err)
{
	static const DWORD streams[] = {STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE};
	const HANDLE own[] = {inheritable(child->parent), inheritable(child->ready),
		inheritable(child->output_lock)};
	HANDLE handles[INHERITED_MAX];
	wchar_t front[FOLLOW_UNITS], *command;
	size_t count = 0;
	int rc;

	for (int i = 0; i < 3; i++) {
		add_handle(handles, &count, own[i]);
		add_handle(handles, &count, GetStdHandle(streams[i]));
	}
	_snwprintf(front, FOLLOW_UNITS, L" " FOLLOW_COMMAND L" %lx %lx %llx %llx %llx %llx",
		(unsigned long)child->pid, (unsigned long)child->tid,
		(unsigned long long)(ULONG_PTR)own[0], (unsigned long long)(ULONG_PTR)own[1],
		(unsigned long long)(ULONG_PTR)own[2], (unsigned long long)child->until_ms);
	command = command_with(front, own_arguments());
	rc = own[0] && own[1] && own[2] ? start(name, command, handles, count, spawn, err) :
					  err_set(err, ERR_NOMEM, name, NULL);
	free(command);
	for (int i = 0; i < 3; i++) {
		if (own[i])
			CloseHandle(own[i]);
	}
	return rc;
}

int follow_by_other(const struct handed_child *child, const char *name, HANDLE prepared,
	uint32_t *exit_status, struct err *err)
{
	struct spawn spawn = {0};
	HANDLE wait[2];
	int rc = start_to_follow(child, name, &spawn, err);

	if (rc)
		return rc;
	ResumeThread(spawn.info.hThread);
	wait[0] = child->ready;
	wait[1] = spawn.info.hProcess;
	WaitForMultipleObjects(2, wait, FALSE, INFINITE);
	SetEvent(prepared);
	*exit_status = finish(&spawn);
	return 0;
}
