#include "tests/unit/t.h"

#include "tests/unit/test_query_view.h"

static made_stack stacks[] = {
	{NEW, LEAK, MAIN}, /* 1 */
	{MALLOC, CACHE, MAIN}, /* 2 */
	{HELPER, NAMELESS}, /* 4 */
	{NOWHERE}, /* 8 */
	{LIB_NAMELESS}, /* 16 */
	{HELPER, CACHE, CACHE}, /* 32 */
};
STACKS_IN_NEW_TXT(stacks)

static bool has_frame(const unsigned *stack, unsigned frame)
{
	for (size_t i = 0; i < 6 && stack[i]; i++) {
		if (stack[i] == frame)
			return true;
	}
	return false;
}

/* ---------------------------------------------------------------- names */

TEST(only_rows_that_are_shown_are_named)
{
	struct asked *asked = asked_begin(false, true);
	asked->request.shown_max = 2;
	asked_do(asked);
	assert_int_equal(asked->view.shown_count, 2);
	assert_int_equal(asked->view.row_count, STACKS);
	assert_int_equal(named_rows(asked), 2);
	assert_true(asked->view.naming.is_asked[asked->view.rows[0]]);
	assert_true(asked->view.naming.is_asked[asked->view.rows[1]]);
}

/* In lib: all except 8. With over 3 bytes: 4, 16, 32. Without the second frame of stack 4: 16,
 * 32. */
TEST(filters_without_names_run_first)
{
	static const char *const lib = "lib";
	char offset[40];

	snprintf(offset, sizeof(offset), "^app\\+%" PRIX64 "$", made_offset(NAMELESS));
	struct asked *asked = asked_begin(false, true);
	asked->request.shown_max = 0;
	asked->filter.modules = &lib;
	asked->filter.module_count = 1;
	asked->filter.min_bytes = 4;
	assert_int_equal(patterns_add(&asked->filter.exclude, offset, NULL), 0);
	asked_do(asked);
	assert_int_equal(named_rows(asked), 2);
	assert_int_equal(asked->view.selected.now.requested_bytes, 16 + 32);
}

/* If no filter can exclude the row, a match of the raw form suffices. */
TEST(row_that_is_included_by_its_address_needs_no_names)
{
	struct asked *asked = asked_begin(false, true);
	asked->request.shown_max = 0;
	assert_int_equal(patterns_add(&asked->filter.include, "^lib\\+", NULL), 0);
	asked_do(asked);
	assert_int_equal(asked->view.row_count, STACKS - 1);
	assert_int_equal(named_rows(asked), 1); /* the row of 8 bytes might still match */
}

TEST(rows_without_stack_need_no_names)
{
	struct maker maker = dump_new((struct maker){0});
	write_stackless(&maker, 1, 64, 8);
	dump_end(&maker, "new.txt");
	struct asked *asked = asked_begin(false, true);
	assert_int_equal(patterns_add(&asked->filter.include, ".", NULL), 0);
	asked_do(asked);
	assert_int_equal(asked->view.row_count, 0);
	assert_int_equal(named_rows(asked), 0);
}

TEST(groups_by_module_and_heap_need_no_names)
{
	for (int i = 0; i < 2; i++) {
		struct asked *asked = asked_begin(false, true);
		asked->request.group = i ? GROUP_HEAP : GROUP_MODULE;
		asked_do(asked);
		assert_int_equal(named_rows(asked), 0);
	}
}

/* ---------------------------------------------------------------- order */

struct numbers {
	unsigned old_blocks, old_bytes, new_blocks, new_bytes; /* bytes: size of each block */
};

static void write_numbers(const struct numbers *numbers, size_t count)
{
	EACH_DUMP (maker, is_new, 0) {
		for (unsigned i = 0; i < count; i++) {
			const struct numbers *of = &numbers[i];

			for (unsigned k = 0; k < (is_new ? of->new_blocks : of->old_blocks); k++)
				put_block(
					&maker, is_new ? of->new_bytes : of->old_bytes, 8, "1", i);
		}
	}
}

static int64_t sort_number(const struct numbers *of, enum view_sort sort)
{
	int64_t now = (int64_t)of->new_blocks * of->new_bytes;
	int64_t old = (int64_t)of->old_blocks * of->old_bytes;

	switch (sort) {
	case SORT_BYTES: return now - old;
	case SORT_COUNT: return (int64_t)of->new_blocks - (int64_t)of->old_blocks;
	case SORT_NEW: return now;
	case SORT_OLD: return old;
	default: break;
	}
	return 0;
}

static unsigned number_of(const struct asked *asked, uint32_t row)
{
	const struct stack *stack = asked->comparison.rows[row].stack;

	return (unsigned)(stack_frame(stack, 0) - APP_BASE - 0x1000) / 0x10;
}

