#include "core/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const struct folder_rules folder_rules = {.separators = "/", .dropped = "", .has_devices = false};

bool folder_same_letter(uint32_t a, uint32_t b)
{
	return a == b;
}

/* False: it is gone meanwhile. */
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
