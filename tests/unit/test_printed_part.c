#include "tests/unit/t.h"

#include "tests/unit/test_printed.h"
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

/* ---------------------------------------------------------------- UMDH's */

/* The only row grows by 8 bytes and no blocks. */
TEST(total_line_is_whole_when_rows_are_missing)
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
	}
}

/* 2^63 - 1 requested bytes leave no room for overhead: see dump_sums.h. */
TEST(total_that_no_sum_can_hold_is_not_taken)
{
	static const char *const totals[] = {
		"Total increase == 9223372036854775807 requested + 9223372036854775807 overhead "
		"= 18446744073709551614\n",
		"Total increase == 9223372036854775807 requested + -9223372036854775807 overhead "
		"= 0\n",
		"Total increase == 9223372036854775807\n",
	};

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
	}
}

/* This is not an error in itself, but no limit can be checked. */
TEST(what_has_no_row_shows_as_left_out)
{
	static const char text[] = HEADER GOOD "Total increase == 40 requested + 4 overhead = 44\n";

	write_bytes("new.txt", text, sizeof(text) - 1);
	for (int is_limited = 0; is_limited < 2; is_limited++) {
		struct result *result = run_expect(is_limited ? 2 : 0, "do not add up", "new.txt",
			"--input-base=decimal", is_limited ? "--max-growth=100" : "-d");
		assert_non_null(strstr(result->text, "\n// warning: new.txt: the rows do not add"));
		/* 40 = 8 + 32. Overhead is known only for the whole comparison, and blocks only
		 * for rows. */
		assert_non_null(strstr(result->text,
			"\n//            +8             ?         +0  selected: 1 stack\n"));
		assert_non_null(strstr(
			result->text, "\n//           +32             ?          ?  left out\n"));
		assert_non_null(
			strstr(result->text, "\n//           +40            +4          ?  all\n"));
		assert_non_null(strstr(result->text,
			"\nTotal increase ==     40 requested +      4 overhead =     44\n"));
	}
}

/* ---------------------------------------------------------------- hdiff's form */

/* UMDH never prints such lines. In its comparisons they are comments. */
TEST(our_own_reports_are_read_in_umdhs_form_alone)
{
	static const char *const beyond[] = {"// frames: outermost first\n" GOOD,
		"//     ambiguous: one of 2 stacks, unknown which\n" GOOD,
		GOOD "// What all blocks add up to, and where it went; the last line has what is\n",
		GOOD "// 1 more stacks are not shown; they add up to +32 bytes, +1 blocks\n",
		"// NEW: a.txt, app.exe, CUT SHORT: sums are of what is there\n" GOOD,
		"// COMPARISON: a.txt: read as it is, CUT SHORT: sums are of what is there\n" GOOD,
		GOOD "// Totals of the selected stacks, of the other stacks, and of all.\n",
		"// NEW: a.txt, app.exe, CUT SHORT: sums cover only the complete part\n" GOOD};
	static const char *const plain[] = {"//     also BackTrace5 and 3 more\n" GOOD,
		"// NEW: hdiff 1: heap growth by file\n" GOOD,
		"// NEW: 1 more stacks are not shown; they add up to\n" GOOD,
		"// NEW: a, CUT SHORT: sums are of what is there, process 7\n" GOOD};
	static const char ours[] = "// hdiff 1: heap growth by stack\n";

	for (size_t i = 0; i < COUNT(beyond) + COUNT(plain); i++) {
		bool is_plain = i >= COUNT(beyond);
		const char *rest = is_plain ? plain[i - COUNT(beyond)] : beyond[i];

		for (int is_ours = 0; is_ours < 2; is_ours++) {
			char text[1000];
			struct got *got;

			snprintf(text, sizeof(text), "%s%sTotal increase == 8\n",
				is_ours ? ours : HEADER, rest);
			got = read_in(text, 10);
			assert_int_equal(got->rc, is_plain || !is_ours ? 0 : -ERR_NOT_DUMP);
			if (!got->rc) {
				assert_string_equal(got->warnings, "");
				assert_row(got, 0, 1, 9, 1, 1);
			} else {
				assert_string_equal(got->err.place, "old.txt");
			}
		}
	}
}

TEST(report_of_ours_whose_rows_were_lost_is_trouble)
{
	struct result *result;
	char *row, *next;

	write_three();
	result = run_status(0, "old.txt", "new.txt", "-d");
	row = strstr(result->text, "\n+     500");
	next = row ? strstr(row, "\n+     300") : NULL;
	if (!row || !next)
		fail_msg("no such rows");
	else
		memmove(row, next, strlen(next) + 1);
	write_bytes("more.txt", result->text, strlen(result->text));
	run_expect(2, "do not add up", "more.txt");
}

/* ---------------------------------------------------------------- limits */

/* Each text's rows grow by at most 8 bytes, which is within the limit. */
TEST(limit_is_not_kept_by_what_is_not_known)
{
	static const struct {
		const char *text, *option;
		int status;
		const char *words; /* NULL: the limit can be checked */
	} files[] = {
		{GOOD "Total increase == 8\n", "--max-growth=8,0", 0, NULL},
		{GOOD "Total increase == 8\n", "--max-growth=7", 1, NULL},
		{GOOD, "--max-growth=8", 2, "may not show everything"},
		{GOOD, "-d", 0, NULL},
		{GOOD "Total increase == 9\n", "--max-growth=8", 2, "may not show everything"},
		/* The growth may be 10 or 16 bytes. */
		{ONE_ROW("10", "10", "0") "Total increase == 10\n", "--max-growth=20", 2,
			"--input-base"},
		{ONE_ROW("10", "10", "0") "Total increase == 10\n", "-d", 0, NULL},
		/* The second line is missing, as in dhcmp's output. */
		{"+ 8 ( 9 - 1) 1 allocs BackTrace1\na!b+1\n\nTotal increase == 8 \n",
			"--max-growth=8,0", 2, "how many blocks"},
		{"+ 8 ( 9 - 1) 1 allocs BackTrace1\na!b+1\n\nTotal increase == 8 \n",
			"--max-growth=8", 0, NULL},
	};

	for (size_t i = 0; i < COUNT(files); i++) {
		struct result *result;
		const char *said;

		write_bytes("new.txt", files[i].text, strlen(files[i].text));
		result = run_status(files[i].status, "new.txt", files[i].option);
		assert_non_null(result->text);
		said = strstr(result->words, "--max-growth cannot judge it: ");
		assert_int_equal(said != NULL, files[i].words != NULL);
		if (said && files[i].words)
			assert_non_null(strstr(said, files[i].words));
	}
}

TEST(known_base_or_force_lets_limit_judge)
{
	static const char text[] = ONE_ROW("10", "10", "0") "Total increase == 10\n";
	static const struct {
		const char *option;
		int status;
	} asked[] = {{"--input-base=decimal", 0}, {"--input-base=hex", 1}, {"--force", 1}};

	write_bytes("new.txt", text, sizeof(text) - 1);
	for (size_t i = 0; i < COUNT(asked); i++)
		run_status(asked[i].status, "new.txt", "--max-growth=12", asked[i].option);
}