TEST(rows_are_sorted_by_what_is_asked_for_and_then_as_ever)
{
	static const struct numbers numbers[] = {{0, 0, 3, 100}, {3, 100, 0, 0}, {5, 10, 6, 10},
		{6, 10, 5, 10}, {1, 100, 1, 200}, {0, 0, 1, 100}, {1, 300, 4, 100}, {0, 0, 10, 1},
		{7, 100, 7, 101}, {2, 50, 1, 200}};

	write_numbers(numbers, 10);
	for (int sort = SORT_BYTES; sort <= SORT_OLD; sort++) {
		struct asked *asked = asked_begin(true, false);
		asked->request.sort = (enum view_sort)sort;
		asked_do(asked);
		assert_int_equal(asked->view.row_count, 10);
		for (size_t i = 1; i < 10; i++) {
			uint32_t above = asked->view.rows[i - 1], below = asked->view.rows[i];
			int64_t a =
				sort_number(&numbers[number_of(asked, above)], asked->request.sort);
			int64_t b =
				sort_number(&numbers[number_of(asked, below)], asked->request.sort);

			assert_true(a > b || (a == b && above < below));
		}
	}
}

/* Names in order: app!Cache..., app!leak_here, app!main, lib!malloc, lib!operator new. */
TEST(rows_are_sorted_by_innermost_frame_shown)
{
	static made_stack named[] = {{NEW, CACHE}, {MALLOC, LEAK}, {MAIN}, {LEAK}, {HELPER, LEAK}};
	static const uint64_t plain[] = {8, 4, 16, 2, 1, 64, 32};
	static const uint64_t stripped[] = {1, 8, 2, 4, 16, 64, 32};

	for (int strip = 0; strip < 2; strip++) {
		struct maker maker = dump_new((struct maker){0});

		write_names(&maker);
		write_stackless(&maker, 1, 64, 8);
		write_entry(&maker, 32, 8, "99");
		for (size_t i = 0; i < 5; i++) {
			put(&maker, "%s", "");
			write_entry(&maker, UINT64_C(1) << i, 8, "A");
			write_frames(&maker, named[i]);
			put(&maker, "%s", "");
		}
		dump_end(&maker, "new.txt");
		struct asked *asked = asked_begin(false, true);
		asked->request.sort = SORT_NAME;
		strip_add_known(&asked->strip);
		asked->request.strip = strip ? &asked->strip : NULL;
		asked_do(asked);
		assert_int_equal(asked->view.row_count, 7);
		for (size_t i = 0; i < 7; i++)
			assert_int_equal(asked->comparison.rows[asked->view.rows[i]]
						 .totals[0]
						 .requested_bytes,
				(strip ? stripped : plain)[i]);
	}
}

/* ---------------------------------------------------------------- sums */

struct truth {
	struct change of[STACKS];
};

static void write_random(struct truth *truth)
{
	*truth = (struct truth){0};
	EACH_DUMP (maker, is_new, 0) {
		write_names(&maker);
		for (int k = rand() % 20; k >= 0; k--) {
			size_t i = (size_t)rand() % STACKS;
			uint64_t bytes = (uint64_t)rand() % 3 * 50,
				 overhead = (uint64_t)rand() % 20;

			put(&maker, "%s", "");
			write_entry(&maker, bytes, overhead, "1");
			write_frames(&maker, stacks[i]);
			put(&maker, "%s", "");
			block_totals_add(is_new ? &truth->of[i].now : &truth->of[i].old,
				&(struct block_totals){1, bytes, overhead});
		}
	}
}

static void add(struct change *to, const struct change *more)
{
	block_totals_add(&to->old, &more->old);
	block_totals_add(&to->now, &more->now);
}

