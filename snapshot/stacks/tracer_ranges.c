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
	return range->kind <= RANGE_MAPPED && range->start < range->end &&
	       range->end <= TARGET_SPACE_BYTES;
}

/* A total order, so that of two in one place the same one stays each time. */
static int by_start(const void *a, const void *b)
{
	const struct tracer_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->stack < y->stack ? -1 : x->stack > y->stack;
}

static void drop_overlapping(struct tracer_range_list *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		if (kept && list->items[i].start < list->items[kept - 1].end)
			list->broken_count++;
		else
			list->items[kept++] = list->items[i];
	}
	list->count = kept;
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
	if (made.count)
		qsort(made.items, made.count, sizeof(*made.items), by_start);
	drop_overlapping(&made);
	tracer_ranges_release(list);
	*list = made;
	return 0;
}
