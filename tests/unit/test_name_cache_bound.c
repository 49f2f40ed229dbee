/* The cache of names stays below its bound: the oldest names go, and many small sections become one. */
#include "symbolize/lookup/name_cache_file.h"
#include "tests/unit/name_cache_scene.h"

#define BOUND ((size_t)64 << 10)

static void test_the_oldest_names_go(void **state)
{
	enum { ROUNDS = 200, EACH = 20 };
	size_t kept = 0;
	bool is_kept = false;

	(void)state;
	for (unsigned key = 0; key < ROUNDS; key++) {
		scene_write(BOUND, key, key, EACH, 5);
		assert_true(scene_size() <= BOUND);
		assert_int_equal(scene_read(BOUND, key, key, EACH, 5), EACH);
	}
	for (unsigned key = 0; key < ROUNDS; key++) {
		size_t found = scene_read(BOUND, key, key, EACH, 5);

		assert_true(found == EACH || (!found && !is_kept)); /* from one on all are there */
		is_kept = found > 0;
		kept += is_kept;
	}
	/* When some go a quarter does, of sections of up to 5000 bytes. */
	assert_true(scene_size() > BOUND / 2 && kept > 10 && kept < ROUNDS);
}

/* How many sections there are. */
static size_t sections(void)
{
	struct section_refs refs;
	struct os_file file;
	size_t count;

	section_refs_init(&refs);
	assert_int_equal(own_file_open(&file, scene_path), 0);
	assert_int_equal(section_refs_read(&refs, &file, NAME_CACHE_BYTES), 0);
	assert_true(refs.is_header_whole && !refs.has_gaps);
	assert_int_equal(refs.end, scene_size());
	count = refs.count;
	section_refs_release(&refs);
	os_close(&file);
	return count;
}

static void test_small_sections_of_a_module_become_one(void **state)
{
	enum { ROUNDS = 100 };

	(void)state;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		scene_write(NAME_CACHE_BYTES, i % 2, i * 10, 10, 1);
		assert_true(sections() <= 2 * SECTIONS_OF_KEY_MAX);
	}
	for (uint32_t i = 0; i < ROUNDS; i++)
		assert_int_equal(scene_read(NAME_CACHE_BYTES, i % 2, i * 10, 10, 1), 10);
}

static void test_names_written_again_take_no_room_for_ever(void **state)
{
	size_t size;

	(void)state;
	scene_write(NAME_CACHE_BYTES, 1, 0, 100, 1);
	size = scene_size();
	for (int i = 0; i < 50; i++) {
		scene_write(NAME_CACHE_BYTES, 1, 0, 100, 1);
		assert_true(scene_size() <= size * (SECTIONS_OF_KEY_MAX + 1));
	}
	assert_int_equal(scene_read(NAME_CACHE_BYTES, 1, 0, 100, 1), 100);
}

/* Part of what is too much for the bound is kept, and the bound is. */
static void test_more_names_at_once_than_fit(void **state)
{
	enum { COUNT = 5000 };
	size_t found;

	(void)state;
	scene_write(BOUND, 1, 0, COUNT, 1);
	assert_true(scene_size() <= BOUND);
	found = scene_read(BOUND, 1, 0, COUNT, 1);
	assert_true(found > 0 && found < COUNT);
	scene_write(BOUND, 2, 0, 10, 1);
	assert_int_equal(scene_read(BOUND, 2, 0, 10, 1), 10);
}

static void test_there_are_not_too_many_sections(void **state)
{
	enum { COUNT = SECTIONS_MAX + 100 };
	struct name_cache *cache = name_cache_open_small(scene_path, NAME_CACHE_BYTES);
	struct arena arena;

	(void)state;
	arena_init(&arena);
	for (unsigned key = 0; key < COUNT; key++)
		scene_add(cache, &arena, key, key);
	name_cache_close(cache);
	assert_int_equal(sections(), COUNT);
	scene_write(NAME_CACHE_BYTES, COUNT, COUNT, 1, 1);
	assert_true(sections() <= SECTIONS_MAX);
	cache = name_cache_open_small(scene_path, NAME_CACHE_BYTES);
	assert_int_equal(scene_find(cache, &arena, 0, 0), 0);
	for (unsigned key = COUNT / 2; key <= COUNT; key++)
		assert_int_equal(scene_find(cache, &arena, key, key), 1);
	name_cache_close(cache);
	arena_release(&arena);
}

/* A cache that was allowed to be larger. */
static void test_a_file_that_is_too_large_shrinks(void **state)
{
	(void)state;
	for (unsigned key = 0; key < 50; key++)
		scene_write(NAME_CACHE_BYTES, key, 0, 100, 1);
	assert_true(scene_size() > 2 * BOUND);
	assert_int_equal(scene_read(BOUND, 0, 0, 100, 1), 100);
	scene_write(BOUND, 60, 0, 10, 1);
	assert_true(scene_size() <= BOUND);
	assert_int_equal(scene_read(BOUND, 60, 0, 10, 1), 10);
}

static void test_of_a_huge_file_the_rest_is_not_read(void **state)
{
	(void)state;
	scene_write(BOUND, 1, 0, 10, 1);
	assert_int_equal(truncate(scene_path, (off_t)1 << 42), 0);
	assert_int_equal(scene_read(BOUND, 1, 0, 10, 1), 10);
	scene_write(BOUND, 2, 0, 10, 1);
	assert_true(scene_size() <= BOUND);
	assert_int_equal(scene_read(BOUND, 1, 0, 10, 1), 10);
	assert_int_equal(scene_read(BOUND, 2, 0, 10, 1), 10);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, scene_begin, scene_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_the_oldest_names_go),
		TEST(test_small_sections_of_a_module_become_one),
		TEST(test_names_written_again_take_no_room_for_ever),
		TEST(test_more_names_at_once_than_fit),
		TEST(test_there_are_not_too_many_sections),
		TEST(test_a_file_that_is_too_large_shrinks),
		TEST(test_of_a_huge_file_the_rest_is_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