static uint64_t size_of_change(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Frames, each with a pattern that matches no other frame. */
static const struct {
	unsigned frame;
	const char *pattern, *suppression;
} known[] = {{LEAK, "!leak_here", "leak:leak_here"}, {CACHE, "cache.cpp$", "leak:cache.cpp$"},
	{HELPER, "helper", "leak:^helper$"}, {MAIN, "app!main", "leak:main"}};

struct wanted {
	int include, exclude, suppress; /* pattern's index in known, or -1 */
	uint64_t min_bytes, min_blocks;
};

static bool asks_for_stacks(const struct wanted *wanted)
{
	return wanted->include >= 0 || wanted->exclude >= 0 || wanted->min_bytes ||
	       wanted->min_blocks;
}

/* Returns a stack's class: 's'elected, s'u'ppressed, 'l'eft out. */
static char place_of(const struct wanted *wanted, size_t i, const struct change *change)
{
	uint64_t bytes = size_of_change(change->now.requested_bytes, change->old.requested_bytes);
	uint64_t blocks = size_of_change(change->now.block_count, change->old.block_count);

	if (!bytes && !blocks) /* the growth cancels: no row, but selected if there is no filter */
		return asks_for_stacks(wanted) ? 'l' : 's';
	if (bytes < wanted->min_bytes || blocks < wanted->min_blocks ||
		(wanted->include >= 0 && !has_frame(stacks[i], known[wanted->include].frame)) ||
		(wanted->exclude >= 0 && has_frame(stacks[i], known[wanted->exclude].frame)))
		return 'l';
	return wanted->suppress >= 0 && has_frame(stacks[i], known[wanted->suppress].frame) ? 'u' :
											      's';
}

static void check_sums(const struct wanted *wanted, const struct truth *truth)
{
	struct change selected = {0}, suppressed = {0}, all = {0};

	struct asked *asked = asked_begin(true, true);
	asked->filter.min_bytes = wanted->min_bytes;
	asked->filter.min_blocks = wanted->min_blocks;
	asked->request.shown_max = (size_t)rand() % 3;
	if (wanted->include >= 0)
		assert_int_equal(
			patterns_add(&asked->filter.include, known[wanted->include].pattern, NULL),
			0);
	if (wanted->exclude >= 0)
		assert_int_equal(
			patterns_add(&asked->filter.exclude, known[wanted->exclude].pattern, NULL),
			0);
	if (wanted->suppress >= 0)
		asked_suppress(asked, known[wanted->suppress].suppression);
	asked_do(asked);
	for (size_t i = 0; i < STACKS; i++) {
		char place = place_of(wanted, i, &truth->of[i]);

		add(&all, &truth->of[i]);
		if (place != 'l')
			add(place == 's' ? &selected : &suppressed, &truth->of[i]);
	}
	if (wanted->suppress < 0)
		assert_int_equal(asked->view.is_filtered, asks_for_stacks(wanted));
	check_block_totals(asked->view.all.old, all.old);
	check_block_totals(asked->view.all.now, all.now);
	check_block_totals(asked->view.selected.old, selected.old);
	check_block_totals(asked->view.selected.now, selected.now);
	check_block_totals(asked->view.suppressed.old, suppressed.old);
	check_block_totals(asked->view.suppressed.now, suppressed.now);
}

TEST(selected_suppressed_and_left_out_add_up_to_all)
{
	srand(7);
	for (int i = 0; i < 300; i++) {
		struct wanted wanted = {.include = rand() % 8 - 4,
			.exclude = rand() % 8 - 4,
			.suppress = rand() % 8 - 4,
			.min_bytes = rand() % 2 ? 0 : (uint64_t)rand() % 100,
			.min_blocks = rand() % 2 ? 0 : (uint64_t)rand() % 3};
		struct truth truth;

		write_random(&truth);
		check_sums(&wanted, &truth);
	}
}

TEST(part_of_blocks_is_filter)
{
	struct asked *asked = asked_begin(false, false);
	asked->view.row_count = 2; /* as if the other rows were in another heap */
	asked->request.is_part = true;
	asked_do(asked);
	assert_true(asked->view.is_filtered);
	assert_int_equal(asked->view.all.now.requested_bytes, 63);
	assert_int_equal(asked->view.selected.now.requested_bytes, 32 + 16);
}

TEST(what_is_suppressed_is_not_in_rows)
{
	struct asked *asked = asked_begin(false, true);

	asked_suppress(asked, "leak:main\n");
	asked_do(asked);
	assert_int_equal(asked->view.suppressed_count, 2);
	assert_int_equal(asked->view.row_count, STACKS - 2);
	assert_int_equal(asked->view.suppressed.now.requested_bytes, 1 + 2);
	assert_true(asked->view.is_filtered);
}

/* Suppressions remove only the matching stacks. A filter by stack selects only stacks that
 * changed. */
TEST(what_did_not_change_is_selected_unless_stacks_were_asked_for)
{
	/* Sizes 1 (does not change), 2 and 4. */
	static made_stack of[] = {{LEAK}, {CACHE}, {HELPER}};

	for (int is_asked = 0; is_asked < 2; is_asked++) {
		write_stacks("old.txt", of, 1);
		write_stacks("new.txt", of, 3);
		struct asked *asked = asked_begin(true, true);
		asked_suppress(asked, "leak:Cache\n");
		if (is_asked)
			assert_int_equal(patterns_add(&asked->filter.include, ".", NULL), 0);
		asked_do(asked);
		assert_int_equal(asked->view.selected.old.requested_bytes, is_asked ? 0 : 1);
		assert_int_equal(asked->view.selected.now.requested_bytes, is_asked ? 4 : 1 + 4);
		assert_int_equal(asked->view.suppressed.now.requested_bytes, 2);
		assert_true(asked->view.is_filtered);
	}
}
