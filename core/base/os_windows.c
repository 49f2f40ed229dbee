/*
 * Implements os.h on Windows, except for file names (path_windows.c) and interrupts
 * (core/io/interrupt_windows.c): arguments, environment, files, terminals and threads.
 */
#include "core/base/os_windows.h"

#define _CRT_RAND_S
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>
#include <io.h>
#include <process.h>

#include "core/base/command_line.h"
#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/base/terminal.h"

const char *os_wine_version(void)
{
	const char *(CDECL * version)(void) =
		(void *)GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "wine_get_version");

	return version ? version() : NULL;
}

unsigned windows_build(void)
{
	LONG(WINAPI * version)
	(OSVERSIONINFOW *) =
		(void *)GetProcAddress(GetModuleHandleW(L"ntdll.dll"), "RtlGetVersion");
	OSVERSIONINFOW info = {.dwOSVersionInfoSize = sizeof(info)};

	if (os_wine_version() || !version || version(&info))
		return 0;
	return info.dwBuildNumber;
}

static const char *error_text(char *text, size_t size)
{
	return windows_error(GetLastError(), text, size);
}

void windows_arguments(const wchar_t *line, int *argc, char ***argv)
{
	char *text = wide_to_utf8(line);

	if (text)
		*argv = command_line_split(text, argc);
	else
		memory_out();
	free(text);
}

void *windows_library(const wchar_t *name)
{
	BOOL(WINAPI * search)
	(DWORD) = (void *)GetProcAddress(
		GetModuleHandleW(L"kernel32.dll"), "SetDefaultDllDirectories");
	wchar_t path[MAX_PATH + 40];
	UINT len = GetSystemDirectoryW(path, MAX_PATH);

	if (!len || len >= MAX_PATH || wcslen(name) > 30)
		return NULL;
	wcscpy(path + len, L"\\");
	wcscpy(path + len + 1, name);
	if (search && search(LOAD_LIBRARY_SEARCH_SYSTEM32))
		return LoadLibraryW(path);
	/* Fallback for Windows 7 without updates. */
	return LoadLibraryExW(path, NULL, LOAD_WITH_ALTERED_SEARCH_PATH);
}

void os_start(int *argc, char ***argv)
{
	windows_arguments(GetCommandLineW(), argc, argv);
	_setmode(_fileno(stdin), _O_BINARY);
	_setmode(_fileno(stdout), _O_BINARY);
	_setmode(_fileno(stderr), _O_BINARY);
	setvbuf(stderr, NULL, _IONBF, 0); /* otherwise Wine buffers stderr if it is a file */
}

char *os_env(const char *name)
{
	wchar_t *wide_name = wide_from_utf8(name);
	wchar_t *wide = NULL;
	char *value = NULL;
	DWORD units = wide_name ? GetEnvironmentVariableW(wide_name, NULL, 0) : 0;

	/* For an empty variable, GetEnvironmentVariableW() returns 0, as it does for a failure. */
	if (units)
		wide = xcalloc(units, sizeof(*wide));
	if (wide && GetEnvironmentVariableW(wide_name, wide, units) < units)
		value = wide_to_utf8(wide);
	free(wide);
	free(wide_name);
	return value;
}

bool os_is_terminal(FILE *stream)
{
	DWORD mode;

	return GetConsoleMode((HANDLE)_get_osfhandle(_fileno(stream)), &mode);
}

int64_t os_time_ms(void)
{
	FILETIME now;

	GetSystemTimeAsFileTime(&now);
	/* FILETIME counts units of 100 ns since 1601; 11644473600 s lie between 1601 and 1970. */
	return (int64_t)(((uint64_t)now.dwHighDateTime << 32 | now.dwLowDateTime) / 10000) -
	       11644473600000;
}

uint64_t os_memory_bytes(void)
{
	MEMORYSTATUSEX memory = {.dwLength = sizeof(memory)};

	return GlobalMemoryStatusEx(&memory) ? memory.ullTotalPhys : 0;
}

void os_sleep_ms(unsigned ms)
{
	Sleep(ms);
}

/* Opens a file by its UTF-8 name. On failure, returns INVALID_HANDLE_VALUE and sets the last
 * error. */
