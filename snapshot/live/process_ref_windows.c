/* References to processes. A reference consists of the start time and a handle, which prevents
 * reuse of the pid. */
#include "snapshot/live/process_ref.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

#include <psapi.h>

#include "core/base/memory.h"
#include "core/base/os_windows.h"
#include "core/base/text.h"
#include "snapshot/live/live_windows.h"
#include "snapshot/live/process.h"

#define PATH_UNITS 32768
#define YEAR_3000_MS INT64_C(32503680000000) /* ms since 1970 */
#define RIGHTS (SYNCHRONIZE | PROCESS_QUERY_LIMITED_INFORMATION)
/* Rights that GetProcessMemoryInfo() and GetGuiResources() require according to their
 * documentation. */
#define MORE_RIGHTS (PROCESS_VM_READ | PROCESS_QUERY_INFORMATION)

/*
 * Reads the size of the private memory from PROCESS_MEMORY_COUNTERS_EX, as documented by Microsoft.
 * PrivateUsage is the process's commit charge, which is its private memory. PagefileUsage is equal
 * to PrivateUsage, except that it is 0 in Windows 7. Wine 8.0 sets only PagefileUsage, to the size
 * of the resident private memory.
 */
static bool read_private_bytes(HANDLE process, uint64_t *bytes)
{
	PROCESS_MEMORY_COUNTERS_EX counters = {.cb = sizeof(counters)};

	if (!GetProcessMemoryInfo(process, (PROCESS_MEMORY_COUNTERS *)&counters, sizeof(counters)))
		return false;
	*bytes = counters.PrivateUsage ? counters.PrivateUsage : counters.PagefileUsage;
	return true;
}

/* Returns true if the process has started. In Wine, the start time of a process is
 * 0x5555555555555555 until its first thread runs, as measured with 8.0. This is in the year
 * 21091. */
static bool has_begun(int64_t start_ms)
{
	return start_ms >= 0 && start_ms < YEAR_3000_MS;
}

/* Reads a process's pid, start time and size. Returns false if it has not started or has exited. */
static bool look_at(uint32_t pid, struct process_seen *seen)
{
	HANDLE process;
	struct err err;
	bool is_there;
	int rc = process_open(pid, RIGHTS, MORE_RIGHTS, &process, &err);

	*seen = (struct process_seen){.pid = pid, .private_bytes = KEPT_UNKNOWN_BYTES};
	if (rc)
		return rc != -ERR_NO_PROCESS;
	seen->start_ms = process_start_ms(process);
	is_there = has_begun(seen->start_ms) && WaitForSingleObject(process, 0) == WAIT_TIMEOUT;
	read_private_bytes(process, &seen->private_bytes);
	CloseHandle(process);
	return is_there;
}

int process_ref_find_pid(uint32_t pid, struct process_seen **seen, size_t *count, struct err *err)
{
	char place[40];

	snprintf(place, sizeof(place), "pid %" PRIu32, pid);
	*seen = malloc(sizeof(**seen));
	if (!*seen)
		return err_set(err, ERR_NOMEM, place, NULL);
	*count = look_at(pid, *seen);
	return 0;
}

int process_ref_find(const char *name, struct process_seen **seen, size_t *count, struct err *err)
{
	struct process_list list;
	size_t cap = 0;
	int rc = process_list_capture(&list, err);

	*seen = NULL;
	*count = 0;
	for (size_t i = 0; !rc && i < list.count; i++) {
		if (!process_is_called(list.items[i].name, name))
			continue;
		if (array_try_grow((void **)seen, &cap, *count, sizeof(**seen)))
			rc = err_set(err, ERR_NOMEM, name, NULL);
		else
			*count += look_at(list.items[i].pid, &(*seen)[*count]);
	}
	process_list_release(&list);
	if (rc) {
		free(*seen);
		*seen = NULL;
		*count = 0;
	}
	return rc;
}

/* Reads the path of the image. If the path is too long, keeps its end, which contains the program's
 * name. */
static void read_image(HANDLE process, char *image, size_t size)
{
	wchar_t *wide = malloc(PATH_UNITS * sizeof(*wide));
	DWORD units = PATH_UNITS;
	char *text = NULL;

	if (wide && QueryFullProcessImageNameW(process, 0, wide, &units))
		text = wide_to_utf8(wide);
	snprintf(image, size, "%s", text ? text_tail(text, size - 1) : "");
	free(text);
	free(wide);
}

int process_ref_open(struct process_ref *ref, uint32_t pid, int64_t start_ms, struct err *err)
{
	HANDLE process;
	char place[40];
	int64_t found_ms;
	int rc = process_open(pid, RIGHTS, MORE_RIGHTS, &process, err);

	if (rc)
		return rc;
	snprintf(place, sizeof(place), "pid %" PRIu32, pid);
	found_ms = process_start_ms(process);
	if (WaitForSingleObject(process, 0) != WAIT_TIMEOUT)
		rc = err_set(err, ERR_GONE, place, NULL);
	else if (start_ms && found_ms != start_ms)
		rc = err_set(err, ERR_GONE, place, "another process has this pid now");
	if (rc) {
		CloseHandle(process);
		return rc;
	}
	*ref = (struct process_ref){.handle = (intptr_t)process, .pid = pid, .start_ms = found_ms};
	read_image(process, ref->image, sizeof(ref->image));
	return 0;
}

void process_ref_close(struct process_ref *ref)
{
	CloseHandle((HANDLE)ref->handle);
	*ref = (struct process_ref){0};
}

bool process_ref_has_ended(const struct process_ref *ref)
{
	return WaitForSingleObject((HANDLE)ref->handle, 0) == WAIT_OBJECT_0;
}

/* Reads a figure that needs more than one system call. Returns false if it is unknown. */
static bool read_figure(HANDLE process, enum balance_figure figure, uint64_t *value)
{
	struct balance balance = {0};
	struct arena types;

	arena_init(&types);
	balance_count(process, os_wine_version(), &balance, &types);
	arena_release(&types);
	*value = balance.figures[figure];
	return balance_knows(&balance, figure);
}

int process_ref_figure(
	const struct process_ref *ref, enum balance_figure figure, uint64_t *value, struct err *err)
{
	HANDLE process = (HANDLE)ref->handle;
	char place[40];

	snprintf(place, sizeof(place), "pid %" PRIu32, ref->pid);
	if (process_ref_has_ended(ref))
		return err_set(err, ERR_GONE, place, NULL);
	if (figure == BALANCE_PRIVATE ? read_private_bytes(process, value) :
					read_figure(process, figure, value))
		return 0;
	return err_set(err, ERR_SYSTEM, place, "this system does not report its %s",
		balance_words[figure].words);
}

int process_ref_target(const struct process_ref *ref, struct target *target, struct err *err)
{
	struct target opened;
	char place[40];
	int rc = target_open_live(&opened, ref->pid, err);

	/* A process that is exiting cannot be opened, whatever rights hsnap has. */
	if (rc && rc != -ERR_NOMEM && process_ref_has_ended(ref)) {
		snprintf(place, sizeof(place), "pid %" PRIu32, ref->pid);
		return err_set(err, ERR_GONE, place, NULL);
	}
	if (rc)
		return rc;
	if (opened.start_ms != ref->start_ms) {
		rc = err_set(err, ERR_GONE, opened.name, "another process has this pid now");
		opened.ops->close(&opened);
		return rc;
	}
	*target = opened;
	return 0;
}
