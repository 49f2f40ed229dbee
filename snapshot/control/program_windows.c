/* Program files: finds the file of a program, finds files next to hsnap, and starts a program. A
 * program is started only if the tracer can be loaded into it. */
#include <stdlib.h>

#include <windows.h>

#include "core/base/command_line.h"
#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/base/os_windows.h"
#include "core/pe/pe.h"
#include "snapshot/control/control.h"
#include "snapshot/control/control_windows.h"
#include "snapshot/control/refusal.h"
#include "snapshot/live/spawn_windows.h"

#define PATH_UNITS 32768

/* Returns the path where the system would find the program, or NULL if that path is not known. The
 * caller frees the path. */
static wchar_t *program_find(const char *program)
{
	wchar_t *wide = wide_from_utf8(program), *path = malloc(PATH_UNITS * sizeof(*path));
	DWORD len = wide && path ? SearchPathW(NULL, wide, L".exe", PATH_UNITS, path, NULL) : 0;

	free(wide);
	if (len && len < PATH_UNITS)
		return wide_path_long(path);
	free(path);
	return NULL;
}

/* Returns `path` with another file name. `base` is the start of the file name in `path`. */
static wchar_t *with_name(const wchar_t *path, size_t base, const wchar_t *name)
{
	wchar_t *result = malloc((base + wcslen(name) + 1) * sizeof(*result));

	if (result) {
		wmemcpy(result, path, base);
		wcscpy(result + base, name);
	}
	return wide_path_long(result);
}

static wchar_t *own_path(DWORD *len)
{
	wchar_t *path = malloc(PATH_UNITS * sizeof(*path));

	*len = path ? GetModuleFileNameW(NULL, path, PATH_UNITS) : 0;
	if (*len && *len < PATH_UNITS)
		return path;
	free(path);
	return NULL;
}

bool program_is_this(const wchar_t *path)
{
	DWORD len;
	wchar_t *own = own_path(&len);
	char *this = own ? wide_to_utf8(own) : NULL, *other = wide_to_utf8(path);
	bool same = this && other && os_same_file(this, other);

	free(own);
	free(this);
	free(other);
	return same;
}

/* Replaces a link's path by the path of the linked file. Returns false if that path is not
 * known. */
static bool follow_link(wchar_t *path, DWORD *len)
{
	HANDLE file = CreateFileW(path, FILE_READ_ATTRIBUTES,
		FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, OPEN_EXISTING, 0,
		NULL);

	if (file == INVALID_HANDLE_VALUE)
		return false;
	*len = GetFinalPathNameByHandleW(file, path, PATH_UNITS, 0);
	CloseHandle(file);
	if (!*len || *len >= PATH_UNITS)
		return false;
	if (*len > 6 && !wcsncmp(path, L"\\\\?\\", 4) && path[5] == L':') {
		*len -= 4;
		wmemmove(path, path + 4, *len + 1);
	}
	return true;
}

/* Returns the path of a file in the same folder as `path`, or NULL if the file does not exist. */
static wchar_t *beside(const wchar_t *path, size_t len, const wchar_t *name)
{
	wchar_t *found = NULL;

	while (len && path[len - 1] != L'\\' && path[len - 1] != L'/')
		len--;
	if (len)
		found = with_name(path, len, name);
	if (found && GetFileAttributesW(found) != INVALID_FILE_ATTRIBUTES)
		return found;
	free(found);
	return NULL;
}

wchar_t *program_beside(const wchar_t *name)
{
	DWORD len;
	wchar_t *path = own_path(&len), *found = path ? beside(path, len, name) : NULL;

	if (path && !found && follow_link(path, &len)) /* package managers create links */
		found = beside(path, len, name);
	free(path);
	return found;
}

static wchar_t *command_line(const char *const *argv)
{
	struct buf line;
	wchar_t *wide;

	buf_init(&line);
	command_line_add(&line, argv);
	wide = line.len ? wide_from_utf8(line.data) : NULL;
	buf_release(&line);
	return wide;
}

static int create(
	const struct program_run *run, struct spawn *spawn, const wchar_t *path, struct err *err)
{
	struct spawn_request request = {
		.command = command_line(run->argv), .flags = CREATE_SUSPENDED};
	int rc = 0;

	if (!request.command)
		return err_set(err, ERR_NOMEM, run->argv[0], NULL);
	/* Specify the path too: from a command line alone, the system does not find paths longer
	 * than the usual limit. */
	if (path && wcslen(path) >= MAX_PATH)
		request.image = path;
	spawn_pass_streams(&request.startup);
	if (!spawn_start(spawn, &request)) {
		rc = request.image ? err_set(err, ERR_START, run->argv[0],
					     "its path has more than %d characters, which this "
					     "system may refuse; start it by a shorter one",
					     MAX_PATH - 1) :
				     spawn_fail(GetLastError(), run->argv[0], err);
	}
	free(request.command);
	return rc;
}

int program_start(const struct program_run *run, struct spawn *spawn, struct err *err)
{
	wchar_t *path = program_find(run->argv[0]);
	struct control_facts facts;
	int rc;

	control_facts_of_host(&facts);
	facts.image_machine = path ? control_file_machine(path) : 0;
	rc = refusal_check(&facts, REFUSAL_RUN, run->argv[0], err);
	if (!rc && facts.image_machine &&
		(facts.image_machine == PE_MACHINE_I386) != (OUR_BITS == 32))
		rc = err_set(err, ERR_BITS, run->argv[0], NULL);
	if (!rc)
		rc = create(run, spawn, path, err);
	free(path);
	return rc;
}
