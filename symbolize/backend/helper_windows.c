/*
 * Helper processes on Windows.
 *
 * Both directions are named pipes, because only named pipes support overlapped I/O. This process's
 * ends are asynchronous; the helper's ends are synchronous. The helper inherits its own ends and no
 * other handle. A job object ends the helper when this process ends. On Windows 7, the helper
 * cannot join a job if this process is already in one. It must then exit by itself when its input
 * ends.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>

#include "core/base/os.h"
#include "core/base/os_windows.h"
#include "symbolize/backend/helper.h"
#include "symbolize/backend/llvm.h"

#define CHUNK_BYTES (64 << 10)
#define PIPE_BYTES (1 << 20)
#define NAME_UNITS 80
#define END_MS 5000 /* time to wait for a terminated process */

/* One direction, and the I/O operation pending on it. */
struct channel {
	HANDLE pipe;
	OVERLAPPED io;
	bool is_busy;
	char bytes[CHUNK_BYTES];
};

struct helper {
	HANDLE process, job;
	struct channel to, from;
};

/* ---------------------------------------------------------------- start */

static void drop(HANDLE handle)
{
	if (handle && handle != INVALID_HANDLE_VALUE)
		CloseHandle(handle);
}

/* Creates a pipe. *theirs is the helper's end, which is inheritable. Returns this process's end, or
 * NULL. */
static HANDLE pipe_new(bool is_input, HANDLE *theirs)
{
	SECURITY_ATTRIBUTES inherited = {.nLength = sizeof(inherited), .bInheritHandle = TRUE};
	wchar_t name[NAME_UNITS];
	LARGE_INTEGER now;
	HANDLE ours;

	QueryPerformanceCounter(&now);
	_snwprintf(name, NAME_UNITS, L"\\\\.\\pipe\\hsym-%lx-%llx-%d", GetCurrentProcessId(),
		(unsigned long long)now.QuadPart, is_input);
	name[NAME_UNITS - 1] = L'\0';
	ours = CreateNamedPipeW(name,
		(is_input ? PIPE_ACCESS_OUTBOUND : PIPE_ACCESS_INBOUND) | FILE_FLAG_OVERLAPPED |
			FILE_FLAG_FIRST_PIPE_INSTANCE,
		PIPE_TYPE_BYTE | PIPE_REJECT_REMOTE_CLIENTS, 1, PIPE_BYTES, PIPE_BYTES, 0, NULL);
	if (ours == INVALID_HANDLE_VALUE)
		return NULL;
	*theirs = CreateFileW(name, is_input ? GENERIC_READ : GENERIC_WRITE, 0, &inherited,
		OPEN_EXISTING, 0, NULL);
	if (*theirs != INVALID_HANDLE_VALUE)
		return ours;
	CloseHandle(ours);
	return NULL;
}

/* Returns the environment without variables that would change answers or make the helper query
 * servers. */
static wchar_t *environment(void)
{
	static const wchar_t *const without[] = {L"LLVM_SYMBOLIZER_OPTS=", L"DEBUGINFOD_URLS="};
	wchar_t *all = GetEnvironmentStringsW(), *copy, *to;
	const wchar_t *end = all;

	while (end && *end)
		end += wcslen(end) + 1;
	/* Even an empty environment ends with two NULs. */
	copy = to = xcalloc((size_t)(end - all) + 2, sizeof(*copy));
	for (const wchar_t *at = all; at && *at; at += wcslen(at) + 1) {
		if (_wcsnicmp(at, without[0], wcslen(without[0])) != 0 &&
			_wcsnicmp(at, without[1], wcslen(without[1])) != 0)
			to = wcscpy(to, at) + wcslen(at) + 1;
	}
	if (all)
		FreeEnvironmentStringsW(all);
	return copy;
}

