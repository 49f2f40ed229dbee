/*
 * The cache of 32-bit rules, and the walks that use it. Each rule is stored once and has a number.
 * A cache entry consists of a tag and a rule number. When a walk reaches an unchanged frame of an
 * earlier walk of the thread (its trail), it copies the remaining frames from the trail if the
 * stack is unchanged there.
 */
#include <stddef.h>

#include "snapshot/tracer/unwind_parts_x86.h"

#define SETS_LOG2 15
#define SETS (1u << SETS_LOG2)
#define WAYS 2
#define NUMBER_BITS 15 /* bits of a rule's number; the remaining bits of an entry are the tag */
#define NUMBER_MASK ((1u << NUMBER_BITS) - 1)

/* Each entry is a tag (the address bits above the index) and a rule number. An empty entry is 0. */
static __attribute__((aligned(64))) uint32_t cache[SETS * WAYS];

static uint32_t forgets; /* number of times that entries were forgotten */

/* ---------------------------------------------------------------- rules by number */

#define RULES 8192 /* a power of 2; rule number 0 is not used */
#define PROBES 64

enum {
	RULE_EMPTY,
	RULE_BEING_WRITTEN, /* permanent if the writing thread was terminated */
	RULE_READY,
};

static struct numbered_rule {
	struct unwind32_rule rule;
	uint32_t state;
} rules[RULES];

static bool is_same_rule(const struct unwind32_rule *a, const struct unwind32_rule *b)
{
	return a->cfa == b->cfa && a->ebp == b->ebp && a->kind == b->kind &&
	       a->cfa_from == b->cfa_from && a->is_indirect == b->is_indirect &&
	       a->ebp_from == b->ebp_from;
}

