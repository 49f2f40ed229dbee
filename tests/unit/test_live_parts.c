#include "tests/unit/t.h"

#include "snapshot/command/command.h"
#include "snapshot/live/process.h"
#include "snapshot/target/target.h"

/* PAGE_* constants of the Windows SDK. */
enum {
	NOACCESS = 0x01,
	READONLY = 0x02,
	READWRITE = 0x04,
	WRITECOPY = 0x08,
	EXECUTE = 0x10,
	EXECUTE_READ = 0x20,
	EXECUTE_READWRITE = 0x40,
	EXECUTE_WRITECOPY = 0x80,
	GUARD = 0x100,
	NOCACHE = 0x200,
	WRITECOMBINE = 0x400,
};

TEST(protections_determine_access)
{
	const unsigned r = TARGET_READ, w = TARGET_WRITE, x = TARGET_EXECUTE;

	assert_int_equal(live_protection_access(READONLY), r);
	assert_int_equal(live_protection_access(READWRITE), r | w);
	assert_int_equal(live_protection_access(WRITECOPY), r | w);
	assert_int_equal(live_protection_access(EXECUTE), x);
	assert_int_equal(live_protection_access(EXECUTE_READ), r | x);
	assert_int_equal(live_protection_access(EXECUTE_READWRITE), r | w | x);
	assert_int_equal(live_protection_access(EXECUTE_WRITECOPY), r | w | x);
	assert_int_equal(live_protection_access(READWRITE | NOCACHE), r | w);
	assert_int_equal(live_protection_access(READWRITE | WRITECOMBINE), r | w);
}

TEST(guarded_and_closed_pages_are_not_to_be_read)
{
	assert_int_equal(live_protection_access(NOACCESS), 0);
	assert_int_equal(live_protection_access(0), 0);
	assert_int_equal(live_protection_access(READWRITE | GUARD), 0);
	assert_int_equal(live_protection_access(EXECUTE_READ | GUARD), 0);
	assert_int_equal(live_protection_access(READONLY | READWRITE), 0);
	assert_int_equal(live_protection_access(UINT32_MAX), 0);
}

/* MEM_* constants of the Windows SDK. */
enum { PRIVATE = 0x20000, MAPPED = 0x40000, IMAGE = 0x1000000 };

TEST(view_is_read_only_if_mapped_so)
{
	static const uint32_t readers[] = {READONLY, EXECUTE_READ, EXECUTE, NOACCESS};
	static const uint32_t writers[] = {
		READWRITE, WRITECOPY, EXECUTE_READWRITE, EXECUTE_WRITECOPY, READWRITE | GUARD};

	for (size_t i = 0; i < sizeof(readers) / sizeof(*readers); i++) {
		assert_true(live_is_read_only_view(MAPPED, READONLY, readers[i]));
		assert_false(live_is_read_only_view(PRIVATE, READONLY, readers[i]));
		assert_false(live_is_read_only_view(IMAGE, READONLY, readers[i]));
	}
	for (size_t i = 0; i < sizeof(writers) / sizeof(*writers); i++) {
		assert_false(live_is_read_only_view(MAPPED, READONLY, writers[i]));
		assert_false(live_is_read_only_view(MAPPED, writers[i], READONLY));
	}
	/* One of the protections is unknown. */
	assert_false(live_is_read_only_view(MAPPED, READONLY, 0));
}

TEST(written_page_of_copied_memory_is_copy)
{
	static const uint32_t written[] = {READWRITE, EXECUTE_READWRITE, READWRITE | GUARD};
	static const uint32_t others[] = {READONLY, EXECUTE_READ, WRITECOPY, EXECUTE_WRITECOPY, 0};

	for (size_t i = 0; i < sizeof(written) / sizeof(*written); i++) {
		assert_true(live_is_copy(IMAGE, written[i], EXECUTE_WRITECOPY));
		assert_true(live_is_copy(MAPPED, written[i], WRITECOPY));
		assert_true(live_is_copy(MAPPED, written[i], EXECUTE_WRITECOPY));
		assert_false(live_is_copy(MAPPED, written[i], READWRITE));
		assert_false(live_is_copy(PRIVATE, written[i], READWRITE));
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		assert_false(live_is_copy(IMAGE, others[i], EXECUTE_WRITECOPY));
		assert_false(live_is_copy(MAPPED, others[i], WRITECOPY));
	}
}