/* Starts the program, suspended, with its three standard streams. */
static bool create(
	const char *program, const char *const *args, HANDLE streams[3], PROCESS_INFORMATION *info)
{
	STARTUPINFOEXW startup = {.StartupInfo = {.cb = sizeof(startup),
					  .dwFlags = STARTF_USESTDHANDLES,
					  .hStdInput = streams[0],
					  .hStdOutput = streams[1],
					  .hStdError = streams[2]}};
	wchar_t *image = wide_from_utf8(program), *command, *env = environment();
	struct buf text;
	SIZE_T bytes = 0;
	bool ok = false;

	buf_init(&text);
	buf_printf(&text, "\"%s\"", program);
	for (size_t i = 0; i < HELPER_ARGS_MAX && args[i]; i++)
		buf_printf(&text, " %s", args[i]);
	command = wide_from_utf8(text.data);
	InitializeProcThreadAttributeList(NULL, 1, 0, &bytes);
	startup.lpAttributeList = xmalloc(bytes);
	if (InitializeProcThreadAttributeList(startup.lpAttributeList, 1, 0, &bytes)) {
		ok = image && command &&
		     UpdateProcThreadAttribute(startup.lpAttributeList, 0,
			     PROC_THREAD_ATTRIBUTE_HANDLE_LIST, streams, 3 * sizeof(*streams), NULL,
			     NULL) &&
		     CreateProcessW(image, command, NULL, NULL, TRUE,
			     CREATE_NO_WINDOW | CREATE_SUSPENDED | CREATE_UNICODE_ENVIRONMENT |
				     EXTENDED_STARTUPINFO_PRESENT,
			     env, NULL, &startup.StartupInfo, info);
		DeleteProcThreadAttributeList(startup.lpAttributeList);
	}
	free(startup.lpAttributeList);
	buf_release(&text);
	free(image);
	free(command);
	free(env);
	return ok;
}

/* Returns a job object that ends `process` when this process ends, or NULL. */
static HANDLE tie(HANDLE process)
{
	JOBOBJECT_EXTENDED_LIMIT_INFORMATION info = {
		.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE};
	HANDLE job = CreateJobObjectW(NULL, NULL);

	if (job &&
		SetInformationJobObject(
			job, JobObjectExtendedLimitInformation, &info, sizeof(info)) &&
		AssignProcessToJobObject(job, process))
		return job;
	drop(job);
	return NULL;
}

struct helper *helper_start(const char *program, const char *const *args)
{
	SECURITY_ATTRIBUTES inherited = {.nLength = sizeof(inherited), .bInheritHandle = TRUE};
	struct helper *helper = xcalloc(1, sizeof(*helper));
	HANDLE streams[3] = {0};
	PROCESS_INFORMATION info;

	helper->to.pipe = pipe_new(true, &streams[0]);
	helper->from.pipe = pipe_new(false, &streams[1]);
	streams[2] = CreateFileW(L"NUL", GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE,
		&inherited, OPEN_EXISTING, 0, NULL);
	helper->to.io.hEvent = CreateEventW(NULL, TRUE, FALSE, NULL);
	helper->from.io.hEvent = CreateEventW(NULL, TRUE, FALSE, NULL);
	if (helper->to.pipe && helper->from.pipe && streams[2] != INVALID_HANDLE_VALUE &&
		helper->to.io.hEvent && helper->from.io.hEvent &&
		create(program, args, streams, &info)) {
		helper->process = info.hProcess;
		helper->job = tie(info.hProcess);
		ResumeThread(info.hThread);
		CloseHandle(info.hThread);
	}
	for (size_t i = 0; i < 3; i++)
		drop(streams[i]);
	if (helper->process)
		return helper;
	helper_stop(helper);
	return NULL;
}

/* ---------------------------------------------------------------- end */

static void close_channel(struct channel *channel)
{
	DWORD bytes;

	if (channel->is_busy) { /* the kernel uses the channel's buffer until the operation ends */
		CancelIo(channel->pipe);
		GetOverlappedResult(channel->pipe, &channel->io, &bytes, TRUE);
	}
	drop(channel->pipe);
	drop(channel->io.hEvent);
}

void helper_stop(struct helper *helper)
{
	if (!helper)
		return;
	if (helper->process) {
		TerminateProcess(helper->process, 1);
		WaitForSingleObject(helper->process, END_MS);
	}
	close_channel(&helper->to);
	close_channel(&helper->from);
	drop(helper->process);
	drop(helper->job);
	free(helper);
}

/* ---------------------------------------------------------------- exchange */

/* Starts writing up to CHUNK_BYTES bytes. Returns the number of bytes accepted. If the helper has
 * closed its input, accepts all bytes, because its output must still be read. */
