/*
 * What the tracer's table of ranges has to say, kept beside it page by page; and whether it does, as
 * whoever looks from outside sees it: in the array of nodes, without the tree.
 */
#ifndef TESTS_UNIT_RANGE_MODEL_H
#define TESTS_UNIT_RANGE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "snapshot/tracer/tables.h"

#define PAGE ((uint64_t)4096)
#define PAGES 600

struct page {
	uint32_t kind, stack, reserve_stack;
	uint64_t allocation; /* as a page number */
};

struct range_model {
	uint64_t first; /* address of page 0 */
	struct page pages[PAGES];
};

static inline uint64_t page_addr(const struct range_model *model, uint64_t page)
{
	return model->first + page * PAGE;
}

/* The first known page at or behind one; PAGES: none. */
static inline unsigned model_next(const struct range_model *model, unsigned page)
{
	while (page < PAGES && !model->pages[page].kind)
		page++;
	return page;
}

/* Behind the last page of an allocation. */
static inline unsigned model_end(const struct range_model *model, uint64_t allocation)
{
	unsigned end = 0;

	for (unsigned i = 0; i < PAGES; i++) {
		if (model->pages[i].kind && model->pages[i].allocation == allocation)
			end = i + 1;
	}
	return end;
}

static inline void model_forget(struct range_model *model, unsigned from, unsigned to)
{
	memset(&model->pages[from], 0, (to - from) * sizeof(model->pages[0]));
}

/* The first page and the one behind the last of all allocations that overlap [*from, *to). */
static inline void model_overlapped(const struct range_model *model, unsigned *from, unsigned *to)
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

/* What a new allocation overlaps is stale, with all of its own allocation. */
static inline void model_add(
	struct range_model *model, unsigned from, unsigned to, const struct page *page)
{
	unsigned low = from, high = to;

	model_overlapped(model, &low, &high);
	model_forget(model, low, high);
	for (unsigned i = from; i < to; i++)
		model->pages[i] = *page;
}

static inline void model_fill(
	struct range_model *model, unsigned from, unsigned to, const struct page *page)
{
	for (unsigned i = from; i < to; i++) {
		if (!model->pages[i].kind)
			model->pages[i] = *page;
	}
}

static inline void model_use(
	struct range_model *model, unsigned from, unsigned to, uint32_t kind, uint32_t stack)
{
	for (unsigned i = from; i < to; i++) {
		struct page *page = &model->pages[i];

		if (page->kind == RANGE_RESERVED)
			*page = (struct page){kind, stack, page->stack, page->allocation};
	}
}

static inline void model_give_up(
	struct range_model *model, unsigned from, unsigned to, uint32_t kind)
{
	for (unsigned i = from; i < to; i++) {
		struct page *page = &model->pages[i];

		if (page->kind == kind)
			*page = (struct page){
				RANGE_RESERVED, page->reserve_stack, 0, page->allocation};
	}
}

static inline void model_rebase(
	struct range_model *model, unsigned from, unsigned to, uint64_t allocation)
{
	for (unsigned i = from; i < to; i++) {
		if (model->pages[i].kind)
			model->pages[i].allocation = allocation;
	}
}

/* ---------------------------------------------------------------- both compared */

static inline bool page_is(const struct page *page, const struct page *other)
{
	return page->kind == other->kind && page->stack == other->stack &&
	       page->reserve_stack == other->reserve_stack && page->allocation == other->allocation;
}

/* As few nodes as can say it. */
static inline uint32_t model_runs(const struct range_model *model)
{
	uint32_t count = 0;

	for (unsigned i = 0; i < PAGES; i++) {
		count += model->pages[i].kind &&
			 (!i || !page_is(&model->pages[i], &model->pages[i - 1]));
	}
	return count;
}

/* The nodes of an array that lie in the model's pages, page by page. Returns how many they are; or
 * UINT32_MAX when one is not as it should be, or two overlap. */
static inline uint32_t pages_of(const struct range_model *model, const struct tracer_range *nodes,
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

static inline const struct tracer_range *nodes_of(const struct tracer_ranges *ranges)
{
	return (const struct tracer_range *)(uintptr_t)ranges->nodes;
}

/* Everything that is known, nothing else, in as few nodes as can be. */
static inline bool is_as_modelled(
	const struct tracer_ranges *ranges, const struct range_model *model)
{
	struct page pages[PAGES];
	uint32_t found = pages_of(model, nodes_of(ranges), ranges->node_count, pages);

	for (unsigned i = 0; i < PAGES; i++) {
		if (!page_is(&pages[i], &model->pages[i]))
			return false;
	}
	return found == model_runs(model);
}

#endif
