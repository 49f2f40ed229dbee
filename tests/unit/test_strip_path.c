#include "tests/unit/t.h"

#include "symbolize/names.h"

#define COUNT(list) (sizeof(list) / sizeof(*(list)))

TEST(test_what_is_behind_prefix)
{
	static const struct {
		const char *prefix, *path, *rest;
	} truths[] = {{"C:\\Build\\x", "c:/bUILD\\X\\Sub/App.exe", "Sub/App.exe"},
		{"C:/build", "C:\\build\\a.dll", "a.dll"},
		{"C:\\build\\", "C:\\build\\\\a.dll", "a.dll"},
		{"/srv/ci", "/srv/ci/out/a.pdb", "out/a.pdb"}, {"C:", "c:\\a", "a"},
		{"C:\\a.exe", "C:\\A.EXE", ""},
		{"\\\\host\\share", "\\\\HOST\\share\\a.dll", "a.dll"}, {"/", "/a", "a"},
		{"C:\\build", "C:\\builds\\a.dll", NULL}, {"C:\\build", "C:\\buil", NULL},
		{"C:\\build", "D:\\build\\a.dll", NULL}, {"C:\\build", "", NULL},
		{"/", "C:\\a", NULL},
		/* Letters beyond ASCII are compared exactly. */
		{"C:\\\xc3\x84", "C:\\\xc3\xa4\\a", NULL},
		{"C:\\\xc3\xa4", "c:\\\xc3\xa4\\a", "a"}};

	for (size_t i = 0; i < COUNT(truths); i++) {
		const char *rest = names_behind(
			truths[i].path, truths[i].prefix, strlen(truths[i].prefix), true);

		assert_int_equal(!rest, !truths[i].rest);
		if (rest)
			assert_string_equal(rest, truths[i].rest);
	}
}

TEST(test_prefixes_of_source_files_are_stripped)
{
	static const struct {
		const char *file, *prefix, *left;
	} truths[] = {{"/src/app/a.c", "/src", "app/a.c"}, {"/src/app/a.c", "/src/", "app/a.c"},
		{"/src/app/a.c", "/src/app", "a.c"}, {"/src/app/a.c", "/src/ap", "/src/app/a.c"},
		{"/src/app/a.c", "/other", "/src/app/a.c"}, {"src/a.c", "src", "a.c"},
		{"/src/a.c", "/", "src/a.c"},
		/* The path must not become empty. */
		{"/src/a.c", "/src/a.c", "/src/a.c"}, {"/src/", "/src", "/src/"},
		{"/src/a.c", "", "/src/a.c"}, {"", "/src", ""},
		/* Windows paths */
		{"C:\\Build\\App\\a.c", "c:/build", "App\\a.c"},
		{"C:/Build/App/a.c", "c:\\BUILD\\", "App/a.c"},
		{"D:\\Build\\a.c", "c:/build", "D:\\Build\\a.c"},
		{"/Build/a.c", "/build", "/Build/a.c"}};
	static const char *const prefixes[] = {"/a", "/a/b/c", "/a/b"};

	for (size_t i = 0; i < COUNT(truths); i++)
		assert_string_equal(
			names_strip_path(truths[i].file, &truths[i].prefix, 1), truths[i].left);
	/* The longest matching prefix is removed. */
	assert_string_equal(names_strip_path("/a/b/c/d.c", prefixes, 3), "d.c");
	assert_string_equal(names_strip_path("/a/b/x.c", prefixes, 3), "x.c");
	assert_string_equal(names_strip_path("/a/b/x.c", prefixes, 0), "/a/b/x.c");
}
