/* The cache of names gives back what was put in, and only of what was asked. */
#include "tests/unit/name_cache_scene.h"

#define BYTES NAME_CACHE_BYTES

static void test_names_come_back_as_they_were(void **state)
{
	(void)state;
	scene_write(BYTES, 1, 100, 1000, 3);
	assert_int_equal(scene_read(BYTES, 1, 100, 1000, 3), 1000);
	assert_int_equal(scene_read(BYTES, 1, 101, 1000, 3), 0);
	assert_int_equal(scene_read(BYTES, 2, 100, 1000, 3), 0);
	assert_int_equal(scene_read(BYTES, 1, 0, 100, 1), 0);
	assert_int_equal(scene_read(BYTES, 1, 100 + 3000, 100, 1), 0);
}

static void test_addresses_at_both_ends_are_addresses(void **state)
{
	(void)state;
	scene_write(BYTES, 1, 0, 1, 1);
	scene_write(BYTES, 1, UINT32_MAX, 1, 1);
	assert_int_equal(scene_read(BYTES, 1, 0, 2, UINT32_MAX), 2);
	assert_int_equal(scene_read(BYTES, 1, 1, 1, 1), 0);
}

static void test_modules_are_kept_apart(void **state)
{
	struct name_cache *cache = name_cache_open_small(scene_path, BYTES);
	struct arena arena;

	(void)state;
	arena_init(&arena);
	for (uint32_t i = 0; i < 300; i++) /* in no order, by turns */
		scene_add(cache, &arena, i % 30, i * 7919 % 4096);
	name_cache_close(cache);
	cache = name_cache_open_small(scene_path, BYTES);
	for (uint32_t i = 0; i < 300; i++) {
		assert_int_equal(scene_find(cache, &arena, i % 30, i * 7919 % 4096), 1);
		assert_int_equal(scene_find(cache, &arena, 30, i * 7919 % 4096), 0);
	}
	name_cache_close(cache);
	arena_release(&arena);
}

static void test_what_is_added_later_adds_to_it(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		scene_write(BYTES, i % 3, i * 100, 10, 1);
		for (uint32_t j = 0; j <= i; j += 9)
			assert_int_equal(scene_read(BYTES, j % 3, j * 100, 100, 1), 10);
	}
}

static struct symbols one(const char *function)
{
	static struct symbol symbol;

	symbol = (struct symbol){.function = function, .line = 1};
	return (struct symbols){.list = &symbol, .count = 1};
}

static void write_one(const char *key, uint32_t rva, const char *function)
{
	struct name_cache *cache = name_cache_open_small(scene_path, BYTES);
	struct symbols symbols = one(function);

	assert_int_equal(name_cache_add(cache, key, rva, &symbols), 0);
	name_cache_close(cache);
}

/* What is found, to be freed; "" for nothing. */
static char *read_one(const char *key, uint32_t rva)
{
	struct name_cache *cache = name_cache_open_small(scene_path, BYTES);
	struct symbols found;
	struct arena arena;
	char *text;

	arena_init(&arena);
	if (name_cache_find(cache, key, rva, &arena, &found) == 1) {
		name_cache_close(cache); /* the names outlive it */
		text = strdup(found.list[0].function);
	} else {
		name_cache_close(cache);
		text = strdup("");
	}
	arena_release(&arena);
	return text;
}

static void expect_one(const char *key, uint32_t rva, const char *function)
{
	char *text = read_one(key, rva);

	assert_string_equal(text, function);
	free(text);
}

static void test_the_newest_name_counts(void **state)
{
	struct name_cache *cache;
	struct symbol list[2] = {{.function = "older"}, {.function = "newer"}};

	(void)state;
	write_one("key", 5, "first");
	write_one("key", 5, "second");
	expect_one("key", 5, "second");
	cache = name_cache_open_small(scene_path, BYTES);
	for (size_t i = 0; i < 2; i++)
		name_cache_add(cache, "key", 5, &(struct symbols){&list[i], 1});
	name_cache_close(cache);
	expect_one("key", 5, "newer");
	for (uint32_t i = 0; i < 30; i++) /* also when sections are made one */
		write_one("key", 5, i % 2 ? "odd" : "even");
	expect_one("key", 5, "odd");
}

