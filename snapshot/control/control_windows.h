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

/* The program that hsnap run starts: its file and its bitness. */

/* The bitness of this hsnap and of the programs that it can trace. */
#define OUR_BITS ((unsigned)(8 * sizeof(void *)))

/* Returns the PE_MACHINE_* of the program in a file; 0: not an image (a script, for example). */
uint16_t control_file_machine(const wchar_t *path);

/* Read the facts that are known without a process, or with one. process has the right
 * PROCESS_QUERY_LIMITED_INFORMATION, and PROCESS_QUERY_INFORMATION for mitigation policies. */
void control_facts_of_host(struct control_facts *facts);
void control_facts_of_process(struct control_facts *facts, HANDLE process);

/* Returns the path of a file next to this program, or NULL if there is no such file. The system
 * accepts the path at any length. The caller frees it. */
wchar_t *program_beside(const wchar_t *name);

/* Returns true if path is the file of this program, by whatever name. */
bool program_is_this(const wchar_t *path);

/* A child process that waits to be prepared, as its parent's hsnap hands it to the hsnap of the
 * other bitness. */
struct handed_child {
	uint32_t pid, tid;
	HANDLE parent; /* with the rights SYNCHRONIZE and PROCESS_QUERY_LIMITED_INFORMATION */
	HANDLE ready; /* event, set when the child is prepared or left alone */
	HANDLE output_lock; /* mutex for output to the streams */
	int64_t until_ms; /* time limit by os_clock_ms(); 0: none */
};

/* Makes the other hsnap follow a child, sets the event prepared when the child may go on, and waits
 * until both have ended. Returns 0 and the exit status; the other hsnap has printed all messages
 * then. Returns -ERR_BITS or -ERR_64_BITS if the other hsnap does not exist, -ERR_START or
 * -ERR_NOMEM. */
int follow_by_other(const struct handed_child *child, const char *name, HANDLE prepared,
	uint32_t *exit_status, struct err *err);

/* Returns true if a program can run here. Wine without a 32-bit ntdll ends 32-bit programs at once,
 * with status 0. */
bool other_bits_can_run(const wchar_t *image);

/* Runs the other hsnap with the given arguments, separated by blanks. Returns like
 * run_other_hsnap(). */
int run_other_hsnap_for(
	const char *name, const wchar_t *words, uint32_t *exit_status, struct err *err);

/* Copies the child that was handed over to this hsnap. Returns false if there is no such child. */
bool follow_child_handed(struct handed_child *child);

/*
 * A process with the tracer's DLL in it, as it is controlled from outside: its tracer's area, the
 * hooked functions, and the jumps in them.
 *
 * Data that is read from the process may be wrong on purpose. So writes go only to the tracer's own
 * area, to memory that was reserved for it, and to the image of ntdll.
 */

struct tracee_range {
	uint64_t base, bytes;
};

#define TRACEE_WAITS 8

struct tracee {
	struct target *target; /* the caller's, like process */
	HANDLE process;
	uint64_t area_addr;
	struct tracer_area area; /* as it was read, and as it is to be written */
	struct tracee_range ntdll, dll;
	/* Hooked address of each function: the export, or the end of its hot patch's jumps; 0: does
	 * not exist. */
	uint64_t functions[HOOK_COUNT];
	/* ntdll's system calls in which a thread waits; 0: does not exist */
	uint64_t waits[TRACEE_WAITS];
};

/* State of a function's first bytes. */
enum tracee_jump {
	JUMP_UNREADABLE,
	JUMP_OUT, /* original */
	JUMP_IN, /* our jump */
	JUMP_FOREIGN, /* neither */
};

/* Finds the tracer's area, whatever its state. Returns 0, -ERR_NOT_TRACED, -ERR_TARGET if a DLL of
 * the tracer's name is not the tracer, or errors of target_ops.modules(). */
int tracee_find(struct target *target, uint64_t *area_addr, struct err *err);

/*
 * Reads all of the tracee. process is a HANDLE of the target with the rights to read, write and
 * change memory. Returns 0 and *tracee, for tracee_free(); -ERR_INJECT (no ntdll, or it lacks a
 * function), -ERR_TARGET, -ERR_GONE, -ERR_BITS, -ERR_NOMEM.
 */
int tracee_new(struct tracee **tracee, struct target *target, HANDLE process, uint64_t area_addr,
	struct err *err);
void tracee_free(struct tracee *tracee);

const char *tracee_function_name(enum tracer_hook_id id);

/* Order in which jumps are put in: functions that remove blocks from the tables come first, so that
 * a block that is not live stays there only briefly. Jumps are removed in the reverse order. */
