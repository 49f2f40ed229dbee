#include "diff/match.h"

#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "core/table.h"
#include "diff/modules.h"

/* One dump's stack and the row it went to. */
struct member {
	uint32_t row, dump;
	const struct stack *stack; /* its id, and its frames if there are any */
};

struct matcher {
	struct comparison *to;
	uint32_t **ranks;
	struct table rows; /* by key */
	size_t cap;
	struct buf key; /* of uint64_t */
	uint32_t *row_of; /* each stack of the dump at hand */
	struct member *members;
	size_t member_count, member_cap;
};

static struct delta subtract(struct census new, struct census old)
{
	/* Each is at most INT64_MAX, see sum.c. */
	return (struct delta){(int64_t) new.block_count - (int64_t)old.block_count,
		(int64_t) new.requested_bytes - (int64_t)old.requested_bytes,
		(int64_t) new.overhead_bytes - (int64_t)old.overhead_bytes};
}

struct census row_new(const struct comparison *comparison, const struct row *row)
{
	return row->of[comparison->dump_count - 1];
}

struct census row_old(const struct comparison *comparison, const struct row *row)
{
	return comparison->dump_count > 1 ? row->of[0] : (struct census){0};
}

struct delta row_delta(const struct comparison *comparison, const struct row *row)
{
	return subtract(row_new(comparison, row), row_old(comparison, row));
}

struct delta comparison_delta(const struct comparison *comparison)
{
	return subtract(comparison->new_total, comparison->old_total);
}

static int key_add(struct buf *key, uint64_t number)
{
	return buf_add(key, &number, sizeof(number));
}

/* Modules come first and count from 1; an address in none is in module 0. */
static int key_add_frame(struct matcher *matcher, size_t dump, uint64_t addr)
{
	const struct sums *sums = &matcher->to->dumps[dump];
	const struct module *module = module_of_return(sums->modules, sums->module_count, addr);
	uint64_t rank = module ? (uint64_t)matcher->ranks[dump][module - sums->modules] + 1 : 0;
	int rc = key_add(&matcher->key, rank);

	return rc ? rc : key_add(&matcher->key, module ? addr - module->base : addr);
}

/* An id as numbers that compare like hexadecimal numbers without leading zeros do. */
static int key_add_id(struct buf *key, const char *id)
{
	size_t len = strlen(id);
	int rc = key_add(key, len);

	for (size_t at = 0; !rc && at < len; at += 8) {
		uint64_t word = 0;

		for (size_t i = at; i < at + 8; i++)
			word = word << 8 | (i < len ? (unsigned char)id[i] : 0);
		rc = key_add(key, word);
	}
	return rc;
}

/* True when both dumps tell, and tell of two processes. */
static bool is_other_process(const struct sums *a, const struct sums *b)
{
	return a->pid && b->pid && a->start_ms && b->start_ms &&
	       (a->pid != b->pid || a->start_ms != b->start_ms);
}

/* An id without a stack means something in its own process only: the first dump of that one. */
static int key_add_process(struct matcher *matcher, size_t dump)
{
	const struct sums *dumps = matcher->to->dumps;
	size_t first = 0;

	while (is_other_process(&dumps[first], &dumps[dump]))
		first++;
	return key_add(&matcher->key, first);
}

static enum row_kind kind_of(const struct stack *stack)
{
	if (stack->frame_count)
		return stack->alias_count ? ROW_AMBIGUOUS : ROW_STACK;
	/* UMDH's id of blocks that it has no stack for. */
	return stack->id[strspn(stack->id, "0")] ? ROW_UNKNOWN : ROW_STACKLESS;
}

static int key_make(struct matcher *matcher, size_t dump, const struct stack *stack)
{
	enum row_kind kind = kind_of(stack);
	int rc;

	buf_clear(&matcher->key);
	rc = key_add(&matcher->key, kind);
	if (!rc && kind == ROW_UNKNOWN) {
		rc = key_add_id(&matcher->key, stack->id);
		return rc ? rc : key_add_process(matcher, dump);
	}
	if (!rc && kind == ROW_AMBIGUOUS)
		rc = key_add(&matcher->key, stack->alias_count);
	for (uint32_t i = 0; !rc && kind == ROW_AMBIGUOUS && i < stack->alias_count; i++)
		rc = key_add(&matcher->key, stack->alias_at[i]);
	for (uint32_t i = 0; !rc && i < stack->frame_count; i++)
		rc = key_add_frame(matcher, dump, stack->frames[i]);
	return rc;
}

