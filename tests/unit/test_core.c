#include "tests/unit/t.h"

#include <time.h>

#include "core/base/memory.h"
#include "core/base/opt.h"
#include "core/base/parse.h"
#include "core/base/sorted.h"
#include "core/base/text.h"
#include "core/dump/kv.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* ---------------------------------------------------------------- kv */

static struct kv kv;

static int release(void **state)
{
	(void)state;
	kv_release(&kv);
	return 0;
}

#undef TEST_AROUND
#define TEST_AROUND NULL, release

TEST(kv_reads_words)
{
	static const char text[] =
		" id=12  image=\"C:\\\\a b\\\\\\\"c\\\" \\x41.exe\" empty= quoted=\"\" id=13 ";
	uint64_t number = 7;

	assert_int_equal(kv_parse(&kv, text, strlen(text)), 0);
	assert_string_equal(kv_get(&kv, "image"), "C:\\a b\\\"c\" A.exe");
	assert_string_equal(kv_get(&kv, "empty"), "");
	assert_string_equal(kv_get(&kv, "quoted"), "");
	assert_string_equal(kv_get(&kv, "id"), "12"); /* the first value of a key is used */
	assert_null(kv_get(&kv, "i"));
	assert_null(kv_get(&kv, ""));
	assert_int_equal(kv_get_number(&kv, "missing", 10, &number), 0);
	assert_int_equal(number, 7);
	assert_int_equal(kv_get_number(&kv, "id", 16, &number), 0);
	assert_int_equal(number, 0x12);
	assert_int_equal(kv_get_number(&kv, "image", 10, &number), -ERR_BAD_LINE);
	assert_int_equal(kv_parse(&kv, "", 0), 0);
	assert_null(kv_get(&kv, "id")); /* parsing again replaces the old pairs */
}

TEST(kv_refuses_what_is_wrong)
{
	static const char *const wrong[] = {"word", "=x", " =x", "a=\"x", "a=\"", "a=\"\\\"",
		"a=\"\\", "a=\"\\x\"", "a=\"\\x4\"", "a=\"\\xG0\"", "a=\"\\x00\"", "a=\"\\n\"",
		"a=\"x\"y", "a=\"x\"\"y\"", "a=x\"y\"", "a=1 b", "a=1 b c=2", "a = 1"};

	for (size_t i = 0; i < COUNT(wrong); i++) {
		/* this copy has no terminating NUL: ASan detects a read past its end */
		size_t len = strlen(wrong[i]);
		char *text = malloc(len);

		memcpy(text, wrong[i], len);
		if (kv_parse(&kv, text, len) != -ERR_BAD_LINE)
			fail_msg("taken: %s", wrong[i]);
		free(text);
	}
}

TEST(kv_has_limit_of_pairs)
{
	struct buf text;

	buf_init(&text);
	for (int i = 0; i < KV_MAX; i++)
		buf_printf(&text, "k%d=%d ", i, i * i);
	assert_int_equal(kv_parse(&kv, text.data, text.len), 0);
	assert_string_equal(kv_get(&kv, "k31"), "961");
	buf_add_text(&text, "one=more");
	assert_int_equal(kv_parse(&kv, text.data, text.len), -ERR_BAD_LINE);
	buf_release(&text);
}

TEST(kv_quotes_every_byte)
{
	char all[256];
	struct buf text;

	for (int c = 1; c < 256; c++)
		all[c - 1] = (char)c;
	all[255] = '\0';
	buf_init(&text);
	buf_add_text(&text, "before=1 all=");
	kv_quote(&text, all);
	buf_add_text(&text, " after=2");
	for (size_t i = 0; i < text.len; i++) /* printable text on one line */
		assert_true((unsigned char)text.data[i] >= ' ' && text.data[i] != 0x7f);
	assert_int_equal(kv_parse(&kv, text.data, text.len), 0);
	assert_string_equal(kv_get(&kv, "all"), all);
	assert_string_equal(kv_get(&kv, "after"), "2");
	buf_release(&text);
}

