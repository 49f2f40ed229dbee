#include "symbolize/files/folder_list.h"

#include <dirent.h>
#include <errno.h>

#include "core/err.h"

int folder_list(const char *path, int (*name)(void *ctx, const char *name), void *ctx)
{
	DIR *stream = opendir(path);
	struct dirent *entry = NULL;
	int rc = 0;

	if (!stream)
		return -ERR_READ;
	while (!rc) {
		errno = 0;
		entry = readdir(stream);
		if (!entry)
			break;
		rc = name(ctx, entry->d_name);
	}
	if (!rc && errno)
		rc = -ERR_READ;
	closedir(stream);
	return rc;
}
