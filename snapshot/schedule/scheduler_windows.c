#include "snapshot/schedule/scheduler.h"

#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "core/utf_windows.h"
#include "snapshot/schedule/scheduler_com_windows.h"
#include "snapshot/schedule/scheduler_fail_windows.h"
#include "snapshot/schedule/schtasks_windows.h"
#include "snapshot/schedule/task_run_windows.h"
#include "snapshot/schedule/task_store_windows.h"
#include "snapshot/schedule/task/task_arguments.h"
#include "snapshot/schedule/task/task_table.h"
#include "snapshot/schedule/task/task_xml.h"

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
