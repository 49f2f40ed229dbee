/* Handles of processes by their numbers. */
#ifndef SNAPSHOT_OPEN_WINDOWS_H
#define SNAPSHOT_OPEN_WINDOWS_H

#include <stdint.h>
#include <windows.h>

#include "core/err.h"

/* Opens a process with all of rights and, when they are to be had, more. Returns 0 and *process, which
 * the caller closes; -ERR_USAGE (hsnap itself), -ERR_NO_PROCESS, -ERR_RIGHTS. */
int process_open(uint32_t pid, DWORD rights, DWORD more, HANDLE *process, struct err *err);

#endif
