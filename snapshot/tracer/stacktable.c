/*
 * The table of distinct stacks, which has no locks. New records are appended, and a hash index
 * finds them. When the index fills up, all threads help to move its entries to a larger index. Free
 * entries of the old index are frozen, so that no thread adds a stack there.
 */
#include <stddef.h>

#include "snapshot/tracer/tables.h"
#include "snapshot/tracer/tracer_memory.h"

#define STEP_BYTES ((uint64_t)65536)
#define FIRST_LOG2 9
#define FROZEN UINT64_MAX /* this entry was free when its index was replaced */
/* Parts of tracer_area.stack_buckets. */
#define LEVEL_BITS ((uint64_t)0xff) /* number of indices in use, initially 0 */
/* all entries of the previous index have been moved to the newest index */
#define MOVED ((uint64_t)0x100)
#define ROOM_BITS (~(uint64_t)0xffff)

_Static_assert(sizeof(uint64_t) << FIRST_LOG2 == STACKTABLE_FIRST_BYTES, "first index");

/* An index of stacks. The upper half of an entry is the hash of a stack, the lower half is the id.
 * 0: the entry is free. */
struct index_level {
	uint64_t *entries;
	uint32_t *count; /* number of entries that are not free */
	unsigned log2;
};

struct wanted {
	const uint64_t *frames;
	uint32_t depth, hash, now; /* `now` is the number of unloads so far */
};

static struct tracer_stack *record(const struct tracer_area *area, uint32_t id)
{
	return (struct tracer_stack *)(uintptr_t)(area->stacks + (uint64_t)id * 8);
}

static struct index_level level_of(uint64_t buckets, unsigned number)
{
	uint64_t room = buckets & ROOM_BITS;

	return (struct index_level){
		(uint64_t *)(uintptr_t)(room + stacktable_index_offset(number)),
		(uint32_t *)(uintptr_t)room + number,
		FIRST_LOG2 + 2 * number,
	};
}

/* One random odd number per frame, as splitmix64 makes them. */
#define SPREAD(n) ((n)*0x9e3779b97f4a7c15u)
#define MIX_ONCE(n) (((n) ^ (n) >> 30) * 0xbf58476d1ce4e5b9u)
#define MIX_TWICE(n) (((n) ^ (n) >> 27) * 0x94d049bb133111ebu)
#define FACTOR(n) (MIX_TWICE(MIX_ONCE(SPREAD((uint64_t)(n)))) | 1)
#define FACTORS_4(n) FACTOR(n), FACTOR((n) + 1), FACTOR((n) + 2), FACTOR((n) + 3)
#define FACTORS_16(n) FACTORS_4(n), FACTORS_4((n) + 4), FACTORS_4((n) + 8), FACTORS_4((n) + 12)

static const uint64_t factors[] = {FACTORS_16(1), FACTORS_16(17), FACTORS_16(33), FACTORS_16(49)};

_Static_assert(sizeof(factors) / sizeof(*factors) == TRACER_DEPTH_MAX, "a factor per frame");

/* The products do not depend on each other, so the processor computes them at the same time. */
static uint32_t hash_frames(const uint64_t *frames, uint32_t depth)
{
	uint64_t sum = depth;

	for (uint32_t i = 0; i < depth; i++)
		sum += frames[i] * factors[i];
	sum = (sum ^ sum >> 32) * 0xd6e8feb86659fd93u;
	return (uint32_t)(sum >> 32);
}

static bool are_equal(const uint64_t *a, const uint64_t *b, uint32_t depth)
{
	uint32_t i = 0;

	for (; i + 4 <= depth; i += 4) {
		if ((a[i] ^ b[i]) | (a[i + 1] ^ b[i + 1]) | (a[i + 2] ^ b[i + 2]) |
			(a[i + 3] ^ b[i + 3]))
			return false;
	}
	for (; i < depth; i++) {
		if (a[i] != b[i])
			return false;
	}
	return true;
}

/* Counts a change to a record, in both pieces if the record extends into the next one. */
static void count_change(struct tracer_area *area, const struct tracer_stack *stack)
{
	uint64_t offset = (uintptr_t)stack - (uintptr_t)area->stacks;
	size_t first = tracer_count_of(offset),
	       last = tracer_count_of(offset + sizeof(*stack) + stack->depth * 8u - 1);

	__atomic_add_fetch(&area->changes[TRACER_SHARDS][first], 1, __ATOMIC_RELEASE);
	if (last != first)
		__atomic_add_fetch(&area->changes[TRACER_SHARDS][last], 1, __ATOMIC_RELEASE);
}

/* Returns true if a record with these frames is still valid after the unloads since `born`. */
static bool is_current(
	struct tracer_area *area, struct tracer_stack *stack, const struct wanted *wanted)
{
	uint32_t born = __atomic_load_n(&stack->born, __ATOMIC_RELAXED);

