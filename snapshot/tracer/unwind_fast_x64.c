/*
 * The cache of steps, and the walks that use it. unwind_read() finds a step by reading unwind data.
 * unwind_cache_add() and unwind_forget() change the cache. unwind_fast() follows runs, and makes
 * cached steps where no run fits.
 */
#include <stdbool.h>
#include <stddef.h>

#include "snapshot/tracer/unwind.h"
#include "snapshot/tracer/unwind_parts_x64.h"

#define ADDR_BITS (32 + UNWIND_SETS_LOG2)

__attribute__((aligned(64))) uint64_t unwind_cache[UNWIND_SETS * UNWIND_WAYS];
__attribute__((aligned(64))) struct unwind_run unwind_runs[UNWIND_RUNS];

uint64_t unwind_forgets;

uint32_t unwind_pack(const struct unwind_step *step)
{
	int64_t cfa = step->cfa / 8, rbp = step->rbp / 8;

	if (step->cfa % 8 || step->rbp % 8 || cfa != (int16_t)cfa || rbp < -0x2000 || rbp > 0x1fff)
		return UNWIND_NEVER;
	if (!step->is_from_rbp && cfa <= 0)
		return UNWIND_NEVER;
	return (uint32_t)rbp << 18 | (uint32_t)(uint16_t)cfa << 2 | step->is_from_rbp << 1 | 1;
}

/* State while UNWIND_INFO is read. Offsets are relative to RSP or, if there is a frame register, to
 * RBP. */
struct unwind_reading {
	int64_t at; /* top of the stack; moves as the codes are undone one by one */
	int64_t frame; /* base for the offsets of UWOP_SAVE_NONVOL */
	int64_t saved; /* offset of the saved RBP of the caller */
	bool is_saved, is_set;
};

#define RBP 5

/* Undoes one unwind code. `room` is the number of 2-byte words that remain. Returns the number of
 * words in the code, or 0 if the code cannot be undone. */
static unsigned undo(struct unwind_reading *reading, const volatile uint8_t *code, unsigned room)
{
	enum {
		PUSH,
		ALLOC_LARGE,
		ALLOC_SMALL,
		SET_FRAME,
		SAVE,
		SAVE_FAR,
		SAVE_XMM = 8,
		SAVE_XMM_FAR
	};
	unsigned what = code[1] & 15, info = code[1] >> 4;
	bool is_far = what == SAVE_FAR || what == SAVE_XMM_FAR || (what == ALLOC_LARGE && info);
	bool is_long = is_far || what == ALLOC_LARGE || what == SAVE || what == SAVE_XMM;
	unsigned words = is_far ? 3 : is_long ? 2 : 1;
	uint32_t number = 0;

	if (words > room || (what == ALLOC_LARGE && info > 1))
		return 0;
	for (unsigned i = 0; i < 2 * (words - 1); i++)
		number |= (uint32_t)code[2 + i] << 8 * i;
	switch (what) {
	case ALLOC_LARGE: reading->at += is_far ? number : 8 * (int64_t)number; break;
	case ALLOC_SMALL: reading->at += 8 * (int64_t)info + 8; break;
	case SET_FRAME:
		reading->at = reading->frame;
		reading->is_set = true;
		break;
	case SAVE_XMM:
	case SAVE_XMM_FAR: break;
	case PUSH:
	case SAVE:
	case SAVE_FAR:
		if (info == RBP) {
			reading->saved =
				what == PUSH ?
					reading->at :
					reading->frame + (is_far ? number : 8 * (int64_t)number);
			reading->is_saved = true;
		}
		reading->at += 8 * (what == PUSH);
		break;
	default: return 0;
	}
	return words;
}

