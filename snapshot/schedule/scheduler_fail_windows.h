/* What an HRESULT of Task Scheduler means, in words. */
#ifndef SNAPSHOT_SCHEDULER_FAIL_WINDOWS_H
#define SNAPSHOT_SCHEDULER_FAIL_WINDOWS_H

#include <stdbool.h>
#include <windows.h>

#include "core/err.h"

/* Of "Task Scheduler Error and Success Constants", Microsoft Learn; older headers of MinGW lack them. */
#ifndef SCHED_E_SERVICE_NOT_AVAILABLE
#define SCHED_E_SERVICE_NOT_AVAILABLE ((HRESULT)0x80041322L)
#endif

/* Sets err, of which place is a name, and returns its code: -ERR_ADMIN, -ERR_NO_TASK, -ERR_TASK_EXISTS,
 * -ERR_NOMEM, else -ERR_SYSTEM. */
int scheduler_fail(HRESULT hr, const char *place, struct err *err);

/* What a task that was registered lacks all the same, and what to do about it; NULL: nothing. */
const char *scheduler_warning(HRESULT hr);

/* Whether the interface is not there at all: then schtasks.exe may do. Of every other failure it would have the same. */
bool scheduler_is_missing(HRESULT hr);

/* What to say where nothing was found: whoever is no administrator does not see the system's tasks; NULL for one.
 * scheduler_no_task() sets an error with it, and returns -ERR_NO_TASK. */
const char *scheduler_unseen(void);
int scheduler_no_task(const char *name, struct err *err);

#endif
