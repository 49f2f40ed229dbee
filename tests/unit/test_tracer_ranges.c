/* The tracer's table of virtual memory. After any sequence of reserving, committing, decommitting
 * and freeing, the table must be correct for every page. If memory runs out, the table may omit
 * pages, but must never add any. */
#include "tests/unit/t.h"

#include <pthread.h>

#include "tests/unit/fake_memory.h"

#include "snapshot/tracer/tables.h"

/* A model of the table's contents, page by page, and its comparison with the table. A reader
 * outside the process sees only the array of nodes, without the tree, and so does the
 * comparison. */

#define PAGE ((uint64_t)4096)
#define PAGES 600

struct page {
	uint32_t kind, stack, reserve_stack;
	uint64_t allocation; /* number of the allocation's first page */
};

struct range_model {
	uint64_t first; /* address of page 0 */
	struct page pages[PAGES];
};

static uint64_t page_addr(const struct range_model *model, uint64_t page)
{
	return model->first + page * PAGE;
}

/* Returns the first known page at or after `page`, or PAGES. */
static unsigned model_next(const struct range_model *model, unsigned page)
{
	while (page < PAGES && !model->pages[page].kind)
		page++;
	return page;
}

/* Returns the end of the last page of an allocation. */
static unsigned model_end(const struct range_model *model, uint64_t allocation)
{
	unsigned end = 0;

	for (unsigned i = 0; i < PAGES; i++) {
		if (model->pages[i].kind && model->pages[i].allocation == allocation)
			end = i + 1;
	}
	return end;
}

static void model_forget(struct range_model *model, unsigned from, unsigned to)
{
	memset(&model->pages[from], 0, (to - from) * sizeof(model->pages[0]));
}

/* Widens [*from, *to) to all allocations that overlap it. */
static void model_overlapped(const struct range_model *model, unsigned *from, unsigned *to)
{
	unsigned low = *from, high = *to;

	for (unsigned i = 0; i < PAGES; i++) {
		const struct page *page = &model->pages[i];
		unsigned end = page->kind ? model_end(model, page->allocation) : 0;

		if (!page->kind || page->allocation >= *to || end <= *from)
			continue;
		low = page->allocation < low ? (unsigned)page->allocation : low;
		high = end > high ? end : high;
	}
	*from = low;
	*to = high;
}

/* Adds an allocation. Existing allocations that overlap it are stale, so they are removed as a
 * whole. */
static void model_add(
	struct range_model *model, unsigned from, unsigned to, const struct page *page)
{
	unsigned low = from, high = to;

	model_overlapped(model, &low, &high);
	model_forget(model, low, high);
	for (unsigned i = from; i < to; i++)
		model->pages[i] = *page;
}

static void model_fill(
	struct range_model *model, unsigned from, unsigned to, const struct page *page)
{
	for (unsigned i = from; i < to; i++) {
		if (!model->pages[i].kind)
			model->pages[i] = *page;
	}
}

static void model_use(
	struct range_model *model, unsigned from, unsigned to, uint32_t kind, uint32_t stack)
{
	for (unsigned i = from; i < to; i++) {
		struct page *page = &model->pages[i];

		if (page->kind == RANGE_RESERVED)
			*page = (struct page){kind, stack, page->stack, page->allocation};
	}
}

static void model_give_up(struct range_model *model, unsigned from, unsigned to, uint32_t kind)
{
	for (unsigned i = from; i < to; i++) {
		struct page *page = &model->pages[i];

		if (page->kind == kind)
			*page = (struct page){
				RANGE_RESERVED, page->reserve_stack, 0, page->allocation};
	}
}

static void model_rebase(struct range_model *model, unsigned from, unsigned to, uint64_t allocation)
{
	for (unsigned i = from; i < to; i++) {
		if (model->pages[i].kind)
			model->pages[i].allocation = allocation;
	}
}

/* ---------------------------------------------------------------- comparison */

static bool page_is(const struct page *page, const struct page *other)
{
	return page->kind == other->kind && page->stack == other->stack &&
	       page->reserve_stack == other->reserve_stack && page->allocation == other->allocation;
}

static uint32_t model_runs(const struct range_model *model)
{
	uint32_t count = 0;

	for (unsigned i = 0; i < PAGES; i++) {
		count += model->pages[i].kind &&
			 (!i || !page_is(&model->pages[i], &model->pages[i - 1]));
	}
	return count;
}