/* Control characters and invalid UTF-8 survive a round trip, but are escaped in the line. */
TEST(kv_quotes_what_is_no_text)
{
	static const struct {
		const char *value, *quoted;
	} cases[] = {
		{"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x9b",
			"\"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x90\x9b\""},
		{"a\xc2\x9b"
		 "31m",
			"\"a\\xC2\\x9B31m\""},
		{"\xc2\x85\xc2\x80\xc2\xa0", "\"\\xC2\\x85\\xC2\\x80\xc2\xa0\""},
		{"\x9b", "\"\\x9B\""},
		{"\xff\xc3", "\"\\xFF\\xC3\""},
		{"\xc3\"\\", "\"\\xC3\\\"\\\\\""},
		{"\xed\xa0\x80|\xc0\xaf", "\"\\xED\\xA0\\x80|\\xC0\\xAF\""},
		{"\x1b\x7f", "\"\\x1B\\x7F\""},
		{"", "\"\""},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct buf text;

		buf_init(&text);
		buf_add_text(&text, "v=");
		kv_quote(&text, cases[i].value);
		assert_string_equal(text.data + 2, cases[i].quoted);
		assert_int_equal(kv_parse(&kv, text.data, text.len), 0);
		assert_string_equal(kv_get(&kv, "v"), cases[i].value);
		buf_release(&text);
	}
}

TEST(kv_numbers_are_whole_and_fit)
{
	static const char *const wrong[] = {"", "-1", "+1", " 1", "1 ", "0x10", "1a", "1.0",
		"18446744073709551616", "99999999999999999999999"};
	uint64_t value = 5;

	for (size_t i = 0; i < COUNT(wrong); i++)
		assert_int_equal(kv_number(wrong[i], 10, &value), -ERR_BAD_LINE);
	assert_int_equal(kv_number("10000000000000000", 16, &value), -ERR_BAD_LINE);
	assert_int_equal(kv_number("G", 16, &value), -ERR_BAD_LINE);
	assert_int_equal(value, 5);
	assert_int_equal(kv_number("18446744073709551615", 10, &value), 0);
	assert_true(value == UINT64_MAX);
	assert_int_equal(kv_number("fFfFFFffffffFFFF", 16, &value), 0);
	assert_true(value == UINT64_MAX);
	assert_int_equal(kv_number("000", 10, &value), 0);
	assert_int_equal(value, 0);
}

/* dates */

TEST(date_knows_these)
{
	static const struct {
		int64_t ms;
		const char *text;
	} known[] = {
		{0, "1970-01-01T00:00:00.000Z"},
		{-1, "1969-12-31T23:59:59.999Z"},
		{1234567890123, "2009-02-13T23:31:30.123Z"},
		{951782400000, "2000-02-29T00:00:00.000Z"},
		{951868800000, "2000-03-01T00:00:00.000Z"},
		{-2203977600000, "1900-02-28T00:00:00.000Z"},
		{-2203891200000, "1900-03-01T00:00:00.000Z"}, /* 2100 is not a leap year */
		{-2208988800000, "1900-01-01T00:00:00.000Z"},
		{4107542400000, "2100-03-01T00:00:00.000Z"},
		{-11644473600000, "1601-01-01T00:00:00.000Z"}, /* start of FILETIME */
		{-62135596800000, "0001-01-01T00:00:00.000Z"},
		{253402300799999, "9999-12-31T23:59:59.999Z"},
	};
	char text[DATE_TEXT_BYTES];
	int64_t ms;

	for (size_t i = 0; i < COUNT(known); i++) {
		assert_string_equal(date_text(known[i].ms, text), known[i].text);
		assert_int_equal(date_parse(known[i].text, &ms), 0);
		assert_true(ms == known[i].ms);
	}
	assert_string_equal(date_text(253402300800000, text), "?");
	assert_string_equal(date_text(-62135596800001, text), "?");
	assert_string_equal(date_text(INT64_MAX, text), "?");
	assert_string_equal(date_text(INT64_MIN, text), "?");
}

