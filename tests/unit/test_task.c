/* A task as text: its program, arguments and times. Its XML has time spans as in ISO 8601 and
 * UTF-16 as in Unicode. */
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

static struct task_plan plan;
static struct buf xml;

static int make(const struct task_request *request)
{
	task_plan_release(&plan);
	plan = (struct task_plan){0};
	return task_plan_make(&plan, request, NULL);
}

static int make_xml(const struct task_request *request)
{
	assert_int_equal(make(request), 0);
	buf_clear(&xml);
	return task_xml_add(&xml, &plan, NULL);
}

static int release(void **state)
{
	(void)state;
	task_plan_release(&plan);
	buf_release(&xml);
	return 0;
}

#undef TEST_AROUND
#define TEST_AROUND NULL, release

static void assert_arguments(const struct task_request *request, const char *line)
{
	assert_int_equal(make(request), 0);
	assert_string_equal(plan.arguments.data, line);
}

/* Paths are quoted even if they have no blanks, and braces in a pattern are doubled. */
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

		request.every = cases[i].every;
		request.limit = cases[i].limit;
		request.start = cases[i].start;
		assert_int_equal(make(&request), 0);
		assert_int_equal(plan.every_ms, cases[i].every_ms);
		assert_int_equal(plan.limit_ms, cases[i].limit_ms);
		assert_string_equal(plan.start.data, cases[i].whole_start);
	}
}

static void assert_plan_fails(const struct task_request *request, int code)
{
	int rc = make(request);

	if (rc != -code)
		fail_msg("%d for %s %s %s %s %s", rc, request->name, request->every,
			request->folder, request->keep ? request->keep : "", request->start);
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
		"30", "-1m", "1.5m", "0.5h30m", "often");
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
		struct task_request request = plain_request();

		request.folder = good[i];
		assert_int_equal(make(&request), 0);
	}
}

/* Dumps may lie on a share if the machine's account can write there. A user who logs on without a
 * password has no network access. */
TEST(test_shares)
{
	struct task_request request = plain_request();

	request.folder = "\\\\server\\share\\d";
	request.program = "\\\\server\\share\\hsnap.exe";
	assert_int_equal(make(&request), 0);
	assert_string_equal(plan.home.data, "\\\\server\\share");
	request.user = "S-1-5-21-1-2-3-1001";
	assert_plan_fails(&request, ERR_USAGE);
	request.folder = "C:\\d";
	assert_plan_fails(&request, ERR_USAGE);
	request.program = "C:\\hsnap.exe";
	assert_int_equal(make(&request), 0);
}

/* If the working folder is missing, the scheduler starts nothing. So the folder must exist as long
 * as the program does. */
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

		request.program = cases[i].program;
		assert_int_equal(make(&request), 0);
		assert_string_equal(plan.home.data, cases[i].folder);
	}
}

/* The schema has room for 258 units, which include two quotes. A character beyond U+FFFF has two
 * units. */
TEST(test_room_for_path)
{
	struct task_request request = plain_request();
	char path[400] = "C:\\";

	request.folder = path;
	memset(path + 3, 'a', 255);
	assert_int_equal(make(&request), 0);
	path[258] = 'a';
	assert_plan_fails(&request, ERR_USAGE);
	memcpy(path + 256, "\xf0\x9f\x98\x80", 5);
	assert_int_equal(make(&request), 0);
	memcpy(path + 257, "\xf0\x9f\x98\x80", 5);
	path[256] = 'a';
	assert_plan_fails(&request, ERR_USAGE);
}

/* ---------------------------------------------------------------- XML */

/* Returns the text of the only element <name>; the caller frees it. */
static char *element(const char *name)
{
	char open[80], close[80];
	const char *from, *to;

	snprintf(open, sizeof(open), "<%s>", name);
	snprintf(close, sizeof(close), "</%s>", name);
	from = strstr(xml.data, open);
	assert_non_null(from);
	from += strlen(open);
	assert_null(strstr(from, open));
	to = strstr(from, close);
	assert_non_null(to);
	return strndup(from, (size_t)(to - from));
}

static void assert_element(const char *name, const char *text)
{
	char *found = element(name);

	assert_string_equal(found, text);
	free(found);
}

