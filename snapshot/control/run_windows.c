/*
 * Runs programs. A family is the program and its traced descendants. A thread of hsnap follows each
 * of these processes from its creation to its end. The thread brings the process up, takes over the
 * process's children while the process waits, and takes the snapshot when the process exits.
 */
#include "snapshot/control/control.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>

#include "core/base/os.h"
#include "core/base/os_windows.h"
#include "core/base/text.h"
#include "snapshot/control/control_windows.h"
#include "snapshot/control/inject_windows.h"
#include "snapshot/control/refusal.h"
#include "snapshot/live/live_windows.h"
#include "snapshot/live/nt_windows.h"
#include "snapshot/live/spawn_windows.h"

#define STACK_BYTES ((SIZE_T)1 << 20) /* address space per thread */

/* The first program and its descendants. Each is traced, and is followed by one thread. */
struct family {
	const struct program_run *run;
	struct traced_options options;
	/* end of the time limit, passed to the other hsnap, in the time of os_clock_ms(); 0:
	 * none */
	int64_t until_ms;
	HANDLE output_lock; /* mutex for snapshots and messages, shared with the other hsnap */
	volatile LONG count; /* number of threads that follow a process */
	volatile LONG is_late; /* nonzero if a process was ended because its time limit was over */
	HANDLE all_ended;
	HANDLE volatile last; /* thread that ended last; it has waited for all earlier ones */
};

/* A process that another process of the family has just created. The new process waits. */
struct new_child {
	struct family *family;
	const struct traced *parent;
	struct traced_child child;
	HANDLE prepared; /* set when the child has been prepared or will not be traced */
};

struct follower {
	struct family *family;
	HANDLE process, thread, parent;
	struct traced traced;
	const struct recording_link *recording; /* or NULL */
	char name[40];
};

static void lock_output(struct family *family)
{
	WaitForSingleObject(family->output_lock, INFINITE);
}

static void unlock_output(struct family *family)
{
	ReleaseMutex(family->output_lock);
}

/* Initializes a family. The calling thread counts as one that follows a process. `handed` is the
 * child that was handed over; pid 0: none. Returns 0 or -ERR_NOMEM. */
static int family_init(struct family *family, const struct program_run *run,
	const struct handed_child *handed, struct err *err)
{
	*family = (struct family){.run = run, .count = 1};
	family->options.install.limit_bytes = run->limit_bytes;
	family->options.install.sample_bytes = run->sample_bytes;
	family->options.install.flags = (run->with_children ? TRACER_FLAG_CHILDREN : 0) |
					(run->with_handles ? TRACER_FLAG_HANDLES : 0);
	family->options.stops_at_exit = run->snapshot || run->child_recording;
	if (run->limit_ms)
		family->options.until_ms =
			handed->pid ? handed->until_ms : os_clock_ms() + run->limit_ms;
	family->until_ms = run->limit_ms ? family->options.until_ms : run->until_ms;
	family->all_ended = CreateEventW(NULL, TRUE, FALSE, NULL);
	family->output_lock = handed->pid ? handed->output_lock : CreateMutexW(NULL, FALSE, NULL);
	if (family->all_ended && family->output_lock)
		return 0;
	if (family->all_ended)
		CloseHandle(family->all_ended);
	return err_set(err, ERR_NOMEM, run->argv[0], NULL);
}

static void follower_ends(struct family *family)
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

/*
 * Ends a thread that follows a child. Each such thread first waits for the thread that ended before
 * it. So a wait for the last of these threads is a wait for all of them. This is needed because
 * Wine 8 sometimes fails to end a process while one of its threads is ending.
 */
static void last_follower_ends(struct family *family)
{
	HANDLE self = NULL;

	DuplicateHandle(GetCurrentProcess(), GetCurrentThread(), GetCurrentProcess(), &self,
		SYNCHRONIZE, FALSE, 0);
	wait_and_close(InterlockedExchangePointer(&family->last, self));
	follower_ends(family);
}

