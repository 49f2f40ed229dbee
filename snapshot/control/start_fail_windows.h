/* Why the system does not start a program, in words. */
#ifndef SNAPSHOT_START_FAIL_WINDOWS_H
#define SNAPSHOT_START_FAIL_WINDOWS_H

#include <windows.h>

#include "core/err.h"

/* Missing in older headers of MinGW; the number is that of Microsoft's "System Error Codes". */
#ifndef ERROR_ELEVATION_REQUIRED
#define ERROR_ELEVATION_REQUIRED 740L
#endif

/* Sets err for the last error of CreateProcess, of which place is the program, and returns its code:
 * -ERR_ELEVATION when the program's manifest asks for more rights than this process has, else -ERR_START. */
int start_fail(DWORD code, const char *place, struct err *err);

#endif