TEST(date_agrees_with_library)
{
	char text[DATE_TEXT_BYTES], theirs[DATE_TEXT_BYTES];
	int64_t parsed;

	for (int64_t s = -20000000000; s < 18000000000; s += 5 * 86400 + 3607) {
		time_t time = (time_t)s;
		struct tm tm;

		gmtime_r(&time, &tm);
		strftime(theirs, sizeof(theirs), "%Y-%m-%dT%H:%M:%S.007Z", &tm);
		assert_string_equal(date_text(s * 1000 + 7, text), theirs);
		assert_int_equal(date_parse(text, &parsed), 0);
		assert_true(parsed == (int64_t)timegm(&tm) * 1000 + 7);
	}
}

TEST(date_refuses_what_is_none)
{
	static const char *const wrong[] = {"", "?", "Z", "2026-11-20", "2026-11-20T10:25:48",
		"2026-11-20T10:25:48.1Z", "2026-11-20T10:25:48.12Z", "2026-11-20T10:25:48.1234Z",
		"2026-11-20T10:25:48.Z", "2026-11-20T10:25:48.-12Z", "2026-11-20T10:25:48. 12Z",
		"2026-11-20T10:25:48.123", "2026-11-20T10:25:48Zx", "2026-13-01T00:00:00Z",
		"2026-00-01T00:00:00Z", "2026-11-31T00:00:00Z", "2026-11-00T00:00:00Z",
		"2026-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2026-11-20T24:00:00Z",
		"2026-11-20T00:60:00Z", "2026-11-20T00:00:60Z", "0000-01-01T00:00:00Z",
		"2026-1-2T03:04:05Z", "2026- 1-02T03:04:05Z", "-026-01-02T03:04:05Z",
		"2026-+1-02T03:04:05Z", "2026-11-20 10:25:48Z", " 2026-11-20T10:25:48Z",
		"99999-01-01T00:00:00Z"};
	int64_t ms = 42;

	for (size_t i = 0; i < COUNT(wrong); i++) {
		if (date_parse(wrong[i], &ms) != -ERR_BAD_LINE)
			fail_msg("taken: %s", wrong[i]);
		assert_true(ms == 42);
	}
	/* milliseconds are optional */
	assert_int_equal(date_parse("1970-01-01T00:00:01Z", &ms), 0);
	assert_true(ms == 1000);
}

/* ---------------------------------------------------------------- options */

enum { PID = 1, NAME, FILE_OUT, HEX, OLD_D, VERBOSE };

static const struct opt table[] = {
	{PID, "p", "pid", "PID", "the process"},
	{NAME, "pn", NULL, "NAME", "its name"},
	{FILE_OUT, "f", "output", "FILE", "where to"},
	{HEX, NULL, "hex", NULL, "hexadecimal"},
	{OLD_D, "d", NULL, NULL, NULL},
	{VERBOSE, "v", "verbose", NULL, "say more"},
	{0},
};

/* Returns the parsed arguments as text, for example "1=12 3=out A=file"; "!" means an error. */
static const char *meaning(bool stop_at_argument, int argc, const char *const *argv)
{
	static char text[400];
	char *args[16] = {0};
	struct opt_state opts;
	struct err err = {0};
	int id;

	for (int i = 0; i < argc; i++)
		args[i + 1] = (char *)(uintptr_t)argv[i];
	opt_init(&opts, table, argc + 1, args);
	opts.stop_at_argument = stop_at_argument;
	text[0] = '\0';
	while ((id = opt_next(&opts, &err))) {
		size_t len = strlen(text);

		if (id == -ERR_USAGE) {
			assert_int_equal(err.code, ERR_USAGE);
			assert_true(err.place[0]);
			strcat(text, "!");
			return text;
		}
		snprintf(text + len, sizeof(text) - len, "%s%c=%s", len ? " " : "",
			id == OPT_ARGUMENT ? 'A' : '0' + id, opts.value ? opts.value : "");
	}
	return text;
}

