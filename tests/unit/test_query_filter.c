#include "tests/unit/t.h"

#include "tests/unit/test_query.h"

static made_stack stacks[] = {
	{NEW, LEAK, MAIN}, /* 1 */
	{MALLOC, CACHE, MAIN}, /* 2 */
	{HELPER, NAMELESS}, /* 4 */
	{NOWHERE}, /* 8 */
	{LIB_NAMELESS}, /* 16 */
};
#define ALL 31
STACKS_IN_NEW_TXT(stacks)

TEST(pattern_sees_functions_modules_and_files)
{
	assert_int_equal(shown_of("new.txt"), ALL);
	assert_int_equal(shown_of("-i", "^app!leak_here$", "new.txt"), 1);
	assert_int_equal(shown_of("-i", "^app!", "new.txt"), 1 + 2);
	assert_int_equal(shown_of("-i", "!main$", "new.txt"), 1 + 2);
	assert_int_equal(shown_of("-i", "Cache::fill<int>", "new.txt"), 2);
	assert_int_equal(shown_of("-i", "^D:\\\\lib\\\\Helper\\.cpp$", "new.txt"), 4);
	assert_int_equal(shown_of("-i", "\\\\src\\\\(leak|cache)", "new.txt"), 1 + 2);
	assert_int_equal(shown_of("-i", "^malloc$", "new.txt"), 0);
	/* Case matters unless the pattern overrides it. */
	assert_int_equal(shown_of("-i", "MAIN", "new.txt"), 0);
	assert_int_equal(shown_of("-i", "(?i)MAIN", "new.txt"), 1 + 2);
	/* Without symbols the rows contain only modules and addresses. */
	assert_int_equal(shown_of("--no-symbols", "-i", "main", "new.txt"), 0);
	assert_int_equal(shown_of("--no-symbols", "-i", "^app\\+", "new.txt"), 1 + 2 + 4);
	assert_int_equal(shown_of("--no-symbols", "-x", "leak", "new.txt"), ALL);
}

TEST(pattern_sees_raw_forms_of_named_frames_too)
{
	char offset[40], addr[40], nowhere[40];

	snprintf(offset, sizeof(offset), "^app\\+%" PRIX64 "$", made_offset(LEAK));
	snprintf(addr, sizeof(addr), "^%" PRIX64 "$", LIB_BASE + made_offset(MALLOC));
	snprintf(nowhere, sizeof(nowhere), "^%" PRIX64 "$", made_offset(NOWHERE));
	assert_int_equal(shown_of("-i", offset, "new.txt"), 1);
	assert_int_equal(shown_of("-i", addr, "new.txt"), 2);
	assert_int_equal(shown_of("-i", nowhere, "new.txt"), 8);
	assert_int_equal(shown_of("-x", offset, "-x", addr, "new.txt"), 4 + 8 + 16);
	/* The offset is appended to a function's name only when printing. */
	assert_int_equal(shown_of("-i", "leak_here\\+", "new.txt"), 0);
}

TEST(any_include_keeps_and_any_exclude_drops)
{
	assert_int_equal(shown_of("-i", "leak_here", "-i", "helper", "new.txt"), 1 + 4);
	assert_int_equal(shown_of("-x", "leak_here", "new.txt"), ALL - 1);
	assert_int_equal(shown_of("-x", "leak_here", "-x", "helper", "new.txt"), ALL - 1 - 4);
	assert_int_equal(shown_of("-i", "main", "-x", "malloc", "new.txt"), 1);
	assert_int_equal(shown_of("--include=main", "--exclude=leak.c", "new.txt"), 2);
}

TEST(row_without_stack_matches_no_pattern)
{
	struct maker maker = dump_new((struct maker){0});
	write_stackless(&maker, 1, 64, 8);
	write_entry(&maker, 128, 8, "77");
	dump_end(&maker, "new.txt");
	assert_int_equal(shown_of("new.txt"), 64 + 128);
	assert_int_equal(shown_of("-i", ".*", "new.txt"), 0);
	assert_int_equal(shown_of("-x", ".*", "new.txt"), 64 + 128);
	assert_int_equal(shown_of("--module", "app", "new.txt"), 0);
}

