/* hdiff: printed comparisons that do not show all stacks, and limits of growth. */
#include "tests/unit/test_comparison.h"
#include "tests/unit/test_report.h"

#define HEADER "// + BYTES_DELTA (NEW_BYTES - OLD_BYTES) NEW_COUNT allocs BackTrace TRACEID \n"

static void check_delta(const struct got *got, int64_t bytes, int64_t overhead, int64_t blocks)
{
	struct delta delta = comparison_delta(&got->comparison);

	assert_int_equal(delta.requested_bytes, bytes);
	assert_int_equal(delta.overhead_bytes, overhead);
	assert_int_equal(delta.block_count, blocks);
	assert_sound(got);
}

/* Keeps made's text in more.txt. */
static void keep_report(struct result *made)
{
	assert_int_equal(made->status, 0);
	write_bytes("more.txt", made->text, strlen(made->text));
	result_free(made);
}

static struct got *read_more(unsigned base)
{
	char *text = read_text("more.txt");
	struct got *got;

	assert_non_null(text);
	got = read_in(text, base);
	free(text);
	return got;
}

/* ---------------------------------------------------------------- UMDH's */

/* The one row grows by 8, in no block. */
static void the_total_line_is_the_whole_when_rows_are_missing(void **state)
{
	static const struct {
		const char *total;
		int64_t bytes, overhead;
		bool has_overhead;
	} totals[] = {
		{"Total increase == 40 requested + 4 overhead = 44\n", 40, 4, true},
		{"Total decrease == 2 requested + 1 overhead = 3\n", -2, -1, true},
		{"Total increase == 9\n", 9, 0, false},
		/* OLD has 1 byte, so that NEW has 2^63 - 1. */
		{"Total increase == 9223372036854775806\n", INT64_MAX - 1, 0, false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(totals); i++) {
		char text[1000];
		struct got *got;

		snprintf(text, sizeof(text), HEADER GOOD "%s", totals[i].total);
		got = read_in(text, 10);
		assert_int_equal(got->rc, 0);
		assert_false(got->comparison.is_partial); /* blocks without a stack have no row */
		assert_true(got->comparison.lacks_rows);
		assert_int_equal(got->comparison.has_overhead, totals[i].has_overhead);
		assert_int_equal(got->warning_count, 1);
		assert_non_null(strstr(got->warnings, "do not add up"));
		assert_row(got, 0, 1, 9, 1, 1);
		assert_int_equal(got->skip_count, 0);
		check_delta(got, totals[i].bytes, totals[i].overhead, 0);
		got_free(got);
	}
}

/* 2^63 - 1 of what is asked for leaves no room for overhead: see sum.h. */
static void a_total_that_no_sum_can_hold_is_not_taken(void **state)
{
	static const char *const totals[] = {
		"Total increase == 9223372036854775807 requested + 9223372036854775807 overhead "
		"= 18446744073709551614\n",
		"Total increase == 9223372036854775807 requested + -9223372036854775807 overhead "
		"= 0\n",
		"Total increase == 9223372036854775807\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(totals); i++) {
		char text[1000];
		struct got *got;

		snprintf(text, sizeof(text), HEADER GOOD "%s", totals[i]);
		got = read_in(text, 10);
		assert_int_equal(got->rc, 0);
		assert_true(got->comparison.is_partial);
		assert_true(got->comparison.new_total.requested_bytes +
				    got->comparison.new_total.overhead_bytes <=
			    INT64_MAX);
		assert_true(got->comparison.old_total.requested_bytes +
				    got->comparison.old_total.overhead_bytes <=
			    INT64_MAX);
		assert_sound(got);
		got_free(got);
	}
}

/* No trouble by itself, but no limit can be judged. */
static void what_has_no_row_shows_as_left_out(void **state)
{
	static const char text[] = HEADER GOOD "Total increase == 40 requested + 4 overhead = 44\n";

	(void)state;
	write_bytes("new.txt", text, sizeof(text) - 1);
	for (int is_limited = 0; is_limited < 2; is_limited++) {
		struct result *result = run_hdiff(
			"new.txt", "--input-base=decimal", is_limited ? "--max-growth=100" : "-d");

		assert_int_equal(result->status, is_limited ? 2 : 0);
		assert_non_null(strstr(result->words, "do not add up"));
		assert_non_null(strstr(result->text, "\n// warning: new.txt: the rows do not add"));
		/* 40 = 8 + 32; overhead is that of the whole only. */
		assert_non_null(strstr(result->text,
			"\n//            +8             ?         +0  selected: 1 stacks\n"));
		assert_non_null(strstr(
			result->text, "\n//           +32             ?         +0  left out\n"));
		assert_non_null(
			strstr(result->text, "\n//           +40            +4         +0  all\n"));
		assert_non_null(strstr(result->text, "\nTotal increase == 8\n"));
		result_free(result);
	}
}

/* UMDH has no such lines, whoever wrote them. */
static void only_our_own_reports_may_say_that_they_show_a_part(void **state)
{
	static const char rest[] =
		GOOD "// 1 more stacks are not shown; they add up to +32 bytes, +1 blocks\n"
		     "Total increase == 40\n";
	static const char *const headers[] = {HEADER, "", "// hdiff 1: heap growth by stack\n"};

	(void)state;
	for (size_t i = 0; i < COUNT(headers); i++) {
		bool is_ours = i == 2;
		char text[1000];
		struct got *got;

		snprintf(text, sizeof(text), "%s%s", headers[i], rest);
		got = read_in(text, 10);
		assert_int_equal(got->rc, 0);
		assert_false(got->comparison.is_partial);
		assert_int_equal(got->warning_count, !is_ours);
		check_delta(got, 40, 0, is_ours);
		got_free(got);
	}
}

/* What adds up to nothing may still have grown: a filter could tell. */
static void stacks_that_are_not_shown_are_missing_even_if_they_cancel(void **state)
{
	static const char *const parts[] = {"",
		"// 2 more stacks are not shown; they add up to +0 bytes, +0 blocks\n",
		"//            +8             ?         +0  all\n"};

	(void)state;
	for (size_t i = 0; i < COUNT(parts); i++) {
		char text[1000];
		struct got *got;

		snprintf(text, sizeof(text),
			"// hdiff 1: heap growth by stack\n" GOOD "%sTotal increase == 8\n",
			parts[i]);
		got = read_in(text, 10);
		assert_int_equal(got->rc, 0);
		assert_int_equal(got->comparison.lacks_rows, i != 0);
		assert_false(got->comparison.is_partial);
		check_delta(got, 8, 0, 0);
		got_free(got);
	}
}

/* ---------------------------------------------------------------- our own */

/* See write_three(): +500, +300 and -100 bytes in 1, 3 and -1 blocks, each with 8 more. */
static void a_report_of_the_first_stacks_is_whole_with_what_it_counts(void **state)
{
	static const char *const bases[] = {"-d", "--hex"}, *const counts[] = {"1", "2", "3"};

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		unsigned shown = i % 3 + 1;
		struct got *got;

		write_three();
		keep_report(run_hdiff("old.txt", "new.txt", bases[i / 3], "-n", counts[i % 3]));
		got = read_more(0);
		assert_int_equal(got->rc, 0);
		assert_int_equal(got->warning_count + got->skip_count, 0);
		assert_int_equal(got->comparison.row_count, shown);
		assert_int_equal(got->comparison.lacks_rows, shown < 3);
		assert_false(got->comparison.is_partial);
		check_delta(got, 700, 24, 3);
		got_free(got);
	}
}

