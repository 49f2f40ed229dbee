/*
 * Pairs of stacks in rebuilt modules: the same stack has other offsets in another build.
 *
 * An inserted call moves all later calls in its function. A later call may then have an offset that
 * a different call had in the other build, or an offset that the other build does not use.
 * Therefore, stacks that occur only in some builds are compared again, using only the functions of
 * their frames. Stacks with equal functions are paired in the order of their locations if all
 * builds have the same number of them. Otherwise, all stacks with equal functions become one row,
 * whose sum is correct.
 *
 * In this file, a build is a set of dumps among which no module was rebuilt. At most BUILDS_MAX
 * builds are distinguished. */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "diff/match/match_parts.h"

#define BUILDS_MAX 64 /* bits in a mask */

void class_pairs_init(struct class_pairs *pairs, const struct stack_classes *classes, size_t dumps)
{
	const struct module_ids *ranks = &classes->locations->ranks;
	uint32_t *seen; /* indexed by build and module group: rank + 1; 0: not yet seen */

	*pairs = (struct class_pairs){.classes = classes};
	if (!classes->by_symbol || classes->mode != MATCH_AUTO)
		return;
	pairs->builds = xcalloc(dumps, sizeof(*pairs->builds));
	seen = xcalloc(BUILDS_MAX * (ranks->count + 1), sizeof(*seen));
	for (size_t dump = 0; dump < dumps; dump++) {
		const struct places_dump *in = &classes->locations->dumps[dump];
		uint32_t build = 0, *of;
		bool differs = true;

		for (; differs && build < BUILDS_MAX; build += differs) {
			of = seen + build * (ranks->count + 1);
			differs = false;
			for (size_t i = 0; i < in->sums->module_list.count; i++) {
				uint32_t rank = in->ranks[i], known = of[ranks->group[rank]];

				differs |= ranks->is_rebuilt[rank] && known && known != rank + 1;
			}
		}
		build = build < BUILDS_MAX ? build : BUILDS_MAX - 1;
		of = seen + build * (ranks->count + 1);
		for (size_t i = 0; i < in->sums->module_list.count; i++) {
			if (ranks->is_rebuilt[in->ranks[i]])
				of[ranks->group[in->ranks[i]]] = in->ranks[i] + 1;
		}
		pairs->builds[dump] = build;
		pairs->build_count = build < pairs->build_count ? pairs->build_count : build + 1;
	}
	free(seen);
}

void class_pairs_release(struct class_pairs *pairs)
{
	free(pairs->builds);
	free(pairs->masks);
	*pairs = (struct class_pairs){0};
}

void class_pairs_add(
	struct class_pairs *pairs, size_t dump, const uint32_t *numbers, size_t stack_count)
{
	size_t count = pairs->classes->count;

	if (pairs->build_count < 2)
		return;
	if (pairs->mask_count < count) {
		pairs->masks = xrealloc(pairs->masks, count * sizeof(*pairs->masks));
		memset(pairs->masks + pairs->mask_count, 0,
			(count - pairs->mask_count) * sizeof(*pairs->masks));
		pairs->mask_count = count;
	}
	for (size_t i = 0; i < stack_count; i++)
		pairs->masks[numbers[i]] |= UINT64_C(1) << pairs->builds[dump];
}

/* ---------------------------------------------------------------- comparison by functions */

/* A class to be compared by functions. Either it does not occur in all builds, or add_others()
 * added it. */
struct lone_class {
	const struct stack_classes *classes;
	const struct stack *stack;
	uint32_t number, dump, depth, hash;
	uint64_t mask; /* builds that have the class */
};

/* Fills `lone`. Returns false if the class has no addresses or no frame in a rebuilt module. */
static bool lone_fill(struct lone_class *lone, const struct class_pairs *pairs, uint32_t number)
{
	const struct stack_classes *classes = pairs->classes;
	const struct stack_class *row_class = &classes->list[number];
	struct hasher hasher = hasher_begin(&classes->index.key);
	bool is_rebuilt = false;

	if (row_class->kind != ROW_STACK)
		return false;
	*lone = (struct lone_class){.classes = classes,
		.stack = sums_stack(&classes->dumps[row_class->dump], row_class->stack),
		.number = number,
		.dump = row_class->dump,
		.mask = pairs->masks[number]};
	if (lone->stack->is_named)
		return false;
	lone->depth = location_depth(classes->locations, lone->dump, lone->stack);
	for (uint32_t i = 0; i < lone->depth; i++) {
		struct location at = stack_class_function(classes, lone->dump, lone->stack, i);

		is_rebuilt |= at.unit > UINT32_MAX;
		hasher_add(&hasher, at.unit);
		hasher_add(&hasher, at.offset);
	}
	lone->hash = hasher_end(&hasher);
	return is_rebuilt;
}

static int function_order(const struct lone_class *a, const struct lone_class *b)
{
	int order = number_order(a->hash, b->hash);

	if (!order)
		order = number_order(a->depth, b->depth);
	for (uint32_t i = 0; !order && i < a->depth; i++) {
		struct location x = stack_class_function(a->classes, a->dump, a->stack, i),
				y = stack_class_function(b->classes, b->dump, b->stack, i);

		order = location_order(&x, &y);
	}
	return order;
}

