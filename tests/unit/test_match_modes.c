#include "tests/unit/t.h"

#include "tests/unit/test_match.h"

#define HEAP_A UINT64_C(0x1E0000)
#define HEAP_B UINT64_C(0x5F0000)

/* Modules have moved, or one was rebuilt. */
TEST(by_module_places_do_not_matter_and_by_address_modules_do_not)
{
	static const enum match_mode modes[] = {
		MATCH_AUTO, MATCH_MODULE, MATCH_SYMBOL, MATCH_ADDRESS};

	for (size_t i = 0; i < 8; i++) {
		bool is_rebuilt = i / 4, is_address = modes[i % 4] == MATCH_ADDRESS;

		EACH_DUMP (maker, is_new, .slide = is_new && !is_rebuilt ? 0x770000 : 0,
			.timestamp = is_new && is_rebuilt ? 8 : 7)
			put_block(&maker, is_new ? 150 : 100, 8, is_new ? "B" : "A", 1);
		assert_int_equal(compare((struct match_request){.mode = modes[i % 4]}),
			is_address == is_rebuilt ? 1 : 2);
	}
}

/* Writes blocks with one stack that continues into stale data. The stack has app!, an address in
 * generated code, lib!, and then the given values up to 0. */
static void write_tailed(const char *path, bool has_modules, uint64_t bytes, const uint64_t *tail)
{
	struct maker maker = dump_new((struct maker){.bare = !has_modules});

	if (!has_modules)
		buf_clear(&maker.text);
	write_entry(&maker, bytes, 8, "A");
	put(&maker, "\t%" PRIX64, APP_BASE + 0x1010);
	put(&maker, "\t%X", 0x5550010);
	put(&maker, "\t%" PRIX64, LIB_BASE + 0x501);
	for (; *tail; tail++)
		put(&maker, "\t%" PRIX64, *tail);
	put(&maker, "%s", "");
	dump_end(&maker, path);
}

TEST(tail_in_no_module_is_neither_compared_nor_shown)
{
	static const enum match_mode modes[] = {
		MATCH_AUTO, MATCH_ID, MATCH_ADDRESS, MATCH_MODULE, MATCH_SYMBOL};

	write_tailed("old.txt", true, 100, (const uint64_t[]){0xDEADBABE, 3, 0x21F680, 0});
	write_tailed("new.txt", true, 150, (const uint64_t[]){0xDEADBABE, 0x21F780, 0});
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		assert_int_equal(compare((struct match_request){.mode = modes[i]}), 1);
		assert_int_equal(row_growth(0), 50);
		assert_non_null(strstr(report_of(i % 2),
			"\n\tapp+1010 : 140001010\n\t5550010\n\tlib+501 : 7FF812340501\n\n"));
	}
}

/* Without a list of modules no frame lies in a module, so each frame counts. */
TEST(stack_that_is_in_no_module_at_all_is_left_whole)
{
	write_tailed("old.txt", false, 100, (const uint64_t[]){0x21F680, 0});
	write_tailed("new.txt", false, 150, (const uint64_t[]){0x21F780, 0});
	assert_int_equal(compare((struct match_request){0}), 2);
	for (int i = 0; i < 2; i++)
		assert_non_null(strstr(report_of(true),
			i ? "\n\t140001010\n\t5550010\n\t7FF812340501\n\t21F780\n\n" :
			    "\n\t140001010\n\t5550010\n\t7FF812340501\n\t21F680\n\n"));
}

/* ---------------------------------------------------------------- ids */

TEST(by_id_equal_stacks_stay_apart_and_others_become_one)
{
	const struct row *row;
	char *text;

	EACH_DUMP (maker, is_new, 0) {
		put_block(&maker, is_new ? 190 : 100, 8, "A", is_new ? 4 : 1);
		put_block(&maker, is_new ? 180 : 100, 8, "B", 2);
		put_block(&maker, is_new ? 170 : 100, 8, "C", 2);
		write_entry(&maker, is_new ? 10 : 1, 8, "B"); /* the id's stack is known */
	}
	assert_int_equal(compare((struct match_request){.mode = MATCH_ID}), 3);
	/* A has a different stack in each dump. The new stack is shown. */
	row = &compared.comparison.rows[0];
	assert_string_equal(row->ids[0], "A");
	assert_int_equal(row->id_count, 1);
	assert_int_equal(row_growth(0), 90);
	assert_int_equal(row->id_stack_count, 2);
	assert_int_equal(row->dump, 1);
	assert_int_equal(stack_frame(row->stack, 0), APP_BASE + 0x1040);
	/* B and C are equal in both dumps. */
	row = &compared.comparison.rows[1];
	assert_string_equal(row->ids[0], "B");
	assert_int_equal(row_growth(1), 89);
	assert_int_equal(row->id_stack_count, 1);
	assert_string_equal(compared.comparison.rows[2].ids[0], "C");
	assert_int_equal(row_growth(2), 70);
	text = report_of(false);
	assert_non_null(strstr(text, "//     2 different stacks have this id: one is shown\n"
				     "+      90 (    190 -    100)      1 allocs\tBackTraceA\n"));
	assert_null(strstr(strstr(text, "BackTraceA"), "different"));
}

