#include "tests/unit/t.h"

#include "tests/unit/test_report.h"

static const char *line_behind(const char *text, const char *start)
{
	const char *at = strstr(text, start);

	if (!at)
		fail_msg("no %s in:\n%s", start, text);
	return at + strlen(start);
}

/* Reads the three numbers of a line that ends with `words`. */
static void shares(const char *text, const char *words, long long numbers[3])
{
	const char *at = strstr(text, words), *line = at;

	assert_non_null(at);
	while (line > text && line[-1] != '\n')
		line--;
	assert_memory_equal(line, "// ", 3);
	line += 3;
	for (size_t i = 0; i < 3; i++) {
		char *end;

		numbers[i] = strtoll(line, &end, 10);
		assert_ptr_not_equal(end, line);
		line = end;
	}
	assert_ptr_equal(line, at);
}

/* Row 0 is selected, and row 1 is suppressed. Row 2 and unchanged stacks are omitted. */
static void filter(struct made *made)
{
	made->view.row_count = made->view.shown_count = 1;
	made->view.is_filtered = true;
	made->view.selected = (struct change){.now = {1, 500, 8}};
	made->view.suppressed = (struct change){.now = {3, 300, 24}};
	made->view.suppressed_count = 1;
}

TEST(what_is_selected_suppressed_and_left_out_makes_up_all)
{
	static const char *const words[] = {
		"  selected: 1 stack\n", "  suppressed: 1 stack\n", "  left out\n", "  all\n"};
	static const long long wanted[4][3] = {
		{500, 8, 1}, {300, 24, 3}, {-100, -8, -1}, {700, 24, 3}};
	long long got[4][3];

	struct made *made = made_three();
	assert_int_equal(made->comparison.row_count, 3);
	filter(made);
	const char *text = made_report(made, "umdh", false);
	for (size_t i = 0; i < 4; i++)
		shares(text, words[i], got[i]);
	assert_memory_equal(got, wanted, sizeof(wanted));
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(got[0][i] + got[1][i] + got[2][i], got[3][i]);
	assert_string_equal(line_behind(text, "\n\n\nTotal "),
		"increase ==    500 requested +      8 overhead =    508\n");
	assert_non_null(strstr(text, "BackTraceB1\n"));
	assert_null(strstr(text, "BackTraceB2\n"));
}

TEST(without_filter_no_such_sum_is_printed)
{
	struct made *made = made_three();
	const char *text = made_report(made, "umdh", false);
	assert_null(strstr(text, "left out\n"));
	assert_null(strstr(text, "more stacks"));
	assert_non_null(strstr(text, "The largest growth comes first"));
	line_behind(text, "Total increase ==    700 requested +     24 overhead =    724\n");
}

TEST(rows_that_are_not_shown_are_counted_and_added_up)
{
	struct made *made = made_three();
	made->view.shown_count = 1;
	const char *text = made_report(made, "umdh", false);
	/* Growth: 300 - 100 bytes, 3 - 1 blocks. */
	line_behind(
		text, "\n// 2 more stacks are not shown; they add up to +200 bytes, +2 blocks\n");
	line_behind(text, "Total increase ==    700 requested +");
	made->view.rows[0] = 2;
	made->view.rows[2] = 0;
	made->view.shown_count = 2;
	text = made_report(made, "umdh", true);
	line_behind(text, "\n// 1 more stack is not shown; it adds up to +1f4 bytes, +1 blocks\n");
	assert_null(strstr(text, "The largest growth comes first"));
}

TEST(heap_of_row_and_inverted_frames_are_printed)
{
	struct made *made = made_three();
	const char *text;

	made->comparison.rows[0].heap = 0x1E0000;
	made->view.is_inverted = true;
	text = made_report(made, "umdh", false);
	line_behind(text, "\n//     heap 1E0000\n+     500 (    500 -      0)");
	assert_null(strstr(strstr(text, "heap 1E0000") + 1, "//     heap"));
	line_behind(text, "\n// frames: outermost first\n");
	assert_null(strstr(text, "innermost first"));
}

