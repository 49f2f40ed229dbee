#include "snapshot/control/patch_plan.h"

#include <string.h>

#include <Zydis/Zydis.h>

#define CODES_MAX 255
#define CHAIN_MAX 8
#define FLAG_CHAINED 4 /* UNW_FLAG_CHAININFO */

enum operation {
	PUSH_NONVOLATILE,
	ALLOCATE_LARGE,
	ALLOCATE_SMALL,
	SET_FRAME,
	SAVE_NONVOLATILE,
	SAVE_NONVOLATILE_FAR,
	EPILOGUE, /* version 2 */
	SPARE,
	SAVE_XMM,
	SAVE_XMM_FAR,
};

struct stepping {
	const struct unwind_source *source;
	struct unwind_registers *registers;
	uint8_t header[4];
	uint8_t codes[2 * CODES_MAX + 1];
	uint32_t at; /* how far into the function the thread is */
};

static bool read_u64(const struct unwind_source *source, uint64_t addr, uint64_t *value)
{
	return source->read(source->ctx, addr, value, sizeof(*value));
}

static bool pop(
	const struct unwind_source *source, struct unwind_registers *registers, uint64_t *value)
{
	if (!read_u64(source, registers->general[UNWIND_RSP], value))
		return false;
	registers->general[UNWIND_RSP] += 8;
	return true;
}

static uint32_t u16_at(const uint8_t *bytes)
{
	return bytes[0] | (uint32_t)bytes[1] << 8;
}

static uint32_t u32_at(const uint8_t *bytes)
{
	return u16_at(bytes) | u16_at(bytes + 2) << 16;
}

/* How many slots of two bytes a code takes; 0: it is not known. */
static unsigned slots_of(uint8_t code, unsigned version)
{
	switch (code & 0xf) {
	case PUSH_NONVOLATILE:
	case ALLOCATE_SMALL:
	case SET_FRAME: return 1;
	case EPILOGUE: return version == 2 ? 1 : 0;
	case SPARE: return version == 2 ? 2 : 0;
	case SAVE_NONVOLATILE:
	case SAVE_XMM: return 2;
	case SAVE_NONVOLATILE_FAR:
	case SAVE_XMM_FAR: return 3;
	case ALLOCATE_LARGE: return code >> 4 == 0 ? 2 : code >> 4 == 1 ? 3 : 0;
	default: return 0; /* a frame of the processor's, and what is to come */
	}
}

/* Where codes count from: the frame register if there is one and it is set by now. */
static uint64_t frame_base(const struct stepping *stepping)
{
	unsigned reg = stepping->header[3] & 0xf, offset = stepping->header[3] >> 4;

	if (!reg)
		return stepping->registers->general[UNWIND_RSP];
	return stepping->registers->general[reg] - offset * 16;
}

/* Undoes one code. frame: the function's fixed stack. */
static bool undo(const struct stepping *stepping, const uint8_t *code, uint64_t frame)
{
	struct unwind_registers *registers = stepping->registers;
	unsigned operand = code[1] >> 4;
	uint64_t *sp = &registers->general[UNWIND_RSP];

	switch (code[1] & 0xf) {
	case PUSH_NONVOLATILE:
		return pop(stepping->source, registers, &registers->general[operand]);
	case ALLOCATE_LARGE: *sp += operand ? u32_at(code + 2) : u16_at(code + 2) * 8; return true;
	case ALLOCATE_SMALL: *sp += operand * 8 + 8; return true;
	case SET_FRAME: *sp = frame_base(stepping); return true;
	case SAVE_NONVOLATILE:
		return read_u64(stepping->source, frame + u16_at(code + 2) * 8,
			&registers->general[operand]);
	case SAVE_NONVOLATILE_FAR:
		return read_u64(
			stepping->source, frame + u32_at(code + 2), &registers->general[operand]);
	default: return true; /* of no interest for the stack */
	}
}

/* The frame register holds what it says only behind the instruction that sets it. */
static bool is_frame_set(const struct stepping *stepping)
{
	for (unsigned i = 0; i < stepping->header[2];) {
		const uint8_t *code = stepping->codes + (size_t)2 * i;

		if ((code[1] & 0xf) == SET_FRAME)
			return code[0] <= stepping->at;
		i += slots_of(code[1], stepping->header[0] & 7);
	}
	return true; /* by a function that this one is a part of */
}

static bool undo_all(const struct stepping *stepping)
{
	unsigned version = stepping->header[0] & 7, count = stepping->header[2];
	bool has_frame = stepping->header[3] & 0xf && is_frame_set(stepping);
	uint64_t frame =
		has_frame ? frame_base(stepping) : stepping->registers->general[UNWIND_RSP];

	for (unsigned i = 0; i < count;) {
		const uint8_t *code = stepping->codes + (size_t)2 * i;
		unsigned slots = slots_of(code[1], version);

		if (code[0] <= stepping->at && !undo(stepping, code, frame))
			return false;
		i += slots;
	}
	return true;
}

/* The header and the codes at an rva; false when they are not understood. */
static bool read_info(struct stepping *stepping, uint64_t addr)
{
	const struct unwind_source *source = stepping->source;
	unsigned version, count;

	if (!source->read(source->ctx, addr, stepping->header, sizeof(stepping->header)))
		return false;
	version = stepping->header[0] & 7;
	count = stepping->header[2];
	if (version < 1 || version > 2 ||
		!source->read(source->ctx, addr + 4, stepping->codes, (size_t)2 * count))
		return false;
	for (unsigned i = 0; i < count;) {
		unsigned slots = slots_of(stepping->codes[2 * i + 1], version);

		if (!slots || i + slots > count)
			return false;
		i += slots;
	}
	return true;
}