static int row_add(struct matcher *matcher, uint32_t *index)
{
	struct comparison *to = matcher->to;
	struct row row = {.key_len = matcher->key.len / sizeof(*row.key)};
	uint64_t *key = arena_alloc(&to->arena, matcher->key.len);

	row.of = arena_alloc(&to->arena, to->dump_count * sizeof(*row.of));
	if (!key || !row.of || to->row_count >= UINT32_MAX ||
		array_grow((void **)&to->rows, &matcher->cap, to->row_count, sizeof(row)) ||
		table_add(&matcher->rows, matcher->key.data, matcher->key.len, to->row_count))
		return -ERR_NOMEM;
	memcpy(key, matcher->key.data, matcher->key.len);
	row.key = key;
	row.kind = (enum row_kind)key[0];
	*index = (uint32_t)to->row_count;
	to->rows[to->row_count++] = row;
	return 0;
}

/* Finds or makes the row that the matcher's key stands for. */
static int row_put(struct matcher *matcher, uint32_t *index)
{
	uint64_t *known = table_find(&matcher->rows, matcher->key.data, matcher->key.len);

	if (!known)
		return row_add(matcher, index);
	*index = (uint32_t)*known;
	return 0;
}

/* Counts sums of a stack to its row. */
static int member_add(
	struct matcher *matcher, const struct member *member, const struct census *sums)
{
	struct census *to = &matcher->to->rows[member->row].of[member->dump];

	if (array_grow((void **)&matcher->members, &matcher->member_cap, matcher->member_count,
		    sizeof(*member)))
		return -ERR_NOMEM;
	matcher->members[matcher->member_count++] = *member;
	to->block_count += sums->block_count;
	to->requested_bytes += sums->requested_bytes;
	to->overhead_bytes += sums->overhead_bytes;
	return 0;
}

/* The row of a stack. */
static int stack_match(
	struct matcher *matcher, size_t dump, const struct stack *stack, uint32_t *row)
{
	int rc = key_make(matcher, dump, stack);

	return rc ? rc : row_put(matcher, row);
}

static int by_content(const struct row *a, const struct row *b)
{
	size_t len = a->key_len < b->key_len ? a->key_len : b->key_len;

	for (size_t i = 0; i < len; i++) {
		if (a->key[i] != b->key[i])
			return a->key[i] < b->key[i] ? -1 : 1;
	}
	return a->key_len < b->key_len ? -1 : a->key_len > b->key_len;
}

static int by_row_content(const void *a, const void *b)
{
	return by_content(a, b);
}

/* The rows of all stacks under the id of stack number first, each once, in an order of their own.
 * How many, or 0: out of memory. */
static size_t candidates(const struct matcher *matcher, const struct stackset *stacks,
	uint32_t first, struct row **all)
{
	size_t count = 0, kept = 0, cap = 0;

	for (uint32_t at = first; at != STACK_NONE; at = stacks->stacks[at].same_id) {
		if (array_grow((void **)all, &cap, count, sizeof(**all)))
			return 0;
		(*all)[count++] = matcher->to->rows[matcher->row_of[at]];
	}
	qsort(*all, count, sizeof(**all), by_row_content);
	for (size_t i = 0; i < count; i++) {
		if (!kept || (*all)[kept - 1].key != (*all)[i].key)
			(*all)[kept++] = (*all)[i];
	}
	return kept;
}

/* Entries that name only the id of stack number first, where that has several stacks. */
static int bare_match(
	struct matcher *matcher, size_t dump, uint32_t first, const struct census *sums)
{
	const struct stackset *stacks = &matcher->to->dumps[dump].stacks;
	struct member member = {matcher->row_of[first], (uint32_t)dump, &stacks->stacks[first]};
	struct row *all = NULL;
	size_t count = candidates(matcher, stacks, first, &all);
	int rc = count ? 0 : -ERR_NOMEM;

