/* The parts of control: finding and loading the tracer, patching, threads, children. */
#ifndef SNAPSHOT_CONTROL_CONTROL_WINDOWS_H
#define SNAPSHOT_CONTROL_CONTROL_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#include <windows.h>

#include "core/base/err.h"
#include "snapshot/control/control.h"
#include "snapshot/control/refusal.h"
#include "snapshot/live/live_windows.h"
#include "snapshot/target/target.h"
#include "snapshot/tracer/rings.h"
#include "snapshot/tracer/shared.h"

/* The program that 'hsnap run' starts: its file and its bitness. */

/* The bitness of this hsnap and of the programs that it can trace. */
#define OUR_BITS ((unsigned)(8 * sizeof(void *)))

/* Returns the PE_MACHINE_* of a program file; 0: the file is not an image, but a script, for
 * example. */
uint16_t control_file_machine(const wchar_t *path);

/*
 * The first function reads the facts that do not depend on a process; the second reads a process's
 * facts. process must have the right PROCESS_QUERY_LIMITED_INFORMATION and, for mitigation
 * policies, PROCESS_QUERY_INFORMATION.
 */
void control_facts_of_host(struct control_facts *facts);
void control_facts_of_process(struct control_facts *facts, HANDLE process);

/* Returns the path of a file next to hsnap, or NULL if the file does not exist. The system accepts
 * the path whatever its length. The caller frees the path. */
wchar_t *program_beside(const wchar_t *name);

/* Returns true if path refers to hsnap's own file, even under another name. */
bool program_is_this(const wchar_t *path);

/* A child process that is waiting to be prepared. The parent's hsnap hands the child over to the
 * hsnap of the other bitness. */
struct handed_child {
	uint32_t pid, tid;
	HANDLE parent; /* with the rights SYNCHRONIZE and PROCESS_QUERY_LIMITED_INFORMATION */
	HANDLE ready; /* event that is set when the child is prepared, or will not be traced */
	HANDLE output_lock; /* mutex for output to the standard streams */
	int64_t until_ms; /* end of the time limit, as os_clock_ms() counts; 0: none */
};

/*
 * Makes the other hsnap follow a child. Sets the event `prepared` when the child may continue.
 * Waits until both have ended. Returns 0 and the exit status, after the other hsnap has printed all
 * messages. Returns -ERR_BITS or -ERR_64_BITS if the other hsnap does not exist, -ERR_START or
 * -ERR_NOMEM.
 */
int follow_by_other(const struct handed_child *child, const char *name, HANDLE prepared,
	uint32_t *exit_status, struct err *err);

/* Returns true if a program can run on this system. Wine without a 32-bit ntdll ends 32-bit
 * programs at once, with status 0. */
bool other_bits_can_run(const wchar_t *image);

/* Runs the other hsnap with the given arguments, which are separated by blanks. Returns the same
 * values as run_other_hsnap(). */
int run_other_hsnap_for(
	const char *name, const wchar_t *words, uint32_t *exit_status, struct err *err);

/* Copies the description of the child that was handed over to this hsnap. Returns false if no child
 * was handed over. */
bool follow_child_handed(struct handed_child *child);

/*
 * A process that contains the tracer's DLL, as hsnap controls it from outside: the tracer's area,
 * the hooked functions, and their jumps.
 *
 * Data that is read from the process may have been falsified. So hsnap writes only to the tracer's
 * own area, to memory reserved for the tracer, and to ntdll's image.
 */

struct tracee_range {
	uint64_t base, bytes;
};

#define TRACEE_WAITS 8

struct tracee {
	struct target *target; /* owned by the caller, like process */
	HANDLE process;
	uint64_t area_addr;
	struct tracer_area area; /* as it was read from the process, and as it will be written */
	struct tracee_range ntdll, dll;
	/* Address of each function's hook: the export, or the end of its hot patch's jumps. 0: the
	 * function does not exist. */
	uint64_t functions[HOOK_COUNT];
	/* system calls of ntdll in which a thread waits; 0: does not exist */
	uint64_t waits[TRACEE_WAITS];
};

