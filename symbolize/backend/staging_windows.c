#include "symbolize/backend/llvm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "core/base/os_windows.h"

/*
 * A folder of our own among the temporary ones. A stub lies there alone, so that nothing can lie
 * beside it, and names the PDB by its full path. The system deletes each file when the handle that
 * we hold is closed, in whatever way this process ends.
 */

#define NAME_UNITS 100

struct staging {
	wchar_t *folder; /* NULL: not made yet */
	HANDLE *held; /* by number of the subject; NULL: there is none */
	size_t count, cap;
};

struct staging *staging_new(void)
{
	return calloc(1, sizeof(struct staging));
}

void staging_free(struct staging *staging)
{
	if (!staging)
		return;
	for (size_t i = 0; i < staging->count; i++) {
		if (staging->held[i])
			CloseHandle(staging->held[i]);
	}
	if (staging->folder)
		RemoveDirectoryW(staging->folder);
	free(staging->folder);
	free(staging->held);
	free(staging);
}

/* Makes the folder when there is none: 0, -ERR_CREATE or -ERR_NOMEM. */
static int make_folder(struct staging *staging)
{
	DWORD units = GetTempPathW(0, NULL);
	LARGE_INTEGER now;
	wchar_t *folder;

	if (staging->folder)
		return 0;
	folder = malloc((units + NAME_UNITS) * sizeof(*folder));
	if (!folder)
		return -ERR_NOMEM;
	QueryPerformanceCounter(&now);
	units = GetTempPathW(units, folder);
	_snwprintf(folder + units, NAME_UNITS, L"hsym-%lx-%llx", GetCurrentProcessId(),
		(unsigned long long)now.QuadPart);
	if (units && CreateDirectoryW(folder, NULL)) { /* not one that was there */
		staging->folder = folder;
		return 0;
	}
	free(folder);
	return -ERR_CREATE;
}

/* Where the file of a subject is; NULL: out of memory. */
static wchar_t *place_of(const struct staging *staging, uint32_t number)
{
	size_t units = wcslen(staging->folder) + NAME_UNITS;
	wchar_t *path = malloc(units * sizeof(*path));

	if (path)
		_snwprintf(path, units, L"%ls\\%lu.exe", staging->folder, (unsigned long)number);
	return path;
}

/* The file lasts as long as this. */
static HANDLE hold(const wchar_t *path)
{
	HANDLE held =
		CreateFileW(path, DELETE, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
			NULL, OPEN_EXISTING, FILE_FLAG_DELETE_ON_CLOSE, NULL);

	if (held == INVALID_HANDLE_VALUE) {
		DeleteFileW(path);
		held = NULL;
	}
	return held;
}

static int grow(struct staging *staging, uint32_t number)
{
	while (staging->count <= number) {
		if (array_grow((void **)&staging->held, &staging->cap, staging->count,
			    sizeof(*staging->held)))
			return -ERR_NOMEM;
		staging->held[staging->count++] = NULL;
	}
	return 0;
}

static BOOL write_stub(const wchar_t *path, const struct buf *stub)
{
	HANDLE file =
		CreateFileW(path, GENERIC_WRITE, 0, NULL, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
	DWORD put = 0;
	BOOL ok;

	if (file == INVALID_HANDLE_VALUE)
		return FALSE;
	ok = WriteFile(file, stub->data, (DWORD)stub->len, &put, NULL) && put == stub->len;
	CloseHandle(file);
	return ok;
}

static BOOL copy_file(const wchar_t *path, const char *from)
{
	wchar_t *wide = wide_path(from);
	BOOL ok = wide && CopyFileW(wide, path, TRUE);

	if (ok)
		SetFileAttributesW(path, FILE_ATTRIBUTE_NORMAL); /* so that it can be deleted */
	free(wide);
	return ok;
}

/* Puts a stub, or a copy of a file, in the place of a subject, and says where that is. */
static int stage(struct staging *staging, uint32_t number, const struct buf *stub, const char *from,
	struct buf *name)
{
	wchar_t *path;
	char *text;
	int rc = grow(staging, number);

	if (!rc)
		rc = make_folder(staging);
	if (rc)
		return rc;
	path = place_of(staging, number);
	text = path ? wide_to_utf8(path) : NULL;
	if (!staging->held[number] && text) {
		if (stub ? write_stub(path, stub) : copy_file(path, from))
			staging->held[number] = hold(path);
		else
			DeleteFileW(path);
	}
	buf_clear(name);
	rc = text ? buf_add_text(name, text) : -ERR_NOMEM;
	if (!rc && !staging->held[number])
		rc = -ERR_CREATE;
	free(path);
	free(text);
	return rc;
}

int staging_file(struct staging *staging, uint32_t number, const char *path, struct buf *name)
{
	return stage(staging, number, NULL, path, name);
}

/* NULL: out of memory. */
static char *full_path(const char *path)
{
	wchar_t *wide = wide_from_utf8(path), *full = NULL;
	DWORD units = wide ? GetFullPathNameW(wide, 0, NULL, NULL) : 0;
	char *text = NULL;

	if (units)
		full = malloc(units * sizeof(*full));
	if (full && GetFullPathNameW(wide, units, full, NULL) < units)
		text = wide_to_utf8(full);
	free(wide);
	free(full);
	return text;
}

int staging_pdb(struct staging *staging, uint32_t number, const struct module_files *files,
	struct buf *name)
{
	char *pdb = full_path(files->pdb);
	struct buf stub;
	int rc;

	buf_init(&stub);
	rc = pdb ? staging_stub(&stub, files, pdb) : -ERR_NOMEM;
	if (!rc)
		rc = stage(staging, number, &stub, NULL, name);
	buf_release(&stub);
	free(pdb);
	return rc;
}
