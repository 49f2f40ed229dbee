/*
 * Folders and patterns from inside: what is read, left out, and given back, on every way out. That the
 * rows are right other tests say; here it is which files make which series.
 */
#include "tests/unit/t.h"

#define _XOPEN_SOURCE 700
#include "tests/unit/test_diff.h"

#include "core/base/parse.h"
#include "tests/unit/test_sums.h"

/* A dump of hsnap's; start and time in seconds behind 10:00. */
static void put_made(const char *path, unsigned pid, unsigned start, unsigned time)
{
	struct maker maker;
	char text[DATE_TEXT_BYTES], begin[DATE_TEXT_BYTES];
	int64_t ten = 0;

	assert_int_equal(date_parse("2026-11-20T10:00:00Z", &ten), 0);
	dump_begin(&maker, (struct maker){.is_ours = true});
	put(&maker, "// hsnap: dump format=1 tool=test time=%s",
		date_text(ten + time * INT64_C(1000), text));
	put(&maker, "// hsnap: process id=%u start=%s bits=64 image=app.exe", pid,
		date_text(ten + start * INT64_C(1000), begin));
	put_block(&maker, 16 + time, 8, "1", 1);
	put_block(&maker, 32, 8, "2", 2);
	dump_end(&maker, path);
}

struct ran {
	int status;
	char words[3000];
	char files[400]; /* as the report has them */
};

static void find_files(struct ran *ran, const char *json)
{
	const char *at = json;

	for (; json && (at = strstr(at, "\"path\":\"")); at++) {
		const char *name = at + 8;
		size_t len = strlen(ran->files);

		if (!strncmp(name, "./", 2))
			name += 2;
		snprintf(ran->files + len, sizeof(ran->files) - len, "%s%.*s", len ? " " : "",
			(int)strcspn(name, "\""), name);
	}
}

static struct ran run_many(const char *const *args)
{
	static char always[][16] = {"hdiff", "--no-symbols", "-f", "out.txt", "-o", "json"};
	char *argv[20];
	struct ran ran = {0};
	FILE *say = tmpfile();
	int argc = 0;
	char *json;

	assert_non_null(say);
	for (; argc < 6; argc++)
		argv[argc] = always[argc];
	for (; *args; args++)
		argv[argc++] = (char *)(uintptr_t)*args;
	(void)remove("out.txt");
	ran.status = hdiff_run(argc, argv, say);
	rewind(say);
	ran.words[fread(ran.words, 1, sizeof(ran.words) - 1, say)] = '\0';
	assert_int_equal(fclose(say), 0);
	json = read_text("out.txt");
	find_files(&ran, json);
	free(json);
	(void)remove("out.txt");
	return ran;
}

#define RUN(...) run_many((const char *const[]){__VA_ARGS__, NULL})

static void check(struct ran ran, int status, const char *files, const char *words)
{
	assert_string_equal(ran.files, files);
	assert_int_equal(ran.status, status);
	if (*words && !strstr(ran.words, words))
		fail_msg("'%s' is not in '%s'", words, ran.words);
	if (!*words)
		assert_string_equal(ran.words, "");
}

#undef TEST_AROUND
#define TEST_AROUND enter_folder, leave_folder

TEST(folders_and_patterns_are_read)
{
	put_made("old.txt", 1, 0, 300);
	put_made("new.txt", 1, 0, 100);
	put_made("more.txt", 1, 0, 200);
	check(RUN("."), 0, "new.txt more.txt old.txt", "");
	check(RUN("*.txt"), 0, "new.txt more.txt old.txt", "");
	check(RUN("o*", "m*", "n*"), 0, "new.txt more.txt old.txt", "");
	check(RUN("x*"), 2, "", "no file matches");
	check(RUN("./none/x*"), 2, "", "./none: cannot open");
	check(RUN("old.txt", "old.txt", "."), 0, "new.txt more.txt old.txt", "named twice");
	put_made("cut.txt", 1, 1, 50); /* another process */
	check(RUN("."), 0, "cut.txt new.txt more.txt old.txt", "");
	check(RUN("--series", "2", "."), 0, "new.txt more.txt old.txt", "");
	check(RUN("--series", "3", "."), 2, "", "there are 2");
	check(RUN("--warm-up", "1", "."), 0, "more.txt old.txt", "cut.txt: warning: left out");
	check(RUN("--warm-up", "3", "."), 2, "", "none of 4");
	check(RUN("--across-restarts", "--until", "2026-11-20T10:03", "."), 0,
		"cut.txt new.txt more.txt", "");
}

TEST(what_is_damaged_is_given_back)
{
	char *text;

	put_made("old.txt", 1, 0, 100);
	put_made("new.txt", 1, 0, 200);
	put_made("more.txt", 1, 0, 300);
	text = read_text("new.txt");
	write_bytes("cut.txt", text, strlen(text) / 2 + strlen(text) / 4);
	free(text);
	check(RUN("."), 0, "old.txt new.txt more.txt",
		"cut.txt:17: warning: left out: is cut short");
	check(RUN("old.txt", "cut.txt", "more.txt"), 2, "old.txt more.txt", "is cut short");
	/* the same snapshot once whole and once cut: the whole one */
	check(RUN("--force", "."), 0, "old.txt new.txt more.txt", "the same snapshot as");
	write_bytes("cut.txt", "no dump", 7);
	check(RUN("."), 0, "old.txt new.txt more.txt", "cut.txt: warning: left out: is not a");
	check(RUN("cut.txt", "cut.txt", "cut.txt"), 2, "", "none of 3 files");
	check(RUN("old.txt", "new.txt", "nothing"), 2, "old.txt new.txt", "nothing: warning");
}

/* What a banner says, or what looks like one. */
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
		struct maker maker;
		struct dump_sums sums;
		struct err err;
		int64_t time = 0;

		dump_begin(&maker, (struct maker){0});
		put(&maker, "// UMDH: version %s", cases[i].banner);
		put(&maker, "// UMDH: version 1: Logtime 1999-01-01 01:01 - Machine=B - PID=%s",
			cases[i].pid ? "1" : "none");
		put_block(&maker, 16, 8, "1", 1);
		dump_end(&maker, "old.txt");
		sums_init(&sums);
		assert_int_equal(read_sums(&sums, "old.txt", &err), 0);
		if (cases[i].time)
			assert_int_equal(date_parse(cases[i].time, &time), 0);
		assert_int_equal(sums.pid, 0);
		assert_true(sums.time_ms == 0);
		sums_take_banner(&sums);
		assert_int_equal(sums.pid, cases[i].pid);
		assert_true(sums.time_ms == time);
		assert_int_equal(sums.has_wall_time, time != 0);
		assert_int_equal(sums.total.block_count, 1);
		sums_release(&sums);
	}
}