/* State of the first bytes of a function. */
enum tracee_jump {
	JUMP_UNREADABLE,
	JUMP_OUT, /* the original bytes */
	JUMP_IN, /* hsnap's jump */
	JUMP_FOREIGN, /* other bytes */
};

/* Finds the tracer's area, whatever its state. Returns 0; -ERR_NOT_TRACED; -ERR_TARGET if a DLL has
 * the tracer's name but is not the tracer; or errors of target_ops.modules(). */
int tracee_find(struct target *target, uint64_t *area_addr, struct err *err);

/*
 * Reads everything in struct tracee. process: HANDLE of the target, with the rights to read, write
 * and change memory. Returns 0 and *tracee, which tracee_free() frees. Returns -ERR_INJECT (ntdll
 * is missing, or lacks a function), -ERR_TARGET, -ERR_GONE, -ERR_BITS or -ERR_NOMEM.
 */
int tracee_new(struct tracee **tracee, struct target *target, HANDLE process, uint64_t area_addr,
	struct err *err);
void tracee_free(struct tracee *tracee);

const char *tracee_function_name(enum tracer_hook_id id);

/*
 * Order in which jumps are written. Functions that remove blocks from the tables come first, so
 * that a block that is no longer live stays in the tables only briefly. Jumps are removed in the
 * reverse order.
 */
extern const enum tracer_hook_id tracee_hook_order[HOOK_COUNT];

bool tracee_is_in(const struct tracee_range *range, uint64_t addr);

/*
 * Returns true if a thread that continues at ip is outside all of ntdll's functions, or waits in
 * one of them. Such a thread is not inside a heap function, unless it is waiting for the heap's
 * lock.
 */
bool tracee_is_at_rest(const struct tracee *tracee, uint64_t ip);

/* Writes to the target's memory. The memory must be writable. */
bool tracee_write(const struct tracee *tracee, uint64_t addr, const void *bytes, size_t len);

/* Sets the tracer's state, in the target and in *tracee. */
bool tracee_set_state(struct tracee *tracee, enum tracer_state state);

/* Compares the bytes at hooks[id].function with the bytes in the area. Returns JUMP_OUT for a
 * function that is not hooked. */
enum tracee_jump tracee_jump(const struct tracee *tracee, enum tracer_hook_id id);

/* Writes the new or the old bytes of a hook. Returns false if nothing was written. All threads must
 * be held. */
bool tracee_patch(const struct tracee *tracee, enum tracer_hook_id id, bool in);

/* Frees the memory of the tables and of a recording's rings, if this memory exists. No thread may
 * be in the tracer. */
void tracee_free_tables(struct tracee *tracee);

/*
 * Injection of the tracer into a process that was created suspended.
 *
 * The process's first thread is given four calls, which it makes after the loader has finished and
 * before the program's first instruction. They load the tracer, set an event, wait for hsnap, and
 * close the waited-for object. So the program's own thread does everything that it does without
 * hsnap, in the same order. If hsnap dies meanwhile, the thread continues, because the object that
 * it waits for is a mutex that hsnap owns.
 */

struct injection {
	HANDLE process; /* owned by the caller */
	HANDLE loaded, go; /* loaded: event; go: mutex */
	HANDLE their_loaded, their_go; /* handles for `loaded` and `go` in the process */
	void *their_path;
	bool is_queued; /* the thread may be using the process's handles and path */
};

/* Prepares an injection, before the thread is resumed. name: for messages. Returns 0 or
 * -ERR_INJECT. The caller must always call injection_release(). */
int injection_prepare(struct injection *injection, HANDLE process, HANDLE thread, const char *name,
	struct err *err);

enum injection_state {
	INJECTION_LOADED, /* the thread has tried to load the tracer and is waiting */
	INJECTION_ENDED, /* the process ended before that */
	INJECTION_LATE, /* the time limit is over */
	INJECTION_ORPHANED, /* the parent has exited, and the thread was probably never resumed */
};

