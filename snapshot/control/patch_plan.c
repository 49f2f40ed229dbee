/* Computes the layout of the tracer's tables, and plans patches. The planner decodes a function's
 * first instructions with Zydis. It writes them to the slot, and corrects their relative
 * distances. */
#include "snapshot/control/patch_plan.h"

#include <string.h>

#include <Zydis/Zydis.h>

#include "snapshot/tracer/tables.h"

#define GRANULE ((uint64_t)0x10000)
#define STACKS_MAX ((uint64_t)8 << TRACER_STACK_BITS) /* maximum that a stack id can address */
#define SHARD_MAX ((uint64_t)1 << 30) /* maximum that hsnap reads */
#define RANGES_MAX ((uint64_t)1 << 20)
#define MODULES_BYTES ((uint64_t)1 << 20)
#define UNLOADS_MAX ((uint64_t)1 << 16)

static uint64_t at_most(uint64_t value, uint64_t max)
{
	return value < max ? value : max;
}

/* Rounds down to a multiple of the granule, but to at least one granule. */
static uint64_t granules(uint64_t bytes)
{
	return bytes < GRANULE ? GRANULE : bytes & ~(GRANULE - 1);
}

/* Returns the address of the next part, and advances *next past that part. */
static uint64_t reserve_part(uint64_t *next, uint64_t bytes)
{
	uint64_t addr = *next;

	*next = (addr + bytes + GRANULE - 1) & ~(GRANULE - 1);
	return addr;
}

void tracer_layout_set(struct tracer_area *area, uint64_t base, uint64_t limit_bytes)
{
	uint64_t next = base;

	area->limit_bytes = limit_bytes;
	area->committed_bytes = 0;
	/* Stacks are unlikely to take half of the memory, and 32-bit targets have little address
	 * space. */
	area->stacks_limit = granules(at_most(limit_bytes / 2, STACKS_MAX));
	area->stack_buckets =
		reserve_part(&next, stacktable_index_offset(stacktable_levels(area->stacks_limit)));
	area->stacks = reserve_part(&next, area->stacks_limit);
	area->stacks_top = 8; /* no record has id 0 */
	area->stacks_committed = 0;
	/* Allow twice the average, because shards never have the same size. */
	area->shard_bytes =
		at_most(limit_bytes / TRACER_SHARDS * 2, SHARD_MAX) & ~(TRACER_PAGE - 1);
	area->shard_tables = reserve_part(&next, area->shard_bytes * TRACER_SHARDS);
	area->modules_limit = MODULES_BYTES;
	area->modules = reserve_part(&next, area->modules_limit);
	area->modules_top = 0;
	area->unload_limit = UNLOADS_MAX;
	area->unloads = reserve_part(&next, area->unload_limit * sizeof(struct tracer_unload));
	area->unload_count = 0;
	area->unload_lock = area->unload_broken = 0;
	area->lost_from = UINT64_MAX;
	area->lost_to = 0;
	area->heaps_destroyed = 0;
	area->rings = area->rings_view = 0;
	area->dropped_blocks = area->dropped_stacks = 0;
	area->dropped_ranges = area->dropped_unloads = 0;
	/* the unwinder's own counter in the process is never reset, so remember its value */
	area->unwind_base += area->unwind_mismatches;
	area->unwind_mismatches = 0;
	area->ranges = (struct tracer_ranges){0};
	area->ranges.node_limit =
		at_most(limit_bytes / 16 / sizeof(struct tracer_range), RANGES_MAX);
	area->ranges.nodes =
		reserve_part(&next, area->ranges.node_limit * sizeof(struct tracer_range));
	for (unsigned i = 0; i < TRACER_SHARDS; i++)
		area->shards[i] = (struct tracer_shard){0};
	for (unsigned i = 0; i < 1u << TRACER_HEAPS_LOG2; i++)
		area->heaps[i] = area->heap_stacks[i] = 0;
	area->reserved = base;
	area->reserved_bytes = next - base;
}

uint64_t tracer_layout_bytes(uint64_t limit_bytes)
{
	struct tracer_area area = {0}; /* only reserved_bytes is used */

	tracer_layout_set(&area, 0, limit_bytes);
	return area.reserved_bytes;
}

