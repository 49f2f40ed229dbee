#include "snapshot/stacks/tracer_ranges.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/err.h"
#include "snapshot/target/target.h"

void tracer_ranges_release(struct tracer_range_list *list)
{
	free(list->items);
	*list = (struct tracer_range_list){0};
}

static bool is_sound(const struct tracer_range *range)
{
	uint32_t kind = range->kind & ~RANGE_TAKEN;

	return kind != RANGE_NONE && kind <= RANGE_MAPPED && range->start < range->end &&
	       range->end <= TARGET_SPACE_BYTES;
}

/* Live ones first, by address. A total order, so that of two in one place the same one stays each
 * time. */
static int by_start(const void *a, const void *b)
{
	const struct tracer_range *x = a, *y = b;
	uint32_t is_taken = x->kind & RANGE_TAKEN;

	if (is_taken != (y->kind & RANGE_TAKEN))
		return is_taken ? 1 : -1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->stack < y->stack ? -1 : x->stack > y->stack;
}

static void sort(struct tracer_range_list *list)
{
	if (list->count)
		qsort(list->items, list->count, sizeof(*list->items), by_start);
}

static size_t count_live(const struct tracer_range_list *list)
{
	size_t count = 0;

	while (count < list->count && !(list->items[count].kind & RANGE_TAKEN))
		count++;
	return count;
}

/* Of items in order, leaves out those on top of another; how many stay. */
static size_t drop_overlapping(struct tracer_range *items, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (!kept || items[i].start >= items[kept - 1].end)
			items[kept++] = items[i];
	}
	return kept;
}

/* Of items in order, leaves out those on top of a live one; how many stay. */
static size_t drop_replaced(struct tracer_range *items, size_t count,
	const struct tracer_range *live, size_t live_count)
{
	size_t kept = 0, next = 0;

	for (size_t i = 0; i < count; i++) {
		while (next < live_count && live[next].end <= items[i].start)
			next++;
		if (next == live_count || live[next].start >= items[i].end)
			items[kept++] = items[i];
	}
	return kept;
}

/* What is being freed may be refused, and stays where it is then; but of two in one place one is gone
 * or never got the memory, and a live one is neither. */
static void settle(struct tracer_range_list *list)
{
	size_t live_count, taken_count, kept;
	struct tracer_range *taken;

	sort(list);
	live_count = count_live(list);
	taken = list->items + live_count;
	taken_count = list->count - live_count;
	kept = drop_overlapping(list->items, live_count);
	list->broken_count += live_count - kept;
	taken_count = drop_replaced(taken, taken_count, list->items, kept);
	taken_count = drop_overlapping(taken, taken_count);
	for (size_t i = 0; i < taken_count; i++) {
		list->items[kept] = taken[i];
		list->items[kept++].kind &= ~RANGE_TAKEN;
	}
	list->count = kept;
	sort(list);
}

int tracer_ranges_parse(
	struct tracer_range_list *list, const unsigned char *nodes, size_t node_count)
{
	struct tracer_range_list made = {.items = calloc(node_count + 1, sizeof(*made.items))};

	if (!made.items)
		return -ERR_NOMEM;
	for (size_t i = 0; i < node_count; i++) {
		struct tracer_range *range = &made.items[made.count];

		memcpy(range, nodes + i * sizeof(*range), sizeof(*range));
		if (range->kind == RANGE_NONE)
			continue;
		if (is_sound(range))
			made.count++;
		else
			made.broken_count++;
	}
	settle(&made);
	tracer_ranges_release(list);
	*list = made;
	return 0;
}
