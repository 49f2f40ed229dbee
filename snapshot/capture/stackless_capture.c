/*
 * Groups the heap blocks without a stack by heap, size and first word.
 *
 * The words are read after the hold, so a block that was freed in the meantime may contain anything.
 * Words that few blocks share, and sizes beyond the largest groups, are merged, so a dump has a
 * bounded number of groups.
 */
#include <stdlib.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/dump/stackless_note.h"
#include "snapshot/capture/capture_parts.h"
#include "snapshot/target/target_memory.h"

#define GROUPS_MAX 1000 /* groups with their own first word; and groups with their own size */
#define TEXT_BLOCKS_MIN 8 /* a text at the start of fewer blocks does not make a group */

struct stackless_groups {
	const struct snapshot *snapshot;
	struct memory memory;
	struct hash_index index;
	struct stackless_group *groups;
	size_t count, cap;
	const struct module *module; /* module that was found last, or NULL */
	bool has_texts; /* texts may be stored: they are the program's data */
};

static bool is_in_module(struct stackless_groups *grouping, uint64_t word)
{
	const struct snapshot *snapshot = grouping->snapshot;
	const struct module *last = grouping->module;

	if (last && word - last->base < last->size_bytes)
		return true;
	last = module_at(snapshot->modules, snapshot->module_count, word);
	if (last)
		grouping->module = last;
	return last != NULL;
}

/* Sets the first word of a group to that of a block. */
static void read_word(
	struct stackless_groups *grouping, const struct block *block, struct stackless_group *group)
{
	const unsigned bits = grouping->snapshot->heaps[block->heap].bits ?
				      grouping->snapshot->heaps[block->heap].bits :
				      grouping->snapshot->bits;
	size_t len = STACKLESS_START_BYTES;
	const unsigned char *bytes;
	uint64_t word;

	if (block->requested_bytes < len)
		len = block->requested_bytes;
	bytes = len ? memory_at(&grouping->memory, block->addr, len) : NULL;
	if (!bytes)
		return;
	word = len < bits / 8 ? 0 : bytes_ptr(bytes, bits);
	if (word && word % (bits / 8) == 0 && is_in_module(grouping, word)) {
		group->kind = STACKLESS_ADDRESS;
		group->word = word;
	} else if (grouping->has_texts && (word = stackless_text(bytes, len, 1))) {
		group->kind = STACKLESS_TEXT;
		group->word = word;
	} else if (grouping->has_texts && (word = stackless_text(bytes, len, 2))) {
		group->kind = STACKLESS_WIDE;
		group->word = word;
	}
}

static bool is_same(const struct stackless_group *a, const struct stackless_group *b)
{
	return a->heap == b->heap && a->is_lost == b->is_lost && a->bytes == b->bytes &&
	       a->is_range == b->is_range && a->kind == b->kind && a->word == b->word;
}

/* Returns the index of the group with the same properties, or INDEX_NONE. Sets `*hash`. */
static uint32_t find(const struct stackless_groups *grouping, const struct stackless_group *group,
	uint32_t *hash)
{
	struct hasher hasher = hasher_begin(&grouping->index.key);
	struct hash_probe probe;
	uint32_t at;

	hasher_add(&hasher, group->word);
	hasher_add(&hasher, group->bytes);
	hasher_add(&hasher, (uint64_t)group->heap << 8 | (unsigned)group->kind << 2 |
				    (group->is_range ? 2u : 0u) | group->is_lost);
	*hash = hasher_end(&hasher);
	probe = hash_index_probe(&grouping->index, *hash);
	do
		at = hash_index_next(&grouping->index, &probe);
	while (at != INDEX_NONE && !is_same(&grouping->groups[at], group));
	return at;
}

static void add(struct stackless_groups *grouping, const struct stackless_group *group)
{
	uint32_t hash, at = find(grouping, group, &hash);

	if (at != INDEX_NONE) {
		block_totals_add(&grouping->groups[at].totals, &group->totals);
		return;
	}
	array_grow((void **)&grouping->groups, &grouping->cap, grouping->count, sizeof(*group));
	hash_index_add(&grouping->index, hash, (uint32_t)grouping->count);
	grouping->groups[grouping->count++] = *group;
}

/* Sorts by bytes, the largest group first. The rest of the order makes the result definite. */
static int by_bytes(const void *a, const void *b)
{
	const struct stackless_group *x = a, *y = b;

	if (x->totals.requested_bytes != y->totals.requested_bytes)
		return x->totals.requested_bytes > y->totals.requested_bytes ? -1 : 1;
	if (x->word != y->word)
		return x->word < y->word ? -1 : 1;
	return x->heap != y->heap ? (x->heap < y->heap ? -1 : 1) : y->is_lost - x->is_lost;
}

static int by_heap(const void *a, const void *b)
{
	const struct stackless_group *x = a, *y = b;

	if (x->heap != y->heap)
		return x->heap < y->heap ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	return by_bytes(a, b);
}

