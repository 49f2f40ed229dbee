#include "tests/unit/t.h"

#include "core/base/command_line.h"

static void check_line(const char *const *argv, const char *expected)
{
	struct buf line;

	buf_init(&line);
	command_line_add(&line, argv);
	assert_string_equal(line.data, expected);
	buf_release(&line);
}

/* The expected words follow the rules of "Parsing C command-line arguments", Microsoft Learn. */
TEST(arguments_are_quoted_where_needed)
{
	const char *const plain[] = {"a.exe", "-x", "C:\\dir\\", "*.c", NULL};
	const char *const blanks[] = {"a b.exe", "", "c d", "e\tf", NULL};
	const char *const quotes[] = {"a", "b\"c", "d\\\"e", "f g\\", "h\\\\i j\\\\", "\"", NULL};

	check_line(plain, "a.exe -x C:\\dir\\ *.c");
	check_line(blanks, "\"a b.exe\" \"\" \"c d\" \"e\tf\"");
	check_line(quotes, "a \"b\\\"c\" \"d\\\\\\\"e\" \"f g\\\\\" \"h\\\\i j\\\\\\\\\" \"\\\"\"");
}

TEST(rest_begins_behind_program)
{
	assert_true(!wcscmp(command_line_rest(L"hsnap run -- \"a b\""), L" run -- \"a b\""));
	assert_true(!wcscmp(command_line_rest(L"\"C:\\a b\\hsnap.exe\" run"), L" run"));
	assert_true(!wcscmp(command_line_rest(L"\"C:\\a b\\\" run"), L" run"));
	assert_true(!wcscmp(command_line_rest(L"C:\\a\" \"b\trun"), L"\trun"));
	assert_true(!wcscmp(command_line_rest(L"hsnap"), L""));
	assert_true(!wcscmp(command_line_rest(L"\"open"), L""));
	assert_true(!wcscmp(command_line_rest(L""), L""));
}

static void check_words(const char *line, const char *const *expected)
{
	int argc, at = 0;
	char **argv = command_line_split(line, &argc);

	for (; expected[at]; at++) {
		assert_non_null(argv[at]);
		assert_string_equal(argv[at], expected[at]);
	}
	assert_null(argv[at]);
	assert_int_equal(argc, at);
	free(argv);
}

/* The examples of Microsoft's page. */
TEST(line_is_read_as_c_runtimes_do)
{
	static const struct {
		const char *line, *words[5];
	} cases[] = {
		{"x \"a b c\" d e", {"x", "a b c", "d", "e"}},
		{"x \"ab\\\"c\" \"\\\\\" d", {"x", "ab\"c", "\\", "d"}},
		{"x a\\\\\\b d\"e f\"g h", {"x", "a\\\\\\b", "de fg", "h"}},
		{"x a\\\\\\\"b c d", {"x", "a\\\"b", "c", "d"}},
		{"x a\\\\\\\\\"b c\" d e", {"x", "a\\\\b c", "d", "e"}},
		{"x a\"b\"\" c d", {"x", "ab\" c d"}},
		{"\"C:\\a b\\\"c.exe\t\"\" ", {"C:\\a b\\c.exe", ""}},
		{" a", {"", "a"}},
		{"x \"a ", {"x", "a "}},
		{"", {""}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		check_words(cases[i].line, cases[i].words);
}

/* All words of six special letters, each followed by another word. */
TEST(what_was_made_line_is_read_back)
{
	static const char letters[] = "a \\\"\t";

	for (int number = 0; number < 5 * 5 * 5 * 5 * 5 * 5; number++) {
		char word[7] = "";
		const char *const argv[] = {"p.exe", word, "z", NULL};
		struct buf line;

		for (int at = 0, rest = number; at < 6; at++, rest /= 5)
			word[at] = letters[rest % 5];
		buf_init(&line);
		command_line_add(&line, argv);
		check_words(line.data, argv);
		buf_release(&line);
	}
}
