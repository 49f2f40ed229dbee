/* What only this system can tell for a task: full paths, this program, and who runs it. Where its files lie is in
 * scheduler_places_windows.c. */
#include "snapshot/schedule/scheduler_windows.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <windows.h>
#include <sddl.h>

#include "core/base/os.h"
#include "core/base/os_windows.h"
#include "snapshot/schedule/scheduler.h"
#include "snapshot/schedule/task.h"

/* Adds text, which goes; NULL: out of memory. */
static int add_taken(struct buf *to, char *text, struct err *err)
{
	int rc = text ? buf_add_text(to, text) : -ERR_NOMEM;

	free(text);
	return rc ? err_set(err, ERR_NOMEM, NULL, NULL) : 0;
}

int scheduler_full_path(struct buf *full, const char *path, struct err *err)
{
	return add_taken(full, os_full_path(path), err);
}

/* The path may be longer than the system's usual limit: then it is not cut, but refused later. */
int scheduler_program(struct buf *path, struct err *err)
{
	DWORD units = 32768;
	wchar_t *wide = malloc(units * sizeof(*wide));
	DWORD len = wide ? GetModuleFileNameW(NULL, wide, units) : 0;
	int rc = add_taken(path, len && len < units ? utf8_from_wide(wide) : NULL, err);

	free(wide);
	return rc;
}

static char *sid_text(HANDLE token)
{
	union {
		TOKEN_USER user;
		char room[sizeof(TOKEN_USER) + SECURITY_MAX_SID_SIZE];
	} info;
	wchar_t *wide = NULL;
	DWORD size;
	char *text;

	if (!GetTokenInformation(token, TokenUser, &info, sizeof(info), &size) ||
		!ConvertSidToStringSidW(info.user.User.Sid, &wide))
		return NULL;
	text = utf8_from_wide(wide);
	LocalFree(wide);
	return text;
}

int scheduler_user(struct buf *user, struct err *err)
{
	HANDLE token;
	char text[300], *sid;
	int rc;

	if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &token))
		return err_set(err, ERR_SYSTEM, "--as-user", "%s",
			windows_error(GetLastError(), text, sizeof(text)));
	sid = sid_text(token);
	rc = add_taken(user, sid, err);
	CloseHandle(token);
	return rc;
}

/* On the word of a task no other machine is asked, which would learn who asks. */
static bool is_own_program(const char *own, const char *program)
{
	return (program[0] != '\\' || own[0] == '\\') && os_same_file(own, program);
}

int scheduler_own_program(const char *program, struct buf *own, struct err *err)
{
	static const char *const siblings[] = {"hsnap.exe", "hsnap32.exe"};
	int rc = scheduler_program(own, err);
	size_t home = rc ? 0 : (size_t)(strrchr(own->data, '\\') + 1 - own->data);
	bool is_own = !rc && is_own_program(own->data, program);

	for (size_t i = 0; !rc && !is_own && i < sizeof(siblings) / sizeof(*siblings); i++) {
		own->len = home;
		rc = buf_add_text(own, siblings[i]) ? err_set(err, ERR_NOMEM, NULL, NULL) : 0;
		is_own = !rc && is_own_program(own->data, program);
	}
	return rc ? rc : is_own;
}

/* Where the files of a task lie: whether the task will find them, and who else may change them. */

/* ---------------------------------------------------------------- drives */

/* What subst makes is a name for a folder: "\??\C:\folder" ("QueryDosDevice function", Microsoft Learn). */
static bool is_subst(const wchar_t *drive)
{
	wchar_t target[MAX_PATH + 8];

	return QueryDosDeviceW(drive, target, MAX_PATH + 8) && !wcsncmp(target, L"\\??\\", 4);
}

/* Letters of the network and of subst are those of one session: no task has them. */
static int check_drive(const char *path, bool is_system, struct err *err)
{
	wchar_t root[] = L"?:\\", drive[] = L"?:";

	if (path[1] != ':')
		return 0;
	root[0] = drive[0] = (wchar_t)path[0];
	if (is_subst(drive))
		return err_set(err, ERR_USAGE, path,
			"%c: is made by subst, which tasks do not see; give the folder itself",
			path[0]);
	if (GetDriveTypeW(root) != DRIVE_REMOTE)
		return 0;
	return err_set(err, ERR_USAGE, path,
		"%c: is a network drive, which tasks do not have; give %s", path[0],
		is_system ? "\\\\server\\share, where this machine's account has the rights" :
			    "a folder on this machine");
}

