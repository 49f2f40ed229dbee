/* ETW logs among the input files. The events of one process are converted to a recording in a
 * temporary file. hdiff then reads this recording instead of the log. Logs of one session are read
 * together. */
#ifndef DIFF_LOGS_H
#define DIFF_LOGS_H

#include <stdbool.h>

#include "core/base/err.h"
#include "diff/file_list.h"
#include "diff/options.h"

/* Returns true if `path` is an ETW log, or an archive that may contain logs. */
bool log_exists(const char *path);

/* Converts the logs in the list to recordings, and points their items to the recordings. If several
 * items belong to one session, the list keeps only the items with a moment. If none of them has a
 * moment, the list keeps the first one. Returns 0 or an error. temp_remove_all() removes the
 * recordings. */
int logs_read(
	struct file_list *list, const struct options *options, FILE *messages, struct err *err);

/* Lists the content of logs, which must belong to one session. */
int run_list_logs(const struct options *options, FILE *messages, struct err *err);

#endif