TEST(bad_pattern_is_named_with_its_place)
{
	refused("hdiff: -i ab(c: ", "-i", "ab(c", "new.txt");
	refused(" at offset 4)", "-i", "ab(c", "new.txt"); /* the end of the pattern */
	refused("hdiff: -x x[z-a]: ", "-x", "x[z-a]", "new.txt");
	refused(" at offset 4)", "-x", "x[z-a]", "new.txt"); /* after z-a, counted from 0 */
	refused("hdiff: -i bad\xff", "-i", "bad\xff", "new.txt");
}

/* Matching these patterns takes 2^n steps on n letters. */
TEST(match_that_takes_too_long_is_error)
{
	struct maker maker = dump_new((struct maker){0});
	put(&maker, "// hsnap: name addr=%" PRIX64 " function=%s offset=5", APP_BASE + 0x1010,
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab");
	put_block(&maker, 64, 8, "1", 1);
	dump_end(&maker, "new.txt");
	assert_int_equal(shown_of("-i", "!a+b$", "new.txt"), 64);
	refused("hdiff: -i !(a+)+[c-d]: ", "-i", "!(a+)+[c-d]", "new.txt");
	refused("hdiff: -x !(a+)+[c-d]: ", "-x", "!(a+)+[c-d]", "new.txt");
	refused("cannot be matched against app!aaaa", "-x", "!(a+)+[c-d]", "new.txt");
	refused("hdiff: -i (*NO_JIT)!(a+)+[c-d]: ", "-i", "(*NO_JIT)!(a+)+[c-d]", "new.txt");
}

TEST(texts_that_are_no_utf_8_are_matched)
{
	struct maker maker = dump_new((struct maker){0});
	put(&maker, "// hsnap: name addr=%" PRIX64 " function=\"f\\xFFoo\\xC3\\xA9\" offset=5",
		APP_BASE + 0x1010);
	put_block(&maker, 64, 8, "1", 1);
	dump_end(&maker, "new.txt");
	assert_int_equal(shown_of("-i", "oo.$", "new.txt"), 64); /* \xC3\xA9 is one character */
	assert_int_equal(shown_of("-i", "oo..$", "new.txt"), 0);
	assert_int_equal(shown_of("-i", "!f", "new.txt"), 64);
}

TEST(module_is_named_with_or_without_extension_in_any_case)
{
	assert_int_equal(shown_of("--module", "app", "new.txt"), 1 + 2 + 4);
	assert_int_equal(shown_of("--module", "APP.exe", "new.txt"), 1 + 2 + 4);
	assert_int_equal(shown_of("--module", "app.dll", "new.txt"), 0);
	assert_int_equal(shown_of("--module", "Lib", "new.txt"), 1 + 2 + 4 + 16);
	assert_int_equal(shown_of("--module", "lib.dll", "new.txt"), 1 + 2 + 4 + 16);
	assert_int_equal(shown_of("--module", "li", "new.txt"), 0);
	assert_int_equal(
		shown_of("--module", "nothing", "--module", "lib", "-x", "main", "new.txt"),
		4 + 16);
}

/* Frames of a parsed comparison have no addresses, and their modules no extension. */
TEST(frames_without_address_are_matched_by_what_they_have)
{
	static const struct comparison read = {.dump_count = 2};
	static const struct row row = {.kind = ROW_STACK};
	static const char *const wanted[] = {"APP.exe", "app.dll", "app", "ap", "app.x.y"};
	static const bool is_there[] = {true, true, true, false, false};
	struct frame frame = {.module = "app", .function = "f"};
	struct frames frames;

	frames_init(&frames);
	frames_add(&frames, &frame);
	for (size_t i = 0; i < 5; i++) {
		struct filter filter;
		enum verdict verdict;

		filter_init(&filter);
		filter.modules = &wanted[i];
		filter.module_count = 1;
		/* A frame without an address. */
		assert_int_equal(patterns_add(&filter.exclude, "^0$", NULL), 0);
		assert_int_equal(filter_raw(&filter, &read, &row, &frames, &verdict, NULL), 0);
		assert_int_equal(verdict, is_there[i] ? VERDICT_NAMES_EXCLUDE : VERDICT_DROP);
		filter_release(&filter);
	}
	frames_release(&frames);
}

/* The stacks' bytes and blocks grow independently. */
TEST(small_changes_are_left_out_by_magnitude)
{
	EACH_DUMP (maker, is_new, 0) {
		put_block(&maker, is_new ? 1124 : 100, 8, "1", 1); /* +1024, 0 blocks */
		put_block(&maker, is_new ? 100 : 1124, 8, "2", 2); /* -1024, 0 blocks */
		put_block(&maker, is_new ? 1123 : 100, 8, "3", 3); /* +1023, 0 blocks */
		for (int i = 0; i < (is_new ? 7 : 2); i++) /* +50, +5 blocks */
			put_block(&maker, 10, 8, "4", 4);
		for (int i = 0; i < (is_new ? 1 : 5); i++) /* -4000, -4 blocks */
			put_block(&maker, 1000, 8, "5", 5);
	}
	for (int i = 0; i < 4; i++) {
		static const char *const asked[][2] = {{"--min-bytes=1K", "--min-count=0"},
			{"--min-bytes=0", "--min-count=4"}, {"--min-bytes=51", "--min-count=4"},
			{"--min-bytes=1025", "--min-count=5"}};
		static const bool wanted[][6] = {{false, true, true, false, false, true},
			{false, false, false, false, true, true},
			{false, false, false, false, false, true}, {false}};
		struct result *result =
			run_status(0, asked[i][0], asked[i][1], "old.txt", "new.txt");
		for (unsigned k = 1; k < 6; k++)
			assert_int_equal(row_of(result, k) != NULL, wanted[i][k]);
	}
}

TEST(first_rows_are_shown)
{
	assert_int_equal(shown_of("-n", "2", "new.txt"), 16 + 8);
	assert_int_equal(shown_of("-n2", "-i", "app", "new.txt"), 4 + 2);
	assert_int_equal(shown_of("-n", "0", "new.txt"), 0);
	assert_int_equal(shown_of("-n", "18446744073709551615", "new.txt"), ALL);
	assert_int_equal(shown_of("-n", "1", "new.txt"), 16);
}

/* ---------------------------------------------------------------- filters without matches */

/* Checks that hdiff prints exactly these warnings. */
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

TEST(module_that_no_dump_has_is_reported)
{
	said("hdiff: --module nosuch: warning: no module has this name\n", 2, "--module", "nosuch",
		"--max-growth", "0", "new.txt");
	said("hdiff: --module nosuch: warning: no module has this name\n", 0, "--module", "nosuch",
		"new.txt");
	said("hdiff: --module app.dll: warning: no module has this name\n", 1, "--module",
		"app.dll", "--module", "LIB", "--max-growth", "0", "new.txt");
	said("hdiff: --module a?b: warning: no module has this name\n", 0, "--module", "a\nb",
		"new.txt");
	said("", 0, "--module", "app", "--module", "APP.exe", "--module", "lib.dll", "new.txt");
}

TEST(module_that_only_one_dump_has_is_known)
{
	struct maker maker;

	maker = (struct maker){.eol = "\n"};
	buf_init(&maker.text);
	put(&maker, "// Loaded modules: ");
	put(&maker, "//     Base Size Module");
	put(&maker, "//             66660000    10000 C:\\made up\\gone.dll");
	put(&maker, "//\n// Process modules enumerated.");
	put(&maker, "*- - - - - Start of data for heap @ 1E0000 - - - - -");
	put(&maker, "*- - - - - Heap 1E0000 Hogs - - - - -\n");
	write_entry(&maker, 5, 8, "1");
	put(&maker, "\t66661000\n");
	dump_end(&maker, "old.txt");
	said("", 0, "--module", "gone", "--module", "lib", "old.txt", "new.txt");
	said("hdiff: --module gone: warning: no module has this name\n", 0, "--module", "gone",
		"new.txt");
}

/* Old logs name their frames but list no modules. */
TEST(module_that_texts_name_is_known)
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

TEST(heap_that_no_dump_has_is_reported)
{
	said("hdiff: --heap 10000: warning: no dump has this heap\n", 2, "--heap", "10000",
		"--max-growth", "0", "new.txt");
	said("hdiff: --heap VirtualAlloc: warning: no dump records such memory\n", 0, "--heap",
		"virtual", "--max-growth", "0", "new.txt");
	said("hdiff: --heap FFFF00000001: warning: no dump has this heap\n", 1, "--heap", "1E0000",
		"--heap", "0xffff00000001", "--max-growth", "0", "new.txt");
	said("", 0, "--heap", "1e0000", "new.txt");
	said("", 0, "--heap", "heaps", "new.txt");
}

TEST(pattern_that_matches_nothing_is_reported)
{
	said("hdiff: -i leek: warning: no changed stack has a matching frame\n", 0, "-i", "leek",
		"--max-growth", "0", "new.txt");
	said("hdiff: -i leek: warning: no changed stack has a matching frame\n"
	     "hdiff: -i MAIN: warning: no changed stack has a matching frame\n",
		1, "-i", "leek", "-i", "leak", "-i", "MAIN", "--max-growth", "0", "new.txt");
	said("hdiff: -i main: warning: no frame has a name that it could match\n", 0,
		"--no-symbols", "-i", "main", "new.txt");
}

/* Each pattern matches a frame, although an earlier pattern already decides the result. */
TEST(pattern_that_matches_anything_is_not_reported)
{
	char raw[40], addr[40];

	snprintf(raw, sizeof(raw), "^app\\+%" PRIX64 "$", made_offset(LEAK));
	snprintf(addr, sizeof(addr), "^%" PRIX64 "$", APP_BASE + made_offset(LEAK));
	said("", 0, "-i", "leak", "-i", "leak_here", "-i", "leak\\.c$", "-i", "^app!", "new.txt");
	said("", 0, "-i", ".", "-i", raw, "-i", addr, "new.txt");
	said("", 0, "-i", raw, "-i", "leak_here", "-n", "0", "new.txt");
	said("", 0, "-i", "leak_here", "-i", raw, "-x", "leak", "new.txt");
	said("", 0, "-x", raw, "-i", "leak_here", "new.txt");
	said("", 0, "-i", "leak_here", "-x", "helper", "new.txt");
}

TEST(exclusion_that_matches_nothing_is_reported)
{
	said("hdiff: -x nothing at all: warning: no changed stack has a matching frame\n", 0, "-i",
		"helper", "-x", "nothing at all", "new.txt");
	said("hdiff: -x nothing: warning: no changed stack has a matching frame\n", 0, "-x",
		"leak_here", "-x", "nothing", "new.txt");
}

TEST(pattern_is_held_against_what_other_filters_leave)
{
	said("", 0, "-i", "leak", "--module", "app", "new.txt");
	said("hdiff: -i helper: warning: no changed stack that passes the other options has a "
	     "matching frame\n",
		0, "-i", "helper", "--min-bytes", "5", "new.txt");
	said("hdiff: -i leek: warning: no changed stack that passes the other options has a "
	     "matching frame\n",
		0, "-i", "leek", "--heap", "1E0000", "new.txt");
	said("hdiff: -i leek: warning: no changed stack has a matching frame\n", 0, "-i", "leek",
		"-x", "leak", "new.txt");
	said("hdiff: -i ^2: warning: no changed stack that passes the other options has a matching "
	     "frame\n",
		0, "-i", "^2", "--module", "app", "new.txt");
	/* The dumps are equal, so the pattern had nothing to match. */
	said("hdiff: new.txt: warning: the same snapshot as new.txt\n", 0, "-i", "leak", "new.txt",
		"new.txt");
	said("hdiff: --module nosuch: warning: no module has this name\n", 0, "-i", "leak",
		"--module", "nosuch", "new.txt");
}