static void test_keys_are_compared_whole(void **state)
{
	char key[300], other[300];

	(void)state;
	memset(key, 'k', 299);
	key[299] = '\0';
	write_one(key, 1, "name");
	for (size_t i = 0; i < 299; i++) {
		strcpy(other, key);
		other[i] = 'K';
		expect_one(other, 1, "");
	}
	expect_one(key + 1, 1, "");
	expect_one("", 1, "");
	write_one("", 1, "of the empty key");
	expect_one("", 1, "of the empty key");
	expect_one(key, 1, "name");
}

static void test_hostile_names_are_made_harmless(void **state)
{
	char *text = malloc(5000);

	(void)state;
	assert_non_null(text);
	write_one("key", 1, "a\x1b[31m\xc2\x9b\x7f\n");
	expect_one("key", 1, "a?[31m????");
	memset(text, 'x', 4999);
	text[4999] = '\0';
	write_one("key", 2, text); /* too long to be kept; the others are */
	expect_one("key", 2, "");
	expect_one("key", 1, "a?[31m????");
	text[4000] = '\0';
	write_one("key", 3, text);
	expect_one("key", 3, text);
	write_one("key", 4, "");
	expect_one("key", 4, "");
	free(text);
}

static void test_chains_that_are_too_long_are_not_kept(void **state)
{
	struct name_cache *cache = name_cache_open_small(scene_path, BYTES);
	struct symbol list[65];
	struct symbols found;
	struct arena arena;

	(void)state;
	arena_init(&arena);
	for (size_t i = 0; i < 65; i++)
		list[i] = (struct symbol){.function = "f", .line = (uint32_t)i};
	name_cache_add(cache, "key", 1, &(struct symbols){list, 64});
	name_cache_add(cache, "key", 2, &(struct symbols){list, 65});
	name_cache_add(cache, "key", 3, &(struct symbols){list, 0});
	name_cache_close(cache);
	cache = name_cache_open_small(scene_path, BYTES);
	assert_int_equal(name_cache_find(cache, "key", 1, &arena, &found), 1);
	assert_int_equal(found.count, 64);
	for (size_t i = 0; i < 64; i++)
		assert_int_equal(found.list[i].line, i);
	assert_int_equal(name_cache_find(cache, "key", 2, &arena, &found), 0);
	assert_int_equal(name_cache_find(cache, "key", 3, &arena, &found), 0);
	name_cache_close(cache);
	arena_release(&arena);
}

static void test_no_cache_finds_nothing(void **state)
{
	struct symbols found, symbols = one("f");
	struct arena arena;

	(void)state;
	arena_init(&arena);
	assert_int_equal(name_cache_find(NULL, "key", 1, &arena, &found), 0);
	assert_int_equal(name_cache_add(NULL, "key", 1, &symbols), 0);
	name_cache_close(NULL);
	arena_release(&arena);
}

static void test_nothing_is_written_without_need(void **state)
{
	(void)state;
	assert_int_equal(scene_read(BYTES, 1, 1, 10, 1), 0);
	assert_int_equal(access(scene_path, F_OK), -1);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, scene_begin, scene_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_names_come_back_as_they_were),
		TEST(test_addresses_at_both_ends_are_addresses),
		TEST(test_modules_are_kept_apart),
		TEST(test_what_is_added_later_adds_to_it),
		TEST(test_the_newest_name_counts),
		TEST(test_keys_are_compared_whole),
		TEST(test_hostile_names_are_made_harmless),
		TEST(test_chains_that_are_too_long_are_not_kept),
		TEST(test_no_cache_finds_nothing),
		TEST(test_nothing_is_written_without_need),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
