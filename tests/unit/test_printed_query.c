#include "tests/unit/t.h"

#include "tests/unit/test_printed.h"

#include "diff/printed/printed.h"

#define raw(...) run_raw((const char *const[]){"-f", "out.txt", __VA_ARGS__, NULL})

static void write_new(const char *text)
{
	write_bytes("new.txt", text, strlen(text));
}

TEST(options_beyond_comparison_are_refused)
{
	write_new(hex_text);
	refused("a comparison does not record heaps", "--heap", "1E0000", "new.txt");
	refused("a comparison does not record heaps", "--group", "heap", "new.txt");
	refused("a comparison does not record heaps", "--group", "memory", "new.txt");
	refused("the stacks of a comparison are already matched", "--match", "id", "new.txt");
	refused("the stacks of a comparison are already matched", "--match", "address", "new.txt");
	refused("the stacks of a comparison are already matched", "--match", "module", "new.txt");
	refused("the stacks of a comparison are already matched", "--match", "symbol", "new.txt");
	run_hdiff("new.txt", "--match", "auto"); /* parses the report into the result */
}

/* The stacks of a printed comparison can be matched only by name. */
TEST(names_stay_where_no_symbols_are_asked_for)
{
	struct result *with, *without;

	write_new(hex_text);
	with = raw("new.txt");
	without = raw("--no-symbols", "new.txt");
	assert_int_equal(with->status, 0);
	assert_int_equal(without->status, 0);
	assert_string_equal(with->text, without->text);
	assert_string_equal(without->words, "");
	assert_non_null(strstr(without->text,
		"\tCppResourceLeaks!LeakHeapMemory+83 (...\\cppresourceleaks.cpp, "
		"228)\n"));
}

/* All options whose results UMDH's form cannot represent. */
TEST(report_of_ours_that_is_not_plain_is_refused_with_remedy)
{
	static const char *const asked[][2] = {{"--group", "function"}, {"--group", "file"},
		{"--group", "module"}, {"-n", "1"}, {"-i", "LeakHeap"}, {"-x", "LeakHeap"},
		{"--min-bytes", "9000"}, {"--invert", "-d"}};

	write_new(hex_text);
	for (size_t i = 0; i < COUNT(asked); i++) {
		struct result *result = raw(asked[i][0], asked[i][1], "new.txt");

		assert_int_equal(result->status, 0);
		write_bytes("more.txt", result->text, strlen(result->text));
		refused("more.txt: is not a heap dump (a grouped, filtered, inverted or trend "
			"report; only a plain report of all stacks can be read back: compare the "
			"dumps, or use -o json)",
			"more.txt");
		refused("can be read back", "--force", "more.txt");
	}
}

TEST(report_of_stacks_in_doubt_or_of_trend_is_refused)
{
	static const char *const stacks[] = {
		"10 bytes + 8 at 100 by BackTraceE\n\t1000\n\tAlias\n\t2000\n\n",
		"10 bytes + 8 at 100 by BackTraceF\n\t3000\n\n"
		"10 bytes + 8 at 200 by BackTraceF\n\t4000\n\n"
		"10 bytes + 8 at 300 by BackTraceF\n"};

	for (size_t i = 0; i < COUNT(stacks); i++) {
		struct maker maker = dump_new((struct maker){0});
		struct result *result;

		put_lines(&maker, stacks[i]);
		dump_end(&maker, "old.txt");
		result = raw("--no-symbols", "old.txt");
		assert_int_equal(result->status, 0);
		write_bytes("more.txt", result->text, strlen(result->text));
		refused("only a plain report of all stacks", "more.txt");
	}
	write_new("// hdiff 1: trend by stack\n" GOOD "Total increase == 8\n");
	refused("only a plain report of all stacks", "new.txt");
}

TEST(other_forms_of_our_reports_are_named)
{
	static const char *const asked[][3] = {{"json", "stack", "in JSON"},
		{"json", "module", "in JSON"}, {"csv", "stack", "in CSV"},
		{"csv", "module", "in CSV"}, {"text", "stack", "for reading, not for hdiff"}};

	write_new(hex_text);
	for (size_t i = 0; i < COUNT(asked); i++) {
		struct result *result = raw("-o", asked[i][0], "--group", asked[i][1], "new.txt");

		assert_int_equal(result->status, 0);
		write_bytes("more.txt", result->text, strlen(result->text));
		refused(asked[i][2], "more.txt");
	}
	write_new("Dear diary\n");
	refused("nor is it a comparison", "new.txt");
}

/* ---------------------------------------------------------------- after messages */

/* Writes two lines for each module, as UMDH prints them while it searches for symbols. */
static void write_behind_messages(const char *text)
{
	struct buf all;

	buf_init(&all);
	while (all.len < 2 * SOURCE_PEEK_BYTES)
		buf_add_text(&all, "DBGHELP: ntdll - public symbols  \n"
				   "         d:\\symbols\\ntdll.pdb\n");
	buf_add_text(&all, text);
	write_bytes("new.txt", all.data, all.len);
	buf_release(&all);
}

