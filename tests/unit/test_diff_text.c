/* hdiff: the layout of its text, and its options. */
#include "core/out.h"
#include "diff/report.h"
#include "tests/unit/test_diff.h"

static char root[1000]; /* the folder the tests were started in */

static void put_leak(struct maker *maker, uint64_t blocks)
{
	for (uint64_t i = 0; i < blocks; i++)
		put_entry(maker, 500, 12, "74050");
	put_stack(maker, 1);
	put(maker, "%s", "");
}

static void the_layout_is_that_of_umdh(void **state)
{
	static const char hex[] =
		"+ 2a98c90 ( 2a98c90 -     0)  15cf4 allocs\tBackTrace74050\n"
		"+   15cf4 ( 15cf4 -     0)\tBackTrace74050\tallocations\n"
		"\n"
		"\tapp+1010 : 140001010\n"
		"\tlib+501 : 7FF812340501\n"
		"\tapp+800 : 140000800\n"
		"\n"
		"-     1f4 (     0 -   1f4)      0 allocs\tBackTrace73F28\n"
		"-       1 (     0 -     1)\tBackTrace73F28\tallocations\n"
		"\n"
		"\tapp+1020 : 140001020\n"
		"\tlib+502 : 7FF812340502\n"
		"\tapp+800 : 140000800\n"
		"\n"
		"\n\n\nTotal increase == 2a98a9c requested + 105b6e overhead = 2b9e60a\n";
	static const char decimal[] =
		"+44666000 ( 44666000 -      0)  89332 allocs\tBackTrace74050\n"
		"+   89332 (  89332 -      0)\tBackTrace74050\tallocations\n";
	struct maker maker;
	struct result *result;

	(void)state;
	dump_begin(&maker, (struct maker){0});
	put_block(&maker, 500, 2, "73F28", 2);
	dump_end(&maker, "old.txt");
	dump_begin(&maker, (struct maker){0});
	put_leak(&maker, 0x15cf4);
	dump_end(&maker, "new.txt");
	result = run_hdiff("--hex", "old.txt", "new.txt");
	assert_string_equal(strstr(result->text, "+ 2a98c90"), hex);
	assert_non_null(strstr(result->text, "Numbers are hexadecimal"));
	result_free(result);
	result = run_hdiff("-v", "-l", "old.txt", "new.txt");
	assert_non_null(strstr(result->text, decimal));
	assert_non_null(strstr(result->text, "Numbers are decimal"));
	assert_non_null(strstr(result->text,
		"\n-     500 (      0 -    500)      0 allocs\tBackTrace73F28\n"
		"-       1 (      0 -      1)\tBackTrace73F28\tallocations\n\n"));
	result_free(result);
}

static void the_header_names_the_dumps(void **state)
{
	struct maker maker;
	struct result *result;

	(void)state;
	dump_begin(&maker, (struct maker){.is_ours = true});
	put_lines(&maker, "// hsnap: dump format=1 time=2026-01-02T03:04:05.678Z\n"
			  "// hsnap: process id=4711 start=2026-01-01T00:00:00.000Z "
			  "image=\"C:\\\\bad\\x0Aapp.exe\"\n");
	dump_end(&maker, "new.txt");
	result = run_hdiff("old.txt", "new.txt");
	assert_int_equal(result->status, 2);
	result_free(result);
	result = run_hdiff("new.txt");
	assert_non_null(strstr(result->text,
		"\n// NEW: new.txt, bad?app.exe, process 4711, started 2026-01-01T00:00:00.000Z, "
		"taken 2026-01-02T03:04:05.678Z\n// OLD: none"));
	assert_int_equal(strncmp(result->text, "// hdiff " HSNAP_VERSION, 14), 0);
	result_free(result);
}

/* ---------------------------------------------------------------- names */

static char *report_with(struct naming *naming, const struct comparison *comparison)
{
	struct report_style style = {.hex = false};
	struct err err;
	struct out out;

	assert_int_equal(out_open(&out, "out.txt", &err), 0);
	report_text(&out, comparison, naming, &style);
	assert_int_equal(out_commit(&out, &err), 0);
	return read_text("out.txt");
}