/* Of a function and of those it is a part of. */
static bool undo_function(struct stepping *stepping, const struct unwind_function *function)
{
	const struct unwind_source *source = stepping->source;
	uint32_t info = function->info;

	for (int depth = 0; depth < CHAIN_MAX; depth++) {
		uint32_t chained[3];
		uint64_t addr = source->image + info;

		if (info & 1 || !read_info(stepping, addr) || !undo_all(stepping))
			return false;
		if (!(stepping->header[0] >> 3 & FLAG_CHAINED))
			return true;
		if (!source->read(source->ctx,
			    addr + 4 + (uint64_t)2 * ((stepping->header[2] + 1u) & ~1u), chained,
			    sizeof(chained)))
			return false;
		info = chained[2];
		stepping->at = UINT32_MAX; /* all of its beginning has been run through */
	}
	return false;
}

/* Whether a jump leaves the function: the tail of one that calls another. Compilers mark indirect ones
 * that do by a prefix; those without are switches. */
static bool leaves(const struct unwind_source *source, const struct unwind_function *function,
	const ZydisDecodedInstruction *instruction, uint64_t ip)
{
	uint64_t offset;

	if (!instruction->raw.imm[0].is_relative)
		return instruction->raw.rex.W || instruction->attributes & ZYDIS_ATTRIB_IS_RELATIVE;
	offset = ip + instruction->length + (uint64_t)instruction->raw.imm[0].value.s -
		 source->image;
	return offset <= function->begin || offset >= function->end;
}

/* Runs add rsp or lea rsp, of which the end of a function has one at most. */
static bool run_release(const ZydisDecodedInstruction *instruction,
	const ZydisDecodedOperand *operands, struct unwind_registers *registers)
{
	uint64_t *sp = &registers->general[UNWIND_RSP];

	if (operands[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		operands[0].reg.value != ZYDIS_REGISTER_RSP)
		return false;
	if (instruction->mnemonic == ZYDIS_MNEMONIC_ADD &&
		operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		*sp += (uint64_t)operands[1].imm.value.s;
		return true;
	}
	if (instruction->mnemonic == ZYDIS_MNEMONIC_LEA &&
		operands[1].mem.index == ZYDIS_REGISTER_NONE &&
		operands[1].mem.base >= ZYDIS_REGISTER_RAX &&
		operands[1].mem.base <= ZYDIS_REGISTER_R15) {
		*sp = registers->general[operands[1].mem.base - ZYDIS_REGISTER_RAX] +
		      (uint64_t)operands[1].mem.disp.value;
		return true;
	}
	return false;
}

static bool run_pop(const struct unwind_source *source, const ZydisDecodedInstruction *instruction,
	const ZydisDecodedOperand *operands, struct unwind_registers *registers)
{
	if (instruction->mnemonic != ZYDIS_MNEMONIC_POP ||
		operands[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		operands[0].reg.value < ZYDIS_REGISTER_RAX ||
		operands[0].reg.value > ZYDIS_REGISTER_R15)
		return false;
	return pop(
		source, registers, &registers->general[operands[0].reg.value - ZYDIS_REGISTER_RAX]);
}

/* When nothing but a function's end is before it, a thread has undone a part of its frame: the rest is
 * run. *registers are changed only then. */
static bool run_end(const struct unwind_source *source, const struct unwind_function *function,
	struct unwind_registers *registers)
{
	struct unwind_registers run = *registers;
	ZydisDecoder decoder;
	uint8_t code[UNWIND_CODE_BYTES];
	size_t at = 0;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!source->read(source->ctx, run.ip, code, sizeof(code)))
		return false;
	while (at < sizeof(code)) {
		ZydisDecodedInstruction instruction;
		ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];

		if (ZYAN_FAILED(ZydisDecoderDecodeFull(
			    &decoder, code + at, sizeof(code) - at, &instruction, operands)))
			return false;
		if (instruction.mnemonic == ZYDIS_MNEMONIC_RET ||
			(instruction.mnemonic == ZYDIS_MNEMONIC_JMP &&
				leaves(source, function, &instruction, run.ip + at))) {
			*registers = run;
			return true;
		}
		if (!(at == 0 && run_release(&instruction, operands, &run)) &&
			!run_pop(source, &instruction, operands, &run))
			return false;
		at += instruction.length;
	}
	return false;
}

bool unwind_step(const struct unwind_source *source, const struct unwind_function *function,
	bool is_innermost, struct unwind_registers *registers)
{
	struct unwind_registers stepped = *registers;
	struct stepping stepping = {.source = source, .registers = &stepped};

	if (function) {
		stepping.at = (uint32_t)(registers->ip - source->image - function->begin);
		if (!(is_innermost && run_end(source, function, &stepped)) &&
			!undo_function(&stepping, function))
			return false;
	} else if (!is_innermost) {
		return false; /* one that calls has a frame */
	}
	if (!pop(source, &stepped, &stepped.ip))
		return false;
	*registers = stepped;
	return true;
}
