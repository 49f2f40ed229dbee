#include "tests/unit/t.h"

#include "tests/unit/test_minidump.h"

static struct dmp_process process;
static struct dmp_range ranges[7];

static const uint64_t teb_list[] = {0x123000, DMP_TEB, DMP_TEB32};

/* Makes the file with the current contents of the ranges. */
static void make(unsigned architecture, const uint64_t *tebs, size_t threads,
	const struct dmp_module *modules, size_t module_count, size_t range_count)
{
	dmp_start(5, 2);
	dmp_system(architecture);
	dmp_misc();
	dmp_threads(tebs, threads, 0);
	dmp_modules(modules, module_count, 0);
	dmp_memory64(ranges, range_count);
	dmp_open();
}

/* ---------------------------------------------------------------- the PEB */

TEST(what_does_not_name_itself_is_no_teb)
{
	size_t count = dmp_ranges_64(&process, ranges);

	dmp_poke(process.teb, 0x30, DMP_TEB + 8, 8);
	make(9, &teb_list[1], 1, dmp_program, 2, count);
	assert_true(opened.target.peb == 0);
	assert_int_equal(dmp_warnings("environment blocks, which lead to the heaps"), 1);
	assert_int_equal(opened.snapshot.module_count, 2);
	/* the program is the first module in the file, although another module has a lower
	 * address */
	assert_string_equal(opened.target.image, DMP_IMAGE);
}

/* Some writers sign-extend addresses above 2 GiB. */
TEST(addresses_of_32_bits_may_be_sign_extended)
{
	static const struct dmp_module high[] = {
		{0xfffffffff0000000u, 0x2000, 0, 0, "high.dll", NULL}};
	static const uint64_t teb[] = {0xffffffff9ef02000u};

	dmp_ranges_wow64(&process, ranges);
	dmp_fill_32(&process, 0x9ef02000, 0x9ef00000);
	ranges[2] = (struct dmp_range){0xffffffff9ef00000u, process.peb32, 0x1000};
	ranges[3] = (struct dmp_range){0xffffffff9ef02000u, process.teb32, 0x1000};
	make(0, teb, 1, high, 1, 4);
	assert_true(opened.target.peb == 0x9ef00000);
	assert_true(opened.snapshot.modules[0].base == 0xf0000000);
}

/* A 64-bit thread may have an exception list there, and an exception list is not a 32-bit TEB. */
TEST(exception_list_makes_no_32_bits)
{
	size_t count = dmp_ranges_wow64(&process, ranges);

	dmp_poke(process.teb32, 0x18, DMP_TEB32 + 4, 4);
	make(9, teb_list, 2, dmp_program, 2, count);
	assert_int_equal(opened.target.bits, 64);
	assert_true(opened.target.peb == DMP_PEB);
	assert_true(opened.target.host_peb == 0);
}

/* wow64.dll shows that the process is a 32-bit process, but the file lacks the 32-bit half. */
TEST(missing_32_bit_half_is_reported)
{
	static const struct dmp_module modules[] = {{DMP_EXE, 0x5000, 0, 0, DMP_IMAGE, NULL},
		{0x75380000, 0x3f000, 0, 0, "C:\\Windows\\System32\\WOW64.dll", NULL}};

	dmp_ranges_wow64(&process, ranges);
	make(9, teb_list, 2, modules, 2, 4);
	assert_int_equal(opened.target.bits, 32);
	assert_true(opened.target.peb == 0);
	assert_true(opened.target.host_peb == DMP_PEB);
	assert_string_equal(opened.target.image, DMP_IMAGE);
	assert_int_equal(dmp_warnings("environment blocks, which lead to the heaps"), 1);
}

/* Wine runs 32-bit programs in 32-bit Unix processes, without a 64-bit half. */
TEST(process_without_64_bit_half_lacks_nothing)
{
	dmp_ranges_wow64(&process, ranges);
	dmp_poke(process.peb, 0x18, 0, 8);
	dmp_poke(process.peb, 0x30, 0, 8);
	make(9, &teb_list[1], 1, dmp_program, 2, 6);
	assert_int_equal(opened.target.bits, 32);
	assert_true(opened.target.peb == DMP_PEB32);
	assert_true(opened.target.host_peb == 0);
	assert_int_equal(dmp_warnings("64-bit"), 0);
}

