/* Files that only grow, as logs do, and that several processes may write at once. */
#ifndef CORE_APPEND_H
#define CORE_APPEND_H

#include <stddef.h>
#include <stdint.h>

#include "core/os.h"

/*
 * Puts a line, which ends with a newline, behind what is in the file at path, which is made when it is not
 * there. Where the file would be longer than limit_bytes by that, it becomes the file at aside, in the place
 * of an older one, and a new one is begun; where that cannot be, as somebody reads it and lets nobody rename
 * it, it gets the line all the same. The file is locked meanwhile, so that lines of several processes
 * neither mix nor are lost; whoever holds the lock for seconds is not waited for. A line that was torn,
 * because the disk was full, is ended first. The file is not kept open: it may be moved or removed at any time.
 * Nothing is written when len is 0. Returns 0, -ERR_CREATE, -ERR_WRITE or -ERR_NOMEM.
 */
int append_line(const char *path, const char *line, size_t len, uint64_t limit_bytes,
	const char *aside, struct err *err);

/* What it is made of: opens the file at path for reading and for adding to its end, locked, and made when it is
 * not there. On Windows a link there is refused: whoever may write into the folder of a log, but not where the log's
 * writer may, cannot make him write elsewhere. 0 or -ERR_CREATE. */
int append_open(struct os_file *file, const char *path, struct err *err);

/* How often, and after how long, a lock is tried that another process has. */
#define APPEND_LOCK_TRIES 300
#define APPEND_LOCK_MS 10

#endif
