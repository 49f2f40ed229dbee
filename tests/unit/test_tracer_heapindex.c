#include "tests/unit/t.h"

#include <pthread.h>

#include "tests/unit/fake_memory.h"

#include "snapshot/tracer/tables.h"

#define HEAPS (1u << TRACER_HEAPS_LOG2)
#define INDEX(tag) ((tag) & (HEAPS - 1))

static uint64_t seed;

static int set_up_patient(void **state)
{
	seed = 20240607;
	set_up(state);
	/* A slow machine must not make threads give up waiting for locks. */
	memory.waits_max = UINT32_MAX;
	return 0;
}

static void put(uint64_t addr, uint32_t heap)
{
	struct tracer_block block = tracer_block_make(addr, heap, 1, 32);

	blocktable_add(&area, &block);
}

static bool take(uint64_t addr)
{
	struct tracer_block block = {0};
	bool was_there = blocktable_remove(&area, addr, &block);

	assert_int_equal(tracer_block_addr(&block), was_there ? addr : 0);
	return was_there;
}

/* Counts the blocks that a reader outside the process would find. */
static uint32_t count_live(void)
{
	uint32_t count = 0;

	for (unsigned i = 0; i < TRACER_SHARDS; i++) {
		uint64_t entries = area.shards[i].pages * TRACER_PAGE / sizeof(struct tracer_block);
		const struct tracer_block *blocks =
			(const struct tracer_block *)(uintptr_t)area.shards[i].table;

		for (uint64_t k = 0; k < entries; k++)
			count += blocks[k].key && tracer_block_is_live(&area, &blocks[k]);
	}
	return count;
}

static void destroy(uint32_t heap)
{
	if (blocktable_forget_heap(&area, heap))
		blocktable_bury_heap(&area, heap);
}

/* ---------------------------------------------------------------- indexes */

#undef TEST_AROUND
#define TEST_AROUND set_up_patient, tear_down

TEST(each_heap_has_one_index_until_all_are_used)
{
	static bool is_used[HEAPS];
	unsigned none = 0;

	memset(is_used, 0, sizeof(is_used));
	for (unsigned i = 1; i <= HEAPS * 2; i++) {
		uint64_t heap = (uint64_t)i * 0x20000;
		uint32_t tag = heapindex_of(&area, heap);

		none += !tag;
		assert_int_equal(INDEX(tag), tag); /* first generation */
		assert_false(tag && is_used[tag]);
		is_used[tag] = true;
		assert_int_equal(tag, heapindex_of(&area, heap));
		assert_int_equal(tracer_heap_handle(&area, tag), tag ? heap : 0);
	}
	assert_in_range(none, HEAPS + 1, HEAPS + HEAPS / 8); /* few indexes remain unused */
}

TEST(what_cannot_be_heap_has_no_number)
{
	assert_int_equal(heapindex_of(&area, 0), 0);
	assert_int_equal(heapindex_of(&area, 0x150001), 0);
	for (unsigned i = 0; i < HEAPS; i++)
		assert_int_equal(area.heaps[i], 0);
}

/* ---------------------------------------------------------------- destroyed heaps */

TEST(destroyed_heap_takes_its_blocks_along_and_no_others)
{
	const uint64_t heap = 0x150000, other = 0x990000;
	uint32_t tag = heapindex_of(&area, heap), other_tag = heapindex_of(&area, other), next;

	for (uint64_t i = 1; i <= 5000; i++)
		put(i * 16, i % 3 ? tag : other_tag);
	destroy(tag);
	assert_int_equal(count_live(), 5000 / 3);
	assert_false(take(16));
	next = heapindex_of(&area, heap);
	assert_int_equal(INDEX(next), INDEX(tag));
	assert_int_not_equal(next, tag);
	assert_int_equal(tracer_heap_handle(&area, INDEX(next)), heap);
	assert_int_equal(count_live(), 5000 / 3);
	put(32, next);
	put(64 + 5000 * 16, next);
	destroy(tag); /* comes too late, so it must not affect the new heap */
	assert_int_equal(count_live(), 5000 / 3 + 2);
	for (uint64_t i = 1; i <= 5000; i++)
		assert_int_equal(take(i * 16), i % 3 == 0 || i == 2);
	assert_int_equal(count_live(), 1);
}

