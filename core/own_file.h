/*
 * Files of the user's own that several of his programs share, as a cache is.
 *
 * Nobody else's file is taken for one: it must be a regular file, no symbolic link, and on Linux this
 * user's and written by nobody else; on Windows the rights of the user's folders see to that. Opening
 * never waits for anybody (a pipe may lie there). own_file_posix.c or own_file_windows.c; what is read
 * is read with os_read_at(), and os_close() ends both the use and the lock.
 */
#ifndef CORE_OWN_FILE_H
#define CORE_OWN_FILE_H

#include "core/os.h"

/* How long a lock that another program has is waited for. */
#define OWN_FILE_TRIES 40
#define OWN_FILE_TRY_MS 5

/* This program's folder among the user's caches, which may not be there yet; the caller frees it.
 * NULL: the user has none, or out of memory. */
char *own_cache_folder(void);

/* Opens it for reading: 0 or -ERR_OPEN. */
int own_file_open(struct os_file *file, const char *path);

/* Opens it for reading and writing, and keeps out all others who do so. It is made where it is missing,
 * with the folders that lead to it, for nobody but this user. 0, -ERR_CREATE, or -ERR_BUSY: another
 * program has kept it too long. */
int own_file_lock(struct os_file *file, const char *path);

/* Writes all of it at offset: 0, or -ERR_WRITE when perhaps a part of it was written. */
int own_file_write(struct os_file *file, uint64_t offset, const void *bytes, size_t len);

/* Ends the file at size: 0 or -ERR_WRITE. */
int own_file_cut(struct os_file *file, uint64_t size);

#endif
