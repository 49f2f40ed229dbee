#include "core/own_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/buf.h"

#define NO_WAITING (O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

/* A folder of someone else's must not get files of this user's: HOME is the caller's under sudo. And one
 * that is not there is not made where it is HOME: who has no home is given such a name. */
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
	int rc = -ERR_OPEN;

	buf_init(&path);
	if (caches && *caches == '/') { /* another one means nothing, says XDG */
		if (is_our_folder(caches, true))
			rc = buf_printf(&path, "%s/hsnap", caches);
	} else if (home && *home == '/' && is_our_folder(home, false)) {
		rc = buf_printf(&path, "%s/.cache/hsnap", home);
	}
	if (rc)
		buf_release(&path);
	return path.data;
}

static bool is_ours(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* The file descriptor, or -1. */
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

/* What cannot be made shows when the file is. */
static void make_folders(const char *path)
{
	char *folder = strdup(path);

	if (!folder)
		return;
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

/* Whether the file that was locked is still the one that others find. */
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
		if (rc && rc != -EWOULDBLOCK && rc != -EINTR) /* a file system without locks */
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
