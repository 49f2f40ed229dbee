#include "tests/unit/t.h"

#include "tests/unit/test_printed.h"

#include "diff/printed/printed.h"

/* ---------------------------------------------------------------- recognition */

TEST(comparison_is_known_by_its_first_lines)
{
	static const struct {
		const char *text;
		bool is_comparison;
	} texts[] = {
		{hex_text, true},
		{GOOD, true},
		{"// hdiff 0.1.0: heap growth by stack\n", true},
		{"noise\n\n// + BYTES_DELTA (NEW_BYTES - OLD_BYTES) NEW_COUNT\n", true},
		{"Total decrease == 0 requested + 0 overhead = 0\r\n", true},
		{"Total increase == 5320 \n", true},
		{"", false},
		{"noise\n", false},
		{"+ 1\n- 2\n", false},
		{"// Debug library initialized ...\nDBGHELP: a - b\n", false},
		{"// UMDH: version 6.1: Logtime\n" GOOD, false},
		{"// hsnap: dump format=1\n" GOOD, false},
		{"// Loaded modules: \n" GOOD, false},
		{"10 bytes + 8 at 100 by BackTrace1\n" GOOD, false},
		{"00005320 bytes in 0x14 allocations (@ 0x428) by: BackTrace1\n" GOOD, false},
		{"*- - - - Start of data for heap @ 1 - - -\n" GOOD, false},
	};

	for (size_t i = 0; i < COUNT(texts); i++) {
		char *copy = strdup(texts[i].text);

		assert_non_null(copy);
		assert_int_equal(file_kind_of(copy, strlen(copy)) == FILE_COMPARISON,
			texts[i].is_comparison);
		free(copy);
	}
}

TEST(comparison_is_read_alone)
{
	struct maker maker = dump_new((struct maker){0});
	struct result *result;

	write_bytes("old.txt", hex_text, sizeof(hex_text) - 1);
	put_block(&maker, 100, 8, "1", 1);
	dump_end(&maker, "new.txt");
	result = run_expect(2, "old.txt", "old.txt", "new.txt");
	assert_non_null(strstr(result->words, "a comparison can be read only alone"));
	run_expect(2, "a comparison can be read only alone", "new.txt", "old.txt");
	result = run_status(0, "old.txt");
	assert_string_equal(result->words, "");
	assert_int_equal(growth(&result->rows[0]), 0x2a98c90);
	assert_int_equal(growth(&result->rows[1]), -0x2018);
	assert_int_equal(result->overhead, 0x1f3b20);
}

TEST(comparison_that_is_cut_is_used_as_far_as_it_goes)
{
	size_t cut = (size_t)(strstr(hex_text, "\t\n-   ") - hex_text) - 20;

	write_bytes("old.txt", hex_text, cut);
	for (int is_forced = 0; is_forced < 2; is_forced++) {
		struct result *result =
			run_expect(is_forced ? 0 : 2, "cut short; only the complete part is used",
				"old.txt", is_forced ? "--force" : "-d");
		/* The rows have no overhead, so the total line has its short form. */
		assert_non_null(strstr(
			result->text, "\n+44666000 ( 44666000 -      0)  89332 allocs\tBack"));
		assert_non_null(strstr(result->text, "\n\n\n\nTotal increase == 44666000\n"));
	}
}

TEST(skipped_lines_are_reported_with_place)
{
	static const char chatter[] =
		"hello\n" GOOD "Total increase == 8 requested + 0 overhead = 8\n";
	static const char damaged[] = GOOD "+ 9 ( 8 - 0) 1 allocs\tBackTrace9\n\n\tx!f+1\n\n"
					   "Total increase == 8 requested + 0 overhead = 8\n";
	struct result *result;

	write_bytes("new.txt", chatter, sizeof(chatter) - 1);
	run_status(0, "new.txt");
	write_bytes("new.txt", damaged, sizeof(damaged) - 1);
	for (int is_forced = 0; is_forced < 2; is_forced++) {
		result = run_status(is_forced ? 0 : 2, "new.txt", is_forced ? "--force" : "-d");
		assert_non_null(result->text);
		assert_non_null(strstr(result->words, "hdiff: new.txt:6: warning: left out"));
	}
	run_expect(2, "hex, decimal", "new.txt", "--input-base", "octal");
}

/* ---------------------------------------------------------------- hdiff's form */

/* Every kind of row that UMDH's form can represent. */
static void make_dump(const char *path, unsigned factor)
{
	struct maker maker = dump_new((struct maker){.is_ours = true});

	for (unsigned i = 0; i < 20; i++) {
		if (factor > 1 || i % 4)
			put_block(&maker, i % 3 ? 100 * factor * i : 300, 8, "A", i);
		put_block(&maker, 16 * (i % 5) * factor, 8, i % 2 ? "B2" : "B3", i % 7);
	}
	write_entry(&maker, 1000 / factor, 8, "C1");
	write_stackless(&maker, 4 * factor, 0x1000 * factor, 64);
	dump_end(&maker, path);
}

/* Returns the text starting at the first row, without the lines that list further ids. */
static const char *rows_in(char *text)
{
	char *note;

	while ((note = strstr(text, "//     also")))
		memmove(note, next_text(note), strlen(next_text(note)) + 1);
	while (*text == '/')
		text += strcspn(text, "\n") + 1;
	return text;
}

TEST(our_own_report_read_again_gives_same_rows)
{
	static const char *const bases[] = {"-d", "--hex"};

	make_dump("old.txt", 1);
	make_dump("new.txt", 3);
	for (size_t i = 0; i < 2; i++) {
		struct result *made = run_hdiff("old.txt", "new.txt", bases[i]), *again, *other;

		assert_int_equal(made->status, 0);
		assert_true(made->row_count > 15);
		/* A line of further ids, which hdiff does not parse. */
		assert_non_null(strstr(made->text, "//     also"));
		assert_non_null(strstr(made->text, "(no stack recorded)"));
		assert_non_null(strstr(made->text, "(stack not in the dump)"));
		write_bytes("more.txt", made->text, strlen(made->text));
		again = run_hdiff("more.txt", bases[i]);
		assert_string_equal(again->words, "");
		assert_string_equal(rows_in(again->text), rows_in(made->text));
		/* In the other number base, the report equals that of the dumps in that base. */
		again = run_hdiff("more.txt", bases[1 - i]);
		other = run_hdiff("old.txt", "new.txt", bases[1 - i]);
		assert_string_equal(rows_in(again->text), rows_in(other->text));
	}
}
