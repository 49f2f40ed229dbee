#include "tests/unit/t.h"

#include "diff/read/stack_store.h"
#include "tests/unit/test_match.h"

#define STACKS 40
#define HEAPS 4
#define IDS 25
/* Offset of a stack's outermost frame, before the stack's number is added. */
#define LAST_FRAME 0x2000

static uint64_t seed;

/* xorshift64* with a fixed seed. */
static unsigned random_below(unsigned limit)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (unsigned)(seed * UINT64_C(0x2545f4914f6cdd1d) >> 33) % limit;
}

/* ---------------------------------------------------------------- sums */

/* Contents of the test's dumps, indexed by stack. Index STACKS is for blocks without a stack. */
struct truth {
	struct block_totals stacks[STACKS + 1][HEAPS][2];
	struct block_totals ids[IDS][2];
	unsigned frames[STACKS][8], frame_count[STACKS];
};

static uint64_t heap_addr(unsigned heap)
{
	return UINT64_C(0x1E0000) + heap * UINT64_C(0x50000);
}

/* Makes stacks. Many have equal innermost frames, and each has a unique outermost frame. */
static void make_stacks(struct truth *truth)
{
	for (unsigned i = 0; i < STACKS; i++) {
		truth->frame_count[i] = random_below(8);
		for (unsigned k = 0; k < truth->frame_count[i]; k++)
			truth->frames[i][k] = random_below(3);
	}
}

static void write_random_stack(struct maker *maker, const struct truth *truth, unsigned stack)
{
	for (unsigned i = 0; i < truth->frame_count[stack]; i++) {
		unsigned frame = truth->frames[stack][i];

		write_frame(maker, frame ? APP_BASE : LIB_BASE, 0x500 + frame * 0x10);
	}
	write_frame(maker, LIB_BASE, LAST_FRAME + stack);
	put(maker, "%s", "");
}

static void write_random_dump(struct truth *truth, int is_new, uint64_t slide)
{
	struct maker maker =
		dump_new((struct maker){.is_ours = true, .slide = slide, .timestamp = 7});
	char id[20];

	for (unsigned i = 0; i < 300; i++) {
		unsigned heap = random_below(HEAPS), stack = random_below(STACKS + 1);
		unsigned number = random_below(IDS), bytes = random_below(5) * 16;
		struct block_totals block = {1, bytes, 8};

		if (stack % 3 == 0 && is_new && i >= STACKS + 1) /* some stacks change less */
			continue;
		if (i <= STACKS)
			stack = i;
		write_heap(&maker, heap_addr(heap));
		snprintf(id, sizeof(id), "%X", stack < STACKS ? 0x1000 + number : 0);
		write_entry(&maker, bytes, 8, id);
		if (stack < STACKS) {
			write_random_stack(&maker, truth, stack);
			block_totals_add(&truth->ids[number][is_new], &block);
		}
		block_totals_add(&truth->stacks[stack][heap][is_new], &block);
	}
	dump_end(&maker, is_new ? "new.txt" : "old.txt");
}

static bool is_changed(const struct block_totals *of)
{
	return of[0].requested_bytes != of[1].requested_bytes ||
	       of[0].block_count != of[1].block_count;
}

static unsigned stack_of_row(const struct row *row)
{
	if (row->kind == ROW_STACKLESS)
		return STACKS;
	assert_int_equal(row->kind, ROW_STACK);
	return (unsigned)(stack_frame(row->stack, row->stack->frame_count - 1) % LAST_FRAME);
}

/* Computes a row's expected sums. heap: HEAPS means all wanted heaps. */
static void expect(const struct truth *truth, unsigned stack, unsigned heap, unsigned wanted,
	struct block_totals *of)
{
	of[0] = of[1] = (struct block_totals){0};
	for (unsigned i = 0; i < HEAPS; i++) {
		if ((heap == HEAPS || heap == i) && wanted & 1U << i)
			for (unsigned k = 0; k < 2; k++)
				block_totals_add(&of[k], &truth->stacks[stack][i][k]);
	}
}

static void check_order(void)
{
	for (size_t i = 1; i < compared.comparison.row_count; i++) {
		const struct comparison *comparison = &compared.comparison;
		struct delta before = row_delta(comparison, &comparison->rows[i - 1]);
		struct delta after = row_delta(comparison, &comparison->rows[i]);

		assert_true(before.requested_bytes > after.requested_bytes ||
			    (before.requested_bytes == after.requested_bytes &&
				    before.block_count >= after.block_count));
	}
}

