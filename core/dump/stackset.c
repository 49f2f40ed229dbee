/*
 * Stores stacks by id. The stacks of one id form a list. If a list grows long, because a dump is
 * damaged, a hash table of complete stacks replaces the search.
 */
#include "core/dump/stackset.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"

#define NEAR_MAX 16 /* maximum number of stacks of one id that are compared one by one */

void stackset_init(struct stackset *set)
{
	*set = (struct stackset){0};
	arena_init(&set->arena);
	hash_index_init(&set->ids);
	table_init(&set->behind);
}

void stackset_release(struct stackset *set)
{
	free(set->stacks);
	hash_index_release(&set->ids);
	table_release(&set->behind);
	arena_release(&set->arena);
	stackset_init(set);
}

/* Stores a word in the form that hex_load() loads. */
static inline void write_word(char *to, uint64_t word)
{
	to[0] = (char)word;
	to[1] = (char)(word >> 8);
	to[2] = (char)(word >> 16);
	to[3] = (char)(word >> 24);
	to[4] = (char)(word >> 32);
	to[5] = (char)(word >> 40);
	to[6] = (char)(word >> 48);
	to[7] = (char)(word >> 56);
}

/* Packs frames into `arena`. The addresses in one process are mostly close to each other, so the
 * distances from the lowest address take fewer bytes than the addresses. */
static void copy_frames(struct stack *to, const struct stack *from, struct arena *arena)
{
	uint32_t count = from->frame_count;
	uint64_t least = count ? UINT64_MAX : 0, most = 0;
	size_t bytes;
	char *at;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t frame = stack_frame(from, i);

		least = frame < least ? frame : least;
		most = frame > most ? frame : most;
	}
	for (bytes = 1; bytes < FRAME_WIDTH && most - least >= UINT64_C(1) << 8 * bytes;)
		bytes++;
	least = bytes < FRAME_WIDTH ? least : 0;
	at = arena_bytes(arena, count * bytes + (bytes < FRAME_WIDTH ? FRAME_WIDTH : 0));
	for (uint32_t i = 0; i < count; i++)
		/* Each word overwrites the surplus zeros of the previous one. */
		write_word(at + i * bytes, stack_frame(from, i) - least);
	if (bytes < FRAME_WIDTH)
		write_word(at + count * bytes, least);
	to->frames = at;
	to->frame_count = from->frame_count;
	to->frame_cut = (FRAME_WIDTH - bytes) & 7;
}

bool stack_same_frames(const struct stack *a, const struct stack *b)
{
	if (a->is_named != b->is_named || a->frame_count != b->frame_count ||
		a->alias_count != b->alias_count || !a->frames != !b->frames)
		return false;
	for (uint32_t i = 0; a->frames && b->frames && i < a->frame_count; i++) {
		if (stack_frame(a, i) != stack_frame(b, i))
			return false;
	}
	return !a->alias_count ||
	       !memcmp(a->alias_at, b->alias_at, a->alias_count * sizeof(*a->alias_at));
}

