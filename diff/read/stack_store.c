#include "diff/read/stack_store.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/os.h"

#define NUMBER_BYTES 10 /* seven bits in each */
#define CELL_BYTES (1 + 5 * NUMBER_BYTES)

/* What the first byte of a cell says; what it does not say follows as a number, in this order. */
enum {
	NEXT_STACK = 1, /* behind that of the cell before */
	SAME_HEAP = 2,
	ONE_BLOCK = 4,
	IS_BARE = 8,
};

static unsigned char *put_number(unsigned char *to, uint64_t number)
{
	for (; number > 0x7f; number >>= 7)
		*to++ = (unsigned char)(number | 0x80);
	*to++ = (unsigned char)number;
	return to;
}

static uint64_t take_number(const unsigned char **at)
{
	uint64_t number = 0;
	unsigned shift = 0;

	for (; **at > 0x7f; shift += 7)
		number |= (uint64_t)(*(*at)++ & 0x7f) << shift;
	return number | (uint64_t) * (*at)++ << shift;
}

static unsigned char *put_cell(
	unsigned char *to, const struct stack_total *cell, const struct stack_total *before)
{
	bool is_next = cell->stack == before->stack + 1, is_same = cell->heap == before->heap;
	bool is_one = cell->sums.block_count == 1;

	*to++ = (unsigned char)((is_next ? NEXT_STACK : 0) | (is_same ? SAME_HEAP : 0) |
				(is_one ? ONE_BLOCK : 0) | (cell->is_bare ? IS_BARE : 0));
	if (!is_next)
		to = put_number(to, cell->stack);
	if (!is_same)
		to = put_number(to, cell->heap);
	if (!is_one)
		to = put_number(to, cell->sums.block_count);
	to = put_number(to, cell->sums.requested_bytes);
	return put_number(to, cell->sums.overhead_bytes);
}

void stack_totals_pack(struct dump_sums *sums)
{
	struct stack_total before = {.stack = STACK_NONE};
	unsigned char *all, *to, *less;

	if (!sums->cells || sums->cell_count >= SIZE_MAX / CELL_BYTES)
		return;
	all = to = malloc(sums->cell_count * CELL_BYTES + 1);
	if (!all)
		return;
	for (size_t i = 0; i < sums->cell_count; i++) {
		to = put_cell(to, &sums->cells[i], &before);
		before = sums->cells[i];
	}
	less = realloc(all, (size_t)(to - all) + 1);
	sums->packed_cells = less ? less : all;
	free(sums->cells);
	sums->cells = NULL;
}

const struct stack_total *stack_total_unpack(struct cell_walk *walk)
{
	const unsigned char *at = walk->packed;
	struct stack_total *cell = &walk->cell;
	unsigned said = *at++;

	cell->stack = said & NEXT_STACK ? cell->stack + 1 : (uint32_t)take_number(&at);
	if (!(said & SAME_HEAP))
		cell->heap = (uint32_t)take_number(&at);
	cell->is_bare = (said & IS_BARE) != 0;
	cell->sums.block_count = said & ONE_BLOCK ? 1 : take_number(&at);
	cell->sums.requested_bytes = take_number(&at);
	cell->sums.overhead_bytes = take_number(&at);
	walk->packed = at;
	return cell;
}

/* Modules that dumps have in common. */
struct lent_modules {
	struct module *modules;
	size_t count;
	struct arena texts;
};

struct stack_store {
	struct thread_lock *lock; /* of all of it */
	struct hash_index index;
	struct stack *stacks;
	size_t count, cap;
	struct hash_index module_index;
	struct lent_modules *lent;
	size_t lent_count, lent_cap;
	struct table texts; /* to where they are */
	struct arena arena;
};

struct stack_store *stack_store_new(void)
{
	struct stack_store *store = calloc(1, sizeof(*store));

