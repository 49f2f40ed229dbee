/*
 * The tracer's table of virtual memory: whatever is reserved, committed, given up and freed in
 * whatever order, it says of every page what is so; and it never says more when it runs out of memory.
 */
#include "tests/unit/t.h"


#include "tests/unit/range_worker.h"

static bool finds_allocations(struct worker *worker)
{
	for (unsigned i = 0; i < PAGES; i++) {
		unsigned known = model_next(&worker->model, i);
		const struct page *page = &worker->model.pages[known];
		bool is_there = known < PAGES && page->allocation <= i;
		struct ranges_extent extent;

		if (ranges_find(&area, addr(worker, i), &extent) != is_there)
			return false;
		if (is_there && (extent.base != addr(worker, (unsigned)page->allocation) ||
					extent.end != addr(worker, model_end(&worker->model,
									   page->allocation)) ||
					extent.kind != page->kind))
			return false;
	}
	return true;
}

#undef TEST_AROUND
#define TEST_AROUND set_up, tear_down

TEST(test_every_page_is_as_modelled)
{
	static struct worker worker;

	worker = (struct worker){.model.first = BASE, .seed = 5};
	for (unsigned i = 0; i < 20000; i++) {
		step(&worker);
		assert_true(is_as_modelled(&area.ranges, &worker.model));
		if (i % 16 == 0)
			assert_true(finds_allocations(&worker));
	}
	assert_int_equal(area.dropped_ranges, 0);
	assert_int_equal(area.ranges.changing % 2, 0);
}

TEST(test_is_known)
{
	struct tracer_range range = {
		.start = BASE, .end = BASE + 9 * PAGE, .allocation = BASE, .kind = RANGE_RESERVED};

	assert_false(ranges_is_known(&area, BASE, BASE + PAGE));
	ranges_add(&area, &range);
	ranges_use(&area, BASE + 2 * PAGE, BASE + 3 * PAGE, RANGE_COMMITTED, 1);
	assert_true(ranges_is_known(&area, BASE, BASE + 9 * PAGE));
	assert_false(ranges_is_known(&area, BASE, BASE + 10 * PAGE));
	assert_false(ranges_is_known(&area, BASE - PAGE, BASE + PAGE));
	ranges_forget(&area, BASE + 5 * PAGE, BASE + 6 * PAGE);
	assert_false(ranges_is_known(&area, BASE, BASE + 9 * PAGE));
	assert_true(ranges_is_known(&area, BASE + 6 * PAGE, BASE + 9 * PAGE));
}

/* ---------------------------------------------------------------- taken */

static uint32_t kind_at(uint64_t start, uint32_t stack)
{
	for (uint32_t i = 0; i < area.ranges.node_count; i++) {
		const struct tracer_range *node = &nodes_of(&area.ranges)[i];

		if (node->kind && node->start == start && node->stack == stack)
			return node->kind;
	}
	return RANGE_NONE;
}

/* Of an allocation of 9 pages, page 2 of which is committed, what is taken is marked; nothing else. */
TEST(test_what_is_taken_is_marked)
{
	struct tracer_range range = {.start = BASE,
		.end = BASE + 9 * PAGE,
		.allocation = BASE,
		.kind = RANGE_RESERVED,
		.stack = 1};
	struct tracer_range other = {.start = BASE + PAGE,
		.end = BASE + 2 * PAGE,
		.allocation = BASE + PAGE,
		.kind = RANGE_MAPPED,
		.stack = 3};
	struct ranges_taken taken;

	ranges_add(&area, &range);
	ranges_use(&area, BASE + 2 * PAGE, BASE + 3 * PAGE, RANGE_COMMITTED, 2);
	assert_true(ranges_take(&area, BASE + PAGE, BASE + 6 * PAGE, &taken));
	assert_int_equal(kind_at(BASE, 1), RANGE_RESERVED);
	assert_int_equal(kind_at(BASE + PAGE, 1), RANGE_RESERVED | RANGE_TAKEN);
	assert_int_equal(kind_at(BASE + 2 * PAGE, 2), RANGE_COMMITTED | RANGE_TAKEN);
	assert_int_equal(kind_at(BASE + 3 * PAGE, 1), RANGE_RESERVED | RANGE_TAKEN);
	assert_int_equal(kind_at(BASE + 6 * PAGE, 1), RANGE_RESERVED);
	ranges_put_back(&area, &taken);
	assert_int_equal(kind_at(BASE, 1), RANGE_RESERVED);
	assert_int_equal(kind_at(BASE + 2 * PAGE, 2), RANGE_COMMITTED);
	assert_int_equal(kind_at(BASE + 3 * PAGE, 1), RANGE_RESERVED);
	assert_true(ranges_take(&area, BASE, BASE + 9 * PAGE, &taken));
	ranges_add(&area, &other);
	assert_int_equal(kind_at(BASE, 1), RANGE_RESERVED | RANGE_TAKEN);
	assert_int_equal(kind_at(BASE + PAGE, 3), RANGE_MAPPED);
	ranges_drop(&area, &taken);
	assert_int_equal(kind_at(BASE, 1), RANGE_NONE);
	assert_int_equal(kind_at(BASE + 2 * PAGE, 2), RANGE_NONE);
	assert_int_equal(kind_at(BASE + PAGE, 3), RANGE_MAPPED);
}

