#include "tests/unit/name_cache_scene.h"

#include "core/base/hash.h"

#define BYTES NAME_CACHE_BYTES

#undef TEST_AROUND
#define TEST_AROUND scene_begin, scene_end

TEST(test_names_come_back_as_they_were)
{
	scene_write(BYTES, 1, 100, 1000, 3);
	assert_int_equal(scene_read(BYTES, 1, 100, 1000, 3), 1000);
	assert_int_equal(scene_read(BYTES, 1, 101, 1000, 3), 0);
	assert_int_equal(scene_read(BYTES, 2, 100, 1000, 3), 0);
	assert_int_equal(scene_read(BYTES, 1, 0, 100, 1), 0);
	assert_int_equal(scene_read(BYTES, 1, 100 + 3000, 100, 1), 0);
	scene_write(BYTES, 3, 0, 1, 1);
	scene_write(BYTES, 3, UINT32_MAX, 1, 1);
	assert_int_equal(scene_read(BYTES, 3, 0, 2, UINT32_MAX), 2);
	assert_int_equal(scene_read(BYTES, 3, 1, 1, 1), 0);
}

TEST(test_modules_are_kept_apart)
{
	struct name_cache *cache = name_cache_open(scene_path, BYTES);
	struct arena arena;

	arena_init(&arena); /* the arena is needed only to add names */
	/* Not in order of address, and alternating between modules. */
	for (uint32_t i = 0; i < 300; i++)
		scene_add(cache, &arena, i % 30, i * 7919 % 4096);
	name_cache_close(cache);
	arena_release(&arena);
	cache = name_cache_open(scene_path, BYTES);
	for (uint32_t i = 0; i < 300; i++) {
		assert_true(scene_find(cache, i % 30, i * 7919 % 4096));
		assert_false(scene_find(cache, 30, i * 7919 % 4096));
	}
	name_cache_close(cache);
}

/* Adds a symbol `count` times, as one chain. */
static void write_chain(const char *key, uint32_t rva, struct symbol symbol, size_t count)
{
	struct name_cache *cache = name_cache_open(scene_path, BYTES);
	struct symbol list[65];

	for (size_t i = 0; i < count; i++)
		list[i] = symbol;
	name_cache_add(cache, key, rva, &(struct symbols){list, count});
	name_cache_close(cache);
}

static void write_one(const char *key, uint32_t rva, const char *function)
{
	write_chain(key, rva, (struct symbol){.function = function, .line = 1}, 1);
}

/* Checks the names found at rva. If function is "", expects no names. */
static size_t expect_one(const char *key, uint32_t rva, const char *function)
{
	struct name_cache *cache = name_cache_open(scene_path, BYTES);
	struct symbols found = {0};
	bool is_found = name_cache_find(cache, key, rva, &found);

	assert_string_equal(is_found ? found.list[0].function : "", function);
	name_cache_close(cache);
	return found.count;
}

TEST(test_newest_name_counts)
{
	struct name_cache *cache;
	struct symbol list[2] = {{.function = "older"}, {.function = "newer"}};

	write_one("key", 5, "first");
	write_one("key", 5, "second");
	expect_one("key", 5, "second");
	cache = name_cache_open(scene_path, BYTES);
	for (size_t i = 0; i < 2; i++)
		name_cache_add(cache, "key", 5, &(struct symbols){&list[i], 1});
	name_cache_close(cache);
	expect_one("key", 5, "newer");
}

