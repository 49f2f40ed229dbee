/*
 * The cache of steps, and the walks that use it. unwind_read() finds a step by reading unwind data.
 * unwind_cache_add() and unwind_forget() change the cache. unwind_fast() walks along cached steps.
 * When it reaches an unchanged frame of an earlier walk of the thread (its trail), it copies the
 * remaining frames from the trail if the stack is unchanged there.
 */
#include <stdbool.h>
#include <stddef.h>

#include "snapshot/tracer/unwind.h"
#include "snapshot/tracer/unwind_parts_x64.h"

#define ADDR_BITS (32 + UNWIND_SETS_LOG2)

__attribute__((aligned(64))) struct unwind_entry unwind_cache[UNWIND_SETS * UNWIND_WAYS];

static uint64_t forgets; /* number of times that entries were forgotten */

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

uint64_t unwind_cache_begin(void)
{
	return __atomic_load_n(&forgets, __ATOMIC_SEQ_CST);
}

/* Returns the way in which to store an entry: the way that already has the address; otherwise a
 * free way; otherwise a pseudo-random way. */
static unsigned way_for(const struct unwind_entry *set, uint64_t addr)
{
	for (unsigned way = 0; way < UNWIND_WAYS; way++) {
		uint64_t entry = __atomic_load_n(&set[way].word, __ATOMIC_RELAXED);

		if (!entry || entry >> 32 == unwind_tag(addr))
			return way;
	}
	return (unsigned)(addr * 0x9e3779b97f4a7c15u >> 32) % UNWIND_WAYS;
}

