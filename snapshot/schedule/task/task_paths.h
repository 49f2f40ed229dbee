/* Paths of Windows as text, so that a task can be written anywhere. */
#ifndef SNAPSHOT_TASK_PATHS_H
#define SNAPSHOT_TASK_PATHS_H

#include "core/err.h"

/*
 * Whether path, UTF-8, is a full one that means the same to Task Scheduler as to everybody: "C:\..." or
 * "\\server\share...", with nothing that names do not have, none of them empty, a device's, or with
 * a dot or a blank at its end (there is no ".." then). '%' and "$(" are refused, in place of which Task
 * Scheduler may put something else ("ExecAction.Path property", "RunEx method": environment variables, and
 * $(Arg0)), and so is what it has no room for (TASK_PATH_UNITS of task_xml.h). 0 or -ERR_USAGE.
 */
int task_path_check(const char *path, struct err *err);

#endif