TEST(comparison_is_found_behind_many_messages)
{
	struct result *result;

	write_behind_messages(hex_text);
	result = run_status(0, "new.txt");
	assert_string_equal(result->words, "");
	assert_int_equal(result->row_count, 2);
	assert_int_equal(growth(&result->rows[0]), 0x2a98c90);
	write_behind_messages("");
	refused("nor is it a comparison", "new.txt");
}

/* The messages before the text are too long: hdiff can no longer start reading anew. */
TEST(from_standard_input_that_is_refused_with_remedy)
{
	write_behind_messages(hex_text);
	assert_non_null(freopen("new.txt", "r", stdin));
	refused("save it to a file", "-");
	write_new("Dear diary\n");
	assert_non_null(freopen("new.txt", "r", stdin));
	refused("nor is it a comparison", "-");
	write_new(hex_text);
	assert_non_null(freopen("new.txt", "r", stdin));
	run_hdiff("-");
}

TEST(first_sign_identifies_kind_of_file)
{
	static const struct {
		const char *text;
		enum file_kind kind;
	} texts[] = {{"", FILE_UNKNOWN}, {GOOD, FILE_COMPARISON},
		{"// Loaded modules: \n" GOOD, FILE_DUMP},
		{GOOD "// Loaded modules: \n", FILE_COMPARISON}};

	for (size_t i = 0; i < COUNT(texts); i++) {
		enum file_kind kind = FILE_UNKNOWN;
		struct source *source;

		write_behind_messages(texts[i].text);
		assert_int_equal(source_open(&source, "new.txt", NULL), 0);
		assert_int_equal(file_kind_find(&kind, source, NULL), 0);
		assert_int_equal(kind, texts[i].kind);
		source_close(source);
	}
}

/* ---------------------------------------------------------------- missing parts */

TEST(rows_with_header_and_no_total_line_are_cut_short)
{
	static const struct {
		const char *header;
		int status;
	} texts[] = {
		{"", 0},
		{"// Debug library initialized ...\n", 0},
		{"// + BYTES_DELTA (NEW_BYTES - OLD_BYTES) NEW_COUNT allocs BackTrace TRACEID\n",
			2},
		{"// hdiff 1: heap growth by stack\n", 2},
	};

	for (size_t i = 0; i < COUNT(texts); i++) {
		char text[1000];
		struct result *result;

		snprintf(text, sizeof(text), "%s" GOOD, texts[i].header);
		write_new(text);
		result = run_status(texts[i].status, "new.txt");
		assert_int_equal(result->row_count, 1);
		assert_non_null(strstr(result->words, "total line"));
		assert_int_equal(
			strstr(result->words, "cut short; only the complete part is used") != NULL,
			texts[i].status == 2);
		run_status(0, "--force", "new.txt");
	}
}

TEST(report_states_what_its_comparison_lacks)
{
	static const struct {
		const char *text, *header, *json;
	} texts[] = {
		{GOOD "Total increase == 8\n", "not computed from dumps\n//\n",
			"\"cut\":false,\"warning_count\":0,\"warnings\":[]}"},
		{GOOD "+ 1 ( 1 ",
			"not computed from dumps, CUT SHORT: sums cover only the complete part\n",
			"\"cut\":true,"},
		{ONE_ROW("10", "10", "0") "Total increase == 10\n",
			"\n// warning: new.txt: nothing in it shows whether its numbers are hex",
			"\"cut\":false,\"warning_count\":1,\"warnings\":[\"nothing in it shows"},
		{GOOD "+ 5 ( hello\nTotal increase == 8\n",
			"\n// warning: new.txt: line 6 was left out: begins like a row",
			"\"cut\":false,\"warning_count\":1,\"warnings\":[\"line 6 was left out: "},
	};

	for (size_t i = 0; i < COUNT(texts); i++) {
		struct result *result;

		write_new(texts[i].text);
		result = raw("new.txt");
		if (!strstr(result->text, texts[i].header))
			fail_msg("no %s in %s", texts[i].header, result->text);
		result = raw("-o", "json", "new.txt");
		if (!strstr(result->text, texts[i].json))
			fail_msg("no %s in %s", texts[i].json, result->text);
	}
}

TEST(report_of_what_was_cut_short_is_not_taken_for_whole)
{
	struct result *made;

	write_new(GOOD "+ 1 ( 1 ");
	made = raw("new.txt");
	assert_int_equal(made->status, 2);
	write_new(made->text);
	refused("only a plain report of all stacks", "new.txt");
}

TEST(of_many_warnings_first_are_kept_and_all_are_counted)
{
	struct result *result;
	struct buf text;
	size_t count = 0;

	buf_init(&text);
	for (unsigned i = 0; i < 25; i++)
		buf_add_text(&text, "+ 5 ( hello\n");
	buf_add_text(&text, GOOD "Total increase == 8\n");
	write_new(text.data);
	result = raw("new.txt");
	for (const char *at = result->text; (at = strstr(at, "\n// warning: new.txt: line ")); at++)
		count++;
	assert_int_equal(count, 20);
	assert_non_null(strstr(result->text, "\n// warning: new.txt: 5 more warnings not shown\n"));
	result = raw("-o", "json", "new.txt");
	assert_non_null(strstr(result->text, "\"warning_count\":25,"));
	buf_release(&text);
}
