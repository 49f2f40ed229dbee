/*
 * The tracer's table of virtual memory: whatever is reserved, committed, given up and freed in
 * whatever order and by how many threads, it says of every page what is so; it never says more when it
 * runs out of memory; and whoever looks from outside can tell when it may be believed.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS */

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "snapshot/tracer/memory.h"
#include "snapshot/tracer/ranges.h"
#include "tests/unit/fake_memory.h"
#include "tests/unit/range_model.h"

#define NODES_MAX ((uint64_t)1 << 20)
#define NODES_BYTES (NODES_MAX * sizeof(struct tracer_range))
#define BASE ((uint64_t)0x7ff600000000)

static struct fake_memory memory;
static struct tracer_area area;
static unsigned
	patience; /* waits for another thread: with few processors it may be away for long */

bool memory_commit(void *at, uint64_t bytes)
{
	return fake_commit(&memory, at, bytes);
}

void memory_decommit(void *at, uint64_t bytes)
{
	fake_give_back(at, bytes);
}

bool memory_wait(unsigned tries)
{
	sched_yield();
	return tries < patience;
}

static int set_up(void **state)
{
	(void)state;
	memory = (struct fake_memory){FAKE_ALWAYS, FAKE_ALWAYS, 0};
	patience = UINT32_MAX;
	memset(&area, 0, sizeof(area));
	area.limit_bytes = UINT64_MAX;
	area.ranges.node_limit = NODES_MAX;
	area.ranges.nodes = (uint64_t)(uintptr_t)fake_reserve(&memory, NODES_BYTES);
	return area.ranges.nodes ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	return munmap((void *)(uintptr_t)area.ranges.nodes, NODES_BYTES);
}

/* ---------------------------------------------------------------- random work */

/* One who works in a room of its own; whether the table agrees is seen at the end of each step. */
struct worker {
	struct range_model model;
	uint64_t seed;
	unsigned from, to; /* pages of this step */
	bool sees_all; /* nothing is allocated where something was not seen to be freed */
	/* Called before each change of the table, with the model as it will be after it. */
	void (*expect)(struct worker *worker);
	struct page listed[PAGES]; /* taken out, but not dropped yet */
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
	return 1 + (uint32_t)dice(worker, 3); /* few, so that neighbours are often alike */
}

static uint32_t any_kind(struct worker *worker)
{
	static const uint32_t kinds[] = {RANGE_RESERVED, RANGE_COMMITTED, RANGE_MAPPED};

	return kinds[dice(worker, 3)];
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
	if (ranges_take(&area, addr(worker, from), addr(worker, to), &taken))
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

/* The allocation at or behind the step's pages; the step stays inside of it. False: there is none. */
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
	ranges_give_up(&area, addr(worker, worker->from), addr(worker, worker->to), kind);
}

static void rebase(struct worker *worker, unsigned from, unsigned to)
{
	if (from >= to)
		return;
	model_rebase(&worker->model, from, to, from);
	expect(worker);
	ranges_rebase(&area, addr(worker, from), addr(worker, to), addr(worker, from));
}

/* A part of an allocation becomes one by itself, and so does what lies behind it. */
static void split(struct worker *worker)
{
	unsigned base, end;

	if (!inside_allocation(worker, &base, &end))
		return;
	rebase(worker, worker->to, end);
	rebase(worker, worker->from, worker->to);
}

/* Whole allocations become one. */
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

/* Freed, or refused; between the two there may be a new allocation at the same place. */
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
	if (!ranges_take(&area, addr(worker, from), addr(worker, to), &taken)) {
		memset(worker->listed, 0, sizeof(worker->listed));
		return;
	}
	if (dice(worker, 2)) {
		worker->model = before;
		memset(worker->listed, 0, sizeof(worker->listed));
		expect(worker);
		ranges_put_back(&area, &taken);
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

static void test_every_page_is_as_modelled(void **state)
{
	static struct worker worker;

	(void)state;
	worker = (struct worker){.model.first = BASE, .seed = 5};
	for (unsigned i = 0; i < 20000; i++) {
		step(&worker);
		assert_true(is_as_modelled(&area, &worker.model));
		if (i % 16 == 0)
			assert_true(finds_allocations(&worker));
	}
	assert_int_equal(area.dropped_ranges, 0);
	assert_int_equal(area.ranges.changing % 2, 0);
}

static void test_is_known(void **state)
{
	struct tracer_range range = {
		.start = BASE, .end = BASE + 9 * PAGE, .allocation = BASE, .kind = RANGE_RESERVED};

	(void)state;
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

/* ---------------------------------------------------------------- many, and far */

/* Commits page by page, in an order that meets nobody's neighbour first: in the end one node. */
static void test_neighbours_become_one(void **state)
{
	const uint64_t count = 100000;
	struct tracer_range range = {.start = BASE,
		.end = BASE + count * PAGE,
		.allocation = BASE,
		.kind = RANGE_RESERVED,
		.stack = 7};
	struct ranges_taken taken;
	uint32_t live = 0;

	(void)state;
	ranges_add(&area, &range);
	for (uint64_t i = 0; i < count; i += 2)
		ranges_use(&area, BASE + i * PAGE, BASE + (i + 1) * PAGE, RANGE_COMMITTED, 8);
	assert_int_equal(area.ranges.node_count, count);
	for (uint64_t i = 1; i < count; i += 2)
		ranges_use(&area, BASE + i * PAGE, BASE + (i + 1) * PAGE, RANGE_COMMITTED, 8);
	for (uint32_t i = 0; i < area.ranges.node_count; i++)
		live += nodes_of(&area)[i].kind != RANGE_NONE;
	assert_int_equal(live, 1);
	assert_true(ranges_take(&area, BASE, BASE + count * PAGE, &taken));
	ranges_drop(&area, &taken);
	assert_int_equal(area.ranges.root, 0);
	assert_true(area.ranges.node_count <= count + 2);
}

/* Addresses that only grow would make a list of a tree that is not balanced. */
static void test_no_order_makes_it_slow(void **state)
{
	const uint32_t count = 500000;
	uint32_t deepest = 0;

	(void)state;
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

		while (nodes_of(&area)[link - 1].start != BASE + i * 16 * PAGE) {
			const struct tracer_range *node = &nodes_of(&area)[link - 1];

			link = BASE + i * 16 * PAGE < node->start ? node->left : node->right;
			depth++;
		}
		deepest = depth > deepest ? depth : deepest;
	}
	assert_true(deepest < 100); /* 19 at best; a list: 500000 */
}

static void test_extreme_addresses(void **state)
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

	(void)state;
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
	uint32_t found = pages_of(&worker->model, nodes_of(&area), area.ranges.node_count, pages);
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
	area.limit_bytes = UINT64_MAX;
	area.ranges.node_limit = NODES_MAX;
	memset(&worker.model.pages, 0, sizeof(worker.model.pages));
	for (unsigned i = 0; i < 1000; i++) {
		step(&worker);
		assert_true(is_as_modelled(&area, &worker.model));
	}
}

