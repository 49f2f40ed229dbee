/* Labels of rows: ids, and the stack and dumps that provide the frames. The members of a row are
 * the stacks that form it, collected from the newest dump to the oldest. */
#include "diff/match/match_parts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "diff/read/stack_store.h"

/* A stack of one dump that belongs to a row. */
struct class_member {
	const struct stack *stack; /* provides the id and, if they are known, the frames */
	const struct stack_classes *classes;
	uint32_t dump;
};

/* Compares frames as recorded in the dumps: addresses as numbers, texts as strings. */
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

/* Compares by id, then by dump, newest first. */
static int by_id(const void *a, const void *b)
{
	const struct class_member *x = a, *y = b;
	int order = x->stack->id == y->stack->id ? 0 : stack_id_order(x->stack->id, y->stack->id);

	if (!order)
		order = number_order(y->dump, x->dump);
	return order ? order : frames_order(x, y);
}

/* Compares by dump, newest first, then by id. */
static int by_dump(const void *a, const void *b)
{
	const struct class_member *x = a, *y = b;

	return x->dump != y->dump ? number_order(y->dump, x->dump) : by_id(a, b);
}

/* Compares by stack, then by dump, newest first. Stacks without frames come last. */
static int by_stack(const void *a, const void *b)
{
	const struct class_member *x = a, *y = b;
	int order = number_order(!x->stack->frame_count, !y->stack->frame_count);

	if (!order)
		order = stack_order(x->classes, x->dump, x->stack, y->dump, y->stack);
	return order ? order : by_dump(a, b);
}

/* Compares by dump, newest first, then by stack. Stacks without frames come last. */
static int by_newest_stack(const void *a, const void *b)
{
	const struct class_member *x = a, *y = b;
	int order = number_order(!x->stack->frame_count, !y->stack->frame_count);

	if (!order)
		order = number_order(y->dump, x->dump);
	return order ? order : by_stack(a, b);
}

/* Sorts members. Most rows have few members, which are already in order. */
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

/* Chooses the stack to show for a row of mode MATCH_ID. */
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

/* Chooses the stack to show for a row, and the dumps that provide it. If an id has several stacks,
 * uses only the newest dump, because an older dump may have a different stack. */
static void show(struct row *row, const struct class_member *members, size_t count)
{
	bool is_shown = row->kind == ROW_STACK || row->kind == ROW_AMBIGUOUS;

	row->dump = row->older_dump = members->dump;
	row->stack = is_shown ? members->stack : NULL;
	if (is_shown && stackless_is(members->stack))
		row->kind = ROW_STACKLESS;
	for (size_t i = 1; i < count && row->id_stack_count < 2; i++) {
		if (members[i].dump == members->dump ||
			(is_shown && !members[i].stack->frame_count))
			continue;
		row->older_dump = members[i].dump;
		return;
	}
}

/* Keeps only the first member with each id, and returns the number of remaining members. */
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
	struct class_member *members, size_t count, struct arena *arena)
{
	const char **ids;

	assert(count && members->stack);
	if (classes->mode == MATCH_ID && row->kind == ROW_STACK)
		choose_by_id(row, members, count);
	else
		members_sort(members, count, by_dump);
	show(row, members, count);
	row->id_count = (uint32_t)unite(members, count);
	row->ids = &members->stack->id;
	if (row->id_count < 2)
		return;
	row->ids = ids = arena_alloc(arena, row->id_count * sizeof(*ids));
	for (size_t i = 0; i < row->id_count; i++)
		ids[i] = members[i].stack->id;
}

/* A member of a row other than the first. Until the row is labelled, the first member is stored in
 * the row's own fields `dump` and `stack`. */
struct further_member {
	const struct stack *stack;
	uint32_t dump;
	/* index of the further member added before to the same row, or CELL_NONE; its dump is the
	 * same or newer */
	uint32_t before;
};

/* The members added last to a row, as long as they have the same stack in the stack store. `shared`
 * is the number of this stack in the store, or STACK_NONE. `dump` is the dump of the last member.
 * `dump_count` is the number of dumps with these members. */
struct common_run {
	uint32_t shared, dump, dump_count;
};

struct linking {
	struct comparison *comparison;
	const struct stack_classes *classes;
	struct further_member *further;
	size_t count, cap;
	uint32_t *last; /* indexed by row: index of the row's last further member */
	struct common_run *runs; /* indexed by row; NULL: dumps share no stacks */
};

static uint32_t shared_number(const struct dump_sums *sums, const struct stack_total *cell)
{
	if (!sums->shared || cell->stack == STACK_NONE || cell->is_bare)
		return STACK_NONE;
	return sums->shared[cell->stack];
}

