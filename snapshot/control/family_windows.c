#include "snapshot/control/family_windows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/os.h"
#include "core/text.h"
#include "snapshot/live/nt_windows.h"
#include "snapshot/live/open_windows.h"

#define STACK_BYTES ((SIZE_T)1 << 20) /* address space of a thread */

/* A process that one of the family has just created, and that waits. */
struct birth {
	struct family *family;
	const struct traced *parent;
	struct traced_child child;
	HANDLE taken; /* set when the child is prepared, or left alone */
};

/* What a child's thread has. */
struct follower {
	struct family *family;
	HANDLE process, thread, parent;
	struct traced traced;
	char name[40];
};

int family_init(struct family *family, const struct run *run, struct err *err)
{
	*family = (struct family){.run = run, .count = 1};
	family->options.install.limit_bytes = run->limit_bytes;
	family->options.install.sample_bytes = run->sample_bytes;
	family->options.install.flags = run->with_children ? TRACER_FLAG_CHILDREN : 0;
	family->options.stops_at_exit = run->snapshot != NULL;
	family->options.until_ms = run->limit_ms ? os_clock_ms() + run->limit_ms : 0;
	family->all_ended = CreateEventW(NULL, TRUE, FALSE, NULL);
	if (!family->all_ended)
		return err_set(err, ERR_NOMEM, run->argv[0], NULL);
	InitializeCriticalSection(&family->turn);
	return 0;
}

static void leave(struct family *family)
{
	if (!InterlockedDecrement(&family->count))
		SetEvent(family->all_ended);
}

static void wait_and_close(HANDLE thread)
{
	if (thread)
		WaitForSingleObject(thread, INFINITE);
	if (thread)
		CloseHandle(thread);
}

/* The same by a child's thread, which outlives those that left before it. Whoever waits for the last one waits
 * for them all: Wine 8 does not always end a process well while a thread of it ends. */
static void leave_last(struct family *family)
{
	HANDLE self = NULL;

	DuplicateHandle(GetCurrentProcess(), GetCurrentThread(), GetCurrentProcess(), &self,
		SYNCHRONIZE, FALSE, 0);
	wait_and_close(InterlockedExchangePointer(&family->last, self));
	leave(family);
}

void family_end(struct family *family)
{
	leave(family);
	WaitForSingleObject(family->all_ended, INFINITE);
	wait_and_close(family->last);
	CloseHandle(family->all_ended);
	DeleteCriticalSection(&family->turn);
}

/* One line about a process; an error that is about the same place does not name it again. */
static void warn(struct family *family, const char *name, const char *what, const struct err *err)
{
	struct err about = *err;
	char text[1600], reason[1400];

	if (!strcmp(about.place, name))
		about.place[0] = '\0';
	snprintf(text, sizeof(text), "hsnap: %s: warning: %s: %s", name, what,
		err_reason(&about, reason, sizeof(reason)));
	EnterCriticalSection(&family->turn);
	fprintf(stderr, "%s\n", text_harmless(text));
	LeaveCriticalSection(&family->turn);
}

static int take_snapshot(struct family *family, struct traced *traced, struct err *err)
{
	int rc;

	EnterCriticalSection(&family->turn);
	rc = family->run->snapshot(family->run->ctx, &traced->target, err);
	LeaveCriticalSection(&family->turn);
	return rc;
}

/* Whether the pid is of a process that this parent has started: it might say any number. */
static bool is_child(HANDLE process, uint32_t parent_pid)
{
	PROCESS_BASIC_INFORMATION basic;

	return NtQueryInformationProcess(
		       process, ProcessBasicInformation, &basic, sizeof(basic), NULL) >= 0 &&
	       (uint32_t)basic.InheritedFromUniqueProcessId == parent_pid;
}

/* Finds the child and has it load the tracer. */
static int adopt(struct follower *follower, const struct birth *birth, struct err *err)
{
	int rc = process_open(
		birth->child.pid, TRACED_RIGHTS, PROCESS_TERMINATE, &follower->process, err);

	if (rc)
		return rc;
	if (!is_child(follower->process, birth->parent->target.pid))
		return err_set(err, ERR_INJECT, NULL, "its parent is another process");
	/* The thread that follows the parent closes its handle when it will. */
	if (!DuplicateHandle(GetCurrentProcess(), birth->parent->process, GetCurrentProcess(),
		    &follower->parent, SYNCHRONIZE, FALSE, 0))
		return err_set(err, ERR_NOMEM, NULL, NULL);
	follower->thread = OpenThread(TRACED_THREAD_RIGHTS, FALSE, birth->child.tid);
	if (!follower->thread || GetProcessIdOfThread(follower->thread) != birth->child.pid)
		return err_set(err, ERR_INJECT, NULL, "its thread cannot be opened");
	return traced_prepare(
		&follower->traced, follower->process, follower->thread, follower->name, err);
}

static void release(struct follower *follower)
{
	traced_release(&follower->traced);
	if (follower->thread)
		CloseHandle(follower->thread);
	if (follower->parent)
		CloseHandle(follower->parent);
	if (follower->process)
		CloseHandle(follower->process);
}

