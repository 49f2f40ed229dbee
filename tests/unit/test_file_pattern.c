#include "tests/unit/t.h"

#include "core/io/file.h"
#include "snapshot/series/file_pattern.h"

/* This time is from "date -u -d 2026-11-20T10:25:48Z +%s". */
#define TIME_MS INT64_C(1795170348000)

enum {
	NAME = PATTERN_NAME,
	PID = PATTERN_PID,
	TIME = PATTERN_TIME,
	NUMBER = PATTERN_NUMBER,
};

static void check_words(const char *pattern, unsigned expected)
{
	struct err err = {0};
	unsigned words = 99;

	assert_int_equal(file_pattern_check(pattern, &words, &err), 0);
	assert_int_equal(words, expected);
}

static void check_wrong(const char *pattern)
{
	struct err err = {0};
	unsigned words = 99;

	assert_int_equal(file_pattern_check(pattern, &words, &err), -ERR_USAGE);
	assert_string_equal(err.place, pattern);
	assert_int_equal(words, 99);
	assert_int_equal(file_pattern_check(pattern, &words, NULL), -ERR_USAGE);
}

TEST(words_in_braces_are_known_or_refused)
{
	check_words("", 0);
	check_words("a.txt", 0);
	check_words("}a}", 0);
	check_words("{name}.txt", NAME);
	check_words("{name}-{pid}.txt", NAME | PID);
	check_words("{pid}", PID);
	check_words("{{pid}", 0);
	check_words("{{{pid}", PID);
	check_words("{{{{{time}{{n}", TIME);
	check_words("{name}{pid}/{time}{n}", NAME | PID | TIME | NUMBER);
	check_wrong("{");
	check_wrong("a{pid");
	check_wrong("{}");
	check_wrong("{PID}");
	check_wrong("{pid }");
	check_wrong("{{{");
	check_wrong("{name}{date}");
	check_wrong("{nn}");
	check_wrong("{n}{n}");
	check_wrong("{time}a{time}");
}

TEST(times_and_numbers_are_for_last_part)
{
	check_wrong("{time}/a.txt");
	check_wrong("a{n}b/{n}");
	check_wrong("{n}/");
	check_wrong("/{pid}/{time}/{pid}");
	check_words("{pid}/", PID);
	check_words("/{{n}/{n}", NUMBER);
	assert_string_equal(file_pattern_last("a/b/{n}.txt"), "{n}.txt");
	assert_string_equal(file_pattern_last("{n}.txt"), "{n}.txt");
	assert_string_equal(file_pattern_last("/{n}"), "{n}");
	assert_string_equal(file_pattern_last("a/"), "");
	assert_string_equal(file_pattern_last(""), "");
	/* tests/win/test_series_windows.c tests Windows' separators */
	assert_string_equal(folder_separators, "/");
	assert_string_equal(file_pattern_last("a\\D:{n}"), "a\\D:{n}");
}

static void check_path(const char *pattern, const struct file_names *names, const char *expected)
{
	struct buf path;
	unsigned words;

	assert_int_equal(file_pattern_check(pattern, &words, NULL), 0);
	buf_init(&path);
	buf_add_text(&path, "");
	file_pattern_add(&path, pattern, names);
	assert_string_equal(path.data, expected);
	buf_release(&path);
}

static void check_name(const char *pattern, const char *program, const char *expected)
{
	const struct file_names names = {.program = program, .pid = UINT32_MAX};

	check_path(pattern, &names, expected);
}

TEST(words_are_replaced)
{
	const struct file_names names = {"C:\\x.y\\app.exe", 7, TIME_MS + 999, 0, 12};
	const struct file_names again = {"app", 7, TIME_MS, 2, 1234567};

	check_name("d/{name}-{pid}.txt", "C:\\x.y\\app.exe", "d/app-4294967295.txt");
	check_name("{{name}{{{pid}}", "app.exe", "{name}{4294967295}");
	check_name("{name}", "{pid}.exe", "{pid}");
	check_name("a.txt", "app.exe", "a.txt");
	check_path("{name}-{pid}-{time}.txt", &names, "app-7-20261120T102548Z.txt");
	check_path("d/{n}", &names, "d/000012");
	check_path("{n}{time}", &again, "123456720261120T102548Z_2");
}

