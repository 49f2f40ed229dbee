#include "tests/unit/data.h"
#include "tests/unit/test_diff.h"

TEST(numbers_have_any_length_and_case)
{
	static const char text[] = "*- Heap 0 Hogs\n"
				   "00000001 bytes + 00000000 at 0 by BackTrace1\n"
				   "\t00007ffe82352933\n\tFFFFFFFFFFFFFFFF\n\tabcDEF01\n\t1\n"
				   "\t000000000000000000000000000000000123456789abcdef0\n"
				   "\t0000000000000000\n\t123456789 \n\t\n"
				   "2000000000000000 bytes + 0 at 7FFFFFFFFFFFFFFF by BackTrace1";

	write_bytes("new.txt", text, strlen(text));
	struct result *result = run_hdiff("--hex", "new.txt");
	assert_int_equal(growth(&result->rows[0]), UINT64_C(0x2000000000000001));
	assert_string_equal(result->rows[0].frames,
		"\t7FFE82352933\n\tFFFFFFFFFFFFFFFF\n\tABCDEF01\n\t1\n"
		"\t123456789ABCDEF0\n\t0\n\t123456789\n");
}

TEST(more_than_4_gib_is_counted)
{
	uint64_t block = UINT64_C(0x1234567890);
	struct result *result;

	struct maker maker = dump_new((struct maker){0});
	for (int i = 0; i < 40; i++)
		put_block(&maker, block + (unsigned)i, UINT64_C(1) << 33, "1", 1);
	dump_end(&maker, "new.txt");
	for (int hex = 0; hex < 2; hex++) {
		result = run_hdiff(hex ? "--hex" : "-d", "new.txt");
		assert_int_equal(growth(&result->rows[0]), 40 * block + 780);
		assert_int_equal(result->overhead, (int64_t)40 << 33);
	}
}

TEST(lines_may_be_long_and_lie_anywhere)
{
	uint64_t requested = 0;

	struct maker maker = dump_new((struct maker){0});
	for (unsigned i = 0; maker.text.len < 4000000; i++) {
		size_t blanks = i == 5000 ? 3000000 : i * 7919 % 613;

		put_lines(&maker, "// ");
		for (size_t k = 0; k < blanks; k++)
			buf_add(&maker.text, "x", 1);
		put_lines(&maker, "\n");
		put_block(&maker, i, 8, "5", i % 3);
		requested += i;
	}
	dump_end(&maker, "new.txt");
	struct result *result = run_rows(3, "new.txt");
	assert_int_equal(result->requested, requested);
}

/* The ids have equal prefixes that are longer than the stored part of short ids. */
TEST(long_ids_are_distinguished)
{
	static const char *const ids[] = {"ABCDEF12", "ABCDEF123456", "ABCDEF1234567",
		"ABCDEF1234568", "ABCDEF123456789ABCDEF0123456789", "A"};

	struct maker maker = dump_new((struct maker){0});
	for (unsigned i = 0; i < 6; i++)
		put_block(&maker, 1000 * i, 8, ids[i], i);
	for (unsigned i = 0; i < 60; i++)
		write_entry(&maker, i, 8, ids[i * 5 % 6]);
	dump_end(&maker, "new.txt");
	struct result *result = run_rows(6, "new.txt");
	for (unsigned i = 0; i < 6; i++) {
		/* i * 5 % 6 == k holds for i = 6 - k and then for every sixth i */
		uint64_t first = (6 - i) % 6, sum = 10 * first + 6 * 45;

		assert_string_equal(row_of(result, i)->id, ids[i]);
		assert_int_equal(row_of(result, i)->new_count, 11);
		assert_int_equal(growth(row_of(result, i)), 1000 * i + sum);
	}
}