/* The life of a child, from birth on, which ends with its parent's wait. */
static DWORD WINAPI follow_child(void *ctx)
{
	const struct birth *birth = ctx;
	struct follower follower = {.family = birth->family};
	struct family *family = birth->family;
	struct err err = {0};
	int rc;

	snprintf(follower.name, sizeof(follower.name), "pid %lu", (unsigned long)birth->child.pid);
	rc = adopt(&follower, birth, &err);
	SetEvent(birth->taken);
	if (!rc)
		rc = traced_bring_up(&follower.traced, follower.parent, &family->options, &err);
	if (rc) {
		traced_release(&follower.traced); /* it goes on */
		warn(family, follower.name, "this child process is not traced", &err);
	} else if (family_follow(family, &follower.traced, &err)) {
		warn(family, follower.name, "no snapshot at its exit", &err);
	}
	release(&follower);
	leave_last(family);
	return 0;
}

/* A child is there, and its parent waits until it is prepared. */
static void begin_child(struct family *family, struct traced *parent)
{
	struct birth birth = {.family = family, .parent = parent};
	struct err err = {0};
	HANDLE thread = NULL;

	birth.taken = CreateEventW(NULL, TRUE, FALSE, NULL);
	InterlockedIncrement(&family->count);
	if (birth.taken && traced_child(parent, &birth.child))
		thread = CreateThread(NULL, STACK_BYTES, follow_child, &birth,
			STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
	if (thread) {
		WaitForSingleObject(birth.taken, INFINITE);
		CloseHandle(thread);
	} else {
		leave(family);
		err_set(&err, ERR_NOMEM, NULL, NULL);
		warn(family, parent->target.name, "its child process is not traced", &err);
	}
	if (birth.taken)
		CloseHandle(birth.taken);
	SetEvent(parent->child_taken);
}

/* A process that ended before its tracer was switched on has none. */
static void warn_of_limit(struct family *family, const struct traced *traced)
{
	uint64_t wanted = family->options.install.limit_bytes;

	if (!traced->limit_bytes || traced->limit_bytes >= wanted)
		return;
	EnterCriticalSection(&family->turn);
	fprintf(stderr,
		"hsnap: %s: warning: address space for %" PRIu64 " MiB of tables only, not %" PRIu64
		" MiB\n",
		traced->target.name, traced->limit_bytes >> 20, wanted >> 20);
	LeaveCriticalSection(&family->turn);
}

/* A new process that waits for one that is ended would wait for ever. */
static void end_late(struct family *family, struct traced *traced)
{
	if (traced->child_created && WaitForSingleObject(traced->child_created, 0) == WAIT_OBJECT_0)
		begin_child(family, traced);
	InterlockedExchange(&family->is_late, 1);
	EnterCriticalSection(&family->turn);
	fprintf(stderr, "hsnap: %s: ended: the time limit is over\n", traced->target.name);
	LeaveCriticalSection(&family->turn);
	TerminateProcess(traced->process, RUN_LATE);
}

/* Why a process has ended that did not come to its exit, as far as its status tells; the numbers are those
 * of ntstatus.h. */
static const char *why_ended(DWORD status)
{
	static const struct {
		DWORD status;
		const char *why;
	} known[] = {
		{0xC0000135, "a DLL that it needs is missing"},
		{0xC0000138, "a DLL lacks a function that it needs"},
		{0xC0000139, "a DLL lacks a function that it needs"},
		{0xC000007B, "a DLL is damaged, or of the other bitness"},
		{0xC0000142, "a DLL failed to start"},
		{0xC0000005, "a crash: access violation"},
		{0xC00000FD, "a crash: stack overflow"},
		{0xC0000374, "a crash: its heap is damaged"},
		{0xC0000409, "a crash: it stopped itself by fail-fast"},
		{0xC000013A, "Ctrl-C, or its console was closed"},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (known[i].status == status)
			return known[i].why;
	}
	return "it crashed, another process ended it, or it was detached";
}

static int fail_exit(const struct traced *traced, struct err *err)
{
	DWORD status = 0;

	GetExitCodeProcess(traced->process, &status);
	return err_set(err, ERR_NO_EXIT, traced->name,
		status >> 30 ? "status %lX: %s" : "status %lu: %s", status, why_ended(status));
}

int family_follow(struct family *family, struct traced *traced, struct err *err)
{
	bool is_taken = !family->options.stops_at_exit;
	int64_t until_ms = family->options.until_ms;
	enum traced_event event;
	int rc = 0;

	warn_of_limit(family, traced);
	while ((event = traced_wait(traced, until_ms)) != TRACED_ENDED) {
		if (event == TRACED_CHILD) {
			begin_child(family, traced);
			continue;
		}
		if (!is_taken) {
			int64_t begun_ms = os_clock_ms();

			/* The limit is the program's time, not ours. */
			rc = take_snapshot(family, traced, err);
			until_ms += until_ms ? os_clock_ms() - begun_ms : 0;
		}
		is_taken = true;
		if (event == TRACED_LATE) {
			until_ms = 0;
			end_late(family, traced);
		} else {
			SetEvent(traced->exit_continue);
		}
	}
	return is_taken ? rc : fail_exit(traced, err);
}