TEST(by_id_first_of_several_stacks_is_shown)
{
	for (unsigned order = 0; order < 6; order++) {
		static const unsigned char orders[][3] = {
			{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}};

		EACH_DUMP (maker, is_new, 0) {
			for (unsigned i = 0; is_new && i < 3; i++)
				put_block(&maker, 10 * orders[order][i], 8, "A", orders[order][i]);
			write_entry(&maker, is_new ? 100 : 5, 8, "A");
			if (!is_new)
				put_stack(&maker, 0);
		}
		assert_int_equal(compare((struct match_request){.mode = MATCH_ID}), 1);
		assert_int_equal(row_growth(0), 10 + 20 + 30 + 100 - 5);
		assert_int_equal(compared.comparison.rows[0].kind, ROW_STACK);
		assert_int_equal(compared.comparison.rows[0].id_stack_count, 4);
		assert_int_equal(stack_frame(compared.comparison.rows[0].stack, 0),
			APP_BASE + 0x1000 + 0x10);
	}
}

TEST(by_id_stack_that_only_one_dump_gives_is_shown)
{
	/* 0: in old.txt, 1: in new.txt, 2: in neither. */
	for (int in_new = 0; in_new < 3; in_new++) {

		EACH_DUMP (maker, is_new, 0) {
			write_entry(&maker, is_new ? 70 : 50, 8, "A");
			if (in_new == is_new)
				put_stack(&maker, 1);
		}
		assert_int_equal(compare((struct match_request){.mode = MATCH_ID}), 1);
		assert_int_equal(row_growth(0), 20);
		if (in_new == 2) {
			assert_int_equal(compared.comparison.rows[0].kind, ROW_UNKNOWN);
			assert_null(compared.comparison.rows[0].stack);
		} else {
			assert_int_equal(compared.comparison.rows[0].kind, ROW_STACK);
			assert_int_equal(compared.comparison.rows[0].dump, in_new);
			assert_int_equal(compared.comparison.rows[0].stack->frame_count, 3);
		}
	}
}

TEST(by_id_blocks_without_stack_are_one_row)
{
	EACH_DUMP (maker, is_new, .is_ours = true) {
		write_stackless(&maker, 1, is_new ? 300 : 100, 8);
		write_entry(&maker, 50, 8, is_new ? "00" : "0");
	}
	assert_int_equal(compare((struct match_request){.mode = MATCH_ID}), 1);
	assert_int_equal(compared.comparison.rows[0].kind, ROW_STACKLESS);
	assert_int_equal(row_growth(0), 200);
}

/* ---------------------------------------------------------------- heaps */

/* Writes blocks with two stacks in two heaps. Their sizes identify stack and heap. */
static void write_in_heaps(void)
{
	EACH_DUMP (maker, is_new, .is_ours = true) {
		unsigned times = is_new ? 3 : 1;

		put_block(&maker, 1 * times, 8, "1", 1);
		put_block(&maker, 10 * times, 8, "2", 2);
		write_heap(&maker, HEAP_B);
		put_block(&maker, 100 * times, 8, "1", 1);
		put_block(&maker, 1000 * times, 8, "7", 2);
		write_stackless(&maker, 1, 10000 * times, 8); /* goes into HEAP_A */
	}
}

TEST(by_heap_stack_is_row_in_each_heap)
{
	static const struct {
		int64_t growth;
		uint64_t heap;
		const char *id;
	} expected[] = {{20000, HEAP_A, "0"}, {2000, HEAP_B, "7"}, {200, HEAP_B, "1"},
		{20, HEAP_A, "2"}, {2, HEAP_A, "1"}};

	write_in_heaps();
	assert_int_equal(compare((struct match_request){.by_heap = true}), 5);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(row_growth(i), expected[i].growth);
		assert_int_equal(compared.comparison.rows[i].heap, expected[i].heap);
		assert_int_equal(compared.comparison.rows[i].id_count, 1);
		assert_string_equal(compared.comparison.rows[i].ids[0], expected[i].id);
	}

	assert_int_equal(compare((struct match_request){0}), 3);
	assert_int_equal(row_growth(1), 2020);
	assert_int_equal(compared.comparison.rows[1].heap, 0);
	assert_int_equal(compared.comparison.rows[1].id_count, 2);
	assert_int_equal(row_growth(2), 202);
}

