/* Whatever becomes of the file's bytes, the cache gives right names or none, and is whole again after
 * the next write. Files that pass the checks and still mean harm are made by hand. */
#include "symbolize/lookup/name_cache_file.h"
#include "tests/unit/name_cache_scene.h"

#define BYTES NAME_CACHE_BYTES

enum { KEYS = 3, EACH_KEY = 4 };

/* A small file of several sections, the last key's in two. */
static void write_small(void)
{
	unlink(scene_path);
	for (unsigned key = 0; key < KEYS; key++)
		scene_write(BYTES, key, key * 10, EACH_KEY, 1);
	scene_write(BYTES, KEYS - 1, 100, EACH_KEY, 1);
}

static size_t read_small(void)
{
	size_t found = scene_read(BYTES, KEYS - 1, 100, EACH_KEY, 1);

	for (unsigned key = 0; key < KEYS; key++)
		found += scene_read(BYTES, key, key * 10, EACH_KEY, 1);
	return found;
}

#define ALL ((size_t)(KEYS + 1) * EACH_KEY)

/* The file is a header and sections, all whole. */
static void check_whole(void)
{
	struct section_refs refs;
	struct os_file opened;
	size_t len;
	char *bytes = scene_bytes(&len);

	section_refs_init(&refs);
	assert_int_equal(own_file_open(&opened, scene_path), 0);
	assert_int_equal(section_refs_read(&refs, &opened, BYTES), 0);
	assert_true(refs.is_header_whole && !refs.has_gaps && refs.end == len);
	for (size_t i = 0; i < refs.count; i++) {
		const char *at = bytes + refs.list[i].offset + SECTION_HEAD_BYTES;

		assert_true(section_is_whole(&refs.list[i].head, (const unsigned char *)at));
	}
	section_refs_release(&refs);
	os_close(&opened);
	free(bytes);
}

/* A write by someone who met the damage leaves a file without any. */
static void check_next_write(void)
{
	struct name_cache *cache = name_cache_open_small(scene_path, BYTES);
	struct arena arena;

	arena_init(&arena);
	for (unsigned key = 0; key < KEYS; key++)
		scene_find(cache, &arena, key, 0);
	scene_add(cache, &arena, 7, 7);
	name_cache_close(cache);
	arena_release(&arena);
	assert_int_equal(scene_read(BYTES, 7, 7, 1, 1), 1);
	check_whole();
}

static void test_a_changed_byte_costs_one_section_at_most(void **state)
{
	static const unsigned char changes[] = {0x01, 0x80, 0xff};
	char *bytes;
	size_t len;

	(void)state;
	write_small();
	assert_int_equal(read_small(), ALL);
	bytes = scene_bytes(&len);
	for (size_t i = 0; i < len; i++) {
		for (size_t j = 0; j < sizeof(changes); j++) {
			size_t found;

			bytes[i] ^= (char)changes[j];
			scene_put(bytes, len);
			found = read_small();
			assert_int_equal(found, i < HEADER_BYTES ? ALL : ALL - EACH_KEY);
			if (!j) {
				check_next_write();
				assert_int_equal(read_small(), found);
			}
			bytes[i] ^= (char)changes[j];
		}
	}
	free(bytes);
}

static void test_a_cut_file_keeps_what_is_before_the_cut(void **state)
{
	size_t len, before = ALL;
	char *bytes;

	(void)state;
	write_small();
	bytes = scene_bytes(&len);
	for (size_t i = len; i-- > 0;) {
		size_t found;

		scene_put(bytes, i);
		found = read_small();
		assert_true(found <= before && found + EACH_KEY >= before);
		before = found;
		check_next_write();
		assert_int_equal(read_small(), found);
	}
	assert_int_equal(before, 0);
	free(bytes);
}

static void test_a_file_that_is_cut_while_it_is_used_is_no_trouble(void **state)
{
	struct name_cache *cache;
	struct arena arena;
	int found = 0;

	(void)state;
	arena_init(&arena);
	write_small();
	cache = name_cache_open_small(scene_path, BYTES);
	assert_int_equal(truncate(scene_path, (off_t)scene_size() / 2), 0);
	for (unsigned key = 0; key < KEYS; key++)
		found += scene_find(cache, &arena, key, key * 10);
	assert_true(found > 0 && found < KEYS);
	name_cache_close(cache);
	arena_release(&arena);
}

/* ---------------------------------------------------------------- files that mean harm */

static struct buf file;

/* Sets the checks of the only section in the file as its makers would have. */
static void seal(void)
{
	unsigned char *head = (unsigned char *)file.data + HEADER_BYTES;
	size_t body = file.len - HEADER_BYTES - SECTION_HEAD_BYTES;

	put_le64(head + 24, check_of(head + SECTION_HEAD_BYTES, body));
	put_le64(head + 32, check_of(head, 32));
}

/* One section of the addresses 16 and 32, one symbol each: "one" and "two" in file "f". */
static unsigned char *begin(void)
{
	struct symbol list[2] = {
		{.function = "one", .file = "f"}, {.function = "two", .file = "f"}};
	struct section_answer answers[2] = {
		{.rva = 16, .symbols = {&list[0], 1}}, {.rva = 32, .symbols = {&list[1], 1}}};
	size_t taken;

	buf_release(&file);
	assert_int_equal(buf_add(&file, HEADER_TEXT HEADER_TEXT, HEADER_BYTES), 0);
	assert_int_equal(section_build(&file, "key", answers, 2, 1000, &taken), 0);
	assert_int_equal(taken, 2);
	return (unsigned char *)file.data + HEADER_BYTES;
}