/* Ends the calling thread's work, waits for all other threads, and releases the family. */
static void family_end(struct family *family)
{
	follower_ends(family);
	WaitForSingleObject(family->all_ended, INFINITE);
	wait_and_close(family->last);
	CloseHandle(family->all_ended);
	CloseHandle(family->output_lock);
}

/* Prints a one-line message about a process. Does not repeat the place if the error already
 * contains it. */
static void warn(struct family *family, const char *name, const char *what, const struct err *err)
{
	struct err about = *err;
	char text[1600], reason[1400];

	if (!strcmp(about.place, name))
		about.place[0] = '\0';
	snprintf(text, sizeof(text), "hsnap: %s: warning: %s: %s", name, what,
		err_reason(&about, reason, sizeof(reason)));
	lock_output(family);
	fprintf(stderr, "%s\n", text_harmless(text));
	unlock_output(family);
}

static int write_snapshot(
	struct family *family, struct traced *traced, bool is_at_exit, struct err *err)
{
	int rc;

	if (is_at_exit)
		target_u32(&traced->target,
			traced->area_addr + offsetof(struct tracer_area, exit_thread),
			&traced->target.exit_thread);
	lock_output(family);
	rc = family->run->snapshot(family->run->ctx, &traced->target, err);
	unlock_output(family);
	return rc;
}

/* Returns true if this parent started the process. The check is needed because the child's id comes
 * from the parent, which may have reported any number. */
static bool is_child(HANDLE process, uint32_t parent_pid)
{
	PROCESS_BASIC_INFORMATION basic;

	return NtQueryInformationProcess(
		       process, ProcessBasicInformation, &basic, sizeof(basic), NULL) >= 0 &&
	       (uint32_t)basic.InheritedFromUniqueProcessId == parent_pid;
}

