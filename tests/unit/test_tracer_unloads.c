#include "tests/unit/t.h"

#include <pthread.h>

#include "tests/unit/fake_memory.h"

#include "snapshot/tracer/tables.h"

#define MODULE_BYTES 300

/* Returns a module's record. The number determines the record's bytes; some records have odd
 * lengths. */
static const struct tracer_module *module_number(uint32_t number)
{
	static union {
		struct tracer_module module;
		unsigned char bytes[MODULE_BYTES];
	} record;

	for (uint32_t i = 0; i < MODULE_BYTES; i++)
		record.bytes[i] = (unsigned char)(number * 31 + i * 7 + (number >> 8) * i);
	record.module.record_bytes = sizeof(struct tracer_module) + number % 200;
	record.module.timestamp = number;
	return &record.module;
}

static bool add(uint64_t base, uint64_t bytes, uint32_t number)
{
	return unloads_add(&area, base, base + bytes, module_number(number));
}

static const struct tracer_unload *unload_at(uint64_t index)
{
	assert_true(index < tracer_unloads_kept(&area));
	return (const struct tracer_unload *)(uintptr_t)area.unloads + index;
}

static bool is_module(uint64_t offset, uint32_t number)
{
	const struct tracer_module *module = module_number(number);

	assert_int_equal(offset % 8, 0);
	assert_true(offset + module->record_bytes <= area.modules_top);
	return !memcmp(
		(const void *)(uintptr_t)(area.modules + offset), module, module->record_bytes);
}

static bool hits(uint64_t from, uint64_t frame)
{
	const uint64_t frames[] = {0x10, frame, 0x20};

	return unloads_hit(&area, from, frames, 3);
}

/* ---------------------------------------------------------------- with room */

#undef TEST_AROUND
#define TEST_AROUND set_up, tear_down

TEST(unloads_are_kept_in_order_with_their_modules)
{
	for (uint32_t i = 0; i < 3000; i++)
		assert_true(add(0x140000000 + i * 0x10000ull, 0x8000, i));
	assert_int_equal(area.unload_count, 3000);
	for (uint32_t i = 0; i < 3000; i++) {
		assert_int_equal(unload_at(i)->base, 0x140000000 + i * 0x10000ull);
		assert_int_equal(unload_at(i)->end, unload_at(i)->base + 0x8000);
		assert_true(is_module(unload_at(i)->module, i));
	}
	assert_int_equal(area.dropped_unloads, 0);
}

TEST(equal_modules_share_record_and_others_do_not)
{
	uint64_t top = 0;

	for (uint32_t i = 0; i < 5000; i++) {
		assert_true(add(0x140000000, 0x8000, i % 50));
		if (i == 49)
			top = area.modules_top;
	}
	assert_int_equal(area.modules_top, top);
	for (uint32_t i = 0; i < 5000; i++) {
		assert_true(is_module(unload_at(i)->module, i % 50));
		assert_int_equal(unload_at(i)->module, unload_at(i % 50)->module);
		assert_true(i % 50 == 0 || unload_at(i)->module != unload_at(i - 1)->module);
	}
}

TEST(frame_is_hit_by_unloads_from_number_on)
{
	assert_false(hits(0, 0x1000));
	assert_true(add(0x1000, 0x1000, 1));
	assert_true(add(0x5000, 0x1000, 2));
	assert_true(add(0x1000, 0x1000, 3));
	assert_true(hits(0, 0x1000));
	assert_true(hits(0, 0x1fff));
	assert_false(hits(0, 0x2000));
	assert_false(hits(0, 0xfff));
	assert_true(hits(2, 0x1000));
	assert_false(hits(3, 0x1000));
	assert_true(hits(1, 0x5000));
	assert_false(hits(2, 0x5000));
	assert_false(hits(1000, 0x1000));
}

/* ---------------------------------------------------------------- without room */

/* Asserts the number of stored and of lost unloads. */
static void assert_lost(uint64_t kept, uint64_t lost)
{
	assert_int_equal(tracer_unloads_kept(&area), kept);
	assert_int_equal(area.unload_count, kept + lost);
	assert_int_equal(area.dropped_unloads, lost);
	for (uint32_t i = 0; i < kept; i++) {
		assert_int_equal(unload_at(i)->base, 0x140000000 + i * 0x10000ull);
		assert_true(is_module(unload_at(i)->module, i % 10));
	}
	for (uint32_t born = 0; born <= kept + lost; born++) {
		bool may_be = born < kept + lost;

		assert_int_equal(hits(born, 0x990000500), may_be);
		assert_int_equal(tracer_unload_is_lost(&area, born, 0x990000500), may_be);
		assert_int_equal(hits(born, 0x900000000), may_be);
		assert_false(hits(born, 0x900000000 - 1));
		assert_false(hits(born, 0x990001000));
		assert_false(tracer_unload_is_lost(&area, born, 0x990001000));
		assert_int_equal(hits(born, 0x140000000), born == 0 && kept);
	}
}