/* ---------------------------------------------------------------- modules of the 32-bit half */

#define NTDLL 0x7bc00000u
#define TRACER 0x10800000u

static unsigned char loader[0x1000];

/* Adds entry i to the 32-bit loader's list. The offsets are those of phnt. */
static void write_entry(unsigned i, uint64_t base, const char *path)
{
	const size_t at = 0x100 + 0x200 * i, text = at + 0x40;

	dmp_poke(loader, i ? at - 0x200 : 0xc, DMP_LOADER + at, 4);
	dmp_poke(loader, at, DMP_LOADER + 0xc, 4);
	dmp_poke(loader, at + 0x18, base, 4);
	dmp_poke(loader, at + 0x20, 0x4000, 4);
	dmp_poke(loader, at + 0x24, 2 * strlen(path), 2);
	dmp_poke(loader, at + 0x28, DMP_LOADER + text, 4);
	for (size_t k = 0; path[k]; k++)
		dmp_poke(loader, text + 2 * k, (unsigned char)path[k], 2);
}

/* Makes a file as a 64-bit writer does. Its list has the program and one module of the 64-bit
 * half. */
static void make_with_loader(void)
{
	static const struct dmp_module listed[] = {{DMP_EXE, 0x5000, 0, 7, DMP_IMAGE, NULL},
		{0x170000000u, 0x3f000, 0, 8, "C:\\Windows\\System32\\wow64.dll", NULL}};
	size_t count = dmp_ranges_wow64(&process, ranges);

	dmp_poke(process.peb32, 0x0c, DMP_LOADER, 4);
	ranges[count++] = (struct dmp_range){DMP_LOADER, loader, sizeof(loader)};
	make(9, &teb_list[1], 1, listed, 2, count);
}

TEST(modules_that_64_bit_writer_left_out_come_from_32_bit_loader)
{
	static const struct {
		uint64_t base;
		const char *path;
	} expected[] = {{DMP_EXE, DMP_IMAGE}, {TRACER, "C:\\App\\hsnap-tracer32.dll"},
		{NTDLL, "C:\\windows\\SysWOW64\\ntdll.dll"},
		{NTDLL + 0x10000, "C:\\windows\\SysWOW64\\sub\\other.dll"},
		{0x170000000u, "C:\\Windows\\System32\\wow64.dll"}};

	memset(loader, 0, sizeof(loader));
	write_entry(0, DMP_EXE, "C:\\elsewhere.exe"); /* the file's own entry takes precedence */
	write_entry(1, NTDLL, "C:\\windows\\system32\\ntdll.dll");
	write_entry(2, TRACER, "C:\\App\\hsnap-tracer32.dll");
	write_entry(3, NTDLL + 0x10000, "C:\\windows\\system32\\sub\\other.dll");
	write_entry(4, DMP_EXE + 0x1000, "C:\\App\\inside.dll");
	make_with_loader();
	assert_int_equal(opened.target.bits, 32);
	assert_int_equal(opened.snapshot.module_count, 5);
	for (size_t i = 0; i < 5; i++) {
		assert_true(opened.snapshot.modules[i].base == expected[i].base);
		assert_string_equal(opened.snapshot.modules[i].path, expected[i].path);
	}
	assert_string_equal(opened.target.image, DMP_IMAGE);
	assert_int_equal(opened.snapshot.modules[0].timestamp, 7);
	assert_false(opened.snapshot.modules[1].has_identity);
	assert_int_equal(dmp_warnings("1 module without a size, or overlapping another module"), 1);
}

TEST(list_of_32_bit_loader_without_end_adds_nothing)
{
	memset(loader, 0, sizeof(loader));
	write_entry(0, NTDLL, "C:\\windows\\system32\\ntdll.dll");
	write_entry(1, TRACER, "C:\\App\\hsnap-tracer32.dll");
	dmp_poke(loader, 0x300, DMP_LOADER + 0x100, 4);
	make_with_loader();
	assert_int_equal(opened.snapshot.module_count, 2);
}

