/*
 * Staged files on Windows, in a private temporary folder. A stub names its PDB by full path. The
 * stub's folder contains no PDBs, so none can be found beside the stub. However this process ends,
 * the system deletes each file when the process's handle is closed.
 */
#include "symbolize/backend/llvm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "core/base/os.h"
#include "core/base/os_windows.h"

#define NAME_UNITS 100

struct staging {
	wchar_t *folder; /* NULL: not created yet */
	HANDLE *held; /* handle of each staged file, or NULL; indexed by number of the subject */
	size_t count, cap;
};

struct staging *staging_new(void)
{
	return xcalloc(1, sizeof(struct staging));
}

void staging_free(struct staging *staging)
{
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

/* Creates the folder, unless it was already created. */
static bool make_folder(struct staging *staging)
{
	DWORD units = GetTempPathW(0, NULL);
	LARGE_INTEGER now;
	wchar_t *folder;

	if (staging->folder)
		return true;
	folder = xmalloc((units + NAME_UNITS) * sizeof(*folder));
	QueryPerformanceCounter(&now);
	units = GetTempPathW(units, folder);
	_snwprintf(folder + units, NAME_UNITS, L"hsym-%lx-%llx", GetCurrentProcessId(),
		(unsigned long long)now.QuadPart);
	if (units && CreateDirectoryW(folder, NULL)) /* fails if the folder exists */
		staging->folder = folder;
	else
		free(folder);
	return staging->folder != NULL;
}

static bool write_stub(const wchar_t *path, const struct module_files *files)
{
	HANDLE file =
		CreateFileW(path, GENERIC_WRITE, 0, NULL, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, NULL);
	char *pdb = os_full_path(files->pdb);
	struct buf stub;
	DWORD put = 0;
	bool ok;

	buf_init(&stub);
	if (pdb)
		staging_stub(&stub, files, pdb);
	ok = file != INVALID_HANDLE_VALUE && stub.len &&
	     WriteFile(file, stub.data, (DWORD)stub.len, &put, NULL) && put == stub.len;
	if (file != INVALID_HANDLE_VALUE)
		CloseHandle(file);
	buf_release(&stub);
	free(pdb);
	return ok;
}

static bool copy_file(const wchar_t *path, const char *from)
{
	wchar_t *wide = wide_path(from);
	bool ok = wide && CopyFileW(wide, path, TRUE);

	/* A read-only file could not be deleted. */
	if (ok)
		SetFileAttributesW(path, FILE_ATTRIBUTE_NORMAL);
	free(wide);
	return ok;
}

/* Opens the file in such a way that it is deleted when the handle is closed. On failure, deletes
 * the file and returns NULL. */
static HANDLE hold(const wchar_t *path)
{
	HANDLE held =
		CreateFileW(path, DELETE, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
			NULL, OPEN_EXISTING, FILE_FLAG_DELETE_ON_CLOSE, NULL);

	if (held != INVALID_HANDLE_VALUE)
		return held;
	DeleteFileW(path);
	return NULL;
}

bool staging_file(struct staging *staging, uint32_t number, const struct module_files *files,
	struct buf *name)
{
	HANDLE *held;
	size_t units;
	wchar_t *path;
	char *text;

	if (!make_folder(staging))
		return false;
	while (staging->count <= number) {
		array_grow((void **)&staging->held, &staging->cap, staging->count,
			sizeof(*staging->held));
		staging->held[staging->count++] = NULL;
	}
	held = &staging->held[number];
	units = wcslen(staging->folder) + NAME_UNITS;
	path = xmalloc(units * sizeof(*path));
	_snwprintf(path, units, L"%ls\\%lu.exe", staging->folder, (unsigned long)number);
	if (!*held) {
		if (files->pdb ? write_stub(path, files) : copy_file(path, files->image))
			*held = hold(path);
		else
			DeleteFileW(path);
	}
	text = wide_to_utf8(path);
	if (text)
		buf_add_text(name, text);
	free(text);
	free(path);
	return *held && name->len;
}