static void lose_three(void)
{
	assert_false(add(0x950000000, 0x1000, 1));
	assert_false(add(0x990000000, 0x1000, 2));
	assert_false(add(0x900000000, 0x1000, 3));
}

TEST(when_table_is_full_unloads_are_lost_but_not_forgotten)
{
	area.unload_limit = 1000;
	for (uint32_t i = 0; i < 1000; i++)
		assert_true(add(0x140000000 + i * 0x10000ull, 0x8000, i % 10));
	assert_false(tracer_unload_is_lost(&area, 0, 0x950000000));
	lose_three();
	assert_lost(1000, 3);
}

TEST(without_memory_unloads_are_lost_from_then_on)
{
	uint64_t count = 0;

	memory.commits_left = 2; /* one commit for modules, one for unloads */
	while (tracer_unloads_kept(&area) == count && count < 16384 / 24)
		assert_true(add(0x140000000 + count * 0x10000, 0x8000, count % 10) && ++count);
	assert_int_equal(count, 16384 / 24);
	lose_three();
	memory.commits_left = FAKE_ALWAYS;
	assert_false(add(0x950000000, 0x1000, 1)); /* the numbers of later unloads would be wrong */
	assert_lost(count, 4);
}

TEST(without_any_memory_all_are_lost)
{
	memory.commits_left = 0;
	lose_three();
	assert_lost(0, 3);
}

TEST(module_without_room_is_reported_as_unknown)
{
	area.modules_limit = 4096;
	for (uint32_t i = 0; i < 1000; i++)
		assert_true(add(0x140000000 + i * 0x10000ull, 0x8000, i));
	assert_true(area.modules_top <= 4096);
	assert_true(is_module(unload_at(0)->module, 0));
	assert_int_equal(unload_at(999)->module, TRACER_NO_MODULE);
	assert_true(add(0x140000000, 0x8000, 0)); /* a known module */
	assert_int_equal(unload_at(1000)->module, unload_at(0)->module);
	assert_int_equal(area.dropped_unloads, 0);
}

TEST(lock_that_is_never_given_back_loses_unloads_only)
{
	uint32_t waited;

	for (uint32_t i = 0; i < 10; i++)
		assert_true(add(0x140000000 + i * 0x10000ull, 0x8000, i % 10));
	area.unload_lock = 1; /* a thread was terminated while it held the lock */
	assert_false(add(0x950000000, 0x1000, 1));
	waited = memory.waits;
	assert_in_range(waited, 1, 100000);
	assert_false(add(0x990000000, 0x1000, 2));
	assert_false(add(0x900000000, 0x1000, 3));
	assert_int_equal(memory.waits, waited); /* must not wait again */
	assert_lost(10, 3);
}

/* ---------------------------------------------------------------- threads */

#define THREADS 4
#define UNLOADS 2000 /* number of unloads of each thread */

static void *add_many(void *context)
{
	const uint64_t number = (uintptr_t)context;
	struct tracer_module module = {.record_bytes = sizeof(module)};
	uintptr_t wrong = 0;

	for (uint32_t i = 0; i < UNLOADS; i++) {
		uint64_t base = ((number + 1) << 32) + i * 0x1000ull;

		module.timestamp = i % 20;
		wrong += !unloads_add(&area, base, base + 0x1000, &module);
		wrong += !unloads_hit(&area, 0, &base, 1);
	}
	return (void *)wrong;
}

TEST(threads_lose_no_unload)
{
	pthread_t threads[THREADS];
	uint32_t seen[THREADS] = {0};

	memory.waits_max = UINT32_MAX;
	for (uintptr_t t = 0; t < THREADS; t++)
		assert_int_equal(pthread_create(&threads[t], NULL, add_many, (void *)t), 0);
	for (unsigned t = 0; t < THREADS; t++) {
		void *wrong;

		assert_int_equal(pthread_join(threads[t], &wrong), 0);
		assert_null(wrong);
	}
	assert_int_equal(area.unload_count, THREADS * UNLOADS);
	for (uint64_t i = 0; i < area.unload_count; i++) { /* each thread's unloads are in order */
		const struct tracer_unload *unload = unload_at(i);
		unsigned t = (unsigned)(unload->base >> 32) - 1;

		assert_int_equal(unload->base & UINT32_MAX, seen[t] * 0x1000ull);
		assert_int_equal(
			((const struct tracer_module *)(uintptr_t)(area.modules + unload->module))
				->timestamp,
			seen[t] % 20);
		seen[t]++;
	}
	assert_int_equal(area.modules_top, 20 * sizeof(struct tracer_module));
}
