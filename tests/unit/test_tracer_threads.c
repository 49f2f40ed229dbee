/*
 * The tracer's tables under many threads at once.
 */
#include "tests/unit/t.h"


#include <pthread.h>

#include "tests/unit/stack_numbers.h"

#include "snapshot/tracer/tables.h"

#define LIMIT ((uint64_t)64 << 20)

static int set_up(void **state)
{
	(void)state;
	fake_begin(LIMIT);
	memory.waits_max = UINT32_MAX; /* nobody dies here, however slow */
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	assert_int_equal(area.committed_bytes, fake_committed_bytes());
	fake_end();
	return 0;
}

static const struct tracer_module some_module = {.record_bytes = sizeof(some_module)};

#define THREADS 4
#define STACKS 10007 /* a prime number */
#define BLOCKS 20000 /* of each thread */
#define ROUNDS 3

struct worker {
	pthread_t thread;
	pthread_barrier_t *start;
	uint32_t number;
	uint32_t ids[STACKS];
	unsigned wrong;
};

static uint64_t block_addr(const struct worker *worker, uint32_t i)
{
	return 0x10000 + ((uint64_t)i * THREADS + worker->number) * 16;
}

static void put_block(struct worker *worker, uint32_t i, uint64_t size_bytes)
{
	const struct tracer_block block = tracer_block_make(
		block_addr(worker, i), worker->number, worker->ids[i % STACKS], size_bytes);

	blocktable_put(&area, &block);
}

/* Takes a block that must be there as it was put. */
static void take_block(struct worker *worker, uint32_t i, uint64_t size_bytes)
{
	struct tracer_block block;

	worker->wrong += !blocktable_take(&area, block_addr(worker, i), &block) ||
			 tracer_block_bytes(&block) != size_bytes ||
			 tracer_block_heap(&block) != worker->number ||
			 tracer_block_stack(&block) != worker->ids[i % STACKS];
}

/* In the end each second block is there, with its number as size. */
static void *work(void *context)
{
	struct worker *worker = context;

	pthread_barrier_wait(worker->start);
	for (uint32_t n = 0; n < STACKS; n++) /* each in another order */
		worker->ids[n * (2 * worker->number + 1) % STACKS] =
			intern(n * (2 * worker->number + 1) % STACKS);
	for (uint32_t i = 0; i < BLOCKS; i++) {
		worker->wrong += intern(i % STACKS) != worker->ids[i % STACKS];
		put_block(worker, i, 1);
		take_block(worker, i, 1);
		put_block(worker, i, i);
		if (i % 2)
			take_block(worker, i - 1, i - 1);
	}
	return NULL;
}

static uint64_t count_blocks(void)
{
	uint64_t count = 0;

	for (unsigned i = 0; i < TRACER_SHARDS; i++)
		count += area.shards[i].count;
	return count;
}

static void assert_round(struct worker *workers)
{
	assert_int_equal(count_blocks(), (uint64_t)THREADS * BLOCKS / 2);
	assert_int_equal(area.dropped_blocks, 0);
	assert_int_equal(area.committed_bytes, fake_committed_bytes());
	assert_all_differ(workers[0].ids, STACKS);
	for (uint32_t n = 0; n < STACKS; n++)
		assert_resolves(workers[0].ids[n], n);
	for (unsigned t = 0; t < THREADS; t++) {
		assert_memory_equal(workers[t].ids, workers[0].ids, sizeof(workers[t].ids));
		for (uint32_t i = 1; i < BLOCKS; i += 2)
			take_block(&workers[t], i, i);
		assert_int_equal(workers[t].wrong, 0);
	}
	assert_int_equal(count_blocks(), 0);
}

#undef TEST_AROUND
#define TEST_AROUND set_up, tear_down

TEST(threads_agree_on_ids_and_lose_no_block)
{
	struct worker *workers = calloc(THREADS, sizeof(*workers));
	pthread_barrier_t start;

	assert_non_null(workers);
	for (unsigned round = 0; round < ROUNDS; round++) {
		fake_end();
		set_up(state);
		assert_int_equal(pthread_barrier_init(&start, NULL, THREADS), 0);
		for (unsigned t = 0; t < THREADS; t++) {
			workers[t] = (struct worker){.start = &start, .number = t};
			assert_int_equal(
				pthread_create(&workers[t].thread, NULL, work, &workers[t]), 0);
		}
		for (unsigned t = 0; t < THREADS; t++)
			assert_int_equal(pthread_join(workers[t].thread, NULL), 0);
		pthread_barrier_destroy(&start);
		assert_round(workers);
	}
	free(workers);
}

#define UNLOADS 300

/* No stack is handed out that is older than an unload that had happened and that it goes through. */
static void *intern_while_unloading(void *context)
{
	struct worker *worker = context;

	pthread_barrier_wait(worker->start);
	for (uint32_t n = 0; __atomic_load_n(&area.unload_count, __ATOMIC_ACQUIRE) < UNLOADS; n++) {
		uint64_t count = __atomic_load_n(&area.unload_count, __ATOMIC_ACQUIRE);
		uint32_t id = intern(n % 100);

		worker->wrong +=
			!id || __atomic_load_n(&stack_of(id)->born, __ATOMIC_RELAXED) < count;
	}
	return NULL;
}

TEST(while_threads_come_modules_go)
{
	struct worker *workers = calloc(THREADS, sizeof(*workers));
	pthread_barrier_t start;

	assert_non_null(workers);
	assert_int_equal(pthread_barrier_init(&start, NULL, THREADS + 1), 0);
	for (unsigned t = 0; t < THREADS; t++) {
		workers[t] = (struct worker){.start = &start, .number = t};
		assert_int_equal(pthread_create(&workers[t].thread, NULL, intern_while_unloading,
					 &workers[t]),
			0);
	}
	pthread_barrier_wait(&start);
	for (uint32_t i = 0; i < UNLOADS; i++) { /* each goes through some of the stacks */
		uint64_t base = 0x140001000 + i % 70 * 16;

		assert_true(unloads_add(&area, base, base + 16, &some_module));
		sched_yield();
	}
	for (unsigned t = 0; t < THREADS; t++) {
		assert_int_equal(pthread_join(workers[t].thread, NULL), 0);
		assert_int_equal(workers[t].wrong, 0);
	}
	pthread_barrier_destroy(&start);
	free(workers);
}