TEST(every_layout_of_log_gives_same_report)
{
	char *expected = NULL;

	for (int i = 0; i < 16; i++) {
		bool full = i & 4, many_blank = i & 8;
		struct maker maker = dump_new(
			(struct maker){.eol = i & 1 ? "\r\n" : "\n", .bare = (i & 2) != 0});

		for (unsigned k = 0; k < 12; k++) {
			write_entry(&maker, 16 * k, 16, k % 3 ? "AB12" : "C");
			if (full || k < 2)
				put_stack(&maker, k % 3 ? 1 : 2);
			if (many_blank)
				put(&maker, "%s", "");
		}
		dump_end(&maker, "new.txt");
		struct result *result = run_status(0, "new.txt");
		assert_int_equal(growth(row_of(result, 1)), 16 * (1 + 2 + 4 + 5 + 7 + 8 + 10 + 11));
		assert_int_equal(growth(row_of(result, 2)), 16 * (3 + 6 + 9));
		if (expected)
			assert_string_equal(result->text, expected);
		else
			expected = strdup(result->text);
	}
	free(expected);
}

/* "Alias" announces another stack. If no other stack follows, the id has one stack, and the entry
 * without a stack belongs to that stack. */
TEST(alias_with_nothing_behind_it_is_none)
{
	struct maker maker = dump_new((struct maker){0});
	struct result *result;

	write_entry(&maker, 24, 8, "94C4");
	put(&maker, "\t%X", 0x10000);
	put(&maker, "\tAlias");
	put(&maker, "%s", "");
	write_entry(&maker, 32, 8, "94C4");
	dump_end(&maker, "new.txt");
	result = run_rows(1, "new.txt");
	assert_int_equal(growth(&result->rows[0]), 56);
	assert_int_equal(result->rows[0].new_count, 2);
}

TEST(logs_of_umdh_are_read)
{
	char path[1200];

	snprintf(path, sizeof(path), "%s",
		data_file("umdh/snap_umdh_input_sample_kg_HeapProfiler.txt"));
	struct result *result = run_rows(2, path);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(result->rows[i].new_count, 1);
	run_rows(0, path, path);
	snprintf(path, sizeof(path), "%s", data_file("umdh/snap_win10_x64_mahdytech_fragment.txt"));
	result = run_rows(1, path);
	assert_string_equal(result->rows[0].id, "EDD4EEA6");
	assert_int_equal(growth(&result->rows[0]), 0x30);
	assert_int_equal(result->overhead, 0x30);
	assert_int_equal(strncmp(result->rows[0].frames, "\t7FFE82352933\n", 14), 0);
}

/* ---------------------------------------------------------------- errors */

/* Checks that hdiff does not overwrite an old report, and describes the error on one line. */
static void check_no_dump(const char *path, const char *word)
{
	static const char old[] = "an old report\n";
	char *argv[] = {(char *)(uintptr_t) "hdiff", (char *)(uintptr_t) "-fout.txt",
		(char *)(uintptr_t)path};
	FILE *messages = tmpfile();

	assert_non_null(messages);
	refused(word, path);
	write_bytes("out.txt", old, strlen(old));
	assert_int_equal(hdiff_run(3, argv, messages), 2);
	assert_int_equal(fclose(messages), 0);
	char *text = read_text("out.txt");
	assert_string_equal(text, old);
	free(text);
}

TEST(what_is_no_dump_is_refused)
{
	unsigned char binary[5000];

	for (size_t i = 0; i < sizeof(binary); i++)
		binary[i] = (unsigned char)(i * 167 + i / 256);
	check_no_dump("missing.txt", "cannot open");
	check_no_dump(".", "folder");
	write_bytes("new.txt", "", 0);
	check_no_dump("new.txt", "is empty");
	write_bytes("new.txt", binary, sizeof(binary));
	check_no_dump("new.txt", "is not a heap dump");
	write_bytes("new.txt", "\x1f\x8b", 2);
	check_no_dump("new.txt", "is empty");
	write_bytes("new.txt", "\xff\xfe*", 3);
	check_no_dump("new.txt", "is empty");
	write_bytes("new.txt", "Dear reader,\n\nthis is prose.\n", 29);
	check_no_dump("new.txt", "is not a heap dump");
	write_bytes("new.txt", "\xff\xfe/\0/\0", 6);
	check_no_dump("new.txt", "is not a heap dump");
}