extern const enum tracer_hook_id tracee_hook_order[HOOK_COUNT];

bool tracee_is_in(const struct tracee_range *range, uint64_t addr);

/* Returns true if a thread that continues at ip is in none of ntdll's functions, or waits in one.
 * Such a thread is not inside a function of a heap, except when it waits for the heap's lock. */
bool tracee_is_at_rest(const struct tracee *tracee, uint64_t ip);

/* Writes to the target's memory, which must be writable. */
bool tracee_write(const struct tracee *tracee, uint64_t addr, const void *bytes, size_t len);

/* Sets the state, in the target and in *tracee. */
bool tracee_set_state(struct tracee *tracee, enum tracer_state state);

/* Compares the bytes at hooks[id].function with those in the area. A function that is not hooked is
 * JUMP_OUT. */
enum tracee_jump tracee_jump(const struct tracee *tracee, enum tracer_hook_id id);

/* Writes a hook's new bytes, or its old ones. Returns false if nothing was written. All threads
 * must be held. */
bool tracee_patch(const struct tracee *tracee, enum tracer_hook_id id, bool in);

/* Frees the memory of the tables and of a recording's rings, if there is any. No thread may be in
 * the tracer. */
void tracee_free_tables(struct tracee *tracee);

/*
 * Injection of the tracer into a process that was created suspended.
 *
 * The process's first thread gets four calls to make when the loader is done and before the
 * program's first instruction: load the tracer, set an event, wait for hsnap, and close the object
 * that it waited for. So the program's own thread does everything that it does without hsnap, in
 * the same order. If hsnap dies meanwhile, the thread goes on, because it waits for a mutex of
 * hsnap's.
 */

struct injection {
	HANDLE process; /* the caller's */
	HANDLE loaded, go; /* event; mutex */
	HANDLE their_loaded, their_go; /* handles of these, in the process */
	void *their_path;
	bool is_queued; /* the thread may use the process's handles and path */
};

/* Prepares an injection, before the thread is resumed. Returns 0 or -ERR_INJECT; the caller calls
 * injection_release() in both cases. name is for messages. */
int injection_prepare(struct injection *injection, HANDLE process, HANDLE thread, const char *name,
	struct err *err);

enum injection_state {
	INJECTION_LOADED, /* the thread has tried to load the tracer and waits */
	INJECTION_ENDED, /* the process ended before */
	INJECTION_LATE, /* the time limit is over */
	INJECTION_ORPHANED, /* the parent has exited, and the thread does not seem to be resumed */
};

/* Waits for the thread to load the tracer. parent is a HANDLE of the process that is to resume the
 * thread, or NULL if the thread runs. until_ms is as for inject_wait_any(). */
enum injection_state injection_wait(struct injection *injection, HANDLE parent, int64_t until_ms);

/* Lets the thread go on to the program, and closes everything. Objects that the thread may still
 * use, because it was not seen to wait, are left to its process. */
void injection_release(struct injection *injection);

/* Returns the result of WaitForMultipleObjects() for any of the handles, or WAIT_TIMEOUT at
 * until_ms by os_clock_ms(). until_ms 0: no limit. */
DWORD inject_wait_any(DWORD count, const HANDLE *handles, int64_t until_ms);

/*
 * Turning the tracer on and off in a process that has loaded it.
 *
 * After each step the process runs correctly even if hsnap is terminated right then. Reserved
 * memory is named in the tracer's area at once. The area's state is ON before the first jump is
 * written. A jump is written whole or not at all. The order is such that no block counts as live
 * that is not. remove_tracer() or the next install_tracer() ends an unfinished installation.
 */

/*
 * The section of a recording: rings that the tracer in a process writes, and hsnap reads (see
 * snapshot/tracer/rings.h).
 *
 * A process keeps its view until the tracer's tables are freed, or until it exits. When hsnap
 * exits, threads that wait for room go on, and nothing more is recorded.
 */

struct ring_section {
	HANDLE handle;
	struct ring_area *area; /* as mapped here; untrusted */
	uint32_t ring_count, events_log2;
};

#define RING_SECTION_MIN ((uint64_t)1 << 16)

/* Makes a section of at most limit_bytes, which is RING_SECTION_MIN or more, with flags RING_*.
 * Returns 0 or -ERR_NOMEM; the caller calls ring_section_release() in both cases. */
int ring_section_init(
	struct ring_section *section, uint64_t limit_bytes, uint32_t flags, struct err *err);
void ring_section_release(struct ring_section *section);

/* Gives back the rings of that process's threads that have exited. */
void ring_section_reclaim(const struct ring_section *section, uint32_t pid);

/* Maps the section into a tracee's process. process has the right to be given handles
 * (PROCESS_DUP_HANDLE). Returns 0 or -ERR_INJECT. */
