#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "snapshot/control/control_windows.h"
#include "snapshot/heap/heap.h"
#include "snapshot/target/target_memory.h"
#include "snapshot/tracer/tables.h"

/* One shard's table while it is made. */
struct older_table {
	struct tracer_block *entries;
	size_t count;
	unsigned log2;
};

struct older {
	struct tracee *tracee;
	unsigned char *memory; /* of all tables */
	struct walk walk;
	uint32_t *tags; /* of the heaps that were walked */
	struct older_table tables[TRACER_SHARDS];
};

#define PROBES 64 /* the tracer looks at more */

/* The tag of a heap, as the tracer would give it to the first one at its address; 0: there is no place for it. */
static uint32_t tag_of(struct tracer_area *area, uint64_t heap)
{
	uint32_t first = heapindex_home(heap);

	for (uint32_t i = first; i < first + PROBES && !(heap & TRACER_HEAP_STATE); i++) {
		uint32_t at = i & ((1u << TRACER_HEAPS_LOG2) - 1);

		if (!at || area->heaps[at]) /* the first one stands for: not known */
			continue;
		area->heaps[at] = heap | 1;
		return at | 1u << TRACER_HEAPS_LOG2;
	}
	return 0;
}

/* Whether the walkers know of each block there is, and each can be told. */
static bool can_be_listed(struct older *older)
{
	const struct walk *walk = &older->walk;

	if (!walk_is_sound(walk) || walk->busy_count || walk->doubt_count)
		return false;
	older->tags = calloc(walk->heap_count + 1, sizeof(*older->tags));
	for (size_t i = 0; older->tags && i < walk->heap_count; i++) {
		older->tags[i] = walk->heaps[i].unwalked ?
					 0 :
					 tag_of(&older->tracee->area, walk->heaps[i].addr);
		if (!older->tags[i])
			return false;
	}
	for (size_t i = 0; i < walk->block_count; i++) {
		if (walk->blocks[i].addr >> TRACER_ADDR_BITS)
			return false;
	}
	return older->tags;
}

/* Tables that are at most half full; false when there is no room for them. */
static bool make_tables(struct older *older)
{
	struct tracer_area *area = &older->tracee->area;
	uint64_t bytes = 0;

	for (size_t i = 0; i < older->walk.block_count; i++)
		older->tables[blocktable_shard(blocktable_hash(older->walk.blocks[i].addr))]
			.count++;
	for (unsigned i = 0; i < TRACER_SHARDS; i++) {
		struct older_table *table = &older->tables[i];

		if (!table->count)
			continue;
		table->log2 = BLOCKTABLE_FIRST_LOG2;
		while (table->count > (size_t)1 << table->log2 >> 1)
			table->log2++;
		table->entries = calloc((size_t)1 << table->log2, sizeof(*table->entries));
		if (!table->entries || !blocktable_room(area, i, table->log2))
			return false;
		bytes += sizeof(*table->entries) << table->log2;
	}
	return bytes <= area->limit_bytes;
}

static void put(struct older *older, const struct walked_block *walked)
{
	uint64_t hash = blocktable_hash(walked->addr);
	struct older_table *table = &older->tables[blocktable_shard(hash)];
	uint64_t mask = ((uint64_t)1 << table->log2) - 1, at = blocktable_home(hash, table->log2);

	while (table->entries[at].key)
		at = (at + 1) & mask;
	table->entries[at] = tracer_block_make(
		walked->addr, older->tags[walked->heap], 0, walked->requested_bytes);
}

static void write_tables(const struct older *older)
{
	struct tracer_area *area = &older->tracee->area;

	for (unsigned i = 0; i < TRACER_SHARDS; i++) {
		const struct older_table *table = &older->tables[i];
		struct tracer_shard *shard = &area->shards[i];
		uint64_t addr = blocktable_room(area, i, table->log2);
		size_t bytes = sizeof(*table->entries) << table->log2;

		if (!table->count)
			continue;
		memcpy(older->memory + (addr - area->reserved), table->entries, bytes);
		shard->table = addr | table->log2;
		shard->count = (uint32_t)table->count;
		shard->kept = (uint64_t)1 << table->log2;
		area->committed_bytes += bytes;
	}
}

static void forget_heaps(struct tracer_area *area)
{
	for (unsigned i = 0; i < 1u << TRACER_HEAPS_LOG2; i++)
		area->heaps[i] = 0;
}

static void list(struct older *older)
{
	struct tracer_area *area = &older->tracee->area;

	if (!can_be_listed(older) || !make_tables(older)) {
		forget_heaps(area);
		return;
	}
	for (size_t i = 0; i < older->walk.block_count; i++)
		put(older, &older->walk.blocks[i]);
	write_tables(older);
	area->flags |= TRACER_FLAG_LISTED;
}

void older_list(struct tracee *tracee, unsigned char *tables)
{
	struct older older = {.tracee = tracee, .memory = tables};
	struct memory memory;

	if (memory_init(&memory, tracee->target))
		return;
	walk_init(&older.walk);
	if (!heaps_walk(&memory, &older.walk, NULL))
		list(&older);
	memory_release(&memory);
	walk_release(&older.walk);
	free(older.tags);
	for (unsigned i = 0; i < TRACER_SHARDS; i++)
		free(older.tables[i].entries);
}
