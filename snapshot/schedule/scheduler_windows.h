/* Who may change a file or a folder, by its list of rights (DACL). */
#ifndef SNAPSHOT_SCHEDULE_SCHEDULER_WINDOWS_H
#define SNAPSHOT_SCHEDULE_SCHEDULER_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include <windows.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "snapshot/schedule/task.h"

/* For what is made for the system: it and administrators may do all with it and with what comes into it, others
 * nothing, whatever the folder above it says ("Security Descriptor String Format", Microsoft Learn). */
#define RIGHTS_OF_ADMINISTRATORS L"D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"

/* Whether it gives a right to change something, or to get such a right, to one of those that every user is: Everyone,
 * Users, Authenticated Users, Interactive. Denials are not counted against it. No list at all gives all rights. */
bool rights_are_everybodys(ACL *list);

/* The same of what is at path, and of a link there, whose target whoever may change it may choose; false when the
 * rights cannot be read. */
bool rights_of_path_are_everybodys(const wchar_t *path);

/* What an HRESULT of Task Scheduler means, in words. */

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

/*
 * Task Scheduler by its own interface, ITaskService ("Task Scheduler 2.0 Interfaces", Microsoft Learn), for
 * Windows Vista and later. COM is loaded when it is asked for: no other command of hsnap needs it.
 *
 * HRESULTs are what is returned; scheduler_fail() makes errors of them.
 */

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

/*
 * The same by Windows' own program, schtasks.exe ("schtasks create", "schtasks delete", Microsoft Learn),
 * where COM cannot be had. What it says is lost; its exit status tells whether it did it, and the
 * scheduler's files whether there is such a task.
 */

/* bytes are those of the file it is given, which is gone afterwards. Each returns 0, -ERR_TASK_EXISTS or -ERR_NO_TASK,
 * -ERR_ADMIN, -ERR_SYSTEM, or -ERR_NOMEM. */
int schtasks_add(const char *name, const struct buf *bytes, bool may_replace, struct err *err);
int schtasks_remove(const char *name, struct err *err);

/*
 * Where Task Scheduler keeps tasks: a file of XML for each, in System32\Tasks and its folders ("[MS-TSCH]",
 * the section on the server's store; under Wine 8.0 too).
 *
 * It is looked at where the scheduler itself cannot be asked. Wine 8.0 forgets what a task is to run: there,
 * and nowhere else, the file is written as well.
 */

bool task_store_is_wine(void);

/* Adds a task's bytes: 0, -ERR_NO_TASK, -ERR_ADMIN (it may be there), -ERR_TASK (too long for one),
 * -ERR_NOMEM. */
int task_store_read(struct buf *bytes, const char *name, struct err *err);

/* In place of what is there: 0, -ERR_SYSTEM. Under Wine only. */
int task_store_write(const struct buf *bytes, const char *name, struct err *err);

/* Calls each with every file's name; it says S_OK to go on. */
HRESULT task_store_each(HRESULT (*each)(void *ctx, const wchar_t *name), void *ctx);

/* Doing what a task does, here and now. */

/* Starts the program, a full path, with the arguments (NULL: none) in the folder that it is in, with our output and no
 * input, and waits: 0 and its exit status, -ERR_START or -ERR_NOMEM. Ctrl-C is the program's business. */
int task_run(const char *program, const char *arguments, uint32_t *exit_status, struct err *err);

#endif
