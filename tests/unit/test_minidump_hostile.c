#include "tests/unit/t.h"

#include "tests/unit/test_minidump.h"

#include "snapshot/target/nt_process.h"

static unsigned sum; /* sum of all bytes read; prevents the compiler from removing the reads */

/* Checks what must be true for the balance of every dump: whatever the file contains, sums of its
 * figures cannot overflow, and the list of memory is ascending. */
static void survey_balance(size_t len)
{
	struct target_memory *space = NULL;
	struct target_teb *tebs = NULL;
	struct balance balance = {0};
	size_t count = 0;
	struct arena arena;

	arena_init(&arena);
	if (!opened.target.ops->space(&opened.target, &space, &count))
		assert_true(count <= len / 48);
	for (size_t i = 0; i < count; i++) {
		assert_true(space[i].allocation <= space[i].addr && space[i].addr < space[i].end);
		assert_true(space[i].end <= TARGET_SPACE_BYTES);
		if (i && space[i].allocation != space[i - 1].allocation)
			assert_true(space[i].allocation >= space[i - 1].end);
		if (i)
			assert_true(space[i].addr >= space[i - 1].end);
	}
	if (!opened.target.ops->tebs(&opened.target, &tebs, &count))
		assert_true(count && count <= 2 * (len / 48));
	opened.target.ops->count(&opened.target, &balance, &arena);
	for (int i = 0; i < BALANCE_FIGURES; i++)
		assert_true(balance.figures[i] <= TARGET_SPACE_BYTES);
	assert_true(balance.handle_count <= BALANCE_HANDLES_MAX);
	for (size_t i = 0; i < balance.handle_count; i++) {
		assert_true(balance.handles[i].count <= len / 32);
		sum += (unsigned)strlen(balance.handles[i].type);
	}
	arena_release(&arena);
	free(space);
	free(tebs);
}

/* Opens the bytes and, on success, reads everything. */
static bool survey_bytes(const unsigned char *bytes, size_t len)
{
	struct nt_process process;
	struct memory memory;
	int rc = dmp_open_bytes(bytes, len);

	if (rc) {
		assert_true(rc == -ERR_NOT_MINIDUMP || rc == -ERR_NO_HEAPS);
		return false;
	}
	sum += dmp_survey(len);
	survey_balance(len);
	assert_int_equal(memory_init(&memory, &opened.target), 0);
	if (!nt_process_read(&process, &memory, opened.target.peb, opened.target.bits, NULL))
		nt_process_release(&process);
	memory_release(&memory);
	return true;
}

static bool survey(void)
{
	return survey_bytes(dmp.bytes, dmp.len);
}

/* Return the offsets of a stream's directory entry and of the stream. */
static size_t entry_of(unsigned type)
{
	for (size_t i = 0; i < dmp.streams; i++) {
		if (dmp.bytes[32 + 12 * i] == type)
			return 32 + 12 * i;
	}
	fail();
	return 0;
}

static size_t place_of(unsigned type)
{
	const unsigned char *rva = dmp.bytes + entry_of(type) + 8;

	return rva[0] | (size_t)rva[1] << 8 | (size_t)rva[2] << 16;
}

TEST(any_truncation_is_survived)
{
	size_t opened_count = 0, len;
	unsigned char page[256];

	dmp_make_full();
	len = dmp.len;
	for (size_t cut = 0; cut < len; cut++)
		opened_count += survey_bytes(dmp.bytes, cut);
	/* Every cut dump can be opened, unless the modules and the threads are cut off. */
	assert_true(opened_count > len / 2);

	assert_int_equal(dmp_open_bytes(dmp.bytes, len - 1), 0);
	assert_int_equal(
		dmp_warnings("the file is cut short: memory is missing, 1 byte in 1 range"), 1);
	/* half of the TEB is cut off, but the heap is present */
	assert_int_equal(dmp_open_bytes(dmp.bytes, len - 0x1000), 0);
	assert_int_equal(dmp_warnings("cut short: memory is missing, 4096 bytes in 1 range"), 1);
	assert_int_equal(target_read(&opened.target, DMP_HEAP, page, sizeof(page)), 0);
}

