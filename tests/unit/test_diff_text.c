#include "tests/unit/t.h"

#include "diff/file_list.h"
#include "diff/hdiff.h"
#include "tests/unit/test_naming.h"
#include "tests/unit/test_report.h"

static void write_leak(struct maker *maker, uint64_t blocks)
{
	for (uint64_t i = 0; i < blocks; i++)
		write_entry(maker, 500, 12, "74050");
	put_stack(maker, 1);
	put(maker, "%s", "");
}

TEST(text_for_people_has_words_for_what_has_no_stack)
{
	struct maker maker = dump_new((struct maker){.is_ours = true});
	struct result *result;

	write_entry(&maker, 500, 12, "0");
	put(&maker, "%s", "");
	dump_end(&maker, "new.txt");
	result = run_raw((const char *const[]){"-f", "out.txt", "-otext", "new.txt", NULL});
	assert_int_equal(result->status, 0);
	assert_non_null(strstr(result->text, "\n  1 500 B, 1 block\n      (no stack recorded)\n"));
}

/* Adds such blocks at each size at which the tree must grow. */
TEST(call_tree_has_room_for_what_has_no_stack)
{
	for (unsigned count = 1; count < 70; count++) {
		struct maker maker = dump_new((struct maker){.is_ours = true});
		struct result *result;
		char wanted[80];

		for (unsigned i = 1; i <= count; i++) {
			write_entry(&maker, 1000, 12,
				(char[]){(char)('A' + i % 6), (char)('A' + i / 6), '\0'});
			put(&maker, "\t%X", 0x1000 + i);
			put(&maker, "%s", "");
		}
		write_entry(&maker, 500, 12, "0");
		put(&maker, "%s", "");
		dump_end(&maker, "new.txt");
		result = run_raw((const char *const[]){
			"-f", "out.txt", "-otext", "--tree", "--min-bytes", "1", "new.txt", NULL});
		assert_int_equal(result->status, 0);
		snprintf(wanted, sizeof(wanted), "%u stack", count + 1);
		assert_non_null(strstr(result->text, wanted));
	}
}

TEST(layout_is_that_of_umdh)
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

	struct maker maker = dump_new((struct maker){0});
	put_block(&maker, 500, 2, "73F28", 2);
	dump_end(&maker, "old.txt");
	maker = dump_new((struct maker){0});
	write_leak(&maker, 0x15cf4);
	dump_end(&maker, "new.txt");
	struct result *result = run_hdiff("--hex", "old.txt", "new.txt");
	assert_string_equal(strstr(result->text, "+ 2a98c90"), hex);
	assert_non_null(strstr(result->text, "Numbers are hexadecimal"));
	result = run_hdiff("-v", "-l", "old.txt", "new.txt");
	assert_non_null(strstr(result->text, decimal));
	assert_non_null(strstr(result->text, "Numbers are decimal"));
	assert_non_null(strstr(result->text,
		"\n-     500 (      0 -    500)      0 allocs\tBackTrace73F28\n"
		"-       1 (      0 -      1)\tBackTrace73F28\tallocations\n\n"));
}

TEST(header_names_dumps)
{
	struct maker maker = dump_new((struct maker){.is_ours = true});
	put_lines(&maker, "// hsnap: dump format=1 time=2026-01-02T03:04:05.678Z\n"
			  "// hsnap: process id=4711 start=2026-01-01T00:00:00.000Z "
			  "image=\"C:\\\\bad\\x0Aapp.exe\"\n");
	dump_end(&maker, "new.txt");
	run_status(2, "old.txt", "new.txt");
	struct result *result = run_hdiff("new.txt");
	assert_non_null(strstr(result->text,
		"\n// NEW: new.txt, bad?app.exe, process 4711, started 2026-01-01T00:00:00.000Z, "
		"taken 2026-01-02T03:04:05.678Z\n// OLD: none"));
	assert_int_equal(strncmp(result->text, "// hdiff " HSNAP_VERSION, 14), 0);
}

/* ---------------------------------------------------------------- names */

TEST(names_inlined_functions_and_lines_are_shown)
{
	static const struct symbol found[] = {
		{.function = "inlined", .offset_bytes = 0x1f, .file = "a,(1).c", .line = 7},
		{.function = "outer<int, char>\n", .offset_bytes = 0xAB, .file = "b.c"}};
	struct maker maker = dump_new((struct maker){0});
	struct naming *naming;
	struct made *made;
	struct buf words;

	put_block(&maker, 500, 2, "1", 2);
	dump_end(&maker, "new.txt");
	made = made_read(1);
	naming = &made->view.naming;
	name_frame(naming, 0, 0, (struct symbols){found, 2});
	name_frame(naming, 0, 1, (struct symbols){found, 1});
	assert_non_null(
		strstr(made_report(made, "umdh", false), "\tapp!inlined+1F (a,(1).c, 7) [inline]\n"
							 "\tapp!outer<int, char>?+AB\n"
							 "\tlib!inlined+1F (a,(1).c, 7)\n"
							 "\tapp+800 : 140000800\n\n"));
	buf_init(&words);
	naming_missing(naming, false, &words);
	assert_string_equal(words.data,
		"1 of 3 frames has no name: 1 in app; hsym --explain new.txt shows why");
	buf_release(&words);
}

TEST(names_that_dump_carries_are_used)
{
	struct maker maker = dump_new((struct maker){.is_ours = true});

	put(&maker, "// hsnap: name addr=%" PRIX64 " function=\"leak here\" offset=2F",
		APP_BASE + 0x1010);
	put_block(&maker, 500, 2, "1", 1);
	dump_end(&maker, "new.txt");
	struct result *result = ask_expect(0,
		"hdiff: 2 of 3 frames have no name: 1 in app, 1 in lib; hsym --explain new.txt "
		"shows why\n",
		"new.txt");
	assert_non_null(strstr(result->text, "\n\tapp!leak here+2F\n\tlib+501 : 7FF812340501\n"));
}

