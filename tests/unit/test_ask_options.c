/* hdiff: limits of growth, and what options are refused or taken. */
#include "tests/unit/t.h"

#include "tests/unit/test_ask.h"

static made_stack stacks[] = {
	{NEW, MALLOC, LEAK, MAIN}, /* 1 */
	{MALLOC, CACHE, MALLOC, MAIN}, /* 2 */
	{MALLOC, NEW}, /* 4 */
	{LIB_NAMELESS, MALLOC, HELPER}, /* 8 */
	{NOWHERE, MAIN}, /* 16 */
};

static void make(void)
{
	write_stacks("new.txt", stacks, sizeof(stacks) / sizeof(*stacks));
}

static void write_list(const char *text)
{
	write_bytes("more.txt", text, strlen(text));
}

/* ---------------------------------------------------------------- limits */

TEST(growth_over_a_limit_is_status_1_and_says_by_how_much)
{
	make(); /* 31 bytes in 5 blocks */
	struct result *result = ask_hdiff("--max-growth", "30", "new.txt");
	assert_int_equal(result->status, 1);
	assert_int_equal(result->row_count, 5);
	assert_non_null(
		strstr(result->words, "hdiff: growth of 31 bytes is 1 over the limit of 30\n"));
	ask_expect(1, "hdiff: growth of 5 blocks is 2 over the limit of 3\n", "--max-growth=1K,3",
		"new.txt");
	result = ask_expect(
		1, "growth of 31 bytes is 31 over the limit of 0", "--max-growth=0,0", "new.txt");
	assert_non_null(strstr(result->words, "growth of 5 blocks is 5 over the limit of 0"));
}

TEST(growth_up_to_a_limit_is_status_0)
{
	struct result *result;

	make();
	write_stacks("old.txt", stacks, sizeof(stacks) / sizeof(*stacks));
	write_stacks("more.txt", stacks, 3);
	for (int i = 0; i < 3; i++) {
		static const char *const asked[][3] = {{"31,5", "new.txt", NULL},
			{"0,0", "old.txt", "new.txt"}, {"0,0", "old.txt", "more.txt"}};

		result = ask_hdiff("--max-growth", asked[i][0], asked[i][1], asked[i][2]);
		assert_int_equal(result->status, 0);
		assert_null(strstr(result->words, "limit"));
	}
}

TEST(a_limit_is_for_what_is_selected_not_for_what_is_shown)
{
	make();
	struct result *result = ask_hdiff("--max-growth", "30", "-n", "1", "new.txt");
	assert_int_equal(result->status, 1);
	result = ask_hdiff("--max-growth", "3", "-i", "leak|cache", "new.txt");
	assert_int_equal(result->status, 0);
	write_list("leak:main\n"); /* leaves 4 + 8 */
	result = ask_hdiff("--max-growth", "12", "--suppress", "more.txt", "new.txt");
	assert_int_equal(result->status, 0);
	ask_expect(1, "growth of 12 bytes is 1 over the limit of 11\n", "--max-growth", "11",
		"--suppress", "more.txt", "new.txt");
}

/* What is missing counts for more than what is too much, unless --force allows it. */
TEST(growth_of_a_damaged_dump_is_said_and_status_2)
{
	struct maker maker = dump_new((struct maker){0});
	put_block(&maker, 40, 8, "1", 1);
	put(&maker, "1 bytes + 2 at zz by BackTrace1");
	dump_end(&maker, "new.txt");
	for (int is_forced = 0; is_forced < 2; is_forced++) {
		struct result *result = ask_hdiff(
			"--max-growth", "39", is_forced ? "--force" : "--strip", "new.txt");

		assert_int_equal(result->status, is_forced ? 1 : 2);
		assert_non_null(strstr(result->words, "growth of 40 bytes is 1 over the limit"));
		assert_int_equal(result->row_count, 1);
	}
}

static void expect_status(int status, struct result *result)
{
	assert_int_equal(result->status, status);
}

static const char incomplete[] = "// hsnap: incomplete missing=2";
static const char whole[] = "// hsnap: incomplete missing=0";
/* Of a version without that note. */
static const char unwalked[] = "// hsnap: heap addr=5000 kind=unknown unwalked=1";

static void make_one_block(const char *path, const char *note)
{
	struct maker maker = dump_new((struct maker){.is_ours = true});
	put(&maker, "%s", note);
	put_block(&maker, 40, 8, "1", 1);
	dump_end(&maker, path);
}

/* Two dumps, of which the first, the second or both are incomplete. */
static void expect_judged(const char *old_note, const char *new_note)
{
	bool is_old_incomplete = old_note != whole, is_new_incomplete = new_note != whole;
	bool is_incomplete = is_old_incomplete || is_new_incomplete;

	make_one_block("old.txt", old_note);
	make_one_block("new.txt", new_note);
	struct result *result = ask_hdiff("--max-growth", "1T", "old.txt", "new.txt");
	assert_int_equal(result->status, is_incomplete ? 2 : 0);
	assert_int_equal(
		strstr(result->words, "old.txt: warning: --max-growth") != NULL, is_old_incomplete);
	assert_int_equal(
		strstr(result->words, "new.txt: warning: --max-growth") != NULL, is_new_incomplete);
	expect_status(0, ask_hdiff("--max-growth", "1T", "old.txt", "new.txt", "--force"));
	expect_status(0, ask_hdiff("old.txt", "new.txt"));
}

