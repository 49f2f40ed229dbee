#include "diff/match/match_parts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "diff/read/stack_store.h"

/* One dump's stack among those of a row. */
struct class_member {
	const struct stack *stack; /* its id, and its frames if there are any */
	const struct stack_classes *classes;
	uint32_t dump;
};

/* The members of all rows, those of one row side by side. */
struct members {
	struct class_member *list;
	size_t *first; /* by row, and one behind the last */
};

/* The frames as the dump has them: the numbers of texts tell nothing, the texts do. */
static int frames_order(const struct class_member *a, const struct class_member *b)
{
	const struct stack *x = a->stack, *y = b->stack;
	const char *const *left = a->classes->dumps[a->dump].texts;
	const char *const *right = b->classes->dumps[b->dump].texts;
	int order = number_order(x->is_named, y->is_named);

	for (uint32_t i = 0; !order && i < x->frame_count && i < y->frame_count; i++) {
		if (x->is_named)
			order = strcmp(left[stack_frame(x, i)], right[stack_frame(y, i)]);
		else
			order = number_order(stack_frame(x, i), stack_frame(y, i));
	}
	return order ? order : number_order(x->frame_count, y->frame_count);
}

/* Equal ids side by side, the newest dump's first. */
static int by_id(const void *a, const void *b)
{
	const struct class_member *x = a, *y = b;
	int order = x->stack->id == y->stack->id ? 0 : stack_id_order(x->stack->id, y->stack->id);

	if (!order)
		order = number_order(y->dump, x->dump);
	return order ? order : frames_order(x, y);
}

/* The newest dump's first. */
static int by_dump(const void *a, const void *b)
{
	const struct class_member *x = a, *y = b;

	return x->dump != y->dump ? number_order(y->dump, x->dump) : by_id(a, b);
}

/* Equal stacks side by side, the newest dump's first; those without frames come last. */
static int by_stack(const void *a, const void *b)
{
	const struct class_member *x = a, *y = b;
	int order = number_order(!x->stack->frame_count, !y->stack->frame_count);

	if (!order)
		order = stack_order(x->classes, x->dump, x->stack, y->dump, y->stack);
	return order ? order : by_dump(a, b);
}

/* The newest dump's stacks that have frames, in an order that is theirs. */
static int by_newest_stack(const void *a, const void *b)
{
	const struct class_member *x = a, *y = b;
	int order = number_order(!x->stack->frame_count, !y->stack->frame_count);

	if (!order)
		order = number_order(y->dump, x->dump);
	return order ? order : by_stack(a, b);
}

/* Those of a row come the newest first, and most often have but one id: mostly there is nothing to sort. */
static void members_sort(
	struct class_member *members, size_t count, int (*order)(const void *a, const void *b))
{
	for (size_t i = 1; i < count; i++) {
		if (order(&members[i - 1], &members[i]) > 0) {
			qsort(members, count, sizeof(*members), order);
			return;
		}
	}
}

/* A row that stands for an id: one of the stacks that have it is shown. */
static void choose_by_id(struct row *row, struct class_member *members, size_t count)
{
	members_sort(members, count, by_stack);
	for (size_t i = 0; i < count && members[i].stack->frame_count; i++) {
		const struct class_member *last = &members[i ? i - 1 : 0], *at = &members[i];

		row->id_stack_count += !i || stack_order(at->classes, last->dump, last->stack,
						     at->dump, at->stack);
	}
	members_sort(members, count, by_newest_stack);
	row->kind = members->stack->alias_count ? ROW_AMBIGUOUS : ROW_STACK;
	if (!members->stack->frame_count)
		row->kind = ROW_UNKNOWN;
}

/* Chooses the stack and the dumps to show the row from. The older dump's stack is another one
 * when ids are compared, and no help then. */
static void show(const struct stack_classes *classes, struct row *row,
	const struct class_member *members, size_t count)
{
	bool is_shown = row->kind == ROW_STACK || row->kind == ROW_AMBIGUOUS;

	row->dump = &classes->dumps[members->dump];
	row->stack = is_shown ? members->stack : NULL;
	for (size_t i = 1; i < count && row->id_stack_count < 2; i++) {
		if (members[i].dump == members->dump ||
			(is_shown && !members[i].stack->frame_count))
			continue;
		row->older_dump = &classes->dumps[members[i].dump];
		row->older_stack = is_shown ? members[i].stack : NULL;
		return;
	}
}

/* Keeps one member for each id. */
static size_t unite(struct class_member *members, size_t count)
{
	size_t id_count = 0;

	members_sort(members, count, by_id);
	for (size_t i = 0; i < count; i++) {
		if (!id_count || strcmp(members[id_count - 1].stack->id, members[i].stack->id) != 0)
			members[id_count++] = members[i];
	}
	members_sort(members, id_count, by_dump);
	return id_count;
}

static void label(const struct stack_classes *classes, struct row *row,
	struct class_member *members, size_t count, const char **ids)
{
	assert(count && members->stack); /* no row without a cell */
	if (classes->mode == MATCH_ID && row->kind == ROW_STACK)
		choose_by_id(row, members, count);
	else
		members_sort(members, count, by_dump);
	show(classes, row, members, count);
	row->ids = ids;
	row->id_count = unite(members, count);
	for (size_t i = 0; i < row->id_count; i++)
		ids[i] = members[i].stack->id;
}