/* Stores the nodes of an array in the model's pages. Returns the number of nodes, or UINT32_MAX if
 * a node is invalid or two nodes overlap. */
static uint32_t pages_of(const struct range_model *model, const struct tracer_range *nodes,
	uint32_t count, struct page *to)
{
	uint32_t found = 0;

	memset(to, 0, PAGES * sizeof(*to));
	for (uint32_t i = 0; i < count; i++) {
		const struct tracer_range *node = &nodes[i];
		uint64_t from = (node->start - model->first) / PAGE;

		if (!node->kind || node->start < model->first ||
			node->start >= page_addr(model, PAGES))
			continue;
		if (node->end <= node->start || node->end > page_addr(model, PAGES) ||
			node->start % PAGE || node->end % PAGE || node->allocation > node->start)
			return UINT32_MAX;
		for (uint64_t k = from; k < from + (node->end - node->start) / PAGE; k++) {
			if (to[k].kind)
				return UINT32_MAX;
			to[k] = (struct page){node->kind, node->stack, node->reserve_stack,
				(node->allocation - model->first) / PAGE};
		}
		found++;
	}
	return found;
}

static const struct tracer_range *nodes_of(const struct tracer_ranges *ranges)
{
	return (const struct tracer_range *)(uintptr_t)ranges->nodes;
}

/* Returns true if the table equals the model and has the minimum number of nodes. */
static bool is_as_modelled(const struct tracer_ranges *ranges, const struct range_model *model)
{
	struct page pages[PAGES];
	uint32_t found = pages_of(model, nodes_of(ranges), ranges->node_count, pages);

	for (unsigned i = 0; i < PAGES; i++) {
		if (!page_is(&pages[i], &model->pages[i]))
			return false;
	}
	return found == model_runs(model);
}

#define BASE ((uint64_t)0x7ff600000000)
#define ROOM ((uint64_t)1 << 30) /* room for at least 2^20 nodes */

static int set_up_patient(void **state)
{
	(void)state;
	fake_begin(ROOM);
	/* If processors are few, a thread may be suspended for a long time. */
	memory.waits_max = UINT32_MAX;
	return 0;
}

static struct tracer_range allocation(uint64_t start, uint64_t pages, uint32_t kind, uint32_t stack)
{
	return (struct tracer_range){.start = start,
		.end = start + pages * PAGE,
		.allocation = start,
		.kind = kind,
		.stack = stack};
}

/* ---------------------------------------------------------------- random operations */

/* A worker with its own pages. After each step it compares the table with the model. */
struct worker {
	struct range_model model;
	uint64_t seed;
	unsigned from, to; /* pages that this step changes */
	bool sees_all; /* the worker sees every free before the pages are allocated again */
	/* Called before each change of the table. The model already has the state after the
	 * change. */
	void (*expect)(struct worker *worker);
	struct page listed[PAGES]; /* taken, but not yet dropped */
};

static uint64_t dice(struct worker *worker, uint64_t sides)
{
	return fake_dice(&worker->seed) % sides;
}

static void expect(struct worker *worker)
{
	if (worker->expect)
		worker->expect(worker);
}

static uint64_t addr(const struct worker *worker, unsigned page)
{
	return page_addr(&worker->model, page);
}

static uint32_t any_stack(struct worker *worker)
{
	return 1 + (uint32_t)dice(worker, 3); /* few values, so that neighbours are often equal */
}

static uint32_t any_kind(struct worker *worker)
{
	static const uint32_t kinds[] = {
		RANGE_RESERVED, RANGE_COMMITTED, RANGE_MAPPED, RANGE_STACK};

	return kinds[dice(worker, 4)];
}

static struct tracer_range range_of(const struct worker *worker, const struct page *page)
{
	return (struct tracer_range){.start = addr(worker, worker->from),
		.end = addr(worker, worker->to),
		.allocation = addr(worker, (unsigned)page->allocation),
		.kind = page->kind,
		.stack = page->stack,
		.reserve_stack = page->reserve_stack};
}

