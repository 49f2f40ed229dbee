/* "FROM=TO". */
#include "tests/unit/t.h"

#include "symbolize/files/find_parts.h"

static const char *rest(const char *text, const char *path)
{
	struct path_map map;
	struct err err;

	assert_int_equal(path_map_parse(&map, text, &err), 0);
	return path_map_rest(&map, path);
}

TEST(test_a_prefix_fits_in_any_case_and_with_either_slash)
{
	assert_string_equal(rest("C:\\Build\\x=/src", "c:/bUILD\\X\\Sub/App.exe"), "Sub/App.exe");
	assert_string_equal(rest("C:/build=/src", "C:\\build\\a.dll"), "a.dll");
	assert_string_equal(rest("C:\\build\\=/src", "C:\\build\\\\a.dll"), "a.dll");
	assert_string_equal(rest("/srv/ci=D:\\x", "/srv/ci/out/a.pdb"), "out/a.pdb");
	assert_string_equal(rest("C:=/drive", "c:\\a"), "a");
	assert_string_equal(rest("C:\\a.exe=/b.exe", "C:\\A.EXE"), "");
	assert_string_equal(rest("\\\\host\\share=/mnt", "\\\\HOST\\share\\a.dll"), "a.dll");
	assert_string_equal(rest("/=/src", "/a"), "a");
}

TEST(test_a_prefix_ends_where_a_component_does)
{
	assert_null(rest("C:\\build=/src", "C:\\builds\\a.dll"));
	assert_null(rest("C:\\build=/src", "C:\\buil"));
	assert_null(rest("C:\\build=/src", "D:\\build\\a.dll"));
	assert_null(rest("C:\\build=/src", ""));
	assert_null(rest("/=/src", "C:\\a"));
	/* Letters beyond ASCII are compared as they are. */
	assert_null(rest("C:\\\xc3\x84=/src", "C:\\\xc3\xa4\\a"));
	assert_string_equal(rest("C:\\\xc3\xa4=/src", "c:\\\xc3\xa4\\a"), "a");
}

TEST(test_the_first_equals_sign_parts_them)
{
	struct path_map map;
	struct err err;

	assert_int_equal(path_map_parse(&map, "a=b=c", &err), 0);
	assert_string_equal(map.to, "b=c");
	assert_int_equal(map.from_len, 1);
}

TEST(test_what_is_no_map_is_refused)
{
	static const char *const bad[] = {"", "=", "C:\\build", "C:\\build=", "=/src"};
	struct path_map map = {.to = "untouched"};
	struct err err;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(path_map_parse(&map, bad[i], &err), -ERR_USAGE);
		assert_string_equal(err.place, bad[i]);
	}
	assert_string_equal(map.to, "untouched");
}
