/*
 * A process that contains the tracer's DLL, as hsnap controls it from outside: the tracer's area,
 * the hooked functions, and their jumps.
 *
 * The process may have falsified any data that hsnap reads from it. So hsnap writes only to the
 * tracer's own area, to memory reserved for the tracer, and to ntdll's image.
 */
#ifndef SNAPSHOT_CONTROL_TRACEE_WINDOWS_H
#define SNAPSHOT_CONTROL_TRACEE_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <windows.h>

#include "core/base/err.h"
#include "snapshot/control/control.h"
#include "snapshot/target/target.h"
#include "snapshot/tracer/rings.h"
#include "snapshot/tracer/shared.h"

struct tracee_range {
	uint64_t base, bytes;
};

#define TRACEE_WAITS 8

struct tracee {
	struct target *target; /* owned by the caller, as is `process` */
	HANDLE process;
	uint64_t area_addr;
	/* copy of the tracer's area, as it was read from the process; written back after changes */
	struct tracer_area area;
	struct tracee_range ntdll, dll;
	/* Address where each function is hooked: its export, or the end of the jumps of its hot
	 * patch. 0: the function does not exist. */
	uint64_t functions[HOOK_COUNT];
	/* system-call functions of ntdll in which a thread waits; 0: does not exist */
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
 * Reads everything in struct tracee. `process` is a HANDLE of the target, with the rights to read,
 * write and change memory. Returns 0 and `*tracee`, which tracee_free() frees. Returns -ERR_INJECT
 * (ntdll is missing, or lacks a function), -ERR_TARGET, -ERR_GONE, -ERR_BITS or -ERR_NOMEM.
 */
int tracee_new(struct tracee **tracee, struct target *target, HANDLE process, uint64_t area_addr,
	struct err *err);
void tracee_free(struct tracee *tracee);

const char *tracee_function_name(enum tracer_hook_id id);

/*
 * Order in which jumps are written. Functions that remove blocks from the tables come first, so a
 * freed block stays in the tables only briefly. Jumps are removed in the reverse order.
 */
extern const enum tracer_hook_id tracee_hook_order[HOOK_COUNT];

bool tracee_is_in(const struct tracee_range *range, uint64_t addr);

/*
 * Returns true if a thread that continues at `ip` is outside ntdll, or in a function of ntdll that
 * waits (tracee.waits). Such a thread is not inside a heap function, unless it is waiting for the
 * heap's lock.
 */
bool tracee_is_at_rest(const struct tracee *tracee, uint64_t ip);

/* Writes to the target's memory. The memory must be writable. */
bool tracee_write(const struct tracee *tracee, uint64_t addr, const void *bytes, size_t len);

/* Sets the tracer's state, both in the target and in `*tracee`. */
bool tracee_set_state(struct tracee *tracee, enum tracer_state state);

/* Compares the bytes at hooks[id].function with the old and the new bytes in the area. Returns
 * JUMP_OUT for a function that is not hooked. */
enum tracee_jump tracee_jump(const struct tracee *tracee, enum tracer_hook_id id);

/* Writes the new or old bytes of a hook. Returns false if nothing was written. All threads must be
 * held. */
bool tracee_patch(const struct tracee *tracee, enum tracer_hook_id id, bool in);

/* Frees the memory of the tables and of a recording's rings, if this memory exists. No thread may
 * be in the tracer. */
void tracee_free_tables(struct tracee *tracee);

/*
 * Section of a recording: rings that the tracer in a process writes and hsnap reads (see
 * snapshot/tracer/rings.h).
 *
 * The section stays mapped in the process until the tracer's tables are freed or the process exits.
 * When hsnap exits, threads that wait for room continue, and nothing more is recorded.
 */

struct ring_section {
	HANDLE handle;
	struct ring_area *area; /* mapped in this process; untrusted */
	uint32_t ring_count, events_log2;
};

#define RING_SECTION_MIN ((uint64_t)1 << 16)

/* Creates a section of at most `limit_bytes`, which must be at least RING_SECTION_MIN. `flags` are
 * RING_*. Returns 0 or -ERR_NOMEM. The caller must always call ring_section_release(). */
int ring_section_init(
	struct ring_section *section, uint64_t limit_bytes, uint32_t flags, struct err *err);
void ring_section_release(struct ring_section *section);

/* Frees the rings of threads that have exited. */
void ring_section_reclaim(const struct ring_section *section, uint32_t pid);

/* Maps the section into the tracee's process. The tracee's `process` must have the right
 * PROCESS_DUP_HANDLE, because handles are duplicated into it. Returns 0 or -ERR_INJECT. */
int ring_section_map(const struct ring_section *section, struct tracee *tracee, struct err *err);

/* Make the tracer start or stop recording in the section, by changing the tracer's area in the
 * target and in `*tracee`. All threads must be held. Return 0 or -ERR_INJECT. */
int ring_section_start(struct tracee *tracee, struct err *err);
int ring_section_stop(struct tracee *tracee, struct err *err);

/* Returns true if some process still reads the rings of the tracee. */
bool ring_section_is_read(const struct tracee *tracee);

/* Unmaps the section from the process, no matter which hsnap created it. No thread may be in the
 * tracer's code. */
void ring_section_unmap(struct tracee *tracee);

/*
 * Turning the tracer on and off in a process that has loaded it.
 *
 * If hsnap is terminated after any step, the process still runs correctly. Reserved memory is
 * recorded in the tracer's area immediately. The area's state is ON before the first jump is
 * written. A jump is written either completely or not at all. The steps are ordered so that a freed
 * block never counts as live. remove_tracer() or the next install_tracer() cleans up an incomplete
 * installation.
 */

/*
 * Adds the process's existing blocks to its tracer's tables, so that no later snapshot needs to
 * walk the heaps. Sets TRACER_FLAG_LISTED. Does nothing if it is not certain that all blocks were
 * found.
 *
 * The tables must be empty, and the tracer must not be on yet. All threads must be held, and none
 * may be in a heap function. Such a thread may have allocated a block, or may be about to free one,
 * without the tracer's knowledge. Returns 0. After -ERR_INJECT or -ERR_NOMEM, the tracer must not
 * be turned on.
 */
int older_list(struct tracee *tracee, struct err *err);

struct install_options {
	uint64_t limit_bytes; /* limit for the tracer's tables */
	uint64_t sample_bytes; /* 0: every block is recorded */
	uint32_t flags; /* TRACER_FLAG_* */
	/* if not NULL, every event is also recorded in these rings */
	const struct ring_section *rings;
	/* recording that uses the rings, or NULL; its begin() is called even if the tracer was
	 * already on */
	const struct recording_link *recording;
	/* if not NULL, set to the actual limit, which is lower if address space is short */
	uint64_t *limit_found;
};

/*
 * Sets up the tracer whose area is at `area_addr`, and hooks ntdll. Meanwhile all threads that
 * could be in the tracer are held. `process` is a HANDLE of the target with the rights to read,
 * write and change memory, to suspend the process and to query information. Returns 0 or an error;
 * after an error, nothing is hooked. The exception is -ERR_TRACED: the tracer was already on, and
 * nothing was changed. Other errors are -ERR_BUSY (a thread has been in the tracer's code since the
 * tracer was last on), -ERR_INJECT, -ERR_TARGET, -ERR_GONE, -ERR_RIGHTS, -ERR_SYSTEM, -ERR_BITS and
 * -ERR_NOMEM.
 */
int install_tracer(struct target *target, void *process, uint64_t area_addr,
	const struct install_options *options, struct err *err);

/*
 * Removes the hooks from ntdll and turns the tracer off, even if threads are in hooks. Such threads
 * return through the DLL and its trampolines, so the DLL and the trampolines stay. If no thread
 * seems to be in a hook, the tables are freed at once. Otherwise they are freed by the next
 * install_tracer() or when the process exits. Returns 0; -ERR_NOT_TRACED; -ERR_BUSY if another
 * program has changed a hooked function (the tracer stays on); or an error of install_tracer().
 */
int remove_tracer(struct target *target, void *process, uint64_t area_addr, struct err *err);

/* Memory that remains after a tracer was turned off or a recording ended. */

/*
 * Waits a few seconds for the tables to be unused, and frees their memory. All hooks must have been
 * removed. Returns 0, even if there is no such memory; -ERR_BUSY; or an error of threads_hold().
 */
int remove_rest(struct tracee *tracee, struct err *err);

/*
 * Ends the recording of a tracer that stays on, and removes the rings. Returns 0, even if there are
 * no rings. Returns -ERR_BUSY if a thread may still be using the rings; recording has then stopped,
 * and the next call can remove them.
 */
int remove_rings(struct tracee *tracee, struct err *err);

#endif
