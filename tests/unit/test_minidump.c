#include "tests/unit/t.h"

#include "tests/unit/test_minidump.h"

#include <unistd.h>

#include "core/base/os.h"
#include "core/base/text.h"

/* ---------------------------------------------------------------- streams */

TEST(target_has_facts_of_streams)
{
	dmp_make_full();
	dmp_open();
	assert_string_equal(opened.target.name, "made.dmp");
	assert_string_equal(opened.target.os, "Windows 10.0.19041");
	assert_int_equal(opened.target.os_build, 19041);
	assert_int_equal(opened.target.bits, 64);
	assert_int_equal(opened.target.pid, DMP_PID);
	assert_true(opened.target.start_ms == (int64_t)DMP_START * 1000);
	assert_true(opened.target.time_ms == (int64_t)DMP_TIME * 1000);
	assert_true(opened.target.peb == DMP_PEB);
	assert_true(opened.target.host_peb == 0);
	assert_true(opened.target.is_file);
	assert_false(opened.target.is_wine);
	assert_string_equal(opened.target.image, DMP_IMAGE);
	assert_int_equal(opened.snapshot.warning_count, 0);
	dmp_survey(dmp.len);
}

TEST(modules_have_their_identity)
{
	const struct module *modules;

	dmp_make_full();
	dmp_open();
	modules = opened.snapshot.modules;
	assert_int_equal(opened.snapshot.module_count, 2);
	assert_true(modules[0].base == DMP_DLL && modules[1].base == DMP_EXE);
	assert_true(modules[1].size_bytes == 0x5000);
	assert_string_equal(modules[1].path, DMP_IMAGE);
	assert_true(modules[1].has_identity);
	assert_int_equal(modules[1].checksum, 0xabcd);
	assert_int_equal(modules[1].timestamp, 0x5f000001);
	assert_string_equal(modules[1].pdb, "program.pdb");
	assert_string_equal(modules[1].pdb_guid, "123456789ABCDEF00123456789ABCDEF");
	assert_int_equal(modules[1].pdb_age, 3);
	assert_string_equal(modules[0].path, "C:\\App\\low.dll");
	assert_int_equal(modules[0].timestamp, 0x5f000002);
	assert_null(modules[0].pdb);
	assert_null(modules[0].pdb_guid);
}

/* Some writers align the lists. */
TEST(lists_may_leave_four_bytes_behind_their_number)
{
	static const uint64_t tebs[] = {DMP_TEB};
	struct dmp_process process;
	struct dmp_range ranges[6];
	size_t count = dmp_ranges_64(&process, ranges);

	dmp_start(4, 2);
	dmp_system(9);
	dmp_threads(tebs, 1, 4);
	dmp_modules(dmp_program, 2, 4);
	dmp_memory64(ranges, count);
	dmp_open();
	assert_true(opened.target.peb == DMP_PEB);
	assert_int_equal(opened.snapshot.module_count, 2);
	assert_true(opened.snapshot.modules[1].base == DMP_EXE);
}

TEST(names_outside_of_ascii_become_utf8)
{
	/* U+00E9, U+20AC, U+1F600 as a surrogate pair, and half a pair */
	static const unsigned char units[] = {
		0xe9, 0, 0xac, 0x20, 0x3d, 0xd8, 0x00, 0xde, 0x3d, 0xd8, 'x', 0};
	static const char utf8[] = "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbdx";
	char text[32];

	assert_int_equal(text_from_utf16(units, 6, text, sizeof(text)), strlen(utf8));
	assert_string_equal(text, utf8);
	assert_int_equal(text_from_utf16(units, 6, NULL, 0), strlen(utf8));
	/* The text is cut before the character that does not fit. */
	assert_int_equal(text_from_utf16(units, 6, text, 8), strlen(utf8));
	assert_string_equal(text, "\xc3\xa9\xe2\x82\xac");
	assert_int_equal(text_from_utf16(units, 3, text, sizeof(text)), 8);
	assert_string_equal(text, "\xc3\xa9\xe2\x82\xac\xef\xbf\xbd");
	assert_int_equal(
		text_from_utf16((const unsigned char *)"a\0\0\0b", 2, text, sizeof(text)), 1);
	assert_string_equal(text, "a");
}

/* ---------------------------------------------------------------- memory */

static unsigned char pattern[64];

static void check_bytes(uint64_t addr, size_t from, size_t len)
{
	unsigned char bytes[64];

	assert_int_equal(target_read(&opened.target, addr, bytes, len), 0);
	assert_memory_equal(bytes, pattern + from, len);
}

