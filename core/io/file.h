/* Files that several processes share: logs, folders, and files of the user's own. */
#ifndef CORE_IO_FILE_H
#define CORE_IO_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/base/os.h"

/* Files that only grow, as logs do, and that several processes may write at once. */

/*
 * Puts a line, which ends with a newline, behind what is in the file at path, which is made when it is not
 * there. Where the file would be longer than limit_bytes by that, it becomes the file at aside, in the place
 * of an older one, and a new one is begun; where that cannot be, as somebody reads it and lets nobody rename
 * it, it gets the line all the same. The file is locked meanwhile, so that lines of several processes
 * neither mix nor are lost; whoever holds the lock for seconds is not waited for. A line that was torn,
 * because the disk was full, is ended first. The file is not kept open: it may be moved or removed at any time.
 * Nothing is written when len is 0. Returns 0, -ERR_CREATE, -ERR_WRITE.
 */
int file_append_line(const char *path, const char *line, size_t len, uint64_t limit_bytes,
	const char *aside, struct err *err);

/* What it is made of: opens the file at path for reading and for adding to its end, locked, and made when it is
 * not there. On Windows a link there is refused: whoever may write into the folder of a log, but not where the log's
 * writer may, cannot make him write elsewhere. 0 or -ERR_CREATE. */
int file_append_open(struct os_file *file, const char *path, struct err *err);

/* How often, and after how long, a lock is tried that another process has. */
#define APPEND_LOCK_TRIES 300
#define APPEND_LOCK_MS 10

/*
 * What is in a folder.
 *
 * Names are UTF-8 (on POSIX: the bytes that they are), without "." and "..". A link is told as one: what
 * it leads to is never looked at. What a folder holds may change while it is read and after: an entry
 * tells what was. file_posix.c or file_windows.c.
 */

/* Behind each of these characters a new part of a path begins here. */
extern const char folder_separators[];

/* Whether two characters are one in names here, as letters in any case are on Windows. */
bool folder_same_letter(uint32_t a, uint32_t b);

struct folder_entry {
	const char *name; /* the name alone */
	bool is_file; /* a regular one; no folder, no link, no device or pipe */
	bool is_link; /* symbolic, or of the kinds that Windows has */
	uint64_t size_bytes; /* of a file */
};

enum folder_want {
	FOLDER_NAMES, /* whether an entry is a file, and its size, need not be told: that costs a call each */
	FOLDER_ENTRIES,
};

/* Hands each entry on, in no order; its name lives until entry returns. path "" is the current folder.
 * Returns 0 when there are no more; -ERR_OPEN when the folder is not there or may not be read; -ERR_READ
 * when it cannot be read to its end; or what entry returned when that is not 0: then it stops, and err is as it was. */
int folder_each(const char *path, enum folder_want want,
	int (*entry)(void *ctx, const struct folder_entry *entry), void *ctx, struct err *err);

/* All of a folder, sorted by the bytes of the names. */
struct folder_list {
	struct folder_entry *entries;
	size_t count;
	size_t cap;
	struct arena names;
};

/* Fills *list, whose storage is the caller's: 0, -ERR_OPEN, -ERR_READ. */
int folder_list_read(const char *path, struct folder_list *list, struct err *err);
void folder_list_release(struct folder_list *list);

/* Removes a file, of a link the link, never a folder. One that is gone already is no trouble. 0,
 * -ERR_REMOVE. Under Wine, which shows links of the system below it as what they lead to,
 * such a link stays, with what it leads to: -ERR_REMOVE. */
int folder_remove(const char *path, struct err *err);

/*
 * Files of the user's own that several of his programs share, as a cache is.
 *
 * Nobody else's file is taken for one: it must be a regular file, no symbolic link, and on Linux this
 * user's and written by nobody else; on Windows the rights of the user's folders see to that. Opening
 * never waits for anybody (a pipe may lie there). file_posix.c or file_windows.c; what is read
 * is read with os_read_at(), and os_close() ends both the use and the lock.
 */

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
