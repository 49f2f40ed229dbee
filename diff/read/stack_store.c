/* The stack store: packs cells, and stores one copy of equal stacks and one copy of equal module
 * lists. */
#include "diff/read/stack_store.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/os.h"

#define NUMBER_BYTES 10 /* seven bits per byte */
#define CELL_BYTES (1 + 5 * NUMBER_BYTES)

/* Flags in the first byte of a packed cell. NEXT_STACK, SAME_HEAP and ONE_BLOCK each stand for a
 * common value of one field. If such a flag is not set, the field's value follows as a number. The
 * numbers are in the order of the flags. */
enum {
	NEXT_STACK = 1, /* the stack after the previous cell's stack */
	SAME_HEAP = 2,
	ONE_BLOCK = 4,
	IS_BARE = 8,
};

static unsigned char *write_number(unsigned char *to, uint64_t number)
{
	for (; number > 0x7f; number >>= 7)
		*to++ = (unsigned char)(number | 0x80);
	*to++ = (unsigned char)number;
	return to;
}

static uint64_t read_number(const unsigned char **at)
{
	uint64_t number = 0;
	unsigned shift = 0;

	for (; **at > 0x7f; shift += 7)
		number |= (uint64_t)(*(*at)++ & 0x7f) << shift;
	return number | (uint64_t) * (*at)++ << shift;
}

static unsigned char *write_cell(
	unsigned char *to, const struct stack_total *cell, const struct stack_total *before)
{
	bool is_next = cell->stack == before->stack + 1, is_same = cell->heap == before->heap;
	bool is_one = cell->sums.block_count == 1;

	*to++ = (unsigned char)((is_next ? NEXT_STACK : 0) | (is_same ? SAME_HEAP : 0) |
				(is_one ? ONE_BLOCK : 0) | (cell->is_bare ? IS_BARE : 0));
	if (!is_next)
		to = write_number(to, cell->stack);
	if (!is_same)
		to = write_number(to, cell->heap);
	if (!is_one)
		to = write_number(to, cell->sums.block_count);
	to = write_number(to, cell->sums.requested_bytes);
	return write_number(to, cell->sums.overhead_bytes);
}

void stack_totals_pack(struct dump_sums *sums)
{
	struct stack_total before = {.stack = STACK_NONE};
	unsigned char *to;

	if (!sums->cells || sums->cell_count >= SIZE_MAX / CELL_BYTES)
		return;
	to = sums->packed_cells = xmalloc(sums->cell_count * CELL_BYTES);
	for (size_t i = 0; i < sums->cell_count; i++) {
		to = write_cell(to, &sums->cells[i], &before);
		before = sums->cells[i];
	}
	sums->packed_cells = xrealloc(sums->packed_cells, (size_t)(to - sums->packed_cells));
	free(sums->cells);
	sums->cells = NULL;
}

const struct stack_total *stack_total_unpack(struct cell_walk *walk)
{
	const unsigned char *at = walk->packed;
	struct stack_total *cell = &walk->cell;
	unsigned said = *at++;

	cell->stack = said & NEXT_STACK ? cell->stack + 1 : (uint32_t)read_number(&at);
	if (!(said & SAME_HEAP))
		cell->heap = (uint32_t)read_number(&at);
	cell->is_bare = (said & IS_BARE) != 0;
	cell->sums.block_count = said & ONE_BLOCK ? 1 : read_number(&at);
	cell->sums.requested_bytes = read_number(&at);
	cell->sums.overhead_bytes = read_number(&at);
	walk->packed = at;
	return cell;
}

/* A list of modules that dumps share. */
struct shared_modules {
	struct module *modules;
	size_t count;
	struct arena texts;
};

struct stack_store {
	struct thread_lock *lock; /* protects everything in the store */
	struct hash_index index;
	struct stack *stacks;
	size_t count, cap;
	struct hash_index module_index;
	struct shared_modules *lists;
	size_t list_count, list_cap;
	struct table texts; /* maps a text to its copy */
	struct arena arena;
};

struct stack_store *stack_store_new(void)
{
	struct stack_store *store = xcalloc(1, sizeof(*store));

	hash_index_init(&store->index);
	hash_index_init(&store->module_index);
	table_init(&store->texts);
	arena_init(&store->arena);
	store->lock = thread_lock_new();
	return store;
}

