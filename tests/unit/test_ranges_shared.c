/*
 * The tracer's table of virtual memory between threads: each finds its own in it; and whoever looks
 * from outside can tell when it may be believed.
 */
#include "tests/unit/t.h"


#include <pthread.h>

#include "tests/unit/range_worker.h"

/* ---------------------------------------------------------------- threads */

#define THREADS 4

static void *work(void *worker)
{
	for (unsigned i = 0; i < 20000; i++)
		step(worker);
	return NULL;
}

#undef TEST_AROUND
#define TEST_AROUND set_up, tear_down

TEST(test_threads_in_rooms_of_their_own)
{
	static struct worker workers[THREADS];
	pthread_t threads[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){
			.model.first = BASE + i * (PAGES + 1) * PAGE, .seed = 99 + i};
		assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < THREADS; i++)
		assert_true(is_as_modelled(&area.ranges, &workers[i].model));
	assert_int_equal(area.dropped_ranges, 0);
}

/* ---------------------------------------------------------------- looked at from outside */

#define LOOKS 3000
#define STEPS_MAX 4000000

/* Bytes of each kind that are listed after so many changes. */
struct dump_sums {
	uint32_t pages[4];
};

static struct dump_sums *sums_after;
static bool is_over;

/* The next change makes it so: what the model says, and what is taken and not dropped. */
static void note_sums(struct worker *worker)
{
	struct dump_sums sums = {{0}};

	for (unsigned i = 0; i < PAGES; i++) {
		sums.pages[worker->model.pages[i].kind]++;
		sums.pages[worker->listed[i].kind]++;
	}
	sums_after[area.ranges.changing / 2 + 1] = sums;
}

static void *work_until_over(void *context)
{
	struct worker *worker = context;

	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED) &&
		area.ranges.changing / 2 + 8 < STEPS_MAX)
		step(worker);
	return NULL;
}

/* What a reader from outside copies at some instant: true when it may be believed. */
static bool look(struct tracer_range *copy, uint32_t *count, uint32_t *changes)
{
	*changes = __atomic_load_n(&area.ranges.changing, __ATOMIC_ACQUIRE);
	*count = __atomic_load_n(&area.ranges.node_count, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < *count; i++)
		copy[i] = ((const volatile struct tracer_range *)nodes_of(&area.ranges))[i];
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return *changes % 2 == 0 &&
	       *changes == __atomic_load_n(&area.ranges.changing, __ATOMIC_RELAXED);
}

static bool is_expected(const struct tracer_range *copy, uint32_t count, uint32_t changes)
{
	uint64_t pages[4] = {0};

	for (uint32_t i = 0; i < count; i++)
		pages[copy[i].kind & 3] += (copy[i].end - copy[i].start) / PAGE;
	for (unsigned kind = RANGE_RESERVED; kind <= RANGE_MAPPED; kind++) {
		if (pages[kind] != sums_after[changes / 2].pages[kind])
			return false;
	}
	return true;
}

TEST(test_an_observer_knows_when_to_believe)
{
	static struct worker worker;
	static struct tracer_range copy[4 * PAGES];
	unsigned believed = 0, wrong = 0;
	uint32_t count, changes;
	pthread_t thread;

	sums_after = calloc(STEPS_MAX, sizeof(*sums_after));
	assert_non_null(sums_after);
	worker = (struct worker){.model.first = BASE, .seed = 3, .expect = note_sums};
	is_over = false;
	assert_int_equal(pthread_create(&thread, NULL, work_until_over, &worker), 0);
	while (believed < LOOKS && area.ranges.changing / 2 + 8 < STEPS_MAX) {
		if (!look(copy, &count, &changes))
			continue;
		believed++;
		wrong += !is_expected(copy, count, changes);
	}
	__atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	free(sums_after);
	assert_int_equal(wrong, 0);
	assert_true(believed > 100);
}