/* Checks that every row is correct, and that the stacks with rows are exactly those that
 * changed. */
static void check_rows(const struct truth *truth, struct match_request request, unsigned wanted)
{
	bool seen[STACKS + 1][HEAPS + 1] = {{false}};
	struct block_totals of[2];
	size_t changed = 0;

	compare(request);
	for (size_t i = 0; i < compared.comparison.row_count; i++) {
		const struct row *row = &compared.comparison.rows[i];
		unsigned stack = stack_of_row(row), heap = HEAPS;

		assert_in_range(stack, 0, STACKS);
		for (unsigned k = 0; request.by_heap && k < HEAPS; k++)
			heap = row->heap == heap_addr(k) ? k : heap;
		assert_int_equal(heap < HEAPS, request.by_heap);
		expect(truth, stack, heap, wanted, of);
		assert_true(is_changed(of));
		assert_memory_equal(row->totals, of, sizeof(of));
		assert_false(seen[stack][heap]);
		seen[stack][heap] = true;
	}
	for (unsigned stack = 0; stack <= STACKS; stack++) {
		for (unsigned heap = request.by_heap ? 0 : HEAPS;
			heap < (request.by_heap ? HEAPS : HEAPS + 1); heap++) {
			expect(truth, stack, heap, wanted, of);
			changed += is_changed(of);
		}
	}
	assert_int_equal(compared.comparison.row_count, changed);
	check_order();
}

static void check_totals(const struct truth *truth)
{
	struct block_totals of[2], all[2] = {{0}, {0}};
	int64_t bytes = 0, blocks = 0;
	struct delta whole;

	for (unsigned stack = 0; stack <= STACKS; stack++) {
		expect(truth, stack, HEAPS, ~0U, of);
		for (unsigned k = 0; k < 2; k++)
			block_totals_add(&all[k], &of[k]);
	}
	compare((struct match_request){.by_heap = true});
	assert_memory_equal(&compared.comparison.old_total, &all[0], sizeof(*all));
	assert_memory_equal(&compared.comparison.new_total, &all[1], sizeof(*all));
	whole = comparison_delta(&compared.comparison);
	for (size_t i = 0; i < compared.comparison.row_count; i++) {
		struct delta delta = row_delta(&compared.comparison, &compared.comparison.rows[i]);

		bytes += delta.requested_bytes;
		blocks += delta.block_count;
	}
	assert_int_equal(bytes, whole.requested_bytes);
	assert_int_equal(blocks, whole.block_count);
	assert_int_equal(bytes, (int64_t)(all[1].requested_bytes - all[0].requested_bytes));
}

static void check_ids(const struct truth *truth)
{
	size_t changed = 0, stackless = 0;

	compare((struct match_request){.mode = MATCH_ID});
	for (size_t i = 0; i < compared.comparison.row_count; i++) {
		const struct row *row = &compared.comparison.rows[i];

		assert_int_equal(row->id_count, 1);
		stackless += row->kind == ROW_STACKLESS;
		if (row->kind != ROW_STACKLESS)
			assert_memory_equal(row->totals,
				truth->ids[strtoul(row->ids[0], NULL, 16) - 0x1000],
				2 * sizeof(*row->totals));
	}
	for (unsigned i = 0; i < IDS; i++)
		changed += is_changed(truth->ids[i]);
	assert_int_equal(compared.comparison.row_count, changed + stackless);
}

TEST(rows_add_up_to_what_was_put_in)
{
	for (unsigned round = 1; round <= 25; round++) {
		uint64_t slides[2] = {0, 0}, heaps[HEAPS];
		unsigned wanted = 0, count_wanted = 0;
		struct truth truth = {0};

		seed = round * UINT64_C(0x9e3779b97f4a7c15);
		make_stacks(&truth);
		for (int i = 0; i < 2; i++) {
			slides[i] = round % 2 * random_below(0x1000) * 0x10000;
			write_random_dump(&truth, i, slides[i]);
		}
		for (unsigned i = 0; i < HEAPS; i++) {
			if (random_below(2)) {
				wanted |= 1U << i;
				heaps[count_wanted++] = heap_addr(i);
			}
		}
		for (int by_heap = 0; by_heap < 2; by_heap++) {
			struct match_request request = {.by_heap = by_heap};

			check_rows(&truth, request, ~0U);
			request.heaps = heaps;
			request.heap_count = count_wanted;
			check_rows(&truth, request, count_wanted ? wanted : ~0U);
			request.mode = MATCH_MODULE;
			check_rows(&truth, request, count_wanted ? wanted : ~0U);
			request.mode = MATCH_SYMBOL;
			check_rows(&truth, request, count_wanted ? wanted : ~0U);
			request.mode = MATCH_ADDRESS;
			if (slides[0] == slides[1])
				check_rows(&truth, request, count_wanted ? wanted : ~0U);
		}
		check_totals(&truth);
		check_ids(&truth);
	}
}

