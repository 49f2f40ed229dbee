#include "snapshot/tracer/unwind_learn_x64.h"

#include <string.h>

/*
 * What the CFA hangs on is asked of the unwinder itself: where it goes when the registers are moved
 * tells which one it followed. So nothing need be known of the unwind data's form, or of where in a
 * prologue or an epilogue the address is.
 *
 * Distances keep the alignment of 16, and no sum or difference of two is a third.
 */
#define MOVE_RSP 48
#define MOVE_RBP 16
#define MOVE_OTHERS 128

#define EXECUTABLE                                                                                 \
	(PAGE_EXECUTE | PAGE_EXECUTE_READ | PAGE_EXECUTE_READWRITE | PAGE_EXECUTE_WRITECOPY)

#define REGISTERS 16
#define RBP 5 /* its number */

void unwind_trial_begin(struct unwind_trial *trial, const CONTEXT *context, bool is_moved)
{
	DWORD64 *registers =
		&trial->context.Rax; /* CONTEXT has them in the order of their numbers */

	trial->context = *context;
	memset(&trial->saved, 0, sizeof(trial->saved));
	if (is_moved) {
		for (int i = 0; i < REGISTERS; i++)
			registers[i] -= MOVE_OTHERS;
		trial->context.Rsp = context->Rsp - MOVE_RSP;
		trial->context.Rbp = context->Rbp - MOVE_RBP;
	}
	trial->rsp = trial->context.Rsp;
	trial->rbp = trial->context.Rbp;
}

/* Where a trial found the caller's RBP, counted from the CFA. */
static int64_t saved_rbp(const struct unwind_trial *trial)
{
	uint64_t at = (uint64_t)(uintptr_t)trial->saved.IntegerContext[RBP];

	return at ? (int64_t)(at - trial->context.Rsp) : UNWIND_RBP_KEPT;
}

static uint64_t load(uint64_t addr)
{
	return *(const uint64_t *)(uintptr_t)addr;
}

/* Whether a step leads where a trial went. */
static bool leads_there(const struct unwind_step *step, const struct unwind_trial *trial)
{
	const CONTEXT *after = &trial->context;
	uint64_t cfa = (step->is_from_rbp ? trial->rbp : trial->rsp) + (uint64_t)step->cfa;
	uint64_t rbp = step->rbp == UNWIND_RBP_KEPT ? trial->rbp : load(cfa + (uint64_t)step->rbp);

	return cfa == after->Rsp && load(cfa - 8) == after->Rip && rbp == after->Rbp;
}

uint32_t unwind_learn(
	const struct unwind_trial *trial, const struct unwind_trial *moved, uint64_t high)
{
	uint64_t cfa = trial->context.Rsp, way = cfa - moved->context.Rsp;
	struct unwind_step step = {.is_from_rbp = way == MOVE_RBP, .rbp = saved_rbp(trial)};

	if (cfa <= trial->rsp || cfa > high || cfa & 7 || (way != MOVE_RSP && way != MOVE_RBP) ||
		saved_rbp(moved) != step.rbp)
		return UNWIND_NEVER;
	if (cfa + (uint64_t)step.rbp < trial->rsp || cfa + (uint64_t)step.rbp > high - 8)
		return UNWIND_NEVER;
	step.cfa = (int64_t)(cfa - (step.is_from_rbp ? trial->rbp : trial->rsp));
	if (!leads_there(&step, trial) || !leads_there(&step, moved))
		return UNWIND_NEVER;
	return unwind_pack(&step);
}

/* What is mapped at an address; RtlPcToFileHeader() would take the loader's lock. */
static bool query(uint64_t addr, MEMORY_BASIC_INFORMATION *info)
{
	return NtQueryVirtualMemory(THIS_PROCESS, (PVOID)addr, NT_MEMORY_BASIC_INFORMATION, info,
		       sizeof(*info), NULL) >= 0;
}

bool unwind_is_in_image(uint64_t addr, uint64_t base)
{
	MEMORY_BASIC_INFORMATION info;

	return query(addr, &info) && info.State == MEM_COMMIT && info.Type == MEM_IMAGE &&
	       (!base || base == (uint64_t)info.AllocationBase);
}

/* How long the near call is that begins here; 0: it is none. "CALL", Intel's manual, volume 2. */
static unsigned call_bytes(const uint8_t *code)
{
	unsigned mode = code[1] >> 6, rm = code[1] & 7;
	bool has_sib = mode != 3 && rm == 4;
	bool has_no_base = !mode && (has_sib ? (code[2] & 7) == 5 : rm == 5);

	if (*code == 0xe8)
		return 5;
	if (*code != 0xff || (code[1] & 0x38) != 0x10)
		return 0;
	return 2 + has_sib + (mode == 1 ? 1 : mode == 2 || has_no_base ? 4 : 0);
}

static bool is_after_call(uint64_t addr, uint64_t low)
{
	for (unsigned bytes = 2; bytes <= 7; bytes++) {
		const uint8_t *code = (const uint8_t *)(uintptr_t)(addr - bytes);

		if (addr - low >= bytes && call_bytes(code) == bytes)
			return true;
	}
	return false;
}

uint32_t unwind_learn_bare(uint64_t addr)
{
	MEMORY_BASIC_INFORMATION info;

	if (!query(addr, &info) || info.State == MEM_FREE)
		return UNWIND_NO_CODE;
	if (info.State != MEM_COMMIT || !(info.Protect & EXECUTABLE))
		return UNWIND_UNKNOWN;
	if (!is_after_call(addr, (uint64_t)info.BaseAddress))
		return UNWIND_LEAF;
	return info.Type == MEM_IMAGE ? UNWIND_END : UNWIND_NEVER;
}