/* ---------------------------------------------------------------- missing parts */

TEST(missing_memory_is_named)
{
	size_t count = dmp_ranges_64(&process, ranges);

	dmp_poke(process.peb, 0xe8, 7, 4);
	dmp_poke(process.peb, 0xf0, 0x77007700, 8);
	dmp_poke(process.peb, 0x30, 0xabcd0000, 8);
	dmp_start(3, 0);
	dmp_system(9);
	dmp_threads(&teb_list[1], 1, 0);
	dmp_memory(ranges, count);
	dmp_open();
	assert_int_equal(dmp_warnings("memory is missing: the process heap at ABCD0000"), 1);
	assert_int_equal(dmp_warnings("memory is missing: the list of 7 heaps at 77007700"), 1);
	/* 13824 is 0x400 + 0x200 + 0x1000 + 0x2000. */
	assert_int_equal(
		dmp_warnings(
			"the dump was written without full memory: it has 13824 bytes in 4 ranges"),
		1);
	assert_int_equal(dmp_warnings("no list of modules"), 1);
	assert_int_equal(dmp_warnings("pid and start time"), 1);
	assert_int_equal(opened.snapshot.warning_count, 5);
}

TEST(missing_peb_is_named)
{
	dmp_ranges_64(&process, ranges);
	ranges[2].len = 0x120; /* one field shorter than required */
	make(9, &teb_list[1], 1, dmp_program, 2, 4);
	assert_int_equal(
		dmp_warnings("memory is missing: the process environment block at 7FF500000"), 1);
	assert_int_equal(opened.snapshot.warning_count, 1);
}

TEST(modules_alone_are_something)
{
	dmp_start(1, 0);
	dmp_modules(dmp_program, 2, 0);
	dmp_open();
	assert_int_equal(opened.snapshot.module_count, 2);
	assert_int_equal(opened.target.bits, 32); /* the modules' addresses imply the bitness */
	assert_int_equal(dmp_warnings("names no known processor; read as 32-bit"), 1);
	assert_int_equal(dmp_warnings("no list of threads"), 1);
	assert_int_equal(dmp_warnings("its version of Windows"), 1);
	assert_string_equal(opened.target.os, "");
}

static void check_refused(const struct dmp *bad, int rc, const char *words)
{
	struct err err;

	assert_int_equal(dmp_open_bytes(bad->bytes, bad->len), rc);
	err = opened.err;
	assert_string_equal(err.place, "dir/made.dmp");
	assert_non_null(strstr(err.detail, words));
}

TEST(what_is_no_minidump_is_named)
{
	dmp_start(0, 0);
	check_refused(&dmp, -ERR_NO_HEAPS, "its modules and threads are missing, too");
	dmp.len = 31;
	check_refused(&dmp, -ERR_NOT_MINIDUMP, "cut short after 31 bytes");
	dmp.len = 3;
	check_refused(&dmp, -ERR_NOT_MINIDUMP, "does not begin with MDMP");
	dmp_start(0, 0);
	dmp_set(4, 0xa794, 2);
	check_refused(&dmp, -ERR_NOT_MINIDUMP, "version A794");
	dmp_set(0, 0x45474150, 4); /* PAGE */
	dmp_set(4, 0x34365544, 4); /* DU64 */
	check_refused(&dmp, -ERR_NOT_MINIDUMP, "a dump of the whole system");
}

TEST(another_system_is_no_windows)
{
	dmp_make_full();
	for (size_t i = 0; i < dmp.streams; i++) {
		size_t entry = 32 + 12 * i;

		if (dmp.bytes[entry] == DMP_SYSTEM)
			dmp_set(dmp.bytes[entry + 8] + (size_t)20, 0x8201, 4);
	}
	dmp_open();
	assert_string_equal(opened.target.os, "platform 8201");
	assert_int_equal(opened.target.os_build, 0);
}
