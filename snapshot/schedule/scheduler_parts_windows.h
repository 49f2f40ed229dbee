/* What the halves of Windows' side share: what Task Scheduler answers, what a task of ours is, and rights of files. */
#ifndef SNAPSHOT_SCHEDULE_SCHEDULER_PARTS_WINDOWS_H
#define SNAPSHOT_SCHEDULE_SCHEDULER_PARTS_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include <windows.h>

#include "core/base/err.h"
#include "core/base/memory.h"

/* Sets err, of which place is a name, from what the scheduler answered, and returns its code: -ERR_ADMIN,
 * -ERR_NO_TASK, -ERR_TASK_EXISTS, -ERR_TASK, else -ERR_SYSTEM. */
int scheduler_fail(HRESULT hr, const char *place, struct err *err);

/* What a task that was registered lacks all the same, and what to do about it; NULL: nothing. */
const char *scheduler_warning(HRESULT hr);

/* The words of what the task called name runs: see scheduler_arguments(). */
int scheduler_action_arguments(const char *name, const char *program, const char *arguments,
	int *argc, char ***argv, struct err *err);

/* The caller frees it. */
char *scheduler_utf8(const wchar_t *wide);

/* Whether it is this one, by its full path. */
bool scheduler_is_own_program(const char *program);

/* For what is made for the system: it and administrators may do all with it and with what comes into it, others
 * nothing, whatever the folder above it says ("Security Descriptor String Format", Microsoft Learn). */
#define RIGHTS_OF_ADMINISTRATORS "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"

/* Whether a list of rights (DACL) gives one to change something, or to get such a right, to one of those that every
 * user is: Everyone, Users, Authenticated Users, Interactive. Denials are not counted against it. No list at all gives
 * all rights. */
bool rights_are_everybodys(ACL *list);

/* The same of what is at path; false when its rights cannot be read. */
bool rights_of_path_are_everybodys(const char *path);

#endif
