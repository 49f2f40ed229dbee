/* From what is asked for to what a task runs: paths, times, numbers. */
#include "tests/unit/t.h"

#include "snapshot/schedule/task.h"

static struct task_request plain_request(void)
{
	return (struct task_request){
		.name = "app.exe",
		.every = "30m",
		.folder = "C:\\dumps",
		.program = "C:\\Program Files\\hsnap.exe",
		.start = "2026-11-20T10:00",
	};
}

static void assert_arguments(const struct task_request *request, const char *line)
{
	struct task_plan plan = {0};
	struct err err;

	assert_int_equal(task_plan_make(&plan, request, &err), 0);
	assert_string_equal(plan.arguments.data, line);
	task_plan_release(&plan);
}

/* Paths stand in quotes even where they have no blanks, braces in a pattern twice. */
TEST(test_arguments)
{
	struct task_request request = plain_request();

	assert_arguments(&request,
		"-pn app.exe -f \"C:\\dumps\\{name}-{pid}-{time}.txt\" --by-stack --keep 100 --all "
		"--log \"C:\\dumps\\app.exe.log\"");
	request.name = "\xc3\xbc & my app.exe";
	request.folder = "D:\\a {b} & c\\";
	request.keep = "7";
	request.max_bytes = "1G";
	request.is_full = request.is_packed = true;
	assert_arguments(&request,
		"-pn \"\xc3\xbc & my app.exe\" -f \"D:\\a {{b} & c\\{name}-{pid}-{time}.txt\" "
		"--gzip --keep 7 --max-bytes 1G --all --log "
		"\"D:\\a {b} & c\\\xc3\xbc & my app.exe.log\"");
	request = plain_request();
	request.folder = "E:/";
	assert_arguments(&request, "-pn app.exe -f \"E:\\{name}-{pid}-{time}.txt\" --by-stack "
				   "--keep 100 --all --log \"E:\\app.exe.log\"");
}

TEST(test_times)
{
	static const struct {
		const char *every, *limit, *start, *whole_start;
		int64_t every_ms, limit_ms;
	} cases[] = {
		{"1m", NULL, "2026-11-20T10:00", "2026-11-20T10:00:00", 60000, 3600000},
		{"30m", NULL, "2026-11-20T10:00Z", "2026-11-20T10:00:00Z", 1800000, 3600000},
		{"30m", "5m", "1980-01-01T00:00Z", "1980-01-01T00:00:00Z", 1800000, 300000},
		{"1h", NULL, "2026-11-20T10:00:59", "2026-11-20T10:00:59", 3600000, 3600000},
		{"1d", NULL, "2028-02-29T23:59:00Z", "2028-02-29T23:59:00Z", 86400000, 3600000},
		{"31d", "2h", "2026-11-20T10:00", "2026-11-20T10:00:00", 2678400000, 7200000},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct task_request request = plain_request();
		struct task_plan plan = {0};
		struct err err;

		request.every = cases[i].every;
		request.limit = cases[i].limit;
		request.start = cases[i].start;
		assert_int_equal(task_plan_make(&plan, &request, &err), 0);
		assert_int_equal(plan.every_ms, cases[i].every_ms);
		assert_int_equal(plan.limit_ms, cases[i].limit_ms);
		assert_string_equal(plan.start.data, cases[i].whole_start);
		task_plan_release(&plan);
	}
}

static void assert_plan_fails(const struct task_request *request, int code)
{
	struct task_plan plan = {0};
	struct err err = {0};
	int rc;

	rc = task_plan_make(&plan, request, &err);
	if (rc != -code)
		fail_msg("%d for %s %s %s %s %s", rc, request->name, request->every,
			request->folder, request->keep ? request->keep : "", request->start);
	task_plan_release(&plan);
}

#define ASSERT_REFUSED(field, code, ...)                                                           \
	do {                                                                                       \
		static const char *const bad_[] = {__VA_ARGS__};                                   \
		for (size_t i_ = 0; i_ < sizeof(bad_) / sizeof(*bad_); i_++) {                     \
			struct task_request request_ = plain_request();                            \
			request_.field = bad_[i_];                                                 \
			assert_plan_fails(&request_, code);                                        \
		}                                                                                  \
	} while (0)

