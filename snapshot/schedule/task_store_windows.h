/*
 * Where Task Scheduler keeps tasks: a file of XML for each, in System32\Tasks and its folders ("[MS-TSCH]",
 * the section on the server's store; under Wine 8.0 too).
 *
 * It is looked at where the scheduler itself cannot be asked. Wine 8.0 forgets what a task is to run: there,
 * and nowhere else, the file is written as well.
 */
#ifndef SNAPSHOT_TASK_STORE_WINDOWS_H
#define SNAPSHOT_TASK_STORE_WINDOWS_H

#include <stdbool.h>
#include <windows.h>

#include "core/buf.h"

bool task_store_is_wine(void);

/* Adds a task's bytes: 0, -ERR_NO_TASK, -ERR_ADMIN (it may be there), -ERR_TASK (too long for one),
 * -ERR_NOMEM. */
int task_store_read(struct buf *bytes, const char *name, struct err *err);

/* In place of what is there: 0, -ERR_SYSTEM. Under Wine only. */
int task_store_write(const struct buf *bytes, const char *name, struct err *err);

/* Calls each with every file's name; it says S_OK to go on. */
HRESULT task_store_each(HRESULT (*each)(void *ctx, const wchar_t *name), void *ctx);

#endif
