/* Plans for changes to a target: the layout of the tracer's tables, and the patches of
 * functions. */
#ifndef SNAPSHOT_CONTROL_PATCH_PLAN_H
#define SNAPSHOT_CONTROL_PATCH_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot/tracer/shared.h"

/* Layout of the tracer's tables. All tables are parts of one reservation in the target. So the
 * tracer never searches for address space, and hsnap knows which memory belongs to the tracer. */

/* Returns the number of bytes to reserve for tables that commit at most `limit_bytes` (1 MiB to 64
 * GiB). The result is about 2.8 times `limit_bytes`. */
uint64_t tracer_layout_bytes(uint64_t limit_bytes);

/*
 * Initializes the tables of a tracer. Sets the addresses of all tables in a reservation of
 * tracer_layout_bytes(limit_bytes) at `base`, which is aligned to 64 KiB. The tables are empty, and
 * their counters are 0. Commits nothing.
 */
void tracer_layout_set(struct tracer_area *area, uint64_t base, uint64_t limit_bytes);

/*
 * Plans of patches. A patch replaces a function's first bytes by a jump to the hook. The replaced
 * instructions move into a slot, where a jump to the rest of the function follows them. The planner
 * only reads and returns bytes. It does not write to a process, and the code may have another
 * bitness than hsnap.
 *
 * A slot begins with a far jump to the hook; the function's new first bytes jump to this far jump.
 * The moved instructions follow. Relative addresses are corrected, and short jumps become long
 * jumps. If a function begins with another program's jump, the hook is placed on top of that jump.
 *
 * The patch consists only of jumps. It pushes no return address without a call, so shadow stacks
 * (CET) stay correct. A landing pad (endbr) may be moved, because Windows does not require landing
 * pads. Control flow guard checks only whether an address is the start of a function; the start
 * does not change.
 */

#define PATCH_BYTES_MAX 16
#define PATCH_SLOT_BYTES 128 /* size of one function's trampoline */
#define PATCH_CODE_BYTES 64 /* number of bytes of a function that are enough for planning */
#define PATCH_REACH ((uint64_t)0x7ff00000) /* maximum distance from a function to its slot */

/* Offsets of an instruction, in the function and in the slot. */
struct patch_move {
	uint8_t from, to;
};

struct patch_plan {
	uint8_t old_bytes[PATCH_BYTES_MAX], new_bytes[PATCH_BYTES_MAX];
	/* number of bytes used in each array; they are whole instructions and begin with the 5-byte
	 * jump */
	uint32_t patch_bytes;
	uint8_t slot[PATCH_SLOT_BYTES];
	/* offset in the slot; calling this address calls the unpatched function */
	uint32_t original;
	struct patch_move moves[PATCH_BYTES_MAX];
	uint32_t move_count;
};

struct patch_request {
	unsigned bits; /* 32 or 64 */
	const uint8_t *code; /* the function's first bytes */
	size_t code_bytes; /* PATCH_CODE_BYTES, or fewer if fewer are readable */
	/* addresses; `slot` must be within PATCH_REACH of `function` */
	uint64_t function, slot, hook;
};

/*
 * Plans a patch. Returns false if the first instructions cannot be moved; the plan is then invalid.
 * This happens in three cases: the function may end before the end of the jump, an instruction is
 * not understood, or code in the function jumps to or calls a place inside the jump.
 */
bool patch_plan(struct patch_plan *plan, const struct patch_request *request);

/*
 * Returns true if the function begins with a jump that is too short to be replaced, as in hot
 * patches. The bytes after such a jump belong to another program. Sets `*to` to the jump's
 * destination, which must be hooked instead.
 */
bool patch_follow(const struct patch_request *request, uint64_t *to);

#endif