void stack_store_free(struct stack_store *store)
{
	if (!store)
		return;
	thread_lock_free(store->lock);
	hash_index_release(&store->index);
	hash_index_release(&store->module_index);
	for (size_t i = 0; i < store->list_count; i++) {
		free(store->lists[i].modules);
		arena_release(&store->lists[i].texts);
	}
	free(store->lists);
	free(store->stacks);
	table_release(&store->texts);
	arena_release(&store->arena);
	free(store);
}

static uint32_t hash_of(const struct hash_key *key, const struct stack *stack)
{
	struct hasher hasher = hasher_begin(key);
	const char *frames;
	size_t len;

	hasher_add_bytes(&hasher, stack->id, strlen(stack->id));
	hasher_add(&hasher, stack->alias_count);
	for (uint32_t i = 0; i < stack->alias_count; i++)
		hasher_add(&hasher, stack->alias_at[i]);
	frames = stack_frames_kept(stack, &len);
	hasher_add_bytes(&hasher, frames, len);
	return hasher_end(&hasher);
}

static bool same_bytes(const void *a, const void *b, size_t len)
{
	return !len || !memcmp(a, b, len);
}

static bool is_same(const struct stack *a, const struct stack *b)
{
	size_t a_len, b_len;
	const char *left = stack_frames_kept(a, &a_len), *right = stack_frames_kept(b, &b_len);

	return a->frame_count == b->frame_count && a->alias_count == b->alias_count &&
	       a_len == b_len && !strcmp(a->id, b->id) && same_bytes(left, right, a_len) &&
	       same_bytes(a->alias_at, b->alias_at, a->alias_count * sizeof(*a->alias_at));
}

static const char *copy(struct stack_store *store, const char *bytes, size_t len)
{
	return memcpy(arena_bytes(&store->arena, len), bytes, len);
}

/* Returns the number of a stack. Adds the stack if it is new. */
static uint32_t stack_number(struct stack_store *store, uint32_t hash, const struct stack *stack)
{
	struct hash_probe probe = hash_index_probe(&store->index, hash);
	size_t len, alias_bytes = stack->alias_count * sizeof(*stack->alias_at);
	const char *frames = stack_frames_kept(stack, &len);
	struct stack *own;
	uint32_t number;

	while ((number = hash_index_next(&store->index, &probe)) != INDEX_NONE) {
		if (is_same(&store->stacks[number], stack))
			return number;
	}
	number = (uint32_t)store->count;
	array_grow((void **)&store->stacks, &store->cap, store->count, sizeof(*store->stacks));
	hash_index_add(&store->index, hash, number);
	own = &store->stacks[store->count++];
	*own = *stack;
	own->id = copy(store, stack->id, strlen(stack->id) + 1);
	if (frames)
		own->frames = copy(store, frames, len);
	if (alias_bytes)
		own->alias_at = memcpy(
			arena_alloc(&store->arena, alias_bytes), stack->alias_at, alias_bytes);
	own->same_id = STACK_NONE;
	return number;
}

/* Replaces the pointers in stacks with pointers into the store. Replaces the hashes in `numbers`
 * with the stacks' numbers. */
static void stacks_move(struct stack_store *store, struct stackset *set, uint32_t *numbers)
{
	for (size_t i = 0; i < set->count; i++) {
		struct stack *stack = &set->stacks[i];
		const struct stack *own;

		if (stack->is_named) {
			numbers[i] = STACK_NONE;
			continue;
		}
		numbers[i] = stack_number(store, numbers[i], stack);
		own = &store->stacks[numbers[i]];
		stack->id = own->id;
		stack->frames = own->frames; /* equal stacks have the same packed frames */
		stack->alias_at = own->alias_at;
	}
}

/* Frees data that the store now contains, and data that was needed only for reading. */
static void free_read(struct stack_store *store, struct dump_sums *sums)
{
	struct stackset *set = &sums->stacks;
	bool are_all_in = true, are_single = true;

	for (size_t i = 0; i < set->count; i++) {
		are_all_in &= !set->stacks[i].is_named;
		are_single &= set->stacks[i].same_id == STACK_NONE;
	}
	stackset_close(set, are_all_in);
	if (!are_all_in)
		return;
	if (!are_single) { /* each dump has its own lists of stacks with the same id */
		sums->same_id = xmalloc(set->count * sizeof(*sums->same_id));
		for (size_t i = 0; i < set->count; i++)
			sums->same_id[i] = set->stacks[i].same_id;
	}
	free(set->stacks);
	set->stacks = NULL;
	set->cap = 0;
	sums->common = (const struct stack *const *)&store->stacks;
}

