#include "symbolize/backend/llvm_program.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/os.h"

#define VERSION_MIN 13 /* the first that says where functions begin */
#define VERSION_MAX 40

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* Adds a path with its NUL to the list when it is that of a program. */
static int add(struct buf *list, const char *path)
{
	return is_program(path) ? buf_add(list, path, strlen(path) + 1) : 0;
}

static int add_folder(struct buf *list, const char *folder, size_t len)
{
	struct buf path;
	int rc = 0;

	buf_init(&path);
	for (int version = VERSION_MAX; !rc && version >= VERSION_MIN; version--) {
		buf_clear(&path);
		rc = buf_printf(&path, "%.*s/llvm-symbolizer-%d", (int)len, folder, version);
		if (!rc)
			rc = add(list, path.data);
	}
	buf_clear(&path);
	if (!rc)
		rc = buf_printf(&path, "%.*s/llvm-symbolizer", (int)len, folder);
	if (!rc)
		rc = add(list, path.data);
	buf_release(&path);
	return rc;
}

int llvm_program_list(struct buf *list)
{
	char *named = os_env("HSYM_LLVM"), *path = named ? NULL : os_env("PATH");
	int rc = 0;

	if (named && named[0] == '/')
		rc = add(list, named);
	for (const char *at = path; !rc && at && *at;) {
		size_t len = strcspn(at, ":");

		if (at[0] == '/' && len < 4096)
			rc = add_folder(list, at, len);
		at += len + (at[len] == ':');
	}
	free(named);
	free(path);
	return rc;
}
