#include "symbolize/files/local_path.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/os.h"
#include "core/dump/model.h"

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

/* What stands below these is made up by the system, or lies on a machine that the path itself names. */
static const char *const not_ours[] = {"/afs", "/dev", "/net", "/proc", "/sys"};

#define LINKS_MAX 40

struct local_paths {
	struct folder_names *names;
	bool is_typed; /* the user chose the path, which may lead anywhere */
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

static bool is_not_ours(const char *folder)
{
	for (size_t i = 0; i < sizeof(not_ours) / sizeof(*not_ours); i++) {
		if (!strcmp(folder, not_ours[i]))
			return true;
	}
	return false;
}

/* Whether a full path leads to or through one of them, links in it being followed as the system does. It must
 * be known before anything asks the system about the path: that alone may mount another machine's files. */
static bool leads_away(const char *path)
{
	char rest[PATH_MAX], real[PATH_MAX] = "", link[PATH_MAX];
	size_t len = 0, left = strlen(path);
	int links = 0;

	if (left >= sizeof(rest))
		return true;
	memcpy(rest, path, left + 1);
	for (const char *at = rest + strspn(rest, "/"); *at; at += strspn(at, "/")) {
		size_t name = strcspn(at, "/"), from = len;
		ssize_t got;

		if (name == 2 && !memcmp(at, "..", 2)) {
			while (len && real[--len] != '/')
				;
			real[len] = '\0';
			at += name;
			continue;
		}
		if (len + 1 + name >= sizeof(real))
			return true;
		if (name != 1 || *at != '.') {
			real[len++] = '/';
			memcpy(real + len, at, name);
			real[len += name] = '\0';
		}
		at += name;
		if (is_not_ours(real))
			return true;
		got = readlink(real, link, sizeof(link));
		if (got < 0)
			continue; /* it is none */
		left = strlen(at);
		if (++links > LINKS_MAX || (size_t)got + left >= sizeof(rest))
			return true;
		len = *link == '/' ? 0 : from;
		real[len] = '\0';
		memmove(rest + got, at, left + 1);
		memcpy(rest, link, (size_t)got);
		at = rest;
	}
	return false;
}

/* Whether a stranger's name leads out of the folder, which path begins with, to what is not ours. */
static bool is_kept_out(const struct local_paths *paths, struct buf *path, size_t folder_len)
{
	bool is_out = !paths->is_typed && leads_away(path->data);

	if (is_out) { /* the user may have put us there */
		path->data[folder_len] = '\0';
		is_out = !leads_away(path->data);
		path->data[folder_len] = '/';
	}
	return is_out;
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

/* Goes on to name in the folder, which the path is up to len. */
static int look_at(struct local_paths *paths, struct buf *path, size_t len, const char *name)
{
	struct stat st;
	int rc;

	path->len = len;
	rc = buf_printf(path, "/%s", name);
	if (rc)
		return rc;
	return is_kept_out(paths, path, len) || stat(path->data, &st) ? LOCAL_NONE : kind_of(&st);
}

/* Goes one component down, to name or what that is called there. */
static int add_component(struct local_paths *paths, struct buf *path, const char *name)
{
	size_t len = path->len;
	const char *spelling;
	int rc;

	if (is_lacking(paths, len ? path->data : "/", name))
		return LOCAL_NONE;
	rc = look_at(paths, path, len, name);
	if (rc != LOCAL_NONE)
		return rc;
	path->data[len] = '\0';
	rc = folder_names_find(paths->names, len ? path->data : "/", name, &spelling);
	return rc == 1 ? look_at(paths, path, len, spelling) : rc;
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
	int kind;

	path = local_plain(path);
	buf_clear(here);
	paths->is_typed = true;
	kind = has_drive(path) ? on_drive(paths, path, here) : own_path(paths, path, here);
	paths->is_typed = false;
	return kind;
}

int local_foreign(struct local_paths *paths, const char *path, struct buf *here)
{
	path = local_plain(path);
	buf_clear(here);
	if (has_drive(path))
		return on_drive(paths, path, here);
	return path[0] == '/' && path[1] != '/' ? local_below(paths, here, path + 1) : LOCAL_NONE;
}

bool local_leads_away(const char *path)
{
	return path[0] == '/' && leads_away(path);
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
			kind = local_below(paths, here, module_path_base(path));
		if (kind < 0 || kind == LOCAL_FILE)
			return kind;
	}
	return LOCAL_NONE;
}

bool local_asks_servers(void)
{
	return false;
}