TEST(places_outside_of_file_are_not_read)
{
	static const uint64_t places[] = {UINT32_MAX, 0x7fffffff, 0x80000000};

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		static const unsigned types[] = {DMP_THREADS, DMP_MODULES, DMP_SYSTEM, DMP_MISC,
			DMP_MEMORY64, DMP_INFOS, DMP_HANDLES, DMP_COUNTERS};

		for (size_t k = 0; k < sizeof(types) / sizeof(*types); k++) {
			dmp_make_full();
			dmp_set(entry_of(types[k]) + 8, places[i], 4);
			dmp_open();
			assert_true(dmp_warnings("cut short") >= 1);
			sum += dmp_survey(dmp.len);
			/* The stream's size extends past the end. */
			dmp_make_full();
			dmp_set(entry_of(types[k]) + 4, places[i], 4);
			assert_true(survey());
		}
		dmp_make_full();
		dmp_set(12, places[i], 4); /* offset of the directory */
		assert_false(survey());
		dmp_make_full();
		dmp_set(place_of(DMP_MODULES) + 4 + 20, places[i], 4); /* offset of a name */
		/* Offset of the CodeView record. */
		dmp_set(place_of(DMP_MODULES) + 4 + 80, places[i], 4);
		dmp_open();
		assert_string_equal(opened.snapshot.modules[1].path, "?");
		assert_null(opened.snapshot.modules[1].pdb);
		assert_int_equal(dmp_warnings("the file lacks the names of 1 module"), 1);
	}
}

TEST(more_than_process_can_have_is_not_counted)
{
	dmp_make_full();
	dmp_set(place_of(DMP_MEMORY64) + 16 + 8, UINT64_MAX, 8);
	dmp_open();
	assert_int_equal(dmp_warnings("184467"), 0);
	assert_int_equal(
		dmp_warnings(
			"cut short: more memory than a process can have is missing, in 4 ranges"),
		1);
}

TEST(odd_heads_of_list_of_regions_are_refused)
{
	static const uint32_t odd[][2] = {
		{0, 48}, {15, 48}, {16, 47}, {16, 0}, {UINT32_MAX, 48}, {16, UINT32_MAX}};

	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
		dmp_make_full();
		dmp_set(place_of(DMP_INFOS), odd[i][0], 4);
		dmp_set(place_of(DMP_INFOS) + 4, odd[i][1], 4);
		dmp_open();
		assert_int_equal(dmp_warnings("cut short"), 1);
		sum += dmp_survey(dmp.len);
	}
}

TEST(names_of_odd_length_lose_half_character)
{
	size_t name;

	dmp_make_full();
	name = dmp.bytes[place_of(DMP_MODULES) + 4 + 20] |
	       (size_t)dmp.bytes[place_of(DMP_MODULES) + 4 + 21] << 8;
	dmp_set(name, 7, 4); /* odd number of bytes */
	dmp_open();
	assert_string_equal(opened.snapshot.modules[1].path, "C:\\");
	dmp_set(name, 1, 4);
	dmp_open();
	assert_string_equal(opened.snapshot.modules[1].path, "?");
	dmp_set(name, UINT32_MAX, 4); /* the NUL ends the name */
	dmp_open();
	assert_string_equal(opened.snapshot.modules[1].path, DMP_IMAGE);
}

/* ---------------------------------------------------------------- more than the file has */

/* Every range claims to be the whole file. */
TEST(shared_bytes_are_not_much_memory)
{
	struct target_region region = {0};
	uint64_t total = 0;
	size_t at;

	dmp_begin(1, 2);
	at = dmp_write(4000, 4);
	for (size_t i = 0; i < 4000; i++) {
		dmp_write(0x100000 * (i + 1), 8);
		dmp_write(0xffff, 4);
		dmp_write(0, 4);
	}
	dmp_stream(DMP_MEMORY, at, dmp.len - at);
	dmp_open();
	while (!opened.target.ops->region(&opened.target, region.end, &region))
		total += region.end - region.addr;
	assert_true(total <= dmp.len);
	assert_int_equal(dmp_warnings("of memory left out: the file is too small"), 1);
}