/* A limit is not kept by what hsnap knew to be incomplete, whatever the growth. */
TEST(growth_of_an_incomplete_dump_is_not_judged)
{
	expect_judged(whole, whole);
	expect_judged(incomplete, whole);
	expect_judged(whole, unwalked);
	expect_judged(unwalked, incomplete);
	expect_status(2, ask_hdiff("--max-growth", "39", "new.txt"));
	expect_status(1, ask_hdiff("--max-growth", "39", "--force", "new.txt"));
}

/* ---------------------------------------------------------------- options */

TEST(wrong_values_are_refused_with_their_option)
{
	make();
	refused("hdiff: --max-growth 5X: ", "--max-growth", "5X", "new.txt");
	refused("hdiff: --max-growth 1K,: ", "--max-growth=1K,", "new.txt");
	refused("hdiff: --max-growth ,5: ", "--max-growth", ",5", "new.txt");
	refused("decimal number", "--max-growth", "5,", "new.txt");
	refused("hdiff: --max-growth 5Q: ", "-max-growth:5Q", "new.txt");
	refused("hdiff: --min-bytes 99999999999T: ", "--min-bytes", "99999999999T", "new.txt");
	refused("hdiff: --min-count 1K: ", "--min-count", "1K", "new.txt");
	refused("hdiff: -n -1: ", "-n", "-1", "new.txt");
	refused("hdiff: -n 5x: ", "-n5x", "new.txt");
	refused("hdiff: --heap 12G4: ", "--heap", "12G4", "new.txt");
	refused("hdiff: --heap 0x: ", "--heap", "0x", "new.txt");
	refused("hdiff: --heap 11112222333344445: ", "--heap", "11112222333344445", "new.txt");
	refused("hdiff: --sort size: ", "--sort", "size", "new.txt");
	refused("bytes, count, new, old, name", "--sort", "size", "new.txt");
	refused("hdiff: --group line: ", "--group", "line", "new.txt");
	refused("stack, function, file, module, heap", "--group", "line", "new.txt");
	refused("hdiff: --match name: ", "--match", "name", "new.txt");
	refused("auto, id, address, module, symbol", "--match", "name", "new.txt");
	refused("hdiff: --input-base 8: ", "--input-base", "8", "new.txt");
	refused("hex, decimal", "--input-base", "8", "new.txt");
	refused("hdiff: -o xml: ", "-o:xml", "new.txt");
	refused("hdiff: --format xml: ", "--format", "xml", "new.txt");
	refused("hdiff: -i a(: ", "--include", "a(", "new.txt");
	refused("hdiff: -x a(: ", "-x", "a(", "new.txt");
	refused("hdiff: --invert: ", "--group", "module", "--invert", "new.txt");
}

TEST(standard_input_is_read_once_only)
{
	make();
	refused("hdiff: -: wrong usage (standard input can be read once only)", "-", "-");
	refused("hdiff: -: wrong usage (standard", "--suppress", "-", "-");
	refused("hdiff: -: wrong usage (standard", "-", "--strip-file", "-");
	refused("hdiff: -: wrong usage (standard", "--strip-file=-", "--suppress=-", "new.txt");
	refused("hdiff: -: wrong usage (standard", "--suppress=-", "--suppress=-", "new.txt");
}

TEST(an_unknown_format_lists_what_there_is)
{
	make();
	for (const struct report_format *format = report_formats; format->name; format++)
		refused(format->name, "-o", "no such", "new.txt");
	assert_int_equal(shown_of("-o", "text", "new.txt"), 31);
	assert_int_equal(shown_of("--format=text", "new.txt"), 31);
}

TEST(the_report_takes_the_place_of_no_list)
{
	make();
	write_list("leak:a\n");
	for (int i = 0; i < 2; i++) {
		ask_expect(2, "hdiff: more.txt: ", "--output", "more.txt",
			i ? "--suppress" : "--strip-file", "more.txt", "new.txt");
	}
}

TEST(of_an_option_given_twice_the_last_one_counts)
{
	static const struct {
		const char *first, *second;
		bool strip, hex;
		size_t shown_max;
	} cases[] = {{"--strip", "--no-strip", false, false, SIZE_MAX},
		{"--strip-file=x", "--no-strip", false, false, SIZE_MAX},
		{"--no-strip", "--strip-file=x", true, false, SIZE_MAX},
		{"--hex", "-d", false, false, SIZE_MAX}, {"-d", "--hex", false, true, SIZE_MAX},
		{"-n7", "-n5", false, false, 5}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *argv[] = {(char *)(uintptr_t) "hdiff", (char *)(uintptr_t)cases[i].first,
			(char *)(uintptr_t)cases[i].second};
		struct options options;
		struct err err;

		assert_int_equal(options_parse(&options, 3, argv, &err), 0);
		assert_int_equal(options_strip(&options), cases[i].strip);
		assert_int_equal(options.style.hex, cases[i].hex);
		assert_int_equal(options.shown_max, cases[i].shown_max);
		options_release(&options);
	}
}
