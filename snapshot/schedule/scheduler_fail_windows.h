/* What an HRESULT of Task Scheduler means, in words. */
#ifndef SNAPSHOT_SCHEDULER_FAIL_WINDOWS_H
#define SNAPSHOT_SCHEDULER_FAIL_WINDOWS_H

#include <windows.h>

#include "core/err.h"

/* Sets err, of which place is a name, and returns its code: -ERR_ADMIN, -ERR_NO_TASK, -ERR_TASK_EXISTS,
 * -ERR_NOMEM, else -ERR_SYSTEM. */
int scheduler_fail(HRESULT hr, const char *place, struct err *err);

#endif
