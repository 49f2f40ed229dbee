/* Interfaces between the halves of Windows' side: results of Task Scheduler, arguments of a task,
 * and rights of files. */
#ifndef SNAPSHOT_SCHEDULE_SCHEDULER_PARTS_WINDOWS_H
#define SNAPSHOT_SCHEDULE_SCHEDULER_PARTS_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include <windows.h>

#include "core/base/err.h"
#include "core/base/memory.h"

/* Sets err from a result of the scheduler, with the name as its place. Returns -ERR_ADMIN,
 * -ERR_NO_TASK, -ERR_TASK_EXISTS, -ERR_TASK, or otherwise -ERR_SYSTEM. */
int scheduler_fail(HRESULT hr, const char *place, struct err *err);

/* Returns a description, with a remedy, of something that a registered task still lacks, or
 * NULL. */
const char *scheduler_warning(HRESULT hr);

/* Finds the arguments of the task called name: see scheduler_arguments(). */
int scheduler_action_arguments(const char *name, const char *program, const char *arguments,
	int *argc, char ***argv, struct err *err);

/* Converts to UTF-8; the caller frees the result. */
char *scheduler_utf8(const wchar_t *wide);

/* Returns true if program is this program, by its full path. */
bool scheduler_is_own_program(const char *program);

/* Rights for files made for the system ("Security Descriptor String Format", Microsoft Learn). The
 * system and administrators have full rights, also to everything inside; others have none,
 * regardless of the folder above. */
#define RIGHTS_OF_ADMINISTRATORS "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"

/* Returns true if a list of rights (DACL) lets every user change something, or obtain such a right:
 * Everyone, Users, Authenticated Users or Interactive. Denials are not considered. A missing list
 * gives all rights. */
bool rights_are_everybodys(ACL *list);

/* Checks the rights of the file at path like rights_are_everybodys(). Returns false if they are
 * unreadable. */
bool rights_of_path_are_everybodys(const char *path);

#endif