TEST(while_end_of_heap_may_be_refused_its_blocks_are_kept)
{
	uint32_t tag = heapindex_of(&area, 0x150000), other = heapindex_of(&area, 0x990000);

	for (uint64_t i = 1; i <= 5000; i++)
		put(i * 16, tag);
	assert_true(blocktable_forget_heap(&area, tag));
	assert_false(blocktable_forget_heap(&area, tag)); /* another thread removed the heap */
	assert_int_equal(heapindex_of(&area, 0x150000), tag);
	for (uint64_t i = 5001; i <= 50000; i++) /* all shards grow */
		put(i * 16, i % 2 ? tag : other);
	destroy(heapindex_of(&area, 0x560000));
	blocktable_clean(&area);
	assert_int_equal(count_live(), 45000 / 2);
	blocktable_restore_heap(&area, tag);
	assert_int_equal(count_live(), 50000);
	assert_int_equal(heapindex_of(&area, 0x150000), tag);
	blocktable_restore_heap(&area, tag); /* must have no effect */
	assert_int_equal(count_live(), 50000);
	for (uint64_t i = 1; i <= 50000; i++)
		assert_true(take(i * 16));
}

/* A heap's memory is already free before the call that destroys the heap returns. */
TEST(heap_at_place_of_one_that_is_being_destroyed_is_another)
{
	for (uint64_t n = 1; n <= 50; n++) {
		uint32_t tag = heapindex_of(&area, 0x150000), next;

		put(n * 32, tag);
		assert_true(blocktable_forget_heap(&area, tag));
		next = heapindex_new(&area, 0x150000);
		assert_int_equal(INDEX(next), INDEX(tag));
		assert_int_not_equal(next, tag);
		assert_int_equal(count_live(), 0);
		put(n * 32 + 16, next);
		blocktable_bury_heap(&area, tag);
		blocktable_restore_heap(&area, tag); /* must not affect this heap either */
		assert_int_equal(count_live(), 1);
		assert_int_equal(area.heaps_destroyed, 2 * n - 1);
		destroy(next);
	}
}

/* Each heap leaves blocks at its own addresses, and there are more heaps than generations. */
TEST(no_block_comes_to_life_again)
{
	enum { BLOCKS = 10 };

	for (uint64_t n = 1; n <= 100; n++) {
		uint32_t tag = heapindex_of(&area, 0x150000);

		assert_int_equal(count_live(), 0);
		for (uint64_t i = 0; i < BLOCKS; i++)
			put((n * BLOCKS + i) * 16, tag);
		assert_int_equal(count_live(), BLOCKS);
		destroy(tag);
	}
	assert_int_equal(area.heaps_destroyed, 100);
}

#define APART 1040 /* blocks at this distance soon reach all shards */

TEST(heaps_that_come_and_go_cost_no_more_with_time)
{
	enum { STEADY = 20000, BLOCKS = 5000 };
	uint32_t steady = heapindex_of(&area, 0x990000);
	uint64_t addr = 0x100000;

	for (uint32_t i = 0; i < STEADY; i++)
		put(addr += APART, steady);
	for (uint64_t n = 0; n < 300; n++) {
		uint32_t tag = heapindex_of(&area, 0x150000 + n % 7 * 0x10000);

		for (uint32_t i = 0; i < BLOCKS; i++)
			put(addr += APART, tag);
		assert_true(area.committed_bytes <= 64 * (STEADY + BLOCKS));
		destroy(tag);
		assert_int_equal(area.dropped_blocks, 0);
	}
	assert_int_equal(count_live(), STEADY);
}

/* While the program allocates and frees other blocks, the tracer releases the memory that a large
 * heap's blocks used. */
