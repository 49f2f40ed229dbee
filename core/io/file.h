/* Files shared by several processes: logs, folders, and files owned by the user, such as a
 * cache. */
#ifndef CORE_IO_FILE_H
#define CORE_IO_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/base/os.h"

/* Files that only grow, such as logs. Several processes may write them at the same time. */

/* Appends a line, which must end with a newline, to the file at `path`. Creates the file if it is
 * missing. If the file would exceed `limit_bytes`, renames it to `aside`, replacing any older file
 * there, and begins a new file. If a reader blocks the renaming, appends to the full file.
 *
 * The file is locked during the call, so lines of several processes neither mix nor get lost. A
 * lock that another process holds for seconds is ignored. If the last line lacks its newline,
 * because the disk was full, appends a newline first. The file is closed after each call, so it may
 * be moved or removed at any time. Writes nothing if `len` is 0. Returns 0, -ERR_CREATE or
 * -ERR_WRITE. */
int file_append_line(const char *path, const char *line, size_t len, uint64_t limit_bytes,
	const char *aside, struct err *err);

/* Opens the file at `path` for reading and appending, and locks it. Creates the file if it is
 * missing. On Windows, links are refused. Otherwise a user who can write to the log's folder could
 * redirect the writes of a process with more rights. Returns 0 or -ERR_CREATE. */
int file_append_open(struct os_file *file, const char *path, struct err *err);

/* Number of attempts to lock a file, and the time between attempts. */
#define APPEND_LOCK_TRIES 300
#define APPEND_LOCK_MS 10

/*
 * The entries of a folder.
 *
 * Names are UTF-8 (raw bytes on POSIX) and exclude "." and "..". A link is reported as a link and
 * never followed. A folder may change while it is being read, and afterwards.
 */

/* Characters that separate the components of a path. */
extern const char folder_separators[];

/* Returns true if two characters are equivalent in file names; on Windows, case is ignored. */
bool folder_same_letter(uint32_t a, uint32_t b);

struct folder_entry {
	const char *name; /* name without the folder */
	bool is_file; /* a regular file; not a folder, link, device or pipe */
	bool is_link; /* symbolic link, or another kind of link on Windows */
	uint64_t size_bytes; /* size of a regular file; otherwise 0 */
};

enum folder_want {
	/* The caller needs only names. Type and size may be missing, because they can cost a call
	 * per entry. */
	FOLDER_NAMES,
	FOLDER_ENTRIES,
};

/* Calls `entry` for each entry, in unspecified order. The name is valid until `entry` returns. If
 * `path` is "", lists the current folder. Returns 0 at the end; -ERR_OPEN if the folder is missing
 * or unreadable; -ERR_READ if the folder cannot be read to the end; or the first nonzero result of
 * `entry`, with `err` unchanged. */
int folder_each(const char *path, enum folder_want want,
	int (*entry)(void *ctx, const struct folder_entry *entry), void *ctx, struct err *err);

/* All entries of a folder, sorted by the bytes of their names. */
struct folder_list {
	struct folder_entry *entries;
	size_t count;
	size_t cap;
	struct arena names;
};

/* Fills *list, whose storage belongs to the caller. Returns 0, -ERR_OPEN or -ERR_READ. */
int folder_list_read(const char *path, struct folder_list *list, struct err *err);
void folder_list_release(struct folder_list *list);

/* Removes a file or a link (not the link's target), but never a folder. A missing file is not an
 * error. Returns 0 or -ERR_REMOVE. Wine shows a link of the host system as if it were the link's
 * target. For such a link, returns -ERR_REMOVE and removes neither the link nor its target. */
int folder_remove(const char *path, struct err *err);

/*
 * Files that several programs of one user share, such as a cache.
 *
 * Files of other users are refused: the file must be regular and not a symbolic link. On Linux it
 * must also be owned by this user and not writable by any other user; on Windows the access rights
 * of the user's folders ensure this. Opening never blocks, even if the file is a pipe. Read with
 * os_read_at(). os_close() also releases the lock.
 */

/* Number of attempts to lock a file, and the time between attempts. */
#define OWN_FILE_TRIES 40
#define OWN_FILE_TRY_MS 5

/* Returns this program's folder within the user's cache folder, or NULL if the user has no cache
 * folder. The folder may be missing. The caller frees the path. */
char *own_cache_folder(void);

/* Opens the file for reading. Returns 0 or -ERR_OPEN. */
int own_file_open(struct os_file *file, const char *path);

/* Opens the file for reading and writing, with an exclusive lock. Creates missing files and
 * folders, accessible only to this user. Returns 0, -ERR_CREATE, or -ERR_BUSY if another program
 * holds the lock for too long. */
int own_file_lock(struct os_file *file, const char *path);

/* Writes all `len` bytes at `offset`. Returns 0, or -ERR_WRITE, after which part of the bytes may
 * have been written. */
int own_file_write(struct os_file *file, uint64_t offset, const void *bytes, size_t len);

/* Truncates the file to `size`. Returns 0 or -ERR_WRITE. */
int own_file_cut(struct os_file *file, uint64_t size);

#endif
