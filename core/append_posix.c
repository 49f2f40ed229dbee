#include "core/append.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void lock(int fd)
{
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	for (int i = 0; i < APPEND_LOCK_TRIES && fcntl(fd, F_SETLK, &whole); i++) {
		if (errno != EAGAIN && errno != EACCES)
			return; /* a file system without locks */
		os_sleep_ms(APPEND_LOCK_MS);
	}
}

/* Whether it was not moved away before it was locked. */
static bool is_still(int fd, const char *path)
{
	struct stat open_one, there;

	return fstat(fd, &open_one) || (!stat(path, &there) && open_one.st_dev == there.st_dev &&
					       open_one.st_ino == there.st_ino);
}

int append_open(struct os_file *file, const char *path, struct err *err)
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
