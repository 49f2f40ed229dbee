#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>

#include "core/base/os.h"
#include "core/base/os_windows.h"
#include "symbolize/backend/helper.h"
#include "symbolize/backend/llvm.h"

/*
 * Both directions are named pipes, for only these can be waited for together: our ends do their work
 * while we wait, its ends are plain files. It inherits its ends and no other handle of ours. A job ends
 * it when we end; where it cannot be put into one (Windows 7, when we are in one ourselves), the end of
 * its input has to do.
 */

#define CHUNK_BYTES (64 << 10)
#define PIPE_BYTES (1 << 20)
#define NAME_UNITS 80
#define END_MS 5000 /* for a process that was ended to be gone */

/* One direction, and what is under way there. */
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

int64_t helper_clock_ms(void)
{
	return (int64_t)GetTickCount64();
}

/* ---------------------------------------------------------------- beginning */

static void drop(HANDLE handle)
{
	if (handle && handle != INVALID_HANDLE_VALUE)
		CloseHandle(handle);
}

/* A pipe whose end *theirs a child inherits; NULL: there is none. */
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

/* The environment without what would change its answers or send it to servers; NULL: out of memory. */
static wchar_t *environment(void)
{
	static const wchar_t *const without[] = {L"LLVM_SYMBOLIZER_OPTS=", L"DEBUGINFOD_URLS="};
	wchar_t *all = GetEnvironmentStringsW(), *copy, *to;
	const wchar_t *end = all;

	while (end && *end)
		end += wcslen(end) + 1;
	copy = to = all ? malloc((size_t)(end - all + 2) * sizeof(*copy)) : NULL;
	for (const wchar_t *at = all; copy && *at; at += wcslen(at) + 1) {
		if (_wcsnicmp(at, without[0], wcslen(without[0])) != 0 &&
			_wcsnicmp(at, without[1], wcslen(without[1])) != 0)
			to = wcscpy(to, at) + wcslen(at) + 1;
	}
	if (copy)
		to[0] = to[1] = L'\0'; /* an empty one ends with two, too */
	if (all)
		FreeEnvironmentStringsW(all);
	return copy;
}

/* The program, in quotes, and its arguments; NULL: out of memory. */
static wchar_t *command_line(const char *program, const char *const *args)
{
	struct buf text;
	wchar_t *wide = NULL;
	int rc;

	buf_init(&text);
	rc = buf_printf(&text, "\"%s\"", program);
	for (size_t i = 0; !rc && i < HELPER_ARGS_MAX && args[i]; i++)
		rc = buf_printf(&text, " %s", args[i]);
	if (!rc)
		wide = wide_from_utf8(text.data);
	buf_release(&text);
	return wide;
}

static LPPROC_THREAD_ATTRIBUTE_LIST inherit_only(HANDLE *handles, size_t count)
{
	LPPROC_THREAD_ATTRIBUTE_LIST list;
	SIZE_T bytes = 0;

	InitializeProcThreadAttributeList(NULL, 1, 0, &bytes);
	list = malloc(bytes);
	if (!list || !InitializeProcThreadAttributeList(list, 1, 0, &bytes)) {
		free(list);
		return NULL;
	}
	if (UpdateProcThreadAttribute(list, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, handles,
		    count * sizeof(*handles), NULL, NULL))
		return list;
	DeleteProcThreadAttributeList(list);
	free(list);
	return NULL;
}

/* Starts it, suspended, with its three streams. */
static bool create(
	const char *program, const char *const *args, HANDLE streams[3], PROCESS_INFORMATION *info)
{
	STARTUPINFOEXW startup = {.StartupInfo.cb = sizeof(startup)};
	wchar_t *image = wide_from_utf8(program), *command = command_line(program, args),
		*env = environment();
	BOOL ok = FALSE;

	startup.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
	startup.StartupInfo.hStdInput = streams[0];
	startup.StartupInfo.hStdOutput = streams[1];
	startup.StartupInfo.hStdError = streams[2];
	startup.lpAttributeList = inherit_only(streams, 3);
	if (image && command && env && startup.lpAttributeList)
		ok = CreateProcessW(image, command, NULL, NULL, TRUE,
			CREATE_NO_WINDOW | CREATE_SUSPENDED | CREATE_UNICODE_ENVIRONMENT |
				EXTENDED_STARTUPINFO_PRESENT,
			env, NULL, &startup.StartupInfo, info);
	if (startup.lpAttributeList)
		DeleteProcThreadAttributeList(startup.lpAttributeList);
	free(startup.lpAttributeList);
	free(image);
	free(command);
	free(env);
	return ok;
}

