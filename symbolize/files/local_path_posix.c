/*
 * Paths on POSIX. The process in the dump ran under Wine or on another machine. X:\a\b is searched
 * for through the prefix's dosdevices. Wine's own DLLs are also searched for by name in the folders
 * where Wine is usually installed. Untrusted paths must not leave this machine's disks, so links
 * are resolved here before any system call follows them.
 */
#include "symbolize/files/local_path.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/os.h"
#include "core/base/text.h"
#include "core/dump/model.h"
#include "core/io/file.h"

static const char *const wine_dirs[] = {"/usr/lib/x86_64-linux-gnu/wine", "/usr/lib/wine",
	"/usr/lib64/wine", "/usr/lib/i386-linux-gnu/wine", "/usr/lib32/wine",
	"/opt/wine-stable/lib64/wine", "/opt/wine-stable/lib/wine", "/opt/wine-devel/lib64/wine",
	"/opt/wine-devel/lib/wine", "/opt/wine-staging/lib64/wine", "/opt/wine-staging/lib/wine",
	"/usr/local/lib64/wine", "/usr/local/lib/wine"};
static const char *const wine_kinds[] = {"x86_64-windows", "i386-windows"};

#define WINE_KINDS (sizeof(wine_kinds) / sizeof(*wine_kinds))
#define WINE_GUESSES (sizeof(wine_dirs) / sizeof(*wine_dirs) * WINE_KINDS)

/* Folders of virtual files, or of files on another machine. */
static const char *const not_ours[] = {"/afs", "/dev", "/net", "/proc", "/sys"};

#define LINKS_MAX 40

/* flag in a folder's number: all names in the folder are cached */
#define IS_WHOLE (UINT64_C(1) << 63)

/* Limit for the number of cached names in all folders, about 100 bytes each. Names beyond the limit
 * are found only as spelled. */
#define FOLDER_NAMES_MAX 1000000

struct local_paths {
	struct table folders; /* maps the path of a cached folder to its number */
	/* maps folder number and lower-case name to a pointer to the spelling */
	struct table names;
	struct arena arena; /* spellings */
	struct buf key;
	bool is_typed; /* the user typed the path, so it may lead anywhere */
};

struct local_paths *local_paths_new(void)
{
	struct local_paths *paths = xcalloc(1, sizeof(*paths));

	table_init(&paths->folders);
	table_init(&paths->names);
	arena_init(&paths->arena);
	buf_init(&paths->key);
	return paths;
}

void local_paths_free(struct local_paths *paths)
{
	table_release(&paths->folders);
	table_release(&paths->names);
	arena_release(&paths->arena);
	buf_release(&paths->key);
	free(paths);
}

/* ---------------------------------------------------------------- names in any case */

/* Returns the entry of paths->names for a name in a cached folder, or NULL. Leaves the name's key
 * in paths->key. */
static uint64_t *find_spelling(struct local_paths *paths, uint64_t folder, const char *name)
{
	struct buf *key = &paths->key;

	folder &= ~IS_WHOLE;
	buf_clear(key);
	buf_add(key, &folder, sizeof(folder));
	buf_add_text(key, name);
	for (size_t i = sizeof(folder); i < key->len; i++)
		key->data[i] = text_lower(key->data[i]);
	return table_find(&paths->names, key->data, key->len);
}

/* Caches a name. Of several names that differ only in case, the first in byte order stays. Returns
 * 1 if the cache is full. */
static int cache_name(void *ctx, const struct folder_entry *entry)
{
	struct local_paths *paths = ctx;
	const char *name = entry->name;
	uint64_t *known = find_spelling(paths, paths->folders.count, name), spelling;

	if (known && strcmp((const char *)(uintptr_t)*known, name) <= 0)
		return 0;
	if (!known && paths->names.count >= FOLDER_NAMES_MAX)
		return 1;
	spelling = (uint64_t)(uintptr_t)arena_text(&paths->arena, name, strlen(name));
	if (known)
		*known = spelling;
	else
		table_add(&paths->names, paths->key.data, paths->key.len, spelling);
	return 0;
}

/* Returns the spelling of `name` in the folder, ignoring case, or NULL if the folder has no such
 * name. Reads the folder when it is first used; an unreadable folder counts as empty. */
static const char *spelling_of(struct local_paths *paths, const char *folder, const char *name)
{
	uint64_t *known = table_find(&paths->folders, folder, strlen(folder)), *spelling;
	uint64_t number = known ? *known : paths->folders.count;

	if (!known) {
		if (!folder_each(folder, FOLDER_NAMES, cache_name, paths, NULL))
			number |= IS_WHOLE;
		table_add(&paths->folders, folder, strlen(folder), number);
	}
	spelling = find_spelling(paths, number, name);
	return spelling ? (const char *)(uintptr_t)*spelling : NULL;
}

/* Returns true if the cached names prove that `name` does not exist. Always returns false for
 * a name with non-ASCII letters, because some file systems ignore the case of those, too. */
static bool is_lacking(struct local_paths *paths, const char *folder, const char *name)
{
	const uint64_t *number = table_find(&paths->folders, folder, strlen(folder));

	for (const char *c = name; *c; c++) {
		if ((unsigned char)*c >= 0x80)
			return false;
	}
	return strcmp(name, "..") != 0 && number && *number & IS_WHOLE &&
	       !find_spelling(paths, *number, name);
}

/* ---------------------------------------------------------------- files and folders */

/* Classifies a file. Empty files are refused, because virtual files (/proc) have size 0 and reading
 * some of them never ends. */
static enum local_kind kind_of(const struct stat *st)
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

/* Returns true if a full path leads to or through one of the folders `not_ours`. Resolves links as
 * the system does. Must be called before any system call on the path, because even stat() may mount
 * another machine's files. */
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
			continue; /* not a link */
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