TEST(test_what_cannot_be_done_is_refused)
{
	ASSERT_REFUSED(name, ERR_IMAGE_NAME, "", "app", "a\\b.exe", "a/b.exe", "a*.exe", "C:a.exe",
		"a\".exe", "..", "a\n.exe", "%a%.exe", "$(Arg0).exe");
	ASSERT_REFUSED(every, ERR_USAGE, NULL, "", "0m", "59s", "30s", "90s", "61s", "32d", "31d1m",
		"30", "-1m", "1.5h", "often");
	ASSERT_REFUSED(limit, ERR_USAGE, "", "30s", "32d", "x");
	ASSERT_REFUSED(start, ERR_USAGE, "", "now", "2026-11-20", "2026-13-20T10:00",
		"2026-11-31T10:00", "2026-11-20T24:01", "2026-11-20 10:00", "2026-11-20T10:00ZZ",
		"2026-11-20T10:00:00.5", "2026-11-20T10:00+01:00", "Z", "1979-12-31T23:59",
		"0001-01-01T00:00");
	ASSERT_REFUSED(keep, ERR_USAGE, "", "0", "-1", "1000001", "many", "1 --log x");
	ASSERT_REFUSED(max_bytes, ERR_USAGE, "", "0", "-1", "x", "1G --log x");
	ASSERT_REFUSED(folder, ERR_USAGE, NULL, "", "dumps", "..\\dumps", "C:", "C:dumps",
		"\\dumps", "C:\\a%b", "C:\\$(Arg0)", "C:\\a\"b", "C:\\a|b", "C:\\a?b", "C:\\a:b",
		"C:\\a\tb", "C:\\\xff", "\\\\server", "\\\\server\\", "\\\\\\share", "\\\\?\\C:\\a",
		"\\\\.\\C:\\a");
	ASSERT_REFUSED(program, ERR_USAGE, NULL, "hsnap.exe", "C:\\%X%\\hsnap.exe");
}

TEST(test_full_paths)
{
	static const char *const good[] = {"C:\\", "C:\\a\\", "C:\\.a\\..b", "C:\\a b",
		"C:\\{a} & $b", "\\\\server\\share", "\\\\server\\share\\"};

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		if (task_path_check(good[i], NULL))
			fail_msg("%s is refused", good[i]);
	}
}

/* Dumps may lie on a share when the machine's account writes there; a user without a password has no network. */
TEST(test_shares)
{
	struct task_request request = plain_request();
	struct task_plan plan = {0};
	struct err err;

	request.folder = "\\\\server\\share\\d";
	request.program = "\\\\server\\share\\hsnap.exe";
	assert_int_equal(task_plan_make(&plan, &request, &err), 0);
	assert_string_equal(plan.home.data, "\\\\server\\share");
	task_plan_release(&plan);
	request.user = "S-1-5-21-1-2-3-1001";
	assert_plan_fails(&request, ERR_USAGE);
	request.folder = "C:\\d";
	assert_plan_fails(&request, ERR_USAGE);
	request.program = "C:\\hsnap.exe";
	assert_int_equal(task_plan_make(&plan, &request, &err), 0);
	task_plan_release(&plan);
}

/* The scheduler starts nothing where its folder is gone: it is one that stays as long as the program does. */
TEST(test_where_it_is_run)
{
	static const struct {
		const char *program, *folder;
	} cases[] = {
		{"C:\\Program Files\\hsnap.exe", "C:\\Program Files"},
		{"C:\\hsnap.exe", "C:\\"},
		{"C:/a/b/hsnap.exe", "C:\\a\\b"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct task_request request = plain_request();
		struct task_plan plan = {0};
		struct err err;

		request.program = cases[i].program;
		assert_int_equal(task_plan_make(&plan, &request, &err), 0);
		assert_string_equal(plan.home.data, cases[i].folder);
		task_plan_release(&plan);
	}
}

/* 258 units and two quotes are what the schema has room for; a character beyond U+FFFF is two. */
TEST(test_the_room_for_a_path)
{
	char path[400] = "C:\\";

	memset(path + 3, 'a', 255);
	assert_int_equal(task_path_check(path, NULL), 0);
	path[258] = 'a';
	assert_int_equal(task_path_check(path, NULL), -ERR_USAGE);
	memcpy(path + 256, "\xf0\x9f\x98\x80", 5);
	assert_int_equal(task_path_check(path, NULL), 0);
	memcpy(path + 257, "\xf0\x9f\x98\x80", 5);
	path[256] = 'a';
	assert_int_equal(task_path_check(path, NULL), -ERR_USAGE);
}