static void check_path(const char *path, const char *expected)
{
	struct arena arena;

	arena_init(&arena);
	assert_string_equal(
		live_wow64_path(&arena, path, "C:\\Windows\\system32", "C:\\Windows\\SysWOW64"),
		expected);
	arena_release(&arena);
}

TEST(paths_of_32_bit_modules_lead_to_their_files)
{
	check_path("C:\\Windows\\SYSTEM32\\ntdll.dll", "C:\\Windows\\SysWOW64\\ntdll.dll");
	check_path("c:\\windows\\system32\\a\\b.dll", "C:\\Windows\\SysWOW64\\a\\b.dll");
	check_path("C:\\Windows\\SysWOW64\\ntdll.dll", "C:\\Windows\\SysWOW64\\ntdll.dll");
	check_path("C:\\Windows\\system32x\\a.dll", "C:\\Windows\\system32x\\a.dll");
	check_path("C:\\Windows\\system32", "C:\\Windows\\system32");
	check_path("C:\\app.exe", "C:\\app.exe");
	check_path("", "");
}

TEST(word_is_part_of_name)
{
	assert_true(command_name_is_like("app.exe", "app"));
	assert_true(command_name_is_like("app.exe", "EXE"));
	assert_true(command_name_is_like("APP.exe", "app.EXE"));
	assert_true(command_name_is_like("aab.exe", "ab"));
	assert_true(command_name_is_like("app.exe", ""));
	assert_true(command_name_is_like("", ""));
	assert_false(command_name_is_like("app.exe", "apps"));
	assert_false(command_name_is_like("app.exe", "app.exe2"));
	assert_false(command_name_is_like("", "a"));
	assert_true(command_name_is_like("a.exe", "."));
	assert_false(command_name_is_like("aexe", "."));
}

TEST(pattern_is_whole_of_it)
{
	assert_true(command_name_is_like("app.exe", "*"));
	assert_true(command_name_is_like("", "*"));
	assert_true(command_name_is_like("app.exe", "a*.EXE"));
	assert_true(command_name_is_like("app.exe", "a?p.exe"));
	assert_true(command_name_is_like("app.exe", "**a***e"));
	assert_true(command_name_is_like("aXbXc", "*X*X*"));
	assert_false(command_name_is_like("app.exe", "a*x"));
	assert_false(command_name_is_like("app.exe", "?pp"));
	assert_false(command_name_is_like("app.exe", "app.exe?"));
	assert_false(command_name_is_like("", "?"));
}

/* A matcher that backtracks at every star would need years. */
TEST(many_stars_take_no_long_time)
{
	char name[2001], pattern[2001];

	memset(name, 'a', 2000);
	name[2000] = 0;
	for (int i = 0; i < 1998; i += 2)
		strcpy(pattern + i, "*a");
	strcpy(pattern + 1998, "b");
	assert_false(command_name_is_like(name, pattern));
}

#define NOW_MS 1795170348123 /* 2026-11-20T10:25:48.123Z */

static void check_listed(
	const struct ps_row *rows, size_t count, unsigned columns, const char *expected)
{
	char text[1000] = "";
	FILE *to = tmpfile();

	assert_non_null(to);
	ps_print(to, rows, count, columns, NOW_MS);
	rewind(to);
	assert_true(fread(text, 1, sizeof(text) - 1, to) > 0);
	assert_int_equal(fclose(to), 0);
	assert_string_equal(text, expected);
}

