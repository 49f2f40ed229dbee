#include "diff/match.h"

#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "core/table.h"
#include "diff/modules.h"

/* One dump's stack and the row it went to. */
struct member {
	uint32_t row, dump, stack;
	const char *id;
};

struct matcher {
	struct comparison *to;
	uint32_t **ranks;
	struct table rows; /* by key */
	size_t cap;
	struct buf key; /* of uint64_t */
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
	size_t count = comparison->dump_count;

	return subtract(comparison->dumps[count - 1].total,
		count > 1 ? comparison->dumps[0].total : (struct census){0});
}

static int key_add(struct buf *key, uint64_t number)
{
	return buf_add(key, &number, sizeof(number));
}

/* Modules come first and count from 1; an address in none is in module 0. */
static int key_add_frame(struct matcher *matcher, size_t dump, uint64_t addr)
{
	const struct sums *sums = &matcher->to->dumps[dump];
	const struct module *module = sums_module_at(sums, addr);
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
	if (!rc && kind == ROW_UNKNOWN)
		return key_add_id(&matcher->key, stack->id);
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

/* Counts sums to the row of a stack; a stack seen before has one. */
static int stack_match(struct matcher *matcher, size_t dump, const struct stack *stack,
	const struct census *sums, uint32_t *index)
{
	int rc = key_make(matcher, dump, stack);
	struct census *to;
	uint64_t *known;

	if (rc)
		return rc;
	known = table_find(&matcher->rows, matcher->key.data, matcher->key.len);
	if (known)
		*index = (uint32_t)*known;
	else if (row_add(matcher, index))
		return -ERR_NOMEM;
	to = &matcher->to->rows[*index].of[dump];
	to->block_count += sums->block_count;
	to->requested_bytes += sums->requested_bytes;
	to->overhead_bytes += sums->overhead_bytes;
	return 0;
}

static int member_add(struct matcher *matcher, struct member member)
{
	if (array_grow((void **)&matcher->members, &matcher->member_cap, matcher->member_count,
		    sizeof(member)))
		return -ERR_NOMEM;
	matcher->members[matcher->member_count++] = member;
	return 0;
}

static int dump_match(struct matcher *matcher, size_t dump)
{
	static const struct stack stackless = {.id = "0", .same_id = STACK_NONE};
	const struct sums *sums = &matcher->to->dumps[dump];
	struct member member = {.dump = (uint32_t)dump, .stack = STACK_NONE, .id = stackless.id};
	int rc = 0;

	for (uint32_t i = 0; !rc && i < sums->stacks.count; i++) {
		const struct stack *stack = &sums->stacks.stacks[i];
		struct member own = {0, (uint32_t)dump, i, stack->id};

		if (!sums->by_stack[i].block_count)
			continue; /* its entries were counted to another stack */
		rc = stack_match(matcher, dump, stack, &sums->by_stack[i], &own.row);
		if (!rc)
			rc = member_add(matcher, own);
	}
	if (rc || !sums->stackless.block_count)
		return rc;
	rc = stack_match(matcher, dump, &stackless, &sums->stackless, &member.row);
	return rc ? rc : member_add(matcher, member);
}

/* Ids as hexadecimal numbers of any length. */
static int by_id(const char *a, const char *b)
{
	size_t x = strlen(a), y = strlen(b);

	return x != y ? (x < y ? -1 : 1) : strcmp(a, b);
}

/* Equal ids side by side, the newest dump's first. */
static int by_row_and_id(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	int order;

	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	order = by_id(x->id, y->id);
	if (order)
		return order;
	if (x->dump != y->dump)
		return x->dump > y->dump ? -1 : 1;
	return x->stack < y->stack ? -1 : x->stack > y->stack;
}

/* The newest dump's ids first; nothing here depends on the order of blocks in a dump. */
static int by_row_and_dump(const void *a, const void *b)
{
	const struct member *x = a, *y = b;

	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	if (x->dump != y->dump)
		return x->dump > y->dump ? -1 : 1;
	return by_row_and_id(a, b);
}

/* Keeps one member for each id of a row. */
static void members_unite(struct matcher *matcher)
{
	struct member *members = matcher->members;
	size_t kept = 0;

	if (!matcher->member_count)
		return;
	qsort(members, matcher->member_count, sizeof(*members), by_row_and_id);
	for (size_t i = 0; i < matcher->member_count; i++) {
		if (!kept || members[kept - 1].row != members[i].row ||
			strcmp(members[kept - 1].id, members[i].id) != 0)
			members[kept++] = members[i];
	}
	matcher->member_count = kept;
	qsort(members, kept, sizeof(*members), by_row_and_dump);
}

/* Gives each row its ids, its stack and the dump to show it from. */
static int rows_label(struct matcher *matcher)
{
	struct comparison *to = matcher->to;
	const char **ids;

	members_unite(matcher);
	ids = arena_alloc(&to->arena, (matcher->member_count + 1) * sizeof(*ids));
	if (!ids)
		return -ERR_NOMEM;
	for (size_t i = 0; i < matcher->member_count; i++) {
		const struct member *member = &matcher->members[i];
		struct row *row = &to->rows[member->row];

		if (!row->dump) {
			row->dump = &to->dumps[member->dump];
			if (row->kind <= ROW_AMBIGUOUS)
				row->stack = &row->dump->stacks.stacks[member->stack];
			row->ids = &ids[i];
		}
		ids[i] = member->id;
		row->id_count++;
	}
	return 0;
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

int comparison_make(struct comparison *comparison, const struct sums *dumps, size_t dump_count)
{
	struct matcher matcher = {.to = comparison};
	int rc;

	*comparison = (struct comparison){.dumps = dumps, .dump_count = dump_count};
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
