#include "symbolize/files/local_path.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>

#include "core/base/hash.h"
#include "core/base/os_windows.h"
#include "core/base/text.h"

/* Folders whose being there or not is remembered: more only cost time. */
#define FOLDERS_MAX 100000
/* A folder that lacked so much is read: it may be far away, and large. */
#define MISSES 64

struct local_paths {
	struct table folders; /* path -> its enum local_kind */
	struct table misses; /* path of a folder -> how many names it lacked */
	struct folder_names *names;
};

struct local_paths *local_paths_new(void)
{
	struct local_paths *paths = calloc(1, sizeof(*paths));

	if (!paths)
		return NULL;
	table_init(&paths->folders);
	table_init(&paths->misses);
	paths->names = folder_names_new(FOLDER_NAMES_MAX);
	if (!paths->names) {
		local_paths_free(paths);
		paths = NULL;
	}
	return paths;
}

void local_paths_free(struct local_paths *paths)
{
	if (!paths)
		return;
	table_release(&paths->folders);
	table_release(&paths->misses);
	folder_names_free(paths->names);
	free(paths);
}

static int kind_of(const char *path)
{
	wchar_t *wide = wide_path(path);
	DWORD attributes = INVALID_FILE_ATTRIBUTES, mode = 0;

	/* No window for a drive without a disk in it. */
	SetThreadErrorMode(SEM_FAILCRITICALERRORS, &mode);
	if (wide)
		attributes = GetFileAttributesW(wide);
	SetThreadErrorMode(mode, NULL);
	free(wide);
	if (attributes == INVALID_FILE_ATTRIBUTES || attributes & FILE_ATTRIBUTE_DEVICE)
		return LOCAL_NONE;
	return attributes & FILE_ATTRIBUTE_DIRECTORY ? LOCAL_FOLDER : LOCAL_FILE;
}

/* The same of something that more is looked for in, asked once: it may be far away. */
static int folder_kind(struct local_paths *paths, const char *path)
{
	uint64_t *known = table_find(&paths->folders, path, strlen(path));
	int kind;

	if (known)
		return (int)*known;
	kind = kind_of(path);
	if (paths->folders.count < FOLDERS_MAX &&
		table_add(&paths->folders, path, strlen(path), (uint64_t)kind))
		return -ERR_NOMEM;
	return kind;
}

/* Whether name, up to its first dot or blank, is word and then a digit when it wants one. */
static bool is_device_word(const char *name, size_t len, const char *word, bool wants_digit)
{
	size_t i = 0;

	while (i < len && word[i] && text_upper(name[i]) == word[i])
		i++;
	if (word[i])
		return false;
	if (wants_digit) {
		/* Or one of three superscript ones, C2 and B9, B2, B3 in UTF-8. */
		if (i < len && name[i] >= '0' && name[i] <= '9')
			i++;
		else if (i + 1 < len && (unsigned char)name[i] == 0xc2)
			i += 2;
		else
			return false;
	}
	return i == len || name[i] == '.' || name[i] == ' ';
}

/* Names that mean a device in every folder, after Microsoft's "Naming Files, Paths, and Namespaces". */
static bool is_device(const char *name, size_t len)
{
	return is_device_word(name, len, "CON", false) || is_device_word(name, len, "PRN", false) ||
	       is_device_word(name, len, "AUX", false) || is_device_word(name, len, "NUL", false) ||
	       is_device_word(name, len, "CONIN$", false) ||
	       is_device_word(name, len, "CONOUT$", false) ||
	       is_device_word(name, len, "COM", true) || is_device_word(name, len, "LPT", true);
}

/* What a name of a file cannot hold, and the colon of streams. */
static bool is_name(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)name[i] < ' ' || strchr(":*?\"<>|", name[i]))
			return false;
	}
	return !is_device(name, len);
}

/* Whether the folder's names, as they are known, leave no doubt. The system folds letters beyond ASCII
 * too, passes over dots and blanks at the end, and files may have short names (A~1). */