#define JUMP_BYTES 5 /* jmp rel32 */
#define FAR_64_BYTES 14 /* jmp [rip+0], then the address */
#define ORIGINAL 16 /* offset of the moved instructions in the slot, after the jump to the hook */

/* Maximum length of one moved instruction: a short jump around a far jump. */
#define MOVED_BYTES_MAX (ZYDIS_MAX_INSTRUCTION_LENGTH + 4 + FAR_64_BYTES)

struct planning {
	struct patch_plan *plan;
	const struct patch_request *request;
	ZydisDecoder decoder;
	/* number of bytes of the function that were moved; number of bytes of the slot that were
	 * filled */
	uint32_t from, to;
};

static bool is_64(const struct planning *planning)
{
	return planning->request->bits == 64;
}

/* Wraps an address to 32 bits for 32-bit code. */
static uint64_t address(const struct planning *planning, uint64_t value)
{
	return is_64(planning) ? value : (uint32_t)value;
}

static void emit(struct planning *planning, const void *bytes, size_t len)
{
	memcpy(planning->plan->slot + planning->to, bytes, len);
	planning->to += (uint32_t)len;
}

/* Computes the distance from the end of an instruction to `addr`. `end` is the offset of the
 * instruction's end in the slot. Returns false if the distance does not fit. */
static bool distance(const struct planning *planning, uint32_t end, uint64_t addr, int32_t *result)
{
	uint64_t away = addr - (planning->request->slot + end);

	*result = (int32_t)(uint32_t)away;
	return !is_64(planning) || (uint64_t)(int64_t)*result == away;
}

/* Emits a branch to `addr`: the opcode, then the distance. Returns false if the branch cannot reach
 * `addr`. */
static bool emit_near(
	struct planning *planning, const uint8_t *opcode, uint32_t opcode_bytes, uint64_t addr)
{
	int32_t away;

	if (!distance(planning, planning->to + opcode_bytes + (uint32_t)sizeof(away), addr, &away))
		return false;
	emit(planning, opcode, opcode_bytes);
	emit(planning, &away, sizeof(away));
	return true;
}

/* Emits a jump that can reach any address and does not change any register. */
static void emit_far_jump(struct planning *planning, uint64_t addr)
{
	static const uint8_t jump[] = {0xe9}, through_memory[] = {0xff, 0x25, 0, 0, 0, 0};

	if (!is_64(planning)) {
		emit_near(planning, jump, sizeof(jump), addr);
		return;
	}
	emit(planning, through_memory, sizeof(through_memory));
	emit(planning, &addr, sizeof(addr));
}

static void emit_jump(struct planning *planning, uint64_t addr)
{
	static const uint8_t jump[] = {0xe9};

	if (!emit_near(planning, jump, sizeof(jump), addr))
		emit_far_jump(planning, addr);
}

static void emit_call(struct planning *planning, uint64_t addr)
{
	/* call [rip+2], then a jump over the address */
	static const uint8_t call[] = {0xe8}, through_memory[] = {0xff, 0x15, 2, 0, 0, 0, 0xeb, 8};

	if (emit_near(planning, call, sizeof(call), addr))
		return;
	emit(planning, through_memory, sizeof(through_memory));
	emit(planning, &addr, sizeof(addr));
}

/* Emits a conditional jump. `condition` is the low four bits of the opcode. */
static void emit_conditional(struct planning *planning, uint8_t condition, uint64_t addr)
{
	const uint8_t jump[] = {0x0f, (uint8_t)(0x80 | condition)};
	const uint8_t around[] = {(uint8_t)(0x70 | (condition ^ 1)), FAR_64_BYTES};

	if (emit_near(planning, jump, sizeof(jump), addr))
		return;
	emit(planning, around, sizeof(around));
	emit_far_jump(planning, addr);
}

/* Emits `loop` or `jcxz`. These instructions exist only as short jumps, so the emitted one jumps to
 * a long jump. If its condition is false, a second short jump skips the long jump. */
static void emit_counting(
	struct planning *planning, const ZydisDecodedInstruction *instruction, uint64_t addr)
{
	uint8_t around[] = {0xeb, 0};
	uint32_t at;

