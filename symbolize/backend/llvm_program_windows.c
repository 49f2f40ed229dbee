#include "symbolize/backend/llvm_program.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "core/os.h"
#include "core/utf_windows.h"

#define FOLDER_UNITS 32768

static bool is_full_path(const char *path)
{
	char letter = (char)(path[0] | 0x20);

	return (letter >= 'a' && letter <= 'z' && path[1] == ':' &&
		       (path[2] == '\\' || path[2] == '/')) ||
	       (path[0] == '\\' && path[1] == '\\');
}

/* Adds a path with its NUL to the list when it is that of a file. */
static int add(struct buf *list, const char *path)
{
	wchar_t *wide = wide_from_utf8(path);
	DWORD attributes = wide ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;

	free(wide);
	if (attributes == INVALID_FILE_ATTRIBUTES || attributes & FILE_ATTRIBUTE_DIRECTORY ||
		strchr(path, '"'))
		return 0;
	return buf_add(list, path, strlen(path) + 1);
}

static int add_folder(struct buf *list, const char *folder, size_t len)
{
	struct buf path;
	int rc;

	buf_init(&path);
	rc = buf_add(&path, folder, len);
	if (!rc)
		rc = buf_add_text(&path, "\\llvm-symbolizer.exe");
	if (!rc && is_full_path(path.data))
		rc = add(list, path.data);
	buf_release(&path);
	return rc;
}

static int add_ours(struct buf *list)
{
	wchar_t *wide = malloc(FOLDER_UNITS * sizeof(*wide));
	DWORD units = wide ? GetModuleFileNameW(NULL, wide, FOLDER_UNITS) : 0;
	char *path = units && units < FOLDER_UNITS ? utf8_from_wide(wide) : NULL;
	const char *name = path ? strrchr(path, '\\') : NULL;
	int rc = name ? add_folder(list, path, (size_t)(name - path)) : 0;

	free(wide);
	free(path);
	return rc;
}

/* PATH's folders, which may be in quotes. */
static int add_path(struct buf *list, const char *path)
{
	int rc = 0;

	while (!rc && *path) {
		size_t len = strcspn(path, ";");
		bool is_quoted = len >= 2 && path[0] == '"' && path[len - 1] == '"';

		rc = add_folder(list, path + is_quoted, is_quoted ? len - 2 : len);
		path += len + (path[len] == ';');
	}
	return rc;
}

int llvm_program_list(struct buf *list)
{
	char *named = os_env("HSYM_LLVM"), *path = named ? NULL : os_env("PATH");
	int rc;

	if (named)
		rc = is_full_path(named) ? add(list, named) : 0;
	else
		rc = add_ours(list);
	if (!rc && path)
		rc = add_path(list, path);
	free(named);
	free(path);
	return rc;
}
