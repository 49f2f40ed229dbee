#include "snapshot/schedule/task/task_paths.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/text.h"
#include "snapshot/schedule/task/task_xml.h"
#include "snapshot/series/program_name.h"

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Bytes up to where names begin; 0: it is no full path. */
static size_t root_length(const char *path)
{
	size_t server, share;

	if (is_letter(path[0]) && path[1] == ':' && path[2] == '\\')
		return 3;
	if (path[0] != '\\' || path[1] != '\\')
		return 0;
	server = strcspn(path + 2, "\\");
	if (!server || !path[2 + server] || path[2] == '.')
		return 0;
	share = strcspn(path + 3 + server, "\\");
	return share ? 2 : 0;
}

/* As Windows counts, with the quotes; 0: no text, or what no name has. */
static size_t count_units(const char *path, size_t root)
{
	size_t units = 2, len;
	uint32_t code;

	for (size_t at = 0; path[at]; at += len) {
		len = text_utf8(path + at, &code);
		if (!len || text_obeyed(path + at) || (at >= root && strchr("/:*?\"<>|", path[at])))
			return 0;
		units += code > 0xffff ? 2 : 1;
	}
	return units;
}

/* What is wrong with one of the names in it, which Windows would take for another one or for none; NULL: nothing.
 * The last may be empty: the path ends in a backslash, or is a drive's root. */
static const char *bad_name(const char *path, size_t root)
{
	const char *at = path + root;
	size_t len;

	for (; *at; at += len + (at[len] == '\\')) {
		len = strcspn(at, "\\");
		if (!len)
			return "it has two backslashes in a row";
		if (at[len - 1] == '.' || at[len - 1] == ' ')
			return "a name in it ends in a dot or a blank";
		if (program_name_is_device(at, len))
			return "a name in it is that of a device";
	}
	return NULL;
}

int task_path_check(const char *path, struct err *err)
{
	size_t root = root_length(path), units = root ? count_units(path, root) : 0;
	const char *wrong = root ? bad_name(path, root) : NULL;

	if (!root)
		return err_set(err, ERR_USAGE, path, "give a full path, as C:\\dumps");
	if (!units)
		return err_set(err, ERR_USAGE, path, "it has a character that paths do not have");
	if (wrong)
		return err_set(err, ERR_USAGE, path, "%s", wrong);
	if (strchr(path, '%') || strstr(path, "$("))
		return err_set(err, ERR_USAGE, path,
			"%% and $( are for variables there; choose another path");
	if (units > TASK_PATH_UNITS)
		return err_set(err, ERR_USAGE, path,
			"Task Scheduler has room for %d characters of a path", TASK_PATH_UNITS - 2);
	return 0;
}