/* Returns true if a cell's stack must be added to the members of its row. A row shows at most two
 * dumps. If consecutive members have the same stack in the store, one member from each of two dumps
 * is enough. */
static bool is_needed(struct common_run *run, uint32_t dump, uint32_t shared)
{
	bool is_same = shared != STACK_NONE && shared == run->shared;

	if (is_same && (dump == run->dump || run->dump_count > 1))
		return false;
	*run = (struct common_run){shared, dump, is_same ? run->dump_count + 1 : 1};
	return true;
}

static void member_add(
	struct linking *linking, uint32_t number, const struct stack *stack, uint32_t dump)
{
	struct row *row = &linking->comparison->rows[number];

	if (!row->stack) {
		row->stack = stack;
		row->dump = dump;
		return;
	}
	if (linking->count >= CELL_NONE)
		memory_out();
	array_grow((void **)&linking->further, &linking->cap, linking->count,
		sizeof(*linking->further));
	linking->further[linking->count] =
		(struct further_member){stack, dump, linking->last[number]};
	linking->last[number] = (uint32_t)linking->count++;
}

/* Chooses one of the stacks that have the same id, starting at `first`, and returns it. The choice
 * does not depend on the order of the stacks. Caches results in `known`. */
static uint32_t representative(
	const struct stack_classes *classes, uint32_t dump, uint32_t first, struct u64map *known)
{
	const struct dump_sums *sums = &classes->dumps[dump];
	struct class_member best = {sums_stack(sums, first), classes, dump};
	uint32_t found = first;

	if (u64map_find(known, first, &found))
		return found;
	for (uint32_t at = sums_same_id(sums, first); at != STACK_NONE;
		at = sums_same_id(sums, at)) {
		struct class_member other = {sums_stack(sums, at), classes, dump};

		if (by_stack(&other, &best) >= 0)
			continue;
		best = other;
		found = at;
	}
	u64map_add(known, first, &found);
	return found;
}

#define PREFETCH_AHEAD 16 /* in cells */

/* Adds the stacks of a dump's cells to their rows. Must be called for newer dumps first. */
static void dump_link(struct linking *linking, uint32_t dump, const uint32_t *rows)
{
	static const struct stack stackless = {.id = "0", .same_id = STACK_NONE};
	const struct dump_sums *sums = &linking->comparison->dumps[dump];
	struct cell_walk walk = stack_totals_walk(sums);
	const struct stack_total *cell;
	struct u64map known;

	u64map_init(&known);
	for (; (cell = stack_totals_next(&walk)); rows++) {
		uint32_t stack = cell->stack;

		if (walk.left >= PREFETCH_AHEAD && rows[PREFETCH_AHEAD] != ROW_NONE)
			__builtin_prefetch(&linking->comparison->rows[rows[PREFETCH_AHEAD]], 1);
		if (*rows == ROW_NONE || (linking->runs && !is_needed(&linking->runs[*rows], dump,
								   shared_number(sums, cell))))
			continue;
		if (cell->is_bare)
			stack = representative(linking->classes, dump, stack, &known);
		member_add(linking, *rows,
			stack == STACK_NONE ? &stackless : sums_stack(sums, stack), dump);
	}
	u64map_release(&known);
}

void rows_label(
	struct comparison *comparison, const struct stack_classes *classes, uint32_t *const *rows)
{
	size_t row_count = comparison->row_count, cap = 0;
	struct linking linking = {.comparison = comparison,
		.classes = classes,
		.last = xmalloc(row_count * sizeof(*linking.last))};
	struct class_member *members = NULL;

	memset(linking.last, 0xff, row_count * sizeof(*linking.last)); /* CELL_NONE */
	if (comparison->dumps->shared) {
		linking.runs = xmalloc(row_count * sizeof(*linking.runs));
		memset(linking.runs, 0xff, row_count * sizeof(*linking.runs));
	}
	for (uint32_t dump = (uint32_t)comparison->dump_count; dump--;)
		dump_link(&linking, dump, rows[dump]);
	for (size_t i = 0; i < row_count; i++) {
		struct row *row = &comparison->rows[i];
		struct further_member member = {row->stack, row->dump, linking.last[i]};
		size_t count = 0;

		for (;; member = linking.further[member.before]) {
			array_grow((void **)&members, &cap, count, sizeof(*members));
			members[count++] =
				(struct class_member){member.stack, classes, member.dump};
			if (!linking.further || member.before == CELL_NONE)
				break;
		}
		label(classes, row, members, count, &comparison->arena);
	}
	free(members);
	free(linking.further);
	free(linking.last);
	free(linking.runs);
}