/* ---------------------------------------------------------------- order */

/* Writes a dump with everything that reports distinguish: names, builds, aliases, ids with several
 * stacks, and ids without one. */
static void write_all_kinds(bool is_new)
{
	struct maker maker = dump_new((struct maker){
		.is_ours = true, .timestamp = is_new ? 8 : 7, .slide = is_new ? 0x990000 : 0});

	for (unsigned i = 0; i < 12; i++) {
		char name[20], id[20];

		snprintf(name, sizeof(name), "function%u", i / 2);
		snprintf(id, sizeof(id), "%X", 0x10 + i % 5);
		if (i % 4)
			write_name_of(&maker, APP_BASE, 0x1000 + 0x10 * i, name, "a.c", 1);
		write_heap(&maker, heap_addr(i % HEAPS));
		put_block(&maker, is_new ? 50 : 10, 8, id, i);
		put_block(&maker, is_new ? 50 : 10, 8, "F", i);
		/* An entry of an id with several stacks. */
		write_entry(&maker, is_new ? 30 : 10, 8, id);
	}
	for (unsigned i = 0; is_new && i < 6; i++) {
		put(&maker, "32 bytes + 8 at 100 by BackTrace%X", i);
		put_lines(&maker, "\t1000\n\t2000\n\tAlias\n\t3000\n\n");
		put(&maker, "32 bytes + 8 at 100 by BackTrace%X", 0xA00 + i);
		maker.sum.block_count += 2;
		maker.sum.requested_bytes += 0x64;
		maker.sum.overhead_bytes += 16;
	}
	dump_end(&maker, is_new ? "new.txt" : "old.txt");
}

/* Links the stacks of one id in another order, and updates the cells that refer to the first
 * stack. */
static void relink(struct dump_sums *sums, uint32_t first)
{
	struct stack *stacks = sums->stacks.stacks;
	uint32_t chain[64], count = 0;

	for (uint32_t at = first; at != STACK_NONE; at = stacks[at].same_id)
		chain[count++] = at;
	for (uint32_t left = count; left > 1; left--) {
		uint32_t pick = random_below(left), other = chain[pick];

		chain[pick] = chain[left - 1];
		chain[left - 1] = other;
	}
	for (uint32_t i = 0; i < count; i++)
		stacks[chain[i]].same_id = i + 1 < count ? chain[i + 1] : STACK_NONE;
	for (size_t i = 0; i < sums->cell_count; i++) {
		if (sums->cells[i].is_bare && sums->cells[i].stack == first)
			sums->cells[i].stack = chain[0];
	}
}

static void relink_all(struct dump_sums *sums)
{
	bool *is_next = calloc(sums->stacks.count, sizeof(*is_next));

	assert_non_null(is_next);
	for (size_t i = 0; i < sums->stacks.count; i++) {
		if (sums->stacks.stacks[i].same_id != STACK_NONE)
			is_next[sums->stacks.stacks[i].same_id] = true;
	}
	for (uint32_t i = 0; i < sums->stacks.count; i++) {
		if (!is_next[i])
			relink(sums, i);
	}
	free(is_next);
}