	if (count > 1) { /* else all of them are one row */
		buf_clear(&matcher->key);
		rc = key_add(&matcher->key, ROW_ONE_OF);
		for (size_t i = 0; !rc && i < count; i++) {
			rc = key_add(&matcher->key, all[i].key_len);
			if (!rc)
				rc = buf_add(&matcher->key, all[i].key,
					all[i].key_len * sizeof(*all[i].key));
		}
		if (!rc)
			rc = row_put(matcher, &member.row);
		if (!rc)
			matcher->to->rows[member.row].candidate_count = count;
	}
	free(all);
	return rc ? rc : member_add(matcher, &member, sums);
}

static int dump_match(struct matcher *matcher, size_t dump)
{
	static const struct stack stackless = {.id = "0", .same_id = STACK_NONE};
	const struct sums *sums = &matcher->to->dumps[dump];
	uint32_t row;
	int rc = 0;

	matcher->row_of = calloc(sums->stacks.count + 1, sizeof(*matcher->row_of));
	if (!matcher->row_of)
		return -ERR_NOMEM;
	for (uint32_t i = 0; !rc && i < sums->stacks.count; i++)
		rc = stack_match(matcher, dump, &sums->stacks.stacks[i], &matcher->row_of[i]);
	for (size_t i = 0; !rc && i < sums->cell_count; i++) {
		const struct cell *cell = &sums->cells[i];
		const struct stack *stack = &stackless;

		if (cell->is_bare) {
			rc = bare_match(matcher, dump, cell->stack, &cell->sums);
			continue;
		}
		if (cell->stack == STACK_NONE) {
			rc = stack_match(matcher, dump, stack, &row);
		} else {
			stack = &sums->stacks.stacks[cell->stack];
			row = matcher->row_of[cell->stack];
		}
		if (!rc)
			rc = member_add(
				matcher, &(struct member){row, (uint32_t)dump, stack}, &cell->sums);
	}
	free(matcher->row_of);
	return rc;
}

/* Ids as hexadecimal numbers of any length. */
static int by_id(const char *a, const char *b)
{
	size_t x = strlen(a), y = strlen(b);

	return x != y ? (x < y ? -1 : 1) : strcmp(a, b);
}

/* Stacks of one id, one row and one dump: those of a module that is loaded twice. */
static int by_frames(const struct stack *a, const struct stack *b)
{
	for (uint32_t i = 0; i < a->frame_count && i < b->frame_count; i++) {
		if (a->frames[i] != b->frames[i])
			return a->frames[i] < b->frames[i] ? -1 : 1;
	}
	return a->frame_count < b->frame_count ? -1 : a->frame_count > b->frame_count;
}

/* Equal ids side by side, the newest dump's first. Nothing here depends on the order of blocks in
 * a dump but the numbers of the rows, which only keep them apart. */
static int by_row_and_id(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	int order;

	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	order = by_id(x->stack->id, y->stack->id);
	if (order)
		return order;
	if (x->dump != y->dump)
		return x->dump > y->dump ? -1 : 1;
	return by_frames(x->stack, y->stack);
}

/* The newest dump's ids first. */
static int by_row_and_dump(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	if (x->dump != y->dump)
		return x->dump > y->dump ? -1 : 1;
	return by_row_and_id(a, b);
}

/* Gives each row its stack and the dumps to show it from. */
static void rows_show(struct matcher *matcher)
{
	struct comparison *to = matcher->to;

	for (size_t i = 0; i < matcher->member_count; i++) {
		const struct member *member = &matcher->members[i];
		const struct sums *dump = &to->dumps[member->dump];
		struct row *row = &to->rows[member->row];
		const struct stack *stack = row->kind <= ROW_AMBIGUOUS ? member->stack : NULL;

		if (!row->dump) {
			row->dump = dump;
			row->stack = stack;
		} else if (!row->older_dump && row->dump != dump) {
			row->older_dump = dump;
			row->older_stack = stack;
		}
	}
}