static void check_time(int64_t ms, const char *expected)
{
	const struct file_names names = {.program = "a", .time_ms = ms};

	check_path("{time}", &names, expected);
}

TEST(times_are_utc_to_second)
{
	check_time(0, "19700101T000000Z");
	check_time(-1, "19691231T235959Z");
	check_time(951827696789, "20000229T123456Z"); /* the time is from date(1) */
	check_time(253402300799999, "99991231T235959Z");
	check_time(253402300800000, "19700101T000000Z"); /* invalid year */
	check_time(INT64_MIN, "19700101T000000Z");
	check_time(INT64_MAX, "19700101T000000Z");
}

TEST(programs_are_called_by_their_name_alone)
{
	check_name("{name}", "app.EXE", "app");
	check_name("{name}", "app", "app");
	check_name("{name}", "a/b.exe/c.exe.exe", "c.exe");
	check_name("{name}", "d:b.exe", "b");
	check_name("{name}", ".exe", ".exe");
	check_name("{name}", "exe", "exe");
	check_name("{name}{name}", "\xc3\xa4 \xf0\x9f\x98\x80.exe",
		"\xc3\xa4 \xf0\x9f\x98\x80\xc3\xa4 \xf0\x9f\x98\x80");
}

TEST(hostile_names_are_made_harmless)
{
	check_name("{name}", "", "_");
	check_name("{name}", "C:\\", "_");
	/* A file name never looks like an option. */
	check_name("{name}", "C:\\-xapp.exe", "_xapp");
	check_name("d/{name}.txt", "--force.exe", "d/_-force.txt");
	check_name("{name}", "-", "_");
	check_name("{name}", "-.exe", "_");
	check_name("{name}/x", "..", "__/x");
	check_name("{name}/x", ".", "_/x");
	check_name("{name}/x", "a/../..", "__/x");
	check_name("{name}/x", "..\\...exe", "__/x");
	check_name("{name}", "/etc/passwd", "passwd");
	check_name("{name}", "\\\\server\\share\\x", "x");
	check_name("{name}", "file.txt:stream", "stream");
	check_name("{name}", "a<b>c\"d|e?f*g.exe", "a_b_c_d_e_f_g");
	check_name("{name}", "a\nb\x1b[2Jc\x7f", "a_b_[2Jc_");
	check_name("{name}",
		"a\xc2\x9b"
		"b",
		"a__b"); /* U+009B begins a terminal sequence */
	check_name("{name}", "\xff\xc3(\xe2\x82", "__(__");
	check_name("{name}", "a. .", "a___");
	check_name("{name}", ". a", ". a");
	check_name("{name}", "CON", "_CON");
	check_name("{name}", "nul.exe", "_nul");
	check_name("{name}", "Aux.tar.exe", "_Aux.tar");
	check_name("{name}", "prn .x", "_prn .x");
	check_name("{name}", "com0", "_com0");
	check_name("{name}", "LPT\xc2\xb2", "_LPT\xc2\xb2");
	check_name("{name}", "conout$", "_conout$");
	check_name("{name}", "console", "console");
	check_name("{name}", "com10", "com10");
	check_name("{name}", "com", "com");
}

static bool fits(const char *pattern, const char *name, uint64_t *number)
{
	struct buf bound;
	bool fits;

	buf_init(&bound);
	file_pattern_bind(&bound, pattern, "x\\a {b.exe", 42);
	fits = file_pattern_fits(file_pattern_last(bound.data), name, number);
	buf_release(&bound);
	return fits;
}

static void check_fits(const char *pattern, const char *name, uint64_t number)
{
	uint64_t found = 99;

	assert_true(fits(pattern, name, &found));
	assert_int_equal(found, number);
}

static void check_unfit(const char *pattern, const char *name)
{
	uint64_t number;

	assert_false(fits(pattern, name, &number));
}

