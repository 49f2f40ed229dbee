/*
 * Steps with unwind data or with the system's unwinder, and the cache entries that they lead to.
 *
 * Reading unwind data may fault, and a look-up may call the target. So both run inside
 * unwind_guarded(), a call that returns if an exception occurs in it. The compiler has no __try.
 * Instead, unwind_guarded() is written in assembly and has a language handler. Like __except, it
 * unwinds to the instruction after the call, and calls the handlers of the frames in between.
 * Exceptions that cannot be continued, such as C++ exceptions, need no special treatment. Unwinds
 * that pass through, started by an outer handler or by a thread's exit, are not intercepted.
 */
#include <string.h>

#include "snapshot/tracer/tracer_nt.h"
#include "snapshot/tracer/unwind.h"
#include "snapshot/tracer/unwind_parts_x64.h"

/* A step made by the system's unwinder. */
struct unwind_trial {
	uint64_t rsp, rbp; /* before the step */
	CONTEXT context; /* after the step */
	KNONVOLATILE_CONTEXT_POINTERS saved; /* all NULL before the step */
};

/* Set after a look-up has raised an exception. After that, code outside images is not looked up any
 * more. */
static bool unwind_lookup_raised;

/* EXCEPTION_UNWINDING, _EXIT_UNWIND, _TARGET_UNWIND and _COLLIDED_UNWIND, from the SDK's
 * winnt.h. */
#define UNWIND_FLAGS 0x66

extern const char unwind_guard_out[];

EXCEPTION_DISPOSITION unwind_guard_handler(
	EXCEPTION_RECORD *exception, void *frame, CONTEXT *context, DISPATCHER_CONTEXT *dispatch);

/* The nop after the call prevents the code there from looking like an epilogue. */
__asm__(".text\n"
	".globl unwind_guarded\n"
	".def unwind_guarded; .scl 2; .type 32; .endef\n"
	".seh_proc unwind_guarded\n"
	"unwind_guarded:\n"
	"	subq $40, %rsp\n"
	"	.seh_stackalloc 40\n"
	"	.seh_endprologue\n"
	"	.seh_handler unwind_guard_handler, @except\n"
	"	call *%rdx\n"
	"	movl $1, %eax\n"
	".globl unwind_guard_out\n"
	"unwind_guard_out:\n" /* with 0 in rax after an exception */
	"	nop\n"
	"	addq $40, %rsp\n"
	"	ret\n"
	".seh_endproc\n");

EXCEPTION_DISPOSITION unwind_guard_handler(
	EXCEPTION_RECORD *exception, void *frame, CONTEXT *context, DISPATCHER_CONTEXT *dispatch)
{
	(void)context;
	if (exception->ExceptionFlags & UNWIND_FLAGS ||
		exception->ExceptionCode == (DWORD)STATUS_STACK_OVERFLOW)
		return ExceptionContinueSearch;
	RtlUnwindEx(frame, (PVOID)(ULONG_PTR)unwind_guard_out, exception, NULL,
		dispatch->ContextRecord, dispatch->HistoryTable);
	return ExceptionContinueSearch; /* not reached */
}

/*
 * Finds the register on which the CFA depends: moves each register by a different distance, and
 * repeats the step. The distance by which the CFA moves identifies the register. This works without
 * knowing the format of the unwind data, or whether the address is in a prologue or epilogue.
 *
 * The distances preserve 16-byte alignment. No sum or difference of two distances equals the third.
 */
#define MOVE_RSP 48
#define MOVE_RBP 16
#define MOVE_OTHERS 128

#define EXECUTABLE                                                                                 \
	(PAGE_EXECUTE | PAGE_EXECUTE_READ | PAGE_EXECUTE_READWRITE | PAGE_EXECUTE_WRITECOPY)

#define REGISTERS 16
#define RBP 5

/*
 * Begins a trial. If `is_moved`, subtracts a different distance from RSP, from RBP and from the
 * other registers. The registers then point into the stack below their real values. That part of
 * the stack belongs to the target or, at worst, to the tracer.
 */