uint32_t unwind_read(const volatile uint8_t *info, uint64_t offset)
{
	enum { VERSION = 7, PART = 4 << 3 }; /* bits of byte 0; PART is UNW_FLAG_CHAININFO */
	unsigned count = info[2], frame = info[3] & 15, words;
	struct unwind_reading reading = {.frame = frame ? -16 * (int64_t)(info[3] >> 4) : 0};
	struct unwind_step step = {.is_from_rbp = frame, .rbp = UNWIND_RBP_KEPT};

	if ((info[0] & (VERSION | PART)) != 1 || offset < info[1] || (frame && frame != RBP))
		return UNWIND_NEVER;
	for (unsigned i = 0; i < count; i += words) {
		words = undo(&reading, info + 4 + 2 * i, count - i);
		/* after RBP is restored to the caller's value, RBP is no longer the frame
		 * register */
		if (!words || (frame && !reading.is_set && reading.is_saved))
			return UNWIND_NEVER;
	}
	if (frame && !reading.is_set)
		return UNWIND_NEVER;
	step.cfa = reading.at + 8;
	if (reading.is_saved)
		step.rbp = reading.saved - step.cfa;
	return unwind_pack(&step);
}

static uint64_t entry_addr(uint64_t index, uint64_t entry)
{
	uint64_t tag = entry >> 32;

	return tag << UNWIND_SETS_LOG2 | unwind_index(index, tag);
}

/* Returns the way in which to store an entry: the way that already has the address; otherwise a
 * free way; otherwise a pseudo-random way. */
static unsigned way_for(const uint64_t *set, uint64_t addr)
{
	for (unsigned way = 0; way < UNWIND_WAYS; way++) {
		uint64_t entry = __atomic_load_n(&set[way], __ATOMIC_RELAXED);

		if (!entry || entry >> 32 == unwind_tag(addr))
			return way;
	}
	return (unsigned)(addr * 0x9e3779b97f4a7c15u >> 32) % UNWIND_WAYS;
}

/* Invalidates what threads that began before will store in the cache, in runs and in trails. */
static void count_forget(void)
{
	__atomic_fetch_add(&unwind_forgets, 1, __ATOMIC_SEQ_CST);
}

/* Invalidates runs and trails that may have been made of entries before these were removed. */
static void forget_copies(void)
{
	count_forget();
	unwind_runs_forget();
	count_forget(); /* trails may have been made of runs before these were emptied */
}

