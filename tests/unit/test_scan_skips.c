#include "tests/unit/test_scan_log.h"

static int scan_without_hook(const char *text, struct err *err)
{
	struct scan_log log;
	struct dump_sink sink = log_sink(&log);
	int rc;

	sink.skipped = NULL;
	rc = scan_in_parts(text, strlen(text), strlen(text), &sink, err);
	buf_release(&log.text);
	return rc;
}

/* Each line breaks one rule, sometimes after another line. */
static const struct {
	const char *line, *detail;
} bad_lines[] = {
	{"5 bytes + 6 at 7\n", "bad entry"},
	{"5 bytes + 6 at 7 by BackTrace\n", "bad entry"},
	{"5 bytes + x at 7 by BackTrace8\n", "bad entry"},
	{"5 bytes + 10000000000000000 at 7 by BackTrace8\n", "bad entry"},
	{"10000000000000000 bytes + 6 at 7 by BackTrace8\n", "bad entry"},
	{"5 bytes + 6 at 7 by BackTrace"
	 "0123456789012345678901234567890123456789012345678901234567890123\n",
		"bad entry"},
	{"5 bytes in 0x1 allocations (@ 0x5 by: BackTrace8\n", "bad entry"},
	{"*- - - Heap Hogs - - -\n", "bad heap heading"},
	{"*- - - End of data for heap @ xyz - -\n", "bad heap heading"},
	{"*- - Heap xyz\n", "bad heap heading"},
	{"10\n", "bad entry"},
	{"10 bytes\n", "bad entry"},
	{"50000 bytes +\n", "bad entry"},
	{"50000 bytes i\n", "bad entry"},
	{"\n\t0000 bytes + 8 at 2000 by BackTrace1\n", "a stack without an entry"},
	{"\n\t400zz\n", "a stack without an entry"},
	{"3O bytes + 8 at 7F0320 by BackTrace0\n", "bad entry"},
	{"Z bytes + 8 at 7F0320 by BackTrace0\n", "bad entry"},
	{" bytes + 8 at 7F0320 by BackTrace0\n", "bad entry"},
	{"5 bites + 6 at 7 by BackTrace8\n", "bad entry"},
	{"20 bytes im 0x4 allocations (@ 0x8) by: BackTrace8\n", "bad entry"},
	{"// hsnap: process id=\"x\n", "bad '// hsnap:' line"},
	{"// hsnap: process id=words\n", "bad '// hsnap:' line"},
	{"// hsnap: \n", "bad '// hsnap:' line"},
	{"// hsnap: a-kind-of-note-that-is-far-too-long-for-one a=1\n", "bad '// hsnap:' line"},
	{"\n\t401000\n", "a stack without an entry"},
	{"\n\tAlias\n", "a stack without an entry"},
};

TEST(bad_lines_are_reported_and_skipped)
{
	for (size_t i = 0; i < COUNT(bad_lines); i++) {
		const char *line = bad_lines[i].line;
		struct scan_log log;
		struct err err = {0};
		char text[400], place[20];

		snprintf(text, sizeof(text), ONE "%s" ONE, line);
		snprintf(place, sizeof(place), "made:%d", strchr(line, '\n')[1] ? 3 : 2);
		assert_int_equal(scan(&log, text, &err), 0);
		if (log.skips != 1)
			fail_msg("%d skips: %s", log.skips, line);
		assert_int_equal(log.entries, 2);
		assert_string_equal(log.first_skip.place, place);
		assert_string_equal(log.first_skip.detail, bad_lines[i].detail);
		buf_release(&log.text);
		assert_int_equal(scan_without_hook(text, &err), -ERR_BAD_LINE);
		assert_string_equal(err.place, place);
		assert_string_equal(err.detail, bad_lines[i].detail);
	}
}

TEST(modules_outside_address_space_are_passed_over)
{
	expect_log("// Loaded modules:\n//  FFFFFFFFFFFFF000 2000 a.exe\n//  1000 2000 b.exe\n"
		   "// Process modules enumerated.\n",
		BAD "2 the module lies outside the address space\nmodule 1000 2000 b.exe\n");
}