/* ---------------------------------------------------------------- folders */

/* Makes every folder on the way; one that is there already is no failure. */
static void make_all(wchar_t *path, size_t from, SECURITY_ATTRIBUTES *rights)
{
	for (wchar_t *at = path + from; *at; at++) {
		if (*at != L'\\')
			continue;
		*at = L'\0';
		CreateDirectoryW(path, rights);
		*at = L'\\';
	}
	CreateDirectoryW(path, rights);
}

static int make_folder(const char *path, SECURITY_ATTRIBUTES *rights, struct err *err)
{
	wchar_t *wide = wide_path(path);
	DWORD attributes, error;
	char text[300];

	if (!wide)
		return err_set(err, ERR_NOMEM, NULL, NULL);
	make_all(wide, wcscspn(wide, L"\\") + 1, rights);
	error = GetLastError();
	attributes = GetFileAttributesW(wide);
	free(wide);
	if (attributes != INVALID_FILE_ATTRIBUTES && attributes & FILE_ATTRIBUTE_DIRECTORY)
		return 0;
	return err_set(err, ERR_CREATE, path, "%s", windows_error(error, text, sizeof(text)));
}

/* What is made for the system nobody else may write into from the first moment on. */
static int make_for_system(const char *path, struct err *err)
{
	SECURITY_ATTRIBUTES rights = {.nLength = sizeof(rights)};
	char text[300];
	int rc;

	if (!ConvertStringSecurityDescriptorToSecurityDescriptorW(
		    RIGHTS_OF_ADMINISTRATORS, SDDL_REVISION_1, &rights.lpSecurityDescriptor, NULL))
		return err_set(err, ERR_SYSTEM, path, "%s",
			windows_error(GetLastError(), text, sizeof(text)));
	rc = make_folder(path, &rights, err);
	LocalFree(rights.lpSecurityDescriptor);
	return rc;
}

/* ---------------------------------------------------------------- all of it */

static int check_program(const char *path, struct err *err)
{
	struct os_file file;
	int rc = os_open(&file, path, err);

	if (!rc)
		os_close(&file);
	return rc;
}

/* len bytes of path; a drive's root keeps its end. */
static int warn_of(const char *path, size_t len, struct err *err)
{
	char *place = len ? calloc(1, len + 2) : NULL;
	wchar_t *wide = NULL;

	if (place) {
		memcpy(place, path, len);
		if (place[len - 1] == ':')
			place[len] = '\\';
		wide = wide_path(place);
	}
	if (wide && rights_of_path_are_everybodys(wide))
		fprintf(stderr,
			"hsnap: %s: warning: every user may change it, and so have the rights of "
			"the task; leave that to administrators\n",
			place);
	free(place);
	free(wide);
	return wide ? 0 : err_set(err, ERR_NOMEM, NULL, NULL);
}

int scheduler_places(const char *folder, const char *program, bool is_system, struct err *err)
{
	size_t home = (size_t)(strrchr(program, '\\') - program);
	int rc = check_drive(folder, is_system, err);

	if (!rc)
		rc = check_drive(program, is_system, err);
	if (!rc)
		rc = check_program(program, err);
	if (!rc)
		rc = is_system ? make_for_system(folder, err) : make_folder(folder, NULL, err);
	if (!rc)
		rc = warn_of(folder, strlen(folder), err);
	if (!rc)
		rc = warn_of(program, strlen(program), err);
	return rc ? rc : warn_of(program, home, err);
}

static int nomem(struct err *err)
{
	return err_set(err, ERR_NOMEM, NULL, NULL);
}

/* ---------------------------------------------------------------- reading one */

static bool is_same(const struct buf *a, const struct buf *b)
{
	return a->len == b->len && (!a->len || !memcmp(a->data, b->data, a->len));
}

static bool is_same_task(const struct task_read *a, const struct task_read *b)
{
	return is_same(&a->program, &b->program) && is_same(&a->arguments, &b->arguments) &&
	       is_same(&a->folder, &b->folder);
}

static int read_by_com(
	struct scheduler_com *com, const char *name, struct task_read *task, struct err *err)
{
	wchar_t *wide = wide_from_utf8(name);
	struct buf bytes;
	HRESULT hr;
	int rc;

