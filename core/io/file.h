/* Files that several processes share: logs, folders, and the user's own files such as a cache. */
#ifndef CORE_IO_FILE_H
#define CORE_IO_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/base/os.h"

/* Files that only grow, such as logs, and that several processes may write at once. */

/* Appends a line, which ends with a newline, to the file at path, which is created if it is
 * missing. If the file would exceed limit_bytes, it is renamed to aside, replacing an older file,
 * and a new file is begun. If the rename fails, because a reader does not allow it, the line is
 * appended to the full file. The file is locked meanwhile, so that lines of several processes
 * neither mix nor are lost; a lock that another process holds for seconds is ignored. A line that
 * was torn because the disk was full is ended first. The file is not kept open: it may be moved or
 * removed at any time. Nothing is written if len is 0. Returns 0, -ERR_CREATE or -ERR_WRITE. */
int file_append_line(const char *path, const char *line, size_t len, uint64_t limit_bytes,
	const char *aside, struct err *err);

/* Opens the file at path for reading and appending, locked; creates it if it is missing. On Windows
 * a link is refused: a user who can write to the log's folder must not redirect the writes of a
 * process with more rights. Returns 0 or -ERR_CREATE. */
int file_append_open(struct os_file *file, const char *path, struct err *err);

/* Number of attempts to lock a file, and the time between them. */
#define APPEND_LOCK_TRIES 300
#define APPEND_LOCK_MS 10

/*
 * The entries of a folder.
 *
 * Names are UTF-8 (on POSIX: raw bytes), without "." and "..". A link is reported as a link and
 * never followed. A folder may change while it is read and afterwards.
 */

/* Characters that separate the parts of a path. */
extern const char folder_separators[];

/* Returns true if two characters are equal in file names: on Windows regardless of case. */
bool folder_same_letter(uint32_t a, uint32_t b);

struct folder_entry {
	const char *name; /* the name without the folder */
	bool is_file; /* a regular file; not a folder, link, device or pipe */
	bool is_link; /* symbolic link, or another kind of link on Windows */
	uint64_t size_bytes; /* of a regular file */
};

enum folder_want {
	/* Names only: type and size may be left out, because they cost a call for each entry. */
	FOLDER_NAMES,
	FOLDER_ENTRIES,
};

/* Calls entry for each entry, in no order; the name is valid until entry returns. path "" is the
 * current folder. Returns 0 at the end; -ERR_OPEN if the folder is missing or unreadable; -ERR_READ
 * if it cannot be read to the end; or the first result of entry other than 0, with err
 * unchanged. */
int folder_each(const char *path, enum folder_want want,
	int (*entry)(void *ctx, const struct folder_entry *entry), void *ctx, struct err *err);

/* All entries of a folder, sorted by the bytes of their names. */
struct folder_list {
	struct folder_entry *entries;
	size_t count;
	size_t cap;
	struct arena names;
};

/* Fills *list, whose storage is the caller's. Returns 0, -ERR_OPEN or -ERR_READ. */
int folder_list_read(const char *path, struct folder_list *list, struct err *err);
void folder_list_release(struct folder_list *list);

/* Removes a file or a link (not its target), never a folder. A missing file is not an error.
 * Returns 0 or -ERR_REMOVE. Wine shows links of the host system as their targets: such a link and
 * its target stay, with -ERR_REMOVE. */
int folder_remove(const char *path, struct err *err);

/*
 * Files that several of a user's programs share, such as a cache.
 *
 * Files of other users are refused: the file must be regular, not a symbolic link, and on Linux
 * owned by this user and writable by no other user; on Windows the rights of the user's folders
 * ensure this. Opening never blocks, even on a pipe. Read with os_read_at(); os_close() also
 * releases the lock.
 */

/* Number of attempts to lock a file, and the time between them. */
#define OWN_FILE_TRIES 40
#define OWN_FILE_TRY_MS 5

/* Returns this program's folder in the user's cache folder. The folder may be missing. The caller
 * frees the path. NULL: the user has no cache folder. */
char *own_cache_folder(void);

/* Opens the file for reading. Returns 0 or -ERR_OPEN. */
int own_file_open(struct os_file *file, const char *path);

/* Opens the file for reading and writing, with an exclusive lock. Creates it and its folders if
 * they are missing, for this user alone. Returns 0, -ERR_CREATE, or -ERR_BUSY if another program
 * holds the lock too long. */
int own_file_lock(struct os_file *file, const char *path);

/* Writes all len bytes at offset. Returns 0, or -ERR_WRITE if only part of them may be written. */
int own_file_write(struct os_file *file, uint64_t offset, const void *bytes, size_t len);

/* Truncates the file to size. Returns 0 or -ERR_WRITE. */
int own_file_cut(struct os_file *file, uint64_t size);

#endif