	if (!store)
		return NULL;
	hash_index_init(&store->index);
	hash_index_init(&store->module_index);
	table_init(&store->texts);
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
	hash_index_release(&store->module_index);
	for (size_t i = 0; i < store->lent_count; i++) {
		free(store->lent[i].modules);
		arena_release(&store->lent[i].texts);
	}
	free(store->lent);
	free(store->stacks);
	table_release(&store->texts);
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
static int keep_chains(struct dump_sums *sums)
{
	const struct stackset *set = &sums->stacks;

	sums->same_id = malloc((set->count + 1) * sizeof(*sums->same_id));
	for (size_t i = 0; sums->same_id && i < set->count; i++)
		sums->same_id[i] = set->stacks[i].same_id;
	return sums->same_id ? 0 : -ERR_NOMEM;
}

/* Gives back what the store has, or what only reading needed. */
static int give_back(struct stack_store *store, struct dump_sums *sums)
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

/* ---------------------------------------------------------------- modules */

static void hash_text(struct hasher *hasher, const char *text)
{
	hasher_add(hasher, text ? strlen(text) + 1 : 0);
	if (text)
		hasher_add_bytes(hasher, text, strlen(text));
}

static uint32_t hash_modules(const struct hash_key *key, const struct dump_sums *sums)
{
	struct hasher hasher = hasher_begin(key);

	for (size_t i = 0; i < sums->module_count; i++) {
		const struct module *module = &sums->modules[i];

		hasher_add(&hasher, module->base);
		hasher_add(&hasher, module->size_bytes);
		hasher_add(&hasher, module->timestamp);
		hash_text(&hasher, module->path);
		hash_text(&hasher, module->pdb_guid);
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

static bool same_modules(const struct lent_modules *known, const struct dump_sums *sums)
{
	if (known->count != sums->module_count)
		return false;
	for (size_t i = 0; i < known->count; i++) {
		if (!same_module(&known->modules[i], &sums->modules[i]))
			return false;
	}
	return true;
}

/* Makes the modules of a dump the store's. */
static int modules_add(struct stack_store *store, uint32_t hash, struct dump_sums *sums)
{
	if (array_grow((void **)&store->lent, &store->lent_cap, store->lent_count,
		    sizeof(*store->lent)) ||
		hash_index_add(&store->module_index, hash, (uint32_t)store->lent_count))
		return -ERR_NOMEM;
	fit((void **)&sums->modules, sums->module_count * sizeof(*sums->modules));
	store->lent[store->lent_count++] =
		(struct lent_modules){sums->modules, sums->module_count, sums->module_texts};
	arena_init(&sums->module_texts);
	sums->modules_are_shared = true;
	return 0;
}

static int modules_take(struct stack_store *store, uint32_t hash, struct dump_sums *sums)
{
	struct hash_probe probe = hash_index_probe(&store->module_index, hash);
	uint32_t known;

	while ((known = hash_index_next(&store->module_index, &probe)) != INDEX_NONE) {
		if (!same_modules(&store->lent[known], sums))
			continue;
		free(sums->modules);
		arena_release(&sums->module_texts);
		sums->modules = store->lent[known].modules;
		sums->modules_are_shared = true;
		return 0;
	}
	return modules_add(store, hash, sums);
}

int stack_store_take(struct stack_store *store, struct dump_sums *sums)
{
	struct stackset *set = &sums->stacks;
	struct hash_key key = store->index.key;
	uint32_t modules_hash = hash_modules(&store->module_index.key, sums);
	int rc;

	stack_totals_pack(sums);
	fit((void **)&set->stacks, set->count * sizeof(*set->stacks));
	set->cap = set->count;
	sums->shared = malloc((set->count + 1) * sizeof(*sums->shared));
	if (!sums->shared)
		return -ERR_NOMEM;
	for (size_t i = 0; i < set->count; i++)
		sums->shared[i] = set->stacks[i].is_named ? 0 : hash_of(&key, &set->stacks[i]);
	thread_lock_take(store->lock);
	rc = take(store, set, sums->shared);
	if (!rc)
		rc = modules_take(store, modules_hash, sums);
	thread_lock_leave(store->lock);
	return rc ? rc : give_back(store, sums);
}

/* ---------------------------------------------------------------- texts */

static const char *text_put(struct stack_store *store, const char *text)
{
	size_t len = strlen(text);
	const uint64_t *known = table_find(&store->texts, text, len);
	const char *own;

	if (known)
		return (const char *)(uintptr_t)*known;
	own = arena_text(&store->arena, text, len);
	if (!own || table_add(&store->texts, text, len, (uintptr_t)own))
		return NULL;
	return own;
}

const char *stack_store_text(struct stack_store *store, const char *text)
{
	const char *own;

	thread_lock_take(store->lock);
	own = text_put(store, text);
	thread_lock_leave(store->lock);
	return own;
}
