#include "core/stackset.h"

#include <stdlib.h>
#include <string.h>

#include "core/buf.h"

void stackset_init(struct stackset *set)
{
	*set = (struct stackset){.last = STACK_NONE};
	arena_init(&set->arena);
	table_init(&set->ids);
}

void stackset_release(struct stackset *set)
{
	free(set->stacks);
	table_release(&set->ids);
	arena_release(&set->arena);
	stackset_init(set);
}

static int fill(struct stackset *set, struct stack *stack, const struct stack *wanted)
{
	size_t frame_bytes = wanted->frame_count * sizeof(*wanted->frames);
	size_t alias_bytes = wanted->alias_count * sizeof(*wanted->alias_at);
	uint64_t *frames = arena_alloc(&set->arena, frame_bytes + 1);
	uint32_t *alias_at = arena_alloc(&set->arena, alias_bytes + 1);

	if (!frames || !alias_at)
		return -ERR_NOMEM;
	memcpy(frames, wanted->frames, frame_bytes);
	if (alias_bytes)
		memcpy(alias_at, wanted->alias_at, alias_bytes);
	stack->frames = frames;
	stack->frame_count = wanted->frame_count;
	stack->alias_at = alias_at;
	stack->alias_count = wanted->alias_count;
	return 0;
}

static int same_frames(const struct stack *a, const struct stack *b)
{
	return a->frame_count == b->frame_count && a->alias_count == b->alias_count &&
	       !memcmp(a->frames, b->frames, a->frame_count * sizeof(*a->frames)) &&
	       (!a->alias_count ||
		       !memcmp(a->alias_at, b->alias_at, a->alias_count * sizeof(*a->alias_at)));
}

static int add(struct stackset *set, const struct stack *wanted, size_t id_len, uint32_t *index)
{
	struct stack stack = {.same_id = STACK_NONE};

	if (set->count >= STACK_NONE - 1 ||
		array_grow((void **)&set->stacks, &set->cap, set->count, sizeof(stack)))
		return -ERR_NOMEM;
	stack.id = arena_text(&set->arena, wanted->id, id_len);
	if (!stack.id || (wanted->frames && fill(set, &stack, wanted)))
		return -ERR_NOMEM;
	*index = (uint32_t)set->count;
	set->stacks[set->count++] = stack;
	return 0;
}

/* Among the stacks under one id, starting at first: the one wanted, or a new one behind them. */
static int choose(struct stackset *set, uint32_t first, const struct stack *wanted, size_t id_len,
	uint32_t *index)
{
	uint32_t at = first, added;

	if (!set->stacks[first].frames) {
		*index = first;
		return fill(set, &set->stacks[first], wanted);
	}
	for (;;) {
		if (same_frames(&set->stacks[at], wanted)) {
			*index = at;
			return 0;
		}
		if (set->stacks[at].same_id == STACK_NONE)
			break;
		at = set->stacks[at].same_id;
	}
	if (add(set, wanted, id_len, &added))
		return -ERR_NOMEM;
	set->stacks[at].same_id = added;
	*index = added;
	return 0;
}

static int is_last(const struct stackset *set, const struct stack *wanted, size_t id_len)
{
	const char *id = set->last == STACK_NONE ? NULL : set->stacks[set->last].id;

	return id && !strncmp(id, wanted->id, id_len) && !id[id_len];
}

int stackset_put(struct stackset *set, const struct stack *wanted, size_t id_len, uint32_t *index)
{
	uint64_t *known;
	uint32_t first;

	if (is_last(set, wanted, id_len)) {
		first = set->last;
	} else if ((known = table_find(&set->ids, wanted->id, id_len))) {
		first = (uint32_t)*known;
	} else {
		if (add(set, wanted, id_len, &first) ||
			table_add(&set->ids, wanted->id, id_len, first))
			return -ERR_NOMEM;
	}
	set->last = first;
	*index = first;
	return wanted->frames ? choose(set, first, wanted, id_len, index) : 0;
}
