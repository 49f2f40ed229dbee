/*
 * The tracer's table of ranges over memory of a test's own, and one who works with it at random.
 */
#ifndef TESTS_UNIT_RANGE_WORKER_H
#define TESTS_UNIT_RANGE_WORKER_H

#include "tests/unit/fake_memory.h"

#include "tests/unit/range_model.h"

#define BASE ((uint64_t)0x7ff600000000)
#define LIMIT ((uint64_t)1 << 30) /* room for 2^20 nodes and more */

static inline int set_up(void **state)
{
	(void)state;
	fake_begin(LIMIT);
	memory.waits_max = UINT32_MAX; /* with few processors a thread may be away for long */
	return 0;
}

static inline int tear_down(void **state)
{
	(void)state;
	fake_end();
	return 0;
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

static inline uint64_t dice(struct worker *worker, uint64_t sides)
{
	return fake_dice(&worker->seed) % sides;
}

static inline void expect(struct worker *worker)
{
	if (worker->expect)
		worker->expect(worker);
}

static inline uint64_t addr(const struct worker *worker, unsigned page)
{
	return page_addr(&worker->model, page);
}

static inline uint32_t any_stack(struct worker *worker)
{
	return 1 + (uint32_t)dice(worker, 3); /* few, so that neighbours are often alike */
}

static inline uint32_t any_kind(struct worker *worker)
{
	static const uint32_t kinds[] = {RANGE_RESERVED, RANGE_COMMITTED, RANGE_MAPPED};

	return kinds[dice(worker, 3)];
}

static inline struct tracer_range range_of(const struct worker *worker, const struct page *page)
{
	return (struct tracer_range){.start = addr(worker, worker->from),
		.end = addr(worker, worker->to),
		.allocation = addr(worker, (unsigned)page->allocation),
		.kind = page->kind,
		.stack = page->stack,
		.reserve_stack = page->reserve_stack};
}

static inline void free_overlapped(struct worker *worker)
{
	unsigned from = worker->from, to = worker->to;
	struct ranges_taken taken;

	model_overlapped(&worker->model, &from, &to);
	if (ranges_take(&area, addr(worker, from), addr(worker, to), &taken))
		ranges_drop(&area, &taken);
}

static inline void add(struct worker *worker)
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
static inline bool inside_allocation(struct worker *worker, unsigned *base, unsigned *end)
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

static inline void fill(struct worker *worker)
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

static inline void use(struct worker *worker)
{
	uint32_t kind = any_kind(worker), stack = any_stack(worker);

	if (kind == RANGE_RESERVED)
		kind = RANGE_COMMITTED;
	model_use(&worker->model, worker->from, worker->to, kind, stack);
	expect(worker);
	ranges_use(&area, addr(worker, worker->from), addr(worker, worker->to), kind, stack);
}

static inline void give_up(struct worker *worker)
{
	uint32_t kind = dice(worker, 4) ? RANGE_COMMITTED : RANGE_MAPPED;

	model_give_up(&worker->model, worker->from, worker->to, kind);
	expect(worker);
	ranges_give_up(&area, addr(worker, worker->from), addr(worker, worker->to), kind);
}

static inline void rebase(struct worker *worker, unsigned from, unsigned to)
{
	if (from >= to)
		return;
	model_rebase(&worker->model, from, to, from);
	expect(worker);
	ranges_rebase(&area, addr(worker, from), addr(worker, to), addr(worker, from));
}

/* A part of an allocation becomes one by itself, and so does what lies behind it. */
static inline void split(struct worker *worker)
{
	unsigned base, end;

	if (!inside_allocation(worker, &base, &end))
		return;
	rebase(worker, worker->to, end);
	rebase(worker, worker->from, worker->to);
}

/* Whole allocations become one. */
static inline void coalesce(struct worker *worker)
{
	unsigned base, end, known;

	if (!inside_allocation(worker, &base, &end))
		return;
	known = model_next(&worker->model, end);
	if (known < PAGES)
		end = model_end(&worker->model, worker->model.pages[known].allocation);
	rebase(worker, base, end);
}

static inline void forget(struct worker *worker)
{
	model_forget(&worker->model, worker->from, worker->to);
	expect(worker);
	ranges_forget(&area, addr(worker, worker->from), addr(worker, worker->to));
}

/* Freed, or refused; between the two there may be a new allocation at the same place. */
static inline void take(struct worker *worker)
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

static inline void step(struct worker *worker)
{
	static void (*const what[])(struct worker *) = {add, add, use, use, use, use, give_up,
		give_up, fill, split, coalesce, forget, take, take};

	worker->from = (unsigned)dice(worker, PAGES);
	worker->to = worker->from + 1 + (unsigned)dice(worker, dice(worker, 4) ? 20 : PAGES);
	if (worker->to > PAGES)
		worker->to = PAGES;
	what[dice(worker, sizeof(what) / sizeof(*what))](worker);
}

#endif