	buf_init(&bytes);
	hr = wide ? scheduler_com_xml(com, wide, &bytes) : E_OUTOFMEMORY;
	rc = FAILED(hr) ? scheduler_fail(hr, name, err) :
			  task_read(task, bytes.data, bytes.len, name, err);
	buf_release(&bytes);
	free(wide);
	return rc;
}

static int read_stored(const char *name, struct task_read *task, struct err *err)
{
	struct buf bytes;
	int rc;

	buf_init(&bytes);
	rc = task_store_read(&bytes, name, err);
	if (!rc)
		rc = task_read(task, bytes.data ? bytes.data : "", bytes.len, name, err);
	buf_release(&bytes);
	return rc;
}

/* com may be NULL: it cannot be had. */
static int read_task(
	struct scheduler_com *com, const char *name, struct task_read *task, struct err *err)
{
	int rc = com ? read_by_com(com, name, task, err) : read_stored(name, task, err);

	return rc == -ERR_TASK && com && task_store_is_wine() ? read_stored(name, task, err) : rc;
}

/* The connection, or NULL with 0: schtasks.exe may do. */
static int open_com(struct scheduler_com **com, struct err *err)
{
	HRESULT hr = scheduler_com_open(com);

	if (SUCCEEDED(hr))
		return 0;
	*com = NULL;
	return scheduler_is_missing(hr) ? 0 : scheduler_fail(hr, "schedule", err);
}

/* ---------------------------------------------------------------- adding */

struct adding {
	const struct scheduler_adding *asked;
	const char *name;
	wchar_t *wide_name, *wide_xml;
	struct buf bytes; /* as a file */
};

static int prepare(struct adding *adding, struct err *err)
{
	adding->wide_name = wide_from_utf8(adding->name);
	adding->wide_xml = wide_from_utf8(adding->asked->xml);
	buf_init(&adding->bytes);
	if (!adding->wide_name || !adding->wide_xml ||
		task_xml_utf16(&adding->bytes, adding->asked->xml))
		return nomem(err);
	return 0;
}

static int add(struct scheduler_com *com, const struct adding *adding, struct err *err)
{
	HRESULT hr;

	if (!com)
		return schtasks_add(adding->name, &adding->bytes, adding->asked->may_replace, err);
	hr = scheduler_com_add(com, adding->wide_name, adding->wide_xml, adding->asked->is_system,
		adding->asked->may_replace);
	if (scheduler_warning(hr))
		fprintf(stderr, "hsnap: %s: warning: %s\n", adding->name, scheduler_warning(hr));
	return FAILED(hr) ? scheduler_fail(hr, adding->name, err) : 0;
}

/* Whether what is registered now is what was meant. */
static int check(struct scheduler_com *com, const struct adding *adding, struct err *err)
{
	struct task_read meant, kept;
	int rc;

	task_read_init(&meant);
	task_read_init(&kept);
	rc = task_read(&meant, adding->bytes.data, adding->bytes.len, adding->name, err);
	if (!rc)
		rc = read_task(com, adding->name, &kept, err);
	if (!rc && !is_same_task(&meant, &kept))
		rc = err_set(err, ERR_SYSTEM, adding->name,
			"Task Scheduler has kept something else; 'hsnap schedule remove' it");
	task_read_release(&meant);
	task_read_release(&kept);
	return rc;
}

int scheduler_add(const struct scheduler_adding *asked, struct err *err)
{
	struct adding adding = {.asked = asked, .name = asked->name};
	struct scheduler_com *com = NULL;
	int rc = prepare(&adding, err);

	if (!rc)
		rc = open_com(&com, err);
	if (!rc)
		rc = add(com, &adding, err);
	if (!rc && task_store_is_wine())
		rc = task_store_write(&adding.bytes, adding.name, err);
	if (!rc)
		rc = check(com, &adding, err);
	scheduler_com_close(com);
	buf_release(&adding.bytes);
	free(adding.wide_name);
	free(adding.wide_xml);
	return rc;
}

/* ---------------------------------------------------------------- removing */

static int remove_by_com(struct scheduler_com *com, const char *name, struct err *err)
{
	wchar_t *wide = wide_from_utf8(name);
	HRESULT hr = wide ? scheduler_com_remove(com, wide) : E_OUTOFMEMORY;

	free(wide);
	return FAILED(hr) ? scheduler_fail(hr, name, err) : 0;
}