TEST(dump_that_adds_up_to_too_much_is_refused)
{
	for (int i = 0; i < 4; i++) {
		struct maker maker = dump_new((struct maker){.is_ours = i > 1});

		if (i > 1)
			write_stackless(
				&maker, i == 2 ? UINT64_MAX : 1, i == 3 ? UINT64_MAX : 1, 0);
		put_block(&maker, INT64_MAX, i == 1 ? INT64_MAX : 0, "1", 1);
		put_block(&maker, 1, 0, "2", 2);
		dump_end(&maker, "new.txt");
		refused("new.txt", "new.txt", "new.txt");
	}
}

TEST(output_is_none_of_dumps)
{
	static const char *const names[] = {"new.txt", "./new.txt", "old.txt", "more.txt"};
	char *before;

	EACH_DUMP (maker, is_new, 0)
		put_block(&maker, 5, 8, "1", 1);
	assert_int_equal(symlink("new.txt", "more.txt"), 0);
	before = read_text("new.txt");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct result *result = run_expect(2, "input and output are the same file", "-f",
			names[i], "old.txt", "new.txt");
		char *after = read_text("new.txt"), *old = read_text("old.txt");

		assert_non_null(strstr(result->words, names[i]));
		assert_string_equal(after, before);
		assert_string_equal(old, before);
		free(after);
		free(old);
	}
	free(before);
}

TEST(warnings_in_dump_reach_reader)
{
	for (unsigned count = 1; count <= 22; count++) {
		char more[60];

		struct maker maker = dump_new((struct maker){.is_ours = true});
		for (unsigned i = 1; i < count; i++)
			put(&maker, "// hsnap: warning text=\"trouble\\x0A %u.\"", i);
		put(&maker, "// hsnap: heap addr=1E0000 kind=unknown unwalked=1");
		put(&maker, "// hsnap: heap addr=1F0000 kind=wine unwalked=0");
		put_block(&maker, 5, 8, "1", 1);
		dump_end(&maker, "new.txt");
		struct result *result = run_status(0, "new.txt");
		assert_int_equal(result->requested, 5);
		assert_int_equal(
			times(result->text, "\n// warning: new.txt: "), count > 20 ? 21 : count);
		assert_int_equal(
			times(result->words, "hdiff: new.txt: warning: "), count > 20 ? 21 : count);
		assert_int_equal(times(result->text, ": trouble? 1.\n"), count > 1);
		assert_int_equal(times(result->words, ": trouble? 1.\n"), count > 1);
		assert_int_equal(times(result->text, ": heap 1E0000 was not walked"), count <= 20);
		snprintf(more, sizeof(more), ": %u more warning%s not shown\n", count - 20,
			count == 21 ? "" : "s");
		assert_int_equal(times(result->text, more), count > 20);
		assert_int_equal(times(result->words, more), count > 20);
		assert_int_equal(times(result->words, " 0 more"), 0);
	}
}

TEST(unwalked_heaps_are_reported_once)
{
	struct maker maker = dump_new((struct maker){.is_ours = true});
	put(&maker, "// hsnap: heap addr=1E0000 kind=unknown unwalked=1");
	put(&maker, "// hsnap: heap addr=1E00001 kind=unknown unwalked=1");
	dump_end(&maker, "new.txt");
	struct result *result = run_hdiff("new.txt", "new.txt");
	assert_int_equal(times(result->words, "warning: heap 1E0000 was not walked"), 2);
	assert_int_equal(times(result->text, "// warning: new.txt: heap "), 2);
}

TEST(unwalked_heap_is_not_reported_if_dump_states_what_is_missing)
{
	struct maker maker = dump_new((struct maker){.is_ours = true});
	put(&maker, "// hsnap: incomplete missing=1");
	put(&maker, "// hsnap: heap addr=1E0000 kind=unknown unwalked=1");
	dump_end(&maker, "new.txt");
	assert_int_equal(times(run_hdiff("new.txt", "new.txt")->words, "1E0000"), 0);
}

TEST(unwalked_heap_whose_blocks_are_all_traced_is_complete)
{
	struct maker maker = dump_new((struct maker){.is_ours = true});
	put(&maker, "// hsnap: heap addr=1E0000 kind=unknown unwalked=1 traced-only=1 complete=1");
	put_block(&maker, 5, 8, "1", 1);
	dump_end(&maker, "new.txt");
	assert_int_equal(times(run_status(0, "new.txt")->words, "warning"), 0);
}
