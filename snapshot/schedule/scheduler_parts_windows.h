/* Interfaces between the two Windows files of the scheduler: results of Task Scheduler and rights
 * of files. */
#ifndef SNAPSHOT_SCHEDULE_SCHEDULER_PARTS_WINDOWS_H
#define SNAPSHOT_SCHEDULE_SCHEDULER_PARTS_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

#include <windows.h>

#include "core/base/err.h"
#include "core/base/memory.h"

/* Sets err from a result of the scheduler, using `place` as the error's place. Returns -ERR_ADMIN,
 * -ERR_NO_TASK, -ERR_TASK_EXISTS, or otherwise -ERR_SYSTEM. */
int scheduler_fail(HRESULT hr, const char *place, struct err *err);

/* Returns a description, with a remedy, of what a registered task still lacks, or NULL. */
const char *scheduler_warning(HRESULT hr);

/* Rights for files that are created for the system ("Security Descriptor String Format", Microsoft
 * Learn). The system and administrators have full rights, also to the contents of folders. Other
 * users have none, whatever the rights of the parent folder. */
#define RIGHTS_OF_ADMINISTRATORS "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"

/* Returns true if a list of rights (DACL) permits every user to change something, or to obtain such
 * a right. Every user means: Everyone, Users, Authenticated Users or Interactive. Entries that deny
 * rights are ignored. A missing list grants all rights. */
bool rights_are_everybodys(ACL *list);

/* Calls rights_are_everybodys() for the rights of the file at path. Returns false if they are
 * unreadable. */
bool rights_of_path_are_everybodys(const char *path);

#endif