static void names_inlined_functions_and_lines_are_shown(void **state)
{
	static const struct symbol found[] = {
		{"inlined", 0x1f, "a,(1).c", 7}, {"outer<int, char>\n", 0xAB, "b.c", 0}};
	struct comparison comparison;
	struct naming naming;
	struct maker maker;
	struct sums sums;
	struct buf words;
	struct err err;
	char *text;

	(void)state;
	dump_begin(&maker, (struct maker){0});
	put_block(&maker, 500, 2, "1", 2);
	dump_end(&maker, "new.txt");
	sums_init(&sums);
	buf_init(&words);
	assert_int_equal(sums_read(&sums, "new.txt", &err), 0);
	assert_int_equal(comparison_make(&comparison, &sums, 1), 0);
	assert_int_equal(naming_make(&naming, &comparison, false, &err), 0);
	naming.frames[0].found = (struct symbols){found, 2};
	naming.frames[1].found = (struct symbols){found, 1};
	text = report_with(&naming, &comparison);
	assert_non_null(strstr(text, "\tapp!inlined+1F (a,(1).c, 7) [inline]\n"
				     "\tapp!outer<int, char>?+AB\n"
				     "\tlib!inlined+1F (a,(1).c, 7)\n"
				     "\tapp+800 : 140000800\n\n"));
	assert_int_equal(naming_missing(&naming, &words), 0);
	assert_string_equal(words.data, "1 of 3 frames have no name: 1 in app");
	free(text);
	buf_release(&words);
	naming_release(&naming);
	comparison_release(&comparison);
	sums_release(&sums);
}

static void names_that_a_dump_carries_are_used(void **state)
{
	char *argv[] = {(char *)(uintptr_t) "hdiff", (char *)(uintptr_t) "-fout.txt",
		(char *)(uintptr_t) "new.txt"};
	FILE *say = tmpfile();
	struct maker maker;
	char *text, words[200];

	(void)state;
	assert_non_null(say);
	dump_begin(&maker, (struct maker){.is_ours = true});
	put(&maker, "// hsnap: name addr=%" PRIX64 " function=\"leak here\" offset=2F",
		APP_BASE + 0x1010);
	put_block(&maker, 500, 2, "1", 1);
	dump_end(&maker, "new.txt");
	assert_int_equal(hdiff_run(3, argv, say), 0);
	text = read_text("out.txt");
	assert_non_null(strstr(text, "\n\tapp!leak here+2F\n\tlib+501 : 7FF812340501\n"));
	free(text);
	rewind(say);
	assert_non_null(fgets(words, sizeof(words), say));
	assert_string_equal(words, "hdiff: 2 of 3 frames have no name: 1 in app, 1 in lib\n");
	assert_int_equal(fclose(say), 0);
}

/* ---------------------------------------------------------------- options */

static void wrong_usage_is_refused(void **state)
{
	struct maker maker;
	struct result *result;

	(void)state;
	dump_begin(&maker, (struct maker){0});
	dump_end(&maker, "new.txt");
	result = run_hdiff("new.txt", "new.txt", "new.txt");
	assert_int_equal(result->status, 2);
	assert_non_null(strstr(result->words, "two dumps at most"));
	result_free(result);
	result = run_hdiff("--nonsense", "new.txt");
	assert_int_equal(result->status, 2);
	assert_non_null(strstr(result->words, "there is no such option"));
	result_free(result);
	result = run_hdiff(NULL);
	assert_int_equal(result->status, 2);
	assert_int_equal(strncmp(result->words, "usage: hdiff ", 13), 0);
	result_free(result);
	result = run_hdiff("-f", "missing/out.txt", "new.txt");
	assert_int_equal(result->status, 2);
	assert_non_null(strstr(result->words, "cannot create"));
	result_free(result);
}

/* The man page has ".It Fl name" for each option that --help lists, and for no other. */
static void the_man_page_lists_the_options(void **state)
{
	char path[1200], line[100], *page;
	size_t listed = 0, shown = 0;

	(void)state;
	snprintf(path, sizeof(path), "%s/man/hdiff.1", root);
	page = read_text(path);
	assert_non_null(page);
	for (const struct opt *opt = hdiff_options; opt->id; opt++) {
		if (!opt->help)
			continue;
		listed++;
		snprintf(line, sizeof(line), ".It Fl %s%s%s%s%s%s\n",
			opt->short_name ? opt->short_name : "",
			opt->short_name && opt->long_name ? " , Fl " : "",
			opt->long_name ? "-" : "", opt->long_name ? opt->long_name : "",
			opt->value ? " Ar " : "", opt->value ? opt->value : "");
		if (!strstr(page, line))
			fail_msg("man/hdiff.1 lacks: %s", line);
	}
	for (const char *at = page; (at = strstr(at, "\n.It Fl ")); at++)
		shown++;
	assert_int_equal(shown, listed);
	free(page);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_folder, leave_folder)
	const struct CMUnitTest tests[] = {
		TEST(the_layout_is_that_of_umdh),
		TEST(the_header_names_the_dumps),
		TEST(names_inlined_functions_and_lines_are_shown),
		TEST(names_that_a_dump_carries_are_used),
		TEST(wrong_usage_is_refused),
		TEST(the_man_page_lists_the_options),
	};

	if (!getcwd(root, sizeof(root)))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
