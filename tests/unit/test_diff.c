/* hdiff: which stacks are one, and what they add up to. */
#include "tests/unit/t.h"

#include "tests/unit/test_diff.h"

#define EACH_STACK 6

TEST(growth_is_new_minus_old_for_every_stack)
{
	struct maker maker = dump_new((struct maker){0});
	for (unsigned i = 0; i < EACH_STACK; i++)
		put_block(&maker, 100 + i, 16, "A", i); /* one id for all: it is but a label */
	dump_end(&maker, "old.txt");
	maker = dump_new((struct maker){0});
	for (unsigned i = 0; i < EACH_STACK; i++) {
		for (unsigned k = 0; k < i; k++)
			put_block(&maker, 10 * i + k, 8, "B", i);
	}
	dump_end(&maker, "new.txt");
	struct result *result = run_hdiff("old.txt", "new.txt");
	assert_int_equal(result->status, 0);
	assert_int_equal(result->row_count, EACH_STACK);
	for (unsigned i = 0; i < EACH_STACK; i++) {
		const struct shown *row = row_of(result, i);

		assert_non_null(row);
		assert_int_equal(row->old_bytes, 100 + i);
		assert_int_equal(row->new_bytes, 10 * i * i + i * (i ? i - 1 : 0) / 2);
		assert_int_equal(row->new_count, i);
		assert_int_equal(row->old_count, 1);
		growth(row);
	}
}

TEST(a_stack_that_did_not_change_is_not_shown)
{
	struct maker maker;

	for (int is_new = 0; is_new < 2; is_new++) {
		dump_begin(&maker, (struct maker){0});
		put_block(&maker, is_new ? 60 : 40, 8, "1", 1); /* same sum, same count */
		put_block(&maker, is_new ? 40 : 60, 8, "1", 1);
		put_block(&maker, 100, 8, "2", 2);
		put_block(&maker, is_new ? 50 : 100, 8, "3", 3);
		if (is_new)
			put_block(&maker, 50, 8, "3", 3); /* same sum, another count */
		dump_end(&maker, is_new ? "new.txt" : "old.txt");
	}
	struct result *result = run_hdiff("old.txt", "new.txt");
	assert_int_equal(result->row_count, 1);
	assert_int_equal(growth(row_of(result, 3)), 0);
	assert_int_equal(row_of(result, 3)->new_count, 2);
	assert_int_equal(result->requested, 0);
	assert_int_equal(result->overhead, 8);
	assert_true(result->is_increase);
}

TEST(equal_stacks_under_two_ids_are_one_row)
{
	struct maker maker = dump_new((struct maker){0});
	put_block(&maker, 5, 8, "77", 1);
	dump_end(&maker, "old.txt");
	maker = dump_new((struct maker){0});
	put_block(&maker, 1000, 8, "22", 1);
	put_block(&maker, 300, 8, "11", 1);
	put_block(&maker, 7, 8, "99", 2);
	put_entry(&maker, 20, 8, "22");
	dump_end(&maker, "new.txt");
	struct result *result = run_hdiff("old.txt", "new.txt");
	assert_int_equal(result->row_count, 2);
	assert_int_equal(growth(row_of(result, 1)), 1315);
	assert_int_equal(row_of(result, 1)->new_count, 3);
	assert_string_equal(row_of(result, 1)->id, "11");
	assert_string_equal(row_of(result, 1)->notes, "//     also BackTrace22 BackTrace77\n");
	assert_string_equal(row_of(result, 2)->notes, "");
}

TEST(one_id_with_many_stacks_is_as_many_rows)
{
	struct maker maker = dump_new((struct maker){0});
	for (unsigned i = 0; i < 180; i++)
		put_block(&maker, i, 8, "5", i * 7 % 60);
	dump_end(&maker, "new.txt");
	struct result *result = run_hdiff("new.txt");
	assert_int_equal(result->row_count, 60);
	for (unsigned i = 0; i < 60; i++) {
		const struct shown *row = row_of(result, i * 7 % 60);

		assert_non_null(row);
		assert_int_equal(row->new_count, 3);
		assert_int_equal(growth(row), 3 * i + 180);
	}
}