static HANDLE file_handle(const char *path, DWORD access, DWORD how)
{
	wchar_t *wide = wide_path(path);
	HANDLE handle = INVALID_HANDLE_VALUE;
	DWORD code = ERROR_INVALID_NAME;

	if (wide) {
		handle = CreateFileW(wide, access,
			FILE_SHARE_READ | FILE_SHARE_DELETE |
				(access & GENERIC_READ ? FILE_SHARE_WRITE : 0),
			NULL, how, FILE_ATTRIBUTE_NORMAL, NULL);
		code = GetLastError();
	}
	free(wide);
	SetLastError(code);
	return handle;
}

static DWORD path_attributes(const char *path)
{
	wchar_t *wide = wide_path(path);
	DWORD attributes = wide ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;

	free(wide);
	return attributes;
}

int os_open(struct os_file *file, const char *path, struct err *err)
{
	char text[300];
	DWORD attributes;
	HANDLE handle;

	if (!strcmp(path, "-")) {
		file->handle = (intptr_t)GetStdHandle(STD_INPUT_HANDLE);
		return 0;
	}
	attributes = path_attributes(path);
	if (attributes != INVALID_FILE_ATTRIBUTES && attributes & FILE_ATTRIBUTE_DIRECTORY)
		return err_set(err, ERR_OPEN, path, "is a folder");
	handle = file_handle(path, GENERIC_READ, OPEN_EXISTING);
	if (handle == INVALID_HANDLE_VALUE)
		return err_set(err, ERR_OPEN, path, "%s", error_text(text, sizeof(text)));
	file->handle = (intptr_t)handle;
	return 0;
}

int64_t os_read(struct os_file *file, void *bytes, size_t len, const char *path, struct err *err)
{
	DWORD part = len > 1u << 30 ? 1u << 30 : (DWORD)len, got = 0;
	char text[300];

	if (ReadFile((HANDLE)file->handle, bytes, part, &got, NULL))
		return got;
	if (GetLastError() == ERROR_BROKEN_PIPE || GetLastError() == ERROR_HANDLE_EOF)
		return 0;
	return err_set(err, ERR_READ, path, "%s", error_text(text, sizeof(text)));
}

int os_read_at(struct os_file *file, uint64_t offset, void *bytes, size_t len)
{
	char *to = bytes;

	while (len) {
		DWORD part = len > 1u << 30 ? 1u << 30 : (DWORD)len, got = 0;
		OVERLAPPED at = {.Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32)};

		if (!ReadFile((HANDLE)file->handle, to, part, &got, &at) || !got)
			return -ERR_READ;
		to += got;
		offset += got;
		len -= got;
	}
	return 0;
}

uint64_t os_size(struct os_file *file)
{
	LARGE_INTEGER size;

	return GetFileSizeEx((HANDLE)file->handle, &size) ? (uint64_t)size.QuadPart : 0;
}

void os_close(struct os_file *file)
{
	if ((HANDLE)file->handle != GetStdHandle(STD_INPUT_HANDLE))
		CloseHandle((HANDLE)file->handle);
}

/* Maps the whole file. On failure, returns NULL and sets the last error. */
static void *map_whole(HANDLE file)
{
	HANDLE mapping = CreateFileMappingW(file, NULL, PAGE_READONLY, 0, 0, NULL);
	void *bytes = mapping ? MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0) : NULL;
	DWORD code = GetLastError();

	if (mapping)
		CloseHandle(mapping); /* the view keeps the mapping open */
	SetLastError(code);
	return bytes;
}

int os_map(struct os_map *map, const char *path, struct err *err)
{
	struct os_file file = {.handle = -1};
	LARGE_INTEGER size;
	char text[300];
	void *bytes;
	int rc = os_open(&file, path, err);

	if (rc)
		return rc;
	if (GetFileType((HANDLE)file.handle) != FILE_TYPE_DISK ||
		!GetFileSizeEx((HANDLE)file.handle, &size)) {
		rc = err_set(err, ERR_NOT_FILE, path, NULL);
	} else if (!size.QuadPart) {
		rc = err_set(err, ERR_EMPTY, path, NULL);
	} else {
		bytes = map_whole((HANDLE)file.handle);
		if (bytes)
			*map = (struct os_map){bytes, (size_t)size.QuadPart};
		else
			rc = err_set(err, ERR_READ, path, "%s", error_text(text, sizeof(text)));
	}
	os_close(&file);
	return rc;
}

/* The guarded map; len is 0 if no map is guarded. */
static struct {
	struct os_map map;
	char line[OS_LINE_BYTES];
	DWORD line_len;
	void (*handler)(void);
	bool is_watched;
} guarded;

/* Handles a failed access to the guarded map. The whole map is readable memory, so an access fails
 * only if Windows cannot read the file. */