static void remove_word(struct stackless_group *group)
{
	group->kind = STACKLESS_ANY;
	group->word = 0;
}

static void remove_size(struct stackless_group *group)
{
	group->bytes = stackless_power(group->bytes);
	group->is_range = true;
}

enum merging { MERGE_NONE, MERGE_RARE_TEXTS, MERGE_WORDS, MERGE_SIZES };

/* Groups again: removes from some groups the property that makes them small. Groups below
 * `kept_count` keep it. With MERGE_NONE, only makes the index anew. */
static void merge(struct stackless_groups *grouping, enum merging how, size_t kept_count)
{
	struct stackless_group *groups = grouping->groups;
	const size_t count = grouping->count;

	grouping->groups = NULL;
	grouping->count = grouping->cap = 0;
	hash_index_release(&grouping->index);
	hash_index_init(&grouping->index);
	for (size_t i = 0; i < count; i++) {
		struct stackless_group group = groups[i];
		const bool is_rare =
			(group.kind == STACKLESS_TEXT || group.kind == STACKLESS_WIDE) &&
			group.totals.block_count < TEXT_BLOCKS_MIN;

		if (how == MERGE_RARE_TEXTS ? is_rare : i >= kept_count)
			remove_word(&group);
		if (how == MERGE_SIZES && i >= kept_count && group.bytes)
			remove_size(&group);
		add(grouping, &group);
	}
	free(groups);
}

static void merge_small(struct stackless_groups *grouping)
{
	merge(grouping, MERGE_RARE_TEXTS, 0);
	for (int how = MERGE_WORDS; how <= MERGE_SIZES && grouping->count > GROUPS_MAX; how++) {
		qsort(grouping->groups, grouping->count, sizeof(*grouping->groups), by_bytes);
		merge(grouping, how, GROUPS_MAX);
	}
}

/* Returns the group of one block, as it is before groups are merged. */
static struct stackless_group group_of(
	struct stackless_groups *grouping, const struct raw_capture *captured, size_t i)
{
	const struct block *block = &captured->stackless[i];
	struct stackless_group group = {
		.totals = {1, block->requested_bytes, block->overhead_bytes},
		.bytes = block->requested_bytes,
		.heap = block->heap,
		.is_lost = block->stack >= BLOCK_LOST};

	if (captured->stackless_count - i > MEMORY_AHEAD_BLOCKS)
		memory_fetch(&grouping->memory.last, block[MEMORY_AHEAD_BLOCKS].addr,
			STACKLESS_START_BYTES);
	read_word(grouping, block, &group);
	return group;
}

/* Returns the index of the merged group that contains a block, or INDEX_NONE if the first word of
 * the block has changed. */
static uint32_t find_merged(const struct stackless_groups *grouping, struct stackless_group group)
{
	uint32_t hash, at = find(grouping, &group, &hash);

	remove_word(&group);
	if (at == INDEX_NONE)
		at = find(grouping, &group, &hash);
	remove_size(&group);
	return at == INDEX_NONE ? find(grouping, &group, &hash) : at;
}

static void add_contents(struct stackless_groups *grouping, const struct raw_capture *captured,
	unsigned count, struct snapshot *snapshot)
{
	uint64_t *seen = xcalloc(grouping->count + 1, sizeof(*seen));

	merge(grouping, MERGE_NONE, SIZE_MAX);
	for (size_t i = 0; i < captured->stackless_count; i++) {
		const struct block *block = &captured->stackless[i];
		uint32_t at = find_merged(grouping, group_of(grouping, captured, i));

		if (at != INDEX_NONE && content_is_chosen(seen[at]++,
						grouping->groups[at].totals.block_count, count))
			content_add(grouping->memory.target,
				(struct block_content){.addr = block->addr,
					.requested_bytes = block->requested_bytes,
					.stack = STACK_NONE,
					.group = at},
				snapshot);
	}
	free(seen);
}

int stackless_capture(struct target *target, const struct raw_capture *captured, unsigned count,
	struct snapshot *snapshot, struct err *err)
{
	struct stackless_groups grouping = {.snapshot = snapshot, .has_texts = count};

	if (!captured->stackless_count)
		return 0;
	if (memory_init(&grouping.memory, target))
		return err_set(err, ERR_NOMEM, target->name, NULL);
	hash_index_init(&grouping.index);
	for (size_t i = 0; i < captured->stackless_count; i++) {
		const struct stackless_group group = group_of(&grouping, captured, i);

		add(&grouping, &group);
	}
	merge_small(&grouping);
	qsort(grouping.groups, grouping.count, sizeof(*grouping.groups), by_heap);
	if (count)
		add_contents(&grouping, captured, count, snapshot);
	snapshot->stackless = grouping.groups;
	snapshot->stackless_count = grouping.count;
	hash_index_release(&grouping.index);
	memory_release(&grouping.memory);
	return 0;
}
