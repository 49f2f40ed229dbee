#include "tests/unit/t.h"

#define _XOPEN_SOURCE 700
#include "tests/unit/test_diff.h"

#include "core/base/parse.h"

/* Writes an hsnap dump. start and time are seconds after 10:00. */
static void write_made(const char *path, unsigned pid, unsigned start, unsigned time)
{
	char text[DATE_TEXT_BYTES], begin[DATE_TEXT_BYTES];
	int64_t ten = 0;

	assert_int_equal(date_parse("2026-11-20T10:00:00Z", &ten), 0);
	struct maker maker = dump_new((struct maker){.is_ours = true});
	put(&maker, "// hsnap: dump format=1 tool=test time=%s",
		date_text(ten + time * INT64_C(1000), text));
	put(&maker, "// hsnap: process id=%u start=%s bits=64 image=app.exe", pid,
		date_text(ten + start * INT64_C(1000), begin));
	put_block(&maker, 16 + time, 8, "1", 1);
	put_block(&maker, 32, 8, "2", 2);
	dump_end(&maker, path);
}

static void check_many(int status, const char *wanted, const char *words, const char *const *args)
{
	const char *all[20] = {"--no-symbols", "-f", "out.txt", "-o", "json"};
	char files[400] = "";
	struct result *result;
	size_t len = 0;

	for (size_t i = 5; *args; i++)
		all[i] = *args++;
	result = run_raw(all);
	(void)remove("out.txt");
	for (const char *at = result->text; at && (at = strstr(at, "\"path\":\"")); at++) {
		const char *name = at + 8 + 2 * !strncmp(at + 8, "./", 2);

		len += (size_t)snprintf(files + len, sizeof(files) - len, "%s%.*s", len ? " " : "",
			(int)strcspn(name, "\""), name);
	}
	assert_string_equal(files, wanted);
	assert_int_equal(result->status, status);
	if (*words ? !strstr(result->words, words) : *result->words)
		fail_msg("'%s' is not in '%s'", words, result->words);
}

#define check(status, files, words, ...)                                                           \
	check_many(status, files, words, (const char *const[]){__VA_ARGS__, NULL})

TEST(folders_and_patterns_are_read)
{
	write_made("old.txt", 1, 0, 300);
	write_made("new.txt", 1, 0, 100);
	write_made("more.txt", 1, 0, 200);
	check(0, "new.txt more.txt old.txt", "", ".");
	check(0, "new.txt more.txt old.txt", "", "*.txt");
	check(0, "new.txt more.txt old.txt", "", "o*", "m*", "n*");
	check(2, "", "no file matches", "x*");
	check(2, "", "./none: cannot open", "./none/x*");
	check(0, "new.txt more.txt old.txt", "named twice", "old.txt", "old.txt", ".");
	write_made("cut.txt", 1, 1, 50); /* another process */
	check(0, "cut.txt new.txt more.txt old.txt", "", ".");
	check(0, "new.txt more.txt old.txt", "", "--series", "2", ".");
	check(2, "", "the last series is number 2", "--series", "3", ".");
	check(0, "more.txt old.txt", "cut.txt: warning: left out", "--warm-up", "1", ".");
	check(2, "", "none of 4", "--warm-up", "3", ".");
	check(0, "cut.txt new.txt more.txt", "", "--across-restarts", "--until", "2026-11-20T10:03",
		".");
}

TEST(what_is_damaged_is_given_back)
{
	write_made("old.txt", 1, 0, 100);
	write_made("new.txt", 1, 0, 200);
	write_made("more.txt", 1, 0, 300);
	char *text = read_text("new.txt");
	write_bytes("cut.txt", text, strlen(text) / 2 + strlen(text) / 4);
	free(text);
	check(0, "old.txt new.txt more.txt", "cut.txt:17: warning: left out: is cut short", ".");
	check(2, "old.txt more.txt", "is cut short", "old.txt", "cut.txt", "more.txt");
	/* If one snapshot has a whole and a cut version, the whole version is used. */
	check(0, "old.txt new.txt more.txt", "the same snapshot as", "--force", ".");
	write_bytes("cut.txt", "no dump", 7);
	check(0, "old.txt new.txt more.txt", "cut.txt: warning: left out: is not a", ".");
	check(2, "", "none of 3 files", "cut.txt", "cut.txt", "cut.txt");
	check(2, "old.txt new.txt", "nothing: warning", "old.txt", "new.txt", "nothing");
}