static LONG CALLBACK on_exception(EXCEPTION_POINTERS *exception)
{
	const EXCEPTION_RECORD *record = exception->ExceptionRecord;
	uintptr_t start = (uintptr_t)guarded.map.bytes, addr;
	DWORD put;

	if ((record->ExceptionCode != (DWORD)EXCEPTION_IN_PAGE_ERROR &&
		    record->ExceptionCode != (DWORD)EXCEPTION_ACCESS_VIOLATION) ||
		record->NumberParameters < 2)
		return EXCEPTION_CONTINUE_SEARCH;
	addr = record->ExceptionInformation[1];
	if (!guarded.map.len || addr < start || addr - start >= guarded.map.len)
		return EXCEPTION_CONTINUE_SEARCH;
	guarded.handler();
	WriteFile(GetStdHandle(STD_ERROR_HANDLE), guarded.line, guarded.line_len, &put, NULL);
	TerminateProcess(GetCurrentProcess(), 2);
	return EXCEPTION_CONTINUE_SEARCH;
}

void os_guard_map(const struct os_map *map, const char *line, void (*handler)(void))
{
	guarded.line_len = (DWORD)strnlen(line, sizeof(guarded.line));
	memcpy(guarded.line, line, guarded.line_len);
	guarded.handler = handler;
	guarded.map = *map;
	if (!guarded.is_watched)
		guarded.is_watched = AddVectoredExceptionHandler(1, on_exception) != NULL;
}

void os_unmap(struct os_map *map)
{
	if (guarded.map.bytes == map->bytes)
		guarded.map = (struct os_map){0};
	UnmapViewOfFile(map->bytes);
	*map = (struct os_map){0};
}

bool os_exists(const char *path)
{
	return path_attributes(path) != INVALID_FILE_ATTRIBUTES;
}

bool os_is_special(const char *path)
{
	HANDLE handle;
	DWORD type;

	if (path_attributes(path) == INVALID_FILE_ATTRIBUTES)
		return false;
	handle = file_handle(path, 0, OPEN_EXISTING);
	if (handle == INVALID_HANDLE_VALUE)
		return false;
	type = GetFileType(handle);
	CloseHandle(handle);
	return type != FILE_TYPE_DISK && type != FILE_TYPE_UNKNOWN;
}

bool os_same_file(const char *a, const char *b)
{
	BY_HANDLE_FILE_INFORMATION x, y;
	HANDLE first = file_handle(a, 0, OPEN_EXISTING), second = file_handle(b, 0, OPEN_EXISTING);
	bool same = first != INVALID_HANDLE_VALUE && second != INVALID_HANDLE_VALUE &&
		    GetFileInformationByHandle(first, &x) &&
		    GetFileInformationByHandle(second, &y) &&
		    x.dwVolumeSerialNumber == y.dwVolumeSerialNumber &&
		    x.nFileIndexHigh == y.nFileIndexHigh && x.nFileIndexLow == y.nFileIndexLow;

	if (first != INVALID_HANDLE_VALUE)
		CloseHandle(first);
	if (second != INVALID_HANDLE_VALUE)
		CloseHandle(second);
	return same;
}

char *os_final_path(const char *path)
{
	return xstrdup(path);
}

/* Does nothing: on Windows a new file inherits the rights of its folder. */
void os_copy_rights(struct os_file *file, const char *path)
{
	(void)file;
	(void)path;
}

int os_create(struct os_file *file, const char *path, bool fresh, struct err *err)
{
	char text[300];
	HANDLE handle =
		file_handle(path, GENERIC_WRITE | DELETE, fresh ? CREATE_NEW : OPEN_EXISTING);

	if (handle == INVALID_HANDLE_VALUE && !fresh)
		handle = file_handle(path, GENERIC_WRITE, OPEN_EXISTING);
	if (handle == INVALID_HANDLE_VALUE)
		return err_set(err, ERR_CREATE, path, "%s", error_text(text, sizeof(text)));
	file->handle = (intptr_t)handle;
	file->is_temporary = fresh && path_set_temporary(handle, true);
	return 0;
}

void os_stdout(struct os_file *file)
{
	file->handle = (intptr_t)GetStdHandle(STD_OUTPUT_HANDLE);
}