TEST(rows_of_equal_growth_go_by_their_heaps)
{
	EACH_DUMP (maker, is_new, 0) {
		for (unsigned i = 20; is_new && i; i--) {
			write_heap(&maker, i * 7 % 20 * 0x10000);
			put_block(&maker, 50, 8, "1", 1);
		}
	}
	assert_int_equal(compare((struct match_request){.by_heap = true}), 20);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(compared.comparison.rows[i].heap, i * 0x10000);
}

TEST(only_blocks_of_heaps_asked_for_count_but_totals_are_of_all)
{
	static const uint64_t heaps[] = {0x4711, HEAP_B};

	write_in_heaps();
	assert_int_equal(compare((struct match_request){.heaps = heaps, .heap_count = 2}), 2);
	assert_int_equal(row_growth(0), 2000);
	assert_int_equal(row_growth(1), 200);
	assert_int_equal(compared.comparison.rows[0].id_count, 1);
	assert_int_equal(compared.comparison.rows[0].totals[0].requested_bytes, 1000);
	assert_int_equal(compared.comparison.old_total.requested_bytes, 11111);
	assert_int_equal(compared.comparison.new_total.requested_bytes, 33333);
	assert_int_equal(compare((struct match_request){.heaps = heaps, .heap_count = 1}), 0);
	assert_int_equal(compared.comparison.new_total.requested_bytes, 33333);
}

/* ---------------------------------------------------------------- one process */

/* Compares two dumps that have these modules and one block with return address 10123. Returns the
 * number of rows. */
static size_t rows_of_one_process(const char *old, const char *now, unsigned new_start)
{
	EACH_DUMP (maker, is_new, .is_ours = true) {
		put(&maker, "// hsnap: process id=5 start=2026-01-01T00:00:%02u.000Z",
			is_new ? new_start : 1);
		put(&maker, "// Loaded modules: ");
		put_lines(&maker, is_new ? now : old);
		put(&maker, "// Process modules enumerated.");
		write_entry(&maker, is_new ? 300 : 100, 8, "1");
		put(&maker, "\t10123");
	}
	return compare((struct match_request){0});
}

TEST(module_that_was_unloaded_is_still_known_within_its_process)
{
	static const char x[] = "//  10000 1000 C:\\x.dll\n";
	static const char y[] = "//  10000 1000 C:\\y.dll\n";

	/* Modules of one process are not valid for another. */
	assert_int_equal(rows_of_one_process(x, "", 2), 2);
	/* The module was replaced with another. */
	assert_int_equal(rows_of_one_process(x, y, 1), 2);
	/* The module was loaded between the dumps. */
	assert_int_equal(rows_of_one_process("", x, 1), 1);
	assert_int_equal(rows_of_one_process(x, "", 1), 1);
	assert_non_null(strstr(report_of(true), "\n\tx+123 : 10123\n"));
}

/* ---------------------------------------------------------------- several dumps */

/* Compares three dumps of three runs. The third run uses another build. A row has three sums. */
TEST(of_several_dumps_each_row_has_as_many_sums)
{
	static const char *const paths[] = {"old.txt", "more.txt", "new.txt"};
	const struct row *rows;

	compared_begin(3);
	for (unsigned i = 0; i < 3; i++) {
		struct maker maker = dump_new((struct maker){
			.is_ours = true, .timestamp = i < 2 ? 7 : 8, .slide = i * 0x550000});

		write_name_of(&maker, APP_BASE, 0x100 + 0x20 * i, "leak", "a.c", 3);
		write_entry(&maker, 10 + 10 * i, 8, "A");
		write_frame(&maker, APP_BASE, 0x100 + 0x20 * i);
		write_entry(
			&maker, i == 1 ? 999 : 5, 8, "B"); /* equal in the first and last dumps */
		write_frame(&maker, LIB_BASE, 0x100);
		if (i == 1) {
			write_entry(&maker, 777, 8, "C"); /* only in the middle dump */
			write_frame(&maker, LIB_BASE, 0x200);
		}
		dump_end(&maker, paths[i]);
		assert_int_equal(read_sums(&compared.dumps[i], paths[i]), 0);
	}
	compared_make((struct match_request){0});
	rows = compared.comparison.rows;
	assert_int_equal(compared.comparison.row_count, 1);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(rows[0].totals[i].requested_bytes, 10 + 10 * i);
		assert_int_equal(rows[0].totals[i].block_count, 1);
	}
	assert_int_equal(rows[0].dump, 2);
	assert_int_equal(rows[0].older_dump, 1);
}