/* ---------------------------------------------------------------- many, and far */

/* Commits page by page, in an order that meets nobody's neighbour first: in the end one node. */
TEST(test_neighbours_become_one)
{
	const uint64_t count = 100000;
	struct tracer_range range = {.start = BASE,
		.end = BASE + count * PAGE,
		.allocation = BASE,
		.kind = RANGE_RESERVED,
		.stack = 7};
	struct ranges_taken taken;
	uint32_t live = 0;

	ranges_add(&area, &range);
	for (uint64_t i = 0; i < count; i += 2)
		ranges_use(&area, BASE + i * PAGE, BASE + (i + 1) * PAGE, RANGE_COMMITTED, 8);
	assert_int_equal(area.ranges.node_count, count);
	for (uint64_t i = 1; i < count; i += 2)
		ranges_use(&area, BASE + i * PAGE, BASE + (i + 1) * PAGE, RANGE_COMMITTED, 8);
	for (uint32_t i = 0; i < area.ranges.node_count; i++)
		live += nodes_of(&area.ranges)[i].kind != RANGE_NONE;
	assert_int_equal(live, 1);
	assert_true(ranges_take(&area, BASE, BASE + count * PAGE, &taken));
	ranges_drop(&area, &taken);
	assert_int_equal(area.ranges.root, 0);
	assert_true(area.ranges.node_count <= count + 2);
}

/* Addresses that only grow would make a list of a tree that is not balanced. */
TEST(test_no_order_makes_it_slow)
{
	const uint32_t count = 500000;
	uint32_t deepest = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct tracer_range range = {.start = BASE + i * 16 * PAGE,
			.end = BASE + (i * 16 + 1) * PAGE,
			.allocation = BASE + i * 16 * PAGE,
			.kind = RANGE_COMMITTED,
			.stack = i};

		ranges_add(&area, &range);
	}
	for (uint32_t i = 0; i < count; i += 97) {
		uint32_t depth = 0, link = area.ranges.root;

		while (nodes_of(&area.ranges)[link - 1].start != BASE + i * 16 * PAGE) {
			const struct tracer_range *node = &nodes_of(&area.ranges)[link - 1];

			link = BASE + i * 16 * PAGE < node->start ? node->left : node->right;
			depth++;
		}
		deepest = depth > deepest ? depth : deepest;
	}
	assert_true(deepest < 100); /* 19 at best; a list: 500000 */
}

TEST(test_extreme_addresses)
{
	const uint64_t last = UINT64_MAX - PAGE + 1; /* where the last page begins */
	struct tracer_range low = {.start = 0, .end = 4 * PAGE, .kind = RANGE_RESERVED, .stack = 1};
	struct tracer_range high = {.start = last - 4 * PAGE,
		.end = last,
		.allocation = last - 4 * PAGE,
		.kind = RANGE_RESERVED,
		.stack = 2};
	struct ranges_taken taken;
	struct ranges_extent extent;

	ranges_add(&area, &low);
	ranges_add(&area, &high);
	ranges_use(&area, 0, PAGE, RANGE_COMMITTED, 3);
	ranges_use(&area, last - PAGE, last, RANGE_COMMITTED, 4);
	assert_true(ranges_find(&area, 0, &extent));
	assert_true(extent.base == 0 && extent.end == 4 * PAGE && extent.kind == RANGE_COMMITTED);
	assert_true(ranges_find(&area, last - 1, &extent));
	assert_true(extent.base == last - 4 * PAGE && extent.end == last);
	assert_false(ranges_find(&area, last, &extent));
	assert_false(ranges_find(&area, 4 * PAGE, &extent));
	ranges_give_up(&area, 0, last, RANGE_COMMITTED);
	assert_true(ranges_take(&area, 0, last, &taken));
	assert_int_equal(area.ranges.root, 0);
	ranges_put_back(&area, &taken);
	assert_true(ranges_is_known(&area, 0, 4 * PAGE));
	assert_true(ranges_is_known(&area, last - 4 * PAGE, last));
	ranges_forget(&area, 0, UINT64_MAX);
	assert_int_equal(area.ranges.root, 0);
}

