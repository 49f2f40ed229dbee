/* Having a running process load the tracer. */
#ifndef SNAPSHOT_CONTROL_LOAD_WINDOWS_H
#define SNAPSHOT_CONTROL_LOAD_WINDOWS_H

#include <windows.h>

#include "core/err.h"

#define LOAD_RIGHTS (PROCESS_CREATE_THREAD | PROCESS_VM_OPERATION | PROCESS_VM_WRITE | SYNCHRONIZE)

/*
 * Has a new thread of the process load the DLL that lies beside this program, and waits for its end,
 * ten seconds at most: another thread may hold the loader's lock. Then that thread and the path it
 * reads are left to themselves; a DLL that is loaded later does nothing. name is for messages. Returns
 * 0: it has been tried; -ERR_INJECT, -ERR_BUSY (the time is over), -ERR_GONE, -ERR_NOMEM.
 */
int load_tracer(HANDLE process, const char *name, struct err *err);

#endif