int scheduler_remove(const char *name, struct err *err)
{
	struct scheduler_com *com = NULL;
	int rc = open_com(&com, err);

	if (!rc)
		rc = com ? remove_by_com(com, name, err) : schtasks_remove(name, err);
	scheduler_com_close(com);
	return rc;
}

/* ---------------------------------------------------------------- listing */

struct listing {
	struct scheduler_com *com;
	size_t count, bad_count;
};

static int print_row(struct listing *listing, const wchar_t *wide, const char *name,
	const struct task_read *task, struct err *err)
{
	struct task_state state = {0};
	struct buf own;
	int rc;

	buf_init(&own);
	rc = scheduler_own_program(task->program.data, &own, err);
	buf_release(&own);
	if (rc < 0)
		return rc;
	if (listing->com)
		scheduler_com_state(listing->com, wide, &state);
	if (!listing->count++)
		task_table_head(stdout);
	return task_table_row(stdout, name, task, rc > 0, &state);
}

/* One that cannot be read is said, and is no reason to keep quiet about the others. */
static int print(struct listing *listing, const wchar_t *wide, const char *name)
{
	struct task_read task;
	struct err err;
	int rc;

	task_read_init(&task);
	rc = read_task(listing->com, name, &task, &err);
	if (!rc) {
		rc = print_row(listing, wide, name, &task, &err);
	} else if (rc != -ERR_NOMEM) {
		listing->bad_count++;
		err_print(stderr, "hsnap", &err);
		rc = 0;
	}
	task_read_release(&task);
	return rc;
}

static HRESULT list_one(void *ctx, const wchar_t *wide)
{
	char *name = utf8_from_wide(wide);
	HRESULT hr = name && !print(ctx, wide, name) ? S_OK : E_OUTOFMEMORY;

	free(name);
	return hr;
}

/* Wine 8.0 lists nothing by its interface. */
int scheduler_list(struct err *err)
{
	struct listing listing = {0};
	const char *unseen;
	HRESULT hr;
	int rc = open_com(&listing.com, err);

	if (rc)
		return rc;
	hr = listing.com ? scheduler_com_each(listing.com, list_one, &listing) : E_NOTIMPL;
	if (hr == E_NOTIMPL)
		hr = task_store_each(list_one, &listing);
	scheduler_com_close(listing.com);
	if (FAILED(hr))
		return scheduler_fail(hr, "schedule list", err);
	if (listing.bad_count)
		return err_set(err, ERR_TASK, "schedule list", "%zu of %zu tasks",
			listing.bad_count, listing.bad_count + listing.count);
	unseen = listing.count ? NULL : scheduler_unseen();
	if (!listing.count)
		printf("there are no tasks of hsnap's%s%s%s\n", unseen ? " (" : "",
			unseen ? unseen : "", unseen ? ")" : "");
	return 0;
}

/* ---------------------------------------------------------------- running */

/* Puts the path of our own program in the place of the task's: what is there may be another file a moment later. */
static int make_sure(struct task_read *task, const char *name, struct err *err)
{
	struct buf own, folder, keep;
	int rc;

	buf_init(&own);
	buf_init(&folder);
	buf_init(&keep);
	rc = scheduler_own_program(task->program.data, &own, err);
	if (!rc) {
		rc = err_set(
			err, ERR_TASK, name, "it runs another program, %s", task->program.data);
	} else if (rc > 0) {
		const char *line = task->arguments.data ? task->arguments.data : "";

		rc = task_arguments_read(line, name, &folder, &keep);
		if (rc < 0)
			rc = nomem(err);
		else
			rc = rc ? 0 :
				  err_set(err, ERR_TASK, name, "with other arguments: %s", line);
	}
	if (!rc) {
		buf_release(&task->program);
		task->program = own;
		buf_init(&own);
	}
	buf_release(&own);
	buf_release(&folder);
	buf_release(&keep);
	return rc;
}

int scheduler_run(const char *name, uint32_t *exit_status, struct err *err)
{
	struct scheduler_com *com = NULL;
	struct task_read task;
	int rc = open_com(&com, err);

	if (rc)
		return rc;
	task_read_init(&task);
	rc = read_task(com, name, &task, err);
	scheduler_com_close(com);
	if (!rc)
		rc = make_sure(&task, name, err);
	if (!rc)
		rc = task_run(task.program.data, task.arguments.data, exit_status, err);
	task_read_release(&task);
	return rc;
}