/* The ranges are adjacent in memory, but in the file they are neither adjacent nor in order. */
TEST(unsorted_ranges_read_as_one)
{
	const struct dmp_range ranges[] = {
		{0x2020, pattern + 0x20, 0x10},
		{0x2000, pattern, 0x10},
		{0x2030, pattern + 0x30, 0x10},
		{0x2010, pattern + 0x10, 0x10},
		{0x5000, pattern, 4},
	};
	struct target_region region;
	unsigned char bytes[64];
	size_t len;

	dmp_begin(1, 0);
	dmp_memory(ranges, 5);
	dmp_open();
	check_bytes(0x2000, 0, 0x40);
	check_bytes(0x200f, 0xf, 2);
	assert_int_equal(target_read(&opened.target, 0x2000, bytes, 0x40), 0);
	assert_int_equal(target_read(&opened.target, 0x2001, bytes, 0x40), -ERR_READ);
	assert_int_equal(target_read(&opened.target, 0x1fff, bytes, 2), -ERR_READ);
	assert_int_equal(target_read(&opened.target, UINT64_MAX, bytes, 1), -ERR_READ);
	assert_int_equal(opened.target.ops->region(&opened.target, 0, &region), 0);
	assert_true(region.addr == 0x2000 && region.end == 0x2040);
	assert_int_equal(opened.target.ops->region(&opened.target, 0x2033, &region), 0);
	assert_true(region.addr == 0x2000 && region.end == 0x2040);
	assert_int_equal(opened.target.ops->region(&opened.target, 0x2040, &region), 0);
	assert_true(region.addr == 0x5000 && region.end == 0x5004);
	assert_int_equal(opened.target.ops->region(&opened.target, 0x5004, &region), -ERR_READ);
	assert_memory_equal(
		opened.target.ops->view(&opened.target, 0x2024, &len), pattern + 0x24, 0xc);
	assert_int_equal(len, 0xc);
	assert_null(opened.target.ops->view(&opened.target, 0x4fff, &len));
}

/* All ranges are in the file in the order of their addresses, so one view covers the rest. */
TEST(view_goes_on_over_ranges)
{
	const struct dmp_range ranges[] = {{0x1000, pattern, 0x10}, {0x1010, pattern + 0x10, 0x20},
		{0x1030, pattern + 0x30, 0x10}, {0x1050, pattern, 0x10}};
	const unsigned char *bytes;
	size_t len;

	dmp_begin(1, 2);
	dmp_memory64(ranges, 4);
	dmp_open();
	bytes = opened.target.ops->view(&opened.target, 0x1008, &len);
	assert_int_equal(len, 0x38);
	assert_memory_equal(bytes, pattern + 8, 0x38);
	/* The result points into the file; it is not a copy. */
	assert_true(bytes > opened.bytes && bytes + len <= opened.bytes + dmp.len);
	assert_int_equal(opened.target.reads, 0);
}

TEST(of_overlapping_ranges_lower_one_counts)
{
	static const unsigned char other[64] = {0};
	const struct dmp_range ranges[] = {
		{0x1010, other, 0x20}, /* only this range's end is used */
		{0x1000, pattern, 0x18}, {0x1004, other, 4}, /* lies inside the previous range */
		{0x1000, other, 8}, /* equal start, but later in the file */
	};
	unsigned char bytes[64];

	dmp_begin(1, 0);
	dmp_memory(ranges, 4);
	dmp_open();
	check_bytes(0x1000, 0, 0x18);
	assert_int_equal(target_read(&opened.target, 0x1018, bytes, 0x18), 0);
	assert_memory_equal(bytes, other, 0x18);
	assert_int_equal(target_read(&opened.target, 0x1018, bytes, 0x19), -ERR_READ);
	assert_int_equal(dmp_warnings("3 ranges of memory overlap with another"), 1);
}

TEST(both_lists_of_memory_count)
{
	const struct dmp_range one = {0x1000, pattern, 0x10}, other = {0x1010, pattern + 16, 0x10};

	dmp_begin(2, 2);
	dmp_memory(&one, 1);
	dmp_memory64(&other, 1);
	dmp_open();
	check_bytes(0x1000, 0, 0x20);
}

/* ---------------------------------------------------------------- regions */

struct wanted_region {
	uint64_t addr, end;
	unsigned access;
	bool is_image;
};