TEST(memory_is_given_back_when_large_heap_is_gone)
{
	enum { STEADY = 20000, MANY = 600000 };
	uint32_t steady = heapindex_of(&area, 0x990000), large = heapindex_of(&area, 0x150000);
	uint64_t first = APART, next = APART;

	for (; next < APART * (STEADY + 1); next += APART)
		put(next, steady);
	for (uint64_t i = 1; i <= MANY; i++)
		put(0x100000000 + i * APART, large);
	assert_true(area.committed_bytes <= 64 * (STEADY + MANY));
	destroy(large);
	for (unsigned i = 0; i < STEADY; i++, first += APART, next += APART) {
		assert_true(take(first));
		put(next, steady);
	}
	assert_true(area.committed_bytes <= 64 * STEADY);
	assert_int_equal(count_live(), STEADY);
	/* If the heap came back, its blocks would be removed again. */
	for (uint64_t i = 1; i <= MANY; i++)
		put(0x100000000 + i * APART, heapindex_of(&area, 0x150000));
	destroy(heapindex_of(&area, 0x150000));
	blocktable_clean(&area);
	assert_true(area.committed_bytes <= 64 * STEADY);
	for (; first < next; first += APART)
		assert_true(take(first));
	assert_true(area.committed_bytes <= TRACER_SHARDS * TRACER_PAGE);
	assert_int_equal(area.dropped_blocks, 0);
}

TEST(numbers_of_destroyed_heaps_are_used_again)
{
	for (uint64_t i = 1; i <= HEAPS * 8; i++) {
		uint32_t tag = heapindex_of(&area, i * 0x10000);

		assert_int_not_equal(tag, 0);
		put(i * 16, tag);
		assert_int_equal(count_live(), 1);
		destroy(tag);
	}
}

TEST(cleaning_leaves_what_is_live)
{
	uint32_t live = heapindex_of(&area, 0x150000), dead = heapindex_of(&area, 0x250000);
	uint32_t count = 0, left = 0;

	for (uint64_t i = 1; i <= 30000; i++) {
		bool is_live = fake_dice(&seed) % 3 == 0;

		put(i * 16, is_live ? live : dead);
		count += is_live;
	}
	destroy(dead);
	blocktable_clean(&area);
	for (unsigned i = 0; i < TRACER_SHARDS; i++)
		left += area.shards[i].count;
	assert_int_equal(left, count);
	assert_int_equal(count_live(), count);
	for (uint64_t i = 1; i <= 30000; i++)
		count -= take(i * 16);
	assert_int_equal(count, 0);
}

/* ---------------------------------------------------------------- threads */

#define THREADS 4
#define ROUNDS 2000

struct worker {
	pthread_t thread;
	pthread_barrier_t *start;
	uint32_t number;
	uint32_t tags[HEAPS / 4];
	unsigned wrong;
};

/* All threads look up the same heaps at the same time. Each thread creates and destroys its own
 * heap. */
static void *work(void *context)
{
	struct worker *worker = context;
	uint64_t own = 0x7f0000000000 + worker->number * 0x10000;

	pthread_barrier_wait(worker->start);
	for (unsigned i = 0; i < HEAPS / 4; i++)
		worker->tags[i] = heapindex_of(&area, (i + 1) * 0x10000ull);
	for (unsigned n = 0; n < ROUNDS; n++) {
		uint32_t tag = heapindex_of(&area, own);
		uint64_t addr = 0x100000 + ((uint64_t)n * THREADS + worker->number) * 16;

		put(addr, tag);
		worker->wrong += !tag || tracer_heap_handle(&area, INDEX(tag)) != own;
		worker->wrong += n % 2 && !take(addr);
		destroy(tag);
		worker->wrong += take(addr);
	}
	return NULL;
}

TEST(threads_agree_on_numbers)
{
	struct worker *workers = calloc(THREADS, sizeof(*workers));
	pthread_barrier_t start;

	assert_non_null(workers);
	assert_int_equal(pthread_barrier_init(&start, NULL, THREADS), 0);
	for (unsigned t = 0; t < THREADS; t++) {
		workers[t] = (struct worker){.start = &start, .number = t};
		assert_int_equal(pthread_create(&workers[t].thread, NULL, work, &workers[t]), 0);
	}
	for (unsigned t = 0; t < THREADS; t++)
		assert_int_equal(pthread_join(workers[t].thread, NULL), 0);
	for (unsigned t = 0; t < THREADS; t++) {
		assert_int_equal(workers[t].wrong, 0);
		assert_memory_equal(workers[t].tags, workers[0].tags, sizeof(workers[t].tags));
	}
	for (unsigned i = 0; i < HEAPS / 4; i++)
		assert_int_equal(tracer_heap_handle(&area, workers[0].tags[i]), (i + 1) * 0x10000);
	assert_int_equal(count_live(), 0);
	pthread_barrier_destroy(&start);
	free(workers);
}