/* A job that ends the process when we end, or NULL. */
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

static bool open_channels(struct helper *helper, HANDLE streams[3])
{
	SECURITY_ATTRIBUTES inherited = {.nLength = sizeof(inherited), .bInheritHandle = TRUE};

	helper->to.pipe = pipe_new(true, &streams[0]);
	helper->from.pipe = pipe_new(false, &streams[1]);
	streams[2] = CreateFileW(L"NUL", GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE,
		&inherited, OPEN_EXISTING, 0, NULL);
	helper->to.io.hEvent = CreateEventW(NULL, TRUE, FALSE, NULL);
	helper->from.io.hEvent = CreateEventW(NULL, TRUE, FALSE, NULL);
	return helper->to.pipe && helper->from.pipe && streams[2] != INVALID_HANDLE_VALUE &&
	       helper->to.io.hEvent && helper->from.io.hEvent;
}

struct helper *helper_start(const char *program, const char *const *args)
{
	struct helper *helper = calloc(1, sizeof(*helper));
	HANDLE streams[3] = {0};
	PROCESS_INFORMATION info;

	if (!helper)
		return NULL;
	if (open_channels(helper, streams) && create(program, args, streams, &info)) {
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

	if (channel->is_busy) { /* its memory is in use until it says otherwise */
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

/* ---------------------------------------------------------------- talking */

/* Begins to write what there is room for: how many bytes. A pipe that nobody reads any more takes
 * all; what it has said is still to be read. */
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

/* false: nothing will come any more. */
static bool begin_read(struct channel *from)
{
	DWORD got;

	if (!from->is_busy)
		from->is_busy = ReadFile(from->pipe, from->bytes, CHUNK_BYTES, &got, &from->io) ||
				GetLastError() == ERROR_IO_PENDING;
	return from->is_busy;
}

/* How many bytes were moved, once it is done; 0: it is not, or in vain, and then *ended. */
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
	if (got && buf_add(answers, helper->from.bytes, got))
		return -ERR_NOMEM;
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

/* Adds a path with its NUL to the list when it is that of a file. */
static int add(struct buf *list, const char *path)
{
	wchar_t *wide = wide_from_utf8(path);
	DWORD attributes = wide ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;

	free(wide);
	if (attributes == INVALID_FILE_ATTRIBUTES || attributes & FILE_ATTRIBUTE_DIRECTORY ||
		strchr(path, '"'))
		return 0;
	return buf_add(list, path, strlen(path) + 1);
}

static int add_folder(struct buf *list, const char *folder, size_t len)
{
	struct buf path;
	int rc;

	buf_init(&path);
	rc = buf_add(&path, folder, len);
	if (!rc)
		rc = buf_add_text(&path, "\\llvm-symbolizer.exe");
	if (!rc && is_full_path(path.data))
		rc = add(list, path.data);
	buf_release(&path);
	return rc;
}

static int add_ours(struct buf *list)
{
	wchar_t *wide = malloc(FOLDER_UNITS * sizeof(*wide));
	DWORD units = wide ? GetModuleFileNameW(NULL, wide, FOLDER_UNITS) : 0;
	char *path = units && units < FOLDER_UNITS ? wide_to_utf8(wide) : NULL;
	const char *name = path ? strrchr(path, '\\') : NULL;
	int rc = name ? add_folder(list, path, (size_t)(name - path)) : 0;

	free(wide);
	free(path);
	return rc;
}

/* PATH's folders, which may be in quotes. */
static int add_path(struct buf *list, const char *path)
{
	int rc = 0;

	while (!rc && *path) {
		size_t len = strcspn(path, ";");
		bool is_quoted = len >= 2 && path[0] == '"' && path[len - 1] == '"';

		rc = add_folder(list, path + is_quoted, is_quoted ? len - 2 : len);
		path += len + (path[len] == ';');
	}
	return rc;
}

int llvm_program_list(struct buf *list)
{
	char *named = os_env("HSYM_LLVM"), *path = named ? NULL : os_env("PATH");
	int rc;

	if (named)
		rc = is_full_path(named) ? add(list, named) : 0;
	else
		rc = add_ours(list);
	if (!rc && path)
		rc = add_path(list, path);
	free(named);
	free(path);
	return rc;
}
