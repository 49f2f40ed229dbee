/*
 * Paths on Windows. The kind of each full path is queried once and cached. Names of devices,
 * streams and wildcards are refused. Under Wine, the host's virtual and network folders below Z:
 * are also refused.
 */
#include "symbolize/files/local_path.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>

#include "core/base/hash.h"
#include "core/base/os.h"
#include "core/base/os_windows.h"
#include "core/base/text.h"

/* Maximum number of cached paths. The cache only saves time. */
#define PATHS_MAX 100000

struct local_paths {
	struct table kinds; /* maps a path to its enum local_kind */
};

struct local_paths *local_paths_new(void)
{
	struct local_paths *paths = xcalloc(1, sizeof(*paths));

	table_init(&paths->kinds);
	return paths;
}

void local_paths_free(struct local_paths *paths)
{
	table_release(&paths->kinds);
	free(paths);
}

/* Returns the kind of a path. Queries the system only once per path, because the file may be on a
 * network. */
static enum local_kind kind_of(struct local_paths *paths, const char *path)
{
	const uint64_t *known = table_find(&paths->kinds, path, strlen(path));
	wchar_t *wide = known ? NULL : wide_path(path);
	DWORD attributes = INVALID_FILE_ATTRIBUTES, mode = 0;
	enum local_kind kind = LOCAL_FILE;

	if (known)
		return (enum local_kind) * known;
	/* Suppress the dialog that Windows shows for a drive without a disk. */
	SetThreadErrorMode(SEM_FAILCRITICALERRORS, &mode);
	if (wide)
		attributes = GetFileAttributesW(wide);
	SetThreadErrorMode(mode, NULL);
	free(wide);
	if (attributes == INVALID_FILE_ATTRIBUTES || attributes & FILE_ATTRIBUTE_DEVICE)
		kind = LOCAL_NONE;
	else if (attributes & FILE_ATTRIBUTE_DIRECTORY)
		kind = LOCAL_FOLDER;
	if (paths->kinds.count < PATHS_MAX)
		table_add(&paths->kinds, path, strlen(path), (uint64_t)kind);
	return kind;
}

/* Returns true if the part of `name` before its first dot or blank is `word`, or `word` and a digit
 * if `wants_digit` is set. */
static bool is_device_word(const char *name, size_t len, const char *word, bool wants_digit)
{
	size_t i = 0;

	while (i < len && word[i] && text_upper(name[i]) == word[i])
		i++;
	if (word[i])
		return false;
	if (wants_digit) {
		/* The digit may be a superscript: C2 followed by B9, B2 or B3 in UTF-8. */
		if (i < len && name[i] >= '0' && name[i] <= '9')
			i++;
		else if (i + 1 < len && (unsigned char)name[i] == 0xc2)
			i += 2;
		else
			return false;
	}
	return i == len || name[i] == '.' || name[i] == ' ';
}

/* Returns true for names that are devices in every folder ("Naming Files, Paths, and Namespaces",
 * Microsoft Learn). */
static bool is_device(const char *name, size_t len)
{
	static const char *const words[] = {"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (is_device_word(name, len, words[i], false))
			return true;
	}
	return is_device_word(name, len, "COM", true) || is_device_word(name, len, "LPT", true);
}

/* Returns true for a valid file name without the colon of a stream. */
static bool is_name(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)name[i] < ' ' || strchr(":*?\"<>|", name[i]))
			return false;
	}
	return !is_device(name, len);
}

enum local_kind local_below(struct local_paths *paths, struct buf *here, const char *rest)
{
	enum local_kind kind = LOCAL_FOLDER;

	while (*rest && kind == LOCAL_FOLDER) {
		size_t len = strcspn(rest, "/\\");

		if (len && !is_name(rest, len)) {
			kind = LOCAL_NONE;
		} else if (len) {
			if (here->len && !strchr("/\\", here->data[here->len - 1]))
				buf_add_text(here, "\\");
			buf_add(here, rest, len);
			kind = kind_of(paths, here->data);
		}
		rest += len + (rest[len] != '\0');
	}
	return kind == LOCAL_FILE && *rest ? LOCAL_NONE : kind;
}

static void add_full_path(struct buf *here, const char *path)
{
	char *full = os_full_path(path);

	/* An invalid path is used as typed, and will not be found. */
	buf_add_text(here, full ? full : path);
	free(full);
}

enum local_kind local_typed(struct local_paths *paths, const char *path, struct buf *here)
{
	buf_clear(here);
	add_full_path(here, path);
	return kind_of(paths, here->data);
}

/* Returns true for paths to virtual or network folders of Wine's host, whose root is Z:. Does not
 * resolve links on the host. */
static bool leads_to_host(const char *full)
{
	static const char *const not_ours[] = {
		"Z:\\afs", "Z:\\dev", "Z:\\net", "Z:\\proc", "Z:\\sys"};

	for (size_t i = 0; i < sizeof(not_ours) / sizeof(*not_ours); i++) {
		size_t len = strlen(not_ours[i]);

		if (!_strnicmp(full, not_ours[i], len) && (!full[len] || full[len] == '\\'))
			return os_wine_version() != NULL;
	}
	return false;
}

enum local_kind local_foreign(struct local_paths *paths, const char *path, struct buf *here)
{
	char drive;

	path = local_plain(path);
	drive = text_upper(path[0]);
	buf_clear(here);
	if (drive < 'A' || drive > 'Z' || path[1] != ':' || (path[2] != '\\' && path[2] != '/'))
		return LOCAL_NONE;
	add_full_path(here, path);
	if (leads_to_host(here->data))
		return LOCAL_NONE;
	buf_clear(here);
	buf_printf(here, "%c:\\", path[0]);
	return local_below(paths, here, path + 3);
}

bool local_guess(struct local_paths *paths, const char *path, local_use *use, void *ctx)
{
	(void)paths;
	(void)path;
	(void)use;
	(void)ctx;
	return false;
}

bool local_leads_away(const char *path)
{
	(void)path;
	return false;
}

bool local_is_other_system(const char *path)
{
	(void)path;
	return false;
}

bool local_can_query_servers(void)
{
	return true;
}
