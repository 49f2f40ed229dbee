/* Words of threads without a TLS slot. Each thread has its own word, and a thread that reuses a
 * place begins at 0. */
#include "tests/unit/t.h"

#include <pthread.h>

#include "snapshot/tracer/tables.h"

#define BLOCK(i) (0x7ff000000000u + (uint64_t)(i)*0x2000)
#define MANY 2000u /* threads at the same time */

TEST(thread_keeps_its_words)
{
	uintptr_t *first = threadwords_find(BLOCK(1), 11), *second = threadwords_find(BLOCK(2), 22);

	assert_non_null(first);
	assert_non_null(second);
	assert_ptr_not_equal(first, second);
	for (unsigned i = 0; i < THREADWORDS_COUNT; i++) {
		assert_int_equal(first[i], 0);
		first[i] = 100 + i;
		second[i] = 200 + i;
	}
	for (unsigned i = 0; i < THREADWORDS_COUNT; i++) {
		assert_int_equal(threadwords_find(BLOCK(1), 11)[i], 100 + i);
		assert_int_equal(threadwords_find(BLOCK(2), 22)[i], 200 + i);
	}
}

TEST(next_thread_at_place_begins_anew)
{
	uintptr_t *words = threadwords_find(BLOCK(3), 33);

	words[0] = 1;
	words[THREADWORDS_COUNT - 1] = 2;
	assert_ptr_equal(threadwords_find(BLOCK(3), 34), words);
	assert_int_equal(words[0], 0);
	assert_int_equal(words[THREADWORDS_COUNT - 1], 0);
}

static void *work(void *ctx)
{
	size_t number = (size_t)ctx;

	for (unsigned round = 0; round < 200; round++) {
		for (size_t i = number; i < MANY; i += 4) {
			uintptr_t *words = threadwords_find(BLOCK(100 + i), (uint32_t)(1000 + i));

			if (!words || (round && words[0] != round * i))
				return ctx ? ctx : (void *)1;
			words[0] = (round + 1) * i;
		}
	}
	return NULL;
}

TEST(two_thousand_threads_have_words)
{
	pthread_t threads[4];

	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)i), 0);
	for (size_t i = 0; i < 4; i++) {
		void *failed = NULL;

		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
}

TEST(table_that_is_full_refuses)
{
	unsigned refused = 0;

	for (unsigned i = 0; i < 20000; i++)
		refused += !threadwords_find(BLOCK(10000 + i), 5);
	assert_true(refused > 10000);
	assert_int_equal(threadwords_find(BLOCK(1), 11)[0], 100);
	assert_int_equal(threadwords_find(BLOCK(2), 22)[0], 200);
}