void unwind_cache_add(uint64_t addr, uint32_t packed, uint64_t begun)
{
	uint64_t tag = unwind_tag(addr), entry = tag << 32 | packed;
	uint64_t *set = &unwind_cache[unwind_index(addr, tag) * UNWIND_WAYS];
	uint64_t *at;

	if (addr >> ADDR_BITS)
		return;
	at = &set[way_for(set, addr)];
	__atomic_store_n(at, entry, __ATOMIC_SEQ_CST);
	/*
	 * The entry was written before the counter is read here. unwind_forget() increments the
	 * counter before it reads the entries. So at least one of the two threads sees the other's
	 * change.
	 */
	if (__atomic_load_n(&unwind_forgets, __ATOMIC_SEQ_CST) != begun) {
		__atomic_compare_exchange_n(
			at, &entry, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
		forget_copies();
	}
}

void unwind_forget(uint64_t from, uint64_t to)
{
	count_forget();
	for (uint64_t i = 0; i < UNWIND_SETS * UNWIND_WAYS; i++) {
		uint64_t *at = &unwind_cache[i];
		uint64_t entry = __atomic_load_n(at, __ATOMIC_SEQ_CST), addr;

		addr = entry_addr(i / UNWIND_WAYS, entry);
		if (entry && addr >= from && addr < to)
			__atomic_compare_exchange_n(
				at, &entry, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
	forget_copies();
}

void unwind_forget_all(void)
{
	unwind_forget(0, UINT64_MAX);
}

#define UNLIKELY(condition) __builtin_expect(condition, 0)
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* A frame that a walk has reached: its return address, and the slot of that address. The frame's RBP
 * is the word at `rbp`, which is on the stack, or in struct unwind_start. */
struct fast_frame {
	uint64_t addr, slot;
	const uint64_t *rbp;
};

enum way {
	WAY_ON,
	WAY_END,
	WAY_NO_CODE,
	WAY_MISS,
};

/* Classifies a failed step. */
static enum way way_at_end(const struct fast_frame *frame, uint64_t word, uint64_t high)
{
	if (frame->slot + 8 > high - 8)
		return WAY_END;
	if (word == (unwind_tag(frame->addr) << 32 | UNWIND_NO_CODE))
		return WAY_NO_CODE;
	return word == (unwind_tag(frame->addr) << 32 | UNWIND_END) ? WAY_END : WAY_MISS;
}

/* Records that the walk depends on the frame's RBP. */
static void trail_note_rbp(
	struct unwind_trail *trail, const uint64_t *rbp, const struct unwind_start *start)
{
	if (rbp == &start->rbp)
		trail->needs_rbp = true;
	else if (trail->saved_count < UNWIND_TRAIL_MAX)
		trail->saved[trail->saved_count++] = (struct unwind_saved){rbp, *rbp};
	else
		trail->is_full = true;
}

/* Moves to the caller's frame. A frame never extends below RSP. If the frame register points below
 * RSP or out of the stack, the slow way must handle the frame. */
static bool follow(struct fast_frame *frame, uint32_t packed, const struct unwind_start *start,
	struct unwind_trail *trail)
{
	uint64_t rsp = frame->slot + 8, room = start->high - 8 - rsp, from = rsp, cfa, saved;

	if (unwind_packed_is_from_rbp(packed)) {
		from = *frame->rbp;
		if (from - rsp > room || from & 7)
			return false;
		if (trail)
			trail_note_rbp(trail, frame->rbp, start);
	}
	cfa = from + (uint64_t)unwind_packed_cfa(packed);
	saved = cfa + (uint64_t)unwind_packed_rbp(packed);
	if (cfa <= rsp || cfa > start->high || saved - rsp > room)
		return false;
	if (unwind_packed_rbp(packed) != UNWIND_RBP_KEPT)
		frame->rbp = (const uint64_t *)(uintptr_t)saved;
	frame->slot = cfa - 8;
	frame->addr = unwind_load(frame->slot);
	return true;
}

/* Makes one step with the cache. */
static __attribute__((noinline)) enum way step(struct fast_frame *frame,
	const struct unwind_start *start, struct unwind_trail *trail,
	struct unwind_learner *learner)
{
	uint64_t word =
		__atomic_load_n(&unwind_cache[unwind_cache_place(frame->addr)], __ATOMIC_RELAXED);

	if (word >> 32 != unwind_tag(frame->addr) || !follow(frame, (uint32_t)word, start, trail))
		return way_at_end(frame, word, start->high);
	unwind_learner_step(learner, (uint32_t)word, frame->addr);
	return WAY_ON;
}

bool unwind_step_on(struct unwind_start *at, uint32_t packed)
{
	struct unwind_start start = *at;
	struct fast_frame frame = {.slot = at->slot, .rbp = &start.rbp};

	if (!follow(&frame, packed, &start, NULL))
		return false;
	at->slot = frame.slot;
	at->rbp = *frame.rbp;
	return true;
}

/* Returns true if a word of the stored walk has changed. */
static ALWAYS_INLINE bool is_changed(const struct unwind_trail *trail, uint32_t at)
{
	return unwind_load(trail->slots[at]) != trail->addrs[at];
}

bool unwind_is_same(struct unwind_trail *trail, const struct unwind_start *start)
{
	uint32_t count = trail->count, at = 0;

	if (!count || trail->slots[0] != start->slot || trail->begun != unwind_cache_begin() ||
		trail->high != start->high || (trail->needs_rbp && trail->rbp != start->rbp))
		return false;
	/* Stacks usually differ where they differed before. */
	if (trail->differed < count && is_changed(trail, trail->differed))
		return false;
	while (at + 4 <= count && !(is_changed(trail, at) | is_changed(trail, at + 1) |
					  is_changed(trail, at + 2) | is_changed(trail, at + 3)))
		at += 4;
	while (at < count && !is_changed(trail, at))
		at++;
	if (at < count) {
		trail->differed = at;
		return false;
	}
	for (uint32_t i = 0; i < trail->saved_count; i++) {
		if (*trail->saved[i].place != trail->saved[i].rbp)
			return false;
	}
	return true;
}

/* Empties the trail before a walk. If the thread is terminated during the walk, another thread
 * inherits the empty trail. */
static ALWAYS_INLINE void trail_begin(struct unwind_trail *trail, const struct unwind_start *start)
{
	__atomic_store_n(&trail->count, 0, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	trail->begun = unwind_cache_begin();
	trail->high = start->high;
	trail->rbp = start->rbp;
	trail->needs_rbp = trail->is_full = false;
	trail->saved_count = 0;
	trail->note.id = 0;
}

/* Stores a walk. `zero` is the slot of the word 0 that ended the walk, or 0. */
static ALWAYS_INLINE void trail_end(
	struct unwind_trail *trail, const uint64_t *frames, uint32_t count, uint64_t zero)
{
	if (trail->is_full)
		return;
	for (uint32_t i = 0; i < count; i++)
		trail->addrs[i] = frames[i];
	if (zero) {
		trail->slots[count] = zero;
		trail->addrs[count++] = 0;
	}
	__atomic_store_n(&trail->count, count, __ATOMIC_RELEASE);
}

/* A walk and the frames that it has found so far. */
struct fast_walk {
	/* If there is no trail, the two are the same array. So slots are written before frames. */
	uint64_t *slots, *frames;
	uint32_t count, max;
	const struct unwind_start *start;
	struct unwind_trail *trail;
};

/*
 * Follows the run that begins at a frame. Appends the frames to the walk, and moves `*at` to the
 * last of them. Returns false if the run has none, or if it was replaced meanwhile.
 */
static ALWAYS_INLINE bool follow_run(
	struct fast_walk *walk, struct fast_frame *at, const struct unwind_run *run, bool *differs)
{
	uint64_t key = __atomic_load_n(&run->key, __ATOMIC_ACQUIRE);
	uint64_t addr = at->addr, slot = at->slot, last = walk->start->high - 8;
	uint32_t count = walk->count;
	uint32_t end = walk->max - count < UNWIND_RUN_MAX ? walk->max : count + UNWIND_RUN_MAX;
	const uint64_t *word = run->words, *rbp = at->rbp;

	*differs = false;
	if (key >> UNWIND_RUN_BITS != addr || addr == UNWIND_RUN_BUSY)
		return false;
	while (count != end) {
		uint64_t next = __atomic_load_n(word++, __ATOMIC_RELAXED);
		uint64_t to = slot + (next & UNWIND_RUN_SIZE_MAX) * 8;
		uint64_t saved = next >> UNWIND_RUN_SIZE_BITS & UNWIND_RUN_RBP_MAX, place;

		if (!next)
			break;
		if (saved == UNWIND_RUN_FROM_RBP) {
			uint64_t rsp = slot + 8, from = *rbp;

			if (rsp > last || from - rsp > last - rsp || from & 7)
				break;
			if (walk->trail)
				trail_note_rbp(walk->trail, rbp, walk->start);
			to += from - rsp;
			saved = UNWIND_RUN_RBP_ZERO + 2;
		}
		place = saved ? to + 8 * (UNWIND_RUN_RBP_ZERO + 1 - saved) : 0;
		if (UNLIKELY(to > last || place > last))
			break;
		rbp = place ? (const uint64_t *)(uintptr_t)place : rbp;
		slot = to;
		addr = unwind_load(slot);
		walk->slots[count] = slot;
		walk->frames[count++] = addr;
		if (addr != next >> UNWIND_RUN_BITS) {
			*differs = true;
			break;
		}
		addr = next >> UNWIND_RUN_BITS; /* does not wait for the load */
	}
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&run->key, __ATOMIC_RELAXED) != key || count == walk->count)
		return false;
	walk->count = count;
	*at = (struct fast_frame){addr, slot, rbp};
	return true;
}

/*
 * Returns true if a run that does not fit should be replaced: pseudo-randomly, in 1 of 64 cases. If
 * the next address varies, the run then usually contains the most frequent one. Also, threads then
 * seldom write memory that other threads read.
 */
static bool is_to_be_renewed(uint64_t slot, const struct unwind_start *start)
{
	return ((uint32_t)slot * 0x9e3779b1u + start->number * 0x85ebca6bu) >> 26 == 0;
}

/* Returns true if a walk that has no run at `addr` should store one. */
static bool is_to_be_learnt(uint64_t addr, uint64_t slot, const struct unwind_start *start)
{
	uint64_t key = __atomic_load_n(&unwind_run_of(addr)->key, __ATOMIC_RELAXED);

	return key >> UNWIND_RUN_BITS != addr &&
	       (!(key >> UNWIND_RUN_BITS) || is_to_be_renewed(slot, start));
}

/* Walks from a frame whose address is in `walk` already. */
static ALWAYS_INLINE enum way walk_from(struct fast_walk *walk, struct fast_frame *from)
{
	struct unwind_learner learner = {0};
	struct fast_frame at = *from;
	enum way way;

	for (;;) {
		struct fast_frame next = at;
		uint32_t count = walk->count;
		bool differs = false;

		if (!learner.addr && count < walk->max &&
			follow_run(walk, &next, unwind_run_of(at.addr), &differs)) {
			if (!next.addr) {
				walk->count--;
				*from = next;
				return WAY_ON;
			}
			if (!differs || !is_to_be_renewed(next.slot, walk->start)) {
				at = next;
				continue;
			}
			walk->count = count;
		}
		if (!learner.addr && (differs || is_to_be_learnt(at.addr, at.slot, walk->start)))
			unwind_learner_begin(&learner, at.addr);
		*from = at;
		way = step(from, walk->start, walk->trail, &learner);
		/* Make a step from the last frame, too: only the step shows whether its address is
		 * code. */
		if (way != WAY_ON || walk->count == walk->max || !from->addr)
			break;
		at = *from;
		walk->slots[walk->count] = at.slot;
		walk->frames[walk->count++] = at.addr;
	}
	unwind_learner_end(&learner);
	return way;
}

uint32_t unwind_fast(uint64_t *frames, uint32_t max, const struct unwind_skip *skip,
	const struct unwind_start *first, struct unwind_start *stop, struct unwind_trail *trail)
{
	struct unwind_start start = *first;
	struct unwind_learner none = {0};
	struct fast_frame at = {unwind_load(start.slot), start.slot, &start.rbp};
	struct fast_walk walk = {frames, frames, start.count, max, &start, NULL};
	enum way way = WAY_ON;

	if (trail)
		trail_begin(trail, &start);
	if (trail && !start.count && max < UNWIND_TRAIL_MAX) {
		walk.trail = trail;
		walk.slots = trail->slots;
	}
	while (UNLIKELY(!walk.count && at.addr - skip->from < skip->to - skip->from)) {
		walk.trail = NULL;
		walk.slots = frames;
		way = at.addr ? step(&at, &start, NULL, &none) : WAY_END;
		if (way != WAY_ON)
			break;
	}
	if (way == WAY_ON && at.addr && walk.count < max) {
		walk.slots[walk.count] = at.slot;
		frames[walk.count++] = at.addr;
		way = walk_from(&walk, &at);
	}
	if (way == WAY_MISS) {
		*stop = (struct unwind_start){
			at.slot, *at.rbp, start.high, start.number, walk.count};
		return UNWIND_MISS;
	}
	if (way == WAY_NO_CODE)
		return walk.count - !!walk.count;
	if (walk.trail)
		trail_end(walk.trail, frames, walk.count, at.addr ? 0 : at.slot);
	return walk.count;
}