TEST(bytes_that_are_no_text_are_passed_over)
{
	static const char text[] = ONE "wor\0ds\n" ONE "\t40\0001000\n\t402000\n" ONE;
	struct scan_log log;
	struct dump_sink sink = log_sink(&log);

	assert_int_equal(scan_in_parts(text, sizeof(text) - 1, 10, &sink, NULL), 0);
	assert_string_equal(log.text.data,
		ONE_LOG "\n" BAD "2 bytes that are not text\n" BAD
			"4 bytes that are not text\n" ONE_LOG "\n" ONE_LOG "\n");
	buf_release(&log.text);
}

TEST(lines_that_are_too_long_are_passed_over)
{
	static const struct {
		const char *before, *log;
	} cases[] = {
		{ONE "x", ONE_LOG "\n" BAD "2 a line is too long\n" ONE_LOG "\n"},
		{ONE "//", ONE_LOG "\n" ONE_LOG "\n"},
		{ONE "\t", BAD "2 a line is too long\n" ONE_LOG "\n" ONE_LOG "\n"},
		{ONE "\t401000\n\tx", BAD "3 a line is too long\n" ONE_LOG "\n" ONE_LOG "\n"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		char *text = many(cases[i].before, " words", DUMP_LINE_MAX / 6 + 1, "\n" ONE);

		expect_log(text, cases[i].log);
		free(text);
	}
}

TEST(bad_stack_costs_no_block)
{
	expect_log(ONE "\t401000\n\tmain\n\t402000\n\tmain\n" ONE "\t403000\n",
		BAD "3 bad stack line\n" ONE_LOG "\n" ONE_LOG " 403000\n");
	expect_log(ONE "\t1 2\n" ONE, BAD "2 bad stack line\n" ONE_LOG "\n" ONE_LOG "\n");
	expect_log(ONE "\t10000000000000000\n", BAD "2 bad stack line\n" ONE_LOG "\n");
}

TEST(stack_of_bad_entry_is_nobodys)
{
	expect_log(ONE "\t401000\n5 bytes + at\n\t402000\n\tmain\n\n" ONE,
		ONE_LOG " 401000\n" BAD "3 bad entry\n" ONE_LOG "\n");
}

TEST(stacks_that_are_too_deep_are_dropped)
{
	char *text = many(ONE, "\t401000\n", DUMP_FRAMES_MAX + 2, ONE);

	expect_log(text, BAD "1026 a stack is too deep\n" ONE_LOG "\n" ONE_LOG "\n");
	free(text);
	text = many(ONE, "\tAlias\n", DUMP_FRAMES_MAX + 2, "\t401000\n" ONE);
	expect_log(text, BAD "1026 too many stacks under one id\n" ONE_LOG "\n" ONE_LOG "\n");
	free(text);
}

TEST(there_is_limit_of_bad_lines)
{
	char *text = many(ONE, "5 bytes + x\n", DUMP_SKIPS_MAX, ONE);
	struct scan_log log;
	struct err err = {0};

	assert_int_equal(scan(&log, text, &err), 0);
	assert_int_equal(log.skips, DUMP_SKIPS_MAX);
	assert_int_equal(log.entries, 2);
	buf_release(&log.text);
	free(text);
	text = many(ONE, "5 bytes + x\n", DUMP_SKIPS_MAX + 1, ONE);
	assert_int_equal(scan(&log, text, &err), -ERR_BAD_LINE);
	assert_int_equal(log.skips, DUMP_SKIPS_MAX);
	assert_string_equal(err.place, "made:102"); /* after one entry */
	assert_string_equal(err.detail, "too many bad lines (100 were skipped)");
	buf_release(&log.text);
	free(text);
}

TEST(bad_lines_of_other_files_are_not_reported)
{
	static const char *const texts[] = {
		"words\n\t401000\nand words\n",
		"#include <stdio.h>\n\nint main(void)\n{\n\treturn 0;\n}\n",
		"5 bytes + what\n\tmain\n5 bytes + 6\n",
		"*- - - Heap words\n",
		"+ 10 ( 20 - 10) 2 allocs\tBackTrace1\n\tadd+0x1\n",
	};
	char *text = many("", "5 bytes + x\n", DUMP_SKIPS_MAX + 1, ONE);

	for (size_t i = 0; i < COUNT(texts); i++)
		expect_scan(texts[i], -ERR_NOT_DUMP, "");
	expect_scan(text, -ERR_NOT_DUMP, "");
	free(text);
}

TEST(bad_lines_before_first_sign_of_dump_are_reported_later)
{
	expect_log("\t401000\nwords\n5 bytes + x\n\t402000\n" ONE,
		BAD "1 a stack without an entry\n" BAD "3 bad entry\n" ONE_LOG "\n");
}

#define END1 "// hsnap: end blocks=1 requested=1 overhead=2\n"

TEST(wrong_sums_are_reported)
{
	expect_log(OURS ONE END1, "note dump 1\n" ONE_LOG "\nnote end 3\n");
	expect_log(OURS ONE ONE END1, "note dump 1\n" ONE_LOG "\n" ONE_LOG "\n" BAD
				      "4 the sums do not match the entries above\n");
	/* Only as many lines as are missing in the sums. */
	expect_log(OURS ONE "0 bytes + zz\n" END1,
		"note dump 1\n" ONE_LOG "\n" BAD "3 bad entry\nnote end 3\n");
}

TEST(some_things_are_errors_in_any_case)
{
	static const struct {
		int rc;
		const char *text, *log, *place;
	} cases[] = {
		{-ERR_VERSION, "// hsnap: dump format=2\n" ONE, "", "made:1"},
		{-ERR_BAD_LINE, OURS ONE END1 ONE, "note dump 1\n" ONE_LOG "\nnote end 3\n",
			"made:4"},
		{-ERR_CUT, OURS ONE "// hsnap: end blocks=x requested=1 overhead=2\n",
			"note dump 1\n" ONE_LOG "\n" BAD "3 bad '// hsnap:' line\n", "made:3"},
		/* a damaged first note still identifies hsnap */
		{-ERR_CUT, "// hsnap: dump format=one\n" ONE,
			BAD "1 bad '// hsnap:' line\n" ONE_LOG "\n", "made:2"},
		/* At the end of a cut file the scanner reports whole entries, and it reports a
		 * stack only at the end. */
		{-ERR_CUT, OURS ONE, "note dump 1\n" ONE_LOG "\n", "made:2"},
		{-ERR_CUT, OURS ONE "5 bytes + 6 at 7 by BackTrace8", "note dump 1\n" ONE_LOG "\n",
			"made:3"},
		{-ERR_CUT, OURS ONE "5 bytes + 6 a", "note dump 1\n" ONE_LOG "\n", "made:3"},
		{-ERR_CUT, OURS ONE "5 bytes in 0x1 alloc", "note dump 1\n" ONE_LOG "\n", "made:3"},
		{-ERR_CUT, OURS ONE "\t401000\n\t402000\n", "note dump 1\n" ONE_LOG "\n", "made:4"},
		{-ERR_CUT, OURS ONE "\t401000\n\t402", "note dump 1\n" ONE_LOG "\n", "made:4"},
		{-ERR_CUT, OURS ONE "\t401000\n\tAli", "note dump 1\n" ONE_LOG "\n", "made:4"},
		{-ERR_CUT, OURS ONE "\t401000\n\n", "note dump 1\n" ONE_LOG " 401000\n", "made:4"},
		{-ERR_CUT, OURS "4 bytes in 0x2 allocations (@ 0x2) by: BackTrace5\na!b+0x1\n",
			"note dump 1\nentry 2 4 0 0 5\n", "made:3"},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct err err = expect_scan(cases[i].text, cases[i].rc, cases[i].log);

		assert_string_equal(err.place, cases[i].place);
	}
}

/* The caller may know that the text was cut, even if the text does not show it. */
TEST(text_that_caller_calls_cut_is_not_trusted_at_its_end)
{
	static const char *const ends[] = {"5 bytes + 6 at 7 by BackTrace8", "\t401000\n", "\n"};

	for (size_t i = 0; i < COUNT(ends); i++) {
		struct scan_log log;
		struct dump_sink sink = log_sink(&log);
		struct dump_scanner *scanner = dump_scanner_new("made", &sink, NULL);
		char text[200] = ONE;
		int rc;

		assert_non_null(scanner);
		strcat(text, ends[i]);
		dump_scanner_cut(scanner);
		rc = dump_scanner_text(scanner, text, strlen(text), true);
		if (!rc)
			rc = dump_scanner_end(scanner);
		assert_int_equal(rc, -ERR_CUT);
		assert_string_equal(log.text.data, ONE_LOG "\n");
		dump_scanner_free(scanner);
		buf_release(&log.text);
	}
}
