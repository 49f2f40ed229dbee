/* Prefixes of source files: whole components, either slash, case where Windows has none. */
#include "tests/unit/t.h"

#include "symbolize/names.h"

static void check(const char *file, const char *prefix, const char *left)
{
	assert_string_equal(names_strip_path(file, &prefix, 1), left);
}

TEST(test_whole_components_are_stripped)
{
	check("/src/app/a.c", "/src", "app/a.c");
	check("/src/app/a.c", "/src/", "app/a.c");
	check("/src/app/a.c", "/src/app", "a.c");
	check("/src/app/a.c", "/src/ap", "/src/app/a.c");
	check("/src/app/a.c", "/other", "/src/app/a.c");
	check("src/a.c", "src", "a.c");
	check("/src/a.c", "/", "src/a.c");
}

TEST(test_something_is_left)
{
	check("/src/a.c", "/src/a.c", "/src/a.c");
	check("/src/", "/src", "/src/");
	check("/src/a.c", "", "/src/a.c");
	check("", "/src", "");
}

TEST(test_case_and_slashes_of_windows)
{
	check("C:\\Build\\App\\a.c", "c:/build", "App\\a.c");
	check("C:/Build/App/a.c", "c:\\BUILD\\", "App/a.c");
	check("D:\\Build\\a.c", "c:/build", "D:\\Build\\a.c");
	check("/Build/a.c", "/build", "/Build/a.c");
}

TEST(test_the_longest_is_taken)
{
	static const char *const prefixes[] = {"/a", "/a/b/c", "/a/b"};

	assert_string_equal(names_strip_path("/a/b/c/d.c", prefixes, 3), "d.c");
	assert_string_equal(names_strip_path("/a/b/x.c", prefixes, 3), "x.c");
	assert_string_equal(names_strip_path("/a/b/x.c", prefixes, 0), "/a/b/x.c");
}