/* Returns the number of a rule, and stores the rule if it is new. Returns 0 if there is no room. */
static uint32_t rule_number(const struct unwind32_rule *rule)
{
	uint32_t hash = (uint32_t)rule->cfa * 0x9e3779b1u + (uint32_t)rule->ebp * 0x85ebca6bu +
			(rule->kind | (uint32_t)rule->cfa_from << 2 |
				(uint32_t)rule->is_indirect << 4 | (uint32_t)rule->ebp_from << 5) *
				0xc2b2ae35u;

	for (uint32_t i = 0; i < PROBES; i++) {
		uint32_t number = ((hash >> 16) + i) % (RULES - 1) + 1;
		struct numbered_rule *place = &rules[number];
		uint32_t state = __atomic_load_n(&place->state, __ATOMIC_ACQUIRE);

		if (state == RULE_EMPTY &&
			__atomic_compare_exchange_n(&place->state, &state, RULE_BEING_WRITTEN,
				false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
			place->rule = *rule;
			__atomic_store_n(&place->state, RULE_READY, __ATOMIC_RELEASE);
			return number;
		}
		if (state == RULE_READY && is_same_rule(&place->rule, rule))
			return number;
	}
	return 0;
}

/* ---------------------------------------------------------------- the cache */

static uint32_t tag_of(uint32_t addr)
{
	return addr >> SETS_LOG2;
}

/* Returns the set of an address. Adjacent addresses never share a set. The tag is hashed into the
 * result, so that groups of adjacent addresses are spread over all sets. */
static uint32_t set_of(uint32_t low, uint32_t tag)
{
	return (low ^ tag * 0x9e3779b1u >> (32 - SETS_LOG2)) & (SETS - 1);
}

static inline uint32_t load_entry(const uint32_t *entry)
{
	return __atomic_load_n(entry, __ATOMIC_ACQUIRE);
}

uint32_t unwind32_begin(void)
{
	return __atomic_load_n(&forgets, __ATOMIC_SEQ_CST);
}

static inline const struct unwind32_rule *find(uint32_t addr)
{
	uint32_t tag = tag_of(addr), entry;
	const uint32_t *set = &cache[set_of(addr, tag) * WAYS];

	entry = load_entry(&set[0]);
	if (entry >> NUMBER_BITS != tag || !entry)
		entry = load_entry(&set[1]);
	return entry >> NUMBER_BITS == tag && entry & NUMBER_MASK ?
		       &rules[entry & NUMBER_MASK].rule :
		       NULL;
}

const struct unwind32_rule *unwind32_find(uint32_t addr)
{
	return find(addr);
}

/* Returns the way in which to store an entry: the way that already has the address; otherwise a
 * free way; otherwise a pseudo-random way. */
static uint32_t *way_for(uint32_t *set, uint32_t addr)
{
	for (unsigned way = 0; way < WAYS; way++) {
		uint32_t entry = load_entry(&set[way]);

		if (!entry || entry >> NUMBER_BITS == tag_of(addr))
			return &set[way];
	}
	return &set[(addr * 0x9e3779b1u >> 16) % WAYS];
}

void unwind32_add(uint32_t addr, const struct unwind32_rule *rule, uint32_t begun)
{
	uint32_t tag = tag_of(addr), number = rule_number(rule);
	uint32_t entry = tag << NUMBER_BITS | number, *at;

	if (!number)
		return;
	at = way_for(&cache[set_of(addr, tag) * WAYS], addr);
	__atomic_store_n(at, entry, __ATOMIC_SEQ_CST);
	/*
	 * The entry was written before the counter is read here. unwind32_forget() increments the
	 * counter before it reads the entries. So at least one of the two threads sees the other's
	 * change.
	 */
	if (__atomic_load_n(&forgets, __ATOMIC_SEQ_CST) != begun)
		__atomic_compare_exchange_n(
			at, &entry, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void unwind32_forget(uint64_t from, uint64_t to)
{
	__atomic_fetch_add(&forgets, 1, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < SETS * WAYS; i++) {
		uint32_t entry = __atomic_load_n(&cache[i], __ATOMIC_SEQ_CST), tag, addr;

		if (!entry)
			continue;
		tag = entry >> NUMBER_BITS;
		addr = tag << SETS_LOG2 | set_of(i / WAYS, tag);
		if (addr >= from && addr < to)
			__atomic_compare_exchange_n(
				&cache[i], &entry, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
	/* trails may have been made of entries that were not yet removed */
	__atomic_fetch_add(&forgets, 1, __ATOMIC_SEQ_CST);
}

/* ---------------------------------------------------------------- steps */

#define UNLIKELY(condition) __builtin_expect(condition, 0)
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define WORD_BYTES 4u

struct walk_frame {
	uint32_t slot, addr, ebp;
	/* addresses of words read by the step to this frame; 0: none */
	uint32_t cfa_place, ebp_place;
};

static ALWAYS_INLINE uint32_t load(const struct unwind32_stack *stack, uint32_t place)
{
	return *(const uint32_t *)(stack->origin + place);
}

/* Returns true if a frame may use the word at a place. A frame never extends below ESP. */
static ALWAYS_INLINE bool is_within(
	const struct unwind32_stack *stack, uint32_t slot, uint32_t place)
{
	return place - (slot + WORD_BYTES) <= stack->high - WORD_BYTES - (slot + WORD_BYTES) &&
	       !(place & (WORD_BYTES - 1));
}

/* Moves to the caller's frame. Returns false if the rule does not fit the stack. */
static ALWAYS_INLINE bool follow(const struct unwind32_stack *stack, struct walk_frame *frame,
	const struct unwind32_rule *rule)
{
	uint32_t slot = frame->slot, esp = slot + WORD_BYTES, ebp = frame->ebp;
	uint32_t cfa = (rule->cfa_from == UNWIND32_ESP ? esp : ebp) + (uint32_t)rule->cfa, place;

	if (UNLIKELY(esp >= stack->high))
		return false;
	if (UNLIKELY(rule->is_indirect)) {
		if (!is_within(stack, slot, cfa))
			return false;
		frame->cfa_place = cfa;
		cfa = load(stack, cfa);
	}
	if (UNLIKELY(!is_within(stack, slot, cfa - WORD_BYTES)))
		return false;
	if (rule->ebp_from != UNWIND32_KEPT) {
		uint32_t from = rule->ebp_from == UNWIND32_CFA ? cfa :
				rule->ebp_from == UNWIND32_EBP ? ebp :
								 esp;

		place = from + (uint32_t)rule->ebp;
		if (UNLIKELY(!is_within(stack, slot, place)))
			return false;
		frame->ebp_place = place;
		frame->ebp = load(stack, place);
	}
	frame->slot = cfa - WORD_BYTES;
	frame->addr = load(stack, frame->slot);
	return true;
}

bool unwind32_step_on(const struct unwind32_stack *stack, struct unwind32_start *at,
	const struct unwind32_rule *rule)
{
	struct walk_frame frame = {.slot = at->slot, .ebp = at->ebp};

	if (rule->kind != UNWIND32_STEP || !follow(stack, &frame, rule))
		return false;
	at->slot = frame.slot;
	at->ebp = frame.ebp;
	return true;
}

/* ---------------------------------------------------------------- trails */

void unwind32_trail_init(struct unwind32_trail *trail, struct unwind32_walked *walked)
{
	trail->walked = walked;
	trail->first = UNWIND32_MARKS;
}

static ALWAYS_INLINE bool is_there(
	const struct unwind32_mark *mark, uint32_t slot, uint32_t addr, uint32_t ebp)
{
	return mark->slot == slot && mark->addr == addr && !((mark->ebp ^ ebp) & mark->ebp_bits);
}

static ALWAYS_INLINE bool are_same(
	const struct unwind32_trail *trail, const struct unwind32_stack *stack, uint32_t first)
{
	uint32_t differences = 0;

	for (uint32_t i = first; i < UNWIND32_WORDS; i++)
		differences |= load(stack, trail->words[i].place) ^ trail->words[i].value;
	return !differences;
}

bool unwind32_is_same(const struct unwind32_trail *trail, const struct unwind32_stack *stack,
	const struct unwind32_start *start)
{
	const struct unwind32_mark *mark = &trail->marks[trail->first];

	return trail->first < UNWIND32_MARKS && trail->begun == unwind32_begin() &&
	       trail->high == stack->high &&
	       is_there(mark, start->slot, load(stack, start->slot), start->ebp) &&
	       are_same(trail, stack, mark->first_word);
}

/* Discards the trail if it is stale, then returns the index of its first mark. */
static uint32_t first_mark(struct unwind32_trail *trail, const struct unwind32_stack *stack)
{
	uint32_t begun = unwind32_begin();

	trail->is_whole = false;
	if (UNLIKELY(trail->begun != begun || trail->high != stack->high)) {
		__atomic_store_n(&trail->first, UNWIND32_MARKS, __ATOMIC_RELEASE);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		trail->begun = begun;
		trail->high = stack->high;
	}
	return trail->first;
}

/* Inserts a word before the existing words. Does nothing if place is 0. */
static uint32_t add_word(
	struct unwind32_trail *trail, uint32_t first, uint32_t place, uint32_t value)
{
	if (place)
		trail->words[--first] = (struct unwind32_word){place, value};
	return first;
}

/* Maximum number of words that one frame adds. */
#define WORDS_OF_FRAME 3

/* Stores a walk in the trail. The `count` walked frames become marks before the existing mark
 * `from`. If the thread is terminated in this function, another thread may inherit the trail. */
static __attribute__((noinline)) void keep(struct unwind32_trail *trail,
	const struct unwind32_stack *stack, uint32_t count, uint32_t from, bool is_cut)
{
	uint32_t word = from < UNWIND32_MARKS ? trail->marks[from].first_word : UNWIND32_WORDS;
	uint32_t bits = from < UNWIND32_MARKS ? trail->marks[from].ebp_bits : 0;
	uint32_t slot = from < UNWIND32_MARKS ? trail->marks[from].slot : 0;

	if (!count)
		return;
	__atomic_store_n(&trail->first, UNWIND32_MARKS, __ATOMIC_RELEASE);
	trail->note.id = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (count > from)
		return;
	while (count--) {
		const struct unwind32_walked *walked = &trail->walked[count];

		if (word < WORDS_OF_FRAME)
			return;
		word = add_word(trail, word, slot, slot ? load(stack, slot) : 0);
		if (bits && walked->ebp_place)
			word = add_word(
				trail, word, walked->ebp_place, load(stack, walked->ebp_place));
		word = add_word(trail, word, walked->cfa_place,
			walked->cfa_place ? load(stack, walked->cfa_place) : 0);
		if (walked->needs_ebp)
			bits = UINT32_MAX;
		else if (walked->ebp_place)
			bits = 0;
		slot = walked->slot;
		trail->marks[--from] =
			(struct unwind32_mark){slot, walked->addr, walked->ebp, bits, word};
	}
	trail->is_cut = is_cut;
	__atomic_store_n(&trail->first, from, __ATOMIC_RELEASE);
}

/* Appends the frames from a mark outwards. Returns the total number of frames, or UNWIND32_MISS if
 * the stack has changed there. */
static __attribute__((noinline)) uint32_t go_along(const struct unwind32_trail *trail,
	const struct unwind32_stack *stack, uint32_t at, uint64_t *frames, uint32_t count,
	uint32_t max, const struct unwind_skip *skip)
{
	if (!are_same(trail, stack, trail->marks[at].first_word))
		return UNWIND32_MISS;
	for (; at < UNWIND32_MARKS && count < max && trail->marks[at].addr; at++) {
		uint32_t addr = trail->marks[at].addr;

		if (count || addr < skip->from || addr >= skip->to)
			frames[count++] = addr;
	}
	/* The earlier walk may have omitted frames because it had no room for them. */
	return trail->is_cut && count < max ? UNWIND32_MISS : count;
}

/* ---------------------------------------------------------------- walks */

enum way {
	WAY_ON,
	WAY_END,
	WAY_NO_CODE,
	WAY_MISS,
};

/* Rule of the tracer's own functions, which are compiled with frame pointers. */
static const struct unwind32_rule own_rule = UNWIND32_FRAME;

static ALWAYS_INLINE enum way step(
	const struct unwind32_stack *stack, struct walk_frame *frame, bool is_own, bool *needs_ebp)
{
	const struct unwind32_rule *rule = is_own ? &own_rule : find(frame->addr);

	if (UNLIKELY(!rule))
		return WAY_MISS;
	if (UNLIKELY(rule->kind != UNWIND32_STEP))
		return rule->kind == UNWIND32_END ? WAY_END : WAY_NO_CODE;
	*needs_ebp = rule->cfa_from == UNWIND32_EBP || rule->ebp_from == UNWIND32_EBP;
	return follow(stack, frame, rule) ? WAY_ON : WAY_END;
}

uint32_t unwind32_walk(uint64_t *frames, uint32_t max, const struct unwind_skip *skip,
	const struct unwind32_stack *stack, const struct unwind32_start *start,
	struct unwind32_start *stop, struct unwind32_trail *trail)
{
	struct walk_frame frame = {
		.slot = start->slot, .addr = load(stack, start->slot), .ebp = start->ebp};
	uint32_t count = start->count, walked = 0;
	uint32_t at = trail ? first_mark(trail, stack) : UNWIND32_MARKS;
	struct unwind32_walked *here = NULL;
	enum way way = WAY_ON;

	for (;;) {
		bool is_own = !count && frame.addr >= skip->from && frame.addr < skip->to;
		bool needs_ebp = false;

		while (at < UNWIND32_MARKS && trail->marks[at].slot < frame.slot)
			at++;
		if (at < UNWIND32_MARKS &&
			is_there(&trail->marks[at], frame.slot, frame.addr, frame.ebp)) {
			uint32_t found = go_along(trail, stack, at, frames, count, max, skip);

			if (found != UNWIND32_MISS) {
				keep(trail, stack, walked, at, trail->is_cut);
				trail->is_whole = !start->count && trail->first == at - walked;
				return found;
			}
			at = UNWIND32_MARKS;
		}
		if (count == max && !is_own)
			break;
		if (UNLIKELY(walked == UNWIND32_MARKS)) {
			trail = NULL;
			at = UNWIND32_MARKS;
		}
		if (trail) {
			here = &trail->walked[walked++];
			*here = (struct unwind32_walked){
				.slot = frame.slot, .addr = frame.addr, .ebp = frame.ebp};
		}
		if (!frame.addr) {
			way = WAY_END;
			break;
		}
		if (!is_own)
			frames[count++] = frame.addr;
		/* Make a step from the last frame, too: only its rule shows whether its address is
		 * code. */
		frame.cfa_place = frame.ebp_place = 0;
		way = step(stack, &frame, is_own, &needs_ebp);
		if (trail) {
			here->needs_ebp = needs_ebp;
			here->cfa_place = frame.cfa_place;
			here->ebp_place = way == WAY_ON ? frame.ebp_place : 0;
		}
		if (way != WAY_ON)
			break;
	}
	if (trail && (way == WAY_ON || way == WAY_END)) {
		keep(trail, stack, walked, UNWIND32_MARKS, way == WAY_ON);
		trail->is_whole = !start->count && trail->first == UNWIND32_MARKS - walked;
	}
	if (UNLIKELY(way == WAY_MISS)) {
		*stop = (struct unwind32_start){frame.slot, frame.ebp, count};
		return UNWIND32_MISS;
	}
	return count - (count && way == WAY_NO_CODE);
}