/* Compares classes by functions, then by build, then by the locations of their frames. */
static int lone_order(const void *a, const void *b)
{
	const struct lone_class *x = a, *y = b;
	const struct locations *locations = x->classes->locations;
	int order = function_order(x, y);

	if (!order)
		order = number_order(x->mask, y->mask);
	for (uint32_t i = 0; !order && i < x->depth; i++) {
		struct location left = location_of(
					locations, x->dump, stack_frame(x->stack, i), NULL),
				right = location_of(
					locations, y->dump, stack_frame(y->stack, i), NULL);

		order = number_order(left.offset, right.offset);
	}
	return order ? order : stack_class_order(x->classes, x->number, y->number);
}

/* Returns the number of classes at the start of `list` that have the same functions as the first
 * class. */
static size_t alike_count(const struct lone_class *list, size_t count)
{
	size_t alike = 1;

	while (alike < count && !function_order(&list[0], &list[alike]))
		alike++;
	return alike;
}

/* Returns true if no build has all of these classes, which have equal functions. If a build has all
 * of them, they are different stacks. */
static bool is_torn(const struct lone_class *alike, size_t count)
{
	uint64_t common = UINT64_MAX;

	for (size_t i = 0; i < count; i++)
		common &= alike[i].mask;
	return !common;
}

/* Joins classes that have equal functions. */
static void pair_alike(const struct lone_class *alike, size_t count, uint32_t *into)
{
	uint64_t together = 0;
	size_t each = 0;
	bool is_even = true; /* `alike` consists of runs of `each` classes, one run per build */

	for (size_t i = 0; i < count; i++)
		each += alike[i].mask == alike->mask;
	for (size_t i = 0; is_even && i < count; i++) {
		is_even = count % each == 0 && (i % each ? alike[i].mask == alike[i - 1].mask :
							   !(alike[i].mask & together));
		together |= alike[i].mask;
	}
	each = is_even ? each : 1;
	for (size_t i = each; i < count; i++)
		into[alike[i].number] = alike[i % each].number;
}

/* ---------------------------------------------------------------- search */

#define FILTER_BITS 65536u

/* Classes to pair, and a filter for classes that occur in all builds. The filter has a bit for each
 * hash of a function. The bit is set if the function is the innermost one of a torn class. See
 * is_torn() and add_others(). */
struct lone_list {
	struct lone_class *items;
	size_t count, cap;
	unsigned char filter[FILTER_BITS / 8];
};

static unsigned filter_bit(const struct location *at)
{
	return (unsigned)((at->unit * 31 + at->offset) * UINT64_C(0x9e3779b97f4a7c15) >> 32) %
	       FILTER_BITS;
}

static void list_add(struct lone_list *list, const struct class_pairs *pairs, uint32_t number)
{
	array_grow((void **)&list->items, &list->cap, list->count, sizeof(*list->items));
	list->count += lone_fill(&list->items[list->count], pairs, number);
}

/* Sorts the list and sets the filter. Returns true if the list contains a torn class, see
 * is_torn(). */
static bool find_torn(struct lone_list *list)
{
	bool result = false;

	if (list->count)
		qsort(list->items, list->count, sizeof(*list->items), lone_order);
	for (size_t from = 0, alike; from < list->count; from += alike) {
		const struct lone_class *first = &list->items[from];
		struct location at =
			stack_class_function(first->classes, first->dump, first->stack, 0);

		alike = alike_count(first, list->count - from);
		if (!is_torn(first, alike))
			continue;
		list->filter[filter_bit(&at) / 8] |= 1u << filter_bit(&at) % 8;
		result = true;
	}
	return result;
}

/* Adds classes that occur in all builds, if their innermost function may also be that of a torn
 * class. The filter decides this. It may add a class too many, but never misses one. */
static void add_others(struct lone_list *list, const struct class_pairs *pairs, uint64_t all)
{
	for (size_t i = 0; i < pairs->mask_count; i++) {
		const struct stack_class *row_class = &pairs->classes->list[i];
		const struct stack *stack;
		struct location at;

		if (pairs->masks[i] != all || row_class->kind != ROW_STACK)
			continue;
		stack = sums_stack(&pairs->classes->dumps[row_class->dump], row_class->stack);
		if (stack->is_named)
			continue;
		at = stack_class_function(pairs->classes, row_class->dump, stack, 0);
		if (list->filter[filter_bit(&at) / 8] >> filter_bit(&at) % 8 & 1)
			list_add(list, pairs, (uint32_t)i);
	}
}

uint32_t *class_pairs_find(const struct class_pairs *pairs)
{
	const uint64_t all = UINT64_MAX >> (BUILDS_MAX - pairs->build_count) % BUILDS_MAX;
	struct lone_list *list = xcalloc(1, sizeof(*list));
	uint32_t *into = NULL;

	for (size_t i = 0; i < pairs->mask_count; i++) {
		if (pairs->masks[i] && pairs->masks[i] != all)
			list_add(list, pairs, (uint32_t)i);
	}
	if (find_torn(list)) {
		size_t count = list->count;

		add_others(list, pairs, all);
		if (list->count > count)
			find_torn(list);
		into = xmalloc(pairs->classes->count * sizeof(*into));
		for (uint32_t i = 0; i < pairs->classes->count; i++)
			into[i] = i;
	}
	for (size_t from = 0, alike; into && from < list->count; from += alike) {
		alike = alike_count(&list->items[from], list->count - from);
		if (is_torn(&list->items[from], alike))
			pair_alike(&list->items[from], alike, into);
	}
	free(list->items);
	free(list);
	return into;
}
