#include "snapshot/tracer/stacktable.h"

#include "snapshot/tracer/tables.h"

#define COMMIT_BYTES ((uint64_t)1 << 20)

static struct tracer_stack *record(const struct tracer_area *area, uint32_t id)
{
	return (struct tracer_stack *)(uintptr_t)(area->stacks + (uint64_t)id * 8);
}

static uint64_t hash_frames(const uint64_t *frames, uint32_t depth)
{
	uint64_t hash = depth;

	for (uint32_t i = 0; i < depth; i++) {
		hash ^= frames[i];
		hash *= 0x9e3779b97f4a7c15u;
		hash ^= hash >> 32;
	}
	return hash;
}

/* Looks for the stack in the records from id up to, not including, end. */
static uint32_t chain_find(const struct tracer_area *area, uint32_t id, uint32_t end, uint32_t hash,
	const uint64_t *frames, uint32_t depth)
{
	for (; id != end; id = record(area, id)->next) {
		const struct tracer_stack *stack = record(area, id);
		uint32_t i = 0;

		if (stack->hash != hash || stack->depth != depth)
			continue;
		while (i < depth && stack->frames[i] == frames[i])
			i++;
		if (i == depth)
			return id;
	}
	return 0;
}

static bool commit_up_to(struct tracer_area *area, uint64_t end)
{
	uint64_t committed = __atomic_load_n(&area->stacks_committed, __ATOMIC_ACQUIRE);

	while (committed < end) {
		uint64_t more = (end + COMMIT_BYTES - 1) & ~(COMMIT_BYTES - 1);

		if (more > area->stacks_limit)
			more = area->stacks_limit;
		if (!tables_commit(
			    area, (void *)(uintptr_t)(area->stacks + committed), more - committed))
			return false;
		__atomic_compare_exchange_n(&area->stacks_committed, &committed, more, false,
			__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
		committed = __atomic_load_n(&area->stacks_committed, __ATOMIC_ACQUIRE);
	}
	return true;
}

/* Room for one record, as its id; 0 when there is none. */
static uint32_t room(struct tracer_area *area, uint32_t depth)
{
	uint64_t bytes = sizeof(struct tracer_stack) + (uint64_t)depth * 8;
	uint64_t top = __atomic_load_n(&area->stacks_top, __ATOMIC_RELAXED);

	do {
		if (bytes > area->stacks_limit - top || !commit_up_to(area, top + bytes))
			return 0;
	} while (!__atomic_compare_exchange_n(
		&area->stacks_top, &top, top + bytes, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	return (uint32_t)(top / 8);
}

uint32_t stacktable_intern(struct tracer_area *area, const uint64_t *frames, uint32_t depth)
{
	uint64_t hash = hash_frames(frames, depth);
	uint32_t short_hash = (uint32_t)hash;
	uint32_t *bucket = (uint32_t *)(uintptr_t)area->stack_buckets +
			   (hash >> (64 - STACKTABLE_BUCKETS_LOG2));
	uint32_t head = __atomic_load_n(bucket, __ATOMIC_ACQUIRE);
	uint32_t id = chain_find(area, head, 0, short_hash, frames, depth);
	struct tracer_stack *stack;
	uint32_t fresh;

	if (id)
		return id;
	fresh = room(area, depth);
	if (!fresh)
		return 0;
	stack = record(area, fresh);
	stack->hash = short_hash;
	stack->depth = (uint16_t)depth;
	stack->stale = 0;
	stack->born = (uint32_t)area->unload_count;
	for (uint32_t i = 0; i < depth; i++)
		stack->frames[i] = frames[i];
	stack->next = head;
	while (!__atomic_compare_exchange_n(
		bucket, &head, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		/* Others were faster: perhaps with this very stack. Then the room is lost. */
		id = chain_find(area, head, stack->next, short_hash, frames, depth);
		if (id)
			return id;
		stack->next = head;
	}
	return fresh;
}
