/*
 * A minidump of the child with all its memory, for a moment: the system's own dbghelp.dll writes it
 * into the folder for temporary files, and it is gone when its handle is, however hsnap ends.
 */
#ifndef SNAPSHOT_DOCTOR_DOCTOR_FILE_WINDOWS_H
#define SNAPSHOT_DOCTOR_DOCTOR_FILE_WINDOWS_H

#include <windows.h>

#include "core/err.h"

struct doctor_file {
	HANDLE handle;
	char *path; /* UTF-8, owned */
};

/* 0; -ERR_SYSTEM (there is no dbghelp.dll that can), -ERR_CREATE, -ERR_WRITE, -ERR_NOMEM.
 * doctor_file_remove() in all cases. */
int doctor_file_write(struct doctor_file *file, HANDLE process, DWORD pid, struct err *err);
void doctor_file_remove(struct doctor_file *file);

#endif
