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

/*
 * The program that hsnap run is to start: which file that is, and for how many bits.
 */

/* The bitness of this hsnap and of the programs that it can trace. */
#define OUR_BITS ((unsigned)(8 * sizeof(void *)))

/* Returns the PE_MACHINE_* that the program in a file is for; 0: not an image (a script, say). */
uint16_t control_file_machine(const wchar_t *path);

/* Reads the facts that are known without a process, or with one. process has the right PROCESS_QUERY_LIMITED_INFORMATION, and
 * PROCESS_QUERY_INFORMATION for mitigation policies. */
void control_facts_of_host(struct control_facts *facts);
void control_facts_of_process(struct control_facts *facts, HANDLE process);

/* The path of a file beside this program, in a form that the system takes however long it is; the
 * caller's to free. NULL: it is not there. */
wchar_t *program_beside(const wchar_t *name);

/* Whether path is the file of this program, by whatever name. */
bool program_is_this(const wchar_t *path);

/* A child process that waits to be prepared, as the hsnap of its parent hands it to that of the other bitness. */
struct handed_child {
	uint32_t pid, tid;
	HANDLE parent; /* with the rights SYNCHRONIZE and PROCESS_QUERY_LIMITED_INFORMATION */
	HANDLE ready; /* an event, set when it is prepared or left alone */
	HANDLE output_lock; /* a mutex, for what is written to the streams */
	int64_t until_ms; /* by os_clock_ms(); 0: never */
};

/* Has the other hsnap follow a child, sets the event prepared when it may go on, and waits until both have ended. Returns
 * 0 and the exit status, and the other one has printed all messages; -ERR_BITS, -ERR_64_BITS: it is not there;
 * -ERR_START, -ERR_NOMEM. */
int follow_by_other(const struct handed_child *child, const char *name, HANDLE prepared,
	uint32_t *exit_status, struct err *err);

/* Returns true if a program can run here. Wine without a 32-bit ntdll ends 32-bit programs at once, with status 0. */
bool other_bits_can_run(const wchar_t *image);

/* Runs the other hsnap with the given arguments, separated by blanks. Returns as run_other_hsnap(). */
int run_other_hsnap_for(
	const char *name, const wchar_t *words, uint32_t *exit_status, struct err *err);

/* The child that was handed over to this hsnap. False: none was. */
bool follow_child_handed(struct handed_child *child);

/*
 * A process with the tracer's DLL in it, as it is controlled from outside: what its tracer says, the
 * functions that are hooked, and the jumps in them.
 *
 * What is read from it may be a lie. So nothing is written but to the tracer's own area, to memory
 * that was reserved for it, and to what lies in the image of ntdll.
 */

struct tracee_range {
	uint64_t base, bytes;
};

#define TRACEE_WAITS 8

struct tracee {
	struct target *target; /* the caller's, as process */
	HANDLE process;
	uint64_t area_addr;
	struct tracer_area area; /* as it was read, and as it is to be */
	struct tracee_range ntdll, dll;
	/* What is hooked of each: what the export names, or where a hot patch leads; 0: not there. */
	uint64_t functions[HOOK_COUNT];
	uint64_t waits
		[TRACEE_WAITS]; /* of ntdll's system calls, those in which a thread waits; 0: not there */
};

/* What a function's first bytes are. */
enum tracee_jump {
	JUMP_UNREADABLE,
	JUMP_OUT, /* as they were */
	JUMP_IN, /* ours */
	JUMP_FOREIGN, /* neither */
};

/* The address of the tracer's area, whatever its state is. Returns 0; -ERR_NOT_TRACED; -ERR_TARGET when
 * a DLL of its name is there that is none; errors of target_ops.modules(). */
int tracee_find(struct target *target, uint64_t *area_addr, struct err *err);

/*
 * Reads all of that. process is a HANDLE of the target with the rights to read, write and change
 * memory. Returns 0 and *tracee, which tracee_free() ends; -ERR_INJECT (no ntdll, or not a function
 * of it), -ERR_TARGET, -ERR_GONE, -ERR_BITS, -ERR_NOMEM.
 */
int tracee_new(struct tracee **tracee, struct target *target, HANDLE process, uint64_t area_addr,
	struct err *err);
void tracee_free(struct tracee *tracee);

/* The name of a hooked function. */
const char *tracee_function_name(enum tracer_hook_id id);

/* In this order jumps are put in: those that take blocks out of the tables come first, so that none is there for
 * long that is not live; they go the other way round. */
