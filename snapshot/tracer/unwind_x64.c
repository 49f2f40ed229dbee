/*
 * Walks of 64-bit stacks. unwind_from() first walks with the cache (unwind_fast_x64.c). If the
 * cache is not sufficient, it continues with unwind data or with the system's unwinder, and caches
 * the new steps (unwind_guarded_x64.c). Each thread has a few trails. A trail is an earlier walk,
 * which need not be repeated while the stack is the same.
 */
#include "snapshot/tracer/tracer_nt.h"
#include "snapshot/tracer/unwind.h"
#include "snapshot/tracer/unwind_parts_x64.h"
#include "snapshot/tracer/unwind_region.h"

/* Lowest address of the stack's memory: DeallocationStack in struct _TEB, from ntdll's public
 * symbols, x64, Windows 7 to 11. */
#define TEB_DEALLOCATION_STACK 0x1478

/* Stack bytes that the slow way may need: several contexts of 1,232 bytes, the system's frames, and
 * the frames of an exception dispatch. */
#define SLOW_STACK_BYTES 32768

#define CHECK_EVERY 4096 /* must be a power of 2 */
#define WALKERS_LOG2 6
#define TRAILS_LOG2 2
#define TRAILS (1 << TRAILS_LOG2)

uint64_t unwind_mismatches, unwind_exceptions;

/* State of a thread. If the TEBs of several threads hash to the same index, these threads share one
 * state. A single state for all threads would be contended. */
static struct walker {
	__attribute__((aligned(64))) uint32_t walks; /* number of walks so far */
	/* TEB of the thread that owns the trails. The owner never changes: the next thread with
	 * this TEB inherits the trails. */
	const void *owner;
	struct unwind_trail *last; /* trail of the owner's last walk */
	/* region of the owner's last stack that was not recorded in the TEB */
	struct unwind_region region;
	struct unwind_trail trails[TRAILS];
} walkers[1 << WALKERS_LOG2];

/* Written in assembly, because C cannot get the address of the return address or the caller's
 * RBP. */
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

/* Walks with the system's unwinder. `fast` is the number of frames found by the fast walk, or
 * UNWIND_MISS. */
static __attribute__((noinline, cold)) uint32_t walk_slowly(struct unwind_walk *walk, uint32_t fast)
{
	walk->is_learning = fast == UNWIND_MISS;
	if (!unwind_guarded(walk, unwind_slow)) {
		unwind_note_exception(walk);
		if (walk->doing == UNWIND_LEARNING) {
			walk->is_learning = false;
			if (!unwind_guarded(walk, unwind_slow))
				unwind_note_exception(walk);
		}
	}
	if (fast != UNWIND_MISS && (walk->differs || fast != walk->count)) {
		__atomic_fetch_add(&unwind_mismatches, 1, __ATOMIC_RELAXED);
		unwind_forget_all();
	}
	return walk->count;
}

/* Returns true if the target's stack has enough room for the slow way. The tracer must not cause a
 * stack overflow. */
static bool has_room(uint64_t slot)
{
	return slot - __readgsqword(TEB_DEALLOCATION_STACK) > SLOW_STACK_BYTES;
}

static inline struct walker *walker_of(const NT_TIB *teb)
{
	return &walkers[(uint64_t)teb * 0x9e3779b97f4a7c15u >> (64 - WALKERS_LOG2)];
}

static inline uint32_t walk_number(struct walker *walker)
{
	uint32_t number = __atomic_load_n(&walker->walks, __ATOMIC_RELAXED) + 1;

	__atomic_store_n(&walker->walks, number, __ATOMIC_RELAXED);
	return number;
}

/* Chooses a trail by the value and the slot of the first return address. So two calls that
 * alternate usually have different trails. */
static inline struct unwind_trail *trail_from(struct walker *walker, uint64_t slot)
{
	return &walker->trails[(slot + unwind_load(slot)) * 0x9e3779b97f4a7c15u >>
			       (64 - TRAILS_LOG2)];
}

