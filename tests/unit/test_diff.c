#include "tests/unit/t.h"

#include "tests/unit/test_diff.h"

#define EACH_STACK 6

TEST(growth_is_new_minus_old_for_every_stack)
{
	EACH_DUMP (maker, is_new, 0) {
		for (unsigned i = 0; i < EACH_STACK; i++) {
			if (!is_new) /* all stacks share one id: an id is only a label */
				put_block(&maker, 100 + i, 16, "A", i);
			for (unsigned k = 0; is_new && k < i; k++)
				put_block(&maker, 10 * i + k, 8, "B", i);
		}
	}
	struct result *result = run_rows(EACH_STACK, "old.txt", "new.txt");
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

TEST(stack_that_did_not_change_is_not_shown)
{
	EACH_DUMP (maker, is_new, 0) {
		put_block(&maker, is_new ? 60 : 40, 8, "1", 1); /* equal sum and count */
		put_block(&maker, is_new ? 40 : 60, 8, "1", 1);
		put_block(&maker, 100, 8, "2", 2);
		put_block(&maker, is_new ? 50 : 100, 8, "3", 3);
		if (is_new)
			put_block(&maker, 50, 8, "3", 3); /* equal sum, different count */
	}
	struct result *result = run_rows(1, "old.txt", "new.txt");
	assert_int_equal(growth(row_of(result, 3)), 0);
	assert_int_equal(row_of(result, 3)->new_count, 2);
	assert_int_equal(result->requested, 0);
	assert_int_equal(result->overhead, 8);
	assert_true(result->is_increase);
}

TEST(equal_stacks_under_two_ids_are_one_row)
{
	EACH_DUMP (maker, is_new, 0) {
		if (!is_new) {
			put_block(&maker, 5, 8, "77", 1);
			continue;
		}
		put_block(&maker, 1000, 8, "22", 1);
		put_block(&maker, 300, 8, "11", 1);
		put_block(&maker, 7, 8, "99", 2);
		write_entry(&maker, 20, 8, "22");
	}
	struct result *result = run_rows(2, "old.txt", "new.txt");
	assert_int_equal(growth(row_of(result, 1)), 1315);
	assert_int_equal(row_of(result, 1)->new_count, 3);
	assert_string_equal(row_of(result, 1)->id, "11");
	assert_string_equal(row_of(result, 1)->notes, "//     also BackTrace22 BackTrace77\n");
	assert_string_equal(row_of(result, 2)->notes, "");
}

TEST(blocks_without_stack_are_one_row)
{
	EACH_DUMP (maker, is_new, .is_ours = true) {
		write_stackless(&maker, is_new ? 10 : 3, is_new ? 1000 : 300, is_new ? 80 : 24);
		if (!is_new) {
			write_stackless(&maker, 2, 200, 16);
			continue;
		}
		write_entry(&maker, 50, 8, "0"); /* UMDH's id for blocks without a stack */
		put_block(&maker, 1, 8, "1", 1);
	}
	struct result *result = run_rows(2, "old.txt", "new.txt");
	assert_string_equal(result->rows[0].id, "0");
	assert_string_equal(result->rows[0].frames, "\t(no stack recorded)\n");
	assert_int_equal(growth(&result->rows[0]), 1050 - 500);
	assert_int_equal(result->rows[0].new_count, 11);
	assert_int_equal(result->rows[0].old_count, 5);
	assert_int_equal(result->requested, 551);
	assert_int_equal(result->overhead, 80 + 8 + 8 - 40);
}

TEST(id_without_stack_is_row_of_its_own)
{
	struct maker maker = dump_new((struct maker){0});
	write_entry(&maker, 16, 8, "AB");
	write_entry(&maker, 16, 8, "CD"); /* the id's stack follows later */
	put_block(&maker, 16, 8, "CD", 1);
	write_entry(&maker, 64, 8, "AB");
	dump_end(&maker, "new.txt");
	struct result *result = run_rows(2, "new.txt");
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
	struct result *result = run_rows(2, "new.txt");
	assert_int_equal(growth(&result->rows[0]), 0x300);
	assert_string_equal(result->rows[0].notes,
		"//     ambiguous: one of 2 stacks, unknown which\n//     also BackTraceC\n");
	assert_string_equal(result->rows[0].frames, "\t1000\n\t2000\n\tAlias\n\t1000\n\t3000\n");
	assert_int_equal(growth(&result->rows[1]), 0x10);
	assert_string_equal(result->rows[1].notes, "");
}

TEST(alias_without_frames_is_no_stack)
{
	struct maker maker = dump_new((struct maker){0});
	put_lines(&maker, "10 bytes + 8 at 100 by BackTraceA\n"
			  "\tAlias\n\t1000\n\tAlias\n\tAlias\n\t2000\n\tAlias\n\n");
	put_lines(&maker, "100 bytes + 8 at 200 by BackTraceB\n\t1000\n\tAlias\n\t2000\n\n");
	put_lines(&maker, "20 bytes + 8 at 300 by BackTraceC\n\t1000\n\tAlias\n\n");
	put_lines(&maker, "40 bytes + 8 at 400 by BackTraceD\n\t1000\n\n");
	dump_end(&maker, "new.txt");
	struct result *result = run_rows(2, "new.txt");
	assert_int_equal(growth(&result->rows[0]), 0x110);
	assert_string_equal(result->rows[0].notes,
		"//     ambiguous: one of 2 stacks, unknown which\n//     also BackTraceB\n");
	assert_string_equal(result->rows[0].frames, "\t1000\n\tAlias\n\t2000\n");
	assert_int_equal(growth(&result->rows[1]), 0x60);
	assert_string_equal(result->rows[1].notes, "//     also BackTraceD\n");
	assert_string_equal(result->rows[1].frames, "\t1000\n");
}

TEST(rows_go_from_largest_growth_to_largest_decrease)
{
	static const unsigned new_bytes[] = {50, 0, 900, 100, 100, 20};
	static const unsigned old_bytes[] = {100, 400, 100, 0, 0, 20};

	EACH_DUMP (maker, is_new, 0) {
		const unsigned *bytes = is_new ? new_bytes : old_bytes;

		for (unsigned i = 0; i < 6; i++) {
			if (bytes[i])
				put_block(&maker, bytes[i], 8, "1", 6 - i);
		}
		write_entry(&maker, 0, 8, is_new ? "C1" : "C2"); /* zero bytes */
	}
	struct result *result = run_rows(7, "old.txt", "new.txt");
	for (size_t i = 1; i < result->row_count; i++)
		assert_true(growth(&result->rows[i - 1]) >= growth(&result->rows[i]));
	/* Rows with equal growth are sorted by content, so the row with the smaller offset is
	 * first. */
	assert_ptr_equal(row_of(result, 6 - 4), &result->rows[1]);
	assert_ptr_equal(row_of(result, 6 - 3), &result->rows[2]);
	/* Rows with equal growth in bytes are sorted by growth in number of blocks. */
	assert_string_equal(result->rows[3].id, "C1");
	assert_string_equal(result->rows[4].id, "C2");
	assert_int_equal(growth(&result->rows[6]), -400);
}

TEST(overhead_may_go_against_direction)
{
	EACH_DUMP (maker, is_new, 0)
		put_block(&maker, is_new ? 1100 : 1000, is_new ? 10 : 500, "1", 1);
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

/* Compares two dumps that contain only an id without a stack, and expects `rows` rows. The other
 * arguments are notes about the dumps' processes. */
static void check_processes(const char *old, const char *now, size_t rows)
{
	struct result *result;

	EACH_DUMP (maker, is_new, 0) {
		put_lines(&maker, is_new ? now : old);
		write_entry(&maker, is_new ? 50 : 20, 8, "AB");
	}
	result = run_rows(rows, "old.txt", "new.txt");
	assert_int_equal(growth(&result->rows[0]), rows == 1 ? 30 : 50);
	if (rows == 2)
		assert_int_equal(growth(&result->rows[1]), -20);
	assert_int_equal(result->requested, 30);
}

TEST(id_without_stack_means_nothing_in_another_process)
{
	static const char first[] = "// hsnap: process id=1 start=2026-01-01T00:00:01.000Z\n";
	static const char other[] = "// hsnap: process id=2 start=2026-01-01T00:00:01.000Z\n";
	static const char later[] = "// hsnap: process id=1 start=2026-01-01T00:00:02.000Z\n";

	check_processes(first, first, 1);
	check_processes(first, other, 2);
	check_processes(first, later, 2);
	check_processes("// hsnap: process id=1\n", other, 1); /* start time unknown */
	check_processes("", other, 1);
}

struct made_block {
	unsigned bytes, stack; /* 0: no stack */
	const char *id;
};

/* Runs hdiff on five blocks in one of their 120 orders. */
static struct result *run_order(const struct made_block *blocks, unsigned order)
{
	unsigned left[5] = {0, 1, 2, 3, 4}, code = order;
	struct maker maker = dump_new((struct maker){0});

	for (unsigned count = 5; count; count--) {
		unsigned pick = code % count, block = left[pick];

		write_entry(&maker, blocks[block].bytes, 8, blocks[block].id);
		if (blocks[block].stack)
			put_stack(&maker, blocks[block].stack);
		code /= count;
		left[pick] = left[count - 1];
	}
	dump_end(&maker, "new.txt");
	return run_rows(4, "new.txt");
}

/* The cases include ids with several stacks, stacks with several ids, rows with equal growth, and
 * entries without a stack. An entry without a stack is not added to any stack if its id has
 * several. */
TEST(order_of_blocks_does_not_matter)
{
	static const struct made_block blocks[][5] = {
		{{10, 1, "A"}, {20, 1, "B"}, {30, 2, "A"}, {30, 3, "C"}, {30, 4, "D"}},
		{{10, 1, "A"}, {20, 2, "A"}, {100, 0, "A"}, {1000, 0, "B"}, {5, 3, "B"}}};
	char *expected = NULL;

	for (unsigned i = 0; i < 240; i++) {
		struct result *result = run_order(blocks[i / 120], i % 120);

		if (i % 120 == 0) {
			free(expected);
			expected = strdup(result->text);
		}
		assert_string_equal(result->text, expected);
		if (i < 120)
			continue;
		assert_int_equal(growth(row_of(result, 1)), 10);
		assert_int_equal(growth(row_of(result, 2)), 20);
		assert_int_equal(growth(row_of(result, 3)), 1005);
		assert_string_equal(result->rows[1].id, "A");
		assert_string_equal(result->rows[1].frames, "\t(one of 2 stacks under this id)\n");
		assert_int_equal(growth(&result->rows[1]), 100);
		assert_int_equal(result->rows[1].new_count, 1);
	}
	free(expected);
}

TEST(one_of_several_stacks_is_same_row_under_any_id)
{
	EACH_DUMP (maker, is_new, .slide = is_new ? 0x700000 : 0) {
		const char *id = is_new ? "B" : "A";

		write_entry(&maker, is_new ? 75 : 50, 8, id);
		for (unsigned i = 0; i < 40; i++)
			put_block(&maker, 30, 8, id, is_new ? 39 - i : i);
		put_block(&maker, 30, 8, "C", 1);
		put_block(&maker, 30, 8, "C", is_new ? 3 : 2);
		write_entry(&maker, 30, 8, "C");
	}
	struct result *result =
		/* Rows of stacks 2 and 3, and three rows of id C. */
		run_rows(5, "old.txt", "new.txt");
	assert_string_equal(result->rows[2].frames, "\t(one of 40 stacks under this id)\n");
	assert_int_equal(growth(&result->rows[2]), 25);
	assert_int_equal(growth(row_of(result, 2)), -30);
	assert_int_equal(growth(row_of(result, 3)), 30);
	assert_int_equal(result->requested, 25);
}
