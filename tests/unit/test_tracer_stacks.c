/*
 * The table of stacks that the tracer keeps inside a process: one id for each stack, whichever
 * thread comes with it; and both tables under many threads at once.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS, memfd_create; the registers of an interrupted thread */

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "snapshot/tracer/blocktable.h"
#include "snapshot/tracer/memory.h"
#include "snapshot/tracer/stacktable.h"
#include "tests/unit/fake_memory.h"

#define LIMIT ((uint64_t)64 << 20)

static struct fake_memory memory;
static uint64_t held_bytes; /* reserved and not given back */
static struct tracer_area area;

void *memory_reserve(uint64_t bytes)
{
	void *at = fake_reserve(&memory, bytes);

	if (at)
		__atomic_fetch_add(&held_bytes, bytes, __ATOMIC_RELAXED);
	return at;
}

bool memory_commit(void *at, uint64_t bytes)
{
	return fake_commit(&memory, at, bytes);
}

void memory_release(void *at, uint64_t bytes)
{
	__atomic_fetch_sub(&held_bytes, bytes, __ATOMIC_RELAXED);
	fake_give_back(at, bytes);
}

bool memory_wait(unsigned tries)
{
	(void)tries;
	sched_yield();
	return true;
}

static int set_up(void **state)
{
	(void)state;
	memset(&area, 0, sizeof(area));
	memory = (struct fake_memory){FAKE_ALWAYS, FAKE_ALWAYS, 0};
	held_bytes = 0;
	return 0;
}

/* Stack number n: 1 to 64 frames, neighbours differ in few of them or in depth only. */
static uint32_t frames_of(uint32_t n, uint64_t frames[TRACER_DEPTH_MAX])
{
	uint32_t depth = 1 + n % TRACER_DEPTH_MAX;

	for (uint32_t i = 0; i < depth; i++)
		frames[i] = 0x140001000 + i * 16;
	frames[depth - 1] += (uint64_t)(n / TRACER_DEPTH_MAX) << 12;
	return depth;
}

static uint32_t intern(uint32_t n)
{
	uint64_t frames[TRACER_DEPTH_MAX];
	uint32_t depth = frames_of(n, frames);

	return stacktable_intern(&area, frames, depth);
}

/* What an id stands for, as shared.h says it is read from outside. */
static void assert_resolves(uint32_t id, uint32_t n)
{
	uint64_t frames[TRACER_DEPTH_MAX];
	uint32_t depth = frames_of(n, frames);
	const struct tracer_stack *stack =
		(const struct tracer_stack *)(uintptr_t)(area.stacks + (uint64_t)id * 8);

	assert_int_not_equal(id, 0);
	assert_true((uint64_t)id * 8 + sizeof(*stack) + depth * 8 <= area.stacks_top);
	assert_int_equal(stack->depth, depth);
	assert_memory_equal(stack->frames, frames, depth * 8);
}

static int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void assert_all_differ(const uint32_t *ids, size_t count)
{
	uint32_t *sorted = malloc(count * sizeof(*sorted));

	assert_non_null(sorted);
	memcpy(sorted, ids, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), by_number);
	for (size_t i = 1; i < count; i++)
		assert_true(sorted[i - 1] < sorted[i]);
	free(sorted);
}

/* ---------------------------------------------------------------- one thread */

static void equal_stacks_have_one_id_and_others_another(void **state)
{
	static uint32_t ids[50000];
	const uint32_t count = sizeof(ids) / sizeof(*ids);
	uint64_t top;

	(void)state;
	assert_true(stacktable_init(&area, LIMIT));
	for (uint32_t n = 0; n < count; n++)
		ids[n] = intern(n);
	assert_all_differ(ids, count);
	top = area.stacks_top;
	for (uint32_t n = 0; n < count; n++) {
		assert_int_equal(intern(n), ids[n]);
		assert_resolves(ids[n], n);
	}
	assert_int_equal(area.stacks_top, top);
}

static void the_order_of_frames_and_each_bit_of_them_counts(void **state)
{
	uint64_t frames[] = {0x140001000, 0x140002000, 0x140003000};
	const uint64_t other[] = {0x140002000, 0x140001000, 0x140003000};
	uint32_t id, depth = 3;

	(void)state;
	assert_true(stacktable_init(&area, LIMIT));
	id = stacktable_intern(&area, frames, depth);
	assert_int_not_equal(stacktable_intern(&area, other, depth), id);
	for (unsigned i = 0; i < 3 * 64; i++) {
		frames[i / 64] ^= 1ull << i % 64;
		assert_int_not_equal(stacktable_intern(&area, frames, depth), id);
		frames[i / 64] ^= 1ull << i % 64;
	}
	assert_int_equal(stacktable_intern(&area, frames, depth), id);
	assert_int_not_equal(stacktable_intern(&area, frames, depth - 1), id);
}