#define MEANS(expected, ...)                                                                       \
	do {                                                                                       \
		const char *const args_[] = {__VA_ARGS__};                                         \
		assert_string_equal(meaning(false, (int)COUNT(args_), args_), expected);           \
	} while (0)

TEST(options_in_every_spelling)
{
	MEANS("1=12", "-p", "12");
	MEANS("1=12", "-p12");
	MEANS("1=12", "-p:12");
	MEANS("1=12", "-p=12");
	MEANS("1=12", "--pid", "12");
	MEANS("1=12", "--pid=12");
	MEANS("1=12", "-pid", "12");
	MEANS("1=12", "-pid:12");
	MEANS("3=x", "-output", "x");
	MEANS("4=", "-hex");
	MEANS("3=orce", "-force"); /* this table has no --force */
	/* UMDH's spellings */
	MEANS("2=app.exe 3=out.txt", "-pn:app.exe", "-f:out.txt");
	MEANS("2=app.exe", "-pn", "app.exe");
	MEANS("3=C:\\a:b.txt", "-f:C:\\a:b.txt");
	MEANS("6= 5= A=a.txt A=b.txt", "-v", "-d", "a.txt", "b.txt");
	MEANS("!", "--pi", "1");
	MEANS("!", "--pidx=1");
	MEANS("!", "-x");
	MEANS("!", "-dx");
	MEANS("!", "--hex=1");
	MEANS("!", "-v:1");
	MEANS("!", "-p");
	MEANS("!", "-p:");
	MEANS("!", "-p", "");
	MEANS("!", "--pid");
	MEANS("!", "--pid=");
	MEANS("4=!", "--hex", "-f");
}

TEST(end_of_text_begins_with_character)
{
	assert_string_equal(text_tail("abc", 3), "abc");
	assert_string_equal(text_tail("abc", 2), "bc");
	assert_string_equal(text_tail("abc", 0), "");
	assert_string_equal(text_tail("", 5), "");
	assert_string_equal(text_tail("a\xc3\xa4z", 3), "\xc3\xa4z");
	assert_string_equal(text_tail("a\xc3\xa4z", 2), "z");
	assert_string_equal(text_tail("\xf0\x9f\x98\x80", 3), "");
}

TEST(options_and_arguments)
{
	static const char *const run[] = {"-v", "prog", "-p", "--hex", "--"};

	MEANS("4= A=a A=-", "--hex", "a", "-");
	MEANS("A=a 4= A=b", "a", "--hex", "b");
	MEANS("A=-p A=--hex A=--", "--", "-p", "--hex", "--");
	MEANS("A=", "");
	MEANS("1=-5", "-p", "-5");
	assert_string_equal(meaning(false, 0, run), "");
	assert_string_equal(meaning(true, COUNT(run), run), "6= A=prog A=-p A=--hex A=--");
}

TEST(texts_are_harmless_on_terminal)
{
	char text[] = "a\x1b[2J\n\x7f \xc2\x9b\xc2\xa0\xc3\xa9";
	/* Bytes that are invalid UTF-8 and that an 8-bit terminal would obey are replaced. The same
	 * byte values within valid characters stay. */
	char raw[] = "\x9b"
		     "31m\x80\x9f\xa0 \xe2\x9b \xc3\x9b\xe2\x9b\x94";
	/* U+202E, U+2066, U+200E, U+200F and U+061C control the text direction. U+202F, U+2065,
	 * U+200D and U+2010 do not. */
	char turned[] = "a\xe2\x80\xae"
			"b\xe2\x81\xa6"
			"c\xe2\x80\xaf\xe2\x81\xa5"
			"\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c\xe2\x80\x8d\xe2\x80\x90";

	assert_string_equal(text_harmless(text), "a?[2J?? ??\xc2\xa0\xc3\xa9");
	assert_string_equal(text_harmless(raw), "?31m??\xa0 \xe2? \xc3\x9b\xe2\x9b\x94");
	assert_string_equal(text_harmless(turned),
		"a???b???c\xe2\x80\xaf\xe2\x81\xa5????????\xe2\x80\x8d\xe2\x80\x90");
}

