/* The pure parts of hsnap run: how arguments become a line, and names of files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "snapshot/control/command_line.h"
#include "snapshot/control/out_pattern.h"

static void check_line(const char *const *argv, const char *expected)
{
	struct buf line;

	buf_init(&line);
	assert_int_equal(command_line_add(&line, argv), 0);
	assert_string_equal(line.data, expected);
	buf_release(&line);
}

/* What is expected is by the rules of "Parsing C command-line arguments", Microsoft Learn. */
static void arguments_are_quoted_where_needed(void **state)
{
	const char *const plain[] = {"a.exe", "-x", "C:\\dir\\", "*.c", NULL};
	const char *const blanks[] = {"a b.exe", "", "c d", "e\tf", NULL};
	const char *const quotes[] = {"a", "b\"c", "d\\\"e", "f g\\", "h\\\\i j\\\\", "\"", NULL};

	(void)state;
	check_line(plain, "a.exe -x C:\\dir\\ *.c");
	check_line(blanks, "\"a b.exe\" \"\" \"c d\" \"e\tf\"");
	check_line(quotes, "a \"b\\\"c\" \"d\\\\\\\"e\" \"f g\\\\\" \"h\\\\i j\\\\\\\\\" \"\\\"\"");
}

static void rest_begins_behind_the_program(void **state)
{
	(void)state;
	assert_true(!wcscmp(command_line_rest(L"hsnap run -- \"a b\""), L" run -- \"a b\""));
	assert_true(!wcscmp(command_line_rest(L"\"C:\\a b\\hsnap.exe\" run"), L" run"));
	assert_true(!wcscmp(command_line_rest(L"\"C:\\a b\\\" run"), L" run"));
	assert_true(!wcscmp(command_line_rest(L"C:\\a\" \"b\trun"), L"\trun"));
	assert_true(!wcscmp(command_line_rest(L"hsnap"), L""));
	assert_true(!wcscmp(command_line_rest(L"\"open"), L""));
	assert_true(!wcscmp(command_line_rest(L""), L""));
}

static void check_pattern(const char *pattern, bool expected_pid)
{
	struct err err = {0};
	bool has_pid = !expected_pid;

	assert_int_equal(out_pattern_check(pattern, &has_pid, &err), 0);
	assert_int_equal(has_pid, expected_pid);
}

static void check_wrong(const char *pattern)
{
	struct err err = {0};
	bool has_pid;

	assert_int_equal(out_pattern_check(pattern, &has_pid, &err), -ERR_USAGE);
	assert_string_equal(err.place, pattern);
}

static void words_in_braces_are_known_or_refused(void **state)
{
	(void)state;
	check_pattern("", false);
	check_pattern("a.txt", false);
	check_pattern("}a}", false);
	check_pattern("{name}.txt", false);
	check_pattern("{name}-{pid}.txt", true);
	check_pattern("{pid}", true);
	check_pattern("{{pid}", false);
	check_pattern("{{{pid}", true);
	check_wrong("{");
	check_wrong("a{pid");
	check_wrong("{}");
	check_wrong("{PID}");
	check_wrong("{pid }");
	check_wrong("{{{");
	check_wrong("{name}{time}");
}

static void check_path(const char *pattern, const char *program, const char *expected)
{
	struct buf path;

	buf_init(&path);
	assert_int_equal(buf_add_text(&path, ""), 0);
	assert_int_equal(out_pattern_add(&path, pattern, program, 4294967295), 0);
	assert_string_equal(path.data, expected);
	buf_release(&path);
}

static void words_are_replaced(void **state)
{
	(void)state;
	check_path("d\\{name}-{pid}.txt", "C:\\x.y\\app.exe", "d\\app-4294967295.txt");
	check_path("{name}", "app.EXE", "app");
	check_path("{name}", "app", "app");
	check_path("{name}", "a/b.exe/c.exe.exe", "c.exe");
	check_path("{name}", "d:b.exe", "b");
	check_path("{name}", ".exe", ".exe");
	check_path("{name}", "exe", "exe");
	check_path("{name}", "", "");
	check_path("{name}{name}", "\xc3\xa4.exe", "\xc3\xa4\xc3\xa4");
	check_path("{{name}{{{pid}}", "app.exe", "{name}{4294967295}");
	check_path("{name}", "{pid}.exe", "{pid}");
	check_path("a.txt", "app.exe", "a.txt");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arguments_are_quoted_where_needed),
		cmocka_unit_test(rest_begins_behind_the_program),
		cmocka_unit_test(words_in_braces_are_known_or_refused),
		cmocka_unit_test(words_are_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