TEST(what_was_made_is_read_back)
{
	check_fits("{name}/{name}-{pid}-{time}.txt", "a {b-42-20261120T102548Z.txt", 0);
	check_fits("{time}.txt", "20261120T102548Z_2.txt", 0);
	check_fits("{time}.txt", "20261120T102548Z_999999.txt", 0);
	check_fits("x{n}y", "x000007y", 7);
	check_fits("x{n}y", "x999999999999y", PATTERN_NUMBER_MAX);
	check_fits("{n}{pid}", "00000142", 1);
	check_fits("{pid}{n}", "42000042", 42);
	check_fits("{n}42", "4242424242", 42424242);
	check_fits("{time}_{n}", "20261120T102548Z_123456", 123456);
	check_fits("{time}_{n}", "20261120T102548Z_2_123456", 123456);
	check_fits("{time}_2", "20261120T102548Z_2", 0);
	check_fits("{time}{n}", "20261120T102548Z_2234567", 234567);
	check_fits("a{{n}", "a{n}", 0);
}

TEST(what_was_not_made_does_not_fit)
{
	static const char pattern[] = "{name}-{pid}-{time}.txt";

	check_fits(pattern, "a {b-42-20261120T102548Z.txt", 0);
	check_unfit(pattern, "");
	check_unfit(pattern, "a {b-42-20261120T102548Z.tx");
	check_unfit(pattern, "a {b-42-20261120T102548Z.txt2");
	check_unfit(pattern, "a {b-42-20261120T102548Z.txt.1234.tmp");
	check_unfit(pattern, "a {{b-42-20261120T102548Z.txt");
	check_unfit(pattern, "b-42-20261120T102548Z.txt");
	check_unfit(pattern, "a {b-420-20261120T102548Z.txt");
	check_unfit(pattern, "a {b-43-20261120T102548Z.txt");
	check_unfit(pattern, "a {b-42-20261120t102548z.txt");
	check_unfit(pattern, "a {b-42-20261120T102548Z_.txt");
	check_unfit(pattern, "a {b-42-20261120T102548Z_0.txt");
	check_unfit(pattern, "a {b-42-20261120T102548Z_02.txt");
	check_unfit(pattern, "a {b-42-20261120T102548Z_1000000.txt");
	check_unfit(pattern, "a {b-42-20261120T102548Z_-2.txt");
	/* Names are case-sensitive on this system. */
	check_unfit(pattern, "A {B-42-20261120T102548Z.txt");
	check_unfit("{n}", "");
	check_unfit("{n}", "00001");
	check_unfit("{n}", "0000001");
	check_unfit("{n}", "1000000000000");
	check_unfit("{n}", "-00001");
	check_unfit("{n}", "00000a");
	check_unfit("{time}", "2026112");
}

TEST(made_names_and_read_ones_are_same)
{
	static const char *const patterns[] = {"{name}-{pid}-{time}.txt", "{n}", "{time}{n}{pid}",
		"{pid}{n}{time}_{name}", "{n}_{time}"};
	struct buf path, bound;

	srand(7);
	buf_init(&path);
	buf_init(&bound);
	for (int i = 0; i < 5000; i++) {
		const char *pattern = patterns[i % 5];
		unsigned digits = (unsigned)rand() % 6;
		const struct file_names names = {"9.exe", (uint32_t)rand() % 1000,
			(int64_t)rand() * 100000, digits > 1 ? digits : 0,
			(uint64_t)rand() >> (rand() % 30)};
		uint64_t back = 0;
		unsigned words;

		assert_int_equal(file_pattern_check(pattern, &words, NULL), 0);
		buf_clear(&path);
		buf_clear(&bound);
		file_pattern_add(&path, pattern, &names);
		file_pattern_bind(&bound, pattern, names.program, names.pid);
		assert_true(file_pattern_fits(bound.data, path.data, &back));
		assert_true(!(words & NUMBER) || back == names.number);
	}
	buf_release(&path);
	buf_release(&bound);
}
