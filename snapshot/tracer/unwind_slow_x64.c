#include "snapshot/tracer/unwind_slow_x64.h"

#include "snapshot/tracer/nt.h"
#include "snapshot/tracer/unwind_cache_x64.h"
#include "snapshot/tracer/unwind_learn_x64.h"

bool unwind_lookup_raised;

/* RUNTIME_FUNCTION and UNWIND_INFO; "x64 exception handling", Microsoft Learn. */
#define FUNCTION_INDIRECT 1u /* UnwindData is another function's entry */
#define CHAIN_MAX 32 /* of chained infos; Windows' own limit is that */

static uint64_t load_word(uint64_t addr)
{
	return *(const uint64_t *)(uintptr_t)addr;
}

/*
 * A function that addresses its frame by a register is unwound by what that register holds; where
 * unwind data was not true that may be anything, and must not be followed.
 *
 * UNWIND_INFO: byte 0 has the flags in its high 5 bits, byte 2 is the number of codes of 2 bytes, the
 * low half of byte 3 the frame register's number, 0 for none; the codes follow, an even number, and
 * then the chained function's entry. CONTEXT has the registers in the order of their numbers.
 */
static bool frame_is_sound(
	const struct unwind_walk *walk, const CONTEXT *context, const volatile uint8_t *info)
{
	unsigned number = info[3] & 15;
	uint64_t frame = number ? (&context->Rax)[number] : walk->low;

	return frame >= walk->low && frame < walk->high;
}

/* Goes through the unwind data before the system does: here a fault is the data's own. */
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

/* What the system knows of the code at context's address. */
struct found {
	PRUNTIME_FUNCTION function; /* NULL: a leaf */
	uint64_t base;
	uint64_t begun; /* before it was asked */
	bool is_new; /* and is to be learnt */
};

static void unwind(
	CONTEXT *context, const struct found *found, KNONVOLATILE_CONTEXT_POINTERS *saved)
{
	DWORD64 establisher;
	PVOID handler_data;

	if (found->function) {
		RtlVirtualUnwind(UNW_FLAG_NHANDLER, found->base, context->Rip, found->function,
			context, &handler_data, &establisher, saved);
	} else { /* no frame, the return address is on top */
		context->Rip = load_word(context->Rsp);
		context->Rsp += 8;
	}
}

/* The walk ends before this frame, which is none. */
static void drop(struct unwind_walk *walk, const CONTEXT *context)
{
	if (context->Rsp > walk->slot && walk->count)
		walk->count--;
}

/* An address that no function table has, or none that may be asked: true for a leaf, where the walk
 * goes on. Made code that was found to have called is not asked of the system again. */
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
		unwind_cache_put(context->Rip, packed, found->begun);
	return false;
}

/* False where the walk ends. */
static bool look_up(struct unwind_walk *walk, const CONTEXT *context, struct found *found)
{
	uint32_t known = unwind_cache_find(context->Rip);
	bool is_own = context->Rsp <= walk->slot; /* in a frame below: not a return address */

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

/* One step, made twice, and what comes out put into the cache. */
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
		packed != UNWIND_NEVER) /* of code without it that would mean a call */
		unwind_cache_put(walk->addr, packed, found->begun);
	*context = trial.context;
}

/* One step outwards; false when there is none. */
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

/* False when there is no room. */
static bool keep(struct unwind_walk *walk, uint64_t addr)
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

	/* Unwinding the frames from here to there gives the registers as they were there. */
	RtlCaptureContext(&context);
	walk->count = 0;
	/* From the last frame too: it may turn out to be no code. */
	while (step(walk, &context)) {
		if (context.Rsp > walk->slot && !keep(walk, context.Rip))
			break;
	}
}