/* An address outside all modules has no name in either file. */
TEST(addresses_in_no_module_have_no_remedy)
{
	struct maker maker = dump_new((struct maker){.is_ours = true});

	put(&maker, "%s", "");
	write_entry(&maker, 5, 8, "1");
	put(&maker, "\t1234\n");
	dump_end(&maker, "new.txt");
	ask_expect(0, "hdiff: 1 of 1 frame has no name: 1 in no module\n", "new.txt");
}

TEST(further_ids_are_listed_up_to_limit)
{
	for (unsigned count = 64; count <= 67; count++) {
		char id[20], end[60];

		struct maker maker = dump_new((struct maker){0});
		for (unsigned i = 0; i < count; i++) {
			snprintf(id, sizeof(id), "%X", 0x100 + i);
			put_block(&maker, 5, 8, id, 1);
		}
		dump_end(&maker, "new.txt");
		struct result *result = run_rows(1, "new.txt");
		assert_string_equal(result->rows[0].id, "100");
		/* The first id is the row's label. Up to 64 further ids are listed. */
		snprintf(end, sizeof(end),
			count > 65 ? " BackTrace140 and %u more\n" : " BackTrace%X\n",
			count > 65 ? count - 65 : 0x100 + count - 1);
		assert_non_null(strstr(result->text, end));
	}
}

TEST(what_terminal_obeys_is_not_printed)
{
	struct maker maker = dump_new((struct maker){.is_ours = true});
	put_lines(&maker, "// hsnap: process id=4711 image=\"a\xc2\x9b"
			  "1m\xc3\xa4.exe\"\n");
	write_entry(&maker, 5, 8,
		"\xc2\x85\x1b\x7f"
		"1");
	dump_end(&maker, "new.txt");
	struct result *result = run_hdiff("new.txt");
	assert_null(strstr(result->text, "\xc2\x9b"));
	assert_null(strstr(result->text, "\xc2\x85"));
	assert_null(strchr(result->text, '\x1b'));
	assert_null(strchr(result->text, '\x7f'));
	assert_non_null(strstr(result->text, "1m\xc3\xa4.exe"));
}

TEST(names_of_old_dump_are_used_where_new_has_none)
{
	EACH_DUMP (maker, is_new, .is_ours = true, .slide = is_new ? 0x700000 : 0) {
		write_function(&maker, 1, is_new ? "both_new" : "both_old");
		write_function(&maker, is_new ? 2 : 3, is_new ? "only_new" : "only_old");
		for (unsigned i = 1; i <= 3; i++)
			put_block(&maker, is_new ? 500 : 100, 2, "1", i);
	}
	struct result *result = ask_expect(0,
		"hdiff: 6 of 9 frames have no name: 3 in app, 3 in lib; hsym --explain new.txt "
		"shows why\n",
		"old.txt", "new.txt");
	for (int i = 0; i < 3; i++)
		assert_non_null(strstr(result->text,
			((const char *const[]){"\n\tapp!both_new+2F\n\tlib+501 : 7FF812A40501\n",
				"\n\tapp!only_new+2F\n\tlib+502 : 7FF812A40502\n",
				"\n\tapp!only_old+2F\n\tlib+503 : 7FF812A40503\n"})[i]));
}

/* ---------------------------------------------------------------- options */

TEST(wrong_usage_is_refused)
{
	static char *argv[FILES_MAX + 2];
	struct maker maker = dump_new((struct maker){0});
	FILE *messages = tmpfile();
	char words[200];

	dump_end(&maker, "new.txt");
	for (size_t i = 0; i < FILES_MAX + 2; i++)
		argv[i] = (char *)(uintptr_t)(i ? "new.txt" : "hdiff");
	assert_int_equal(hdiff_run(FILES_MAX + 2, argv, messages), 2);
	rewind(messages);
	assert_non_null(fgets(words, sizeof(words), messages));
	assert_non_null(strstr(words, "more than 60000 files; "));
	assert_int_equal(fclose(messages), 0);
	run_expect(2, "no such option", "--nonsense", "new.txt");
	assert_int_equal(strncmp(run_status(2, NULL)->words, "usage: hdiff ", 13), 0);
	run_expect(2, "cannot create", "-f", "missing/out.txt", "new.txt");
}

TEST(options_of_umdh_are_taken)
{
	char *argv[] = {(char *)(uintptr_t) "hdiff", (char *)(uintptr_t) "-?"};
	int screen, status;

	struct maker maker = dump_new((struct maker){0});
	put_block(&maker, 5, 8, "1", 1);
	dump_end(&maker, "new.txt");
	run_rows(1, "-v:log.txt", "-l", "-v", "new.txt");
	assert_int_not_equal(access("log.txt", F_OK), 0);
	run_expect(2, "no such option", "-verbose", "new.txt");

	fflush(stdout);
	screen = dup(STDOUT_FILENO);
	assert_non_null(freopen("more.txt", "w", stdout));
	status = hdiff_run(2, argv, stderr);
	fflush(stdout);
	assert_int_equal(dup2(screen, STDOUT_FILENO), STDOUT_FILENO);
	close(screen);
	assert_int_equal(status, 0);
	char *text = read_text("more.txt");
	assert_int_equal(strncmp(text, "usage: hdiff ", 13), 0);
	assert_null(strstr(text, "-?"));
	free(text);
}
