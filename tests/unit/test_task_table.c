/* What of a task is known as one of hsnap's, and what "hsnap schedule list" says of any. */
#include "tests/unit/t.h"

#include "snapshot/schedule/task.h"

#define OURS                                                                                       \
	"-pn app.exe -f \"C:\\dumps\\{name}-{pid}-{time}.txt\" --by-stack --keep 100 --all --log " \
	"\"C:\\dumps\\app.exe.log\""

/* ---------------------------------------------------------------- arguments */

static int read_arguments(const char *line, const char *folder, const char *keep)
{
	struct buf found_folder, found_keep;
	int rc;

	buf_init(&found_folder);
	buf_init(&found_keep);
	rc = task_arguments_read(line, "app.exe", &found_folder, &found_keep);
	if (rc > 0) {
		assert_string_equal(found_folder.data, folder);
		assert_string_equal(found_keep.data, keep);
	}
	buf_release(&found_folder);
	buf_release(&found_keep);
	return rc;
}

TEST(test_what_is_written_is_known)
{
	static const struct {
		struct task_request request;
		const char *folder;
	} cases[] = {
		{{.name = "app.exe", .folder = "C:\\dumps", .keep = "100"}, "C:\\dumps"},
		{{.name = "app.exe", .folder = "C:\\dumps\\", .keep = "1"}, "C:\\dumps"},
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
		struct task_plan plan = {0};

		request.every = "30m";
		request.program = "C:\\hsnap.exe";
		request.start = "2026-11-20T10:00";
		assert_int_equal(task_plan_make(&plan, &request, NULL), 0);
		assert_int_equal(
			read_arguments(plan.arguments.data, cases[i].folder, request.keep), 1);
		task_plan_release(&plan);
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
		"-pn app.exe -f \"dumps\\{name}-{pid}-{time}.txt\" --by-stack --keep 100 --all "
		"--log \"dumps\\app.exe.log\"",
		"-pn app.exe -f \"\\{name}-{pid}-{time}.txt\" --by-stack --keep 100 --all --log "
		"\"\\app.exe.log\"",
		"-pn app.exe -f \"C:\\dumps\\{name}-{pid}-{time}.txt\" --keep 100 --by-stack "
		"--all --log \"C:\\dumps\\app.exe.log\"",
		"-pn app.exe -f \"C:\\dumps\\{name}-{pid}-{time}.txt\" --by-stack --all --log "
		"\"C:\\dumps\\app.exe.log\"",
		"-pn app.exe -f \"C:\\{\\{name}-{pid}-{time}.txt\" --by-stack --keep 100 --all "
		"--log \"C:\\{\\app.exe.log\"",
		"-pn app.exe --keep 1 -f",
		"-pn app.exe -f \"C:\\dumps\\{name}-{pid}-{time}.txt\" --by-stack --keep many "
		"--all "
		"--log \"C:\\dumps\\app.exe.log\"",
		"-pn app.exe -f \"C:\\dumps\\{name}-{pid}-{time}.txt\" --by-stack --keep 1 "
		"--max-bytes "
		"/x --all --log \"C:\\dumps\\app.exe.log\"",
		OURS " --log \"C:\\windows\\app.exe.log\"",
		"-pn app.exe -f \"C:\\dumps\\{name}-{pid}-{time}.txt\" --by-stack --keep \"100\" "
		"--all "
		"--log \"C:\\dumps\\app.exe.log\"",
		"-pn app.exe -f \"C:\\dumps\\{name}-{pid}-{time}.txt\" --by-stack --keep  --all "
		"--log \"C:\\dumps\\app.exe.log\"",
		"-pn app.exe -f \"C:\\dumps\\{name}-{pid}-{time}.txt\" --by-stack --keep 100 --all "
		"--log \"app.exe.log\"",
		"-pn \"app.exe\" -f \"C:\\dumps\\{name}-{pid}-{time}.txt\" --by-stack --keep 100 "
		"--all "
		"--log \"C:\\dumps\\app.exe.log\"",
		"{name}-{pid}-{time}.txt\" ",
	};

	assert_int_equal(read_arguments(OURS, "C:\\dumps", "100"), 1);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		if (read_arguments(others[i], "", "") != 0)
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
		/* a task that never ran has a date of long ago */
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
		/* whoever may change a task must not reach the terminal of who lists it */
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
