/* References to processes: identity (pid and start time), private bytes, and waiting for the end.
 * Prints TAP. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <windows.h>

#include <psapi.h>

#include "core/base/os.h"
#include "snapshot/live/nt_windows.h"
#include "snapshot/live/process.h"
#include "snapshot/live/process_ref.h"
#include "tests/win/again.h"
#include "tests/win/tap.h"

#define WAIT_MS 20000
#define GROWTH_BYTES ((size_t)64 << 20)

struct child {
	PROCESS_INFORMATION info;
	/* events: when go is set, the child takes its next step, and then sets done */
	HANDLE go, done;
};

/* The child runs, uses more memory, and ends, one step at a time. */
static int be_child(HANDLE go, HANDLE done)
{
	unsigned char *bytes;

	SetEvent(done);
	if (WaitForSingleObject(go, WAIT_MS))
		return 3;
	bytes = VirtualAlloc(NULL, GROWTH_BYTES, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
	for (size_t i = 0; bytes && i < GROWTH_BYTES; i += 64)
		bytes[i] = (unsigned char)(i >> 6 | 1);
	SetEvent(done);
	return WaitForSingleObject(go, WAIT_MS) ? 4 : 0;
}

static bool start(struct child *child)
{
	wchar_t arguments[100];

	child->go = shared_event();
	child->done = shared_event();
	_snwprintf(arguments, 100, L"%llx %llx", (unsigned long long)(ULONG_PTR)child->go,
		(unsigned long long)(ULONG_PTR)child->done);
	return start_again(arguments, &child->info) && !WaitForSingleObject(child->done, WAIT_MS);
}

static bool step(struct child *child)
{
	SetEvent(child->go);
	return !WaitForSingleObject(child->done, WAIT_MS);
}

static void let_go(struct target *target)
{
	if (target->ops)
		target->ops->close(target);
}

static void test_identity(const struct child *child, struct process_ref *ref)
{
	uint32_t pid = child->info.dwProcessId;
	struct target target = {0};
	struct process_ref other = {0};
	struct err err;

	ok(!process_ref_open(ref, pid, 0, &err), "a process is kept");
	ok(ref->pid == pid && strstr(ref->image, "test_process_ref.exe"),
		"with its number and program");
	ok(!target_open_live(&target, pid, &err) && target.start_ms == ref->start_ms,
		"its start is that in dumps");
	let_go(&target);
	ok(!process_ref_open(&other, pid, ref->start_ms, &err), "it is found by both");
	ok(!process_ref_target(&other, &target, &err) && target.pid == pid,
		"and opened to be read");
	let_go(&target);
	process_ref_close(&other);
	ok(process_ref_open(&other, pid, ref->start_ms + 1, &err) == -ERR_GONE,
		"with another start it is another process");
	other = *ref;
	other.start_ms--;
	ok(process_ref_target(&other, &target, &err) == -ERR_GONE, "also when it is to be read");
	ok(process_ref_open(&other, GetCurrentProcessId(), 0, &err) == -ERR_USAGE,
		"nobody keeps itself");
}

/* Counts the processes with this name, or with this pid if there is no name. All must be this
 * process. */
static size_t found_of(const struct process_ref *ref, const char *name, uint32_t pid)
{
	struct process_seen *seen = NULL;
	struct err err;
	size_t found = 0;
	int rc = name ? process_ref_find(name, &seen, &found, &err) :
			process_ref_find_pid(pid, &seen, &found, &err);

	for (size_t i = 0; i < found; i++)
		rc |= seen[i].pid != ref->pid || seen[i].start_ms != ref->start_ms;
	free(seen);
	return rc ? 1000 : found;
}

static void test_found(const struct process_ref *ref)
{
	ok(found_of(ref, "TEST_PROCESS_REF", 0) == 1, "it is found by its name, and we are not");
	ok(found_of(ref, NULL, ref->pid) == 1, "and by its number");
	ok(found_of(ref, NULL, ref->pid + 1) == 0, "not by one beside it");
	ok(found_of(ref, "nobody-has-this", 0) == 0, "nobody is found");
}

static void test_growth(struct child *child, const struct process_ref *ref)
{
	uint64_t from = 0, to = 0;
	struct err err;

	ok(!process_ref_figure(ref, BALANCE_PRIVATE, &from, &err) && from, "it has private bytes");
	ok(step(child), "it uses more");
	ok(!process_ref_figure(ref, BALANCE_PRIVATE, &to, &err) && to >= from + GROWTH_BYTES &&
			to < from + GROWTH_BYTES + GROWTH_BYTES / 8,
		"so many more");
	printf("# from %llu to %llu\n", (unsigned long long)from, (unsigned long long)to);
}

/* The wait is much longer than one slice, so only the event can end the loop before the last
 * try. */
static void test_end(struct child *child, struct process_ref *ref)
{
	int64_t from = os_clock_ms();
	uint64_t bytes;
	struct target target;
	struct err err;

	ok(!process_ref_has_ended(ref), "it runs");
	SetEvent(child->go);
	os_wait(INT64_MAX, &ref->handle, 1);
	ok(process_ref_has_ended(ref) && os_clock_ms() - from < OS_WAIT_MS,
		"its end wakes who waits");
	ok(process_ref_figure(ref, BALANCE_PRIVATE, &bytes, &err) == -ERR_GONE,
		"it has no private bytes");
	ok(process_ref_target(ref, &target, &err) == -ERR_GONE,
		"and cannot be read, for that reason");
	process_ref_close(ref);
}

#define BRIEF_CHILDREN 40
#define YEAR_MS (INT64_C(365) * 24 * 3600 * 1000)

static DWORD WINAPI start_brief_children(void *unused)
{
	(void)unused;
	for (int i = 0; i < BRIEF_CHILDREN; i++) {
		PROCESS_INFORMATION info;

		if (!start_again(L"brief", &info))
			return 1;
		WaitForSingleObject(info.hProcess, WAIT_MS);
		CloseHandle(info.hProcess);
		CloseHandle(info.hThread);
	}
	return 0;
}

/* Lists all processes while children start and end. Each listed process has a start time within the
 * last year, or no start time. */
static void test_starting(void)
{
	int64_t until, from = os_time_ms() - YEAR_MS;
	HANDLE thread = CreateThread(NULL, 0, start_brief_children, NULL, 0, NULL);
	size_t found = 0, bad = 0;
	DWORD status = 1;

	while (WaitForSingleObject(thread, 0) == WAIT_TIMEOUT) {
		DWORD pids[1024], bytes = 0;

		if (!EnumProcesses(pids, sizeof(pids), &bytes))
			break;
		for (size_t i = 0; i < bytes / sizeof(*pids); i++) {
			struct process_seen *seen = NULL;
			struct err err;
			size_t count = 0;

			bad += process_ref_find_pid(pids[i], &seen, &count, &err) != 0;
			until = os_time_ms();
			bad += count && seen->start_ms &&
			       (seen->start_ms < from || seen->start_ms > until);
			found += count;
			free(seen);
		}
	}
	WaitForSingleObject(thread, INFINITE);
	GetExitCodeThread(thread, &status);
	printf("# %zu found, %zu of them wrong\n", found, bad);
	ok(!status && found && !bad, "a process that is starting is not there yet");
	CloseHandle(thread);
}

int main(int argc, char **argv)
{
	struct child child = {0};
	struct process_ref ref = {0};

	if (argc == 2)
		return 0;
	if (argc == 3)
		return be_child(handle_of(argv[1]), handle_of(argv[2]));
	ok(start(&child), "a child runs");
	test_identity(&child, &ref);
	test_found(&ref);
	test_growth(&child, &ref);
	test_end(&child, &ref);
	test_starting();
	return ok_end();
}