int os_write(struct os_file *file, const void *bytes, size_t len, const char *path, struct err *err)
{
	const char *from = bytes;
	char text[300];

	if (console_is((HANDLE)file->handle))
		return console_write((HANDLE)file->handle, from, len) ?
			       0 :
			       err_set(err, ERR_WRITE, path, "%s", error_text(text, sizeof(text)));
	while (len) {
		DWORD part = len > 1u << 20 ? 1u << 20 : (DWORD)len, put = 0;

		if (!WriteFile((HANDLE)file->handle, from, part, &put, NULL))
			return err_set(err, ERR_WRITE, path, "%s", error_text(text, sizeof(text)));
		if (!put)
			return err_set(err, ERR_WRITE, path, "not enough disk space");
		from += put;
		len -= put;
	}
	return 0;
}

int os_make_private_folder(const char *path)
{
	wchar_t *wide = wide_path(path);
	bool is_made = wide && CreateDirectoryW(wide, NULL);

	free(wide);
	return is_made ? 0 : -1;
}

void os_remove_folder(const char *path)
{
	wchar_t *wide = wide_path(path);

	if (wide)
		RemoveDirectoryW(wide);
	free(wide);
}

void os_remove(const char *path)
{
	wchar_t *wide = wide_path(path);

	if (wide)
		DeleteFileW(wide);
	free(wide);
}

void os_random(void *bytes, size_t len)
{
	unsigned char *to = bytes;
	unsigned word = 0;

	for (size_t i = 0; i < len; i++) {
		if (i % sizeof(word) == 0 && rand_s(&word))
			word = 0;
		to[i] = (unsigned char)(word >> 8 * (i % sizeof(word)));
	}
}

unsigned long os_pid(void)
{
	return GetCurrentProcessId();
}

unsigned os_terminal_columns(FILE *stream)
{
	CONSOLE_SCREEN_BUFFER_INFO info;

	if (!GetConsoleScreenBufferInfo((HANDLE)_get_osfhandle(_fileno(stream)), &info) ||
		info.srWindow.Right < info.srWindow.Left)
		return 0;
	return (unsigned)(info.srWindow.Right - info.srWindow.Left) + 1;
}

bool terminal_shows_colour(void)
{
	HANDLE console = (HANDLE)_get_osfhandle(_fileno(stdout));
	DWORD mode;

	return GetConsoleMode(console, &mode) &&
	       SetConsoleMode(console, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
}

bool terminal_is_utf8(void)
{
	return os_is_terminal(stdout); /* console output is UTF-16 */
}

/* Does nothing: large pages need a privilege that few users have. */
void os_large_pages(void *start, size_t bytes)
{
	(void)start;
	(void)bytes;
}

#define SPIN_COUNT 1000

struct thread_lock {
	CRITICAL_SECTION section;
};

struct job {
	void (*work)(void *ctx, unsigned number);
	void *ctx;
	unsigned number;
};

unsigned thread_cores(void)
{
	SYSTEM_INFO info;

	GetSystemInfo(&info);
	return info.dwNumberOfProcessors ? info.dwNumberOfProcessors : 1;
}

static unsigned __stdcall start(void *job_of)
{
	struct job *job = job_of;

	job->work(job->ctx, job->number);
	return 0;
}

void thread_run(unsigned count, void (*work)(void *ctx, unsigned number), void *ctx)
{
	struct job *jobs = xcalloc(count, sizeof(*jobs));
	HANDLE *threads = xcalloc(count, sizeof(*threads));
	unsigned started = 1;

	for (; started < count; started++) {
		jobs[started] = (struct job){work, ctx, started};
		threads[started] = (HANDLE)_beginthreadex(NULL, 0, start, &jobs[started], 0, NULL);
		if (!threads[started])
			break;
	}
	work(ctx, 0);
	while (--started) {
		WaitForSingleObject(threads[started], INFINITE);
		CloseHandle(threads[started]);
	}
	free(threads);
	free(jobs);
}

struct thread_lock *thread_lock_new(void)
{
	struct thread_lock *lock = xmalloc(sizeof(*lock));

	/* Spin first: the lock is usually released sooner than a thread can be put to sleep. */
	if (!InitializeCriticalSectionAndSpinCount(&lock->section, SPIN_COUNT))
		memory_out();
	return lock;
}

void thread_lock_free(struct thread_lock *lock)
{
	if (lock)
		DeleteCriticalSection(&lock->section);
	free(lock);
}

void thread_lock_acquire(struct thread_lock *lock)
{
	EnterCriticalSection(&lock->section);
}

void thread_lock_leave(struct thread_lock *lock)
{
	LeaveCriticalSection(&lock->section);
}