extern const enum tracer_hook_id tracee_hook_order[HOOK_COUNT];

bool tracee_is_in(const struct tracee_range *range, uint64_t addr);

/* Whether a thread that goes on at ip is in none of ntdll's functions, or waits in one: it is on its way through no
 * function of a heap, but for one that waits for the heap's lock. */
bool tracee_is_at_rest(const struct tracee *tracee, uint64_t ip);

/* Writes to the target's memory, which must be writable. */
bool tracee_write(const struct tracee *tracee, uint64_t addr, const void *bytes, size_t len);

/* Sets the state there and here. */
bool tracee_set_state(struct tracee *tracee, enum tracer_state state);

/* What stands at hooks[id].function, by the bytes in the area. A function that is not hooked is
 * JUMP_OUT. */
enum tracee_jump tracee_jump(const struct tracee *tracee, enum tracer_hook_id id);

/* Writes a hook's new bytes, or its old ones; false: nothing was written. All threads are held. */
bool tracee_patch(const struct tracee *tracee, enum tracer_hook_id id, bool in);

/* Gives back the memory of the tables and of a recording's rings, if there is any; no thread may be in the tracer. */
void tracee_free_tables(struct tracee *tracee);

/*
 * Getting the tracer into a process that was created suspended.
 *
 * Its first thread is given four calls to make when the loader is done and before the program's
 * first instruction: load the tracer, say so, wait for hsnap, and close what it has waited for.
 * So the program's own thread does all that it does without hsnap, in the same order. Should hsnap die
 * meanwhile, the thread goes on: what it waits for is a mutex of hsnap's.
 */

struct injection {
	HANDLE process; /* the caller's */
	HANDLE loaded, go; /* an event, a mutex */
	HANDLE their_loaded, their_go; /* the same, in the process */
	void *their_path;
	bool is_queued; /* the thread may use what is theirs */
};

/* Before the thread is resumed. Returns 0 or -ERR_INJECT; injection_release() in both cases. name is
 * for messages. */
int injection_prepare(struct injection *injection, HANDLE process, HANDLE thread, const char *name,
	struct err *err);

enum injection_state {
	INJECTION_LOADED, /* the thread has tried to load the tracer and waits */
	INJECTION_ENDED, /* the process has ended before */
	INJECTION_LATE, /* the time is over */
	INJECTION_ORPHANED, /* so has its parent, and the thread does not seem to be resumed */
};

/* After that. parent is a HANDLE of the process that is to resume the thread, or NULL: it runs. until_ms
 * is as for inject_wait_any(). */
enum injection_state injection_wait(struct injection *injection, HANDLE parent, int64_t until_ms);

/* Lets the thread go on to the program, and closes everything; but what a thread that was not seen to
 * wait may still use is left to its process. */
void injection_release(struct injection *injection);

/* What WaitForMultipleObjects() returns of any of them; WAIT_TIMEOUT when os_clock_ms() says until_ms.
 * 0: never. */
DWORD inject_wait_any(DWORD count, const HANDLE *handles, int64_t until_ms);

/*
 * Switching the tracer on and off in a process that has loaded it.
 *
 * Each step leaves the process running rightly, should this program be ended right behind it: what is
 * reserved is named in the tracer's area at once, its state is ON before the first jump to it is
 * there, a jump is there whole or not at all, and the order is such that no block is taken for live
 * that is not. What was begun so is ended by remove_tracer() or by the next install_tracer().
 */

/*
 * The section of a recording: rings that the tracer in a process writes, and that are read here (see
 * snapshot/tracer/rings.h).
 *
 * A process keeps its view until the tracer's tables are freed, or it ends. When this process ends, threads that
 * wait for room go on, and no more is recorded.
 */

struct ring_section {
	HANDLE handle;
	struct ring_area *area; /* as it is mapped here; never believed */
	uint32_t ring_count, events_log2;
};

#define RING_SECTION_MIN ((uint64_t)1 << 16)

/* Makes one of at most so many bytes, which are RING_SECTION_MIN or more, with flags RING_*. Returns 0 or
 * -ERR_NOMEM; ring_section_release() in both cases. */
int ring_section_init(
	struct ring_section *section, uint64_t limit_bytes, uint32_t flags, struct err *err);
void ring_section_release(struct ring_section *section);

/* Gives back the rings of threads of that process that are gone. */
void ring_section_reclaim(const struct ring_section *section, uint32_t pid);

/* Maps it into the process of a tracee. process has the right to be given handles (PROCESS_DUP_HANDLE). Returns 0 or
 * -ERR_INJECT. */