static void shuffle(struct dump_sums *sums)
{
	size_t count = sums->stacks.count;
	struct stack *moved = calloc(count, sizeof(*moved));
	uint32_t *to = calloc(count, sizeof(*to));

	assert_true(moved && to);
	relink_all(sums);
	for (uint32_t i = 0; i < count; i++)
		to[i] = i;
	for (uint32_t left = (uint32_t)count; left > 1; left--) {
		uint32_t pick = random_below(left), other = to[pick];

		to[pick] = to[left - 1];
		to[left - 1] = other;
	}
	for (size_t i = 0; i < count; i++) {
		struct stack *stack = &moved[to[i]];

		*stack = sums->stacks.stacks[i];
		if (stack->same_id != STACK_NONE)
			stack->same_id = to[stack->same_id];
	}
	memcpy(sums->stacks.stacks, moved, count * sizeof(*moved));
	for (size_t left = sums->cell_count; left; left--) {
		size_t pick = random_below((unsigned)left);
		struct stack_total cell = sums->cells[pick];

		if (cell.stack != STACK_NONE)
			cell.stack = to[cell.stack];
		sums->cells[pick] = sums->cells[left - 1];
		sums->cells[left - 1] = cell;
	}
	free(moved);
	free(to);
}

TEST(stacks_and_cells_in_another_order_give_same_report)
{
	seed = 4711;
	write_all_kinds(false);
	write_all_kinds(true);
	for (unsigned i = 0; i < 10; i++) {
		struct match_request request = {.mode = i % 5, .by_heap = i / 5};
		char *expected;

		compare(request);
		assert_true(compared.comparison.row_count > 5);
		expected = strdup(report_of(true));
		for (unsigned k = 0; k < 20; k++) {
			comparison_release(&compared.comparison);
			shuffle(&compared.dumps[0]);
			shuffle(&compared.dumps[1]);
			compared_make(request);
			assert_string_equal(report_of(true), expected);
		}
		free(expected);
	}
}

#define MANY 4

/* Reports on old.txt, new.txt, old.txt and so on. With a store, each stack is stored once. */
static char *report_of_many(struct stack_store *store, struct match_request request)
{
	struct dump_sums *dumps = compared.dumps;

	compared_begin(MANY);
	for (size_t i = 0; i < MANY; i++) {
		assert_int_equal(read_sums(&dumps[i], i % 2 ? "new.txt" : "old.txt"), 0);
		if (store)
			stack_store_add(store, &dumps[i]);
	}
	for (uint32_t k = 0; store && k < dumps[0].stacks.count; k++) {
		const struct stack *stack = sums_stack(&dumps[0], k);
		size_t same = 0;

		for (uint32_t i = 0; i < dumps[2].stacks.count; i++) {
			bool is_same = dumps[2].shared[i] == dumps[0].shared[k];

			assert_true(stack->is_named || !is_same ||
				    sums_stack(&dumps[2], i)->frames == stack->frames);
			same += is_same;
		}
		/* Two dumps of one file share the stack. */
		assert_true(stack->is_named || same == 1);
	}
	compared_make(request);
	assert_true(compared.comparison.row_count > 5);
	return report_of(true);
}

/* Writes a dump with addresses only, so that it can share stacks. In new.txt the modules have
 * moved. Either each id has one stack, or one id has three stacks and blocks of any of them. */
static void write_addresses(bool is_new, bool is_single)
{
	struct maker maker =
		dump_new((struct maker){.is_ours = true, .slide = is_new ? 0x100000 : 0});
	char id[20];

	for (unsigned i = 0; i < 40; i++) {
		snprintf(id, sizeof(id), "%X", 0x10 + (is_new ? 39 - i : i));
		put_block(&maker, 1 + random_below(1000), 8, id, i % 30);
	}
	for (unsigned i = 0; !is_single && i < 3; i++)
		put_block(&maker, 7, 8, "A5", 50 + (is_new ? 2 - i : i));
	for (unsigned i = 0; !is_single && i < 3; i++)
		write_entry(&maker, is_new ? 40 : 30, 8, "A5");
	write_stackless(&maker, 1, is_new ? 300 : 100, 8);
	dump_end(&maker, is_new ? "new.txt" : "old.txt");
}

static void check_common(void)
{
	for (unsigned i = 0; i < 10; i++) {
		struct match_request request = {.mode = i % 5, .by_heap = i / 5};
		struct stack_store *store = stack_store_new();
		char *expected = strdup(report_of_many(NULL, request));

		assert_string_equal(report_of_many(store, request), expected);
		compared_begin(0);
		stack_store_free(store);
		free(expected);
	}
}

TEST(what_dumps_have_in_common_changes_no_report)
{
	seed = 4712;
	write_all_kinds(false);
	write_all_kinds(true);
	check_common();
	for (int is_single = 0; is_single < 2; is_single++) {
		write_addresses(false, is_single);
		write_addresses(true, is_single);
		check_common();
	}
}