static void test_few_nodes_at_all(void **state)
{
	(void)state;
	run_out(UINT64_MAX, 20);
}

static void test_one_node(void **state)
{
	(void)state;
	run_out(UINT64_MAX, 1);
}

static void test_no_memory_at_all(void **state)
{
	(void)state;
	run_out(4096, NODES_MAX);
}

static void test_commits_end(void **state)
{
	struct tracer_range range = {.start = BASE,
		.end = BASE + 4096 * PAGE,
		.allocation = BASE,
		.kind = RANGE_RESERVED};
	const uint32_t fit = 65536 / sizeof(struct tracer_range);

	(void)state;
	memory.commits_left = 1;
	ranges_add(&area, &range);
	for (uint64_t i = 0; i < 4096; i += 2)
		ranges_use(&area, BASE + i * PAGE, BASE + (i + 1) * PAGE, RANGE_COMMITTED, 8);
	assert_int_equal(area.ranges.node_count, fit);
	assert_int_equal(area.committed_bytes, 65536);
	/* A cut makes one node more: each commit but the first one needs two. */
	assert_int_equal(area.dropped_ranges, 2048 - (fit - 1 - 1) / 2 - 1);
}

static void test_lock_never_given_back(void **state)
{
	struct tracer_range range = {
		.start = BASE, .end = BASE + PAGE, .allocation = BASE, .kind = RANGE_RESERVED};
	struct ranges_extent extent;
	struct ranges_taken taken;

	(void)state;
	ranges_add(&area, &range);
	area.ranges.lock = 1;
	patience = 1000;
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
	assert_int_equal(nodes_of(&area)[0].kind, RANGE_RESERVED);
}

/* ---------------------------------------------------------------- threads */

#define THREADS 4

static void *work(void *worker)
{
	for (unsigned i = 0; i < 20000; i++)
		step(worker);
	return NULL;
}

static void test_threads_in_rooms_of_their_own(void **state)
{
	static struct worker workers[THREADS];
	pthread_t threads[THREADS];

	(void)state;
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){
			.model.first = BASE + i * (PAGES + 1) * PAGE, .seed = 99 + i};
		assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < THREADS; i++)
		assert_true(is_as_modelled(&area, &workers[i].model));
	assert_int_equal(area.dropped_ranges, 0);
}

/* ---------------------------------------------------------------- looked at from outside */

#define LOOKS 3000
#define STEPS_MAX 4000000

/* Bytes of each kind that are listed after so many changes. */
struct sums {
	uint32_t pages[4];
};

static struct sums *sums_after;
static bool is_over;

/* The next change makes it so: what the model says, and what is taken and not dropped. */
static void note_sums(struct worker *worker)
{
	struct sums sums = {{0}};

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

/* What a reader from outside copies at some instant: true when it may be believed. */
static bool look(struct tracer_range *copy, uint32_t *count, uint32_t *changes)
{
	*changes = __atomic_load_n(&area.ranges.changing, __ATOMIC_ACQUIRE);
	*count = __atomic_load_n(&area.ranges.node_count, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < *count; i++)
		copy[i] = ((const volatile struct tracer_range *)nodes_of(&area))[i];
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return *changes % 2 == 0 &&
	       *changes == __atomic_load_n(&area.ranges.changing, __ATOMIC_RELAXED);
}

static bool is_expected(const struct tracer_range *copy, uint32_t count, uint32_t changes)
{
	uint64_t pages[4] = {0};

	for (uint32_t i = 0; i < count; i++)
		pages[copy[i].kind & 3] += (copy[i].end - copy[i].start) / PAGE;
	for (unsigned kind = RANGE_RESERVED; kind <= RANGE_MAPPED; kind++) {
		if (pages[kind] != sums_after[changes / 2].pages[kind])
			return false;
	}
	return true;
}

static void test_an_observer_knows_when_to_believe(void **state)
{
	static struct worker worker;
	static struct tracer_range copy[4 * PAGES];
	unsigned believed = 0, wrong = 0;
	uint32_t count, changes;
	pthread_t thread;

	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_every_page_is_as_modelled, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_is_known, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_neighbours_become_one, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_order_makes_it_slow, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_extreme_addresses, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_few_nodes_at_all, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_one_node, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_memory_at_all, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_commits_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lock_never_given_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_threads_in_rooms_of_their_own, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_an_observer_knows_when_to_believe, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