TEST(blocks_without_a_stack_are_one_row)
{
	struct maker maker = dump_new((struct maker){.is_ours = true});
	put_stackless(&maker, 3, 300, 24);
	put_stackless(&maker, 2, 200, 16);
	dump_end(&maker, "old.txt");
	maker = dump_new((struct maker){.is_ours = true});
	put_stackless(&maker, 10, 1000, 80);
	put_entry(&maker, 50, 8, "0"); /* UMDH's way to say so */
	put_block(&maker, 1, 8, "1", 1);
	dump_end(&maker, "new.txt");
	struct result *result = run_hdiff("old.txt", "new.txt");
	assert_int_equal(result->row_count, 2);
	assert_string_equal(result->rows[0].id, "0");
	assert_string_equal(result->rows[0].frames, "\t(no stack recorded)\n");
	assert_int_equal(growth(&result->rows[0]), 1050 - 500);
	assert_int_equal(result->rows[0].new_count, 11);
	assert_int_equal(result->rows[0].old_count, 5);
	assert_int_equal(result->requested, 551);
	assert_int_equal(result->overhead, 80 + 8 + 8 - 40);
}

TEST(an_id_without_a_stack_is_a_row_of_its_own)
{
	struct maker maker = dump_new((struct maker){0});
	put_entry(&maker, 16, 8, "AB");
	put_entry(&maker, 16, 8, "CD"); /* its stack comes later */
	put_block(&maker, 16, 8, "CD", 1);
	put_entry(&maker, 64, 8, "AB");
	dump_end(&maker, "new.txt");
	struct result *result = run_hdiff("new.txt");
	assert_int_equal(result->row_count, 2);
	assert_string_equal(row_named(result, "AB")->frames, "\t(stack not in the dump)\n");
	assert_int_equal(growth(row_named(result, "AB")), 80);
	assert_int_equal(growth(row_of(result, 1)), 32);
}

TEST(aliases_stay_one_ambiguous_row)
{
	static const char stack[] = "\t1000\n\t2000\n\tAlias\n\t1000\n\t3000\n\n";

	struct maker maker = dump_new((struct maker){0});
	put_lines(&maker, "10 bytes + 8 at 100 by BackTraceA\n\t1000\n\t2000\n\n");
	put_lines(&maker, "100 bytes + 8 at 200 by BackTraceB\n");
	put_lines(&maker, stack);
	put_lines(&maker, "100 bytes + 8 at 300 by BackTraceC\n");
	put_lines(&maker, stack);
	put_lines(&maker, "100 bytes + 8 at 400 by BackTraceB\n");
	dump_end(&maker, "new.txt");
	struct result *result = run_hdiff("new.txt");
	assert_int_equal(result->row_count, 2);
	assert_int_equal(growth(&result->rows[0]), 0x300);
	assert_string_equal(result->rows[0].notes,
		"//     ambiguous: one of 2 stacks, unknown which\n//     also BackTraceC\n");
	assert_string_equal(result->rows[0].frames, "\t1000\n\t2000\n\tAlias\n\t1000\n\t3000\n");
	assert_int_equal(growth(&result->rows[1]), 0x10);
	assert_string_equal(result->rows[1].notes, "");
}

TEST(an_alias_without_frames_is_no_stack)
{
	struct maker maker = dump_new((struct maker){0});
	put_lines(&maker, "10 bytes + 8 at 100 by BackTraceA\n"
			  "\tAlias\n\t1000\n\tAlias\n\tAlias\n\t2000\n\tAlias\n\n");
	put_lines(&maker, "100 bytes + 8 at 200 by BackTraceB\n\t1000\n\tAlias\n\t2000\n\n");
	put_lines(&maker, "20 bytes + 8 at 300 by BackTraceC\n\t1000\n\tAlias\n\n");
	put_lines(&maker, "40 bytes + 8 at 400 by BackTraceD\n\t1000\n\n");
	dump_end(&maker, "new.txt");
	struct result *result = run_hdiff("new.txt");
	assert_int_equal(result->row_count, 2);
	assert_int_equal(growth(&result->rows[0]), 0x110);
	assert_string_equal(result->rows[0].notes,
		"//     ambiguous: one of 2 stacks, unknown which\n//     also BackTraceB\n");
	assert_string_equal(result->rows[0].frames, "\t1000\n\tAlias\n\t2000\n");
	assert_int_equal(growth(&result->rows[1]), 0x60);
	assert_string_equal(result->rows[1].notes, "//     also BackTraceD\n");
	assert_string_equal(result->rows[1].frames, "\t1000\n");
}

