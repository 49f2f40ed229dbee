#include "diff/read/stack_store.h"

#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "core/thread.h"
#include "diff/match/hash_index.h"

struct stack_store {
	struct thread_lock *lock; /* of all of it */
	struct hash_index index;
	struct stack *stacks;
	size_t count, cap;
	struct arena arena;
};

struct stack_store *stack_store_new(void)
{
	struct stack_store *store = calloc(1, sizeof(*store));

	if (!store)
		return NULL;
	hash_index_init(&store->index);
	arena_init(&store->arena);
	store->lock = thread_lock_new();
	if (!store->lock) {
		stack_store_free(store);
		return NULL;
	}
	return store;
}

void stack_store_free(struct stack_store *store)
{
	if (!store)
		return;
	thread_lock_free(store->lock);
	hash_index_release(&store->index);
	free(store->stacks);
	arena_release(&store->arena);
	free(store);
}

static uint32_t hash_of(const struct hash_key *key, const struct stack *stack)
{
	struct hasher hasher = hasher_begin(key);

	hasher_add_bytes(&hasher, stack->id, strlen(stack->id));
	hasher_add(&hasher, stack->alias_count);
	for (uint32_t i = 0; i < stack->alias_count; i++)
		hasher_add(&hasher, stack->alias_at[i]);
	for (uint32_t i = 0; i < stack->frame_count; i++)
		hasher_add(&hasher, stack->frames[i]);
	return hasher_end(&hasher);
}

static bool same_words(const void *a, const void *b, size_t bytes)
{
	return !bytes || !memcmp(a, b, bytes);
}

static bool is_same(const struct stack *a, const struct stack *b)
{
	return a->frame_count == b->frame_count && a->alias_count == b->alias_count &&
	       !a->frames == !b->frames && !strcmp(a->id, b->id) &&
	       same_words(a->frames, b->frames, a->frame_count * sizeof(*a->frames)) &&
	       same_words(a->alias_at, b->alias_at, a->alias_count * sizeof(*a->alias_at));
}

/* Bytes of their own; NULL for none is not an error. */
static int copy(struct stack_store *store, const void *bytes, size_t len, const void **own)
{
	void *to = bytes ? arena_alloc(&store->arena, len + !len) : NULL;

	if (bytes && !to)
		return -ERR_NOMEM;
	if (len && to)
		memcpy(to, bytes, len);
	*own = to;
	return 0;
}

static int add(
	struct stack_store *store, uint32_t hash, const struct stack *stack, uint32_t *number)
{
	const void *id, *frames, *alias_at;
	struct stack *own;

	if (store->count >= INDEX_NONE - 1 ||
		array_grow((void **)&store->stacks, &store->cap, store->count,
			sizeof(*store->stacks)) ||
		copy(store, stack->id, strlen(stack->id) + 1, &id) ||
		copy(store, stack->frames, stack->frame_count * sizeof(*stack->frames), &frames) ||
		copy(store, stack->alias_count ? stack->alias_at : NULL,
			stack->alias_count * sizeof(*stack->alias_at), &alias_at) ||
		hash_index_add(&store->index, hash, (uint32_t)store->count))
		return -ERR_NOMEM;
	*number = (uint32_t)store->count++;
	own = &store->stacks[*number];
	*own = *stack;
	own->id = id;
	own->frames = frames;
	own->alias_at = alias_at;
	own->same_id = STACK_NONE;
	return 0;
}

static int put(
	struct stack_store *store, uint32_t hash, const struct stack *stack, uint32_t *number)
{
	struct hash_probe probe = hash_index_probe(&store->index, hash);
	uint32_t known;

	while ((known = hash_index_next(&store->index, &probe)) != INDEX_NONE) {
		if (is_same(&store->stacks[known], stack)) {
			*number = known;
			return 0;
		}
	}
	return add(store, hash, stack, number);
}

/* Replaces what a stack points to by what the store has. numbers[] holds hashes, and then numbers. */
static int take(struct stack_store *store, struct stackset *set, uint32_t *numbers)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < set->count; i++) {
		struct stack *stack = &set->stacks[i];
		const struct stack *own;

		if (stack->is_named) {
			numbers[i] = STACK_NONE;
			continue;
		}
		rc = put(store, numbers[i], stack, &numbers[i]);
		if (rc)
			break;
		own = &store->stacks[numbers[i]];
		stack->id = own->id;
		stack->frames = own->frames;
		stack->alias_at = own->alias_at;
	}
	return rc;
}

/* Whether a set's stacks are all in the store, and each the only one under its id. */
static void look_at(const struct stackset *set, bool *are_all_in, bool *are_single)
{
	*are_all_in = *are_single = true;
	for (size_t i = 0; i < set->count; i++) {
		*are_all_in &= !set->stacks[i].is_named;
		*are_single &= set->stacks[i].same_id == STACK_NONE;
	}
}

/* The chains of stacks under one id, which are a dump's own. */
static int keep_chains(struct sums *sums)
{
	const struct stackset *set = &sums->stacks;

	sums->same_id = malloc((set->count + 1) * sizeof(*sums->same_id));
	for (size_t i = 0; sums->same_id && i < set->count; i++)
		sums->same_id[i] = set->stacks[i].same_id;
	return sums->same_id ? 0 : -ERR_NOMEM;
}

/* Gives back what the store has, or what only reading needed. */
static int give_back(struct stack_store *store, struct sums *sums)
{
	struct stackset *set = &sums->stacks;
	bool are_all_in, are_single;

	look_at(set, &are_all_in, &are_single);
	stackset_close(set, are_all_in);
	if (!are_all_in)
		return 0;
	if (!are_single && keep_chains(sums))
		return -ERR_NOMEM;
	free(set->stacks);
	set->stacks = NULL;
	set->cap = 0;
	sums->common = (const struct stack *const *)&store->stacks;
	return 0;
}

/* Gives back what an array has beyond its size; when that cannot be it stays. */
static void fit(void **array, size_t bytes)
{
	void *less = realloc(*array, bytes + !bytes);

	if (less)
		*array = less;
}

int stack_store_take(struct stack_store *store, struct sums *sums)
{
	struct stackset *set = &sums->stacks;
	struct hash_key key = store->index.key;
	int rc;

	fit((void **)&sums->cells, sums->cell_count * sizeof(*sums->cells));
	fit((void **)&set->stacks, set->count * sizeof(*set->stacks));
	set->cap = set->count;
	sums->shared = malloc((set->count + 1) * sizeof(*sums->shared));
	if (!sums->shared)
		return -ERR_NOMEM;
	for (size_t i = 0; i < set->count; i++)
		sums->shared[i] = set->stacks[i].is_named ? 0 : hash_of(&key, &set->stacks[i]);
	thread_lock_take(store->lock);
	rc = take(store, set, sums->shared);
	thread_lock_leave(store->lock);
	return rc ? rc : give_back(store, sums);
}