static size_t begin_write(struct channel *to, const char *bytes, size_t len)
{
	DWORD put;

	if (to->is_busy || !len)
		return 0;
	if (len > CHUNK_BYTES)
		len = CHUNK_BYTES;
	memcpy(to->bytes, bytes, len);
	to->is_busy = WriteFile(to->pipe, to->bytes, (DWORD)len, &put, &to->io) ||
		      GetLastError() == ERROR_IO_PENDING;
	return len;
}

/* Starts reading, unless a read is already pending. Returns false at the end of the output. */
static bool begin_read(struct channel *from)
{
	DWORD got;

	if (!from->is_busy)
		from->is_busy = ReadFile(from->pipe, from->bytes, CHUNK_BYTES, &got, &from->io) ||
				GetLastError() == ERROR_IO_PENDING;
	return from->is_busy;
}

/* Completes an operation and returns the number of bytes transferred. Returns 0 if the operation is
 * still pending or has failed. Sets `*ended` to true if it has failed. */
static DWORD finish(struct channel *channel, bool *ended)
{
	DWORD bytes = 0;

	if (!channel->is_busy || WaitForSingleObject(channel->io.hEvent, 0) != WAIT_OBJECT_0)
		return 0;
	channel->is_busy = false;
	*ended = !GetOverlappedResult(channel->pipe, &channel->io, &bytes, FALSE);
	return *ended ? 0 : bytes;
}

int64_t helper_exchange(
	struct helper *helper, const char *bytes, size_t len, struct buf *answers, unsigned wait_ms)
{
	HANDLE events[] = {helper->from.io.hEvent, helper->to.io.hEvent};
	bool ended = false, is_deaf = false;
	size_t took;
	DWORD got;

	if (!begin_read(&helper->from))
		return -ERR_READ;
	took = begin_write(&helper->to, bytes, len);
	WaitForMultipleObjects(helper->to.is_busy ? 2 : 1, events, FALSE, wait_ms);
	finish(&helper->to, &is_deaf);
	got = finish(&helper->from, &ended);
	buf_add(answers, helper->from.bytes, got);
	return ended ? -ERR_READ : (int64_t)took;
}

#define FOLDER_UNITS 32768

static bool is_full_path(const char *path)
{
	char letter = (char)(path[0] | 0x20);

	return (letter >= 'a' && letter <= 'z' && path[1] == ':' &&
		       (path[2] == '\\' || path[2] == '/')) ||
	       (path[0] == '\\' && path[1] == '\\');
}

/* If `folder`+`name` is the full path of a file, appends it to `list`, including the NUL. */
static void add(struct buf *list, const char *folder, size_t len, const char *name)
{
	DWORD attributes = INVALID_FILE_ATTRIBUTES;
	wchar_t *wide;
	struct buf path;

	buf_init(&path);
	buf_add(&path, folder, len);
	buf_add_text(&path, name);
	wide = is_full_path(path.data) ? wide_from_utf8(path.data) : NULL;
	if (wide)
		attributes = GetFileAttributesW(wide);
	if (attributes != INVALID_FILE_ATTRIBUTES && !(attributes & FILE_ATTRIBUTE_DIRECTORY) &&
		!strchr(path.data, '"'))
		buf_add(list, path.data, path.len + 1);
	free(wide);
	buf_release(&path);
}

void llvm_program_list(struct buf *list)
{
	static const char name[] = "\\llvm-symbolizer.exe";
	char *named = os_env("HSYM_LLVM"), *path = named ? NULL : os_env("PATH"), *ours = NULL;
	wchar_t *wide = xmalloc(FOLDER_UNITS * sizeof(*wide));
	DWORD units = GetModuleFileNameW(NULL, wide, FOLDER_UNITS);

	if (named)
		add(list, named, strlen(named), "");
	else if (units && units < FOLDER_UNITS)
		ours = wide_to_utf8(wide);
	if (ours && strrchr(ours, '\\'))
		add(list, ours, (size_t)(strrchr(ours, '\\') - ours), name);
	for (const char *at = path; at && *at;) {
		size_t len = strcspn(at, ";");
		bool is_quoted = len >= 2 && at[0] == '"' && at[len - 1] == '"';

		add(list, at + is_quoted, is_quoted ? len - 2 : len, name);
		at += len + (at[len] == ';');
	}
	free(wide);
	free(ours);
	free(named);
	free(path);
}
