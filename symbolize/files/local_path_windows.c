#include "symbolize/files/local_path.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>

#include "core/table.h"
#include "core/utf_windows.h"

/* Folders whose being there or not is remembered: more only cost time. */
#define FOLDERS_MAX 100000

struct local_paths {
	struct table folders; /* path -> its enum local_kind */
};

struct local_paths *local_paths_new(void)
{
	struct local_paths *paths = calloc(1, sizeof(*paths));

	if (paths)
		table_init(&paths->folders);
	return paths;
}

void local_paths_free(struct local_paths *paths)
{
	if (paths)
		table_release(&paths->folders);
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

static char upper(char c)
{
	return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

/* Whether name, up to its first dot or blank, is word and then a digit when it wants one. */
static bool is_device_word(const char *name, size_t len, const char *word, bool wants_digit)
{
	size_t i = 0;

	while (i < len && word[i] && upper(name[i]) == word[i])
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

int local_below(struct local_paths *paths, struct buf *here, const char *rest)
{
	int kind = LOCAL_FOLDER;

	while (*rest && kind == LOCAL_FOLDER) {
		size_t len = strcspn(rest, "/\\");
		bool has_slash = here->len && strchr("/\\", here->data[here->len - 1]);

		if (len) {
			kind = is_name(rest, len) ? buf_printf(here, "%s%.*s",
							    has_slash ? "" : "\\", (int)len, rest) :
						    LOCAL_NONE;
			if (!is_name(rest, len))
				return LOCAL_NONE;
			if (!kind)
				kind = rest[len] ? folder_kind(paths, here->data) :
						   kind_of(here->data);
		}
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
		text = utf8_from_wide(full);
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

int local_foreign(struct local_paths *paths, const char *path, struct buf *here)
{
	char drive;
	int rc;

	path = local_plain(path);
	drive = upper(path[0]);
	buf_clear(here);
	if (drive < 'A' || drive > 'Z' || path[1] != ':' || (path[2] != '\\' && path[2] != '/'))
		return LOCAL_NONE;
	rc = buf_printf(here, "%c:\\", path[0]);
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

bool local_is_other_system(const char *path)
{
	(void)path;
	return false;
}

bool local_asks_servers(void)
{
	return true;
}
