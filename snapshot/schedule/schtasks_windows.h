/*
 * The same by Windows' own program, schtasks.exe ("schtasks create", "schtasks delete", Microsoft Learn),
 * where COM cannot be had. What it says is lost; its exit status tells whether it did it, and the
 * scheduler's files whether there is such a task.
 */
#ifndef SNAPSHOT_SCHTASKS_WINDOWS_H
#define SNAPSHOT_SCHTASKS_WINDOWS_H

#include <stdbool.h>

#include "core/buf.h"

/* bytes are those of the file it is given, which is gone afterwards. Each returns 0, -ERR_TASK_EXISTS or -ERR_NO_TASK,
 * -ERR_ADMIN, -ERR_SYSTEM, or -ERR_NOMEM. */
int schtasks_add(const char *name, const struct buf *bytes, bool may_replace, struct err *err);
int schtasks_remove(const char *name, struct err *err);

#endif