/* Waits until the thread has loaded the tracer. parent: HANDLE of the process that will resume the
 * thread, or NULL if the thread is running. until_ms: as for inject_wait_any(). */
enum injection_state injection_wait(struct injection *injection, HANDLE parent, int64_t until_ms);

/* Lets the thread continue to the program, and closes everything. If the thread was not seen
 * waiting, it may still use some objects. These stay open in the thread's process. */
void injection_release(struct injection *injection);

/* Returns the result of WaitForMultipleObjects() for any of the handles. Returns WAIT_TIMEOUT when
 * os_clock_ms() reaches until_ms. until_ms 0: no limit. */
DWORD inject_wait_any(DWORD count, const HANDLE *handles, int64_t until_ms);

/*
 * Turning the tracer on and off in a process that has loaded it.
 *
 * If hsnap is terminated after any step, the process still runs correctly. Reserved memory is
 * recorded in the tracer's area immediately. The area's state is ON before the first jump is
 * written. A jump is written either completely or not at all. The steps are ordered so that blocks
 * that are not live never count as live. remove_tracer() or the next install_tracer() cleans up an
 * incomplete installation.
 */

/*
 * The section of a recording: rings that the tracer in a process writes and hsnap reads (see
 * snapshot/tracer/rings.h).
 *
 * The section stays mapped in the process until the tracer's tables are freed, or until the process
 * exits. When hsnap exits, threads waiting for room continue, and nothing more is recorded.
 */

struct ring_section {
	HANDLE handle;
	struct ring_area *area; /* mapped in this process; untrusted */
	uint32_t ring_count, events_log2;
};

#define RING_SECTION_MIN ((uint64_t)1 << 16)

/* Creates a section of at most limit_bytes, which must be at least RING_SECTION_MIN. flags: RING_*.
 * Returns 0 or -ERR_NOMEM. The caller must always call ring_section_release(). */
int ring_section_init(
	struct ring_section *section, uint64_t limit_bytes, uint32_t flags, struct err *err);
void ring_section_release(struct ring_section *section);

/* Frees the rings of the process's threads that have exited. */
void ring_section_reclaim(const struct ring_section *section, uint32_t pid);

/* Maps the section into a tracee's process. process must have the right PROCESS_DUP_HANDLE, because
 * handles are duplicated into it. Returns 0 or -ERR_INJECT. */
int ring_section_map(const struct ring_section *section, struct tracee *tracee, struct err *err);

/* Make the tracer start or stop recording in the section, by changing its area in the target and in
 * *tracee. All threads must be held. Return 0 or -ERR_INJECT. */
int ring_section_start(struct tracee *tracee, struct err *err);
int ring_section_stop(struct tracee *tracee, struct err *err);

/* Returns true if some process still reads the rings of the process's tracer. */
bool ring_section_is_read(const struct tracee *tracee);

/* Unmaps the section from the process, no matter which hsnap created it. No thread may be in the
 * tracer's code. */
void ring_section_unmap(struct tracee *tracee);

/*
 * Adds the process's existing blocks to its tracer's tables, which must be empty, so that no later
 * snapshot needs to walk the heaps. Must be called before the tracer is turned on. All threads must
 * be held, and none may be in a heap function: such a thread may have allocated a block, or may be
 * about to free one, without the tracer's knowledge. Sets TRACER_FLAG_LISTED. Does nothing if the
 * heaps are not known for certain. Returns 0. After -ERR_INJECT or -ERR_NOMEM, the tracer must not
 * be turned on.
 */
int older_list(struct tracee *tracee, struct err *err);

struct install_options {
	uint64_t limit_bytes; /* limit for the tracer's tables */
	uint64_t sample_bytes; /* 0: every block is recorded */
	uint32_t flags; /* TRACER_FLAG_* */
	/* if not NULL, every event is also recorded in these rings */
	const struct ring_section *rings;
	/* recording with rings, or NULL; its begin() is called; it may also begin while the tracer
	 * is already on */
	const struct recording_link *recording;
	/* if not NULL, set to the actual limit, which is lower if address space is short */
	uint64_t *limit_found;
};