TEST(groups_are_table_of_self_and_total)
{
	struct view_group_row groups[] = {
		{.name = "app!leak",
			.self = {.now = {1, 500, 8}},
			.total = {.old = {1, 100, 8}, .now = {4, 800, 32}}},
		{.name = "bad\x1b\n",
			.self = {.old = {3, 0x123456789ab, 0}},
			.total = {.old = {3, 0x123456789ab, 0}}},
		{.name = "hidden"},
	};

	struct made *made = made_three();
	made->view.group = GROUP_FUNCTION;
	made->view.groups = groups;
	made->view.group_count = 3;
	made->view.shown_count = 2;
	const char *text = made_report(made, "umdh", false);
	line_behind(text, "//  self bytes    blocks   total bytes    blocks  name\n"
			  "          +500        +1          +700        +3  app!leak\n"
			  " -1250999896491        -3 -1250999896491        -3  bad??\n"
			  "// 1 more group is not shown\n");
	line_behind(text, "// Growth by function, in requested bytes and in blocks. Groups: 3, "
			  "stacks: 3.");
	line_behind(text, "Total increase ==    700 requested +     24 overhead =    724\n");
	assert_null(strstr(text, "BackTrace"));
	text = made_report(made, "umdh", true);
	line_behind(text, "          +1f4        +1          +2bc        +3  app!leak\n");
	line_behind(text, "Numbers are hexadecimal");
}

/* ---------------------------------------------------------------- parsed comparisons */

static struct block_totals given_sums[2] = {{2, 20, 0}, {5, 5340, 0}};
static const char *read_ids[] = {"00B53"};
static struct frame read_frame = {.module = "app", .function = "leak", .offset_bytes = 1};
static const struct frames read_frames = {.items = &read_frame, .count = 1};

static struct made *made_comparison(void)
{
	static struct row row;
	struct made *made = made_new();

	row = (struct row){.kind = ROW_STACK,
		.totals = given_sums,
		.frames = &read_frames,
		.ids = read_ids,
		.id_count = 1};
	made->comparison = (struct comparison){.dump_count = 2,
		.read_from = "cmp\x1b.txt",
		.rows = &row,
		.row_count = 1,
		.old_total = {2, 20, 0},
		.new_total = {5, 5340, 0}};
	made_view(made);
	return made;
}

TEST(without_overhead_total_has_umdhs_old_form)
{
	struct made *made = made_comparison();
	const char *text = made_report(made, "umdh", false);
	/* facts/umdh.md 1.3 */
	assert_string_equal(line_behind(text, "\n\n\nTotal "), "increase == 5320\n");
	line_behind(text, "\n// COMPARISON: cmp?.txt: ");
	line_behind(text, "\n+    5320 (   5340 -     20)      5 allocs\tBackTrace00B53\n"
			  "+       3 (      5 -      2)\tBackTrace00B53\tallocations\n");
	assert_null(strstr(text, "// NEW"));
	assert_null(strstr(text, "// OLD"));
	made->view.selected = (struct change){.old = {1, 0x1f4, 0}};
	text = made_report(made, "umdh", true);
	assert_string_equal(line_behind(text, "\n\n\nTotal "), "decrease == 1f4\n");
}

/* The file's total contains all overhead, but its rows contain none. */
TEST(overhead_of_part_of_read_comparison_is_not_known)
{
	struct made *made = made_comparison();
	made->comparison.has_overhead = true;
	made->view.all.now.overhead_bytes = 80;
	made->view.selected = made->view.all;
	const char *text = made_report(made, "umdh", false);
	line_behind(text, "Total increase ==   5320 requested +     80 overhead =   5400\n");
	made->view.is_filtered = true;
	made->view.selected = (struct change){.now = {1, 70, 0}};
	text = made_report(made, "umdh", false);
	assert_string_equal(line_behind(text, "\n\n\nTotal "), "increase == 70\n");
	line_behind(text, "//           +70             ?         +1  selected: 1 stack\n");
	line_behind(text, "//         +5320           +80         +3  all\n");
}

/* UMDH's total contains only the growth, but its rows contain OLD and NEW. */
TEST(growth_is_left_when_rows_have_more_than_total)
{
	static const long long wanted[2] = {-80, 4};
	long long got[3];
	struct made *made = made_comparison();
	made->comparison.has_overhead = true;
	made->view.all = (struct change){.now = {7, 5240, 0}};
	made->view.is_filtered = true;
	/* 3 blocks and 5320 bytes. */
	made->view.selected = (struct change){given_sums[0], given_sums[1]};
	char *text = made_report(made, "umdh", false);
	for (char *at = text; (at = strchr(at, '?'));)
		*at = '0';
	shares(text, "  left out\n", got);
	assert_int_equal(got[0], wanted[0]);
	assert_int_equal(got[2], wanted[1]);
}

TEST(no_change_is_decrease_of_nothing_and_sentence)
{
	struct maker maker = dump_new((struct maker){0});
	dump_end(&maker, "new.txt");
	struct made *made = made_read(1);
	const char *text = made_report(made, "umdh", false);
	/* data/umdh/totals_lines_various.txt */
	assert_string_equal(line_behind(text, "\n\n\nTotal "),
		"decrease ==      0 requested +      0 overhead =      0\n"
		"// No stack changed.\n");
}
