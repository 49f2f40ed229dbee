/*
 * ETW logs among the files: what one says of a process becomes a recording in a temporary file, which is read in its
 * place. Logs of one session are one.
 */
#ifndef DIFF_LOGS_H
#define DIFF_LOGS_H

#include <stdbool.h>

#include "core/base/err.h"
#include "diff/input_parts.h"

/* Whether there is a log, or an archive that may hold some. */
bool log_is_there(const char *path);

/* Reads the logs in the list, and has their items name recordings. Of one session's those with a moment stay; without
 * any, the first one. 0 or an error. temp_remove_all() removes the recordings. */
int logs_read(struct file_list *list, const struct options *options, FILE *say, struct err *err);

/* Writes what is in the logs, which are of one session. */
int run_list_logs(const struct options *options, FILE *say, struct err *err);

#endif