int ring_section_map(const struct ring_section *section, struct tracee *tracee, struct err *err);

/* From now on its tracer records there, and no more: said in its area, there and here. All threads are held. 0 or
 * -ERR_INJECT. */
int ring_section_start(struct tracee *tracee, struct err *err);
int ring_section_stop(struct tracee *tracee, struct err *err);

/* Whether somebody takes out what its tracer records. */
bool ring_section_is_read(const struct tracee *tracee);

/* Takes the view back, whose section it is; no thread may be in the tracer's code. */
void ring_section_unmap(struct tracee *tracee);

/*
 * Puts the blocks that the process has by now into the tables of its tracer, which is about to be switched on
 * and whose tables are empty: then nobody needs to walk its heaps. Its threads stand still, none in a heap's
 * function: there it may have made or be about to free a block of which nobody will know. Sets TRACER_FLAG_LISTED, or does nothing where the heaps cannot be known for sure. Returns 0;
 * -ERR_INJECT, -ERR_NOMEM, and it is not to be switched on.
 */
int older_list(struct tracee *tracee, struct err *err);

struct install_options {
	uint64_t limit_bytes; /* for its tables */
	uint64_t sample_bytes; /* 0: everything is recorded */
	uint32_t flags; /* TRACER_FLAG_* */
	const struct ring_section *rings; /* not NULL: every event is recorded there, too */
	/* Of these, whose begin() is called; or NULL. It may also begin while the tracer is on. */
	const struct recording_link *recording;
	/* If not NULL: how much it became, when there was not so much address space. */
	uint64_t *limit_found;
};

/*
 * Sets up the tracer whose area is at area_addr and hooks ntdll, with all threads held that could be
 * in it. process is a HANDLE of the target with the rights to read, write and change memory, to
 * suspend it and to ask for information. Returns 0; -ERR_TRACED (it is on; nothing was changed);
 * -ERR_BUSY (a thread stands in the tracer's code since it was last on), -ERR_INJECT, -ERR_TARGET, -ERR_GONE, -ERR_RIGHTS, -ERR_SYSTEM, -ERR_BITS, -ERR_NOMEM: nothing is
 * hooked.
 */
int install_tracer(struct target *target, void *process, uint64_t area_addr,
	const struct install_options *options, struct err *err);

/*
 * Takes the hooks out of ntdll and switches the tracer off, whatever threads are in hooks: they come out
 * of them through the DLL and its trampolines, which stay. The tables' memory is given back if no thread
 * seems to be in a hook, else by the next install_tracer(), or with the process. Returns 0; -ERR_NOT_TRACED;
 * -ERR_BUSY (another program has changed a hooked function) and the tracer goes on; errors as install_tracer().
 */
int remove_tracer(struct target *target, void *process, uint64_t area_addr, struct err *err);

/*
 * A process under the tracer, from before its first instruction to its end.
 *
 * One thread prepares it, brings it up and follows it to its end. Whatever becomes of that thread or of
 * hsnap, the process goes on: all that it waits for ends with them.
 */

struct traced {
	HANDLE process; /* the caller's */
	const char *name; /* for messages; the caller's */
	struct control_facts facts;
	struct target target; /* open while it is prepared */
	struct process_lock lock; /* until it is brought up: an control_attach() meanwhile waits */
	struct injection injection;
	uint64_t area_addr;
	uint64_t
		limit_bytes; /* of its tables: less than was asked for where address space is short */
	/* Events that the process has, too; NULL: that was not asked for. */
	HANDLE exit_reached, exit_continue, child_created, child_taken;
};

struct traced_options {
	struct install_options install; /* with TRACER_FLAG_CHILDREN: children are announced */
	bool stops_at_exit;
	int64_t until_ms; /* by os_clock_ms(): so long is waited for the process; 0: for ever */
};

enum traced_event {
	TRACED_ENDED,
	TRACED_LATE, /* the time is over */
	TRACED_AT_EXIT, /* once; it waits until exit_continue is set */
	TRACED_CHILD, /* traced_child() says which; it waits until child_taken is set */
};

/*
 * Has the first thread, which has not run yet, load the tracer when it does. process has the rights
 * TRACED_RIGHTS. Returns 0; -ERR_BITS and -ERR_CANNOT_TRACE (nothing was written into the process), -ERR_TRACED (another hsnap is at
 * it, as one that follows all children of this one does), -ERR_INJECT. traced_release() in every case.
 */