/*
 * Sets up the tracer whose area is at area_addr, and hooks ntdll. All threads that could be in the
 * tracer are held meanwhile. process: HANDLE of the target with the rights to read, write and
 * change memory, to suspend the process and to query information. Returns 0 or an error; after an
 * error, nothing is hooked. The exception is -ERR_TRACED: the tracer is already on, and nothing was
 * changed. Other errors are -ERR_BUSY (a thread has been in the tracer's code since the tracer was
 * last on), -ERR_INJECT, -ERR_TARGET, -ERR_GONE, -ERR_RIGHTS, -ERR_SYSTEM, -ERR_BITS and
 * -ERR_NOMEM.
 */
int install_tracer(struct target *target, void *process, uint64_t area_addr,
	const struct install_options *options, struct err *err);

/*
 * Removes the hooks from ntdll and turns the tracer off, even if threads are in hooks. Such threads
 * return through the DLL and its trampolines, which stay. If no thread seems to be in a hook, the
 * memory of the tables is freed at once. Otherwise the next install_tracer() frees it, or it is
 * freed when the process exits. Returns 0; -ERR_NOT_TRACED; -ERR_BUSY if another program has
 * changed a hooked function (the tracer stays on); or errors like install_tracer().
 */
int remove_tracer(struct target *target, void *process, uint64_t area_addr, struct err *err);

/*
 * A process with the tracer, from before its first instruction until its end.
 *
 * One thread of hsnap prepares the process, brings it up and follows it until it ends. If that
 * thread or hsnap ends for any reason, the process continues, because everything that the process
 * waits for ends, too.
 */

struct traced {
	HANDLE process; /* owned by the caller */
	const char *name; /* for messages; owned by the caller */
	struct control_facts facts;
	struct target target; /* open while the process is prepared */
	/* held until the process is brought up; control_attach() waits for it */
	struct process_lock lock;
	struct injection injection;
	uint64_t area_addr;
	/* actual limit of the tables; lower than requested if address space is short */
	uint64_t limit_bytes;
	/* Events shared with the process. NULL: not requested. */
	HANDLE exit_reached, exit_continue, child_created, child_taken;
};

struct traced_options {
	struct install_options install; /* flag TRACER_FLAG_CHILDREN: children are announced */
	bool stops_at_exit;
	int64_t until_ms; /* end of the time limit, as os_clock_ms() counts; 0: none */
};

enum traced_event {
	TRACED_ENDED,
	TRACED_LATE, /* the time limit is over */
	TRACED_AT_EXIT, /* reported once; the process waits until exit_continue is set */
	/* traced_child() identifies the child; the process waits until child_taken is set */
	TRACED_CHILD,
};

/*
 * Makes the first thread load the tracer as soon as it runs. The thread must not have run yet.
 * process has the rights TRACED_RIGHTS. Returns 0; -ERR_BITS or -ERR_CANNOT_TRACE (nothing was
 * written into the process); -ERR_TRACED (another hsnap is working on the process, for example one
 * that follows all children of this hsnap); -ERR_INJECT. The caller must always call
 * traced_release().
 */
#define TRACED_RIGHTS                                                                              \
	(PROCESS_VM_READ | PROCESS_VM_WRITE | PROCESS_VM_OPERATION | PROCESS_DUP_HANDLE |          \
		PROCESS_QUERY_INFORMATION | PROCESS_SUSPEND_RESUME | SYNCHRONIZE)
#define TRACED_THREAD_RIGHTS (THREAD_SET_CONTEXT | THREAD_QUERY_INFORMATION)
int traced_prepare(
	struct traced *traced, HANDLE process, HANDLE thread, const char *name, struct err *err);

/*
 * Waits until the first thread has loaded the tracer, turns the tracer on, and lets the program
 * begin. parent: HANDLE of the process that will resume the thread, or NULL if the thread was
 * already resumed. Returns 0, even if the process exits first or the time limit ends first. After
 * an error, the thread waits until traced_release(), or was never resumed.
 */
