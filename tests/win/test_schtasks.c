/* Tasks by schtasks.exe, where COM cannot be had, and the files that the scheduler keeps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "snapshot/schedule/scheduler_windows.h"
#include "snapshot/schedule/task.h"

static int count, failed;

static void ok(bool is_well, const char *what)
{
	failed += !is_well;
	printf("%sok %d - %s\n", is_well ? "" : "not ", ++count, what);
}

/* "made-PID.exe", so that two runs do not meet. */
static char name[40];

static bool make_bytes(struct buf *bytes)
{
	struct task_request request = {.name = name,
		.every = "5m",
		.folder = "C:\\d & d",
		.program = "C:\\p\\hsnap.exe",
		.start = "2026-11-20T10:00"};
	struct task_plan plan;
	struct buf xml;
	bool is_made;

	buf_init(&xml);
	task_plan_init(&plan);
	is_made = !task_plan_make(&plan, &request, NULL) && !task_xml_add(&xml, &plan.task, NULL) &&
		  !task_xml_utf16(bytes, xml.data);
	task_plan_release(&plan);
	buf_release(&xml);
	return is_made;
}

static HRESULT find_name(void *ctx, const wchar_t *found)
{
	char text[40];

	snprintf(text, sizeof(text), "%ls", found);
	*(int *)ctx += !strcmp(text, name);
	return S_OK;
}

static int listed(void)
{
	int found = 0;

	task_store_each(find_name, &found);
	return found;
}

/* What was stored is what is read; Wine's own file of it has lost the program. */
static void test_store(const struct buf *bytes)
{
	struct buf stored;
	struct task_read task;
	struct err err;

	buf_init(&stored);
	task_read_init(&task);
	ok(!task_store_write(bytes, name, &err), "a task's file is written");
	ok(!task_store_read(&stored, name, &err) && stored.len == bytes->len &&
			!memcmp(stored.data, bytes->data, stored.len),
		"and read back as it is");
	ok(!task_read(&task, stored.data, stored.len, name, &err) &&
			!strcmp(task.program.data, "C:\\p\\hsnap.exe") &&
			!strcmp(task.folder.data, "C:\\p") && task.every_ms == 300000,
		"it says what was meant");
	task_read_release(&task);
	buf_release(&stored);
}

int main(void)
{
	struct buf bytes, stored;
	struct err err = {0};

	snprintf(name, sizeof(name), "made-%lu.exe", GetCurrentProcessId());
	buf_init(&bytes);
	buf_init(&stored);
	ok(make_bytes(&bytes), "a task is made");
	ok(task_store_read(&stored, name, &err) == -ERR_NO_TASK && err.code == ERR_NO_TASK,
		"one that is not there is not read");
	ok(schtasks_remove(name, &err) == -ERR_NO_TASK, "nor removed");
	ok(!listed(), "nor listed");
	ok(!schtasks_add(name, &bytes, false, &err), "schtasks.exe takes it");
	ok(listed() == 1, "it is listed once");
	ok(!task_store_read(&stored, name, &err) && stored.len, "it is in the store");
	ok(schtasks_add(name, &bytes, false, &err) == -ERR_TASK_EXISTS,
		"a second time it is refused");
	ok(!schtasks_add(name, &bytes, true, &err), "unless it may be replaced");
	test_store(&bytes);
	ok(!schtasks_remove(name, &err), "it is removed");
	ok(!listed(), "and not listed any more");
	buf_release(&stored);
	buf_release(&bytes);
	printf("1..%d\n", count);
	return failed != 0;
}
