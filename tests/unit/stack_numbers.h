/*
 * Stacks by number for tests of the tracer's tables, and what their ids stand for.
 */
#ifndef TESTS_UNIT_STACK_NUMBERS_H
#define TESTS_UNIT_STACK_NUMBERS_H

#include "tests/unit/fake_memory.h"

#include "snapshot/tracer/tables.h"

static inline struct tracer_stack *stack_of(uint32_t id)
{
	return (struct tracer_stack *)(uintptr_t)(area.stacks + (uint64_t)id * 8);
}

/* Stack number n: 1 to 64 frames, neighbours differ in few of them or in depth only. */
static inline uint32_t frames_of(uint32_t n, uint64_t frames[TRACER_DEPTH_MAX])
{
	uint32_t depth = 1 + n % TRACER_DEPTH_MAX;

	for (uint32_t i = 0; i < depth; i++)
		frames[i] = 0x140001000 + i * 16;
	frames[depth - 1] += (uint64_t)(n / TRACER_DEPTH_MAX) << 12;
	return depth;
}

static inline uint32_t intern(uint32_t n)
{
	uint64_t frames[TRACER_DEPTH_MAX];
	uint32_t depth = frames_of(n, frames);

	return stacktable_intern(&area, frames, depth);
}

/* What an id stands for, as shared.h says it is read from outside. */
static inline void assert_resolves(uint32_t id, uint32_t n)
{
	uint64_t frames[TRACER_DEPTH_MAX];
	uint32_t depth = frames_of(n, frames);
	const struct tracer_stack *stack = stack_of(id);

	assert_int_not_equal(id, 0);
	assert_true((uint64_t)id * 8 + sizeof(*stack) + depth * 8 <= area.stacks_top);
	assert_int_equal(stack->depth, depth);
	assert_memory_equal(stack->frames, frames, depth * 8);
}

static inline int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static inline void assert_all_differ(const uint32_t *ids, size_t count)
{
	uint32_t *sorted = malloc(count * sizeof(*sorted));

	assert_non_null(sorted);
	memcpy(sorted, ids, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), by_number);
	for (size_t i = 1; i < count; i++)
		assert_true(sorted[i - 1] < sorted[i]);
	free(sorted);
}

#endif
