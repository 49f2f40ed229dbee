#include "snapshot/control/patch_plan.h"

#include <string.h>

#include <Zydis/Zydis.h>

#define JUMP_BYTES 5 /* jmp rel32 */
#define FAR_JUMP_BYTES 14 /* jmp [rip+0], then the address */
#define MOVED_MAX (PATCH_SLOT_BYTES - 2 * FAR_JUMP_BYTES)

static uint8_t *far_jump(uint8_t *at, uint64_t addr)
{
	static const uint8_t code[] = {0xff, 0x25, 0, 0, 0, 0};

	memcpy(at, code, sizeof(code));
	memcpy(at + sizeof(code), &addr, sizeof(addr));
	return at + FAR_JUMP_BYTES;
}

/* Corrects a 32-bit distance inside an instruction that moved so far. */
static bool adjust(uint8_t *field, int64_t away)
{
	int32_t distance;
	int64_t moved;

	memcpy(&distance, field, sizeof(distance));
	moved = (int64_t)distance - away;
	if (moved < INT32_MIN || moved > INT32_MAX)
		return false;
	distance = (int32_t)moved;
	memcpy(field, &distance, sizeof(distance));
	return true;
}

/* Copies one instruction; false when it cannot work at its new place. */
static bool move_instruction(
	const ZydisDecodedInstruction *instruction, const uint8_t *from, uint8_t *to, int64_t away)
{
	memcpy(to, from, instruction->length);
	if (!(instruction->attributes & ZYDIS_ATTRIB_IS_RELATIVE))
		return true;
	if (instruction->raw.disp.size == 32)
		return adjust(to + instruction->raw.disp.offset, away);
	if (instruction->raw.imm[0].is_relative && instruction->raw.imm[0].size == 32)
		return adjust(to + instruction->raw.imm[0].offset, away);
	return false;
}

/* Control that never comes back to the next instruction: what follows may be anything. */
static bool ends_function(const ZydisDecodedInstruction *instruction)
{
	return instruction->meta.category == ZYDIS_CATEGORY_RET ||
	       instruction->meta.category == ZYDIS_CATEGORY_UNCOND_BR;
}

/* Moves whole instructions until the jump fits in their place: how many bytes, or 0. */
static uint32_t move_prologue(struct patch_plan *plan, const struct patch_request *request)
{
	ZydisDecoder decoder;
	uint32_t moved = 0;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	while (moved < JUMP_BYTES) {
		ZydisDecodedInstruction instruction;
		uint32_t to = plan->original + moved;

		if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(&decoder, NULL, request->code + moved,
			    request->code_bytes - moved, &instruction)) ||
			moved + instruction.length > MOVED_MAX ||
			!move_instruction(&instruction, request->code + moved, plan->slot + to,
				(int64_t)(request->slot + to - request->function - moved)))
			return 0;
		plan->moves[plan->move_count++] = (struct patch_move){(uint8_t)moved, (uint8_t)to};
		moved += instruction.length;
		if (moved < JUMP_BYTES && ends_function(&instruction))
			return 0;
	}
	return moved;
}

bool patch_plan(struct patch_plan *plan, const struct patch_request *request)
{
	int32_t distance = (int32_t)(request->slot - (request->function + JUMP_BYTES));

	memset(plan, 0, sizeof(*plan));
	if (request->bits != 64 || request->code_bytes < PATCH_BYTES_MAX)
		return false;
	plan->original = FAR_JUMP_BYTES;
	far_jump(plan->slot, request->hook);
	plan->patch_bytes = move_prologue(plan, request);
	if (!plan->patch_bytes || plan->patch_bytes > PATCH_BYTES_MAX)
		return false;
	far_jump(plan->slot + plan->original + plan->patch_bytes,
		request->function + plan->patch_bytes);
	memcpy(plan->old_bytes, request->code, plan->patch_bytes);
	memcpy(plan->new_bytes, request->code, plan->patch_bytes);
	plan->new_bytes[0] = 0xe9;
	memcpy(plan->new_bytes + 1, &distance, sizeof(distance));
	return true;
}