/* ---------------------------------------------------------------- modules */

static uint32_t hash_modules(const struct hash_key *key, const struct dump_sums *sums)
{
	struct hasher hasher = hasher_begin(key);

	for (size_t i = 0; i < sums->module_list.count; i++) {
		hasher_add(&hasher, sums->module_list.items[i].base);
		hasher_add(&hasher, sums->module_list.items[i].size_bytes);
		hasher_add(&hasher, sums->module_list.items[i].timestamp);
	}
	return hasher_end(&hasher);
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static bool same_module(const struct module *a, const struct module *b)
{
	return a->base == b->base && a->size_bytes == b->size_bytes &&
	       same_text(a->path, b->path) && same_text(a->pdb, b->pdb) &&
	       same_text(a->pdb_guid, b->pdb_guid) && a->pdb_age == b->pdb_age &&
	       a->timestamp == b->timestamp && a->checksum == b->checksum &&
	       a->has_identity == b->has_identity && a->unloaded_at == b->unloaded_at;
}

static bool same_modules(const struct shared_modules *known, const struct dump_sums *sums)
{
	if (known->count != sums->module_list.count)
		return false;
	for (size_t i = 0; i < known->count; i++) {
		if (!same_module(&known->modules[i], &sums->module_list.items[i]))
			return false;
	}
	return true;
}

/* Moves a dump's list of modules to the store. If the store already contains an equal list, uses
 * that list instead. */
static void modules_move(struct stack_store *store, uint32_t hash, struct dump_sums *sums)
{
	struct hash_probe probe = hash_index_probe(&store->module_index, hash);
	uint32_t known;

	sums->module_list.are_shared = true;
	while ((known = hash_index_next(&store->module_index, &probe)) != INDEX_NONE) {
		if (!same_modules(&store->lists[known], sums))
			continue;
		free(sums->module_list.items);
		arena_release(&sums->module_list.texts);
		sums->module_list.items = store->lists[known].modules;
		return;
	}
	array_grow(
		(void **)&store->lists, &store->list_cap, store->list_count, sizeof(*store->lists));
	hash_index_add(&store->module_index, hash, (uint32_t)store->list_count);
	sums->module_list.items = xrealloc(sums->module_list.items,
		sums->module_list.count * sizeof(*sums->module_list.items));
	store->lists[store->list_count++] = (struct shared_modules){
		sums->module_list.items, sums->module_list.count, sums->module_list.texts};
	arena_init(&sums->module_list.texts);
}

void stack_store_add(struct stack_store *store, struct dump_sums *sums)
{
	struct stackset *set = &sums->stacks;
	struct hash_key key = store->index.key;
	uint32_t modules_hash = hash_modules(&store->module_index.key, sums);

	stack_totals_pack(sums);
	set->stacks = xrealloc(set->stacks, set->count * sizeof(*set->stacks));
	set->cap = set->count;
	sums->shared = xmalloc(set->count * sizeof(*sums->shared));
	for (size_t i = 0; i < set->count; i++)
		sums->shared[i] = set->stacks[i].is_named ? 0 : hash_of(&key, &set->stacks[i]);
	thread_lock_acquire(store->lock);
	stacks_move(store, set, sums->shared);
	modules_move(store, modules_hash, sums);
	thread_lock_leave(store->lock);
	free_read(store, sums);
}

const char *stack_store_text(struct stack_store *store, const char *text)
{
	size_t len = strlen(text);
	const uint64_t *known;
	const char *own;

	thread_lock_acquire(store->lock);
	known = table_find(&store->texts, text, len);
	own = known ? (const char *)(uintptr_t)*known : arena_text(&store->arena, text, len);
	if (!known)
		table_add(&store->texts, text, len, (uintptr_t)own);
	thread_lock_leave(store->lock);
	return own;
}