static bool is_lacking(struct local_paths *paths, const char *folder, const char *name)
{
	size_t len = strlen(name);

	for (const char *c = name; *c; c++) {
		if ((unsigned char)*c >= 0x80 || *c == '~')
			return false;
	}
	return name[len - 1] != '.' && name[len - 1] != ' ' &&
	       folder_names_lack(paths->names, folder, name);
}

/* Counts what a folder lacks, and has its names read in the end. 0 or -ERR_NOMEM. */
static int count_miss(struct local_paths *paths, const char *folder, const char *name)
{
	uint64_t *misses = table_find(&paths->misses, folder, strlen(folder));
	const char *spelling;
	int rc = 0;

	if (!misses && paths->misses.count < FOLDERS_MAX)
		return table_add(&paths->misses, folder, strlen(folder), 1);
	if (misses && ++*misses == MISSES)
		rc = folder_names_find(paths->names, folder, name, &spelling);
	return rc < 0 ? rc : 0;
}

/* Goes one component down. */
static int add_component(
	struct local_paths *paths, struct buf *path, const char *name, bool is_last)
{
	bool has_slash = path->len && strchr("/\\", path->data[path->len - 1]);
	struct buf folder;
	int rc;

	if (is_lacking(paths, path->data, name))
		return LOCAL_NONE;
	buf_init(&folder);
	rc = buf_add_text(&folder, path->data);
	if (!rc)
		rc = buf_printf(path, "%s%s", has_slash ? "" : "\\", name);
	if (!rc) {
		rc = is_last ? kind_of(path->data) : folder_kind(paths, path->data);
		if (rc == LOCAL_NONE)
			rc = count_miss(paths, folder.data, name);
	}
	buf_release(&folder);
	return rc;
}

int local_below(struct local_paths *paths, struct buf *here, const char *rest)
{
	int kind = LOCAL_FOLDER;

	while (*rest && kind == LOCAL_FOLDER) {
		size_t len = strcspn(rest, "/\\");
		struct buf name;

		buf_init(&name);
		if (len) {
			kind = buf_add(&name, rest, len);
			if (!kind && is_name(rest, len))
				kind = add_component(paths, here, name.data, !rest[len]);
		}
		buf_release(&name);
		rest += len + (rest[len] != '\0');
	}
	return kind > 0 && kind != LOCAL_FOLDER && *rest ? LOCAL_NONE : kind;
}

static int add_full_path(struct buf *here, const char *path)
{
	wchar_t *wide = wide_from_utf8(path), *full = NULL;
	DWORD units = wide ? GetFullPathNameW(wide, 0, NULL, NULL) : 0;
	char *text = NULL;
	int rc;

	if (units)
		full = malloc(units * sizeof(*full));
	if (full && GetFullPathNameW(wide, units, full, NULL) < units)
		text = wide_to_utf8(full);
	/* What is no path is not there, as it was typed. */
	rc = buf_add_text(here, text ? text : path);
	free(text);
	free(full);
	free(wide);
	return rc;
}

int local_typed(struct local_paths *paths, const char *path, struct buf *here)
{
	int rc;

	buf_clear(here);
	rc = add_full_path(here, path);
	return rc ? rc : folder_kind(paths, here->data);
}

/* Wine's Z: is the host's root, where these are made up by its system or lead to another machine. Links
 * there are not seen through. */
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

int local_foreign(struct local_paths *paths, const char *path, struct buf *here)
{
	char drive;
	int rc;

	path = local_plain(path);
	drive = text_upper(path[0]);
	buf_clear(here);
	if (drive < 'A' || drive > 'Z' || path[1] != ':' || (path[2] != '\\' && path[2] != '/'))
		return LOCAL_NONE;
	rc = add_full_path(here, path);
	if (!rc && leads_to_host(here->data))
		return LOCAL_NONE;
	buf_clear(here);
	rc = rc ? rc : buf_printf(here, "%c:\\", path[0]);
	return rc ? rc : local_below(paths, here, path + 3);
}

int local_guess(struct local_paths *paths, const char *path, size_t *next, struct buf *here)
{
	(void)paths;
	(void)path;
	(void)next;
	(void)here;
	return LOCAL_NONE;
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

bool local_asks_servers(void)
{
	return true;
}