TEST(rows_go_from_the_largest_growth_to_the_largest_decrease)
{
	static const unsigned new_bytes[] = {50, 0, 900, 100, 100, 20};
	static const unsigned old_bytes[] = {100, 400, 100, 0, 0, 20};
	struct maker maker;

	for (int is_new = 0; is_new < 2; is_new++) {
		const unsigned *bytes = is_new ? new_bytes : old_bytes;

		dump_begin(&maker, (struct maker){0});
		for (unsigned i = 0; i < 6; i++) {
			if (bytes[i])
				put_block(&maker, bytes[i], 8, "1", 6 - i);
		}
		put_entry(&maker, 0, 8, is_new ? "C1" : "C2"); /* of no bytes */
		dump_end(&maker, is_new ? "new.txt" : "old.txt");
	}
	struct result *result = run_hdiff("old.txt", "new.txt");
	assert_int_equal(result->row_count, 7);
	for (size_t i = 1; i < result->row_count; i++) {
		int64_t before = growth(&result->rows[i - 1]), after = growth(&result->rows[i]);

		assert_true(before >= after);
	}
	/* Equal growth: by content, so the smaller offset first. */
	assert_ptr_equal(row_of(result, 6 - 4), &result->rows[1]);
	assert_ptr_equal(row_of(result, 6 - 3), &result->rows[2]);
	/* Equal growth in bytes: by growth in number. */
	assert_string_equal(result->rows[3].id, "C1");
	assert_string_equal(result->rows[4].id, "C2");
	assert_int_equal(growth(&result->rows[6]), -400);
}

/* The report must not depend on the order of blocks; every order of a few is tried. */
TEST(the_order_of_blocks_does_not_matter)
{
	static const struct {
		unsigned bytes, stack;
		const char *id;
	} blocks[] = {{10, 1, "A"}, {20, 1, "B"}, {30, 2, "A"}, {30, 3, "C"}, {30, 4, "D"}};
	char *expected = NULL;

	for (unsigned order = 0; order < 120; order++) {
		unsigned left[5] = {0, 1, 2, 3, 4}, code = order;

		struct maker maker = dump_new((struct maker){0});
		for (unsigned count = 5; count; count--) {
			unsigned pick = code % count, block = left[pick];

			put_block(&maker, blocks[block].bytes, 8, blocks[block].id,
				blocks[block].stack);
			code /= count;
			left[pick] = left[count - 1];
		}
		dump_end(&maker, "new.txt");
		struct result *result = run_hdiff("new.txt");
		if (expected)
			assert_string_equal(result->text, expected);
		else
			expected = strdup(result->text);
	}
	free(expected);
}

TEST(overhead_may_go_against_the_direction)
{
	struct maker maker = dump_new((struct maker){0});
	put_block(&maker, 1000, 500, "1", 1);
	dump_end(&maker, "old.txt");
	maker = dump_new((struct maker){0});
	put_block(&maker, 1100, 10, "1", 1);
	dump_end(&maker, "new.txt");
	struct result *result = run_hdiff("old.txt", "new.txt");
	assert_false(result->is_increase);
	assert_int_equal(result->requested, -100);
	assert_int_equal(result->overhead, 490);
	assert_int_equal(result->sum, 390);
	result = run_hdiff("--hex", "new.txt", "old.txt");
	assert_true(result->is_increase);
	assert_int_equal(result->requested, -100);
	assert_int_equal(result->overhead, 490);
	assert_int_equal(growth(&result->rows[0]), -100);
}

static void put_process(struct maker *maker, unsigned pid, unsigned start)
{
	if (pid)
		put(maker, "// hsnap: process id=%u", pid);
	if (pid && start)
		put(maker, "// hsnap: process id=%u start=2026-01-01T00:00:%02u.000Z", pid, start);
}