static inline struct unwind_trail *trail_of(struct walker *walker, const NT_TIB *teb, uint64_t slot)
{
	const void *owner = __atomic_load_n(&walker->owner, __ATOMIC_RELAXED);

	if (__builtin_expect(owner == teb, 1))
		return trail_from(walker, slot);
	if (owner || !__atomic_compare_exchange_n(&walker->owner, &owner, (const void *)teb, false,
			     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return NULL;
	return trail_from(walker, slot);
}

struct unwind_note *unwind_note(void)
{
	const NT_TIB *teb = (const NT_TIB *)NtCurrentTeb();
	struct walker *walker = walker_of(teb);

	return walker->owner == teb && walker->last->count ? &walker->last->note : NULL;
}

/* Returns true for some of the first walks, at increasing intervals, then for one walk in
 * CHECK_EVERY. */
static inline bool is_to_be_checked(uint32_t number)
{
	return !(number & (CHECK_EVERY - 1)) || !(number & (number - 1));
}

const struct unwind_note *unwind_reuse(uint64_t slot, uint64_t rbp)
{
	const NT_TIB *tib = (const NT_TIB *)NtCurrentTeb();
	struct walker *walker = walker_of(tib);
	struct unwind_trail *trail = trail_from(walker, slot);
	uint32_t number = __atomic_load_n(&walker->walks, __ATOMIC_RELAXED) + 1;
	struct unwind_start start = {slot, rbp, (uint64_t)tib->StackBase, number, 0};

	if (walker->owner != tib || is_to_be_checked(number) || !unwind_is_same(trail, &start))
		return NULL;
	__atomic_store_n(&walker->walks, number, __ATOMIC_RELAXED);
	return &trail->note;
}

/* Continues a walk that the cache could not complete, or checks a walk. */
static __attribute__((noinline)) uint32_t walk_on(struct unwind_walk *walk, uint32_t fast)
{
	if (!has_room(walk->slot))
		return fast == UNWIND_MISS ? 0 : fast;
	if (fast == UNWIND_MISS) {
		if (!unwind_guarded(walk, unwind_data)) {
			unwind_note_exception(walk);
			return walk->count;
		}
		fast = walk->is_done ? walk->count : UNWIND_MISS;
		if (walk->is_done && !is_to_be_checked(walk->at.number))
			return fast;
	}
	return walk_slowly(walk, fast);
}

static __attribute__((noinline, cold)) uint32_t walk_in_region(struct unwind_walk *walk)
{
	const NT_TIB *tib = (const NT_TIB *)NtCurrentTeb();
	struct walker *walker = walker_of(tib);
	struct unwind_region region = {0};
	NT_TIB before;

	walk->trail = trail_of(walker, tib, walk->slot);
	if (walk->trail) {
		walker->last = walk->trail;
		region = walker->region;
	}
	if (!unwind_region_find(&region, walk->slot))
		return 0;
	if (walk->trail)
		walker->region = region;
	walk->at.high = region.high;
	walk->count =
		unwind_fast(walk->frames, walk->max, walk->skip, &walk->at, &walk->at, walk->trail);
	if (walk->count != UNWIND_MISS)
		return walk->count;
	walk->count = walk->at.count;
	if (!unwind_region_has_room(&region))
		return walk->count;
	before = unwind_region_enter(&region);
	if (!unwind_guarded(walk, unwind_region_data))
		unwind_note_exception(walk);
	unwind_region_leave(&before);
	return walk->count;
}

uint32_t unwind_from(
	uint64_t *frames, uint32_t max, const struct unwind_skip *skip, uint64_t slot, uint64_t rbp)
{
	const NT_TIB *tib = (const NT_TIB *)NtCurrentTeb();
	uint64_t low = (uint64_t)tib->StackLimit, high = (uint64_t)tib->StackBase;
	struct walker *walker = walker_of(tib);
	uint32_t number = walk_number(walker), fast;
	struct unwind_start start = {slot, rbp, high, number, 0};
	struct unwind_trail *trail;

	if (__builtin_expect(slot < low || slot >= high || high & 7, 0)) {
		struct unwind_walk walk = {
			.frames = frames, .max = max, .skip = skip, .slot = slot, .at = start};

		return slot & 7 ? 0 : walk_in_region(&walk);
	}
	trail = trail_of(walker, tib, slot);
	if (trail)
		walker->last = trail;
	fast = unwind_fast(frames, max, skip, &start, &start, trail);
	if (__builtin_expect(fast == UNWIND_MISS || is_to_be_checked(number), 0)) {
		struct unwind_walk walk = {.frames = frames,
			.max = max,
			.skip = skip,
			.slot = slot,
			.low = low,
			.high = high,
			.at = start,
			.trail = trail};

		return walk_on(&walk, fast);
	}
	return fast;
}