static void a_report_of_a_part_read_again_keeps_the_whole(void **state)
{
	static const char *const asked[][4] = {
		{"--min-bytes", "400", "-d", "-d"},
		{"--min-bytes", "200", "-n", "1"},
		{"--min-bytes", "200", "-n1", "--hex"},
		{"-n", "1", "--hex", "--hex"},
		{"-n", "1", "-d", "-d"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(asked); i++) {
		struct result *again, *third;
		const char *hex = strcmp(asked[i][3], "--hex") != 0 ? "-d" : "--hex";
		struct got *got;

		write_three();
		keep_report(run_hdiff(
			"old.txt", "new.txt", asked[i][0], asked[i][1], asked[i][2], asked[i][3]));
		got = read_more(0);
		assert_int_equal(got->rc, 0);
		assert_int_equal(got->warning_count + got->skip_count, 0);
		assert_int_equal(got->comparison.row_count, 1);
		assert_row(got, 0, 0, 500, 0, 1);
		assert_false(got->comparison.is_partial);
		check_delta(got, 700, 24, 3);
		got_free(got);
		/* And what is printed of it is read as the same. */
		again = run_hdiff("more.txt", hex);
		assert_string_equal(again->words, "");
		assert_int_equal(again->status, 0);
		assert_int_equal(again->requested, 500);
		assert_non_null(strstr(again->text, "  left out\n"));
		write_bytes("old.txt", again->text, strlen(again->text));
		third = run_hdiff("old.txt", hex);
		assert_int_equal(third->status, 0);
		assert_string_equal(strstr(third->text, "//\n+"), strstr(again->text, "//\n+"));
		result_free(third);
		result_free(again);
	}
}

static void a_report_of_ours_whose_rows_were_lost_is_trouble(void **state)
{
	struct result *result;
	char *text, *row, *next;

	(void)state;
	write_three();
	keep_report(run_hdiff("old.txt", "new.txt", "-n", "2"));
	text = read_text("more.txt");
	row = strstr(text, "\n+     500");
	next = row ? strstr(row, "\n+     300") : NULL;
	if (!row || !next)
		fail_msg("no such rows");
	else
		memmove(row, next, strlen(next) + 1);
	write_bytes("more.txt", text, strlen(text));
	result = run_hdiff("more.txt");
	assert_int_equal(result->status, 2);
	assert_non_null(strstr(result->words, "do not add up"));
	result_free(result);
	free(text);
}

/* ---------------------------------------------------------------- limits */

/* Each grows by 8 bytes at most in its rows, which is no more than the limit. */
static void a_limit_is_not_kept_by_what_is_not_known(void **state)
{
	static const struct {
		const char *text, *option;
		int status;
		const char *words; /* NULL: it can be judged */
	} files[] = {
		{GOOD "Total increase == 8\n", "--max-growth=8,0", 0, NULL},
		{GOOD "Total increase == 8\n", "--max-growth=7", 1, NULL},
		{GOOD, "--max-growth=8", 2, "may not show all"},
		{GOOD, "-d", 0, NULL},
		{GOOD "Total increase == 9\n", "--max-growth=8", 2, "may not show all"},
		{"// hdiff 1: heap growth by stack\n// Numbers are decimal\n" GOOD
		 "// 1 more stacks are not shown; they add up to +32 bytes, +1 blocks\n"
		 "Total increase == 40\n",
			"--max-growth=8", 2, "may not show all"},
		{"// hdiff 1: heap growth by stack\n// Numbers are decimal\n" GOOD
		 "// 1 more stacks are not shown; they add up to +32 bytes, +1 blocks\n"
		 "Total increase == 40\n",
			"-d", 0, NULL},
		/* 10 or 16 bytes. */
		{ONE_ROW("10", "10", "0") "Total increase == 10\n", "--max-growth=20", 2,
			"--input-base"},
		{ONE_ROW("10", "10", "0") "Total increase == 10\n", "-d", 0, NULL},
		/* No second line, as dhcmp prints it. */
		{"+ 8 ( 9 - 1) 1 allocs BackTrace1\na!b+1\n\nTotal increase == 8 \n",
			"--max-growth=8,0", 2, "how many blocks"},
		{"+ 8 ( 9 - 1) 1 allocs BackTrace1\na!b+1\n\nTotal increase == 8 \n",
			"--max-growth=8", 0, NULL},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(files); i++) {
		struct result *result;
		const char *said;

		write_bytes("new.txt", files[i].text, strlen(files[i].text));
		result = run_hdiff("new.txt", files[i].option);
		assert_int_equal(result->status, files[i].status);
		assert_non_null(result->text);
		said = strstr(result->words, "--max-growth cannot judge it: ");
		assert_int_equal(said != NULL, files[i].words != NULL);
		if (said && files[i].words)
			assert_non_null(strstr(said, files[i].words));
		result_free(result);
	}
}

static void a_base_that_is_said_or_force_lets_a_limit_judge(void **state)
{
	static const char text[] = ONE_ROW("10", "10", "0") "Total increase == 10\n";
	static const struct {
		const char *option;
		int status;
	} asked[] = {{"--input-base=decimal", 0}, {"--input-base=hex", 1}, {"--force", 1}};

	(void)state;
	write_bytes("new.txt", text, sizeof(text) - 1);
	for (size_t i = 0; i < COUNT(asked); i++) {
		struct result *result = run_hdiff("new.txt", "--max-growth=12", asked[i].option);

		assert_int_equal(result->status, asked[i].status);
		result_free(result);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		INSIDE(the_total_line_is_the_whole_when_rows_are_missing),
		INSIDE(a_total_that_no_sum_can_hold_is_not_taken),
		INSIDE(what_has_no_row_shows_as_left_out),
		INSIDE(only_our_own_reports_may_say_that_they_show_a_part),
		INSIDE(stacks_that_are_not_shown_are_missing_even_if_they_cancel),
		INSIDE(a_report_of_the_first_stacks_is_whole_with_what_it_counts),
		INSIDE(a_report_of_a_part_read_again_keeps_the_whole),
		INSIDE(a_report_of_ours_whose_rows_were_lost_is_trouble),
		INSIDE(a_limit_is_not_kept_by_what_is_not_known),
		INSIDE(a_base_that_is_said_or_force_lets_a_limit_judge),
	};

	return cmocka_run_group_tests_name("parts of comparisons", tests, NULL, NULL);
}