int traced_bring_up(struct traced *traced, HANDLE parent, const struct traced_options *options,
	struct err *err);

enum traced_event traced_wait(struct traced *traced, int64_t until_ms);

/* The child in a TRACED_CHILD event. The process supplies the ids, which may be any numbers.
 * traced_child() returns false if the ids cannot be read. */
struct traced_child {
	uint32_t pid, tid;
};

bool traced_child(struct traced *traced, struct traced_child *child);

void traced_release(struct traced *traced);

/* Loading the tracer into a running process. */

#define LOAD_RIGHTS (PROCESS_CREATE_THREAD | PROCESS_VM_OPERATION | PROCESS_VM_WRITE | SYNCHRONIZE)

/*
 * Makes a new thread of the process load the DLL that is next to hsnap. Waits until the thread
 * ends, but at most ten seconds, because another thread may hold the loader lock. After ten
 * seconds, the thread and the path that it reads are left alone. If the DLL is loaded later, it
 * does nothing. name: for messages. facts: used to explain a failure. Returns 0 if the thread has
 * ended; -ERR_CANNOT_TRACE, -ERR_INJECT, -ERR_BUSY (ten seconds have passed), -ERR_GONE or
 * -ERR_NOMEM.
 */
int inject_load_tracer(
	HANDLE process, const char *name, const struct control_facts *facts, struct err *err);

/* Makes a new thread of the process call a function without arguments. Returns false if the
 * function has not returned in time. */
bool inject_call(HANDLE process, uint64_t function);

int inject_not_loaded(
	const struct control_facts *facts, enum refusal_way way, const char *name, struct err *err);

/*
 * All threads of another process, suspended where they can be inspected and moved.
 *
 * While they are suspended, a helper process (guard_start()) waits for this process to end. If this
 * process ends for any reason, the helper resumes the threads. Only one process at a time can hold
 * the threads of another process. The next process must also wait until the previous helper has
 * exited, because a late helper would resume threads that were just suspended.
 */

struct held_thread {
	DWORD id;
	HANDLE handle;
	uint64_t ip, sp; /* address where the thread will continue, and its stack pointer */
};

struct threads {
	HANDLE process; /* owned by the caller */
	const char *name; /* for messages; owned by the caller */
	HANDLE lock; /* object whose name identifies the process that is held */
	struct resume_guard *guard;
	struct held_thread *items;
	size_t count, cap;
	bool is_held;
};

void threads_init(struct threads *threads, HANDLE process, const char *name);

/* Resumes the threads if they are held. */
void threads_release(struct threads *threads);

/* Returns the current number of threads of the process, or 0 if it is not known. A process need not
 * be held if its only thread is waiting for this process. */
size_t threads_count(HANDLE process);

/*
 * Suspends all threads, including new threads, and reads where each thread is. Returns 0, or an
 * error, after which no thread is held: -ERR_GONE, -ERR_RIGHTS (a thread cannot be inspected),
 * -ERR_BUSY (another hsnap holds the process, or its threads change all the time), -ERR_SYSTEM (the
 * helper cannot be started) or -ERR_NOMEM.
 */
int threads_hold(struct threads *threads, struct err *err);
void threads_let_go(struct threads *threads);

/* Makes a held thread continue at another address, with unchanged registers. Returns false if the
 * thread could not be moved. */
bool threads_move(struct held_thread *thread, uint64_t ip);

/* Memory that remains of a tracer that is off, or of a recording that has ended. */

/*
 * Frees the memory of the tables when no thread uses it any more. Waits a few seconds for that. All
 * hooks must be removed. Returns 0, even if there is no such memory; -ERR_BUSY; or errors of
 * threads_hold().
 */
int remove_rest(struct tracee *tracee, struct err *err);

/*
 * Ends the recording of a tracer that stays on, and removes the rings. Returns 0, even if there are
 * no rings. Returns -ERR_BUSY if a thread may still be using the rings: recording has stopped, and
 * the next call can remove them.
 */
int remove_rings(struct tracee *tracee, struct err *err);

#endif
