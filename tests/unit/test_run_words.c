/* The pure part of hsnap run: how arguments become a line. */
#include "tests/unit/t.h"

#include "core/io/command_line.h"

static void check_line(const char *const *argv, const char *expected)
{
	struct buf line;

	buf_init(&line);
	command_line_add(&line, argv);
	assert_string_equal(line.data, expected);
	buf_release(&line);
}

/* What is expected is by the rules of "Parsing C command-line arguments", Microsoft Learn. */
TEST(arguments_are_quoted_where_needed)
{
	const char *const plain[] = {"a.exe", "-x", "C:\\dir\\", "*.c", NULL};
	const char *const blanks[] = {"a b.exe", "", "c d", "e\tf", NULL};
	const char *const quotes[] = {"a", "b\"c", "d\\\"e", "f g\\", "h\\\\i j\\\\", "\"", NULL};

	check_line(plain, "a.exe -x C:\\dir\\ *.c");
	check_line(blanks, "\"a b.exe\" \"\" \"c d\" \"e\tf\"");
	check_line(quotes, "a \"b\\\"c\" \"d\\\\\\\"e\" \"f g\\\\\" \"h\\\\i j\\\\\\\\\" \"\\\"\"");
}

/* By the same rules: a backslash counts twice where the quote behind it would else be a character. */
TEST(an_argument_may_always_be_quoted)
{
	static const struct {
		const char *arg, *expected;
	} cases[] = {
		{"D:\\d\\a.txt", "-f \"D:\\d\\a.txt\""},
		{"C:\\dir\\", "-f \"C:\\dir\\\\\""},
		{"a b\"c", "-f \"a b\\\"c\""},
		{"", "-f \"\""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct buf line;

		buf_init(&line);
		buf_add_text(&line, "-f");
		command_line_add_quoted(&line, cases[i].arg);
		assert_string_equal(line.data, cases[i].expected);
		buf_release(&line);
	}
}

TEST(rest_begins_behind_the_program)
{
	assert_true(!wcscmp(command_line_rest(L"hsnap run -- \"a b\""), L" run -- \"a b\""));
	assert_true(!wcscmp(command_line_rest(L"\"C:\\a b\\hsnap.exe\" run"), L" run"));
	assert_true(!wcscmp(command_line_rest(L"\"C:\\a b\\\" run"), L" run"));
	assert_true(!wcscmp(command_line_rest(L"C:\\a\" \"b\trun"), L"\trun"));
	assert_true(!wcscmp(command_line_rest(L"hsnap"), L""));
	assert_true(!wcscmp(command_line_rest(L"\"open"), L""));
	assert_true(!wcscmp(command_line_rest(L""), L""));
}