static void check_regions(const struct wanted_region *wanted, size_t count)
{
	struct target_region region = {0};

	for (size_t i = 0; i < count; i++) {
		assert_int_equal(opened.target.ops->region(&opened.target, region.end, &region), 0);
		assert_true(region.addr == wanted[i].addr);
		assert_true(region.end == wanted[i].end);
		assert_int_equal(region.access, wanted[i].access);
		assert_int_equal(region.is_image, wanted[i].is_image);
	}
	assert_int_equal(opened.target.ops->region(&opened.target, region.end, &region), -ERR_READ);
}

TEST(regions_have_access_of_list)
{
	static unsigned char page[0x1000];
	const struct dmp_range ranges[] = {{0x20000, page, 0x1000}, {0x21000, page, 0x1000},
		{0x22000, page, 0x1000}, {0x23000, page, 0x1000}, {0x24000, page, 0x1000},
		{0x25000, page, 0x1000}, {0x26000, page, 0x1000}, {0x30000, page, 0x1000}};
	static const struct dmp_info infos[] = {
		{0x30000, 0x4000, 0x1000, 0x04, 0x20000}, /* larger than its part in the file */
		{0x20000, 0x1000, 0x1000, 0x02, 0x20000}, /* readable */
		{0x21000, 0x1000, 0x1000, 0x104, 0x20000}, /* guard page */
		{0x22000, 0x1000, 0x1000, 0x10, 0x20000}, /* executable */
		/* Executable and readable; part of an image. */
		{0x23000, 0x1000, 0x1000, 0x20, 0x1000000},
		{0x24000, 0x1000, 0x1000, 0x40, 0x20000}, /* executable, readable and writable */
		{0x25000, 0x1000, 0x2000, 0x00, 0x20000}, /* reserved: not listed */
		{0x26000, 0x1000, 0x1000, 0x08, 0x40000}, /* copy on write */
		{0x50000, 0x1000, 0x1000, 0x04, 0x20000}, /* the file has no bytes */
	};
	static const struct wanted_region wanted[] = {
		{0x20000, 0x21000, TARGET_READ, false},
		{0x21000, 0x22000, 0, false},
		{0x22000, 0x23000, TARGET_EXECUTE, false},
		{0x23000, 0x24000, TARGET_READ | TARGET_EXECUTE, true},
		{0x24000, 0x25000, TARGET_READ | TARGET_WRITE | TARGET_EXECUTE, false},
		{0x25000, 0x26000, TARGET_READ, false}, /* the file has the bytes but no entry */
		{0x26000, 0x27000, TARGET_READ | TARGET_WRITE, false},
		{0x30000, 0x31000, TARGET_READ | TARGET_WRITE, false},
	};

	dmp_begin(2, 2);
	dmp_infos(infos, 9);
	dmp_memory64(ranges, 8);
	dmp_open();
	check_regions(wanted, 8);
	assert_true(target_committed_bytes(&opened.target) == 0x8000);
}

TEST(views_that_were_mapped_to_be_read_are_known)
{
	static unsigned char page[0x1000];
	static const struct dmp_info infos[] = {
		{0x20000, 0x1000, 0x1000, 0x02, 0x40000}, /* readable */
		{0x21000, 0x1000, 0x1000, 0x02, 0x40000}, /* readable, in a writable mapping */
		{0x22000, 0x1000, 0x1000, 0x02, 0x20000}, /* private memory */
		{0x23000, 0x1000, 0x1000, 0x20, 0x40000}, /* executable and readable */
	};
	static const uint32_t mapped_as[] = {0x02, 0x04, 0x02, 0x20};
	struct dmp_range ranges[4];
	struct target_region region = {0};

	for (size_t i = 0; i < 4; i++)
		ranges[i] = (struct dmp_range){infos[i].addr, page, 0x1000};
	dmp_begin(2, 2);
	dmp_infos_of(infos, mapped_as, 4);
	dmp_memory64(ranges, 4);
	dmp_open();
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(opened.target.ops->region(&opened.target, region.end, &region), 0);
		assert_true(region.addr == infos[i].addr);
		assert_int_equal(region.is_read_only_view, i == 0 || i == 3);
	}
}

TEST(without_list_modules_can_be_executed)
{
	static unsigned char page[0x6000];
	/* The first range surrounds the module DMP_DLL, 0x10000 to 0x13000. */
	const struct dmp_range ranges[] = {{0xf000, page, 0x5000}, {0x401000, page, 0x1000}};
	static const struct wanted_region wanted[] = {
		{0xf000, 0x10000, TARGET_READ, false},
		{0x10000, 0x13000, TARGET_READ | TARGET_EXECUTE, true},
		{0x13000, 0x14000, TARGET_READ, false},
		{0x401000, 0x402000, TARGET_READ | TARGET_EXECUTE, true},
	};

	dmp_begin(1, 2);
	dmp_memory64(ranges, 2);
	dmp_open();
	check_regions(wanted, 4);
}

