/* hdiff: filters that name nothing are said, as they are mistyped more often than not. */
#include "tests/unit/t.h"

#include "tests/unit/test_ask.h"

static made_stack stacks[] = {
	{NEW, LEAK, MAIN}, /* 1 */
	{MALLOC, CACHE, MAIN}, /* 2 */
	{HELPER, NAMELESS}, /* 4 */
	{NOWHERE}, /* 8 */
};

static void make(void)
{
	write_stacks("new.txt", stacks, sizeof(stacks) / sizeof(*stacks));
}

/* hdiff must say these lines with "warning" in them, and no other such. */
static void check_said(const char *wanted, int status, const char *const *args)
{
	struct result *result = run_with(NULL, args);
	char said[sizeof(result->words)];
	size_t len = 0;

	said[0] = '\0';
	for (const char *at = result->words; *at; at = next_text(at)) {
		size_t line = (size_t)(next_text(at) - at);

		if (strstr(at, ": warning: ") && strstr(at, ": warning: ") < at + line)
			len += (size_t)snprintf(
				said + len, sizeof(said) - len, "%.*s", (int)line, at);
	}
	assert_string_equal(said, wanted);
	assert_int_equal(result->status, status);
	assert_non_null(result->text);
}

#define said(wanted, status, ...)                                                                  \
	check_said(wanted, status, (const char *const[]){__VA_ARGS__, NULL})

TEST(a_module_that_no_dump_has_is_said)
{
	make();
	said("hdiff: --module nosuch: warning: no module has this name\n", 0, "--module", "nosuch",
		"--max-growth", "0", "new.txt");
	said("hdiff: --module app.dll: warning: no module has this name\n", 1, "--module",
		"app.dll", "--module", "LIB", "--max-growth", "0", "new.txt");
	said("hdiff: --module a?b: warning: no module has this name\n", 0, "--module", "a\nb",
		"new.txt");
	said("", 0, "--module", "app", "--module", "APP.exe", "--module", "lib.dll", "new.txt");
}

TEST(a_module_that_only_one_dump_has_is_known)
{
	struct maker maker;

	make();
	maker = (struct maker){.eol = "\n"};
	buf_init(&maker.text);
	put(&maker, "// Loaded modules: ");
	put(&maker, "//     Base Size Module");
	put(&maker, "//             66660000    10000 C:\\made up\\gone.dll");
	put(&maker, "//\n// Process modules enumerated.");
	put(&maker, "*- - - - - Heap 1E0000 Hogs - - - - -\n");
	put_entry(&maker, 5, 8, "1");
	put(&maker, "\t66661000\n");
	dump_end(&maker, "old.txt");
	said("", 0, "--module", "gone", "--module", "lib", "old.txt", "new.txt");
	said("hdiff: --module gone: warning: no module has this name\n", 0, "--module", "gone",
		"new.txt");
}

/* Logs of old name their frames and list no modules that these would be in. */
TEST(a_module_that_texts_name_is_known)
{
	struct maker maker = dump_new((struct maker){0});
	put(&maker, "%s", "");
	put(&maker, "00000005 bytes in 0x1 allocations (@ 0x00000005) by: BackTrace1");
	put(&maker, "msvcrt!malloc+0x00000010");
	put(&maker, "other!main+0x00000020\n");
	dump_end(&maker, "new.txt");
	said("hdiff: --module third: warning: no module has this name\n", 0, "--module", "OTHER",
		"--module", "third", "--module", "msvcrt.dll", "new.txt");
}

TEST(a_heap_that_no_dump_has_is_said)
{
	make();
	said("hdiff: --heap 10000: warning: no dump has this heap\n", 0, "--heap", "10000",
		"--max-growth", "0", "new.txt");
	said("hdiff: --heap VirtualAlloc: warning: no dump has recorded such memory\n", 0, "--heap",
		"virtual", "--max-growth", "0", "new.txt");
	said("hdiff: --heap FFFF00000001: warning: no dump has this heap\n", 1, "--heap", "1E0000",
		"--heap", "0xffff00000001", "--max-growth", "0", "new.txt");
	said("", 0, "--heap", "1e0000", "new.txt");
}

TEST(a_pattern_that_matches_nothing_is_said)
{
	make();
	said("hdiff: -i leek: warning: no stack that changed has a frame that matches it\n", 0,
		"-i", "leek", "--max-growth", "0", "new.txt");
	said("hdiff: -i leek: warning: no stack that changed has a frame that matches it\n"
	     "hdiff: -i MAIN: warning: no stack that changed has a frame that matches it\n",
		1, "-i", "leek", "-i", "leak", "-i", "MAIN", "--max-growth", "0", "new.txt");
	said("hdiff: -i main: warning: no stack that changed has a frame that matches it\n", 0,
		"--no-symbols", "-i", "main", "new.txt");
}

/* Each of these matches something, though others make up the mind before it is its turn. */
TEST(a_pattern_that_matches_anything_is_not_said)
{
	char raw[40], addr[40];

	make();
	snprintf(raw, sizeof(raw), "^app\\+%" PRIX64 "$", made_offset(LEAK));
	snprintf(addr, sizeof(addr), "^%" PRIX64 "$", APP_BASE + made_offset(LEAK));
	said("", 0, "-i", "leak", "-i", "leak_here", "-i", "leak\\.c$", "-i", "^app!", "new.txt");
	said("", 0, "-i", ".", "-i", raw, "-i", addr, "new.txt");
	said("", 0, "-i", raw, "-i", "leak_here", "-n", "0", "new.txt");
	said("", 0, "-i", "leak_here", "-i", raw, "-x", "leak", "new.txt");
	said("", 0, "-x", raw, "-i", "leak_here", "new.txt");
	said("", 0, "-i", "helper", "-x", "nothing at all", "new.txt");
}

TEST(a_pattern_is_held_against_what_other_filters_leave)
{
	make();
	said("", 0, "-i", "leak", "--module", "app", "new.txt");
	said("hdiff: -i helper: warning: no stack that changed and that other options leave has a "
	     "frame that matches it\n",
		0, "-i", "helper", "--min-bytes", "5", "new.txt");
	said("hdiff: -i leek: warning: no stack that changed and that other options leave has a "
	     "frame that matches it\n",
		0, "-i", "leek", "--heap", "1E0000", "new.txt");
	said("hdiff: -i leek: warning: no stack that changed has a frame that matches it\n", 0,
		"-i", "leek", "-x", "leak", "new.txt");
	said("hdiff: -i ^2: warning: no stack that changed and that other options leave has a "
	     "frame that matches it\n",
		0, "-i", "^2", "--module", "app", "new.txt");
}

/* There is nothing that a pattern could have matched. */
TEST(where_nothing_changed_patterns_are_not_said)
{
	make();
	said("", 0, "-i", "leak", "new.txt", "new.txt");
	said("hdiff: --module nosuch: warning: no module has this name\n", 0, "-i", "leak",
		"--module", "nosuch", "new.txt");
}