	emit(planning, planning->request->code + planning->from, instruction->length);
	planning->plan->slot[planning->to - 1] = sizeof(around);
	at = planning->to;
	emit(planning, around, sizeof(around));
	emit_jump(planning, addr);
	planning->plan->slot[at + 1] = (uint8_t)(planning->to - at - sizeof(around));
}

static uint64_t target_of(
	const struct planning *planning, uint32_t at, const ZydisDecodedInstruction *instruction)
{
	return address(planning, planning->request->function + at + instruction->length +
					 (uint64_t)instruction->raw.imm[0].value.s);
}

static bool is_jump_or_call(const ZydisDecodedInstruction *instruction)
{
	return instruction->raw.imm[0].is_relative;
}

/* Returns true if a jump or call leads to the moved bytes, except to the first of them. A jump to
 * the first byte runs the hook, which is correct. */
static bool leads_inside(const struct planning *planning, uint64_t target, uint32_t end)
{
	uint64_t offset = address(planning, target - planning->request->function);

	return offset > 0 && offset < end;
}

/* Returns true if a prefix changes the width of a jump's distance or of the instruction pointer. */
static bool has_odd_width(
	const struct planning *planning, const ZydisDecodedInstruction *instruction)
{
	return instruction->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE ||
	       (instruction->raw.imm[0].size != 8 && instruction->raw.imm[0].size != 32) ||
	       (!is_64(planning) && instruction->operand_width == 16);
}

static bool move_jump(struct planning *planning, const ZydisDecodedInstruction *instruction)
{
	uint64_t target = target_of(planning, planning->from, instruction);
	uint8_t opcode = instruction->opcode;
	bool is_two_byte = instruction->opcode_map == ZYDIS_OPCODE_MAP_0F;

	if (has_odd_width(planning, instruction) ||
		(instruction->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT && !is_two_byte))
		return false;
	if ((opcode & 0xf0) == (is_two_byte ? 0x80 : 0x70)) {
		emit_conditional(planning, opcode & 0x0f, target);
		return true;
	}
	if (is_two_byte)
		return false;
	if (opcode == 0xe9 || opcode == 0xeb)
		emit_jump(planning, target);
	else if (opcode >= 0xe0 && opcode <= 0xe3)
		emit_counting(planning, instruction, target);
	else if (opcode == 0xe8 &&
		 /* Do not move a call to the next instruction. Such a call reads the address of the
		  * code itself. */
		 target != address(planning, planning->request->function + planning->from +
						     instruction->length))
		emit_call(planning, target);
	else
		return false;
	return true;
}

/* Moves an instruction with a relative memory operand, which only 64-bit code has. */
static bool move_operand(struct planning *planning, const ZydisDecodedInstruction *instruction)
{
	uint32_t at = planning->to;
	uint64_t addr = planning->request->function + planning->from + instruction->length +
			(uint64_t)instruction->raw.disp.value;
	int32_t away;

	if (instruction->raw.disp.size != 32 || instruction->address_width != 64 ||
		!distance(planning, at + instruction->length, addr, &away))
		return false;
	emit(planning, planning->request->code + planning->from, instruction->length);
	memcpy(planning->plan->slot + at + instruction->raw.disp.offset, &away, sizeof(away));
	return true;
}

static bool move_instruction(struct planning *planning, const ZydisDecodedInstruction *instruction)
{
	if (is_jump_or_call(instruction))
		return move_jump(planning, instruction);
	if (instruction->attributes & ZYDIS_ATTRIB_IS_RELATIVE)
		return move_operand(planning, instruction);
	emit(planning, planning->request->code + planning->from, instruction->length);
	return true;
}

/* Returns true for two kinds of instructions: execution may not continue at the next instruction,
 * or code outside the function returns to the next instruction. The bytes after such an instruction
 * must not be changed. */
static bool leaves(const ZydisDecodedInstruction *instruction)
{
	switch (instruction->meta.category) {
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSRET: return true;
	default:
		return instruction->mnemonic == ZYDIS_MNEMONIC_UD0 ||
		       instruction->mnemonic == ZYDIS_MNEMONIC_UD1 ||
		       instruction->mnemonic == ZYDIS_MNEMONIC_UD2 ||
		       instruction->mnemonic == ZYDIS_MNEMONIC_HLT;
	}
}