TEST(options_are_listed)
{
	char *text = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);

	assert_non_null(to);
	opt_help(table, to);
	assert_int_equal(fclose(to), 0);
	assert_non_null(strstr(text, "  -p, --pid PID "));
	assert_non_null(strstr(text, "  -pn NAME "));
	assert_non_null(strstr(text, "--hex "));
	assert_null(strstr(text, "-d"));
	free(text);
}

TEST(reason_is_error_without_its_remedy)
{
	struct err err;
	char text[100], reason[100];

	err_set(&err, ERR_OPEN, "a.txt", "a folder");
	assert_string_equal(
		err_reason(&err, reason, sizeof(reason)), "a.txt: cannot open (a folder)");
	assert_string_equal(err_text(&err, text, sizeof(text)),
		"a.txt: cannot open (a folder); check the name and your permissions");
	assert_string_equal(err_text(&err, text, 10), "a.txt: ca");
	assert_string_equal(err_reason(&err, text, 10), "a.txt: ca");
}

TEST(errors_are_one_line)
{
	struct err err;
	char text[100];

	assert_int_equal(
		err_set(&err, ERR_OPEN, "a\nb\x1b[2J\x7f.txt", "%s", "it\r\n is not there"),
		-ERR_OPEN);
	err_text(&err, text, sizeof(text));
	for (const char *c = text; *c; c++)
		assert_true((unsigned char)*c >= ' ' && *c != 0x7f);
	assert_non_null(strstr(text, ".txt: cannot open (it"));
	assert_int_equal(err_set(NULL, ERR_OPEN, NULL, NULL), -ERR_OPEN);
}

/* ---------------------------------------------------------------- sorted arrays */

TEST(sorted_arrays_are_searched)
{
	static const struct {
		char name;
		uint64_t key;
	} items[] = {{'a', 0}, {'b', 3}, {'c', 3}, {'d', 7}, {'e', UINT64_MAX}};
	static const struct {
		uint64_t limit;
		size_t below, up_to;
	} cases[] = {{0, 0, 1}, {1, 1, 1}, {3, 1, 3}, {4, 3, 3}, {7, 3, 4}, {8, 4, 4},
		{UINT64_MAX - 1, 4, 4}, {UINT64_MAX, 4, 5}};
	const size_t bytes = sizeof(*items), key = bytes - sizeof(uint64_t);

	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(sorted_below(items, COUNT(items), bytes, key, cases[i].limit),
			cases[i].below);
		assert_int_equal(sorted_up_to(items, COUNT(items), bytes, key, cases[i].limit),
			cases[i].up_to);
	}
	assert_int_equal(sorted_below(NULL, 0, bytes, key, 1), 0);
	assert_int_equal(sorted_up_to(NULL, 0, bytes, key, UINT64_MAX), 0);
}

TEST(values_are_sorted_without_duplicates)
{
	static const uint64_t expected[] = {0, 2, 5, UINT64_MAX};
	uint64_t mixed[] = {5, UINT64_MAX, 0, 5, 2, 0}, sorted[] = {0, 2, 2, 5, UINT64_MAX};

	assert_int_equal(sorted_unique(mixed, COUNT(mixed)), COUNT(expected));
	assert_memory_equal(mixed, expected, sizeof(expected));
	assert_int_equal(sorted_unique(sorted, COUNT(sorted)), COUNT(expected));
	assert_memory_equal(sorted, expected, sizeof(expected));
	assert_int_equal(sorted_unique(NULL, 0), 0);
}