static void fill(struct stackset *set, struct stack *stack, const struct stack *wanted)
{
	size_t alias_bytes = wanted->alias_count * sizeof(*wanted->alias_at);
	uint32_t *alias_at = alias_bytes ? arena_alloc(&set->arena, alias_bytes) : NULL;

	if (alias_bytes)
		memcpy(alias_at, wanted->alias_at, alias_bytes);
	stack->alias_at = alias_at;
	stack->alias_count = wanted->alias_count;
	stack->is_named = wanted->is_named;
	copy_frames(stack, wanted, &set->arena);
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

/* Builds the hash key of a stack that is far down in its id's list. A NUL separates id and frames,
 * because no id contains a NUL. */
static void long_key(struct buf *key, const struct stack *stack, size_t id_len)
{
	uint32_t alias_count = stack->alias_count;

	buf_add(key, stack->id, id_len);
	buf_add(key, "", 1);
	buf_add(key, stack->is_named ? "n" : "a", 1);
	buf_add(key, &alias_count, sizeof(alias_count));
	buf_add(key, stack->alias_at, alias_count * sizeof(*stack->alias_at));
	/* The caller passes unpacked frames, so their bytes can be added as they are. */
	buf_add(key, stack->frames, stack->frame_count * FRAME_WIDTH);
}

/* Finds the wanted stack among the stacks after `at`, or adds it. Uses a hash table, because a
 * damaged dump may have any number of stacks with one id. */
static uint32_t choose_far(
	struct stackset *set, uint32_t at, const struct stack *wanted, size_t id_len)
{
	struct buf key;
	uint64_t *known;
	uint32_t index;

	buf_init(&key);
	long_key(&key, wanted, id_len);
	known = table_find(&set->behind, key.data, key.len);
	if (known) {
		index = (uint32_t)*known;
	} else {
		index = add(set, wanted, id_len);
		table_add(&set->behind, key.data, key.len, index);
		set->stacks[index].same_id = set->stacks[at].same_id;
		set->stacks[at].same_id = index;
	}
	buf_release(&key);
	return index;
}

/* Finds the wanted stack in an id's list, which starts at stack `first`, or adds it. */
static uint32_t choose(
	struct stackset *set, uint32_t first, const struct stack *wanted, size_t id_len)
{
	uint32_t at = first, added;

	if (!set->stacks[first].frames) {
		fill(set, &set->stacks[first], wanted);
		return first;
	}
	for (int i = 0;; i++) {
		if (stack_same_frames(&set->stacks[at], wanted))
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

uint32_t stackset_hash(const struct stackset *set, const char *id, size_t id_len)
{
	struct hasher hasher = hasher_begin(&set->ids.key);

	hasher_add_bytes(&hasher, id, id_len);
	return hasher_end(&hasher);
}

void stackset_prefetch(const struct stackset *set, uint32_t hash, unsigned step)
{
	struct hash_probe probe = hash_index_probe(&set->ids, hash);
	uint32_t first;

	if (!set->ids.cap)
		return;
	if (!step) {
		__builtin_prefetch(&set->ids.slots[probe.at]);
		return;
	}
	first = hash_index_next(&set->ids, &probe);
	if (first != INDEX_NONE && step == 1)
		__builtin_prefetch(&set->stacks[first]);
	else if (first != INDEX_NONE)
		__builtin_prefetch(set->stacks[first].id);
}

static uint32_t first_of(
	struct stackset *set, uint32_t hash, const struct stack *wanted, size_t id_len)
{
	struct hash_probe probe = hash_index_probe(&set->ids, hash);
	uint32_t first;

	while ((first = hash_index_next(&set->ids, &probe)) != INDEX_NONE) {
		const char *id = set->stacks[first].id;

		if (!strncmp(id, wanted->id, id_len) && !id[id_len])
			return first;
	}
	first = add(set, wanted, id_len);
	hash_index_add(&set->ids, hash, first);
	return first;
}

uint32_t stackset_add_hashed(
	struct stackset *set, uint32_t hash, const struct stack *wanted, size_t id_len)
{
	struct stack tidy = *wanted;
	uint32_t *alias_at = NULL, index;

	if (wanted->frames && wanted->alias_count) {
		tidy.alias_at = alias_at = xcalloc(wanted->alias_count, sizeof(*alias_at));
		tidy.alias_count = 0;
		for (uint32_t i = 0, last = 0; i < wanted->alias_count; i++) {
			/* Ignore a candidate that is empty or out of order. */
			if (wanted->alias_at[i] > last && wanted->alias_at[i] < wanted->frame_count)
				alias_at[tidy.alias_count++] = last = wanted->alias_at[i];
		}
	}
	index = first_of(set, hash, &tidy, id_len);
	if (wanted->frames)
		index = choose(set, index, &tidy, id_len);
	free(alias_at);
	return index;
}

void stackset_add(struct stackset *set, const struct stack *wanted, size_t id_len, uint32_t *index)
{
	*index = stackset_add_hashed(set, stackset_hash(set, wanted->id, id_len), wanted, id_len);
}

void stackset_close(struct stackset *set, bool are_elsewhere)
{
	hash_index_release(&set->ids);
	table_release(&set->behind);
	if (are_elsewhere) {
		arena_release(&set->arena);
		arena_init(&set->arena);
	}
}