/* Every module has the same very long name. */
TEST(shared_names_are_not_much_text)
{
	uint64_t bytes = 0;
	size_t name, at;

	dmp_start(2, 2);
	dmp_system(9);
	name = dmp_write(60000, 4);
	for (size_t i = 0; i < 30000; i++)
		dmp_write(0x20ac, 2); /* three bytes in UTF-8 */
	at = dmp_write(600, 4);
	for (size_t i = 0; i < 600; i++) {
		dmp_write(0x100000 * (i + 1), 8);
		dmp_write(0x1000, 4);
		dmp_write(0, 8);
		dmp_write(name, 4);
		dmp_write_zeros(84);
	}
	dmp_stream(DMP_MODULES, at, dmp.len - at);
	dmp_open();
	assert_int_equal(opened.snapshot.module_count, 600);
	for (size_t i = 0; i < 600; i++)
		bytes += strlen(opened.snapshot.modules[i].path);
	assert_true(bytes <= 2 * dmp.len + 600);
	assert_int_equal(dmp_warnings("the file lacks the names of"), 1);
}

TEST(modules_are_made_not_to_overlap)
{
	static const struct dmp_module modules[] = {
		{0x10000, 0x10000000, 0, 0, "lies.dll", NULL},
		{0x40000, 0x1000, 0, 0, "true.dll", NULL},
		{0x50000, 0, 0, 0, "empty.dll", NULL},
		{UINT64_MAX - 0xfff, 0x80000000, 0, 0, "end.dll", NULL},
	};

	dmp_start(2, 2);
	dmp_system(9);
	dmp_modules(modules, 4, 0);
	dmp_open();
	assert_int_equal(opened.snapshot.module_count, 3);
	assert_true(opened.snapshot.modules[0].size_bytes == 0x30000);
	assert_string_equal(opened.snapshot.modules[1].path, "true.dll");
	assert_true(opened.snapshot.modules[2].size_bytes == 0xfff);
	assert_int_equal(
		dmp_warnings("2 modules without a size, or overlapping another module"), 1);
	sum += dmp_survey(dmp.len);
}

TEST(of_streams_of_kind_first_counts)
{
	size_t at;

	dmp_begin(498, 2);
	at = place_of(DMP_MODULES);
	while (dmp.streams < 500)
		dmp_stream(DMP_MODULES, at, 4 + 2 * 108);
	dmp_open();
	assert_int_equal(opened.snapshot.module_count, 2);
	assert_int_equal(dmp_warnings("the file has 498 lists twice"), 1);
}

/* ---------------------------------------------------------------- random damage */

static uint64_t seed;

static uint64_t dice(uint64_t limit)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed * 0x2545f4914f6cdd1du >> 16) % limit;
}

/* Changes some bytes, mostly at the start of the file, where the lists are. */
static void damage(unsigned char *bytes, size_t len)
{
	static const uint32_t numbers[] = {0, 1, 4, 0x7fffffff, 0x80000000, UINT32_MAX};

	for (uint64_t left = 1 + dice(8); left; left--) {
		size_t at = (size_t)dice(dice(4) ? (len < 0x900 ? len : 0x900) : len);

		if (dice(2))
			bytes[at] = (unsigned char)dice(256);
		else if (at + 4 <= len)
			memcpy(bytes + at, &numbers[dice(6)], 4);
	}
}

static void mutate(const unsigned char *bytes, size_t len, int rounds)
{
	unsigned char *copy = malloc(len);

	assert_non_null(copy);
	for (int i = 0; i < rounds; i++) {
		memcpy(copy, bytes, len);
		damage(copy, len);
		survey_bytes(copy, dice(8) ? len : (size_t)dice(len + 1));
	}
	free(copy);
}

TEST(random_damage_is_survived)
{
	seed = 20261120;
	dmp_make_full();
	mutate(dmp.bytes, dmp.len, 20000);
}
