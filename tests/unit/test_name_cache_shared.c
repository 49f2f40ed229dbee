/* Many processes use one cache of names at once: every name that is found is right, none is lost but to
 * the bound, and a process that is killed in the middle of writing harms nobody. */
#include <signal.h>
#include <sys/wait.h>

#include "tests/unit/name_cache_scene.h"

#define BOUND ((size_t)40 << 10)

enum { WRITERS = 8, READERS = 2, ROUNDS = 25, EACH = 10, KEYS = 3 };

static pid_t children[WRITERS + READERS];

/* In a child an assertion that fails ends it. */
static bool is_child(size_t number)
{
	children[number] = fork();
	assert_true(children[number] >= 0);
	if (!children[number])
		setenv("CMOCKA_TEST_ABORT", "1", 1);
	return !children[number];
}

static void wait_for(size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int status;

		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
	}
}

static uint32_t first_of(size_t writer, size_t round)
{
	return (uint32_t)(writer * 100000 + round * EACH * 2);
}

/* Writes until it is kept: another program may have the lock for too long. */
static void write_rounds(size_t writer, size_t limit)
{
	for (size_t round = 0; round < ROUNDS; round++) {
		uint32_t first = first_of(writer, round);

		do
			scene_write(limit, round % KEYS, first, EACH, 1);
		while (limit > BOUND && scene_read(limit, round % KEYS, first, EACH, 1) < EACH);
	}
}

/* What is asserted is in scene_find(): what there is, is right. */
static void read_rounds(size_t limit)
{
	for (size_t i = 0; i < 2 * ROUNDS; i++) {
		for (size_t writer = 0; writer < WRITERS; writer++)
			scene_read(limit, i % KEYS, first_of(writer, i % ROUNDS), EACH * 2, 1);
	}
}

static void run(size_t limit)
{
	for (size_t i = 0; i < WRITERS + READERS; i++) {
		if (is_child(i)) {
			if (i < WRITERS)
				write_rounds(i, limit);
			else
				read_rounds(limit);
			_exit(0);
		}
	}
	wait_for(WRITERS + READERS);
}

static void test_nobody_s_names_are_lost(void **state)
{
	(void)state;
	run(NAME_CACHE_BYTES);
	for (size_t writer = 0; writer < WRITERS; writer++) {
		for (size_t round = 0; round < ROUNDS; round++)
			assert_int_equal(scene_read(NAME_CACHE_BYTES, round % KEYS,
						 first_of(writer, round), EACH, 1),
				EACH);
	}
}

static void test_also_while_the_oldest_go_names_are_right(void **state)
{
	size_t found = 0;

	(void)state;
	run(BOUND);
	assert_true(scene_size() <= BOUND);
	for (size_t writer = 0; writer < WRITERS; writer++) {
		for (size_t round = 0; round < ROUNDS; round++)
			found += scene_read(BOUND, round % KEYS, first_of(writer, round), EACH, 1);
	}
	assert_true(found > EACH);
}

static void test_a_writer_that_is_killed_harms_nobody(void **state)
{
	(void)state;
	for (size_t round = 0; round < 15; round++) {
		int status;

		if (is_child(0)) {
			for (size_t i = 0;; i++)
				scene_write(BOUND, i % KEYS, first_of(0, i % ROUNDS), EACH, 1);
		}
		for (size_t i = 0; i < 10 + round * 5; i++)
			scene_read(BOUND, i % KEYS, first_of(0, i % ROUNDS), EACH * 2, 1);
		assert_int_equal(kill(children[0], SIGKILL), 0);
		assert_int_equal(waitpid(children[0], &status, 0), children[0]);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		scene_write(BOUND, 9, (uint32_t)round, 1, 1);
		assert_int_equal(scene_read(BOUND, 9, (uint32_t)round, 1, 1), 1);
	}
}

/* Of the small sections that write_mixed() writes, what is found; it is right. */
static size_t find_mixed(struct name_cache *cache, uint32_t first, size_t count)
{
	struct arena arena;
	size_t found = 0;

	arena_init(&arena);
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t j = 0; j < 5 + i % 3; j++)
			found += (size_t)scene_find(cache, &arena, i % 4, first + i * 100 + j);
	}
	name_cache_close(cache);
	arena_release(&arena);
	return found;
}

static void write_mixed(uint32_t first, size_t count)
{
	for (uint32_t i = 0; i < count; i++)
		scene_write(BOUND, i % 4, first + i * 100, 5 + i % 3, 1);
}

/* One who has seen where the sections are, before others move them. */
static void test_what_moves_under_a_reader_is_right_or_nothing(void **state)
{
	size_t all = 0, least = SIZE_MAX;

	(void)state;
	for (size_t moves = 0; moves < 60; moves++) {
		struct name_cache *cache;
		size_t found;

		write_mixed(0, 30);
		cache = name_cache_open_small(scene_path, BOUND);
		write_mixed(5000, moves);
		found = find_mixed(cache, 0, 30);
		all = moves ? all : found;
		least = found < least ? found : least;
	}
	assert_int_equal(all, 30 * 6); /* nothing had moved */
	assert_true(least < all); /* and then something had */
}

static void test_a_cache_that_is_deleted_meanwhile_begins_anew(void **state)
{
	struct name_cache *cache;
	struct arena arena;

	(void)state;
	arena_init(&arena);
	scene_write(NAME_CACHE_BYTES, 1, 0, 10, 1);
	cache = name_cache_open_small(scene_path, NAME_CACHE_BYTES);
	assert_int_equal(scene_find(cache, &arena, 1, 0), 1);
	assert_int_equal(unlink(scene_path), 0);
	scene_add(cache, &arena, 1, 100);
	name_cache_close(cache);
	assert_int_equal(scene_read(NAME_CACHE_BYTES, 1, 100, 1, 1), 1);
	assert_int_equal(scene_read(NAME_CACHE_BYTES, 1, 0, 10, 1), 0);
	arena_release(&arena);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, scene_begin, scene_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_nobody_s_names_are_lost),
		TEST(test_also_while_the_oldest_go_names_are_right),
		TEST(test_a_writer_that_is_killed_harms_nobody),
		TEST(test_what_moves_under_a_reader_is_right_or_nothing),
		TEST(test_a_cache_that_is_deleted_meanwhile_begins_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
