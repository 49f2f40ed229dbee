/* The tracer's table of stacks inside a process. Each stack must have one id for all threads, even
 * while modules are loaded and unloaded. */
#include "tests/unit/t.h"

#include <pthread.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/unit/fake_memory.h"

#include "snapshot/tracer/tables.h"

/* Makes stacks from numbers, and resolves their ids. */

static struct tracer_stack *stack_of(uint32_t id)
{
	return (struct tracer_stack *)(uintptr_t)(area.stacks + (uint64_t)id * 8);
}

/* Makes stack n of 1 to 64 frames. Stacks with adjacent numbers differ in a few frames, or only in
 * depth. */
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

/* Resolves an id as shared.h defines it for readers outside the process. */
static void assert_resolves(uint32_t id, uint32_t n)
{
	uint64_t frames[TRACER_DEPTH_MAX];
	uint32_t depth = frames_of(n, frames);
	const struct tracer_stack *stack = stack_of(id);

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

#undef TEST_AROUND
#define TEST_AROUND set_up, tear_down

TEST(equal_stacks_have_one_id_and_others_another)
{
	static uint32_t ids[50000];
	const uint32_t count = sizeof(ids) / sizeof(*ids);
	uint64_t top;

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

TEST(order_of_frames_and_each_bit_of_them_counts)
{
	uint64_t frames[] = {0x140001000, 0x140002000, 0x140003000};
	const uint64_t other[] = {0x140002000, 0x140001000, 0x140003000};
	uint32_t id, depth = 3;

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

/* Interns stacks until one does not fit; returns how many did. */
static uint32_t fill_up(uint32_t *ids, uint32_t max)
{
	uint32_t count = 0;

	while (count < max && (ids[count] = intern(count)))
		count++;
	return count;
}

TEST(when_area_is_full_what_is_there_stays)
{
	static uint32_t ids[50000];
	const uint64_t limits[] = {FAKE_ALIGN, (1 << 20) + FAKE_ALIGN, 2 << 20};

	for (size_t k = 0; k < sizeof(limits) / sizeof(*limits); k++) {
		uint32_t count, more = 0;

		fake_end();
		fake_begin(LIMIT);
		area.stacks_limit = limits[k];
		count = fill_up(ids, 50000);
		assert_in_range(count, limits[k] / (16 + 64 * 8), limits[k] / (16 + 8));
		for (uint32_t n = count; n < count + 1000; n++)
			more += intern(n) != 0; /* shorter stacks may still fit */
		assert_true(more < 64);
		assert_true(area.stacks_top <= area.stacks_limit);
		assert_true(area.stacks_committed <= area.stacks_limit);
		assert_int_equal(area.committed_bytes, fake_committed_bytes());
		for (uint32_t n = 0; n < count; n++) {
			assert_int_equal(intern(n), ids[n]);
			assert_resolves(ids[n], n);
		}
	}
}

TEST(without_memory_new_stack_has_no_id_until_there_is_some)
{
	static uint32_t ids[50000];
	uint32_t count;
	uint64_t top;

	memory.commits_left = 0;
	assert_int_equal(intern(0), 0);
	memory.commits_left = 3; /* enough for the first index and two steps */
	count = fill_up(ids, 50000);
	assert_in_range(count, 2 * 65536 / (16 + 64 * 8), 49999);
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

TEST(stacks_of_any_number_are_found_at_once)
{
	enum { COUNT = 200000 };
	uint64_t frame = 0x140001000;
	uint32_t first = stacktable_intern(&area, &frame, 1), id = 0;
	uint64_t index_bytes;

	for (uint32_t i = 1; i < COUNT; i++) {
		frame += 16;
		id = stacktable_intern(&area, &frame, 1);
		assert_int_equal(id, first + i * 3); /* 24 bytes each, without gaps */
	}
	assert_int_equal(stacktable_intern(&area, &frame, 1), id);
	index_bytes = area.committed_bytes - area.stacks_committed;
	assert_in_range(index_bytes, COUNT * 8 * 2, COUNT * 8 * 11);
}

TEST(no_hash_is_much_more_frequent_than_others)
{
	enum { COUNT = 50000, PARTS = 256 };
	static uint32_t counts[4][PARTS];

	for (uint32_t n = 0; n < COUNT; n++) {
		uint32_t hash = stack_of(intern(n))->hash;

		for (unsigned i = 0; i < 4; i++)
			counts[i][hash >> 8 * i & 255]++;
	}
	/* 195.3 are expected, with a deviation of 14. Six times that deviation never occurs in 1024
	 * numbers. */
	for (unsigned i = 0; i < 4 * PARTS; i++)
		assert_in_range(counts[i / PARTS][i % PARTS], 195 - 84, 196 + 84);
}

/* ---------------------------------------------------------------- at every instruction */

#define TRAP_FLAG 0x100

/* Sanitizers turn one instruction into many. With sanitizers only some of the instructions are
 * tested. */
#ifdef __SANITIZE_ADDRESS__
#define STRIDE 29
#else
#define STRIDE 1
#endif
static volatile uint64_t steps_left; /* steps until the other stack is interned; 0: never */
static uint64_t other_frame;
static uint32_t other_id;
static struct fake_copy copy; /* copy of the stacks at that moment */

/* While the trap flag is set, the processor stops after each instruction. */
static void on_step(int signal, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)signal;
	(void)info;
	registers[REG_EFL] &= ~(greg_t)TRAP_FLAG;
	if (!steps_left)
		return;
	registers[REG_EFL] |= TRAP_FLAG;
	if (--steps_left)
		return;
	other_id = stacktable_intern(&area, &other_frame, 1);
	fake_copy_take(&copy, TRACER_SHARDS);
}

static uint64_t *first_index(void)
{
	return (uint64_t *)(uintptr_t)((area.stack_buckets & ~(uint64_t)0xffff) +
				       stacktable_index_offset(0));
}

/* Empties the table, faster than setting it up again. */
static void clear(void)
{
	if (!area.stacks_committed)
		return;
	memset(memory.base, 0, stacktable_index_offset(1)); /* clears the counts too */
	memset((void *)(uintptr_t)area.stacks, 0, area.stacks_top);
	area.stacks_top = 8;
}

/* Returns the entry of a one-frame stack in an empty index. */
static unsigned home_of(uint64_t frame)
{
	unsigned at = 0;

	clear();
	assert_int_not_equal(stacktable_intern(&area, &frame, 1), 0);
	while (!first_index()[at])
		at++;
	return at;
}

/* Returns another one-frame stack whose first entry is the same. */
static uint64_t find_neighbour(uint64_t frame)
{
	unsigned home = home_of(frame);

	do
		frame += 16;
	while (home_of(frame) != home);
	return frame;
}

/* Interns `frame`. After `steps` instructions, a simulated second thread interns other_frame.
 * Returns false if the function ended earlier. */
static bool intern_disturbed(uint64_t frame, uint64_t steps)
{
	uint32_t id;
	bool was_disturbed;

	clear();
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
	assert_true(!was_disturbed || fake_copy_is_right(&copy, TRACER_SHARDS));
	return was_disturbed;
}

/* Interns a deep stack that lies in two pieces, and copies it after `steps` instructions. Returns
 * false if the function ended earlier. */
static bool intern_in_two_pieces(uint64_t steps)
{
	uint64_t frames[TRACER_DEPTH_MAX];
	bool was_disturbed;

	for (uint32_t i = 0; i < TRACER_DEPTH_MAX; i++)
		frames[i] = 0x140001000 + i;
	clear();
	area.stacks_top = TRACER_PIECE - 64;
	steps_left = steps;
	raise(SIGTRAP);
	stacktable_intern(&area, frames, TRACER_DEPTH_MAX);
	was_disturbed = !steps_left;
	steps_left = 0;
	assert_true(!was_disturbed || fake_copy_is_right(&copy, TRACER_SHARDS));
	return was_disturbed;
}

TEST(whoever_reads_half_stack_knows_it_has_changed)
{
	const struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
	struct sigaction before;

	assert_int_equal(sigaction(SIGTRAP, &action, &before), 0);
	stacktable_intern(&area, &other_frame, 1); /* commits the memory */
	for (uint64_t steps = 1; intern_in_two_pieces(steps);)
		steps += STRIDE;
	assert_int_equal(sigaction(SIGTRAP, &before, NULL), 0);
}

TEST(whoever_comes_between_keeps_his_stack)
{
	const struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
	const uint64_t frame = 0x140001000;
	struct sigaction before;

	assert_int_equal(sigaction(SIGTRAP, &action, &before), 0);
	other_frame = find_neighbour(frame);
	for (unsigned is_same = 0; is_same < 2; is_same++) {
		uint64_t steps = 1;

		while (intern_disturbed(frame, steps))
			steps += STRIDE;
		assert_true(steps > 100);
		other_frame = frame;
	}
	assert_int_equal(sigaction(SIGTRAP, &before, NULL), 0);
}

#define GROWS_AT (512 / 4 * 3) /* number of stacks in the first index at which it grows */

/* Interns the stack that makes the index grow. After `steps` instructions another thread interns a
 * stack. */
static bool growth_disturbed(uint64_t steps)
{
	uint32_t ids[GROWS_AT], id, n = 0;
	bool was_disturbed;

	fake_end();
	fake_begin((uint64_t)1 << 20);
	for (; n < GROWS_AT - 1; n++)
		ids[n] = intern(n);
	other_frame = 0x150000000 + steps * 16;
	steps_left = steps;
	raise(SIGTRAP);
	ids[n] = intern(n);
	was_disturbed = !steps_left;
	steps_left = 0;
	assert_int_equal(area.stack_buckets & 0xff, 2);
	for (n = 0; n < GROWS_AT; n++)
		assert_int_equal(intern(n), ids[n]);
	id = stacktable_intern(&area, &other_frame, 1);
	if (was_disturbed)
		assert_int_equal(id, other_id);
	return was_disturbed;
}

TEST(whoever_comes_while_index_grows_keeps_his_stack)
{
	const struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
	struct sigaction before;
	uint64_t steps = 1;

	assert_int_equal(sigaction(SIGTRAP, &action, &before), 0);
	while (growth_disturbed(steps))
		steps += STRIDE * (steps < 300 ? 23 : 2003);
	assert_true(steps > 5000);
	assert_int_equal(sigaction(SIGTRAP, &before, NULL), 0);
}

/* A thread was terminated while it made the index grow. Other threads continue, and grow the index
 * later. */
TEST(index_that_nobody_finishes_is_still_right)
{
	static uint32_t ids[7000];

	for (uint32_t n = 0; n < GROWS_AT + 50; n++)
		ids[n] = intern(n);
	assert_int_equal(area.stack_buckets & 0x1ff, 0x102);
	/* The state in the middle of moving: the new index is still empty. */
	memset((char *)first_index() + STACKTABLE_FIRST_BYTES, 0, 4 * STACKTABLE_FIRST_BYTES);
	((uint32_t *)(uintptr_t)memory.base)[1] = 0;
	/* Unfreeze the old index's empty entries too: a frozen entry sends later stacks to the new
	 * index. */
	for (unsigned i = 0; i < 512; i++) {
		if (first_index()[i] == UINT64_MAX)
			first_index()[i] = 0;
	}
	area.stack_buckets -= 0x100;
	for (uint32_t n = 0; n < GROWS_AT; n++)
		assert_int_equal(intern(n), ids[n]);
	for (uint32_t n = GROWS_AT; n < 7000; n++)
		ids[n] = intern(n);
	assert_int_equal(area.stack_buckets & 0x1ff, 0x104);
	assert_all_differ(ids, 7000);
	for (uint32_t n = 0; n < 7000; n++)
		assert_int_equal(intern(n), ids[n]);
}

/* ---------------------------------------------------------------- modules loaded and unloaded */

static const struct tracer_module some_module = {.record_bytes = sizeof(some_module)};

TEST(stack_through_unloaded_module_is_another_one)
{
	uint64_t in[] = {0x140001000, 0x150000500, 0x140003000};
	uint64_t out[] = {0x140001000, 0x150001000, 0x140003000};
	uint32_t id_in = stacktable_intern(&area, in, 3);
	uint32_t id_out = stacktable_intern(&area, out, 3), other;

	assert_true(unloads_add(&area, 0x160000000, 0x160001000, &some_module));
	fake_copy_take(&copy, TRACER_SHARDS);
	assert_int_equal(stacktable_intern(&area, in, 3), id_in);
	assert_true(fake_copy_is_right(&copy, TRACER_SHARDS));
	assert_int_equal(stack_of(id_in)->born, 1);
	/* The stack has not been seen since the unload. */
	assert_int_equal(stack_of(id_out)->born, 0);
	assert_true(unloads_add(&area, 0x150000000, 0x150001000, &some_module));
	assert_int_equal(stacktable_intern(&area, out, 3), id_out);
	assert_int_equal(stack_of(id_out)->born, 2);
	fake_copy_take(&copy, TRACER_SHARDS);
	other = stacktable_intern(&area, in, 3);
	assert_true(fake_copy_is_right(&copy, TRACER_SHARDS));
	assert_int_not_equal(other, id_in);
	assert_int_equal(stack_of(other)->born, 2);
	assert_int_equal(stack_of(id_in)->born, 1); /* so the frame's module is unload 1 */
	assert_int_equal(stack_of(id_in)->stale, 1);
	assert_int_equal(stacktable_intern(&area, in, 3), other);
}

TEST(after_lost_unload_no_stack_of_before_is_handed_out)
{
	uint64_t in = 0x150000500, out = 0x170000000;
	uint32_t id_in = stacktable_intern(&area, &in, 1);
	uint32_t id_out = stacktable_intern(&area, &out, 1), other;

	area.unload_limit = 0;
	assert_false(unloads_add(&area, 0x150000000, 0x150001000, &some_module));
	other = stacktable_intern(&area, &in, 1);
	assert_int_not_equal(other, id_in);
	assert_int_equal(stacktable_intern(&area, &in, 1), other);
	assert_int_equal(stacktable_intern(&area, &out, 1), id_out);
	assert_true(tracer_unload_is_lost(&area, stack_of(id_in)->born, in));
	assert_false(tracer_unload_is_lost(&area, stack_of(other)->born, in));
	assert_false(tracer_unload_is_lost(&area, 0, out));
}

/* ---------------------------------------------------------------- threads */

#define THREADS 4
#define STACKS 10007 /* a prime number */
#define BLOCKS 20000 /* number of blocks of each thread */
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

static void write_block(struct worker *worker, uint32_t i, uint64_t size_bytes)
{
	const struct tracer_block block = tracer_block_make(
		block_addr(worker, i), worker->number, worker->ids[i % STACKS], size_bytes);

	blocktable_add(&area, &block);
}

static void take_block(struct worker *worker, uint32_t i, uint64_t size_bytes)
{
	struct tracer_block block;

	worker->wrong += !blocktable_remove(&area, block_addr(worker, i), &block) ||
			 tracer_block_bytes(&block) != size_bytes ||
			 tracer_block_heap(&block) != worker->number ||
			 tracer_block_stack(&block) != worker->ids[i % STACKS];
}

/* In the end every second block is present. Its size is its number. */
static void *work(void *context)
{
	struct worker *worker = context;

	pthread_barrier_wait(worker->start);
	for (uint32_t n = 0; n < STACKS; n++) /* each thread uses another order */
		worker->ids[n * (2 * worker->number + 1) % STACKS] =
			intern(n * (2 * worker->number + 1) % STACKS);
	for (uint32_t i = 0; i < BLOCKS; i++) {
		worker->wrong += intern(i % STACKS) != worker->ids[i % STACKS];
		write_block(worker, i, 1);
		take_block(worker, i, 1);
		write_block(worker, i, i);
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

struct reader {
	pthread_t thread;
	unsigned number;
	bool is_last;
	struct fake_copy copy;
};

static void *read_table(void *context)
{
	struct reader *reader = context;

	while (!__atomic_load_n(&reader->is_last, __ATOMIC_RELAXED))
		fake_copy_take(&reader->copy, reader->number);
	return NULL;
}

static void start_readers(struct reader *readers)
{
	for (unsigned i = 0; i < 2; i++) {
		readers[i].number = i ? TRACER_SHARDS : TRACER_SHARDS - 1;
		readers[i].is_last = false;
		assert_int_equal(
			pthread_create(&readers[i].thread, NULL, read_table, &readers[i]), 0);
	}
}

static void end_reader(struct reader *reader)
{
	__atomic_store_n(&reader->is_last, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(reader->thread, NULL), 0);
}

static void start_threads(struct worker *workers, pthread_barrier_t *start, void *(*run)(void *))
{
	for (unsigned t = 0; t < THREADS; t++) {
		workers[t] = (struct worker){.start = start, .number = t};
		assert_int_equal(pthread_create(&workers[t].thread, NULL, run, &workers[t]), 0);
	}
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

TEST(threads_agree_on_ids_and_lose_no_block)
{
	struct worker *workers = calloc(THREADS, sizeof(*workers));
	struct reader *readers = calloc(2, sizeof(*readers));
	pthread_barrier_t start;

	assert_non_null(workers);
	assert_non_null(readers);
	for (unsigned round = 0; round < ROUNDS; round++) {
		fake_end();
		set_up(state);
		/* A slow machine must not make threads give up waiting for locks. */
		memory.waits_max = UINT32_MAX;
		assert_int_equal(pthread_barrier_init(&start, NULL, THREADS), 0);
		start_readers(readers);
		start_threads(workers, &start, work);
		while (count_blocks() < BLOCKS)
			sched_yield();
		for (unsigned i = 0; i < 2; i++)
			end_reader(&readers[i]);
		for (unsigned t = 0; t < THREADS; t++)
			assert_int_equal(pthread_join(workers[t].thread, NULL), 0);
		pthread_barrier_destroy(&start);
		for (unsigned i = 0; i < 2; i++)
			assert_true(fake_copy_is_right(&readers[i].copy, readers[i].number));
		assert_round(workers);
	}
	free(workers);
	free(readers);
}

#define UNLOADS 300

/* A stack that passes through an unloaded module must never get an id from before the unload. */
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
	memory.waits_max = UINT32_MAX;
	start_threads(workers, &start, intern_while_unloading);
	pthread_barrier_wait(&start);
	for (uint32_t i = 0; i < UNLOADS; i++) { /* each unload affects some of the stacks */
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