/* ---------------------------------------------------------------- the file */

static FILE *new_file(char *path)
{
	const char *base = getenv("TMPDIR");
	FILE *file;
	int fd;

	snprintf(path, 300, "%s/minidump-XXXXXX", base ? base : "build");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	file = fdopen(fd, "wb");
	assert_non_null(file);
	return file;
}

TEST(file_is_mapped)
{
	char path[300];
	FILE *file = new_file(path);
	struct target target;
	struct err err;
	struct os_map map;

	assert_int_equal(target_open_minidump(&target, path, &err), -ERR_EMPTY);
	dmp_make_full();
	assert_int_equal(fwrite(dmp.bytes, 1, dmp.len, file), dmp.len);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(os_map(&map, path, &err), 0);
	assert_int_equal(map.len, dmp.len);
	assert_memory_equal(map.bytes, dmp.bytes, dmp.len);
	os_unmap(&map);
	assert_null(map.bytes);
	assert_int_equal(target_open_minidump(&target, path, &err), 0);
	assert_true(target.peb == DMP_PEB);
	target.ops->close(&target);
	os_remove(path);
	assert_int_equal(target_open_minidump(&target, path, &err), -ERR_OPEN);
	assert_string_equal(err.place, path);
	assert_int_equal(target_open_minidump(&target, "/dev/null", &err), -ERR_NOT_FILE);
	assert_int_equal(target_open_minidump(&target, "/", &err), -ERR_OPEN);
}

#define HUGE_ADDR 0x200000000u
#define HUGE_BYTES (((uint64_t)5 << 30) + 0x123) /* too large for 32 bits */

/* Writes the valid process after a large range of zeros, which is a hole in a sparse file. */
static void make_huge(FILE *file)
{
	static const uint64_t tebs[] = {DMP_TEB};
	struct dmp_process process;
	struct dmp_range ranges[6];
	size_t count = dmp_ranges_64(&process, ranges), at;

	dmp_start(4, 2);
	dmp_system(9);
	dmp_threads(tebs, 1, 0);
	dmp_modules(dmp_program, 2, 0);
	at = dmp_write(count + 1, 8);
	dmp_write(at + 16 + 16 * (count + 1), 8);
	dmp_write(HUGE_ADDR, 8);
	dmp_write(HUGE_BYTES, 8);
	for (size_t i = 0; i < count; i++) {
		dmp_write(ranges[i].addr, 8);
		dmp_write(ranges[i].len, 8);
	}
	dmp_stream(DMP_MEMORY64, at, dmp.len - at);
	assert_int_equal(fwrite(dmp.bytes, 1, dmp.len, file), dmp.len);
	assert_int_equal(fseeko(file, (off_t)(dmp.len + HUGE_BYTES), SEEK_SET), 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(fwrite(ranges[i].bytes, 1, ranges[i].len, file), ranges[i].len);
}

TEST(file_of_more_than_4_gib_is_read_where_it_lies)
{
	char path[300];
	FILE *file = new_file(path);
	unsigned char bytes[4];
	struct target target;
	struct err err;
	size_t len;

	make_huge(file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(target_open_minidump(&target, path, &err), 0);
	os_remove(path);
	assert_true(target.peb == DMP_PEB);
	assert_string_equal(target.image, DMP_IMAGE);
	assert_non_null(target.ops->view(&target, HUGE_ADDR, &len));
	assert_true(len == HUGE_BYTES);
	assert_int_equal(target_read(&target, HUGE_ADDR + HUGE_BYTES - 4, bytes, 4), 0);
	assert_memory_equal(bytes, "\0\0\0", 4);
	assert_int_equal(target_read(&target, HUGE_ADDR + HUGE_BYTES - 3, bytes, 4), -ERR_READ);
	target.ops->close(&target);
}

TEST(long_name_keeps_its_end)
{
	struct target target;
	struct err err;

	dmp_make_full();
	assert_int_equal(target_open_minidump_bytes(&target, dmp.bytes, dmp.len,
				 "x/\xc3\xa9"
				 "123456789012345678901234567890123\x1b.dmp",
				 &err),
		0);
	/* 40 bytes are one byte too many, so the first character is dropped as a whole. A control
	 * byte is replaced. */
	assert_string_equal(target.name, "123456789012345678901234567890123?.dmp");
	target.ops->close(&target);
}

static int make_pattern(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (unsigned char)(i * 7 + 1);
	return 0;
}

GROUP(make_pattern, NULL)