TEST(test_keys_are_compared_whole)
{
	char key[300], other[300];

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

/* A key contains a path, which a dump can choose. */
TEST(test_what_is_no_line_of_text_is_not_kept)
{
	static const char *const hostile[] = {"a\nb", "a\tb", "a\x1b[31m", "\x01", ""};
	static const char evil[] = "key\n1\tEVIL\t0\t\t1";
	char text[4002];

	write_one("key", 1, "name");
	for (uint32_t i = 0; i < sizeof(hostile) / sizeof(*hostile); i++) {
		write_one("key", 10 + i, hostile[i]);
		expect_one("key", 10 + i, "");
	}
	write_one(evil, 2, "name");
	expect_one(evil, 2, "");
	memset(text, 'x', 4001);
	text[4001] = '\0';
	write_one("key", 2, text);
	expect_one("key", 2, "");
	text[4000] = '\0';
	write_one("key", 3, text);
	expect_one("key", 3, text);
	write_chain("key", 4, (struct symbol){.function = "f", .file = "="}, 1);
	write_chain("key", 5, (struct symbol){.function = "f", .file = "a\nb"}, 1);
	for (uint32_t rva = 4; rva < 6; rva++)
		expect_one("key", rva, "");
	expect_one("key", 1, "name");
}

TEST(test_chains_that_are_too_long_are_not_kept)
{
	write_chain("key", 1, (struct symbol){.function = "f"}, 64);
	write_chain("key", 2, (struct symbol){.function = "f"}, 65);
	write_chain("key", 3, (struct symbol){.function = "f"}, 0);
	assert_int_equal(expect_one("key", 1, "f"), 64);
	expect_one("key", 2, "");
	expect_one("key", 3, "");
}

TEST(test_nothing_is_written_without_need)
{
	struct symbols found;

	assert_int_equal(scene_read(BYTES, 1, 1, 10, 1), 0);
	assert_int_equal(access(scene_path, F_OK), -1);
	assert_false(name_cache_find(NULL, "key", 1, &found)); /* a missing cache finds nothing */
	name_cache_add(NULL, "key", 1, &found);
	name_cache_close(NULL);
}

/* ---------------------------------------------------------------- limit */

#define BOUND ((size_t)64 << 10)

TEST(test_oldest_names_go)
{
	enum { ROUNDS = 200, EACH = 20 };
	size_t kept = 0;
	bool is_kept = false;

	for (unsigned key = 0; key < ROUNDS; key++) {
		scene_write(BOUND, key, key, EACH, 5);
		assert_true(scene_size() <= BOUND);
		assert_int_equal(scene_read(BOUND, key, key, EACH, 5), EACH);
	}
	for (unsigned key = 0; key < ROUNDS; key++) {
		size_t found = scene_read(BOUND, key, key, EACH, 5);

		/* Once a round is kept, all later rounds must be kept. */
		assert_true(found == EACH || (!found && !is_kept));
		is_kept = found > 0;
		kept += is_kept;
	}
	/* The cache removes a quarter at a time. The names of one run have up to 5000 bytes. */
	assert_true(scene_size() > BOUND / 2 && kept > 10 && kept < ROUNDS);
}

TEST(test_more_names_at_once_than_fit)
{
	enum { COUNT = 5000 };
	size_t found;

	scene_write(BOUND, 1, 0, COUNT, 1);
	assert_true(scene_size() <= BOUND);
	found = scene_read(BOUND, 1, 0, COUNT, 1);
	assert_true(found > 0 && found < COUNT);
	scene_write(BOUND, 2, 0, 10, 1);
	assert_int_equal(scene_read(BOUND, 2, 0, 10, 1), 10);
	scene_write(100, 3, 0, 1, 1); /* this line alone exceeds the limit */
	assert_true(scene_size() <= BOUND);
	assert_int_equal(scene_read(BOUND, 3, 0, 1, 1), 0);
}

TEST(test_file_that_is_too_large_begins_anew)
{
	scene_write(BOUND, 1, 0, 10, 1);
	assert_int_equal(truncate(scene_path, (off_t)1 << 42), 0);
	assert_int_equal(scene_read(BOUND, 1, 0, 10, 1), 0);
	scene_write(BOUND, 2, 0, 10, 1);
	assert_true(scene_size() <= BOUND);
	assert_int_equal(scene_read(BOUND, 2, 0, 10, 1), 10);
}

/* ---------------------------------------------------------------- damage */

static const char first_line[] = "hsnap's names 2\n";
#define FIRST_BYTES (sizeof(first_line) - 1)

TEST(test_first_line_names_format)
{
	static const char *const others[] = {"hsnap's names 1\nhsnap's names 1\nhnms",
		"hsnap's names 20\n\nmodule ", "hsnap's names ", "hsnap", ""};
	char *bytes;
	size_t len;

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		scene_put(others[i], strlen(others[i]));
		scene_write(BYTES, 1, 0, 10, 1);
		assert_int_equal(scene_read(BYTES, 1, 0, 10, 1), 10);
		bytes = file_get(scene_path, &len);
		assert_memory_equal(bytes, first_line, FIRST_BYTES);
		free(bytes);
	}
}

enum { KEYS = 3, EACH_KEY = 4, ALL = (KEYS + 1) * EACH_KEY };

/* Writes a small file of several chunks. The last key's names are in two chunks. */
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

/* Checks that names written after the damage are found, and that writing loses no other names. */
static void check_next_write(size_t found)
{
	scene_write(BYTES, 7, 7, 1, 1);
	assert_int_equal(scene_read(BYTES, 7, 7, 1, 1), 1);
	assert_true(
		/* The next chunk supplies a line feed if the damage removed one. */
		read_small() >= found);
}