int ring_section_map(const struct ring_section *section, struct tracee *tracee, struct err *err);

/* Make its tracer begin or stop to record in the section, by its area, in the target and in
 * *tracee. All threads must be held. Return 0 or -ERR_INJECT. */
int ring_section_start(struct tracee *tracee, struct err *err);
int ring_section_stop(struct tracee *tracee, struct err *err);

/* Returns true if a process still empties the rings of its tracer. */
bool ring_section_is_read(const struct tracee *tracee);

/* Unmaps the view from the process, whichever hsnap made the section. No thread may be in the
 * tracer's code. */
void ring_section_unmap(struct tracee *tracee);

/*
 * Puts the existing blocks of the process into the tables of its tracer, which are empty: then its
 * heaps need no walk later. To be called before the tracer is turned on. All threads must be held,
 * none in a heap's function: there a thread may have made a block, or may be about to free one,
 * without the tracer's knowledge. Sets TRACER_FLAG_LISTED, or does nothing if the heaps are not
 * known for certain. Returns 0, or -ERR_INJECT or -ERR_NOMEM: then the tracer is not to be turned
 * on.
 */
int older_list(struct tracee *tracee, struct err *err);

struct install_options {
	uint64_t limit_bytes; /* of its tables */
	uint64_t sample_bytes; /* 0: every block is recorded */
	uint32_t flags; /* TRACER_FLAG_* */
	const struct ring_section *rings; /* not NULL: every event is also recorded there */
	/* recording through rings, whose begin() is called, or NULL; it may also begin while the
	 * tracer is on */
	const struct recording_link *recording;
	/* if not NULL: set to the limit found, which is lower if address space is short */
	uint64_t *limit_found;
};

/*
 * Sets up the tracer whose area is at area_addr and hooks ntdll, while all threads that could be in
 * it are held. process is a HANDLE of the target with the rights to read, write and change memory,
 * to suspend it and to ask for information. Returns 0; -ERR_TRACED (it is on; nothing was changed);
 * -ERR_BUSY (a thread has been in the tracer's code since it was last on), -ERR_INJECT,
 * -ERR_TARGET, -ERR_GONE, -ERR_RIGHTS, -ERR_SYSTEM, -ERR_BITS, -ERR_NOMEM: nothing is hooked.
 */
int install_tracer(struct target *target, void *process, uint64_t area_addr,
	const struct install_options *options, struct err *err);

/*
 * Removes the hooks from ntdll and turns the tracer off, even if threads are in hooks: they return
 * through the DLL and its trampolines, which stay. The tables' memory is freed if no thread seems
 * to be in a hook, otherwise by the next install_tracer(), or with the process. Returns 0;
 * -ERR_NOT_TRACED; -ERR_BUSY (another program has changed a hooked function): the tracer stays on;
 * or errors like install_tracer().
 */
int remove_tracer(struct target *target, void *process, uint64_t area_addr, struct err *err);

/*
 * A process under the tracer, from before its first instruction to its end.
 *
 * One thread prepares the process, brings it up and follows it to its end. Whatever happens to that
 * thread or to hsnap, the process goes on, because everything that it waits for ends with them.
 */

struct traced {
	HANDLE process; /* the caller's */
	const char *name; /* for messages; the caller's */
	struct control_facts facts;
	struct target target; /* open while the process is prepared */
	/* held until the process is brought up: control_attach() waits meanwhile */
	struct process_lock lock;
	struct injection injection;
	uint64_t area_addr;
	uint64_t limit_bytes; /* of its tables: less than requested if address space is short */
	/* Events that the process has, too; NULL: not requested. */
	HANDLE exit_reached, exit_continue, child_created, child_taken;
};

struct traced_options {
	struct install_options install; /* TRACER_FLAG_CHILDREN: children are announced */
	bool stops_at_exit;
	int64_t until_ms; /* time limit by os_clock_ms(); 0: none */
};

enum traced_event {
	TRACED_ENDED,
	TRACED_LATE, /* the time limit is over */
	TRACED_AT_EXIT, /* once; the process waits until exit_continue is set */
	TRACED_CHILD, /* traced_child() identifies it; the process waits until child_taken is set */
};

/*
 * Makes the first thread, which has not run yet, load the tracer when it runs. process has the
 * rights TRACED_RIGHTS. Returns 0; -ERR_BITS and -ERR_CANNOT_TRACE (nothing was written into the
 * process), -ERR_TRACED (another hsnap works on it, such as one that follows all children of this
 * hsnap), -ERR_INJECT. The caller calls traced_release() in every case.
 */