#define TRACED_RIGHTS                                                                              \
	(PROCESS_VM_READ | PROCESS_VM_WRITE | PROCESS_VM_OPERATION | PROCESS_DUP_HANDLE |          \
		PROCESS_QUERY_INFORMATION | PROCESS_SUSPEND_RESUME | SYNCHRONIZE)
#define TRACED_THREAD_RIGHTS (THREAD_SET_CONTEXT | THREAD_QUERY_INFORMATION)
int traced_prepare(
	struct traced *traced, HANDLE process, HANDLE thread, const char *name, struct err *err);

/*
 * Waits until that thread has loaded the tracer; switches it on, and lets the program begin. parent is a
 * HANDLE of the process that resumes the thread, or NULL: it was resumed. Returns 0, also when the
 * process ends before, or the time is over; or an error: the thread still waits, until traced_release(),
 * or it was never resumed.
 */
int traced_bring_up(struct traced *traced, HANDLE parent, const struct traced_options *options,
	struct err *err);

enum traced_event traced_wait(struct traced *traced, int64_t until_ms);

/* Whom TRACED_CHILD is about, as the process says: that may be anything. False: it cannot be read. */
struct traced_child {
	uint32_t pid, tid;
};

bool traced_child(struct traced *traced, struct traced_child *child);

void traced_release(struct traced *traced);

/* Having a running process load the tracer. */

#define LOAD_RIGHTS (PROCESS_CREATE_THREAD | PROCESS_VM_OPERATION | PROCESS_VM_WRITE | SYNCHRONIZE)

/*
 * Has a new thread of the process load the DLL that lies beside this program, and waits for its end,
 * ten seconds at most: another thread may hold the loader's lock. Then that thread and the path it
 * reads are left to themselves; a DLL that is loaded later does nothing. name is for messages, facts explain a failure. Returns
 * 0: the thread has ended; -ERR_CANNOT_TRACE, -ERR_INJECT, -ERR_BUSY (the time is over), -ERR_GONE, -ERR_NOMEM.
 */
int inject_load_tracer(
	HANDLE process, const char *name, const struct control_facts *facts, struct err *err);

/* Has a new thread of the process call a function that takes no arguments; false if it has not returned in time. */
bool inject_call(HANDLE process, uint64_t function);

/* The error for a process that has tried to load the tracer, and does not have it. */
int inject_not_loaded(
	const struct control_facts *facts, enum refusal_way way, const char *name, struct err *err);

/*
 * All threads of another process, standing still where they can be looked at and moved on.
 *
 * While they are held a helper process (guard_start()) waits for this one to end: however that
 * happens, the threads go on. One process at a time holds another one so, and the next one begins when
 * the last one's helper has ended, too: a helper that came late would let go what is just being held.
 */

struct held_thread {
	DWORD id;
	HANDLE handle;
	uint64_t ip, sp; /* where it will go on, and its stack */
};

struct threads {
	HANDLE process; /* the caller's */
	const char *name; /* for messages; the caller's */
	HANDLE lock; /* an object whose name says which process is held */
	struct resume_guard *guard;
	struct held_thread *items;
	size_t count, cap;
	bool is_held;
};

void threads_init(struct threads *threads, HANDLE process, const char *name);

/* Lets them go if they are held. */
void threads_release(struct threads *threads);

/*
 * How many threads the process has now; 0: not known. A process whose one thread waits for this one
 * needs not be held.
 */
size_t threads_count(HANDLE process);

/*
 * Stops them all, also those that somebody is just adding, and finds out where each stands. Returns 0;
 * -ERR_GONE, -ERR_RIGHTS (a thread cannot be looked at), -ERR_BUSY (another hsnap holds it), -ERR_SYSTEM (the helper cannot be started,
 * or there are new threads all the time), -ERR_NOMEM: then none is held.
 */
int threads_hold(struct threads *threads, struct err *err);
void threads_let_go(struct threads *threads);

/* Has a held thread go on elsewhere, with its registers as they are; false: it could not be moved. */
bool threads_move(struct held_thread *thread, uint64_t ip);

/* What is left of a tracer that is off. */

/* Gives back the memory of its tables when no thread uses them any more, which is waited for some
 * seconds. No hook is in. Returns 0, also when there is none; -ERR_BUSY; errors of threads_hold(). */
int remove_rest(struct tracee *tracee, struct err *err);

/* Ends the recording that a tracer makes, which stays on: takes its rings out. Returns 0, also when there are none;
 * -ERR_BUSY: they are not used any more, and stay for the next call. */
int remove_rings(struct tracee *tracee, struct err *err);

#endif