TEST(test_changed_byte_costs_one_chunk_at_most)
{
	static const unsigned char changes[] = {0x01, 0x80, 0xff};
	char *bytes;
	size_t len;

	write_small();
	assert_int_equal(read_small(), ALL);
	bytes = file_get(scene_path, &len);
	for (size_t i = FIRST_BYTES; i < len; i++) {
		for (size_t j = 0; j < sizeof(changes); j++) {
			bytes[i] ^= (char)changes[j];
			scene_put(bytes, len);
			assert_int_equal(read_small(), ALL - EACH_KEY);
			if (!j)
				check_next_write(ALL - EACH_KEY);
			bytes[i] ^= (char)changes[j];
		}
	}
	free(bytes);
}

TEST(test_cut_file_keeps_what_is_before_cut)
{
	size_t len, before = ALL;
	char *bytes;

	write_small();
	bytes = file_get(scene_path, &len);
	for (size_t i = len; i-- > 0;) {
		size_t found;

		scene_put(bytes, i);
		found = read_small();
		assert_true(found == before || found + EACH_KEY == before);
		before = found;
		check_next_write(found);
	}
	assert_int_equal(before, 0);
	free(bytes);
}

/* ---------------------------------------------------------------- malicious lines */

/* Writes a cache with one chunk, which has the module "key", these lines, and the correct
 * checksum. */
static void write_sealed(const char *lines)
{
	static const struct hash_key known = {{1, 2}};
	struct hasher hasher = hasher_begin(&known);
	struct buf body, file;

	buf_init(&body);
	buf_init(&file);
	buf_printf(&body, "key\n%s", lines);
	hasher_add_bytes(&hasher, body.data, body.len);
	buf_printf(&file, "%s\nmodule %lx %zx %s", first_line, (unsigned long)hasher_end(&hasher),
		body.len, body.data);
	scene_put(file.data, file.len);
	buf_release(&file);
	buf_release(&body);
}

/* Checks that only a line about address 10 can be found, and that the lines before and after it are
 * used. */
static void check_line(const char *line, const char *function)
{
	char text[9000];

	snprintf(text, sizeof(text), "8\tbefore\t0\t\t1\n%s\n18\tbehind\t0\t\t1\n", line);
	write_sealed(text);
	expect_one("key", 0x8, "before");
	expect_one("key", 0x10, function);
	expect_one("key", 0x18, "behind");
}

TEST(test_lines_that_are_not_well_formed_do_not_count)
{
	static const char *const wrong[] = {"", "10", "10\t", "10\tf", "10\tf\t0", "10\tf\t0\t",
		"10\tf\t0\t\t", "10\tf\t0\t\tg", "10\tf\t0\t\t-1", "10\tf\t\t\t1", "10\t\t0\t\t1",
		" 10\tf\t0\t\t1", "10 \tf\t0\t\t1", "10\tf\t0\t\t1 ", "10xf\t0\t\t1",
		"10\tf\t0\t\t100000000", "100000010\tf\t0\t\t1",
		/* With a " " the line would belong to another module. */
		"10\tf\t10000000000000000\t\t1", "10\tf\t0\t\t1\t", "10\tf\t0\t\t1\tg",
		"10\tf\t0\t\t1\tg\t0\t\t", "\t10\tf\t0\t\t1", "key 10\tf\t0\t\t1"};

	check_line("10\tf\t0\t\t1", "f");
	check_line("10\tf\tffffffffffffffff\t=\tffffffff", "f");
	/* Control characters are replaced. */
	check_line("10\ta\x1b[31m\xc2\x9b\x7f\t0\t\t1", "a?[31m???");
	check_line("0000000000000000010\tf\t0\t\t1\tg\t0\t\t1", "f");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		check_line(wrong[i], "");
}

TEST(test_long_lines_do_not_count)
{
	char line[9000] = "10";

	for (size_t i = 1; i <= 65; i++) {
		strcat(line, "\tf\t0\t\t1");
		check_line(line, i <= 64 ? "f" : "");
	}
	snprintf(line, sizeof(line), "10\tf%04000d\t0\t\t1", 0);
	check_line(line, "");
	snprintf(line, sizeof(line), "10\tf\t0\tf%04000d\t1", 0);
	check_line(line, "");
	snprintf(line, sizeof(line), "10\tf\t0\tf%03999d\t1", 0);
	check_line(line, "f");
}

TEST(test_chunk_within_chunk_leads_nowhere)
{
	write_sealed(
		"8\tf\t0\t\t1\n\nmodule 0 ffffffffffffffff key\n\nmodule 0 7 key\n10\tg\t0\t\t1\n");
	expect_one("key", 0x8, "f");
	expect_one("key", 0x10, "g"); /* the outer chunk's name, whose checksum is correct */
}
