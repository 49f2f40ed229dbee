/*
 * A process with the tracer's DLL in it, as it is controlled from outside: what its tracer says, the
 * functions that are hooked, and the jumps in them.
 *
 * What is read from it may be a lie. So nothing is written but to the tracer's own area, to memory
 * that was reserved for it, and to what lies in the image of ntdll.
 */
#ifndef SNAPSHOT_CONTROL_TRACEE_WINDOWS_H
#define SNAPSHOT_CONTROL_TRACEE_WINDOWS_H

#include <stdbool.h>
#include <windows.h>

#include "snapshot/target/target.h"
#include "snapshot/tracer/shared.h"

struct tracee_range {
	uint64_t base, bytes;
};

struct tracee {
	struct target *target; /* the caller's, as process */
	HANDLE process;
	uint64_t area_addr;
	struct tracer_area area; /* as it was read, and as it is to be */
	struct tracee_range ntdll, dll;
	/* What is hooked of each: what the export names, or where a hot patch leads; 0: not there. */
	uint64_t functions[HOOK_COUNT];
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

bool tracee_is_in(const struct tracee_range *range, uint64_t addr);

/* Writes to the target's memory, which must be writable. */
bool tracee_write(const struct tracee *tracee, uint64_t addr, const void *bytes, size_t len);

/* Sets the state there and here. */
bool tracee_set_state(struct tracee *tracee, enum tracer_state state);

/* What stands at hooks[id].function, by the bytes in the area. A function that is not hooked is
 * JUMP_OUT. */
enum tracee_jump tracee_jump(const struct tracee *tracee, enum tracer_hook_id id);

/* Writes a hook's new bytes, or its old ones; false: nothing was written. All threads are held. */
bool tracee_patch(const struct tracee *tracee, enum tracer_hook_id id, bool in);

/* Gives back the tables' memory, if there is any; no thread may be in the tracer. */
void tracee_free_tables(struct tracee *tracee);

#endif
