/*
 * Task Scheduler by its own interface, ITaskService ("Task Scheduler 2.0 Interfaces", Microsoft Learn), for
 * Windows Vista and later. COM is loaded when it is asked for: no other command of hsnap needs it.
 *
 * HRESULTs are what is returned; scheduler_fail() makes errors of them.
 */
#ifndef SNAPSHOT_SCHEDULER_COM_WINDOWS_H
#define SNAPSHOT_SCHEDULER_COM_WINDOWS_H

#include <stdbool.h>
#include <windows.h>

#include "snapshot/schedule/task/task_table.h"

#define SCHEDULER_FOLDER L"hsnap"

struct scheduler_com; /* a connection, and the folder \hsnap */

/* Connects; *com is to be closed. Without the folder it has no tasks. */
HRESULT scheduler_com_open(struct scheduler_com **com);
void scheduler_com_close(struct scheduler_com *com);

/* How whoever the XML names is to be logged on is asked for beside it: as a service's account, which the
 * system's is, or as a user without a password (S4U). The folder is made when it is missing; for the system only
 * administrators may then change what is in it. Also one of the scheduler's codes of success, see
 * scheduler_warning(). */
HRESULT scheduler_com_add(struct scheduler_com *com, const wchar_t *name, const wchar_t *xml,
	bool is_system, bool may_replace);
HRESULT scheduler_com_remove(struct scheduler_com *com, const wchar_t *name);

/* Adds the XML that the scheduler has, UTF-16 behind a byte order mark. */
HRESULT scheduler_com_xml(struct scheduler_com *com, const wchar_t *name, struct buf *bytes);

/* What it tells of a task's runs; what it does not stays empty. */
void scheduler_com_state(struct scheduler_com *com, const wchar_t *name, struct task_state *state);

/* Calls each with every task's name; it says S_OK to go on. */
HRESULT scheduler_com_each(
	struct scheduler_com *com, HRESULT (*each)(void *ctx, const wchar_t *name), void *ctx);

#endif
