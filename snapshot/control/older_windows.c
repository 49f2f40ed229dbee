/* Lists the blocks that are older than the tracer: walks the heaps of the held process, builds the
 * tracer's tables of these blocks in hsnap's memory, and writes the tables into the target. */
#include <stdlib.h>

#include "core/base/memory.h"
#include "snapshot/control/tracee_windows.h"
#include "snapshot/heap/heap.h"
#include "snapshot/target/target_memory.h"
#include "snapshot/tracer/tables.h"

struct older_table {
	struct tracer_block *entries;
	size_t count;
	uint32_t pages;
};

struct older {
	struct tracee *tracee;
	struct walk walk;
	uint32_t *tags; /* tags of the walked heaps */
	struct older_table tables[TRACER_SHARDS];
};

/* maximum distance from a heap's home index; the tracer itself searches further */
#define PROBES 64

/* Returns the tag that the tracer would assign to the first heap at this address. Returns 0 if the
 * tracer's table has no place for the heap. */
static uint32_t tag_of(struct tracer_area *area, uint64_t heap)
{
	uint32_t first = heapindex_home(heap);

	for (uint32_t i = first; i < first + PROBES && !(heap & TRACER_HEAP_STATE); i++) {
		uint32_t at = i & ((1u << TRACER_HEAPS_LOG2) - 1);

		if (!at || area->heaps[at]) /* index 0 stands for an unknown heap */
			continue;
		area->heaps[at] = heap | 1;
		return at | 1u << TRACER_HEAPS_LOG2;
	}
	return 0;
}

/* Returns true if the walk found every block of every heap, and every heap has a tag. */
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
	return older->tags;
}

#define PAGE_ENTRIES (TRACER_PAGE / sizeof(struct tracer_block))

/* Creates tables that are about half full. Returns false if there is no room for them. */
static bool make_tables(struct older *older)
{
	struct tracer_area *area = &older->tracee->area;
	uint64_t bytes = 0;

	for (size_t i = 0; i < older->walk.block_count; i++)
		older->tables[blocktable_shard(older->walk.blocks[i].addr)].count++;
	for (unsigned i = 0; i < TRACER_SHARDS; i++) {
		struct older_table *table = &older->tables[i];

		if (!table->count)
			continue;
		if (table->count >= area->shard_bytes / sizeof(*table->entries) / 2)
			return false;
		table->pages = (uint32_t)(table->count / (PAGE_ENTRIES / 2)) + 1;
		table->entries = calloc(table->pages, TRACER_PAGE);
		if (!table->entries)
			return false;
		bytes += table->pages * TRACER_PAGE;
	}
	return bytes <= area->limit_bytes;
}

/* Adds a block. Returns false if the block is in the table's last entry, which must stay free. This
 * happens if too many blocks have their homes near the end. */
static bool add_block(struct older *older, const struct block *walked)
{
	struct older_table *table = &older->tables[blocktable_shard(walked->addr)];
	uint64_t at = blocktable_home(walked->addr, blocktable_lines(table->pages));

	while (table->entries[at].key)
		at++;
	table->entries[at] = tracer_block_make(
		walked->addr, older->tags[walked->heap], 0, walked->requested_bytes);
	return at + 1 < table->pages * PAGE_ENTRIES;
}

static bool fill_tables(struct older *older)
{
	for (size_t i = 0; i < older->walk.block_count; i++) {
		if (!add_block(older, &older->walk.blocks[i]))
			return false;
	}
	return true;
}

static bool write_tables(struct older *older)
{
	struct tracee *tracee = older->tracee;

	for (unsigned i = 0; i < TRACER_SHARDS; i++) {
		const struct older_table *table = &older->tables[i];
		uint64_t addr = blocktable_at(&tracee->area, i);
		size_t bytes = table->pages * (size_t)TRACER_PAGE;

		if (!table->count)
			continue;
		if (!VirtualAllocEx(tracee->process, (void *)(ULONG_PTR)addr, bytes, MEM_COMMIT,
			    PAGE_READWRITE) ||
			!tracee_write(tracee, addr, table->entries, bytes))
			return false;
		tracee->area.shards[i].table = addr;
		tracee->area.shards[i].pages = table->pages;
		tracee->area.shards[i].lines = blocktable_lines(table->pages);
		tracee->area.shards[i].count = (uint32_t)table->count;
		tracee->area.committed_bytes += bytes;
	}
	return true;
}

static void forget_heaps(struct tracer_area *area)
{
	for (unsigned i = 0; i < 1u << TRACER_HEAPS_LOG2; i++)
		area->heaps[i] = 0;
}

static int list(struct older *older, struct err *err)
{
	struct tracee *tracee = older->tracee;

	if (!can_be_listed(older) || !make_tables(older) || !fill_tables(older)) {
		forget_heaps(&tracee->area);
		return 0;
	}
	if (!write_tables(older))
		return err_set(
			err, ERR_INJECT, tracee->target->name, "no memory for the tracer's tables");
	tracee->area.flags |= TRACER_FLAG_LISTED;
	return 0;
}

int older_list(struct tracee *tracee, struct err *err)
{
	struct older older = {.tracee = tracee};
	struct memory memory;
	int rc = 0;

	if (memory_init(&memory, tracee->target))
		return err_set(err, ERR_NOMEM, tracee->target->name, NULL);
	walk_init(&older.walk);
	if (!heaps_walk(&memory, NULL, &older.walk, NULL))
		rc = list(&older, err);
	memory_release(&memory);
	walk_release(&older.walk);
	free(older.tags);
	for (unsigned i = 0; i < TRACER_SHARDS; i++)
		free(older.tables[i].entries);
	return rc;
}
