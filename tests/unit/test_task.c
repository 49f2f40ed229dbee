/* A task as text: its program, arguments and times. Its XML has time spans as in ISO 8601 and
 * UTF-16 as in Unicode. Also tests how hsnap recognizes its own tasks, and the output of "hsnap
 * schedule list". */
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
		if (task_path_check(good[i], NULL))
			fail_msg("%s is refused", good[i]);
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

#define LINE(name, folder, words)                                                                  \
	"-pn " name " -f \"" folder "\\{name}-{pid}-{time}.txt\" " words " --log \"" folder        \
	"\\app.exe.log\""
#define WORDS "--by-stack --keep 100 --all"
#define OURS LINE("app.exe", "C:\\dumps", WORDS)

/* ---------------------------------------------------------------- arguments */

static bool read_arguments(const char *line, const char *folder, const char *keep)
{
	struct buf found_folder = {0}, found_keep = {0};
	bool is_ours = task_arguments_read(line, "app.exe", &found_folder, &found_keep);

	if (is_ours) {
		assert_string_equal(found_folder.data, folder);
		assert_string_equal(found_keep.data, keep);
	}
	buf_release(&found_folder);
	buf_release(&found_keep);
	return is_ours;
}

TEST(test_what_is_written_is_known)
{
	static const struct {
		struct task_request request;
		const char *folder;
	} cases[] = {
		{{.name = "app.exe", .folder = "C:\\dumps", .keep = "100"}, "C:\\dumps"},
		{{.name = "app.exe", .folder = "C:\\dumps\\", .keep = "1"}, "C:\\dumps"},
		{{.name = "app.exe", .folder = "C:\\dumps\\//", .keep = "1"}, "C:\\dumps"},
		{{.name = "APP.exe", .folder = "E:\\", .keep = "1", .is_full = true}, "E:\\"},
		{{.name = "app.exe",
			 .folder = "C:\\a {b} {{c}} & \xc3\xa4",
			 .keep = "7",
			 .max_bytes = "1G",
			 .is_packed = true},
			"C:\\a {b} {{c}} & \xc3\xa4"},
		{{.name = "app.exe",
			 .folder = "\\\\server\\share",
			 .keep = "7",
			 .max_bytes = "5",
			 .is_full = true,
			 .is_packed = true},
			"\\\\server\\share"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct task_request request = cases[i].request;

		request.every = "30m";
		request.program = "C:\\hsnap.exe";
		request.start = "2026-11-20T10:00";
		assert_int_equal(make(&request), 0);
		assert_true(read_arguments(plan.arguments.data, cases[i].folder, request.keep));
	}
}

TEST(test_every_other_line_is_not)
{
	static const char *const others[] = {
		"",
		"/c calc.exe",
		"run -- C:\\evil.exe",
		OURS " ",
		" " OURS,
		OURS " --gzip",
		"run " OURS,
		"-pn other.exe -f \"C:\\dumps\\{name}-{pid}-{time}.txt\" --by-stack --keep 100 "
		"--all --log \"C:\\dumps\\other.exe.log\"",
		"-pn app.exe -f \"C:\\dumps\\{name}-{pid}-{time}.txt\" --by-stack --keep 100 "
		"--all --log \"C:\\other\\app.exe.log\"",
		"-pn app.exe -f \"C:\\dumps\\{name}.txt\" --by-stack --keep 100 --all --log "
		"\"C:\\dumps\\app.exe.log\"",
		LINE("app.exe", "dumps", WORDS),
		LINE("app.exe", "", WORDS),
		LINE("app.exe", "C:\\dumps", "--keep 100 --by-stack --all"),
		LINE("app.exe", "C:\\dumps", "--by-stack --all"),
		LINE("app.exe", "C:\\{", WORDS),
		LINE("app.exe", "C:\\dumps", "--by-stack --keep many --all"),
		LINE("app.exe", "C:\\dumps", "--by-stack --keep 1 --max-bytes /x --all"),
		LINE("app.exe", "C:\\dumps", "--by-stack --keep \"100\" --all"),
		LINE("app.exe", "C:\\dumps", "--by-stack --keep  --all"),
		LINE("\"app.exe\"", "C:\\dumps", WORDS),
		"-pn app.exe --keep 1 -f",
		OURS " --log \"C:\\windows\\app.exe.log\"",
		"-pn app.exe -f \"C:\\dumps\\{name}-{pid}-{time}.txt\" " WORDS
		" --log \"app.exe.log\"",
		"{name}-{pid}-{time}.txt\" ",
	};

	assert_true(read_arguments(OURS, "C:\\dumps", "100"));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		if (read_arguments(others[i], "", ""))
			fail_msg("%s is taken for one of ours", others[i]);
	}
}