	if (unloads_hit(area, born, wanted->frames, wanted->depth)) {
		__atomic_store_n(&stack->stale, 1, __ATOMIC_RELAXED);
		return false;
	}
	/* Another thread may already have stored a higher number of unloads. */
	while (born < wanted->now && !__atomic_compare_exchange_n(&stack->born, &born, wanted->now,
					     false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	count_change(area, stack);
	return true;
}

static bool is_wanted(struct tracer_area *area, uint32_t id, const struct wanted *wanted)
{
	struct tracer_stack *stack = record(area, id);

	return stack->depth == wanted->depth && !__atomic_load_n(&stack->stale, __ATOMIC_RELAXED) &&
	       are_equal(stack->frames, wanted->frames, wanted->depth) &&
	       (__atomic_load_n(&stack->born, __ATOMIC_RELAXED) == wanted->now ||
		       is_current(area, stack, wanted));
}

/* Looks up a stack in an index. Returns the entry of the stack, or, if the stack is missing, the
 * first free or frozen entry. Returns NULL if the index has neither. Sets `*seen` to the contents
 * of the entry. */
static uint64_t *look_up(struct tracer_area *area, const struct index_level *level,
	const struct wanted *wanted, uint64_t *seen)
{
	uint32_t mask = (1u << level->log2) - 1, at = wanted->hash >> (32 - level->log2);

	for (uint32_t tries = 0; tries <= mask; tries++, at = (at + 1) & mask) {
		uint64_t entry = __atomic_load_n(&level->entries[at], __ATOMIC_ACQUIRE);

		*seen = entry;
		if (!entry || entry == FROZEN)
			return &level->entries[at];
		if (entry >> 32 == wanted->hash && is_wanted(area, (uint32_t)entry, wanted))
			return &level->entries[at];
	}
	return NULL;
}

static bool entry_swap(uint64_t *entry, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n(
		entry, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* Looks up a stack in an index that is being replaced. If the stack is missing, freezes the entry
 * where it would be, so that no thread adds it there. */
static uint32_t look_up_old(
	struct tracer_area *area, const struct index_level *level, const struct wanted *wanted)
{
	uint64_t seen, *entry;

	do {
		entry = look_up(area, level, wanted, &seen);
		if (entry && seen && seen != FROZEN)
			return (uint32_t)seen;
	} while (entry && !seen && !entry_swap(entry, 0, FROZEN));
	return 0;
}

static uint32_t entry_add(const struct index_level *level, uint64_t *entry, uint64_t value)
{
	return entry_swap(entry, 0, value) ? __atomic_add_fetch(level->count, 1, __ATOMIC_RELAXED) :
					     0;
}

static void move_entry(const struct index_level *level, uint64_t value)
{
	uint32_t mask = (1u << level->log2) - 1, at = (uint32_t)(value >> 32) >> (32 - level->log2);

	for (uint32_t tries = 0; tries <= mask;) {
		uint64_t found = __atomic_load_n(&level->entries[at], __ATOMIC_ACQUIRE);

		if (found == value || (!found && entry_add(level, &level->entries[at], value)))
			return;
		if (!found)
			continue; /* another thread has filled this entry */
		at = (at + 1) & mask;
		tries++;
	}
}

/* Moves the entries of the previous index. Any number of threads may run this function at once, and
 * any of them may be terminated before the end. */
static void move_all(const struct index_level *from, const struct index_level *to)
{
	for (uint32_t at = 0; at < 1u << from->log2; at++) {
		uint64_t value = __atomic_load_n(&from->entries[at], __ATOMIC_ACQUIRE);

		while (!value && !entry_swap(&from->entries[at], 0, FROZEN))
			value = __atomic_load_n(&from->entries[at], __ATOMIC_ACQUIRE);
		if (value && value != FROZEN)
			move_entry(to, value);
	}
}

/* Commits the next index and makes it current, unless another thread has already done so. */
static bool add_level(struct tracer_area *area, uint64_t buckets)
{
	unsigned number = buckets & LEVEL_BITS;
	uint64_t from = number ? stacktable_index_offset(number) : 0;
	uint64_t bytes = stacktable_index_offset(number + 1) - from;
	uint64_t next = (buckets & ROOM_BITS) | (number + 1) | (number ? 0 : MOVED);

	if (number >= stacktable_levels(area->stacks_limit) ||
		!tables_commit(area, (void *)(uintptr_t)((buckets & ROOM_BITS) + from), bytes))
		return false;
	if (!entry_swap(&area->stack_buckets, buckets, next))
		tables_share(area, bytes);
	return true;
}

static void finish_moving(struct tracer_area *area, uint64_t buckets)
{
	unsigned number = buckets & LEVEL_BITS;
	struct index_level from = level_of(buckets, number - 2), to = level_of(buckets, number - 1);

	move_all(&from, &to);
	entry_swap(&area->stack_buckets, buckets, buckets | MOVED);
}

/* Switches to a larger index. Returns false if there is no memory for it. */
static bool grow(struct tracer_area *area, uint64_t buckets)
{
	if (!(buckets & MOVED)) {
		/* Finish the last move: the thread that began it may have been terminated. */
		finish_moving(area, buckets);
		buckets |= MOVED;
	}
	if (!add_level(area, buckets))
		return false;
	buckets = __atomic_load_n(&area->stack_buckets, __ATOMIC_ACQUIRE);
	if (!(buckets & MOVED))
		finish_moving(area, buckets);
	return true;
}

/* Reserves room for one record. Returns its id, or 0 if there is no room. */
static uint32_t room(struct tracer_area *area, uint32_t depth)
{
	const struct tables_part part = {area->stacks, area->stacks_limit, STEP_BYTES};
	uint64_t bytes = sizeof(struct tracer_stack) + (uint64_t)depth * 8;
	uint64_t top = __atomic_load_n(&area->stacks_top, __ATOMIC_RELAXED);

	do {
		if (!tables_extend(area, &part, &area->stacks_committed, top + bytes))
			return 0;
	} while (!__atomic_compare_exchange_n(
		&area->stacks_top, &top, top + bytes, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	return (uint32_t)(top / 8);
}

/* Creates the record of a new stack. No other thread knows the record yet. Returns its id, or 0. */
static uint32_t make_record(struct tracer_area *area, const struct wanted *wanted)
{
	uint32_t id = room(area, wanted->depth);
	struct tracer_stack *stack = record(area, id);

	if (!id)
		return 0;
	*stack = (struct tracer_stack){
		.hash = wanted->hash, .depth = (uint16_t)wanted->depth, .born = wanted->now};
	for (uint32_t i = 0; i < wanted->depth; i++)
		stack->frames[i] = wanted->frames[i];
	count_change(area, stack);
	return id;
}

/*
 * Adds a stack that look_up() did not find. Returns its id. If another thread has meanwhile added
 * the same stack, returns the id of that record. Returns 0 if there is no room. Sets `*again` if
 * the index has changed and the caller must retry.
 */
static uint32_t add(struct tracer_area *area, const struct wanted *wanted, uint64_t buckets,
	uint64_t *entry, bool *again)
{
	struct index_level level = level_of(buckets, (unsigned)(buckets & LEVEL_BITS) - 1);
	uint32_t size = 1u << level.log2, count = __atomic_load_n(level.count, __ATOMIC_RELAXED),
		 id;
	uint64_t seen = 0;

	/* the index should have grown earlier, but there was no memory */
	if (count >= size / 8 * 7) {
		*again = grow(area, buckets);
		return 0;
	}
	id = make_record(area, wanted);
	if (!id)
		return 0;
	while (entry && !seen) {
		count = entry_add(&level, entry, (uint64_t)wanted->hash << 32 | id);
		if (count) {
			if (count >= size / 4 * 3 && !(count % 64))
				grow(area, buckets);
			return id;
		}
		entry = look_up(area, &level, wanted, &seen);
	}
	*again = entry != NULL && seen == FROZEN; /* the new record's memory is lost */
	return entry && !*again ? (uint32_t)seen : 0;
}

static __attribute__((noinline)) uint32_t add_slowly(
	struct tracer_area *area, const struct wanted *wanted)
{
	bool again = true;
	uint32_t id = 0;

	while (again) {
		uint64_t buckets = __atomic_load_n(&area->stack_buckets, __ATOMIC_ACQUIRE), *entry;
		unsigned number = buckets & LEVEL_BITS;
		struct index_level last, before;
		uint64_t seen = 0;

		if (!number) {
			if (!add_level(area, buckets))
				return 0;
			continue;
		}
		last = level_of(buckets, number - 1);
		entry = look_up(area, &last, wanted, &seen);
		if (!entry)
			return 0;
		if (seen == FROZEN)
			continue;
		if (seen)
			return (uint32_t)seen;
		if (!(buckets & MOVED)) {
			before = level_of(buckets, number - 2);
			id = look_up_old(area, &before, wanted);
			if (id)
				return id;
		}
		again = false;
		id = add(area, wanted, buckets, entry, &again);
	}
	return id;
}

uint32_t stacktable_intern(struct tracer_area *area, const uint64_t *frames, uint32_t depth)
{
	uint64_t buckets = __atomic_load_n(&area->stack_buckets, __ATOMIC_ACQUIRE), seen;
	unsigned number = buckets & LEVEL_BITS;
	const struct wanted wanted = {frames, depth, hash_frames(frames, depth),
		(uint32_t)__atomic_load_n(&area->unload_count, __ATOMIC_ACQUIRE)};

	if (number) {
		struct index_level last = level_of(buckets, number - 1);

		if (look_up(area, &last, &wanted, &seen) && seen && seen != FROZEN)
			return (uint32_t)seen;
	}
	return add_slowly(area, &wanted);
}
