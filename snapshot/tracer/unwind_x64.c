#include "snapshot/tracer/unwind.h"

#include "snapshot/tracer/nt.h"
#include "snapshot/tracer/unwind_cache_x64.h"
#include "snapshot/tracer/unwind_fast_x64.h"
#include "snapshot/tracer/unwind_learn_x64.h"
#include "snapshot/tracer/unwind_slow_x64.h"

/* Where the stack's address space begins: DeallocationStack in struct _TEB, public symbols of ntdll,
 * x64, Windows 7 to 11. */
#define TEB_DEALLOCATION_STACK 0x1478

/* What the slow way may take of the stack: some contexts of 1,232 bytes, the system's frames, those of
 * an exception's dispatch. */
#define SLOW_STACK_BYTES 32768

#define CHECK_EVERY 4096 /* a power of 2 */
#define COUNTERS_LOG2 6

uint64_t unwind_mismatches, unwind_exceptions;

/* How many walks there were, by threads: one counter for all would be fought over. */
static struct {
	__attribute__((aligned(64))) uint32_t walks;
} counters[1 << COUNTERS_LOG2];

uint32_t unwind_from(uint64_t *frames, uint32_t max, const struct unwind_skip *skip, uint64_t slot,
	uint64_t rbp);

/* The place of the return address, and RBP as the caller has it, can be had in assembly only. */
__asm__(".text\n"
	".globl unwind_stack\n"
	".def unwind_stack; .scl 2; .type 32; .endef\n"
	".seh_proc unwind_stack\n"
	"unwind_stack:\n"
	"	subq $56, %rsp\n"
	"	.seh_stackalloc 56\n"
	"	.seh_endprologue\n"
	"	leaq 56(%rsp), %r9\n"
	"	movq %rbp, 32(%rsp)\n"
	"	call unwind_from\n"
	"	nop\n"
	"	addq $56, %rsp\n"
	"	ret\n"
	".seh_endproc\n");

/*
 * What is to be kept of an exception. Unwind data that cannot be read is a fact of the address, and
 * is not tried again; of code in no image it may be replaced.
 */
static void note_exception(const struct unwind_walk *walk)
{
	uint64_t begun = unwind_cache_begin();

	__atomic_fetch_add(&unwind_exceptions, 1, __ATOMIC_RELAXED);
	if (walk->doing == UNWIND_LEARNING)
		unwind_cache_put(walk->addr, UNWIND_NEVER, begun);
	else if (walk->doing == UNWIND_READING && unwind_is_in_image(walk->addr, 0))
		unwind_cache_put(walk->addr, UNWIND_END, begun);
	else if (walk->doing == UNWIND_LOOKING_UP && !unwind_is_in_image(walk->addr, 0))
		__atomic_store_n(&unwind_lookup_raised, true, __ATOMIC_RELAXED);
}

/* fast: how many frames the fast walk found, or UNWIND_MISS. */
static __attribute__((noinline, cold)) uint32_t walk_slowly(struct unwind_walk *walk, uint32_t fast)
{
	walk->is_learning = fast == UNWIND_MISS;
	if (!unwind_guarded(walk)) {
		note_exception(walk);
		if (walk->doing == UNWIND_LEARNING) {
			walk->is_learning = false;
			if (!unwind_guarded(walk))
				note_exception(walk);
		}
	}
	if (fast != UNWIND_MISS && (walk->differs || fast != walk->count)) {
		__atomic_fetch_add(&unwind_mismatches, 1, __ATOMIC_RELAXED);
		unwind_forget_all();
	}
	return walk->count;
}

/* Whether the target's stack has room for the slow way: it must not overflow by our doing. */
static bool has_room(uint64_t slot)
{
	return slot - __readgsqword(TEB_DEALLOCATION_STACK) > SLOW_STACK_BYTES;
}

/* The number of a walk, of those of the thread and perhaps some others. */
static inline uint32_t walk_number(const NT_TIB *tib)
{
	uint64_t hash = (uint64_t)tib * 0x9e3779b97f4a7c15u;
	uint32_t *counter = &counters[hash >> (64 - COUNTERS_LOG2)].walks;
	uint32_t number = __atomic_load_n(counter, __ATOMIC_RELAXED) + 1;

	__atomic_store_n(counter, number, __ATOMIC_RELAXED);
	return number;
}

/* The first ones at growing distances, and then every so many. */
static inline bool is_to_be_checked(uint32_t number)
{
	return !(number & (CHECK_EVERY - 1)) || !(number & (number - 1));
}

uint32_t unwind_from(
	uint64_t *frames, uint32_t max, const struct unwind_skip *skip, uint64_t slot, uint64_t rbp)
{
	const NT_TIB *tib = (const NT_TIB *)NtCurrentTeb();
	uint64_t low = (uint64_t)tib->StackLimit, high = (uint64_t)tib->StackBase;
	uint32_t number = walk_number(tib), fast;
	struct unwind_start start = {slot, rbp, high, number};

	if (slot < low || slot >= high || high & 7)
		return 0;
	fast = unwind_fast(frames, max, skip, &start);
	if (__builtin_expect(fast == UNWIND_MISS || is_to_be_checked(number), 0)) {
		struct unwind_walk walk = {.frames = frames,
			.max = max,
			.skip = skip,
			.slot = slot,
			.low = low,
			.high = high};

		if (has_room(slot))
			return walk_slowly(&walk, fast);
		return fast == UNWIND_MISS ? 0 : fast;
	}
	return fast;
}
