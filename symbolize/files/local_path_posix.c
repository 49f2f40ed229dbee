#include "symbolize/files/local_path.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "core/buf.h"
#include "core/model.h"
#include "core/os.h"

/*
 * On this side a dump's process ran under Wine, or elsewhere: X:\a\b is looked for through the
 * prefix's dosdevices, without regard to case as Windows does. Wine's own DLLs may be files of
 * Wine's and no copies in the prefix: where Wine is usually installed they are guessed at by name.
 */

static const char *const wine_dirs[] = {"/usr/lib/x86_64-linux-gnu/wine", "/usr/lib/wine",
	"/usr/lib64/wine", "/usr/lib/i386-linux-gnu/wine", "/usr/lib32/wine",
	"/opt/wine-stable/lib64/wine", "/opt/wine-stable/lib/wine", "/opt/wine-devel/lib64/wine",
	"/opt/wine-devel/lib/wine", "/opt/wine-staging/lib64/wine", "/opt/wine-staging/lib/wine",
	"/usr/local/lib64/wine", "/usr/local/lib/wine"};
static const char *const wine_kinds[] = {"x86_64-windows", "i386-windows"};

static bool is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static bool exists(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0;
}

/* The entry of a folder that is name but for case; of several the first in order of bytes. */
static int find_entry(const char *dir, const char *name, struct buf *found)
{
	DIR *stream = opendir(dir);
	struct dirent *entry;
	int rc = 0;

	if (!stream)
		return 0;
	while (!rc && (entry = readdir(stream))) {
		if (strcasecmp(entry->d_name, name) != 0 ||
			(found->len && strcmp(found->data, entry->d_name) <= 0))
			continue;
		buf_clear(found);
		rc = buf_add_text(found, entry->d_name);
	}
	closedir(stream);
	return rc;
}

/* Adds "/name" to path, or what that is called there. Returns 0 or -ERR_NOMEM. */
static int add_component(struct buf *path, const char *name)
{
	struct buf found;
	size_t len = path->len;
	int rc = buf_printf(path, "/%s", name);

	if (rc || exists(path->data))
		return rc;
	buf_init(&found);
	path->data[len] = '\0';
	rc = find_entry(len ? path->data : "/", name, &found);
	path->data[len] = '/';
	if (!rc && found.len) {
		path->len = len;
		rc = buf_printf(path, "/%s", found.data);
	}
	buf_release(&found);
	return rc;
}

/* Adds the components of rest, a path with either kind of slash. */
static int add_components(struct buf *path, const char *rest)
{
	int rc = 0;

	while (!rc && *rest) {
		size_t len = strcspn(rest, "/\\");
		struct buf name;

		buf_init(&name);
		if (len) {
			rc = buf_add(&name, rest, len);
			if (!rc)
				rc = add_component(path, name.data);
		}
		buf_release(&name);
		rest += len + (rest[len] != '\0');
	}
	return rc;
}

/* Where Wine keeps its drives; 0 and an empty path when nobody knows. */
static int add_prefix(struct buf *path)
{
	char *prefix = os_env("WINEPREFIX"), *home = os_env("HOME");
	int rc = 0;

	if (prefix && *prefix)
		rc = buf_printf(path, "%s/dosdevices", prefix);
	else if (home && *home)
		rc = buf_printf(path, "%s/.wine/dosdevices", home);
	free(prefix);
	free(home);
	return rc;
}

static bool has_drive(const char *path)
{
	char letter = (char)(path[0] | 0x20);

	return letter >= 'a' && letter <= 'z' && path[1] == ':' &&
	       (path[2] == '\\' || path[2] == '/');
}

/* The file that path means here; false: there is none. */
static bool mapped_file(const char *path, struct buf *file)
{
	char drive[3] = {(char)(path[0] | 0x20), ':', '\0'};
	int rc;

	if (!has_drive(path))
		return path[0] == '/' && !buf_add_text(file, path) && is_file(file->data);
	rc = add_prefix(file);
	if (!rc && file->len)
		rc = buf_printf(file, "/%s", drive);
	if (!rc && (!file->len || !exists(file->data))) {
		buf_clear(file);
		if (drive[0] != 'z') /* by custom the whole of the machine */
			return false;
	}
	if (!rc)
		rc = add_components(file, path + 3);
	return !rc && file->len && is_file(file->data);
}

static bool is_system(const char *path)
{
	return has_drive(path) && !strncasecmp(path + 3, "windows", 7) &&
	       (path[10] == '\\' || path[10] == '/');
}

static bool try_wine(const char *path, const struct path_user *user)
{
	bool used = false;

	for (size_t i = 0; !used && i < sizeof(wine_dirs) / sizeof(*wine_dirs); i++) {
		for (size_t kind = 0; !used && kind < 2; kind++) {
			struct buf file;

			buf_init(&file);
			if (!buf_printf(&file, "%s/%s", wine_dirs[i], wine_kinds[kind]) &&
				exists(file.data) && !add_component(&file, path_base(path)) &&
				is_file(file.data))
				used = user->use(user->ctx, file.data, true);
			buf_release(&file);
		}
	}
	return used;
}

bool local_files(const char *module_path, const struct path_user *user)
{
	struct buf file;
	bool used;

	if (!strncmp(module_path, "\\\\?\\", 4) || !strncmp(module_path, "\\??\\", 4))
		module_path += 4;
	buf_init(&file);
	used = mapped_file(module_path, &file) && user->use(user->ctx, file.data, false);
	buf_release(&file);
	return used || (is_system(module_path) && try_wine(module_path, user));
}