/* Process and start of two dumps, and how many rows become of an id that has no stack. */
static void check_processes(
	unsigned old_pid, unsigned old_start, unsigned new_pid, unsigned new_start, size_t rows)
{
	EACH_DUMP (maker, is_new, 0) {
		put_process(&maker, is_new ? new_pid : old_pid, is_new ? new_start : old_start);
		put_entry(&maker, is_new ? 50 : 20, 8, "AB");
	}
	struct result *result = run_hdiff("old.txt", "new.txt");
	assert_int_equal(result->row_count, rows);
	assert_int_equal(growth(&result->rows[0]), rows == 1 ? 30 : 50);
	if (rows == 2)
		assert_int_equal(growth(&result->rows[1]), -20);
	assert_int_equal(result->requested, 30);
}

TEST(an_id_without_a_stack_means_nothing_in_another_process)
{
	check_processes(1, 1, 1, 1, 1);
	check_processes(1, 1, 2, 1, 2);
	check_processes(1, 1, 1, 2, 2);
	check_processes(1, 0, 2, 1, 1); /* not known */
	check_processes(0, 0, 2, 1, 1);
}

/* By the order of their codes: a few entries, some with no stack. */
static void put_in_order(unsigned order)
{
	static const struct {
		unsigned bytes, stack;
		const char *id;
	} blocks[] = {{10, 1, "A"}, {20, 2, "A"}, {100, 0, "A"}, {1000, 0, "B"}, {5, 3, "B"}};
	unsigned left[5] = {0, 1, 2, 3, 4}, code = order;

	struct maker maker = dump_new((struct maker){0});
	for (unsigned count = 5; count; count--) {
		unsigned pick = code % count, block = left[pick];

		put_entry(&maker, blocks[block].bytes, 8, blocks[block].id);
		if (blocks[block].stack)
			put_stack(&maker, blocks[block].stack);
		code /= count;
		left[pick] = left[count - 1];
	}
	dump_end(&maker, "new.txt");
}

TEST(entries_without_a_stack_are_of_none_where_their_id_has_several)
{
	char *expected = NULL;

	for (unsigned order = 0; order < 120; order++) {
		put_in_order(order);
		struct result *result = run_hdiff("new.txt");
		assert_int_equal(result->row_count, 4);
		assert_int_equal(growth(row_of(result, 1)), 10);
		assert_int_equal(growth(row_of(result, 2)), 20);
		assert_int_equal(growth(row_of(result, 3)), 1005);
		assert_string_equal(result->rows[1].id, "A");
		assert_string_equal(result->rows[1].frames, "\t(one of 2 stacks under this id)\n");
		assert_int_equal(growth(&result->rows[1]), 100);
		assert_int_equal(result->rows[1].new_count, 1);
		if (expected)
			assert_string_equal(result->text, expected);
		else
			expected = strdup(result->text);
	}
	free(expected);
}

TEST(one_of_several_stacks_is_the_same_row_under_any_id)
{
	struct maker maker;

	for (int is_new = 0; is_new < 2; is_new++) {
		const char *id = is_new ? "B" : "A";

		dump_begin(&maker, (struct maker){.slide = is_new ? 0x700000 : 0});
		put_entry(&maker, is_new ? 75 : 50, 8, id);
		for (unsigned i = 0; i < 40; i++)
			put_block(&maker, 30, 8, id, is_new ? 39 - i : i);
		put_block(&maker, 30, 8, "C", 1);
		put_block(&maker, 30, 8, "C", is_new ? 3 : 2);
		put_entry(&maker, 30, 8, "C");
		dump_end(&maker, is_new ? "new.txt" : "old.txt");
	}
	struct result *result = run_hdiff("old.txt", "new.txt");
	assert_int_equal(result->row_count, 5); /* stacks 2 and 3, and of C one each */
	assert_string_equal(result->rows[2].frames, "\t(one of 40 stacks under this id)\n");
	assert_int_equal(growth(&result->rows[2]), 25);
	assert_int_equal(growth(row_of(result, 2)), -30);
	assert_int_equal(growth(row_of(result, 3)), 30);
	assert_int_equal(result->requested, 25);
}