static void free_overlapped(struct worker *worker)
{
	unsigned from = worker->from, to = worker->to;
	struct ranges_taken taken;

	model_overlapped(&worker->model, &from, &to);
	if (ranges_detach(&area, addr(worker, from), addr(worker, to), 0, &taken))
		ranges_drop(&area, &taken);
}

static void add(struct worker *worker)
{
	struct page page = {any_kind(worker), any_stack(worker), any_stack(worker), worker->from};
	struct tracer_range range = range_of(worker, &page);

	if (worker->sees_all)
		free_overlapped(worker);
	model_add(&worker->model, worker->from, worker->to, &page);
	expect(worker);
	ranges_add(&area, &range);
}

/* Finds an allocation at or after the step's pages, and restricts the step to it. Returns false if
 * no allocation is left. */
static bool inside_allocation(struct worker *worker, unsigned *base, unsigned *end)
{
	unsigned known = model_next(&worker->model, worker->from);

	if (known == PAGES)
		return false;
	*base = (unsigned)worker->model.pages[known].allocation;
	*end = model_end(&worker->model, *base);
	worker->from = *base + (unsigned)dice(worker, *end - *base);
	worker->to = worker->from + 1 + (unsigned)dice(worker, *end - worker->from);
	return true;
}

static void fill(struct worker *worker)
{
	struct page page = {RANGE_RESERVED, any_stack(worker), 0, 0};
	struct tracer_range range;
	unsigned base, end;

	if (!inside_allocation(worker, &base, &end))
		return;
	page.allocation = base;
	range = range_of(worker, &page);
	model_fill(&worker->model, worker->from, worker->to, &page);
	expect(worker);
	ranges_fill(&area, &range);
}

static void use(struct worker *worker)
{
	uint32_t kind = any_kind(worker), stack = any_stack(worker);

	if (kind == RANGE_RESERVED)
		kind = RANGE_COMMITTED;
	model_use(&worker->model, worker->from, worker->to, kind, stack);
	expect(worker);
	ranges_use(&area, addr(worker, worker->from), addr(worker, worker->to), kind, stack);
}

static void give_up(struct worker *worker)
{
	uint32_t kind = dice(worker, 4) ? RANGE_COMMITTED : RANGE_MAPPED;

	model_give_up(&worker->model, worker->from, worker->to, kind);
	expect(worker);
	ranges_decommit(&area, addr(worker, worker->from), addr(worker, worker->to), kind, 0);
}

static void rebase(struct worker *worker, unsigned from, unsigned to)
{
	if (from >= to)
		return;
	model_rebase(&worker->model, from, to, from);
	expect(worker);
	ranges_rebase(&area, addr(worker, from), addr(worker, to), addr(worker, from));
}

/* Turns a part of an allocation into its own allocation, and the rest after the part into another
 * one. */
static void split(struct worker *worker)
{
	unsigned base, end;

	if (!inside_allocation(worker, &base, &end))
		return;
	rebase(worker, worker->to, end);
	rebase(worker, worker->from, worker->to);
}

static void coalesce(struct worker *worker)
{
	unsigned base, end, known;

	if (!inside_allocation(worker, &base, &end))
		return;
	known = model_next(&worker->model, end);
	if (known < PAGES)
		end = model_end(&worker->model, worker->model.pages[known].allocation);
	rebase(worker, base, end);
}

static void forget(struct worker *worker)
{
	model_forget(&worker->model, worker->from, worker->to);
	expect(worker);
	ranges_forget(&area, addr(worker, worker->from), addr(worker, worker->to));
}

/* Frees pages, or simulates that the system refuses. Before the free ends, a new allocation may
 * take the pages. */
static void take(struct worker *worker)
{
	struct range_model before = worker->model;
	unsigned from = worker->from, to = worker->to, next = model_next(&before, to);
	struct ranges_taken taken;
	uint64_t base = next < PAGES ? before.pages[next].allocation : to;

	memcpy(&worker->listed[from], &before.pages[from], (to - from) * sizeof(before.pages[0]));
	model_forget(&worker->model, from, to);
	if (base < to)
		model_rebase(&worker->model, to, model_end(&before, base), to);
	expect(worker);
	if (!ranges_detach(&area, addr(worker, from), addr(worker, to), 0, &taken)) {
		memset(worker->listed, 0, sizeof(worker->listed));
		return;
	}
	if (dice(worker, 2)) {
		worker->model = before;
		memset(worker->listed, 0, sizeof(worker->listed));
		expect(worker);
		ranges_restore(&area, &taken);
		return;
	}
	if (dice(worker, 2))
		add(worker);
	memset(worker->listed, 0, sizeof(worker->listed));
	if (taken.nodes)
		expect(worker);
	ranges_drop(&area, &taken);
}