void unwind_cache_add(uint64_t addr, uint32_t packed, uint64_t begun)
{
	uint64_t tag = unwind_tag(addr), entry = tag << 32 | packed;
	struct unwind_entry *set = &unwind_cache[unwind_index(addr, tag) * UNWIND_WAYS];
	uint64_t *at;

	if (addr >> ADDR_BITS)
		return;
	at = &set[way_for(set, addr)].word;
	__atomic_store_n(at, entry, __ATOMIC_SEQ_CST);
	/*
	 * The entry was written before the counter is read here. unwind_forget() increments the
	 * counter before it reads the entries. So at least one of the two threads sees the other's
	 * change.
	 */
	if (__atomic_load_n(&forgets, __ATOMIC_SEQ_CST) != begun)
		__atomic_compare_exchange_n(
			at, &entry, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void unwind_forget(uint64_t from, uint64_t to)
{
	__atomic_fetch_add(&forgets, 1, __ATOMIC_SEQ_CST);
	for (uint64_t i = 0; i < UNWIND_SETS * UNWIND_WAYS; i++) {
		uint64_t *at = &unwind_cache[i].word;
		uint64_t entry = __atomic_load_n(at, __ATOMIC_SEQ_CST), addr;

		addr = entry_addr(i / UNWIND_WAYS, entry);
		if (entry && addr >= from && addr < to)
			__atomic_compare_exchange_n(
				at, &entry, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
}

void unwind_forget_all(void)
{
	unwind_forget(0, UINT64_MAX);
}

#define UNLIKELY(condition) __builtin_expect(condition, 0)
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* A frame that a walk has reached: its return address, and the values of RSP and RBP after the
 * return. */
struct fast_frame {
	uint64_t addr, rsp, rbp;
	uint64_t place; /* place of the address's cache entry, if there is one */
	uint64_t before; /* place of the previous frame's cache entry */
	uint64_t saved; /* address where the step to this frame read RBP; initially the slot */
	uint64_t word; /* cache word of the previous frame */
};

enum way {
	WAY_ON,
	WAY_END,
	WAY_NO_CODE,
	WAY_MISS,
	WAY_AGAIN,
};

/*
 * Returns true if a wrong hint should be replaced: pseudo-randomly, in 1 of 64 cases. If the next
 * address varies, the hint then usually contains the most frequent one. Also, threads then seldom
 * write memory that other threads read.
 */
static bool is_to_be_renewed(uint64_t rsp, const struct unwind_start *start)
{
	return ((uint32_t)rsp * 0x9e3779b1u + start->number * 0x85ebca6bu) >> 26 == 0;
}

/*
 * Returns the place of the frame's cache entry, using the hint at the previous place. The processor
 * predicts that the hint is right. So it can continue with the next frame while it still loads this
 * frame's return address from memory.
 */
static ALWAYS_INLINE uint64_t next_place(
	uint64_t place, const struct fast_frame *frame, const struct unwind_start *start)
{
	uint64_t *at = &unwind_cache[place].hint;
	uint64_t hint = __atomic_load_n(at, __ATOMIC_RELAXED), next;

	if (__builtin_expect(hint >> 16 == frame->addr, 1))
		return hint & 0xffff;
	next = unwind_cache_place(frame->addr);
	if (!hint || is_to_be_renewed(frame->rsp, start))
		__atomic_store_n(at, frame->addr << 16 | next, __ATOMIC_RELAXED);
	return next;
}

/* Classifies a failed step. The entry may have moved since the hint was made. */
static __attribute__((noinline)) enum way way_at_end(
	struct fast_frame frame, uint64_t word, const struct unwind_start *start)
{
	if (frame.rsp > start->high - 8)
		return WAY_END;
	if (unwind_cache_place(frame.addr) != frame.place)
		return WAY_AGAIN;
	if (word == (unwind_tag(frame.addr) << 32 | UNWIND_NO_CODE))
		return WAY_NO_CODE;
	return word == (unwind_tag(frame.addr) << 32 | UNWIND_END) ? WAY_END : WAY_MISS;
}

/*
 * Moves to the caller's frame. A frame never extends below RSP. If the frame register points below
 * RSP or out of the stack, the slow way must handle the frame.
 *
 * Chooses between RBP and RSP with a branch, not with a conditional move. With a conditional move,
 * every step would wait for RBP, which few steps use.
 */
static ALWAYS_INLINE bool follow(
	struct fast_frame *frame, uint32_t packed, const struct unwind_start *start)
{
	uint64_t room = start->high - 8 - frame->rsp, from = frame->rsp, cfa, saved, rbp;

	if (UNLIKELY(unwind_packed_is_from_rbp(packed))) {
		from = frame->rbp;
		__asm__("" : "+r"(from));
		if (UNLIKELY(from - frame->rsp > room || from & 7))
			return false;
	}
	cfa = from + (uint64_t)unwind_packed_cfa(packed);
	saved = cfa + (uint64_t)unwind_packed_rbp(packed);
	if (UNLIKELY(cfa <= frame->rsp || cfa > start->high || saved - frame->rsp > room))
		return false;
	rbp = unwind_load(saved);
	frame->saved = saved;
	frame->rbp = unwind_packed_rbp(packed) == UNWIND_RBP_KEPT ? frame->rbp : rbp;
	frame->addr = unwind_load(cfa - 8);
	frame->rsp = cfa;
	return true;
}

static ALWAYS_INLINE enum way step(struct fast_frame *frame, const struct unwind_start *start)
{
	uint64_t word = __atomic_load_n(&unwind_cache[frame->place].word, __ATOMIC_RELAXED);

	if (UNLIKELY(
		    word >> 32 != unwind_tag(frame->addr) || !follow(frame, (uint32_t)word, start)))
		return way_at_end(*frame, word, start);
	frame->word = word;
	frame->before = frame->place;
	frame->place = next_place(frame->place, frame, start);
	return WAY_ON;
}

bool unwind_step_on(struct unwind_start *at, uint32_t packed)
{
	struct fast_frame frame = {.rsp = at->slot + 8, .rbp = at->rbp};

	if (!follow(&frame, packed, at))
		return false;
	at->slot = frame.rsp - 8;
	at->rbp = frame.rbp;
	return true;
}

/* Calls step(), and calls it again if the hint was wrong. */
static ALWAYS_INLINE enum way go_on(struct fast_frame *frame, const struct unwind_start *start)
{
	enum way way = step(frame, start);

	while (UNLIKELY(way == WAY_AGAIN)) {
		__atomic_store_n(&unwind_cache[frame->before].hint, 0, __ATOMIC_RELAXED);
		frame->place = unwind_cache_place(frame->addr);
		way = step(frame, start);
	}
	return way;
}

/* Ends a walk. The frame is passed by value, because a pointer would force it into memory for the
 * whole walk. */
static __attribute__((noinline)) uint32_t way_out(enum way way, uint32_t count,
	struct fast_frame frame, const struct unwind_start *start, struct unwind_start *stop)
{
	if (way == WAY_MISS)
		*stop = (struct unwind_start){
			frame.rsp - 8, frame.rbp, start->high, start->number, count};
	return way == WAY_MISS ? UNWIND_MISS : count - (count && way == WAY_NO_CODE);
}

void unwind_trail_init(struct unwind_trail *trail, struct unwind_walked *walked)
{
	trail->walked = walked;
	trail->first = UNWIND_MARKS;
	trail->marks[UNWIND_MARKS].slot = UINT64_MAX;
	trail->marks[UNWIND_MARKS].first_saved = UNWIND_MARKS;
}

/* Returns true if the mark describes the walk's current frame. */
static ALWAYS_INLINE bool is_there(const struct unwind_mark *mark, const struct fast_frame *frame)
{
	return mark->slot == frame->rsp - 8 && mark->addr == frame->addr &&
	       !((mark->rbp ^ frame->rbp) & mark->rbp_bits);
}

/* Checks the saved RBPs on which the walk from the mark outwards depends. Returns true if none of
 * them has changed. */
static ALWAYS_INLINE bool is_still_saved(
	const struct unwind_trail *trail, const struct unwind_mark *mark)
{
	uint32_t at = mark[1].first_saved;

	while (at < UNWIND_MARKS && unwind_load(trail->saved[at].place) == trail->saved[at].rbp)
		at++;
	return at == UNWIND_MARKS;
}

bool unwind_is_same(const struct unwind_trail *trail, const struct unwind_start *start)
{
	const struct unwind_mark *mark = &trail->marks[trail->first];
	struct fast_frame frame = {
		.addr = unwind_load(start->slot), .rsp = start->slot + 8, .rbp = start->rbp};

	if (trail->begun != unwind_cache_begin() || trail->high != start->high ||
		!is_there(mark, &frame) || !is_still_saved(trail, mark))
		return false;
	do
		mark++;
	while (mark->slot != UINT64_MAX && unwind_load(mark->slot) == mark->addr);
	return mark->slot == UINT64_MAX;
}

/* Appends the frames from a mark outwards, after the `count` frames found so far. Returns the total
 * number of frames, or UNWIND_MISS if the stack has changed there. */
static __attribute__((noinline)) uint32_t go_along(const struct unwind_trail *trail, uint32_t at,
	uint64_t *frames, uint32_t count, uint32_t max, const struct unwind_skip *skip)
{
	const struct unwind_mark *mark = &trail->marks[at];

	if (!is_still_saved(trail, mark))
		return UNWIND_MISS;
	for (;;) {
		bool is_own = !count && mark->addr - skip->from < skip->to - skip->from;

		if (!is_own && (!mark->addr || count == max))
			return count;
		if (!is_own)
			frames[count++] = mark->addr;
		mark++;
		if (mark->slot == UINT64_MAX)
			return mark->rbp_bits && count < max ? UNWIND_MISS : count;
		if (unwind_load(mark->slot) != mark->addr)
			return UNWIND_MISS;
	}
}

/* Sets the mark's `first_saved`. If the rest of the walk depends on the mark's RBP, and this RBP
 * was read from the stack at `place`, adds the word at `place` to the saved words. */
static ALWAYS_INLINE void set_first_saved(struct unwind_trail *trail, uint32_t at, uint64_t place)
{
	struct unwind_mark *mark = &trail->marks[at];
	uint32_t first = mark[1].first_saved;

	if (mark->rbp_bits && place != mark->slot)
		trail->saved[--first] = (struct unwind_saved){place, mark->rbp};
	mark->first_saved = first;
}

/*
 * Stores a walk in the trail. The `count` walked frames become marks before the existing mark
 * `from`, which is the walk's current frame. If the thread is terminated in this function, another
 * thread may inherit the trail.
 */
static __attribute__((noinline)) void keep(
	struct unwind_trail *trail, uint32_t count, uint32_t from, uint64_t saved, bool is_at_end)
{
	if (!count)
		return;
	__atomic_store_n(&trail->first, UNWIND_MARKS, __ATOMIC_RELEASE);
	trail->note.id = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (count > from)
		return;
	if (from < UNWIND_MARKS)
		set_first_saved(trail, from, saved);
	else
		trail->marks[from].rbp_bits =
			is_at_end || !trail->walked[count - 1].addr ? 0 : UINT64_MAX;
	for (uint32_t i = count; i--;) {
		const struct unwind_walked *walked = &trail->walked[i];
		struct unwind_mark *mark = &trail->marks[from - count + i];
		uint32_t packed = (uint32_t)walked->word;

		mark->slot = walked->slot;
		mark->addr = walked->addr;
		mark->rbp = walked->rbp;
		mark->rbp_bits = unwind_packed_is_from_rbp(packed)	      ? UINT64_MAX :
				 unwind_packed_rbp(packed) != UNWIND_RBP_KEPT ? 0 :
										mark[1].rbp_bits;
		set_first_saved(trail, from - count + i, walked->saved);
	}
	__atomic_store_n(&trail->first, from - count, __ATOMIC_RELEASE);
}

/* Discards the trail if it is stale, then returns the index of its first mark. */
static ALWAYS_INLINE uint32_t first_mark(
	struct unwind_trail *trail, const struct unwind_start *start)
{
	uint64_t begun = unwind_cache_begin();

	trail->is_whole = false;
	if (UNLIKELY(trail->begun != begun || trail->high != start->high)) {
		__atomic_store_n(&trail->first, UNWIND_MARKS, __ATOMIC_RELEASE);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		trail->begun = begun;
		trail->high = start->high;
	}
	return trail->first;
}

uint32_t unwind_fast(uint64_t *frames, uint32_t max, const struct unwind_skip *skip,
	const struct unwind_start *start, struct unwind_start *stop, struct unwind_trail *trail)
{
	struct fast_frame frame = {.addr = unwind_load(start->slot),
		.rsp = start->slot + 8,
		.rbp = start->rbp,
		.saved = start->slot};
	uint32_t count = start->count, walked = 0, at = trail ? first_mark(trail, start) : 0;
	struct unwind_walked *here = NULL;
	enum way way = WAY_ON;

	frame.place = frame.before = unwind_cache_place(frame.addr);
	while (way == WAY_ON) {
		bool is_own = !count && frame.addr - skip->from < skip->to - skip->from;

		while (trail && trail->marks[at].slot < frame.rsp - 8)
			at++;
		if (trail && is_there(&trail->marks[at], &frame)) {
			uint32_t found = go_along(trail, at, frames, count, max, skip);

			if (found != UNWIND_MISS) {
				keep(trail, walked, at, frame.saved, false);
				trail->is_whole = !start->count && trail->first == at - walked;
				return found;
			}
			at = UNWIND_MARKS;
		}
		if (count == max && !is_own)
			break;
		if (UNLIKELY(walked == UNWIND_MARKS))
			trail = NULL;
		if (trail) {
			here = &trail->walked[walked++];
			here->slot = frame.rsp - 8;
			here->addr = frame.addr;
			here->saved = frame.saved;
			here->rbp = frame.rbp;
			here->word = 0;
		}
		if (!frame.addr)
			break;
		if (!is_own)
			frames[count++] = frame.addr;
		/* Make a step from the last frame, too: only the step shows whether its address is
		 * code. */
		way = go_on(&frame, start);
		if (trail && way == WAY_ON)
			here->word = frame.word;
	}
	if (trail && (way == WAY_ON || way == WAY_END)) {
		keep(trail, walked, UNWIND_MARKS, 0, way == WAY_END);
		trail->is_whole = !start->count && trail->first == UNWIND_MARKS - walked;
	}
	return way == WAY_ON ? count : way_out(way, count, frame, start, stop);
}
