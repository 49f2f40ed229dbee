#include "symbolize/files/local_path.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/model.h"
#include "core/os.h"
#include "symbolize/files/folder_names.h"

/*
 * On this side a dump's process ran under Wine, or elsewhere: X:\a\b is looked for through the prefix's
 * dosdevices. Where Wine is usually installed its own DLLs are guessed at by name.
 */

static const char *const wine_dirs[] = {"/usr/lib/x86_64-linux-gnu/wine", "/usr/lib/wine",
	"/usr/lib64/wine", "/usr/lib/i386-linux-gnu/wine", "/usr/lib32/wine",
	"/opt/wine-stable/lib64/wine", "/opt/wine-stable/lib/wine", "/opt/wine-devel/lib64/wine",
	"/opt/wine-devel/lib/wine", "/opt/wine-staging/lib64/wine", "/opt/wine-staging/lib/wine",
	"/usr/local/lib64/wine", "/usr/local/lib/wine"};
static const char *const wine_kinds[] = {"x86_64-windows", "i386-windows"};

#define WINE_KINDS (sizeof(wine_kinds) / sizeof(*wine_kinds))
#define WINE_GUESSES (sizeof(wine_dirs) / sizeof(*wine_dirs) * WINE_KINDS)

struct local_paths {
	struct folder_names *names;
};

struct local_paths *local_paths_new(void)
{
	struct local_paths *paths = calloc(1, sizeof(*paths));

	if (paths)
		paths->names = folder_names_new(FOLDER_NAMES_MAX);
	if (paths && !paths->names) {
		free(paths);
		paths = NULL;
	}
	return paths;
}

void local_paths_free(struct local_paths *paths)
{
	if (!paths)
		return;
	folder_names_free(paths->names);
	free(paths);
}

/* A file without bytes is none: those that the system makes up (/proc) have no size, and reading some
 * of them does not end. */
static int kind_of(const struct stat *st)
{
	if (S_ISREG(st->st_mode) && st->st_size > 0)
		return LOCAL_FILE;
	return S_ISDIR(st->st_mode) ? LOCAL_FOLDER : LOCAL_NONE;
}

/* Whether the folder's names, as they are known, leave no doubt. Some file systems fold letters beyond
 * ASCII too: those are always asked. */
static bool is_lacking(struct local_paths *paths, const char *folder, const char *name)
{
	for (const char *c = name; *c; c++) {
		if ((unsigned char)*c >= 0x80)
			return false;
	}
	return strcmp(name, "..") != 0 && folder_names_lack(paths->names, folder, name);
}

/* Goes one component down, to name or what that is called there. */
static int add_component(struct local_paths *paths, struct buf *path, const char *name)
{
	const char *spelling, *folder = path->len ? path->data : "/";
	size_t len = path->len;
	struct stat st;
	int rc;

	if (is_lacking(paths, folder, name))
		return LOCAL_NONE;
	rc = buf_printf(path, "/%s", name);
	if (rc)
		return rc;
	if (stat(path->data, &st) == 0)
		return kind_of(&st);
	path->data[len] = '\0';
	path->len = len;
	rc = folder_names_find(paths->names, len ? path->data : "/", name, &spelling);
	if (rc != 1)
		return rc < 0 ? rc : LOCAL_NONE;
	rc = buf_printf(path, "/%s", spelling);
	if (rc)
		return rc;
	return stat(path->data, &st) == 0 ? kind_of(&st) : LOCAL_NONE;
}

int local_below(struct local_paths *paths, struct buf *here, const char *rest)
{
	int kind = LOCAL_FOLDER;

	while (*rest && kind == LOCAL_FOLDER) {
		size_t len = strcspn(rest, "/\\");
		struct buf name;

		buf_init(&name);
		if (len && (len != 1 || *rest != '.')) {
			kind = buf_add(&name, rest, len);
			if (!kind)
				kind = add_component(paths, here, name.data);
		}
		buf_release(&name);
		rest += len + (rest[len] != '\0');
	}
	return kind != LOCAL_FOLDER && *rest && kind > 0 ? LOCAL_NONE : kind;
}