/* Finds the child and makes it load the tracer. */
static int trace_child(struct follower *follower, const struct new_child *born, struct err *err)
{
	int rc = process_open(
		born->child.pid, TRACED_RIGHTS, PROCESS_TERMINATE, &follower->process, err);

	if (rc)
		return rc;
	if (!is_child(follower->process, born->parent->target.pid))
		return err_set(err, ERR_INJECT, NULL, "its parent is another process");
	/* Duplicate the handle, because the thread that follows the parent may close its own at any
	 * time. */
	if (!DuplicateHandle(GetCurrentProcess(), born->parent->process, GetCurrentProcess(),
		    &follower->parent, SYNCHRONIZE, FALSE, 0))
		return err_set(err, ERR_NOMEM, NULL, NULL);
	follower->thread = OpenThread(TRACED_THREAD_RIGHTS, FALSE, born->child.tid);
	if (!follower->thread || GetProcessIdOfThread(follower->thread) != born->child.pid)
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

/* Returns the options for a process with its own recording. */
static struct traced_options options_for(
	const struct family *family, const struct recording_link *recording)
{
	struct traced_options options = family->options;

	options.install.rings = recording ? recording->rings : NULL;
	options.install.recording = recording;
	return options;
}

static int follow(struct family *family, struct traced *traced,
	const struct recording_link *recording, struct err *err);

/* Makes the hsnap of the other bitness follow the child. Returns 0 after all messages were printed,
 * or an error. */
static int hand_over(const struct follower *follower, const struct new_child *born, struct err *err)
{
	struct family *family = follower->family;
	struct handed_child child = {.pid = born->child.pid,
		.tid = born->child.tid,
		.ready = CreateEventW(NULL, TRUE, FALSE, NULL),
		.output_lock = family->output_lock,
		.until_ms = family->until_ms};
	uint32_t status = 0;
	int rc = 0;

	if (!child.ready ||
		!DuplicateHandle(GetCurrentProcess(), born->parent->process, GetCurrentProcess(),
			&child.parent, SYNCHRONIZE | PROCESS_QUERY_LIMITED_INFORMATION, FALSE, 0))
		rc = err_set(err, ERR_NOMEM, follower->name, NULL);
	if (!rc)
		rc = follow_by_other(&child, follower->name, born->prepared, &status, err);
	if (status == RUN_LATE)
		InterlockedExchange(&family->is_late, 1);
	else if (status)
		rc = err_set(err, ERR_INJECT, follower->name,
			"the hsnap for its bitness has ended with status %" PRIX32, status);
	if (child.parent)
		CloseHandle(child.parent);
	if (child.ready)
		CloseHandle(child.ready);
	return rc;
}

static void follow_taken(struct follower *follower, struct err *err)
{
	struct family *family = follower->family;
	const struct traced_options options = options_for(family, follower->recording);

	if (traced_bring_up(&follower->traced, follower->parent, &options, err)) {
		traced_release(&follower->traced); /* lets the child continue */
		warn(family, follower->name, "this child process is not traced", err);
		return;
	}
	switch (-follow(family, &follower->traced, follower->recording, err)) {
	case 0: break;
	case ERR_INCOMPLETE:
	case ERR_NO_HEAPS: warn(family, follower->name, "at its exit", err); break;
	default: warn(family, follower->name, "no snapshot at its exit", err); break;
	}
}

/* Takes over a child while its parent waits, and follows the child until the child ends. `born`
 * belongs to the thread that follows the parent, and is valid only until the child is prepared. */
static void follow_born(const struct new_child *born)
{
	struct follower follower = {.family = born->family};
	struct family *family = born->family;
	const struct program_run *run = family->run;
	struct err err = {0};
	int rc;

	snprintf(follower.name, sizeof(follower.name), "pid %lu", (unsigned long)born->child.pid);
	rc = trace_child(&follower, born, &err);
	if (rc == -ERR_BITS || rc == -ERR_64_BITS) {
		rc = hand_over(&follower, born, &err);
		if (!rc) {
			release(&follower);
			return;
		}
	}
	if (!rc && run->child_recording) {
		follower.recording = run->child_recording(run->ctx, &err);
		rc = follower.recording ? 0 : -(int)err.code;
	}
	SetEvent(born->prepared);
	if (rc)
		warn(family, follower.name, "this child process is not traced", &err);
	else
		follow_taken(&follower, &err);
	release(&follower);
	if (follower.recording) {
		lock_output(family);
		run->child_recorded(run->ctx, follower.recording);
		unlock_output(family);
	}
}

static DWORD WINAPI follow_child(void *ctx)
{
	const struct new_child *born = ctx;
	struct family *family = born->family;

	follow_born(born);
	last_follower_ends(family);
	return 0;
}

/* Starts a thread for a new child. The parent waits until the child is prepared. */
static void begin_child(struct family *family, struct traced *parent)
{
	struct new_child born = {.family = family, .parent = parent};
	struct err err = {0};
	HANDLE thread = NULL;

	err_set(&err, ERR_NOMEM, NULL, NULL);
	born.prepared = CreateEventW(NULL, TRUE, FALSE, NULL);
	InterlockedIncrement(&family->count);
	if (!traced_child(parent, &born.child))
		err_set(&err, ERR_INJECT, NULL, "its ids cannot be read");
	else if (born.prepared)
		thread = CreateThread(NULL, STACK_BYTES, follow_child, &born,
			STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
	if (thread) {
		WaitForSingleObject(born.prepared, INFINITE);
		CloseHandle(thread);
	} else {
		follower_ends(family);
		warn(family, parent->target.name, "its child process is not traced", &err);
	}
	if (born.prepared)
		CloseHandle(born.prepared);
	SetEvent(parent->child_taken);
}

/* Warns if the tables have less address space than requested. A process that ended before its
 * tracer was turned on has no tables. */
static void warn_of_limit(struct family *family, const struct traced *traced)
{
	uint64_t wanted = family->options.install.limit_bytes;

	if (!traced->limit_bytes)
		return;
	lock_output(family);
	control_warn_of_limit(traced->target.name, traced->limit_bytes, wanted);
	unlock_output(family);
}

/* With --children, warns if a policy prevents the program from creating children. */
static void warn_of_policy(struct family *family, const struct traced *traced)
{
	char rule[600], text[1600];

	if (!family->run->with_children ||
		!refusal_find(&traced->facts, REFUSAL_RUN, REFUSAL_CHILDREN, rule, sizeof(rule)))
		return;
	snprintf(text, sizeof(text), "hsnap: %s: warning: %s", traced->name, rule);
	lock_output(family);
	fprintf(stderr, "%s\n", text_harmless(text));
	unlock_output(family);
}

/* Ends a process whose time limit is over. If the process is just creating a child, prepares the
 * child first. Otherwise the child would wait for a parent that has exited. */
static void end_late(struct family *family, struct traced *traced)
{
	if (traced->child_created && WaitForSingleObject(traced->child_created, 0) == WAIT_OBJECT_0)
		begin_child(family, traced);
	InterlockedExchange(&family->is_late, 1);
	lock_output(family);
	fprintf(stderr, "hsnap: %s: ended by the time limit\n", traced->target.name);
	unlock_output(family);
	TerminateProcess(traced->process, RUN_LATE);
}

/* Returns a description of the crash with this exit status, or NULL if the status is not a crash.
 * The values are from ntstatus.h. */
static const char *crash_of(DWORD status)
{
	switch (status) {
	case 0xC0000005: return "a crash: access violation";
	case 0xC00000FD: return "a crash: stack overflow";
	case 0xC0000374: return "a crash: its heap is damaged";
	case 0xC0000409: return "a crash: fail-fast";
	default: return NULL;
	}
}

/* Returns the reason why a process ended without reaching its exit, if its status reveals the
 * reason. */
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
		{0xC000013A, "Ctrl-C, or its console was closed"},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (known[i].status == status)
			return known[i].why;
	}
	return crash_of(status) ? crash_of(status) :
				  "a crash, termination by another process, or 'hsnap detach'";
}

