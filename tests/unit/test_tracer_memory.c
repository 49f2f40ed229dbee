/*
 * What the tracer's tables have in common: memory up to a limit, and waiting for one another.
 */
#include "tests/unit/t.h"


#include <pthread.h>

#include "tests/unit/fake_memory.h"

#include "snapshot/tracer/tables.h"

#define LIMIT ((uint64_t)64 << 20)

static int set_up(void **state)
{
	(void)state;
	fake_begin(LIMIT);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fake_end();
	return 0;
}

/* One thread asks for more than there ever is, over and over. */
static void *ask_for_too_much(void *stop)
{
	uint64_t granted = 0;

	while (!__atomic_load_n((bool *)stop, __ATOMIC_RELAXED))
		granted += tables_commit(&area, memory.base, area.limit_bytes * 2);
	return (void *)(uintptr_t)granted;
}

#undef TEST_AROUND
#define TEST_AROUND set_up, tear_down

TEST(a_request_that_is_refused_is_in_nobodys_way)
{
	bool stop = false;
	uint64_t refused = 0;
	void *granted;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, ask_for_too_much, &stop), 0);
	for (unsigned i = 0; i < 20000; i++) {
		if (tables_commit(&area, memory.base, TRACER_PAGE))
			tables_share(&area, TRACER_PAGE);
		else
			refused++;
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, &granted), 0);
	assert_null(granted);
	assert_int_equal(refused, 0);
	assert_int_equal(area.committed_bytes, 0);
	area.committed_bytes = area.limit_bytes - TRACER_PAGE;
	assert_true(tables_commit(&area, memory.base, TRACER_PAGE)); /* to the last byte */
	assert_false(tables_commit(&area, memory.base, TRACER_PAGE));
	assert_false(tables_commit(&area, memory.base, UINT64_MAX)); /* nor does the sum wrap */
	assert_int_equal(area.committed_bytes, area.limit_bytes);
}

#define MS ((uint64_t)10000)

/* How many sleeps of that length are waited. */
static uint64_t sleeps_of(uint64_t length)
{
	struct memory_patience patience = {0};
	uint64_t now = 1000 * MS, count = 1;

	while (memory_is_patient(&patience, now, MEMORY_PATIENCE) && count < UINT32_MAX) {
		now += length;
		count++;
	}
	return count;
}

TEST(waiting_ends_by_time_however_long_a_sleep_takes)
{
	struct memory_patience patience = {0};

	assert_in_range(sleeps_of(1 * MS), 9990, 10010);
	assert_in_range(sleeps_of(2 * MS), 4990, 5010);
	assert_in_range(sleeps_of(156250), 635, 645); /* 15.625 ms, the usual clock */
	assert_in_range(sleeps_of(0), 1000, 1000000); /* a clock that stands still */
	assert_in_range(sleeps_of(0 - 5 * MS), 1000, 1000000); /* or is set back */
	/* The process stood still for an hour: its holder of the lock did, too. */
	assert_true(memory_is_patient(&patience, 5 * MS, MEMORY_PATIENCE));
	assert_true(memory_is_patient(&patience, 3600000 * MS, MEMORY_PATIENCE));
	assert_true(memory_is_patient(&patience, 3600015 * MS, MEMORY_PATIENCE));
}