/* Interns stacks until one finds no room; their count. */
static uint32_t fill_up(uint32_t *ids, uint32_t max)
{
	uint32_t count = 0;

	while (count < max && (ids[count] = intern(count)))
		count++;
	return count;
}

static void when_the_area_is_full_what_is_there_stays(void **state)
{
	static uint32_t ids[50000];
	const uint64_t limits[] = {FAKE_ALIGN, (1 << 20) + FAKE_ALIGN, 2 << 20};

	(void)state;
	for (size_t k = 0; k < sizeof(limits) / sizeof(*limits); k++) {
		uint32_t count, more = 0;

		memset(&area, 0, sizeof(area));
		assert_true(stacktable_init(&area, limits[k]));
		count = fill_up(ids, 50000);
		assert_in_range(count, limits[k] / (16 + 64 * 8), limits[k] / (16 + 8));
		for (uint32_t n = count; n < count + 1000; n++)
			more += intern(n) != 0; /* short ones may still find room */
		assert_true(more < 64);
		assert_true(area.stacks_top <= area.stacks_limit);
		assert_true(area.stacks_committed <= area.stacks_limit);
		for (uint32_t n = 0; n < count; n++) {
			assert_int_equal(intern(n), ids[n]);
			assert_resolves(ids[n], n);
		}
	}
}

static void without_memory_a_new_stack_has_no_id_until_there_is_some(void **state)
{
	static uint32_t ids[50000];
	uint32_t count;
	uint64_t top;

	(void)state;
	assert_true(stacktable_init(&area, LIMIT));
	memory.commits_left = 0;
	assert_int_equal(intern(0), 0);
	memory.commits_left = 2;
	count = fill_up(ids, 50000);
	assert_in_range(count, (2 << 20) / (16 + 64 * 8), 49999);
	top = area.stacks_top;
	assert_int_equal(intern(count), 0);
	assert_int_equal(area.stacks_top, top);
	memory.commits_left = FAKE_ALWAYS;
	assert_resolves(intern(count), count);
	for (uint32_t n = 0; n < count; n++) {
		assert_int_equal(intern(n), ids[n]);
		assert_resolves(ids[n], n);
	}
}

static void a_table_that_cannot_be_made_holds_no_memory(void **state)
{
	(void)state;
	for (int reserves = 0; reserves < 2; reserves++) {
		memory.reserves_left = reserves;
		assert_false(stacktable_init(&area, LIMIT));
		assert_int_equal(held_bytes, 0);
	}
	memory.reserves_left = FAKE_ALWAYS;
	memory.commits_left = 0;
	assert_false(stacktable_init(&area, LIMIT));
	assert_int_equal(held_bytes, 0);
	assert_int_equal(area.stacks, 0);
}

/* ---------------------------------------------------------------- between any two instructions */

#define TRAP_FLAG 0x100
#define BUCKETS_BYTES ((uint64_t)1 << 20)
#define PAGE_BYTES 4096

static volatile uint64_t steps_left; /* until the other stack comes; 0: none will */
static uint64_t other_frame;
static uint32_t other_id;

/* With the trap flag set the processor stops after each instruction. */
static void on_step(int signal, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)signal;
	(void)info;
	registers[REG_EFL] &= ~(greg_t)TRAP_FLAG;
	if (!steps_left)
		return;
	registers[REG_EFL] |= TRAP_FLAG;
	if (!--steps_left)
		other_id = stacktable_intern(&area, &other_frame, 1);
}

/* A table whose buckets are all in one page, which is there many times: so stacks meet in them. */
static void init_crowded(void)
{
	int page = memfd_create("buckets", 0);
	char *buckets;

	assert_true(page >= 0);
	assert_true(stacktable_init(&area, LIMIT));
	assert_int_equal(ftruncate(page, PAGE_BYTES), 0);
	buckets = (char *)(uintptr_t)area.stack_buckets;
	for (uint64_t at = 0; at < BUCKETS_BYTES; at += PAGE_BYTES) {
		assert_true(mmap(buckets + at, PAGE_BYTES, PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_FIXED, page, 0) != MAP_FAILED);
	}
	close(page);
}

