/*
 * How a function is hooked: its first bytes become a jump to ours, and the instructions that stood
 * there move into a trampoline that goes on behind them. Bytes in, bytes out: nothing is written
 * here, and the code may be of another bitness than this program.
 */
#ifndef SNAPSHOT_CONTROL_PATCH_PLAN_H
#define SNAPSHOT_CONTROL_PATCH_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
	uint32_t patch_bytes; /* how many of them change: whole instructions */
	uint8_t slot[PATCH_SLOT_BYTES];
	uint32_t original; /* offset in the slot: calling there calls the function as it was */
	struct patch_move moves[PATCH_BYTES_MAX];
	uint32_t move_count;
};

struct patch_request {
	unsigned bits; /* 32 or 64 */
	const uint8_t *code; /* the function's first bytes */
	size_t code_bytes;
	uint64_t function, slot,
		hook; /* addresses; the slot's is within PATCH_REACH of the function */
};

/* False when the first instructions cannot be moved; the plan is then not to be used. */
bool patch_plan(struct patch_plan *plan, const struct patch_request *request);

#endif