/* Keeps one member for each id of a row. */
static void members_unite(struct matcher *matcher)
{
	struct member *members = matcher->members;
	size_t kept = 0;

	qsort(members, matcher->member_count, sizeof(*members), by_row_and_id);
	for (size_t i = 0; i < matcher->member_count; i++) {
		if (!kept || members[kept - 1].row != members[i].row ||
			strcmp(members[kept - 1].stack->id, members[i].stack->id) != 0)
			members[kept++] = members[i];
	}
	matcher->member_count = kept;
	qsort(members, kept, sizeof(*members), by_row_and_dump);
}

/* Gives each row its ids and what it is shown by. */
static int rows_label(struct matcher *matcher)
{
	struct comparison *to = matcher->to;
	const char **ids;

	if (!matcher->member_count)
		return 0;
	qsort(matcher->members, matcher->member_count, sizeof(*matcher->members), by_row_and_dump);
	rows_show(matcher);
	members_unite(matcher);
	ids = arena_alloc(&to->arena, matcher->member_count * sizeof(*ids));
	if (!ids)
		return -ERR_NOMEM;
	for (size_t i = 0; i < matcher->member_count; i++) {
		const struct member *member = &matcher->members[i];
		struct row *row = &to->rows[member->row];

		if (!row->ids)
			row->ids = &ids[i];
		ids[i] = member->stack->id;
		row->id_count++;
	}
	return 0;
}

struct sorted {
	struct row row;
	struct delta delta;
};

static int by_growth(const void *a, const void *b)
{
	const struct sorted *x = a, *y = b;

	if (x->delta.requested_bytes != y->delta.requested_bytes)
		return x->delta.requested_bytes > y->delta.requested_bytes ? -1 : 1;
	if (x->delta.block_count != y->delta.block_count)
		return x->delta.block_count > y->delta.block_count ? -1 : 1;
	return by_content(&x->row, &y->row);
}

/* Drops the rows that cancel and sorts the others. */
static int rows_sort(struct comparison *comparison)
{
	struct sorted *sorted = calloc(comparison->row_count + 1, sizeof(*sorted));
	size_t count = 0;

	if (!sorted)
		return -ERR_NOMEM;
	for (size_t i = 0; i < comparison->row_count; i++) {
		struct row *row = &comparison->rows[i];
		struct delta delta = row_delta(comparison, row);

		if (delta.requested_bytes || delta.block_count)
			sorted[count++] = (struct sorted){*row, delta};
	}
	qsort(sorted, count, sizeof(*sorted), by_growth);
	for (size_t i = 0; i < count; i++)
		comparison->rows[i] = sorted[i].row;
	comparison->row_count = count;
	free(sorted);
	return 0;
}

int comparison_make(struct comparison *comparison, const struct sums *dumps, size_t dump_count,
	const struct match_request *request)
{
	struct matcher matcher = {.to = comparison};
	int rc;

	(void)request;
	*comparison = (struct comparison){.dumps = dumps,
		.dump_count = dump_count,
		.new_total = dumps[dump_count - 1].total,
		.has_overhead = true};
	if (dump_count > 1)
		comparison->old_total = dumps[0].total;
	arena_init(&comparison->arena);
	table_init(&matcher.rows);
	buf_init(&matcher.key);
	matcher.ranks = modules_rank(dumps, dump_count, &comparison->arena);
	rc = matcher.ranks ? 0 : -ERR_NOMEM;
	for (size_t i = 0; !rc && i < dump_count; i++)
		rc = dump_match(&matcher, i);
	if (!rc)
		rc = rows_label(&matcher);
	if (!rc)
		rc = rows_sort(comparison);
	free(matcher.members);
	buf_release(&matcher.key);
	table_release(&matcher.rows);
	return rc;
}

void comparison_release(struct comparison *comparison)
{
	free(comparison->rows);
	arena_release(&comparison->arena);
	*comparison = (struct comparison){0};
}
