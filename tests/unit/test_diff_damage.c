#include "tests/unit/t.h"

#include "tests/unit/test_diff.h"

TEST(malformed_lines_are_left_out)
{
	static const char *const bad[] = {"1 bytes + 2 at zz by BackTrace1",
		"10000000000000000 bytes + 2 at 1 by BackTrace1",
		"1 bytes + 10000000000000000 at 1 by BackTrace1", "1 bytes + 2 at 3 by BackTrace",
		"// hsnap: heap addr=zz"};

	for (size_t i = 0; i < 2 * sizeof(bad) / sizeof(*bad); i++) {
		bool is_forced = i % 2;

		struct maker maker = dump_new((struct maker){.bare = true});
		put_block(&maker, 40, 8, "1", 1);
		put(&maker, "%s", bad[i / 2]);
		put_block(&maker, 60, 8, "2", 2);
		dump_end(&maker, "new.txt");
		struct result *result =
			run_status(is_forced ? 0 : 2, "new.txt", is_forced ? "--force" : "-d");
		/* Each damaged line is reported once, with its consequence. */
		assert_int_equal(times(result->words, "hdiff: new.txt:14: warning: left out: "), 1);
		assert_int_equal(times(result->words, "\n"), 1);
		assert_int_equal(
			times(result->text, "\n// warning: new.txt: line 14 was left out: "), 1);
		assert_int_equal(times(result->text, "// warning: "), 1);
		assert_int_equal(result->row_count, 2);
		assert_int_equal(result->requested, 100);
	}
}

/* The warnings keep the order of the file. hdiff prints 20 of the 23 warnings. */
TEST(lines_left_out_and_other_warnings_keep_their_order)
{
	struct maker maker = dump_new((struct maker){.is_ours = true});
	put(&maker, "// hsnap: warning text=first");
	put(&maker, "1 bytes + 2 at zz by BackTrace1");
	put_block(&maker, 40, 8, "1", 1);
	put(&maker, "// hsnap: warning text=last");
	for (unsigned i = 0; i < 20; i++)
		put(&maker, "1 bytes + 2 at zz by BackTrace1");
	dump_end(&maker, "new.txt");
	struct result *result = run_status(0, "new.txt", "--force");
	assert_ptr_equal(strstr(result->words, "hdiff: new.txt: warning: first\nhdiff: new.txt:11: "
					       "warning: left out: "),
		result->words);
	assert_non_null(strstr(result->words, "\nhdiff: new.txt: warning: last\n"));
	assert_int_equal(times(result->words, " warning: left out: "), 18);
	assert_non_null(
		strstr(result->words, "\nhdiff: new.txt: warning: 3 more warnings not shown\n"));
}

TEST(too_many_malformed_lines_are_refused)
{
	for (unsigned lines = 100; lines <= 101; lines++) {
		struct maker maker = dump_new((struct maker){0});
		for (unsigned i = 0; i < lines; i++)
			put(&maker, "1 bytes + 2 at zz by BackTrace1");
		put_block(&maker, 40, 8, "1", 1);
		dump_end(&maker, "new.txt");
		struct result *result = run_status(lines == 100 ? 0 : 2, "new.txt", "--force");
		assert_true((result->text != NULL) == (lines == 100));
	}
}

TEST(malformed_note_counts_for_nothing)
{
	static const struct {
		const char *note;
		int status;
		int64_t requested;
	} cases[] = {
		{"stackless-blocks=2 stackless-requested=10 stackless-overhead=6", 0, 50},
		{"stackless-blocks=2 stackless-requested=10 unwalked=zz", 2, 40},
		{"stackless-blocks=2 stackless-requested=1O", 2, 40},
		{"stackless-blocks=0 stackless-requested=10", 0, 50},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct maker maker = dump_new((struct maker){0});
		put(&maker, "// hsnap: heap addr=1E0000 %s", cases[i].note);
		put_block(&maker, 40, 8, "1", 1);
		dump_end(&maker, "new.txt");
		struct result *result = run_status(cases[i].status, "new.txt");
		assert_int_equal(result->requested, cases[i].requested);
	}
}

TEST(dump_without_heap_is_reported)
{
	struct maker maker = {.eol = "\n"};

	buf_init(&maker.text);
	write_modules(&maker);
	write_bytes("new.txt", maker.text.data, maker.text.len);
	buf_release(&maker.text);
	assert_non_null(strstr(run_rows(0, "new.txt")->words, "contains no heap"));
}

static void write_cut_example(struct maker *maker, bool is_ours)
{
	*maker = dump_new((struct maker){.is_ours = is_ours, .eol = "\r\n"});
	if (is_ours)
		write_stackless(maker, 2, 20, 30);
	for (unsigned i = 0; i < 4; i++) {
		put_block(maker, 100 + i, 16, i % 2 ? "AB" : "CD", i % 2);
		write_entry(maker, 10, 16, "AB");
	}
	dump_end(maker, "new.txt");
}

/* Checks that the rows of a cut dump are among the rows of the whole dump. */
static void check_part(const struct result *part, const struct result *whole)
{
	assert_non_null(strstr(part->words, ": warning: cut short"));
	assert_non_null(strstr(part->text, "CUT SHORT"));
	assert_true(part->requested <= whole->requested);
	for (size_t i = 0; i < part->row_count; i++) {
		bool found = !strcmp(part->rows[i].frames, "\t(stack not in the dump)\n");

		for (size_t k = 0; k < whole->row_count; k++)
			found |= !strcmp(part->rows[i].frames, whole->rows[k].frames);
		assert_true(found);
	}
}

static void check_cut(size_t len, const char *text, const struct result *whole)
{
	write_bytes("cut.txt", text, len);
	struct result *result = run_status(2, "cut.txt");
	if (!result->text) {
		/* too short for hdiff to recognize a dump */
		assert_true(strstr(result->words, "is empty") ||
			    strstr(result->words, "is not a heap dump"));
		return;
	}
	check_part(result, whole);
	result = run_status(0, "--force", "cut.txt");
	check_part(result, whole);
}

/* After a complete end mark only the line end can be missing. */
static void check_end_of_line(const char *text, const struct result *whole)
{
	for (size_t missing = 1; missing <= 2; missing++) {
		write_bytes("cut.txt", text, strlen(text) - missing);
		struct result *result = run_status(0, "cut.txt");
		assert_null(strstr(result->words, "cut short"));
		assert_true(result->requested == whole->requested);
		assert_int_equal(result->row_count, whole->row_count);
	}
}

TEST(dump_cut_anywhere_is_known_as_cut)
{
	for (int is_ours = 0; is_ours < 2; is_ours++) {
		static struct result whole; /* a copy that survives later runs */
		struct maker maker;
		size_t from, to;

		write_cut_example(&maker, is_ours);
		char *text = read_text("new.txt");
		whole = *run_hdiff("new.txt");
		assert_int_equal(whole.status, 0);
		/* In UMDH's dumps only the end of a heap proves that the heap is complete. */
		from = is_ours ? 0 : (size_t)(strstr(text, "Heap 1E") - text);
		to = is_ours ? strlen(text) - 2 :
			       (size_t)(strstr(text, "End of") - text) + strlen("End of data");
		for (size_t len = from; len < to; len++)
			check_cut(len, text, &whole);
		if (is_ours)
			check_end_of_line(text, &whole);
		free(text);
	}
}