/* Starts a path at the current folder unless it is a full one. */
static int add_start(struct buf *here, const char *path)
{
	size_t size = 256;
	char *folder = NULL, *text;
	int rc = -ERR_NOMEM;

	if (path[0] == '/')
		return 0;
	for (; size <= 65536; size *= 2) {
		text = realloc(folder, size);
		if (!text)
			break;
		folder = text;
		if (getcwd(folder, size)) {
			rc = strcmp(folder, "/") != 0 ? buf_add_text(here, folder) : 0;
			break;
		}
	}
	free(folder);
	return rc;
}

/* A path of this system, or a relative one of Windows. */
static int own_path(struct local_paths *paths, const char *path, struct buf *here)
{
	struct stat st;
	size_t start;
	int rc = add_start(here, path);

	start = here->len;
	if (!rc)
		rc = buf_printf(here, "%s%s", path[0] == '/' ? "" : "/", path);
	if (rc || stat(here->data, &st) == 0)
		return rc ? rc : kind_of(&st);
	here->len = start;
	here->data[start] = '\0';
	/* Another machine, or the root of nobody knows which drive. */
	return *path == '\\' ? LOCAL_NONE : local_below(paths, here, path);
}

/* Where Wine keeps its drives; an empty path when nobody knows. */
static int add_prefix(struct buf *path)
{
	char *prefix = os_env("WINEPREFIX"), *home = os_env("HOME");
	const char *base = prefix && *prefix ? prefix : home && *home ? home : NULL;
	int rc = base ? add_start(path, base) : 0;

	if (!rc && base)
		rc = buf_printf(path, "%s%s%s/dosdevices", *base == '/' ? "" : "/", base,
			base == prefix ? "" : "/.wine");
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

static int on_drive(struct local_paths *paths, const char *path, struct buf *here)
{
	char drive = (char)(path[0] | 0x20);
	struct stat st;
	int rc = add_prefix(here);

	if (!rc && here->len)
		rc = buf_printf(here, "/%c:", drive);
	if (rc)
		return rc;
	if (!here->len || stat(here->data, &st) || !S_ISDIR(st.st_mode)) {
		if (drive != 'z') /* by custom the whole of the machine */
			return LOCAL_NONE;
		buf_clear(here);
	}
	return local_below(paths, here, path + 3);
}

int local_typed(struct local_paths *paths, const char *path, struct buf *here)
{
	path = local_plain(path);
	buf_clear(here);
	return has_drive(path) ? on_drive(paths, path, here) : own_path(paths, path, here);
}

int local_foreign(struct local_paths *paths, const char *path, struct buf *here)
{
	path = local_plain(path);
	buf_clear(here);
	if (has_drive(path))
		return on_drive(paths, path, here);
	return path[0] == '/' && path[1] != '/' ? own_path(paths, path, here) : LOCAL_NONE;
}

bool local_is_other_system(const char *path)
{
	path = local_plain(path);
	return has_drive(path) && !strncasecmp(path + 3, "windows", 7) &&
	       (path[10] == '\\' || path[10] == '/');
}

int local_guess(struct local_paths *paths, const char *path, size_t *next, struct buf *here)
{
	if (!local_is_other_system(path))
		return LOCAL_NONE;
	while (*next < WINE_GUESSES) {
		size_t guess = (*next)++;
		int kind;

		buf_clear(here);
		kind = buf_printf(here, "%s/%s", wine_dirs[guess / WINE_KINDS],
			wine_kinds[guess % WINE_KINDS]);
		if (!kind && access(here->data, F_OK) == 0)
			kind = local_below(paths, here, path_base(path));
		if (kind < 0 || kind == LOCAL_FILE)
			return kind;
	}
	return LOCAL_NONE;
}

bool local_asks_servers(void)
{
	return false;
}