/* Warns of a crash after which the program went through its normal exit, as happens in Wine 10. The
 * snapshot looks like any other. */
static void warn_of_crash(struct family *family, const struct traced *traced)
{
	char text[1600];
	DWORD status = 0;

	if (!GetExitCodeProcess(traced->process, &status) || !crash_of(status))
		return;
	snprintf(text, sizeof(text), "hsnap: %s: warning: ended with status %lX: %s", traced->name,
		status, crash_of(status));
	lock_output(family);
	fprintf(stderr, "%s\n", text_harmless(text));
	unlock_output(family);
}

static int fail_exit(const struct traced *traced, struct err *err)
{
	DWORD status = 0;

	GetExitCodeProcess(traced->process, &status);
	return err_set(err, ERR_NO_EXIT, traced->name,
		status >> 30 ? "status %lX: %s" : "status %lu: %s", status, why_ended(status));
}

/*
 * Follows a process that was brought up, until it ends or its time limit is over. Takes its
 * snapshot, and starts threads that follow its children. Returns 0, the result of the snapshot, or
 * -ERR_NO_EXIT.
 */
static int follow(struct family *family, struct traced *traced,
	const struct recording_link *recording, struct err *err)
{
	bool needs_snapshot = family->run->snapshot != NULL;
	int64_t until_ms = family->options.until_ms;
	enum traced_event event;
	int rc = 0;

	warn_of_limit(family, traced);
	while ((event = traced_wait(traced, until_ms)) != TRACED_ENDED) {
		if (event == TRACED_CHILD) {
			begin_child(family, traced);
			continue;
		}
		if (event == TRACED_AT_EXIT && recording)
			recording->catch_up(recording->ctx);
		if (needs_snapshot) {
			int64_t begun_ms = os_clock_ms();

			/* the limit applies to the running time of the program, not of hsnap */
			rc = write_snapshot(family, traced, event == TRACED_AT_EXIT, err);
			until_ms += until_ms ? os_clock_ms() - begun_ms : 0;
		}
		needs_snapshot = false;
		if (event == TRACED_LATE) {
			until_ms = 0;
			end_late(family, traced);
		} else {
			SetEvent(traced->exit_continue);
		}
	}
	if (family->run->snapshot && !needs_snapshot)
		warn_of_crash(family, traced);
	return needs_snapshot ? fail_exit(traced, err) : rc;
}

