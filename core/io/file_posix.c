/* Shared files on POSIX: locked logs, folders, and the user's own files. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <dirent.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "core/base/memory.h"
#include "core/io/file.h"

static void lock(int fd)
{
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	for (int i = 0; i < APPEND_LOCK_TRIES && fcntl(fd, F_SETLK, &whole); i++) {
		if (errno != EAGAIN && errno != EACCES)
			return; /* the file system has no locks */
		os_sleep_ms(APPEND_LOCK_MS);
	}
}

/* Returns true if the file at `path` was not replaced between opening and locking. */
static bool is_still(int fd, const char *path)
{
	struct stat open_one, there;

	return fstat(fd, &open_one) || (!stat(path, &there) && open_one.st_dev == there.st_dev &&
					       open_one.st_ino == there.st_ino);
}

int file_append_open(struct os_file *file, const char *path, struct err *err)
{
	for (int tries = APPEND_LOCK_TRIES;;) {
		int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);

		if (fd < 0)
			return err_set(err, ERR_CREATE, path, "%s", strerror(errno));
		lock(fd);
		if (is_still(fd, path) || !tries--) {
			file->handle = fd;
			return 0;
		}
		close(fd);
	}
}

const char folder_separators[] = "/";

bool folder_same_letter(uint32_t a, uint32_t b)
{
	return a == b;
}

/* Reads an entry's type and size. Returns false if the entry no longer exists. */
static bool look_at(DIR *stream, struct folder_entry *entry)
{
	struct stat st;

	if (fstatat(dirfd(stream), entry->name, &st, AT_SYMLINK_NOFOLLOW))
		return false;
	entry->is_file = S_ISREG(st.st_mode);
	entry->is_link = S_ISLNK(st.st_mode);
	entry->size_bytes = entry->is_file ? (uint64_t)st.st_size : 0;
	return true;
}

static int hand_on(DIR *stream, const char *name, enum folder_want want,
	int (*each)(void *ctx, const struct folder_entry *entry), void *ctx)
{
	struct folder_entry entry = {.name = name};

	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return 0;
	if (want == FOLDER_ENTRIES && !look_at(stream, &entry))
		return 0;
	return each(ctx, &entry);
}

int folder_each(const char *path, enum folder_want want,
	int (*entry)(void *ctx, const struct folder_entry *entry), void *ctx, struct err *err)
{
	DIR *stream = opendir(*path ? path : ".");
	struct dirent *found = NULL;
	int rc = 0;

	if (!stream)
		return err_set(err, ERR_OPEN, path, "%s", strerror(errno));
	while (!rc) {
		errno = 0;
		found = readdir(stream);
		if (!found)
			break;
		rc = hand_on(stream, found->d_name, want, entry, ctx);
	}
	if (!found && errno)
		rc = err_set(err, ERR_READ, path, "%s", strerror(errno));
	closedir(stream);
	return rc;
}

int folder_remove(const char *path, struct err *err)
{
	if (unlink(path) && errno != ENOENT)
		return err_set(err, ERR_REMOVE, path, "%s", strerror(errno));
	return 0;
}

#define NO_WAITING (O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/* Returns true if the folder belongs to this user. Under sudo, HOME may be another user's folder,
 * where this user must not create files. If `may_lack` is set, also returns true for a missing
 * folder, because HOME of a user without a home folder may not exist. */
static bool is_our_folder(const char *folder, bool may_lack)
{
	struct stat st;

	if (stat(folder, &st))
		return may_lack && errno == ENOENT;
	return S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

char *own_cache_folder(void)
{
	const char *caches = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	struct buf path;

	buf_init(&path);
	/* the XDG specification requires relative paths to be ignored */
	if (caches && *caches == '/') {
		if (is_our_folder(caches, true))
			buf_printf(&path, "%s/hsnap", caches);
	} else if (home && *home == '/' && is_our_folder(home, false)) {
		buf_printf(&path, "%s/.cache/hsnap", home);
	}
	return path.data;
}

static bool is_ours(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* Opens a file if it is this user's own. Returns a file descriptor, or -1. */
static int open_ours(const char *path, int flags)
{
	int fd = open(path, flags | NO_WAITING, 0600);

	if (fd >= 0 && !is_ours(fd)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

int own_file_open(struct os_file *file, const char *path)
{
	int fd = open_ours(path, O_RDONLY);

	if (fd < 0)
		return -ERR_OPEN;
	file->handle = fd;
	return 0;
}

/* Creates the folders in the path. Errors are ignored here: creating the file will then fail. */
static void make_folders(const char *path)
{
	char *folder = xstrdup(path);

	for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(folder, 0700) && errno != EEXIST && errno != EROFS && errno != EACCES)
			break;
		*slash = '/';
	}
	free(folder);
}

static int open_or_make(const char *path)
{
	int fd = open_ours(path, O_RDWR);

	if (fd < 0 && errno == ENOENT) {
		make_folders(path);
		fd = open_ours(path, O_RDWR | O_CREAT);
	}
	return fd;
}

/* Returns true if the locked file is still the file at `path`. */
static bool is_at(int fd, const char *path)
{
	struct stat locked, found;

	return !fstat(fd, &locked) && !lstat(path, &found) && locked.st_ino == found.st_ino &&
	       locked.st_dev == found.st_dev;
}

int own_file_lock(struct os_file *file, const char *path)
{
	for (int i = 0; i < OWN_FILE_TRIES; i++) {
		int fd = open_or_make(path), rc;

		if (fd < 0)
			return -ERR_CREATE;
		rc = flock(fd, LOCK_EX | LOCK_NB) ? -errno : 0;
		if (!rc && is_at(fd, path)) {
			file->handle = fd;
			return 0;
		}
		close(fd);
		if (rc && rc != -EWOULDBLOCK && rc != -EINTR) /* the file system has no locks */
			return -ERR_CREATE;
		os_sleep_ms(OWN_FILE_TRY_MS);
	}
	return -ERR_BUSY;
}

int own_file_write(struct os_file *file, uint64_t offset, const void *bytes, size_t len)
{
	const char *from = bytes;

	while (len) {
		ssize_t put = pwrite((int)file->handle, from, len, (off_t)offset);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return -ERR_WRITE;
		from += put;
		offset += (uint64_t)put;
		len -= (size_t)put;
	}
	return 0;
}

int own_file_cut(struct os_file *file, uint64_t size)
{
	return ftruncate((int)file->handle, (off_t)size) ? -ERR_WRITE : 0;
}
