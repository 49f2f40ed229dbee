/* Changes to a target: the layout of the tracer's tables, and the patches of functions. */
#ifndef SNAPSHOT_CONTROL_PATCH_PLAN_H
#define SNAPSHOT_CONTROL_PATCH_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot/tracer/shared.h"

/* Layout of the tracer's tables. All tables are parts of one reservation in the target. So tables
 * never have to search for address space, and the tracer's own memory is known. */

/* Returns the number of bytes to reserve for tables of which at most limit_bytes will be committed.
 * limit_bytes: 1 MiB to 64 GiB. The result is about 2.8 times limit_bytes. */
uint64_t tracer_layout_bytes(uint64_t limit_bytes);

/*
 * Initializes the tables of a tracer. Sets the addresses of all tables in a reservation of
 * tracer_layout_bytes(limit_bytes) at base, which is aligned to 64 KiB. The tables are empty, and
 * all their counters are 0. Commits nothing.
 */
void tracer_layout_set(struct tracer_area *area, uint64_t base, uint64_t limit_bytes);

/*
 * Plans of patches. A function's first bytes become a jump to the hook. The instructions that were
 * there move into a slot, and are followed by a jump to the rest of the function. The planner reads
 * and returns bytes only. It does not write to a process, and the code may have another bitness
 * than hsnap.
 *
 * A slot begins with a far jump to the hook; the function's new first bytes jump to this far jump.
 * The moved instructions follow. Relative addresses are corrected, and short jumps become long
 * jumps. If a function begins with another program's jump, the hook is placed on top of that jump.
 *
 * The patch consists only of jumps. It pushes no return address without a call, so shadow stacks
 * (CET) stay correct. A landing pad (endbr) may be moved away, because Windows does not require
 * landing pads. Control flow guard checks whether an address is the start of a function, and the
 * function's address does not change.
 */

#define PATCH_BYTES_MAX 16
#define PATCH_SLOT_BYTES 128 /* size of one function's trampoline */
#define PATCH_CODE_BYTES 64 /* number of a function's bytes that are enough for planning */
#define PATCH_REACH ((uint64_t)0x7ff00000) /* maximum distance from a function to its slot */

/* Offsets of an instruction, in the function and in the slot. */
struct patch_move {
	uint8_t from, to;
};

struct patch_plan {
	uint8_t old_bytes[PATCH_BYTES_MAX], new_bytes[PATCH_BYTES_MAX];
	/* number of bytes used in each array: whole instructions; the jump is the first five */
	uint32_t patch_bytes;
	uint8_t slot[PATCH_SLOT_BYTES];
	uint32_t original; /* offset in the slot; a call to it calls the unpatched function */
	struct patch_move moves[PATCH_BYTES_MAX];
	uint32_t move_count;
};

struct patch_request {
	unsigned bits; /* 32 or 64 */
	const uint8_t *code; /* the function's first bytes */
	size_t code_bytes; /* PATCH_CODE_BYTES, or fewer if fewer are readable */
	uint64_t function, slot, hook; /* addresses; slot must be within PATCH_REACH of function */
};

/*
 * Plans a patch. Returns false if the first instructions cannot be moved; the plan is then invalid.
 * This happens in three cases: the function may end before the jump does, an instruction is not
 * understood, or some code in the function jumps or calls back into the jump.
 */
bool patch_plan(struct patch_plan *plan, const struct patch_request *request);

/*
 * Returns true if the function begins with a jump that is too short to be replaced, as in hot
 * patches. The bytes after such a jump belong to another program. Sets *to to the jump's
 * destination, which must be hooked instead.
 */
bool patch_follow(const struct patch_request *request, uint64_t *to);

#endif