static void step(struct worker *worker)
{
	static void (*const what[])(struct worker *) = {add, add, use, use, use, use, give_up,
		give_up, fill, split, coalesce, forget, take, take};

	worker->from = (unsigned)dice(worker, PAGES);
	worker->to = worker->from + 1 + (unsigned)dice(worker, dice(worker, 4) ? 20 : PAGES);
	if (worker->to > PAGES)
		worker->to = PAGES;
	what[dice(worker, sizeof(what) / sizeof(*what))](worker);
}

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
#define TEST_AROUND set_up_patient, tear_down

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
	struct tracer_range range = allocation(BASE, 9, RANGE_RESERVED, 0);

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

/* An allocation has 9 pages, of which page 2 is committed. Exactly the taken part must be
 * marked. */
TEST(test_what_is_taken_is_marked)
{
	struct tracer_range range = allocation(BASE, 9, RANGE_RESERVED, 1);
	struct tracer_range other = allocation(BASE + PAGE, 1, RANGE_MAPPED, 3);
	struct ranges_taken taken;

	ranges_add(&area, &range);
	ranges_use(&area, BASE + 2 * PAGE, BASE + 3 * PAGE, RANGE_COMMITTED, 2);
	assert_true(ranges_detach(&area, BASE + PAGE, BASE + 6 * PAGE, 0, &taken));
	assert_int_equal(kind_at(BASE, 1), RANGE_RESERVED);
	assert_int_equal(kind_at(BASE + PAGE, 1), RANGE_RESERVED | RANGE_TAKEN);
	assert_int_equal(kind_at(BASE + 2 * PAGE, 2), RANGE_COMMITTED | RANGE_TAKEN);
	assert_int_equal(kind_at(BASE + 3 * PAGE, 1), RANGE_RESERVED | RANGE_TAKEN);
	assert_int_equal(kind_at(BASE + 6 * PAGE, 1), RANGE_RESERVED);
	ranges_restore(&area, &taken);
	assert_int_equal(kind_at(BASE, 1), RANGE_RESERVED);
	assert_int_equal(kind_at(BASE + 2 * PAGE, 2), RANGE_COMMITTED);
	assert_int_equal(kind_at(BASE + 3 * PAGE, 1), RANGE_RESERVED);
	assert_true(ranges_detach(&area, BASE, BASE + 9 * PAGE, 0, &taken));
	ranges_add(&area, &other);
	assert_int_equal(kind_at(BASE, 1), RANGE_RESERVED | RANGE_TAKEN);
	assert_int_equal(kind_at(BASE + PAGE, 3), RANGE_MAPPED);
	ranges_drop(&area, &taken);
	assert_int_equal(kind_at(BASE, 1), RANGE_NONE);
	assert_int_equal(kind_at(BASE + 2 * PAGE, 2), RANGE_NONE);
	assert_int_equal(kind_at(BASE + PAGE, 3), RANGE_MAPPED);
}

/* Adds the stack of a thread as the hook does: 12 reserved pages below 4 committed ones. */
static void add_stack(uint64_t start, uint32_t stack)
{
	struct tracer_range low = allocation(start, 12, RANGE_RESERVED, stack);
	struct tracer_range high = allocation(start + 12 * PAGE, 4, RANGE_STACK, stack);

	high.allocation = start;
	ranges_add(&area, &low);
	ranges_add(&area, &high);
}

/* The stack of a thread that ended unseen is replaced by the next allocation that overlaps it, even
 * if only its reserved part does. */