TEST(test_texts_are_escaped)
{
	struct task_request request = plain_request();

	request.name = "a & b's \xf0\x9f\x98\x80.exe";
	request.folder = "C:\\d & 'd' ]] \xc3\xa4";
	request.program = "C:\\P & Q\\hsnap.exe";
	request.start = "2026-11-20T10:00Z";
	request.user = "D&D\\<me> \"'";
	assert_int_equal(make_xml(&request), 0);
	assert_element("Description",
		"Writes the live heap blocks of a &amp; b&apos;s \xf0\x9f\x98\x80.exe into C:\\d "
		"&amp; &apos;d&apos; ]] \xc3\xa4 every 30m and keeps the newest 100 files of each "
		"process. Made by hsnap schedule add.");
	assert_element("Command", "&quot;C:\\P &amp; Q\\hsnap.exe&quot;");
	assert_element("Arguments",
		"-pn &quot;a &amp; b&apos;s \xf0\x9f\x98\x80.exe&quot; -f &quot;C:\\d &amp; "
		"&apos;d&apos; ]] \xc3\xa4\\{name}-{pid}-{time}.txt&quot; --by-stack --keep 100 "
		"--all --log &quot;C:\\d &amp; &apos;d&apos; ]] \xc3\xa4\\a &amp; b&apos;s "
		"\xf0\x9f\x98\x80.exe.log&quot;");
	assert_element("WorkingDirectory", "C:\\P &amp; Q");
	assert_element("UserId", "D&amp;D\\&lt;me&gt; &quot;&apos;");
	assert_element("StartBoundary", "2026-11-20T10:00:00Z");
}

TEST(test_what_xml_cannot_hold_is_refused)
{
	static const char *const bad[] = {"\x01", "a\nb", "\x7f", "\xc2\x85", "\xff", "\xc3",
		"\xed\xa0\x80", "\xef\xbf\xbe", "\xef\xbf\xbf"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct task_request request = plain_request();

		request.user = bad[i];
		assert_int_equal(make_xml(&request), -ERR_USAGE);
	}
}

TEST(test_who_runs_it_and_when)
{
	struct task_request request = plain_request();

	assert_int_equal(make_xml(&request), 0);
	assert_element("UserId", "S-1-5-18");
	assert_null(strstr(xml.data, "LogonType"));
	assert_null(strstr(xml.data, "BootTrigger"));
	request.user = "S-1-5-21-1-2-3-1001";
	request.at_boot = true;
	assert_int_equal(make_xml(&request), 0);
	assert_element("UserId", "S-1-5-21-1-2-3-1001");
	assert_element("LogonType", "S4U");
	assert_non_null(strstr(xml.data, "<BootTrigger>"));
	assert_null(strstr(xml.data, "InteractiveToken"));
}

/* Settings of a service's task, as "settingsType Complex Type" defines them. Battery, network, idle
 * time or a second run must not prevent the task, and no user is prompted. No other setting is
 * written. */
TEST(test_every_setting)
{
	static const struct {
		const char *name, *text;
	} settings[] = {
		{"AllowStartOnDemand", "true"},
		{"MultipleInstancesPolicy", "IgnoreNew"},
		{"DisallowStartIfOnBatteries", "false"},
		{"StopIfGoingOnBatteries", "false"},
		{"AllowHardTerminate", "true"},
		{"StartWhenAvailable", "true"},
		{"RunOnlyIfNetworkAvailable", "false"},
		{"WakeToRun", "false"},
		{"Enabled", "true"},
		{"Hidden", "false"},
		{"ExecutionTimeLimit", "PT1H"},
		{"Priority", "5"},
		{"RunOnlyIfIdle", "false"},
	};
	const size_t count = sizeof(settings) / sizeof(*settings);
	struct task_request request = plain_request();
	char *found;
	size_t ends = 0;

	assert_int_equal(make_xml(&request), 0);
	for (size_t i = 0; i < count; i++)
		assert_element(settings[i].name, settings[i].text);
	found = element("Settings");
	for (const char *at = found; (at = strstr(at, "</")); at++)
		ends++;
	assert_int_equal(ends, count);
	free(found);
	found = element("Triggers");
	assert_null(strstr(found, "Enabled"));
	free(found);
	assert_element("RunLevel", "HighestAvailable");
}

/* Days, hours and minutes as in ISO 8601. XML uses the same form ("duration", W3C XML Schema). */
TEST(test_spans)
{
	static const struct {
		const char *asked, *span;
	} cases[] = {{"1m", "PT1M"}, {"1h", "PT1H"}, {"1h30m", "PT1H30M"}, {"90m", "PT1H30M"},
		{"1d", "P1D"}, {"31d", "P31D"}, {"1d2h3m", "P1DT2H3M"}, {"2d1m", "P2DT1M"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct task_request request = plain_request();

		request.every = request.limit = cases[i].asked;
		assert_int_equal(make_xml(&request), 0);
		assert_element("Interval", cases[i].span);
		assert_element("ExecutionTimeLimit", cases[i].span);
	}
}

TEST(test_utf16)
{
	/* U+00E4, U+20AC and U+1F600 as in Unicode's tables. A line ends with CRLF. */
	static const unsigned char expected[] = {
		0xff, 0xfe, 'a', 0, 0xe4, 0, 0xac, 0x20, 0x3d, 0xd8, 0x00, 0xde, '\r', 0, '\n', 0};
	struct buf bytes;

	buf_init(&bytes);
	task_xml_utf16(&bytes, "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\n");
	assert_int_equal(bytes.len, sizeof(expected));
	assert_memory_equal(bytes.data, expected, sizeof(expected));
	buf_clear(&bytes);
	buf_release(&bytes);
}
