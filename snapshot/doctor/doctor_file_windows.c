#include "snapshot/doctor/doctor_file_windows.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <dbghelp.h>

#include "core/utf_windows.h"

#define NAMES_MAX 100 /* files of one process that may be there */

typedef BOOL(WINAPI *write_dump_fn)(HANDLE process, DWORD pid, HANDLE file, MINIDUMP_TYPE type,
	PMINIDUMP_EXCEPTION_INFORMATION exception, PMINIDUMP_USER_STREAM_INFORMATION streams,
	PMINIDUMP_CALLBACK_INFORMATION callback);

/* Of the system's own library, whatever lies beside hsnap.exe; NULL: there is none. */
static write_dump_fn find_write_dump(void)
{
	static const wchar_t name[] = L"\\dbghelp.dll";
	wchar_t path[MAX_PATH + sizeof(name) / sizeof(*name)];
	UINT len = GetSystemDirectoryW(path, MAX_PATH);
	HMODULE library;

	if (!len || len >= MAX_PATH)
		return NULL;
	memcpy(path + len, name, sizeof(name));
	library = LoadLibraryW(path);
	return library ? (write_dump_fn)(void *)GetProcAddress(library, "MiniDumpWriteDump") : NULL;
}

static int file_fail(enum err_code code, const char *place, struct err *err)
{
	char text[300];

	return err_set(err, code, place, "%s", windows_error(GetLastError(), text, sizeof(text)));
}

/* A new file of ours that ends with its handle; others may read it meanwhile. */
static HANDLE create(const wchar_t *path)
{
	return CreateFileW(path, GENERIC_READ | GENERIC_WRITE | DELETE,
		FILE_SHARE_READ | FILE_SHARE_DELETE, NULL, CREATE_NEW,
		FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, NULL);
}

static int create_somewhere(struct doctor_file *file, struct err *err)
{
	wchar_t folder[MAX_PATH + 1], path[MAX_PATH + 60];
	DWORD len = GetTempPathW(MAX_PATH + 1, folder);

	if (!len || len > MAX_PATH)
		return file_fail(ERR_CREATE, "a temporary file", err);
	for (unsigned i = 0; file->handle == INVALID_HANDLE_VALUE && i < NAMES_MAX; i++) {
		_snwprintf(path, sizeof(path) / sizeof(*path), L"%lshsnap-doctor-%lu-%u.dmp",
			folder, GetCurrentProcessId(), i);
		file->handle = create(path);
		if (file->handle == INVALID_HANDLE_VALUE && GetLastError() != ERROR_FILE_EXISTS)
			break;
	}
	if (file->handle == INVALID_HANDLE_VALUE)
		return file_fail(ERR_CREATE, "a temporary file", err);
	file->path = utf8_from_wide(path);
	return file->path ? 0 : err_set(err, ERR_NOMEM, "a temporary file", NULL);
}

int doctor_file_write(struct doctor_file *file, HANDLE process, DWORD pid, struct err *err)
{
	write_dump_fn write_dump = find_write_dump();
	int rc;

	*file = (struct doctor_file){.handle = INVALID_HANDLE_VALUE};
	if (!write_dump)
		return err_set(
			err, ERR_SYSTEM, "dbghelp.dll", "there is none that writes minidumps");
	rc = create_somewhere(file, err);
	if (!rc && !write_dump(process, pid, file->handle,
			   MiniDumpWithFullMemory | MiniDumpWithFullMemoryInfo, NULL, NULL, NULL))
		rc = file_fail(ERR_WRITE, file->path, err);
	return rc;
}

void doctor_file_remove(struct doctor_file *file)
{
	if (file->handle != INVALID_HANDLE_VALUE)
		CloseHandle(file->handle);
	free(file->path);
	*file = (struct doctor_file){.handle = INVALID_HANDLE_VALUE};
}
