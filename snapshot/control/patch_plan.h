/* Changes to a target: the layout of the tracer's tables, and the patches. */
#ifndef SNAPSHOT_CONTROL_PATCH_PLAN_H
#define SNAPSHOT_CONTROL_PATCH_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot/tracer/shared.h"

/*
 * Layout of the tracer's tables: parts of one reservation in the target. So no table ever has to
 * look for address space, and the tracer's own memory is known.
 */

/* Returns the bytes to reserve for tables of which limit_bytes, 1 MiB to 64 GiB, may be committed:
 * about 2.8 times as many. */
uint64_t tracer_layout_bytes(uint64_t limit_bytes);

/*
 * Sets all places of the tables, empty, in a reservation of tracer_layout_bytes(limit_bytes) at
 * base, which is aligned to 64 KiB; and all counters of the tables, to 0. Nothing is committed.
 */
void tracer_layout_set(struct tracer_area *area, uint64_t base, uint64_t limit_bytes);

/*
 * Plans of patches: a function's first bytes become a jump to the hook, and the instructions that
 * were there move into a slot, which continues after them. Bytes in, bytes out: nothing is written
 * here, and the code may be of another bitness than this program.
 *
 * A slot begins with a far jump to the hook, to which the function's new first bytes jump; then
 * come the moved instructions. Relative addresses are corrected, and short jumps become long ones.
 * A function that begins with a foreign jump is hooked on top of it.
 *
 * All of it is jumps: no return address is pushed without a call, so shadow stacks (CET) agree. A
 * landing pad (endbr) that moves is not missed, because Windows does not require them. Control flow
 * guard checks that an address is a function's first, and the function keeps its address.
 */

#define PATCH_BYTES_MAX 16
#define PATCH_SLOT_BYTES 128 /* of one function's trampoline */
#define PATCH_CODE_BYTES 64 /* bytes of a function that are enough to look at */
#define PATCH_REACH ((uint64_t)0x7ff00000) /* maximum distance from its function to a slot */

/* Offsets of an instruction in the function and in the slot. */
struct patch_move {
	uint8_t from, to;
};

struct patch_plan {
	uint8_t old_bytes[PATCH_BYTES_MAX], new_bytes[PATCH_BYTES_MAX];
	/* bytes used of each: whole instructions; the jump is the first five */
	uint32_t patch_bytes;
	uint8_t slot[PATCH_SLOT_BYTES];
	uint32_t original; /* offset in the slot: a call there calls the unpatched function */
	struct patch_move moves[PATCH_BYTES_MAX];
	uint32_t move_count;
};

struct patch_request {
	unsigned bits; /* 32 or 64 */
	const uint8_t *code; /* the function's first bytes */
	size_t code_bytes; /* PATCH_CODE_BYTES, or fewer if there are no more */
	uint64_t function, slot,
		hook; /* addresses; the slot's is within PATCH_REACH of the function */
};

/*
 * Plans a patch. Returns false if the first instructions cannot be moved; then the plan must not be
 * used. That is so if the function may end before the jump does, or if an instruction is not
 * understood. It is also so if something in the function jumps back into the jump, or calls from
 * there.
 */
bool patch_plan(struct patch_plan *plan, const struct patch_request *request);

/*
 * Returns true if the function begins with a jump that is too short to be replaced, as hot patches
 * are: the code after the jump belongs to the program that put it there. *to is the jump's
 * destination, which is hooked instead.
 */
bool patch_follow(const struct patch_request *request, uint64_t *to);

#endif