/* ---------------------------------------------------------------- the table */

static void assert_row(const struct task_listed *task, const char *row)
{
	FILE *file = tmpfile();
	char line[600];

	assert_non_null(file);
	task_table_row(file, task);
	rewind(file);
	assert_non_null(fgets(line, sizeof(line), file));
	assert_string_equal(line, row);
	assert_int_equal(fgetc(file), EOF);
	assert_int_equal(fclose(file), 0);
}

TEST(test_rows)
{
	static const struct {
		struct task_listed task;
		const char *row;
	} cases[] = {
		{{.program = "C:\\hsnap.exe",
			 .arguments = OURS,
			 .runs_hsnap = true,
			 .every = "1h30m",
			 .last = "2026-11-20 10:00",
			 .next = "2026-11-20 10:30",
			 .state = 3,
			 .has_result = true,
			 .result = 2},
			"1h30m   100      2026-11-20 10:00  2           2026-11-20 10:30  app.exe  "
			"C:\\dumps\n"},
		{{.program = "C:\\hsnap.exe", .arguments = OURS, .runs_hsnap = true},
			"?       100      ?                 ?           ?                 app.exe  "
			"C:\\dumps\n"},
		/* a task that never ran has a date in the distant past */
		{{.program = "C:\\hsnap.exe",
			 .arguments = OURS,
			 .runs_hsnap = true,
			 .last = "1999-11-30 00:00",
			 .has_result = true,
			 .result = 0x41303},
			"?       100      -                 not yet     ?                 app.exe  "
			"C:\\dumps\n"},
		{{.program = "C:\\hsnap.exe",
			 .arguments = OURS,
			 .runs_hsnap = true,
			 .next = "2026-11-20 10:30",
			 .state = 1},
			"?       100      ?                 ?           disabled          app.exe  "
			"C:\\dumps\n"},
		{{.program = "C:\\hsnap.exe", .arguments = OURS, .runs_hsnap = true, .state = 4},
			"?       100      ?                 ?           running           app.exe  "
			"C:\\dumps\n"},
		{{.program = NULL, .state = 3},
			"?       ?        ?                 ?           ?                 app.exe  "
			"another program: ?\n"},
		/* a task's author must not send control characters to the terminal of the user who
		 * lists it */
		{{.program = "C:\\x\x1b[2J.exe", .arguments = OURS, .state = 2},
			"?       ?        ?                 ?           queued            app.exe  "
			"another program: C:\\x?[2J.exe\n"},
		{{.program = "C:\\hsnap.exe", .arguments = "run -- \x1b[2J", .runs_hsnap = true},
			"?       ?        ?                 ?           ?                 app.exe  "
			"other arguments: run -- ?[2J\n"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct task_listed task = cases[i].task;

		task.name = "app.exe";
		assert_row(&task, cases[i].row);
	}
}

TEST(test_results_in_words)
{
	static const struct {
		uint32_t result;
		const char *text;
	} cases[] = {
		{0, "0          "},
		{2, "2          "},
		{0x80070002, "no program "},
		{0x8007010b, "no folder  "}, /* 267, ERROR_DIRECTORY */
		{0x80070005, "no rights  "},
		{0x80070035, "no network "},
		{0x80070569, "no logon   "}, /* 1385, ERROR_LOGON_TYPE_NOT_GRANTED */
		{0x8007048f, "0x8007048F "},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct task_listed task = {.name = "app.exe",
			.program = "C:\\hsnap.exe",
			.arguments = OURS,
			.runs_hsnap = true,
			.has_result = true,
			.result = cases[i].result};
		char row[200];

		snprintf(row, sizeof(row),
			"?       100      ?                 %s ?                 app.exe  "
			"C:\\dumps\n",
			cases[i].text);
		assert_row(&task, row);
	}
}

TEST(test_how_often)
{
	static const struct {
		const char *xml, *every;
	} cases[] = {
		{"<Repetition><Interval>PT30M</Interval></Repetition>", "30m"},
		{"<Interval>P1DT2H3M4S</Interval>", "1d2h3m4s"},
		{"<Interval>P31D</Interval>", "31d"},
		{"<Task></Task>", ""},
		{"<Interval>PT1M</Interval><Interval>PT1M</Interval>", ""},
		{"<Interval>30M</Interval>", ""},
		{"<Interval>P", ""},
		{"<Interval>P\x1b[2J</Interval>", ""},
		{"<Interval>P1234567890123456789012345678901234567890M", "12345678901234567890123"},
	};
	char text[TASK_TIME_BYTES];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		task_every_text(cases[i].xml, text);
		assert_string_equal(text, cases[i].every);
	}
}