static void unwind_trial_begin(struct unwind_trial *trial, const CONTEXT *context, bool is_moved)
{
	DWORD64 *registers =
		/* CONTEXT has the registers in ascending order of register number */
		&trial->context.Rax;

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

/* Returns the place where a trial found the caller's RBP, relative to the CFA. */
static int64_t saved_rbp(const struct unwind_trial *trial)
{
	uint64_t at = (uint64_t)(uintptr_t)trial->saved.IntegerContext[RBP];

	return at ? (int64_t)(at - trial->context.Rsp) : UNWIND_RBP_KEPT;
}

/* Returns true if a step gives the same result as a trial. */
static bool leads_there(const struct unwind_step *step, const struct unwind_trial *trial)
{
	const CONTEXT *after = &trial->context;
	uint64_t cfa = (step->is_from_rbp ? trial->rbp : trial->rsp) + (uint64_t)step->cfa;
	uint64_t rbp =
		step->rbp == UNWIND_RBP_KEPT ? trial->rbp : unwind_load(cfa + (uint64_t)step->rbp);

	return cfa == after->Rsp && unwind_load(cfa - 8) == after->Rip && rbp == after->Rbp;
}

/* Derives the packed step of an address from two trials, one with unmoved and one with moved
 * registers. Returns UNWIND_NEVER if the trials do not determine a step. */
static uint32_t unwind_learn(
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

/* Queries the memory at an address. RtlPcToFileHeader() would take the loader lock. */
static bool query(uint64_t addr, MEMORY_BASIC_INFORMATION *info)
{
	return NtQueryVirtualMemory(THIS_PROCESS, (PVOID)addr, NT_MEMORY_BASIC_INFORMATION, info,
		       sizeof(*info), NULL) >= 0;
}

/* Returns true if an address is in a mapped image. If `base` is not 0, the image must be the one at
 * `base`. */
static bool unwind_is_in_image(uint64_t addr, uint64_t base)
{
	MEMORY_BASIC_INFORMATION info;

	return query(addr, &info) && info.State == MEM_COMMIT && info.Type == MEM_IMAGE &&
	       (!base || base == (uint64_t)info.AllocationBase);
}

/*
 * Returns the packed step of an address that no function table covers. Only a leaf function may
 * lack a table, and a leaf function makes no calls. A leaf function is on a stack only if it was
 * interrupted, by an exception or by the system. Then no call instruction precedes the address, and
 * the step is UNWIND_LEAF.
 *
 * If a call precedes the address, the code has no unwind data, and no unwinder can make a step from
 * it. The step is then UNWIND_END in an image. Elsewhere it is UNWIND_NEVER, because the code may
 * still get a table. If there is no memory at the address, the step is UNWIND_NO_CODE. If the
 * memory is not executable, the step is UNWIND_UNKNOWN, because the memory may become executable.
 */
static uint32_t unwind_learn_bare(uint64_t addr)
{
	MEMORY_BASIC_INFORMATION info;

	if (!query(addr, &info) || info.State == MEM_FREE)
		return UNWIND_NO_CODE;
	if (info.State != MEM_COMMIT || !(info.Protect & EXECUTABLE))
		return UNWIND_UNKNOWN;
	if (!unwind_is_after_call(
		    (const uint8_t *)(uintptr_t)addr, addr - (uint64_t)info.AllocationBase))
		return UNWIND_LEAF;
	return info.Type == MEM_IMAGE ? UNWIND_END : UNWIND_NEVER;
}

/* Layout of RUNTIME_FUNCTION and UNWIND_INFO: "x64 exception handling", Microsoft Learn. */
#define FUNCTION_INDIRECT 1u /* UnwindData refers to another function's entry */
#define CHAIN_MAX 32 /* number of chained UNWIND_INFOs; Windows has the same limit */

/*
 * Returns true if the function has no frame register, or if its frame register points into the
 * stack. The unwinder follows the frame register. If unwind data was wrong, the register may have
 * any value, and must not be followed.
 *
 * UNWIND_INFO: the high 5 bits of byte 0 are the flags. Byte 2 is the number of 2-byte codes. The
 * low half of byte 3 is the number of the frame register, or 0. Next is an even number of codes,
 * then the entry of the chained function. CONTEXT has the registers in ascending order of register
 * number.
 */
static bool frame_is_sound(
	const struct unwind_walk *walk, const CONTEXT *context, const volatile uint8_t *info)
{
	unsigned number = info[3] & 15;
	uint64_t frame = number ? (&context->Rax)[number] : walk->low;

	return frame >= walk->low && frame < walk->high;
}

/* Reads all of the unwind data before the system reads it. So a fault here is caused by the data,
 * not by the stack. Returns false if the system must not use the data. */
static bool is_sound(const struct unwind_walk *walk, const CONTEXT *context,
	const RUNTIME_FUNCTION *function, uint64_t base)
{
	for (int links = 0; links < CHAIN_MAX; links++) {
		const volatile uint8_t *info = (const uint8_t *)(base + function->UnwindData);
		uint32_t end;

		if (function->UnwindData & FUNCTION_INDIRECT) {
			function = (const RUNTIME_FUNCTION *)(info - FUNCTION_INDIRECT);
			continue;
		}
		if (!frame_is_sound(walk, context, info))
			return false;
		end = 4 + (info[2] + 1u) / 2 * 4;
		(void)info[end - 1];
		if (!(info[0] >> 3 & UNW_FLAG_CHAININFO))
			return true;
		function = (const RUNTIME_FUNCTION *)(base + function->UnwindData + end);
	}
	return false;
}

/* Result of looking up the code at the context's address. */
struct found {
	PRUNTIME_FUNCTION function; /* NULL for a leaf function */
	uint64_t base;
	uint64_t begun; /* result of unwind_cache_begin() before the look-up */
	bool is_new;
};

static void unwind(
	CONTEXT *context, const struct found *found, KNONVOLATILE_CONTEXT_POINTERS *saved)
{
	DWORD64 establisher;
	PVOID handler_data;

	if (found->function) {
		RtlVirtualUnwind(UNW_FLAG_NHANDLER, found->base, context->Rip, found->function,
			context, &handler_data, &establisher, saved);
	} else { /* no frame: the return address is on top */
		context->Rip = unwind_load(context->Rsp);
		context->Rsp += 8;
	}
}

/* Removes the last frame because its address is not code. */
static void drop(struct unwind_walk *walk, const CONTEXT *context)
{
	if (context->Rsp > walk->slot && walk->count)
		walk->count--;
}

/*
 * Handles an address that no function table covers, or that must not be looked up. Returns true for
 * a leaf function, where the walk continues. If UNWIND_NEVER is cached for the address, it follows
 * a call in code that was generated at run time. A walk that learns then does not query the memory
 * again.
 */
static bool look_up_bare(
	struct unwind_walk *walk, const CONTEXT *context, const struct found *found)
{
	uint32_t packed = unwind_cache_find(context->Rip);

	if (packed != UNWIND_NEVER || !walk->is_learning)
		packed = unwind_learn_bare(context->Rip);
	if (packed == UNWIND_LEAF)
		return true;
	if (packed == UNWIND_NO_CODE || packed == UNWIND_UNKNOWN)
		drop(walk, context);
	if (found->is_new && packed != UNWIND_UNKNOWN)
		unwind_cache_add(context->Rip, packed, found->begun);
	return false;
}

/* Looks up the code at the context's address. Returns false if the walk ends at that address. */
static bool look_up(struct unwind_walk *walk, const CONTEXT *context, struct found *found)
{
	uint32_t known = unwind_cache_find(context->Rip);
	/* true if this frame is further in than the first wanted frame; its address is then not a
	 * return address */
	bool is_own = context->Rsp <= walk->slot;

	if (known == UNWIND_END)
		return false;
	*found = (struct found){.begun = unwind_cache_begin()};
	found->is_new = walk->is_learning && !is_own && known == UNWIND_UNKNOWN;
	if (known == UNWIND_NO_CODE && walk->is_learning) {
		drop(walk, context);
		return false;
	}
	if (__atomic_load_n(&unwind_lookup_raised, __ATOMIC_RELAXED) &&
		(known == UNWIND_UNKNOWN || known == UNWIND_NEVER) &&
		!unwind_is_in_image(context->Rip, 0)) {
		look_up_bare(walk, context, found);
		return false;
	}
	walk->addr = context->Rip;
	walk->doing = UNWIND_LOOKING_UP;
	found->function = RtlLookupFunctionEntry(context->Rip, &found->base, NULL);
	walk->doing = UNWIND_READING;
	if (!found->function)
		return look_up_bare(walk, context, found);
	return is_sound(walk, context, found->function, found->base);
}

/* Makes one step twice, unmoved and moved, and caches the result. */
static __attribute__((noinline)) void step_and_learn(
	struct unwind_walk *walk, CONTEXT *context, const struct found *found)
{
	struct unwind_trial trial, moved;
	uint32_t packed = UNWIND_NEVER;

	unwind_trial_begin(&trial, context, false);
	unwind(&trial.context, found, &trial.saved);
	if (unwind_is_in_image(walk->addr, found->base)) {
		walk->doing = UNWIND_LEARNING;
		unwind_trial_begin(&moved, context, true);
		unwind(&moved.context, found, &moved.saved);
		packed = unwind_learn(&trial, &moved, walk->high);
	}
	if (found->function ||
		/* without a function table, a cached UNWIND_NEVER would show that a call precedes
		 * the address */
		packed != UNWIND_NEVER)
		unwind_cache_add(walk->addr, packed, found->begun);
	*context = trial.context;
}

/* Makes one step outwards. Returns false if no step is possible. */
static bool step(struct unwind_walk *walk, CONTEXT *context)
{
	uint64_t rsp = context->Rsp;
	struct found found;

	if (rsp < walk->low || rsp > walk->high - 8 || rsp & 7 || !look_up(walk, context, &found))
		return false;
	walk->doing = UNWIND_STEPPING;
	if (found.is_new)
		step_and_learn(walk, context, &found);
	else
		unwind(context, &found, NULL);
	return context->Rip && context->Rsp > rsp && context->Rsp <= walk->high;
}

static bool add_frame(struct unwind_walk *walk, uint64_t addr)
{
	uint32_t count = walk->count;

	if (!count && addr >= walk->skip->from && addr < walk->skip->to)
		return true;
	if (count == walk->max)
		return false;
	if (!walk->is_learning && walk->frames[count] != addr)
		walk->differs = true;
	walk->frames[count] = addr;
	walk->count = count + 1;
	return true;
}

void unwind_slow(struct unwind_walk *walk)
{
	CONTEXT context;

	/* Unwinding from here to `slot` restores the registers that the code at `slot` had. */
	RtlCaptureContext(&context);
	walk->count = 0;
	/* Make a step from the last frame, too: only the step shows whether its address is code. */
	while (step(walk, &context)) {
		if (context.Rsp > walk->slot && !add_frame(walk, context.Rip))
			break;
	}
}

/* Makes the next step with unwind data. Returns false if the data is not sufficient. */
static bool step_by_data(struct unwind_walk *walk)
{
	const RUNTIME_FUNCTION *function;
	uint64_t addr = unwind_load(walk->at.slot), base, begin;

	if (unwind_cache_find(addr) != UNWIND_NEVER ||
		__atomic_load_n(&unwind_lookup_raised, __ATOMIC_RELAXED))
		return false;
	walk->addr = addr;
	walk->doing = UNWIND_LOOKING_UP;
	function = RtlLookupFunctionEntry(addr, &base, NULL);
	walk->doing = UNWIND_READING;
	if (!function || function->UnwindData & FUNCTION_INDIRECT)
		return false;
	begin = base + function->BeginAddress;
	return unwind_step_on(&walk->at,
		unwind_read((const uint8_t *)(base + function->UnwindData), addr - begin));
}

void unwind_data(struct unwind_walk *walk)
{
	uint32_t found = UNWIND_MISS;

	while (found == UNWIND_MISS) {
		walk->count = walk->at.count;
		if (!step_by_data(walk))
			return;
		found = unwind_fast(
			walk->frames, walk->max, walk->skip, &walk->at, &walk->at, walk->trail);
	}
	walk->count = found;
	walk->is_done = true;
}

/* Returns the packed step of an address in an image that is not in the cache. */
static uint32_t read_step(struct unwind_walk *walk, uint64_t addr)
{
	const RUNTIME_FUNCTION *function;
	uint64_t base;

	walk->addr = addr;
	walk->doing = UNWIND_READING;
	function = RtlLookupFunctionEntry(addr, &base, NULL);
	if (!function)
		return unwind_learn_bare(addr);
	if (function->UnwindData & FUNCTION_INDIRECT)
		return UNWIND_NEVER;
	return unwind_read((const uint8_t *)(base + function->UnwindData),
		addr - (base + function->BeginAddress));
}

static bool step_in_region(struct unwind_walk *walk)
{
	uint64_t addr = unwind_load(walk->at.slot), begun = unwind_cache_begin();
	bool is_in_image = unwind_is_in_image(addr, 0);
	uint32_t packed;

	if (unwind_cache_find(addr) != UNWIND_UNKNOWN)
		return false;
	packed = is_in_image ? read_step(walk, addr) : unwind_learn_bare(addr);
	if ((packed == UNWIND_NO_CODE || packed == UNWIND_UNKNOWN) && walk->count)
		walk->count--;
	if (!is_in_image || packed == UNWIND_UNKNOWN || packed == UNWIND_NEVER)
		return false;
	unwind_cache_add(addr, packed, begun);
	return packed != UNWIND_END && packed != UNWIND_NO_CODE &&
	       unwind_step_on(&walk->at, packed);
}

void unwind_region_data(struct unwind_walk *walk)
{
	uint32_t found = UNWIND_MISS;

	while (found == UNWIND_MISS) {
		walk->count = walk->at.count;
		if (!step_in_region(walk))
			return;
		found = unwind_fast(
			walk->frames, walk->max, walk->skip, &walk->at, &walk->at, walk->trail);
	}
	walk->count = found;
}

void unwind_note_exception(const struct unwind_walk *walk)
{
	uint64_t begun = unwind_cache_begin();

	__atomic_fetch_add(&unwind_exceptions, 1, __ATOMIC_RELAXED);
	if (walk->doing == UNWIND_LEARNING)
		unwind_cache_add(walk->addr, UNWIND_NEVER, begun);
	else if (walk->doing == UNWIND_READING && unwind_is_in_image(walk->addr, 0))
		unwind_cache_add(walk->addr, UNWIND_END, begun);
	else if (walk->doing == UNWIND_LOOKING_UP && !unwind_is_in_image(walk->addr, 0))
		__atomic_store_n(&unwind_lookup_raised, true, __ATOMIC_RELAXED);
}