TEST(processes_are_listed_in_columns)
{
	static struct ps_row rows[] = {
		{4, 0, -1, -1, -1, -1, NULL, UINT64_MAX, 0, "System", NULL},
		{1234, 32, 5, 7, 1200, -1, "ust", 12345678, 1795170348123, "a b.exe",
			"\"C:\\a b.exe\" -x  \"1 2\""},
		{4294967295u, 64, 65536, 12345678, 1, -1, "tracer", UINT64_MAX - 1, 1,
			"\x1b[2Jevil\n.exe", "evil \r\x9b"},
		{5678, 64, -1, 3, -1, -1, "none", 1023900, 1, "", ""},
	};

	check_listed(rows, 4, 0,
		"   pid bits heaps  stacks     private threads handles  started            name  "
		"command line\n"
		"     4    ?     ?  ?                ?       ?       ?  ?                  System  "
		"?\n"
		"  1234   32     5  ust       11.8 MiB       7    1200  2026-11-20T10:25Z  a b.exe "
		" "
		"\"C:\\a b.exe\" -x  \"1 2\"\n"
		"4294967295   64 65536  tracer    16.0 EiB 12345678       1  1970-01-01T00:00Z  "
		"?[2Jevil?.exe  evil ??\n"
		"  5678   64     ?  none     999.9 KiB       3       ?  1970-01-01T00:00Z  \n");
	check_listed(&rows[1], 1, 99,
		"   pid bits heaps  stacks     private  thr handles  started  name  command "
		"line\n"
		"  1234   32     5  ust       11.8 MiB    7    1200  10:25Z   a b.exe  -x  \"1 "
		"2\"\n");
	rows[1].start_ms -= 86400000;
	check_listed(&rows[1], 1, 99,
		"   pid bits heaps  stacks     private  thr handles  started  name  command "
		"line\n"
		"  1234   32     5  ust       11.8 MiB    7    1200  11-19    a b.exe  -x  \"1 "
		"2\"\n");
	rows[1].gdi_count = 0;
	rows[3].gdi_count = 10000;
	check_listed(&rows[1], 3, 0,
		"   pid bits heaps  stacks     private threads handles   gdi  started            "
		"name  command line\n"
		"  1234   32     5  ust       11.8 MiB       7    1200     0  2026-11-19T10:25Z  a "
		"b.exe  \"C:\\a b.exe\" -x  \"1 2\"\n"
		"4294967295   64 65536  tracer    16.0 EiB 12345678       1     ?  "
		"1970-01-01T00:00Z  ?[2Jevil?.exe  evil ??\n"
		"  5678   64     ?  none     999.9 KiB       3       ? 10000  1970-01-01T00:00Z  "
		"\n");
}

#define EURO_10 "\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac\u20ac"

TEST(command_lines_are_cut_to_terminal_without_their_program)
{
	static const struct {
		const char *line, *shown;
	} lines[] = {
		{"\"C:\\a b\\app.exe\" --port 1", "app.exe  --port 1"},
		{"app.exe\t-x \"-y z\"", "app.exe  -x \"-y z\""},
		{"app", "app.exe"},
		{"", "app.exe"},
		{"\"C:\\never ends", "app.exe"},
		{"\"app\"-x", "app.exe  -x"},
		{"a " EURO_10 EURO_10, "app.exe  " EURO_10 "\u20ac"},
	};
	char expected[1000];

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		struct ps_row row = {1, 64, 1, 1, 2, -1, "none", 1024, 1, "app.exe", lines[i].line};

		snprintf(expected, sizeof(expected),
			"   pid bits heaps  stacks     private  thr handles  started  name  "
			"command "
			"line\n"
			"     1   64     1  none       1.0 KiB    1       2  01-01    %s\n",
			lines[i].shown);
		check_listed(&row, 1, 81, expected);
	}
}

static void check_missing(
	size_t closed_count, size_t other_count, size_t ended_count, const char *expected)
{
	char text[200] = "";
	FILE *to = tmpfile();

	assert_non_null(to);
	ps_print_missing(to, closed_count, other_count, ended_count);
	rewind(to);
	text[fread(text, 1, sizeof(text) - 1, to)] = '\0';
	assert_int_equal(fclose(to), 0);
	assert_string_equal(text, expected);
}

TEST(ended_and_64_bit_processes_are_counted_apart_from_closed_ones)
{
	check_missing(0, 0, 0, "");
	check_missing(3, 0, 0,
		"hsnap: 3 of the processes, shown as ?, cannot be read: run hsnap as "
		"administrator\n");
	check_missing(0, 0, 1, "hsnap: 1 more ended before they could be read\n");
	check_missing(0, 2, 0, "hsnap: use the 64-bit hsnap for 64-bit processes (2 of them)\n");
	check_missing(1, 4, 2,
		"hsnap: use the 64-bit hsnap for 64-bit processes (4 of them)\n"
		"hsnap: 1 of the processes, shown as ?, cannot be read: run hsnap as "
		"administrator\nhsnap: 2 more ended before they could be read\n");
}
