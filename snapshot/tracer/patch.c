#include "snapshot/tracer/patch.h"

#include <string.h>

#include <Zydis/Zydis.h>

#include "snapshot/tracer/nt.h"

#define PAGE_BYTES 4096
#define SLOT_BYTES (PAGE_BYTES / PATCH_HOOKS_MAX)
#define JUMP_BYTES 5 /* jmp rel32 */
#define STORE_BYTES 8 /* what one store replaces */
#define FAR_JUMP_BYTES 14 /* jmp [rip+0], then the address */
#define MOVED_MAX (SLOT_BYTES - 2 * FAR_JUMP_BYTES)
#define NEAR_BYTES ((uint64_t)0x7ff00000) /* reach of rel32, less some room */
#define GRANULE ((uint64_t)0x10000)

/* Room at exactly this address, if it is free. */
static uint8_t *page_at(uint64_t addr)
{
	PVOID base = (PVOID)addr;
	SIZE_T bytes = PAGE_BYTES;

	if (NtAllocateVirtualMemory(
		    THIS_PROCESS, &base, 0, &bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE) < 0)
		return NULL;
	return base;
}

bool patcher_init(struct patcher *patcher, const void *near_to)
{
	uint64_t center = (uint64_t)near_to & ~(GRANULE - 1);

	patcher->used = 0;
	for (uint64_t away = GRANULE; away < NEAR_BYTES; away += GRANULE) {
		patcher->page = page_at(center + away);
		if (!patcher->page && center > away)
			patcher->page = page_at(center - away);
		if (patcher->page)
			return true;
	}
	return false;
}

bool patcher_seal(struct patcher *patcher)
{
	PVOID base = patcher->page;
	SIZE_T bytes = PAGE_BYTES;
	ULONG old;

	return NtProtectVirtualMemory(THIS_PROCESS, &base, &bytes, PAGE_EXECUTE_READ, &old) >= 0;
}

static uint8_t *far_jump(uint8_t *at, const void *to)
{
	static const uint8_t code[] = {0xff, 0x25, 0, 0, 0, 0};
	uint64_t addr = (uint64_t)to;

	memcpy(at, code, sizeof(code));
	memcpy(at + sizeof(code), &addr, sizeof(addr));
	return at + FAR_JUMP_BYTES;
}

/* Corrects a 32-bit distance inside an instruction that moved from one place to another. */
static bool adjust(uint8_t *field, const uint8_t *from, const uint8_t *to)
{
	int32_t distance;
	int64_t moved;

	memcpy(&distance, field, sizeof(distance));
	moved = (int64_t)distance + (from - to);
	if (moved < INT32_MIN || moved > INT32_MAX)
		return false;
	distance = (int32_t)moved;
	memcpy(field, &distance, sizeof(distance));
	return true;
}

/* Copies one instruction; false when it cannot work at its new place. */
static bool move_instruction(
	const ZydisDecodedInstruction *instruction, const uint8_t *from, uint8_t *to)
{
	memcpy(to, from, instruction->length);
	if (!(instruction->attributes & ZYDIS_ATTRIB_IS_RELATIVE))
		return true;
	if (instruction->raw.disp.size == 32)
		return adjust(to + instruction->raw.disp.offset, from, to);
	if (instruction->raw.imm[0].is_relative && instruction->raw.imm[0].size == 32)
		return adjust(to + instruction->raw.imm[0].offset, from, to);
	return false;
}

/* Control that never comes back to the next instruction: what follows may be anything. */
static bool ends_function(const ZydisDecodedInstruction *instruction)
{
	return instruction->meta.category == ZYDIS_CATEGORY_RET ||
	       instruction->meta.category == ZYDIS_CATEGORY_UNCOND_BR;
}

/* Moves whole instructions until the jump fits in their place: how many bytes, or 0. */
static uint32_t move_prologue(const uint8_t *from, uint8_t *to)
{
	ZydisDecoder decoder;
	uint32_t moved = 0;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	while (moved < JUMP_BYTES) {
		ZydisDecodedInstruction instruction;

		if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(&decoder, NULL, from + moved,
			    ZYDIS_MAX_INSTRUCTION_LENGTH, &instruction)) ||
			moved + instruction.length > MOVED_MAX ||
			!move_instruction(&instruction, from + moved, to + moved))
			return 0;
		moved += instruction.length;
		if (moved < JUMP_BYTES && ends_function(&instruction))
			return 0;
	}
	return moved;
}

bool patch_prepare(struct patcher *patcher, struct patch *patch, void *function, void *hook)
{
	uint8_t *slot = patcher->page + (size_t)patcher->used * SLOT_BYTES;
	uint8_t *trampoline = slot + FAR_JUMP_BYTES;
	uint32_t moved;

	/* One aligned store must cover the jump. */
	if (patcher->used == PATCH_HOOKS_MAX || ((uintptr_t)function & 63) > 64 - STORE_BYTES)
		return false;
	moved = move_prologue(function, trampoline);
	if (!moved)
		return false;
	far_jump(slot, hook);
	far_jump(trampoline + moved, (uint8_t *)function + moved);
	patch->at = function;
	memcpy(patch->old_bytes, function, STORE_BYTES);
	patch->original = trampoline;
	patcher->used++;
	return true;
}

/* Inside one cache line a store of 8 bytes is seen whole or not at all by all processors. */
static bool store(uint8_t *at, const uint8_t bytes[STORE_BYTES])
{
	PVOID base = at;
	SIZE_T size = STORE_BYTES;
	ULONG old, unused;
	uint64_t value;

	if (NtProtectVirtualMemory(THIS_PROCESS, &base, &size, PAGE_EXECUTE_READWRITE, &old) < 0)
		return false;
	memcpy(&value, bytes, sizeof(value));
	__atomic_store_n((uint64_t *)(void *)at, value, __ATOMIC_SEQ_CST);
	base = at;
	size = STORE_BYTES;
	NtProtectVirtualMemory(THIS_PROCESS, &base, &size, old, &unused);
	NtFlushInstructionCache(THIS_PROCESS, at, STORE_BYTES);
	return true;
}

bool patch_enable(const struct patch *patch)
{
	const uint8_t *slot = (const uint8_t *)patch->original - FAR_JUMP_BYTES;
	int32_t distance = (int32_t)(slot - (patch->at + JUMP_BYTES));
	uint8_t bytes[STORE_BYTES];

	memcpy(bytes, patch->old_bytes, STORE_BYTES);
	bytes[0] = 0xe9;
	memcpy(bytes + 1, &distance, sizeof(distance));
	return store(patch->at, bytes);
}

bool patch_disable(const struct patch *patch)
{
	return store(patch->at, patch->old_bytes);
}