static void clear_crowded(void)
{
	memset((void *)(uintptr_t)area.stack_buckets, 0, PAGE_BYTES);
	memset((void *)(uintptr_t)area.stacks, 0, area.stacks_committed ? area.stacks_top : 0);
	area.stacks_top = 8;
}

/* A stack of one frame, other than frame, that gets into the same bucket of a crowded table. */
static uint64_t find_neighbour(uint64_t frame)
{
	const uint32_t id = stacktable_intern(&area, &frame, 1);

	for (uint64_t other = frame + 16;; other += 16) {
		uint32_t other_one = stacktable_intern(&area, &other, 1);
		const struct tracer_stack *stack =
			(const struct tracer_stack *)(uintptr_t)(area.stacks + other_one * 8ull);

		assert_int_not_equal(other_one, 0);
		if (stack->next == id)
			return other;
	}
}

/* Interns frame; after some instructions of that, another thread would intern other_frame. False
 * when it was done before. */
static bool intern_disturbed(uint64_t frame, uint64_t steps)
{
	uint32_t id;
	bool was_disturbed;

	clear_crowded();
	other_id = 0;
	steps_left = steps;
	raise(SIGTRAP);
	id = stacktable_intern(&area, &frame, 1);
	was_disturbed = !steps_left;
	steps_left = 0;
	assert_int_not_equal(id, 0);
	assert_int_equal(stacktable_intern(&area, &frame, 1), id);
	if (was_disturbed)
		assert_int_equal(stacktable_intern(&area, &other_frame, 1), other_id);
	assert_true(other_frame != frame || !was_disturbed || other_id == id);
	return was_disturbed;
}

static void whoever_comes_between_keeps_his_stack(void **state)
{
	const struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
	const uint64_t frame = 0x140001000;
	struct sigaction before;

	(void)state;
	init_crowded();
	assert_int_equal(sigaction(SIGTRAP, &action, &before), 0);
	other_frame = find_neighbour(frame);
	for (unsigned is_same = 0; is_same < 2; is_same++) {
		uint64_t steps = 1;

		while (intern_disturbed(frame, steps))
			steps++;
		assert_true(steps > 100);
		other_frame = frame;
	}
	assert_int_equal(sigaction(SIGTRAP, &before, NULL), 0);
}

/* ---------------------------------------------------------------- many threads */

#define THREADS 4
#define STACKS 1000
#define BLOCKS 20000 /* of each thread */
#define ROUNDS 5

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
	const struct tracer_block block = {.addr = block_addr(worker, i),
		.size_bytes = size_bytes,
		.heap = worker->number,
		.stack = worker->ids[i % STACKS]};

	blocktable_put(&area, &block);
}

/* Takes a block that must be there as it was put. */
static void take_block(struct worker *worker, uint32_t i, uint64_t size_bytes)
{
	struct tracer_block block;

	worker->wrong += !blocktable_take(&area, block_addr(worker, i), &block) ||
			 block.size_bytes != size_bytes || block.heap != worker->number ||
			 block.stack != worker->ids[i % STACKS];
}

/* In the end each second block is there, with its number as size. */
static void *work(void *context)
{
	struct worker *worker = context;

	pthread_barrier_wait(worker->start);
	for (uint32_t n = 0; n < STACKS; n++)
		worker->ids[n] = intern(n);
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

static void threads_agree_on_ids_and_lose_no_block(void **state)
{
	struct worker *workers = calloc(THREADS, sizeof(*workers));
	pthread_barrier_t start;

	(void)state;
	assert_non_null(workers);
	for (unsigned round = 0; round < ROUNDS; round++) {
		memset(&area, 0, sizeof(area));
		assert_true(stacktable_init(&area, LIMIT));
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(equal_stacks_have_one_id_and_others_another, set_up),
		cmocka_unit_test_setup(the_order_of_frames_and_each_bit_of_them_counts, set_up),
		cmocka_unit_test_setup(when_the_area_is_full_what_is_there_stays, set_up),
		cmocka_unit_test_setup(
			without_memory_a_new_stack_has_no_id_until_there_is_some, set_up),
		cmocka_unit_test_setup(a_table_that_cannot_be_made_holds_no_memory, set_up),
		cmocka_unit_test_setup(whoever_comes_between_keeps_his_stack, set_up),
		cmocka_unit_test_setup(threads_agree_on_ids_and_lose_no_block, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
