/* What is written into a target: the layout of the tracer's tables, and the patches. */
#ifndef SNAPSHOT_CONTROL_PATCH_PLAN_H
#define SNAPSHOT_CONTROL_PATCH_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot/tracer/shared.h"

/*
 * Where the tracer's tables lie: parts of one reservation in the target, so that no table ever has to
 * look for address space, and what is the tracer's own is known.
 */

/* How many bytes to reserve for tables of which limit_bytes, 1 MiB to 64 GiB, may be committed; about
 * 2.8 times as many. */
uint64_t tracer_layout_bytes(uint64_t limit_bytes);

/*
 * Sets all that says where the tables are, empty, in a reservation of tracer_layout_bytes(limit_bytes)
 * at base, which is aligned to 64 KiB; and all that the tables count, to 0. Nothing is committed.
 */
void tracer_layout_set(struct tracer_area *area, uint64_t base, uint64_t limit_bytes);

/*
 * How a function is hooked: its first bytes become a jump to ours, and the instructions that stood
 * there move into a slot that goes on behind them. Bytes in, bytes out: nothing is written here, and
 * the code may be of another bitness than this program.
 *
 * A slot begins with a far jump to the hook, which the function's new first bytes jump to; then come
 * the moved instructions. Those that tell a place by its distance are corrected, short ones become
 * long ones, and a function that begins with somebody else's jump is hooked on top of it.
 *
 * All of it is jumps: no address is pushed that was not called from, so shadow stacks (CET) agree,
 * and a landing pad (endbr) that moves is not missed, for Windows does not ask for them. Control flow
 * guard asks whether an address is a function's first, and the function keeps its address.
 */

#define PATCH_BYTES_MAX 16
#define PATCH_SLOT_BYTES 128 /* of one function's trampoline */
#define PATCH_CODE_BYTES 64 /* so many bytes of a function are enough to look at */
#define PATCH_REACH ((uint64_t)0x7ff00000) /* how far a slot may lie from its function, both ways */

/* Where an instruction was in the function, and where it is in the slot. */
struct patch_move {
	uint8_t from, to;
};

struct patch_plan {
	uint8_t old_bytes[PATCH_BYTES_MAX], new_bytes[PATCH_BYTES_MAX];
	uint32_t patch_bytes; /* how many of them: whole instructions; the jump is the first five */
	uint8_t slot[PATCH_SLOT_BYTES];
	uint32_t original; /* offset in the slot: calling there calls the function as it was */
	struct patch_move moves[PATCH_BYTES_MAX];
	uint32_t move_count;
};

struct patch_request {
	unsigned bits; /* 32 or 64 */
	const uint8_t *code; /* the function's first bytes */
	size_t code_bytes; /* PATCH_CODE_BYTES, or as many as there are */
	uint64_t function, slot,
		hook; /* addresses; the slot's is within PATCH_REACH of the function */
};

/*
 * False when the first instructions cannot be moved; the plan is then not to be used. That is so when
 * the function may end before the jump does, when something in it jumps back into the jump, or calls
 * from there, and when an instruction is not understood.
 */
bool patch_plan(struct patch_plan *plan, const struct patch_request *request);

/*
 * Whether the function begins with a jump that is too short to be replaced, as hot patches are: what
 * stands behind it belongs to whoever put it there. *to is where it leads, which is hooked instead.
 */
bool patch_follow(const struct patch_request *request, uint64_t *to);

#endif