static int find_of(const char *key, uint32_t rva, const char *function)
{
	struct name_cache *cache;
	struct symbols found;
	struct arena arena;
	int rc;

	arena_init(&arena);
	scene_put(file.data, file.len);
	cache = name_cache_open_small(scene_path, BYTES);
	rc = name_cache_find(cache, key, rva, &arena, &found);
	if (rc == 1) {
		assert_int_equal(found.count, 1);
		assert_string_equal(found.list[0].function, function);
	}
	name_cache_close(cache);
	arena_release(&arena);
	return rc;
}

static int find(uint32_t rva, const char *function)
{
	return find_of("key", rva, function);
}

/* The body's parts: key 3, offsets 2 * 4, first symbols 2 * 4, symbols 2 * 20, texts "one f two ". */
enum {
	RVAS = SECTION_HEAD_BYTES + 3,
	FIRSTS = RVAS + 8,
	SYMBOLS = FIRSTS + 8,
	TEXTS = SYMBOLS + 40
};

static void check_harmful(size_t at, uint32_t value)
{
	put_le32(begin() + at, value);
	seal();
	assert_int_equal(find(16, ""), 0);
	assert_int_equal(find(32, ""), 0);
}

static void test_sections_that_pass_the_checks_lead_nowhere(void **state)
{
	(void)state;
	begin();
	assert_int_equal(file.len, HEADER_BYTES + TEXTS + 10);
	seal();
	assert_int_equal(find(16, "one"), 1);
	assert_int_equal(find(32, "two"), 1);
	check_harmful(RVAS, 32); /* not above the one before */
	check_harmful(RVAS, 33);
	check_harmful(FIRSTS, 1);
	check_harmful(FIRSTS + 4, 0);
	check_harmful(FIRSTS + 4, 2);
	check_harmful(FIRSTS + 4, UINT32_MAX);
	check_harmful(SYMBOLS, 10);
	check_harmful(SYMBOLS, UINT32_MAX);
	check_harmful(SYMBOLS, 3); /* an empty name */
	check_harmful(SYMBOLS + 24, 10);
	check_harmful(SYMBOLS + 24, UINT32_MAX - 1);
	begin()[TEXTS + 9] = 'x'; /* the last text has no end */
	seal();
	assert_int_equal(find(16, ""), 0);
}

static void test_huge_counts_are_no_section(void **state)
{
	static const uint32_t huge[] = {3, 1000, 0x1fffffff, 0x7fffffff, 0xffffffff};

	(void)state;
	for (size_t at = 4; at <= 16; at += 4) {
		for (size_t i = 0; i < sizeof(huge) / sizeof(*huge); i++) {
			put_le32(begin() + at, huge[i] + (at == 4));
			seal();
			assert_int_equal(find(16, ""), 0);
		}
		put_le32(begin() + at, 0);
		seal();
		assert_int_equal(find(16, ""), 0);
	}
}

/* The hash only says where to look. */
static void test_a_key_is_more_than_its_hash(void **state)
{
	(void)state;
	put_le32(begin() + 20, section_key_hash("kex"));
	memcpy((unsigned char *)file.data + HEADER_BYTES + SECTION_HEAD_BYTES, "kez", 3);
	seal();
	assert_int_equal(find_of("kex", 16, ""), 0);
	assert_int_equal(find_of("kez", 16, ""), 0);
	put_le32(begin() + 20, section_key_hash("kez"));
	memcpy((unsigned char *)file.data + HEADER_BYTES + SECTION_HEAD_BYTES, "kez", 3);
	seal();
	assert_int_equal(find_of("kez", 16, "one"), 1);
}

static void test_control_characters_in_the_file_are_made_harmless(void **state)
{
	(void)state;
	memcpy(begin() + TEXTS, "\x1b\xc2\x9b", 3);
	seal();
	assert_int_equal(find(16, "???"), 1);
	assert_int_equal(find(32, "two"), 1);
}

/* One answer of so many symbols. */
static int find_chain(uint32_t count)
{
	unsigned char symbol[SYMBOL_BYTES] = {0}, *head = begin();
	struct name_cache *cache;
	struct symbols found = {0};
	struct arena arena;
	int rc;

	put_le32(head + 8, 1);
	put_le32(head + 12, count);
	put_le32(head + 16, 2);
	file.len = HEADER_BYTES + RVAS + 4; /* behind the first offset */
	assert_int_equal(buf_add(&file, "\0\0\0", 4), 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(buf_add(&file, symbol, sizeof(symbol)), 0);
	assert_int_equal(buf_add(&file, "f", 2), 0);
	seal();
	scene_put(file.data, file.len);
	arena_init(&arena);
	cache = name_cache_open_small(scene_path, BYTES);
	rc = name_cache_find(cache, "key", 16, &arena, &found);
	assert_int_equal(found.count, rc ? count : 0);
	name_cache_close(cache);
	arena_release(&arena);
	return rc;
}

static void test_chains_have_an_end(void **state)
{
	(void)state;
	assert_int_equal(find_chain(1), 1);
	assert_int_equal(find_chain(64), 1);
	assert_int_equal(find_chain(65), 0);
	assert_int_equal(find_chain(0), 0);
}

static int end(void **state)
{
	buf_release(&file);
	return scene_end(state);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, scene_begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_changed_byte_costs_one_section_at_most),
		TEST(test_a_cut_file_keeps_what_is_before_the_cut),
		TEST(test_a_file_that_is_cut_while_it_is_used_is_no_trouble),
		TEST(test_sections_that_pass_the_checks_lead_nowhere),
		TEST(test_huge_counts_are_no_section),
		TEST(test_a_key_is_more_than_its_hash),
		TEST(test_control_characters_in_the_file_are_made_harmless),
		TEST(test_chains_have_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
