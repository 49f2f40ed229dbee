/* ETW logs among the input files. The events of one process are converted to a recording in a
 * temporary file, and the recording is read in place of the log. Logs of one session are read
 * together. */
#ifndef DIFF_LOGS_H
#define DIFF_LOGS_H

#include <stdbool.h>

#include "core/base/err.h"
#include "diff/file_list.h"
#include "diff/options.h"

/* Returns true if `path` is an ETW log, or an archive that may contain logs. */
bool log_exists(const char *path);

/* Reads the logs in the list and points their items to recordings. The items of a session that have
 * a moment stay in the list. If none has a moment, only the first stays. Returns 0 or an error.
 * temp_remove_all() removes the recordings. */
int logs_read(struct file_list *list, const struct options *options, FILE *say, struct err *err);

/* Lists the content of logs, which must belong to one session. */
int run_list_logs(const struct options *options, FILE *say, struct err *err);

#endif
