/* Prefixes of source files: whole components, either slash, case where Windows has none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "symbolize/names.h"

static void check(const char *file, const char *prefix, const char *left)
{
	assert_string_equal(names_strip_path(file, &prefix, 1), left);
}

static void test_whole_components_are_stripped(void **state)
{
	(void)state;
	check("/src/app/a.c", "/src", "app/a.c");
	check("/src/app/a.c", "/src/", "app/a.c");
	check("/src/app/a.c", "/src/app", "a.c");
	check("/src/app/a.c", "/src/ap", "/src/app/a.c");
	check("/src/app/a.c", "/other", "/src/app/a.c");
	check("src/a.c", "src", "a.c");
	check("/src/a.c", "/", "src/a.c");
}

static void test_something_is_left(void **state)
{
	(void)state;
	check("/src/a.c", "/src/a.c", "/src/a.c");
	check("/src/", "/src", "/src/");
	check("/src/a.c", "", "/src/a.c");
	check("", "/src", "");
}

static void test_case_and_slashes_of_windows(void **state)
{
	(void)state;
	check("C:\\Build\\App\\a.c", "c:/build", "App\\a.c");
	check("C:/Build/App/a.c", "c:\\BUILD\\", "App/a.c");
	check("D:\\Build\\a.c", "c:/build", "D:\\Build\\a.c");
	check("/Build/a.c", "/build", "/Build/a.c");
}

static void test_the_longest_is_taken(void **state)
{
	static const char *const prefixes[] = {"/a", "/a/b/c", "/a/b"};

	(void)state;
	assert_string_equal(names_strip_path("/a/b/c/d.c", prefixes, 3), "d.c");
	assert_string_equal(names_strip_path("/a/b/x.c", prefixes, 3), "x.c");
	assert_string_equal(names_strip_path("/a/b/x.c", prefixes, 0), "/a/b/x.c");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_components_are_stripped),
		cmocka_unit_test(test_something_is_left),
		cmocka_unit_test(test_case_and_slashes_of_windows),
		cmocka_unit_test(test_the_longest_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