/* ---------------------------------------------------------------- no memory, no lock */

/* Of what is known every page is known to the model, under the same allocation; the tree is whole. */
static bool says_too_little_at_most(const struct worker *worker)
{
	struct page pages[PAGES];
	uint32_t found =
		pages_of(&worker->model, nodes_of(&area.ranges), area.ranges.node_count, pages);
	uint64_t at = 0;

	for (unsigned i = 0; i < PAGES; i++) {
		if (pages[i].kind &&
			(!worker->model.pages[i].kind ||
				pages[i].allocation != worker->model.pages[i].allocation))
			return false;
	}
	for (unsigned i = model_next(&worker->model, 0); i < PAGES; i++) {
		struct ranges_extent extent;
		bool is_found = ranges_find(&area, page_addr(&worker->model, i), &extent);

		at += pages[i].kind && !is_found;
	}
	return found != UINT32_MAX && !at;
}

static void run_out(uint64_t limit_bytes, uint64_t node_limit)
{
	static struct worker worker;
	const uint64_t room = area.ranges.node_limit;

	worker = (struct worker){.model.first = BASE, .seed = 77, .sees_all = true};
	area.limit_bytes = limit_bytes;
	area.ranges.node_limit = node_limit;
	for (unsigned i = 0; i < 5000; i++) {
		step(&worker);
		assert_true(says_too_little_at_most(&worker));
	}
	assert_true(area.dropped_ranges > 0);
	assert_true(area.committed_bytes <= limit_bytes);
	assert_true(area.ranges.node_count <= node_limit);
	/* It works again when there is room. */
	ranges_forget(&area, BASE, page_addr(&worker.model, PAGES));
	area.limit_bytes = LIMIT;
	area.ranges.node_limit = room;
	memset(&worker.model.pages, 0, sizeof(worker.model.pages));
	for (unsigned i = 0; i < 1000; i++) {
		step(&worker);
		assert_true(is_as_modelled(&area.ranges, &worker.model));
	}
}

TEST(test_few_nodes_at_all)
{
	run_out(LIMIT, 20);
}

TEST(test_one_node)
{
	run_out(LIMIT, 1);
}

TEST(test_no_memory_at_all)
{
	run_out(4096, area.ranges.node_limit);
}

TEST(test_commits_end)
{
	struct tracer_range range = {.start = BASE,
		.end = BASE + 4096 * PAGE,
		.allocation = BASE,
		.kind = RANGE_RESERVED};
	const uint32_t fit = 65536 / sizeof(struct tracer_range);

	memory.commits_left = 1;
	ranges_add(&area, &range);
	for (uint64_t i = 0; i < 4096; i += 2)
		ranges_use(&area, BASE + i * PAGE, BASE + (i + 1) * PAGE, RANGE_COMMITTED, 8);
	assert_int_equal(area.ranges.node_count, fit);
	assert_int_equal(area.committed_bytes, 65536);
	/* A cut makes one node more: each commit but the first one needs two. */
	assert_int_equal(area.dropped_ranges, 2048 - (fit - 1 - 1) / 2 - 1);
}

TEST(test_lock_never_given_back)
{
	struct tracer_range range = {
		.start = BASE, .end = BASE + PAGE, .allocation = BASE, .kind = RANGE_RESERVED};
	struct ranges_extent extent;
	struct ranges_taken taken;

	ranges_add(&area, &range);
	area.ranges.lock = 1;
	memory.waits_max = 1000;
	ranges_use(&area, BASE, BASE + PAGE, RANGE_COMMITTED, 1);
	assert_int_equal(area.ranges.broken, 1);
	assert_int_equal(area.dropped_ranges, 1);
	ranges_add(&area, &range);
	ranges_fill(&area, &range);
	ranges_give_up(&area, BASE, BASE + PAGE, RANGE_COMMITTED);
	ranges_rebase(&area, BASE, BASE + PAGE, BASE);
	ranges_forget(&area, BASE, BASE + PAGE);
	assert_false(ranges_take(&area, BASE, BASE + PAGE, &taken));
	assert_false(ranges_find(&area, BASE, &extent));
	assert_int_equal(area.dropped_ranges, 7);
	assert_int_equal(nodes_of(&area.ranges)[0].kind, RANGE_RESERVED);
}