/* Sets OANOCACHE. Otherwise COM keeps freed strings for reuse, and a reused string has the stack of
 * an earlier user. Source: "Debugging memory leaks", Microsoft Learn. */
static void avoid_bstr_cache(void)
{
	static const wchar_t name[] = L"OANOCACHE";

	if (!GetEnvironmentVariableW(name, NULL, 0) && GetLastError() == ERROR_ENVVAR_NOT_FOUND)
		SetEnvironmentVariableW(name, L"1");
}

/*
 * Brings the program from its creation to its first instruction, with the tracer on. A program may
 * end before that, for example because a DLL is missing. It then has an exit status but no trace.
 */
static int bring_up(const struct program_run *run, struct spawn *spawn, struct traced *traced,
	const struct traced_options *options, struct err *err)
{
	/* The bitness may still be wrong, because the image that runs may not be the file that was
	 * examined. */
	int rc = traced_prepare(
		traced, spawn->info.hProcess, spawn->info.hThread, run->argv[0], err);

	if (rc)
		return rc;
	ResumeThread(spawn->info.hThread);
	spawn_let_go(spawn);
	return traced_bring_up(traced, NULL, options, err);
}

static int run_started(const struct program_run *run, struct spawn *spawn, struct family *family,
	uint32_t *exit_status, struct err *err)
{
	const struct traced_options options = options_for(family, run->recording);
	struct traced traced = {0};
	DWORD status = 2;
	int rc = bring_up(run, spawn, &traced, &options, err);

	if (rc) {
		TerminateProcess(spawn->info.hProcess, 2);
	} else {
		warn_of_policy(family, &traced);
		rc = follow(family, &traced, run->recording, err);
		if (!GetExitCodeProcess(spawn->info.hProcess, &status) && !rc)
			rc = err_set(err, ERR_SYSTEM, run->argv[0], "its exit status is not known");
		*exit_status = status;
	}
	traced_release(&traced);
	spawn_let_go(spawn);
	CloseHandle(spawn->info.hThread);
	CloseHandle(spawn->info.hProcess);
	return rc;
}

/* Follows a child that another hsnap has handed over. The child's own exit status is for its parent
 * and is not returned. */
static int run_handed(const struct program_run *run, const struct handed_child *handed,
	uint32_t *exit_status, struct err *err)
{
	struct family family;
	struct traced parent = {
		.process = handed->parent, .target.pid = GetProcessId(handed->parent)};
	const struct new_child born = {.family = &family,
		.parent = &parent,
		.child = {handed->pid, handed->tid},
		.prepared = handed->ready};
	int rc = family_init(&family, run, handed, err);

	if (rc)
		return rc;
	follow_born(&born);
	family_end(&family);
	*exit_status = family.is_late ? RUN_LATE : 0;
	return 0;
}

static int run_here(const struct program_run *run, uint32_t *exit_status, struct err *err)
{
	const struct handed_child none = {0};
	struct family family;
	struct spawn spawn = {0};
	int rc = family_init(&family, run, &none, err);

	if (rc)
		return rc;
	rc = program_start(run, &spawn, err);
	if (!rc)
		rc = run_started(run, &spawn, &family, exit_status, err);
	family_end(&family);
	if (family.is_late)
		*exit_status = RUN_LATE;
	return rc;
}

int run_program(const struct program_run *run, uint32_t *exit_status, struct err *err)
{
	struct handed_child handed;
	int rc;

	run_leave_interrupts();
	if (follow_child_handed(&handed))
		return run_handed(run, &handed, exit_status, err);
	if (!run->keep_bstr_cache)
		avoid_bstr_cache();
	rc = run_here(run, exit_status, err);
	return rc == -ERR_BITS ? run_other_hsnap(run->argv[0], exit_status, err) : rc;
}
