#include "tests/unit/t.h"

#include <pthread.h>
#include <sched.h>

#include "core/io/interrupt.h"

static struct interrupt_cleanup hand;
static atomic_int has_taken, was_cleared;

/* Holds the object until another thread begins to clear it, then reads it. */
static void *handle_interrupt(void *ctx)
{
	const int *thing = interrupt_cleanup_get(&hand);
	int *seen = ctx;

	atomic_store(&has_taken, 1);
	while (atomic_load(&hand.thing))
		sched_yield();
	for (int i = 0; i < 1000; i++)
		sched_yield();
	*seen = atomic_load(&was_cleared) ? -1 : *thing;
	interrupt_cleanup_done(&hand);
	return NULL;
}

TEST(test_what_was_taken_is_there_until_it_is_done_with)
{
	int *thing = malloc(sizeof(*thing)), seen = 0;
	pthread_t thread;

	assert_non_null(thing);
	*thing = 42;
	interrupt_cleanup_set(&hand, thing);
	assert_int_equal(pthread_create(&thread, NULL, handle_interrupt, &seen), 0);
	while (!atomic_load(&has_taken))
		sched_yield();
	interrupt_cleanup_clear(&hand);
	atomic_store(&was_cleared, 1);
	*thing = -2;
	free(thing);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(seen, 42);
}

TEST(test_what_was_cleared_is_not_taken)
{
	int thing;

	interrupt_cleanup_set(&hand, &thing);
	assert_ptr_equal(interrupt_cleanup_get(&hand), &thing);
	interrupt_cleanup_done(&hand);
	interrupt_cleanup_clear(&hand);
	assert_null(interrupt_cleanup_get(&hand));
	interrupt_cleanup_done(&hand);
}