TEST(banners_are_read_as_far_as_they_go)
{
	static const struct {
		const char *banner;
		uint32_t pid;
		const char *time;
	} cases[] = {
		{"6.1.7650.0: Logtime 2010-05-04 10:11 - Machine=BOX - PID=4711", 4711,
			"2010-05-04T10:11:00Z"},
		{"10.0: Logtime 2010-05-04 10:11 - Machine=A - PID=7 - PID=12 ", 0, NULL},
		{"10.0: Logtime 2010-05-04 10:11 - Machine=A B - PID=12  ", 12,
			"2010-05-04T10:11:00Z"},
		{"10.0: Logtime 2010-05-04 10:11 - Machine=", 0, NULL},
		{"10.0: Logtime 2010-13-04 10:11 - Machine=A - PID=12", 0, NULL},
		{"10.0: Logtime 2010-05-04 id=5\" - Machine=A - PID=12", 0, NULL},
		{"10.0: Logtime 2010-05-04 10:11 - PID=99999999999", 0, NULL},
		{"10.0: Logtime 2010-05-04 10:11 - PID=4294967296", 0, NULL},
		{"10.0: Logtime", 0, NULL},
		{"10.0: Logtime ", 0, NULL},
		{"", 0, NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct dump_sums sums;
		int64_t time = 0;

		struct maker maker = {.eol = "\n"};
		buf_init(&maker.text);
		put(&maker, "// UMDH: version %s", cases[i].banner);
		put(&maker, "// UMDH: version 1: Logtime 1999-01-01 01:01 - Machine=B - PID=%s",
			cases[i].pid ? "1" : "none");
		write_modules(&maker);
		put(&maker, "*- - - - - Start of data for heap @ 1E0000 - - - - -");
		put_block(&maker, 16, 8, "1", 1);
		dump_end(&maker, "old.txt");
		assert_int_equal(read_sums(&sums, "old.txt"), 0);
		if (cases[i].time)
			assert_int_equal(date_parse(cases[i].time, &time), 0);
		assert_int_equal(sums.id.pid, 0);
		assert_true(sums.id.time_ms == 0);
		sums_copy_banner(&sums);
		assert_int_equal(sums.id.pid, cases[i].pid);
		assert_true(sums.id.time_ms == time);
		assert_int_equal(sums.id.has_wall_time, time != 0);
		assert_int_equal(sums.total.block_count, 1);
		sums_release(&sums);
	}
}

/* Mail wraps the banner at a blank, and a console at its edge. */
TEST(wrapped_banner_is_joined)
{
	static const char banner[] =
		"// UMDH: version 6.1.7650.0: Logtime 2010-05-04 10:11 - Machine=BOX - PID=4711";
	const char logtime[] = "Logtime ";
	size_t from = (size_t)(strstr(banner, logtime) - banner) + strlen(logtime);
	int64_t time;

	assert_int_equal(date_parse("2010-05-04T10:11:00Z", &time), 0);
	for (size_t at = from; at <= strlen(banner); at++) {
		bool is_blank = banner[at] == ' ';
		struct maker maker = {.eol = at % 2 ? "\n" : "\r\n"};
		struct dump_sums sums;

		buf_init(&maker.text);
		put(&maker, "%.*s", (int)at, banner);
		if (banner[at])
			put(&maker, at % 3 ? "%s" : "// %s", banner + at + is_blank);
		put(&maker, "//");
		write_modules(&maker);
		put(&maker, "*- - - - - Start of data for heap @ 1E0000 - - - - -");
		put_block(&maker, 16, 8, "1", 1);
		dump_end(&maker, "old.txt");
		assert_int_equal(read_sums(&sums, "old.txt"), 0);
		sums_copy_banner(&sums);
		/* A comment cannot be the rest of a pid, because the banner is complete. */
		if (at % 3 || banner[at - 1] < '0' || banner[at - 1] > '9' || banner[at] < '0')
			assert_int_equal(sums.id.pid, 4711);
		assert_true(sums.id.time_ms == time);
		assert_string_equal(sums.id.host, "BOX");
		assert_int_equal(sums.quality.warning_count, 0);
		sums_release(&sums);
	}
}

TEST(banner_without_its_end_is_reported)
{
	static const char *const ends[] = {" - Machine=BOX -", " - Machine=BOX - PID=", "",
		" - Machine=BOX -\nOS version 6.1"};

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		struct maker maker = {.eol = "\n"};
		struct dump_sums sums;

		buf_init(&maker.text);
		put(&maker, "// UMDH: version 6.1: Logtime 2010-05-04 10:11%s", ends[i]);
		put(&maker, "//");
		write_modules(&maker);
		put(&maker, "*- - - - - Start of data for heap @ 1E0000 - - - - -");
		put_block(&maker, 16, 8, "1", 1);
		dump_end(&maker, "old.txt");
		assert_int_equal(read_sums(&sums, "old.txt"), 0);
		assert_int_equal(sums.quality.warning_count, 1);
		assert_non_null(strstr(
			sums.quality.warnings[0], "UMDH's banner cannot be read to its end"));
		assert_int_equal(sums.total.block_count, 1);
		sums_release(&sums);
	}
}