/* Returns true if an untrusted name leads to one of the folders `not_ours`, but the folder that
 * contains the name does not. `path` is that folder's path, of length `folder_len`, followed by the
 * name. */
static bool is_kept_out(const struct local_paths *paths, struct buf *path, size_t folder_len)
{
	bool is_out = !paths->is_typed && leads_away(path->data);

	if (is_out) { /* allowed if the folder itself is in `not_ours`: the user has chosen it */
		path->data[folder_len] = '\0';
		is_out = !leads_away(path->data);
		path->data[folder_len] = '/';
	}
	return is_out;
}

/* Shortens `path` to `len` bytes, and appends '/' and `name`. Returns the kind of the new path. */
static enum local_kind look_at(
	struct local_paths *paths, struct buf *path, size_t len, const char *name)
{
	struct stat st;

	path->len = len;
	buf_printf(path, "/%s", name);
	return is_kept_out(paths, path, len) || stat(path->data, &st) ? LOCAL_NONE : kind_of(&st);
}

/* Appends one component to `path`: `name`, or its spelling in the folder. */
static enum local_kind add_component(struct local_paths *paths, struct buf *path, const char *name)
{
	size_t len = path->len;
	const char *spelling;
	enum local_kind kind;

	if (is_lacking(paths, len ? path->data : "/", name))
		return LOCAL_NONE;
	kind = look_at(paths, path, len, name);
	if (kind != LOCAL_NONE)
		return kind;
	path->data[len] = '\0';
	spelling = spelling_of(paths, len ? path->data : "/", name);
	return spelling ? look_at(paths, path, len, spelling) : LOCAL_NONE;
}

enum local_kind local_below(struct local_paths *paths, struct buf *here, const char *rest)
{
	enum local_kind kind = LOCAL_FOLDER;

	while (*rest && kind == LOCAL_FOLDER) {
		size_t len = strcspn(rest, "/\\");
		struct buf name;

		buf_init(&name);
		if (len && (len != 1 || *rest != '.')) {
			buf_add(&name, rest, len);
			kind = add_component(paths, here, name.data);
		}
		buf_release(&name);
		rest += len + (rest[len] != '\0');
	}
	return kind == LOCAL_FILE && *rest ? LOCAL_NONE : kind;
}

/* For a relative path, starts with the current folder. Returns false if the current folder is
 * unknown. */
static bool add_start(struct buf *here, const char *path)
{
	char folder[PATH_MAX];

	if (path[0] == '/')
		return true;
	if (!getcwd(folder, sizeof(folder)))
		return false;
	buf_printf(here, "%s/", strcmp(folder, "/") != 0 ? folder : "");
	return true;
}

/* Finds a path in this system's form, or a relative Windows path. */
static enum local_kind own_path(struct local_paths *paths, const char *path, struct buf *here)
{
	struct stat st;
	size_t start;

	if (!add_start(here, path))
		return LOCAL_NONE;
	start = here->len;
	buf_add_text(here, path);
	if (!stat(here->data, &st))
		return kind_of(&st);
	here->len = start ? start - 1 : 0; /* without the trailing slash */
	here->data[here->len] = '\0';
	/* A path that starts with '\\' is a network path, or starts at the root of an unknown
	 * drive. */
	return *path == '\\' ? LOCAL_NONE : local_below(paths, here, path);
}

/* Appends the folder of Wine's drives, or nothing if that folder is unknown. */
static void add_prefix(struct buf *path)
{
	char *prefix = os_env("WINEPREFIX"), *home = os_env("HOME");
	const char *base = prefix && *prefix ? prefix : home && *home ? home : NULL;

	if (base && add_start(path, base))
		buf_printf(path, "%s%s/dosdevices", base, base == prefix ? "" : "/.wine");
	free(prefix);
	free(home);
}

static bool has_drive(const char *path)
{
	char letter = (char)(path[0] | 0x20);

	return letter >= 'a' && letter <= 'z' && path[1] == ':' &&
	       (path[2] == '\\' || path[2] == '/');
}

static enum local_kind on_drive(struct local_paths *paths, const char *path, struct buf *here)
{
	char drive = (char)(path[0] | 0x20);
	struct stat st;

	add_prefix(here);
	if (here->len)
		buf_printf(here, "/%c:", drive);
	if (!here->len || stat(here->data, &st) || !S_ISDIR(st.st_mode)) {
		if (drive != 'z') /* by convention, Z: is the root of the machine */
			return LOCAL_NONE;
		buf_clear(here);
	}
	return local_below(paths, here, path + 3);
}

enum local_kind local_typed(struct local_paths *paths, const char *path, struct buf *here)
{
	enum local_kind kind;

	path = local_plain(path);
	buf_clear(here);
	paths->is_typed = true;
	kind = has_drive(path) ? on_drive(paths, path, here) : own_path(paths, path, here);
	paths->is_typed = false;
	return kind;
}

enum local_kind local_foreign(struct local_paths *paths, const char *path, struct buf *here)
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

bool local_guess(struct local_paths *paths, const char *path, local_use *use, void *ctx)
{
	bool is_used = false, is_other = local_is_other_system(path);
	struct buf here;

	buf_init(&here);
	for (size_t i = 0; is_other && !is_used && i < WINE_GUESSES; i++) {
		buf_clear(&here);
		buf_printf(&here, "%s/%s", wine_dirs[i / WINE_KINDS], wine_kinds[i % WINE_KINDS]);
		is_used = !access(here.data, F_OK) &&
			  local_below(paths, &here, module_path_base(path)) == LOCAL_FILE &&
			  use(ctx, here.data);
	}
	buf_release(&here);
	return is_used;
}

bool local_can_query_servers(void)
{
	return false;
}
