#include "core/dump/stackset.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

#define NEAR_MAX 16 /* stacks under one id that are compared one by one */

void stackset_init(struct stackset *set)
{
	*set = (struct stackset){.last = STACK_NONE};
	arena_init(&set->arena);
	u64map_init(&set->numbers);
	table_init(&set->ids);
}

void stackset_release(struct stackset *set)
{
	free(set->stacks);
	u64map_release(&set->numbers);
	table_release(&set->ids);
	arena_release(&set->arena);
	stackset_init(set);
}

static void fill(struct stackset *set, struct stack *stack, const struct stack *wanted)
{
	size_t frame_bytes = wanted->frame_count * sizeof(*wanted->frames);
	size_t alias_bytes = wanted->alias_count * sizeof(*wanted->alias_at);
	uint64_t *frames = arena_alloc(&set->arena, frame_bytes + 1);
	uint32_t *alias_at = alias_bytes ? arena_alloc(&set->arena, alias_bytes) : NULL;

	memcpy(frames, wanted->frames, frame_bytes);
	if (alias_bytes)
		memcpy(alias_at, wanted->alias_at, alias_bytes);
	stack->frames = frames;
	stack->frame_count = wanted->frame_count;
	stack->alias_at = alias_at;
	stack->alias_count = wanted->alias_count;
	stack->is_named = wanted->is_named;
}

static bool same_frames(const struct stack *a, const struct stack *b)
{
	return a->is_named == b->is_named && a->frame_count == b->frame_count &&
	       a->alias_count == b->alias_count &&
	       !memcmp(a->frames, b->frames, a->frame_count * sizeof(*a->frames)) &&
	       (!a->alias_count ||
		       !memcmp(a->alias_at, b->alias_at, a->alias_count * sizeof(*a->alias_at)));
}

static uint32_t add(struct stackset *set, const struct stack *wanted, size_t id_len)
{
	struct stack stack = {
		.same_id = STACK_NONE, .id = arena_text(&set->arena, wanted->id, id_len)};

	if (set->count >= STACK_NONE - 1)
		memory_out();
	if (wanted->frames)
		fill(set, &stack, wanted);
	array_grow((void **)&set->stacks, &set->cap, set->count, sizeof(stack));
	set->stacks[set->count] = stack;
	return (uint32_t)set->count++;
}

/* What the table knows a stack by that is far down the list of its id: no id holds a NUL. */
static void long_key(struct buf *key, const struct stack *stack, size_t id_len)
{
	buf_add(key, "", 1);
	buf_add(key, stack->id, id_len);
	buf_add(key, "", 1);
	buf_add(key, stack->is_named ? "n" : "a", 1);
	buf_add(key, &stack->alias_count, sizeof(stack->alias_count));
	buf_add(key, stack->alias_at, stack->alias_count * sizeof(*stack->alias_at));
	buf_add(key, stack->frames, stack->frame_count * sizeof(*stack->frames));
}

/* Finds or adds the stack wanted among those behind the stack at, which are not searched one by
 * one: a damaged dump may have any number of stacks under one id. */
static uint32_t choose_far(
	struct stackset *set, uint32_t at, const struct stack *wanted, size_t id_len)
{
	struct buf key;
	uint64_t *known;
	uint32_t index;

	buf_init(&key);
	long_key(&key, wanted, id_len);
	known = table_find(&set->ids, key.data, key.len);
	if (known) {
		index = (uint32_t)*known;
	} else {
		index = add(set, wanted, id_len);
		table_add(&set->ids, key.data, key.len, index);
		set->stacks[index].same_id = set->stacks[at].same_id;
		set->stacks[at].same_id = index;
	}
	buf_release(&key);
	return index;
}

/* Among the stacks under one id, starting at first: the one wanted, or a new one behind them. */
static uint32_t choose(
	struct stackset *set, uint32_t first, const struct stack *wanted, size_t id_len)
{
	uint32_t at = first, added;

	if (!set->stacks[first].frames) {
		fill(set, &set->stacks[first], wanted);
		return first;
	}
	for (int i = 0;; i++) {
		if (same_frames(&set->stacks[at], wanted))
			return at;
		if (i == NEAR_MAX)
			return choose_far(set, at, wanted, id_len);
		if (set->stacks[at].same_id == STACK_NONE)
			break;
		at = set->stacks[at].same_id;
	}
	added = add(set, wanted, id_len);
	set->stacks[at].same_id = added;
	return added;
}

static bool is_last(const struct stackset *set, const struct stack *wanted, size_t id_len)
{
	const char *id = set->last == STACK_NONE ? NULL : set->stacks[set->last].id;

	return id && !strncmp(id, wanted->id, id_len) && !id[id_len];
}

/* Whether an id is a number in upper case without leading zeros: no other id is the same one. */
static bool is_number(const char *id, size_t len, uint64_t *number)
{
	uint64_t sum = 0;

	if (!len || len > 16 || (*id == '0' && len > 1))
		return false;
	for (size_t i = 0; i < len; i++) {
		if ((id[i] < '0' || id[i] > '9') && (id[i] < 'A' || id[i] > 'F'))
			return false;
		sum = sum << 4 | (uint64_t)(id[i] <= '9' ? id[i] - '0' : id[i] - 'A' + 10);
	}
	*number = sum;
	return true;
}

/* Finds or adds the first stack of an id. */
static uint32_t first_of(struct stackset *set, const struct stack *wanted, size_t id_len)
{
	uint64_t number, *known;
	uint32_t first;

	if (is_number(wanted->id, id_len, &number)) {
		first = (uint32_t)set->count;
		if (u64map_put(&set->numbers, number, &first))
			add(set, wanted, id_len);
		return first;
	}
	known = table_find(&set->ids, wanted->id, id_len);
	if (known)
		return (uint32_t)*known;
	first = add(set, wanted, id_len);
	table_add(&set->ids, wanted->id, id_len, first);
	return first;
}

void stackset_put(struct stackset *set, const struct stack *wanted, size_t id_len, uint32_t *index)
{
	struct stack tidy = *wanted;
	uint32_t *alias_at = NULL;

	if (wanted->frames && wanted->alias_count) {
		tidy.alias_at = alias_at = xcalloc(wanted->alias_count, sizeof(*alias_at));
		tidy.alias_count = 0;
		for (uint32_t i = 0, last = 0; i < wanted->alias_count; i++) {
			/* A candidate has frames behind it and before the next. */
			if (wanted->alias_at[i] > last && wanted->alias_at[i] < wanted->frame_count)
				alias_at[tidy.alias_count++] = last = wanted->alias_at[i];
		}
	}
	if (!is_last(set, &tidy, id_len))
		set->last = first_of(set, &tidy, id_len);
	*index = wanted->frames ? choose(set, set->last, &tidy, id_len) : set->last;
	free(alias_at);
}

void stackset_close(struct stackset *set, bool are_elsewhere)
{
	u64map_release(&set->numbers);
	u64map_init(&set->numbers);
	table_release(&set->ids);
	table_init(&set->ids);
	if (are_elsewhere) {
		arena_release(&set->arena);
		arena_init(&set->arena);
	}
}