TEST(test_stale_stack_is_replaced)
{
	struct tracer_range last = allocation(BASE + 23 * PAGE, 1, RANGE_COMMITTED, 3);

	add_stack(BASE, 1);
	assert_int_equal(kind_at(BASE, 1), RANGE_RESERVED);
	assert_int_equal(kind_at(BASE + 12 * PAGE, 1), RANGE_STACK);
	add_stack(BASE + 8 * PAGE, 2);
	assert_int_equal(kind_at(BASE, 1), RANGE_NONE);
	assert_int_equal(kind_at(BASE + 12 * PAGE, 1), RANGE_NONE);
	assert_int_equal(kind_at(BASE + 8 * PAGE, 2), RANGE_RESERVED);
	assert_int_equal(kind_at(BASE + 20 * PAGE, 2), RANGE_STACK);
	ranges_add(&area, &last);
	assert_int_equal(kind_at(BASE + 8 * PAGE, 2), RANGE_NONE);
	assert_int_equal(kind_at(BASE + 20 * PAGE, 2), RANGE_NONE);
	assert_int_equal(kind_at(BASE + 23 * PAGE, 3), RANGE_COMMITTED);
}

/* ---------------------------------------------------------------- large numbers */

/* Commits pages one by one. At first no page is next to an earlier one. The result must be a single
 * node. */
TEST(test_neighbours_become_one)
{
	const uint64_t count = 100000;
	struct tracer_range range = allocation(BASE, count, RANGE_RESERVED, 7);
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
	assert_true(ranges_detach(&area, BASE, BASE + count * PAGE, 0, &taken));
	ranges_drop(&area, &taken);
	assert_int_equal(area.ranges.root, 0);
	assert_true(area.ranges.node_count <= count + 2);
}

/* Ascending addresses would make an unbalanced tree degenerate into a list. */
TEST(test_no_order_makes_it_slow)
{
	const uint32_t count = 500000;
	uint32_t deepest = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct tracer_range range = allocation(BASE + i * 16 * PAGE, 1, RANGE_COMMITTED, i);

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
	assert_true(deepest < 100); /* a perfect tree has depth 19, a list 500000 */
}

TEST(test_extreme_addresses)
{
	const uint64_t last = UINT64_MAX - PAGE + 1;
	struct tracer_range low = allocation(0, 4, RANGE_RESERVED, 1);
	struct tracer_range high = allocation(last - 4 * PAGE, 4, RANGE_RESERVED, 2);
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
	ranges_decommit(&area, 0, last, RANGE_COMMITTED, 0);
	assert_true(ranges_detach(&area, 0, last, 0, &taken));
	assert_int_equal(area.ranges.root, 0);
	ranges_restore(&area, &taken);
	assert_true(ranges_is_known(&area, 0, 4 * PAGE));
	assert_true(ranges_is_known(&area, last - 4 * PAGE, last));
	ranges_forget(&area, 0, UINT64_MAX);
	assert_int_equal(area.ranges.root, 0);
}

/* ---------------------------------------------------------------- no memory, no lock */

/* Returns true if the tree is valid and every listed page is in the model, in the same
 * allocation. */
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
	/* The table works again once there is room. */
	ranges_forget(&area, BASE, page_addr(&worker.model, PAGES));
	area.limit_bytes = ROOM;
	area.ranges.node_limit = room;
	memset(&worker.model.pages, 0, sizeof(worker.model.pages));
	for (unsigned i = 0; i < 1000; i++) {
		step(&worker);
		assert_true(is_as_modelled(&area.ranges, &worker.model));
	}
}

TEST(test_few_nodes_one_and_no_memory_at_all)
{
	const uint64_t limits[][2] = {{ROOM, 20}, {ROOM, 1}, {4096, area.ranges.node_limit}};

	for (size_t i = 0; i < 3; i++) {
		tear_down(state);
		set_up_patient(state);
		run_out(limits[i][0], limits[i][1]);
	}
}

TEST(test_commits_end)
{
	struct tracer_range range = allocation(BASE, 4096, RANGE_RESERVED, 0);
	const uint32_t fit = 65536 / sizeof(struct tracer_range);

	memory.commits_left = 1;
	ranges_add(&area, &range);
	for (uint64_t i = 0; i < 4096; i += 2)
		ranges_use(&area, BASE + i * PAGE, BASE + (i + 1) * PAGE, RANGE_COMMITTED, 8);
	assert_int_equal(area.ranges.node_count, fit);
	assert_int_equal(area.committed_bytes, 65536);
	/* A cut adds a node, so each commit except the first needs two nodes. */
	assert_int_equal(area.dropped_ranges, 2048 - (fit - 1 - 1) / 2 - 1);
}

