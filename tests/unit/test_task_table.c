/* What of a task is known as one of hsnap's, and what "hsnap schedule list" says of any. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

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

static void test_what_is_written_is_known(void **state)
{
	static const struct {
		struct task_arguments arguments;
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

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct buf line;

		buf_init(&line);
		assert_int_equal(task_arguments_add(&line, &cases[i].arguments), 0);
		assert_int_equal(
			read_arguments(line.data, cases[i].folder, cases[i].arguments.keep), 1);
		buf_release(&line);
	}
}

static void test_every_other_line_is_not(void **state)
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
		"-pn app.exe -f \"C:\\d\\..\\{name}-{pid}-{time}.txt\" --by-stack --keep 100 "
		"--all --log \"C:\\d\\..\\app.exe.log\"",
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
	};

	(void)state;
	assert_int_equal(read_arguments(OURS, "C:\\dumps", "100"), 1);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		if (read_arguments(others[i], "", "") != 0)
			fail_msg("%s is taken for one of ours", others[i]);
	}
}

/* ---------------------------------------------------------------- the table */

static void test_results_in_words(void **state)
{
	static const struct {
		uint32_t result;
		const char *text;
	} cases[] = {
		{0, "0"},
		{2, "2"},
		{0x00041303, "not yet"},
		{0x80070002, "no program"},
		{0x8007010b, "no folder"}, /* 267, ERROR_DIRECTORY */
		{0x80070005, "no rights"},
		{0x80070035, "no network"},
		{0x80070569, "no logon"}, /* 1385, ERROR_LOGON_TYPE_NOT_GRANTED */
		{0x8007048f, "0x8007048F"},
	};
	char text[TASK_TIME_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_string_equal(task_result_text(cases[i].result, text), cases[i].text);
}

static void print_row(
	char line[600], const char *arguments, bool runs_hsnap, const struct task_state *task_state)
{
	FILE *file = tmpfile();
	struct task_read task;

	assert_non_null(file);
	task_read_init(&task);
	task.every_ms = 5400000;
	assert_int_equal(buf_add_text(&task.program, "C:\\x\x1b[2J.exe"), 0);
	assert_int_equal(buf_add_text(&task.arguments, arguments), 0);
	assert_int_equal(task_table_row(file, "app.exe", &task, runs_hsnap, task_state), 0);
	task_read_release(&task);
	rewind(file);
	assert_non_null(fgets(line, 600, file));
	assert_int_equal(fgetc(file), EOF);
	assert_int_equal(fclose(file), 0);
	assert_null(strchr(line, '\x1b'));
}

static void test_rows(void **state)
{
	static const struct {
		const char *arguments;
		bool runs_hsnap;
		struct task_state state;
		const char *row;
	} cases[] = {
		{OURS, true,
			{.last = "2026-11-20 10:00",
				.next = "2026-11-20 10:30",
				.kind = 3,
				.has_result = true,
				.result = 2},
			"1h30m   100      2026-11-20 10:00  2           2026-11-20 10:30  app.exe  "
			"C:\\dumps\n"},
		{OURS, true, {.last = ""},
			"1h30m   100      ?                 ?           ?                 app.exe  "
			"C:\\dumps\n"},
		/* a task that never ran has a date of long ago */
		{OURS, true, {.last = "1999-11-30 00:00", .has_result = true, .result = 0x41303},
			"1h30m   100      -                 not yet     ?                 app.exe  "
			"C:\\dumps\n"},
		{OURS, true, {.next = "2026-11-20 10:30", .kind = 1},
			"1h30m   100      ?                 ?           disabled          app.exe  "
			"C:\\dumps\n"},
		{OURS, true, {.kind = 4},
			"1h30m   100      ?                 ?           running           app.exe  "
			"C:\\dumps\n"},
		{OURS, false, {.kind = 2},
			"1h30m   ?        ?                 ?           queued            app.exe  "
			"another program: C:\\x?[2J.exe\n"},
		{"run -- calc.exe", true, {.kind = 3},
			"1h30m   ?        ?                 ?           ?                 app.exe  "
			"other arguments: run -- calc.exe\n"},
		/* whoever may change a task must not reach the terminal of who lists it */
		{"--keep \x1b[2J", true, {.kind = 3},
			"1h30m   ?        ?                 ?           ?                 app.exe  "
			"other arguments: --keep ?[2J\n"},
	};
	char line[600];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		print_row(line, cases[i].arguments, cases[i].runs_hsnap, &cases[i].state);
		assert_string_equal(line, cases[i].row);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_written_is_known),
		cmocka_unit_test(test_every_other_line_is_not),
		cmocka_unit_test(test_results_in_words),
		cmocka_unit_test(test_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