static bool decode(
	const struct planning *planning, uint32_t at, ZydisDecodedInstruction *instruction)
{
	const struct patch_request *request = planning->request;

	return at < request->code_bytes &&
	       !ZYAN_FAILED(ZydisDecoderDecodeInstruction(&planning->decoder, NULL,
		       request->code + at, request->code_bytes - at, instruction));
}

/* Moves whole instructions until the jump fits into their place. */
static bool move_prologue(struct planning *planning)
{
	struct patch_plan *plan = planning->plan;
	ZydisDecodedInstruction instruction;

	while (planning->from < JUMP_BYTES) {
		if (!decode(planning, planning->from, &instruction) ||
			planning->from + instruction.length > PATCH_BYTES_MAX ||
			planning->to + MOVED_BYTES_MAX + FAR_64_BYTES > PATCH_SLOT_BYTES)
			return false;
		plan->moves[plan->move_count++] =
			(struct patch_move){(uint8_t)planning->from, (uint8_t)planning->to};
		if (!move_instruction(planning, &instruction))
			return false;
		planning->from += instruction.length;
		if (planning->from < JUMP_BYTES && leaves(&instruction))
			return false;
	}
	return true;
}

/*
 * Returns true if a jump of the decoded code leads into the changed bytes. A jump after the moved
 * instructions must not lead into the bytes of the new jump. A jump among the moved instructions
 * must not lead to any moved byte, because its distance would have to be corrected.
 */
static bool is_entered(const struct planning *planning)
{
	ZydisDecodedInstruction instruction;
	uint32_t at = 0;

	while (decode(planning, at, &instruction)) {
		if (is_jump_or_call(&instruction) &&
			leads_inside(planning, target_of(planning, at, &instruction),
				at < planning->from ? planning->from : JUMP_BYTES))
			return true;
		at += instruction.length;
	}
	return false;
}

static bool planning_init(
	struct planning *planning, struct patch_plan *plan, const struct patch_request *request)
{
	*planning = (struct planning){.plan = plan, .request = request};
	if (request->bits != 32 && request->bits != 64)
		return false;
	return !ZYAN_FAILED(request->bits == 64 ?
				    ZydisDecoderInit(&planning->decoder, ZYDIS_MACHINE_MODE_LONG_64,
					    ZYDIS_STACK_WIDTH_64) :
				    ZydisDecoderInit(&planning->decoder,
					    ZYDIS_MACHINE_MODE_LEGACY_32, ZYDIS_STACK_WIDTH_32));
}

static bool is_in_reach(const struct patch_request *request)
{
	uint64_t away = request->slot - request->function;

	return request->bits == 32 || away + PATCH_REACH <= 2 * PATCH_REACH;
}

bool patch_plan(struct patch_plan *plan, const struct patch_request *request)
{
	int32_t away = (int32_t)(uint32_t)(request->slot - (request->function + JUMP_BYTES));
	struct planning planning;

	memset(plan, 0, sizeof(*plan));
	if (!planning_init(&planning, plan, request) || !is_in_reach(request))
		return false;
	emit_far_jump(&planning, request->hook);
	planning.to = ORIGINAL;
	if (!move_prologue(&planning) || is_entered(&planning))
		return false;
	emit_far_jump(&planning, address(&planning, request->function + planning.from));
	plan->original = ORIGINAL;
	plan->patch_bytes = planning.from;
	memcpy(plan->old_bytes, request->code, planning.from);
	memcpy(plan->new_bytes, request->code, planning.from);
	plan->new_bytes[0] = 0xe9;
	memcpy(plan->new_bytes + 1, &away, sizeof(away));
	return true;
}

bool patch_follow(const struct patch_request *request, uint64_t *to)
{
	ZydisDecodedInstruction instruction;
	struct planning planning;
	struct patch_plan unused;

	if (!planning_init(&planning, &unused, request) || !decode(&planning, 0, &instruction) ||
		instruction.opcode_map != ZYDIS_OPCODE_MAP_DEFAULT || instruction.opcode != 0xeb)
		return false;
	*to = target_of(&planning, 0, &instruction);
	return true;
}