TEST(test_lock_never_given_back)
{
	struct tracer_range range = allocation(BASE, 1, RANGE_RESERVED, 0);
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
	ranges_decommit(&area, BASE, BASE + PAGE, RANGE_COMMITTED, 0);
	ranges_rebase(&area, BASE, BASE + PAGE, BASE);
	ranges_forget(&area, BASE, BASE + PAGE);
	assert_false(ranges_detach(&area, BASE, BASE + PAGE, 0, &taken));
	assert_false(ranges_find(&area, BASE, &extent));
	assert_int_equal(area.dropped_ranges, 7);
	assert_int_equal(nodes_of(&area.ranges)[0].kind, RANGE_RESERVED);
}

/* ---------------------------------------------------------------- threads */

#define THREADS 4

static void *work(void *worker)
{
	for (unsigned i = 0; i < 20000; i++)
		step(worker);
	return NULL;
}

TEST(test_threads_in_rooms_of_their_own)
{
	static struct worker workers[THREADS];
	pthread_t threads[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){
			.model.first = BASE + i * (PAGES + 1) * PAGE, .seed = 99 + i};
		assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < THREADS; i++)
		assert_true(is_as_modelled(&area.ranges, &workers[i].model));
	assert_int_equal(area.dropped_ranges, 0);
}

/* ---------------------------------------------------------------- read from outside */

#define LOOKS 3000
#define STEPS_MAX 4000000

/* Bytes of each kind that are listed after some number of changes. */
struct dump_sums {
	uint32_t pages[8];
};

static struct dump_sums *sums_after;
static bool is_over;

/* Records the sums after the next change: those of the model's pages, and those of pages that are
 * taken but not dropped. */
static void note_sums(struct worker *worker)
{
	struct dump_sums sums = {{0}};

	for (unsigned i = 0; i < PAGES; i++) {
		sums.pages[worker->model.pages[i].kind]++;
		sums.pages[worker->listed[i].kind]++;
	}
	sums_after[area.ranges.changing / 2 + 1] = sums;
}

static void *work_until_over(void *context)
{
	struct worker *worker = context;

	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED) &&
		area.ranges.changing / 2 + 8 < STEPS_MAX)
		step(worker);
	return NULL;
}

/* Copies the table as a reader outside the process does. Returns true if the copy is valid. */
static bool look(struct tracer_range *copy, uint32_t *count, uint32_t *changes)
{
	*changes = __atomic_load_n(&area.ranges.changing, __ATOMIC_ACQUIRE);
	*count = __atomic_load_n(&area.ranges.node_count, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < *count; i++)
		copy[i] = ((const volatile struct tracer_range *)nodes_of(&area.ranges))[i];
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return *changes % 2 == 0 &&
	       *changes == __atomic_load_n(&area.ranges.changing, __ATOMIC_RELAXED);
}

static bool is_expected(const struct tracer_range *copy, uint32_t count, uint32_t changes)
{
	uint64_t pages[8] = {0};

	for (uint32_t i = 0; i < count; i++)
		pages[copy[i].kind & 7] += (copy[i].end - copy[i].start) / PAGE;
	for (unsigned kind = RANGE_RESERVED; kind <= RANGE_STACK; kind++) {
		if (pages[kind] != sums_after[changes / 2].pages[kind])
			return false;
	}
	return true;
}

TEST(test_observer_knows_when_to_believe)
{
	static struct worker worker;
	static struct tracer_range copy[4 * PAGES];
	unsigned believed = 0, wrong = 0;
	uint32_t count, changes;
	pthread_t thread;

	sums_after = calloc(STEPS_MAX, sizeof(*sums_after));
	assert_non_null(sums_after);
	worker = (struct worker){.model.first = BASE, .seed = 3, .expect = note_sums};
	is_over = false;
	assert_int_equal(pthread_create(&thread, NULL, work_until_over, &worker), 0);
	while (believed < LOOKS && area.ranges.changing / 2 + 8 < STEPS_MAX) {
		if (!look(copy, &count, &changes))
			continue;
		believed++;
		wrong += !is_expected(copy, count, changes);
	}
	__atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	free(sums_after);
	assert_int_equal(wrong, 0);
	assert_true(believed > 100);
}