/* The member that a row got last. */
struct latest {
	uint32_t shared, dump;
	uint32_t dump_count; /* that have had the same one, one after the other */
};

/* Whether a row needs this member beside those of newer dumps: of dumps that have the same stack under
 * the same id, two are enough. */
static bool is_needed(const struct dump_sums *sums, const struct stack_total *cell, uint32_t dump,
	struct latest *latest)
{
	uint32_t shared = sums->shared && cell->stack != STACK_NONE && !cell->is_bare ?
				  sums->shared[cell->stack] :
				  STACK_NONE;
	bool is_same = shared != STACK_NONE && latest->dump_count && shared == latest->shared;

	if (is_same && (dump == latest->dump || latest->dump_count > 1))
		return false;
	*latest = (struct latest){shared, dump, is_same ? latest->dump_count + 1 : 1};
	return true;
}

/* Counts how many members each row has, and where its first one goes. latest is all zero. */
static size_t place(const struct comparison *comparison, uint32_t *const *rows,
	struct members *members, struct latest *latest)
{
	size_t total = 0;

	for (uint32_t dump = (uint32_t)comparison->dump_count; dump--;) {
		const struct dump_sums *sums = &comparison->dumps[dump];
		struct cell_walk walk = stack_totals_walk(sums);
		const struct stack_total *cell;

		for (size_t i = 0; (cell = stack_totals_next(&walk)); i++) {
			uint32_t row = rows[dump][i];

			if (row != ROW_NONE && is_needed(sums, cell, dump, &latest[row]))
				members->first[row]++;
		}
	}
	for (size_t i = 0; i <= comparison->row_count; i++) {
		size_t count = members->first[i];

		members->first[i] = total;
		total += count;
	}
	return total;
}

/* Of the stacks under the id of stack number first, one that does not depend on their order; each
 * id is gone through once. */
static uint32_t representative(
	const struct stack_classes *classes, uint32_t dump, uint32_t first, uint32_t *known)
{
	const struct dump_sums *sums = &classes->dumps[dump];
	struct class_member best = {sums_stack(sums, first), classes, dump};
	uint32_t found = first;

	if (known[first] != STACK_NONE)
		return known[first];
	for (uint32_t at = sums_same_id(sums, first); at != STACK_NONE;
		at = sums_same_id(sums, at)) {
		struct class_member other = {sums_stack(sums, at), classes, dump};

		if (by_stack(&other, &best) >= 0)
			continue;
		best = other;
		found = at;
	}
	return known[first] = found;
}

/* Afterwards first has moved on by one row. known has room for the stacks of any dump; latest is all
 * zero. */
static void fill(const struct comparison *comparison, const struct stack_classes *classes,
	uint32_t *const *rows, struct members *members, uint32_t *known, struct latest *latest)
{
	static const struct stack stackless = {.id = "0", .same_id = STACK_NONE};

	for (uint32_t dump = (uint32_t)comparison->dump_count; dump--;) {
		const struct dump_sums *sums = &comparison->dumps[dump];
		struct cell_walk walk = stack_totals_walk(sums);
		const struct stack_total *cell;

		memset(known, 0xff, sums->stacks.count * sizeof(*known)); /* STACK_NONE */
		for (size_t i = 0; (cell = stack_totals_next(&walk)); i++) {
			uint32_t stack = cell->stack, row = rows[dump][i];

			if (row == ROW_NONE || !is_needed(sums, cell, dump, &latest[row]))
				continue;
			if (cell->is_bare)
				stack = representative(classes, dump, stack, known);
			members->list[members->first[row]++] = (struct class_member){
				stack == STACK_NONE ? &stackless : sums_stack(sums, stack), classes,
				dump};
		}
	}
}

void rows_label(
	struct comparison *comparison, const struct stack_classes *classes, uint32_t *const *rows)
{
	struct members members = {
		.first = xcalloc(comparison->row_count + 1, sizeof(*members.first))};
	struct latest *latest = xcalloc(comparison->row_count + 1, sizeof(*latest));
	size_t total = place(comparison, rows, &members, latest), most_stacks = 0;
	const char **ids = arena_alloc(&comparison->arena, total * sizeof(*ids));
	uint32_t *known;

	for (size_t i = 0; i < comparison->dump_count; i++) {
		if (comparison->dumps[i].stacks.count > most_stacks)
			most_stacks = comparison->dumps[i].stacks.count;
	}
	known = xcalloc(most_stacks, sizeof(*known));
	members.list = xcalloc(total, sizeof(*members.list));
	memset(latest, 0, comparison->row_count * sizeof(*latest));
	fill(comparison, classes, rows, &members, known, latest);
	for (size_t i = 0, from = 0; i < comparison->row_count; from = members.first[i++])
		label(classes, &comparison->rows[i], members.list + from, members.first[i] - from,
			ids + from);
	free(known);
	free(latest);
	free(members.list);
	free(members.first);
}