#define TRACED_RIGHTS                                                                              \
	(PROCESS_VM_READ | PROCESS_VM_WRITE | PROCESS_VM_OPERATION | PROCESS_DUP_HANDLE |          \
		PROCESS_QUERY_INFORMATION | PROCESS_SUSPEND_RESUME | SYNCHRONIZE)
#define TRACED_THREAD_RIGHTS (THREAD_SET_CONTEXT | THREAD_QUERY_INFORMATION)
int traced_prepare(
	struct traced *traced, HANDLE process, HANDLE thread, const char *name, struct err *err);

/*
 * Waits until that thread has loaded the tracer, turns the tracer on, and lets the program begin.
 * parent is a HANDLE of the process that resumes the thread, or NULL if the thread was resumed.
 * Returns 0, also if the process exits before, or the time limit is over. After an error the thread
 * waits until traced_release(), or it was never resumed.
 */
int traced_bring_up(struct traced *traced, HANDLE parent, const struct traced_options *options,
	struct err *err);

enum traced_event traced_wait(struct traced *traced, int64_t until_ms);

/* Child of a TRACED_CHILD event, as the process describes it: the ids may be any numbers.
 * traced_child() returns false if they cannot be read. */
struct traced_child {
	uint32_t pid, tid;
};

bool traced_child(struct traced *traced, struct traced_child *child);

void traced_release(struct traced *traced);

/* Loading the tracer into a running process. */

#define LOAD_RIGHTS (PROCESS_CREATE_THREAD | PROCESS_VM_OPERATION | PROCESS_VM_WRITE | SYNCHRONIZE)

/*
 * Makes a new thread of the process load the DLL next to this program, and waits for the thread's
 * end. It waits ten seconds at most, because another thread may hold the loader's lock. After that
 * the thread and the path that it reads are left alone; a DLL that is loaded later does nothing.
 * name is for messages, facts explain a failure. Returns 0: the thread has ended;
 * -ERR_CANNOT_TRACE, -ERR_INJECT, -ERR_BUSY (the time limit is over), -ERR_GONE, -ERR_NOMEM.
 */
int inject_load_tracer(
	HANDLE process, const char *name, const struct control_facts *facts, struct err *err);

/* Makes a new thread of the process call a function that takes no arguments. Returns false if the
 * function has not returned in time. */
bool inject_call(HANDLE process, uint64_t function);

int inject_not_loaded(
	const struct control_facts *facts, enum refusal_way way, const char *name, struct err *err);

/*
 * All threads of another process, suspended where they can be inspected and moved.
 *
 * While they are held, a helper process (guard_start()) waits for this process to end: however that
 * happens, the threads go on. One process at a time holds another one in this way. The next one
 * begins only after the last one's helper has exited, too: a late helper would resume threads that
 * were just suspended.
 */

struct held_thread {
	DWORD id;
	HANDLE handle;
	uint64_t ip, sp; /* where the thread will continue, and its stack pointer */
};

struct threads {
	HANDLE process; /* the caller's */
	const char *name; /* for messages; the caller's */
	HANDLE lock; /* object whose name identifies the held process */
	struct resume_guard *guard;
	struct held_thread *items;
	size_t count, cap;
	bool is_held;
};

void threads_init(struct threads *threads, HANDLE process, const char *name);

/* Resumes the threads if they are held. */
void threads_release(struct threads *threads);

/*
 * Returns the current number of threads of the process; 0: unknown. A process whose only thread
 * waits for this one need not be held.
 */
size_t threads_count(HANDLE process);

/*
 * Suspends all threads, including new ones, and finds out where each is. Returns 0; -ERR_GONE,
 * -ERR_RIGHTS (a thread cannot be inspected), -ERR_BUSY (another hsnap holds the process, or its
 * threads change all the time), -ERR_SYSTEM (the helper cannot be started), -ERR_NOMEM: then no
 * thread is held.
 */
int threads_hold(struct threads *threads, struct err *err);
void threads_let_go(struct threads *threads);

/* Makes a held thread continue elsewhere, with its registers unchanged. Returns false if it could
 * not be moved. */
bool threads_move(struct held_thread *thread, uint64_t ip);

/* The rest of a tracer that is off. */

/* Frees the memory of its tables when no thread uses them any more, for which it waits some
 * seconds. No hook may be in. Returns 0, also if there is no such memory; -ERR_BUSY; errors of
 * threads_hold(). */
int remove_rest(struct tracee *tracee, struct err *err);

/* Ends the recording of a tracer that stays on: removes its rings. Returns 0, also if there are no
 * rings; -ERR_BUSY: the rings are not used any more, and stay for the next call. */
int remove_rings(struct tracee *tracee, struct err *err);

#endif
