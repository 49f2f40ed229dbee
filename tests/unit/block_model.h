/*
 * What the tracer's table of live blocks has to say, kept beside it in plain arrays; and whether it
 * does, by the promise that shared.h makes to whoever reads it from outside.
 */
#ifndef TESTS_UNIT_BLOCK_MODEL_H
#define TESTS_UNIT_BLOCK_MODEL_H

#include "tests/unit/fake_memory.h"

#include "snapshot/tracer/tables.h"

static uint64_t seed;

static inline struct tracer_block *table_of(const struct tracer_shard *shard, uint64_t *count)
{
	*count = shard->table ? (uint64_t)1 << (shard->table & 63) : 0;
	return (struct tracer_block *)(uintptr_t)(shard->table & ~(uint64_t)63);
}

#define BLOCKS_MAX 400000

/* What the table has to say: block i is at addrs[i], live or not. */
static struct {
	uint64_t addrs[BLOCKS_MAX];
	uint32_t versions[BLOCKS_MAX]; /* 0: not live */
	uint32_t seen[BLOCKS_MAX]; /* number of the last scan that saw it */
	uint32_t count, live_count, last_version, scan;
	uint32_t changing; /* the block that is put or taken just now, or none */
	unsigned wrong; /* scans that found anything amiss */
} model;

#define NONE UINT32_MAX
#define ANY_ENTRY ((uint64_t)1 << 40)

/* Everything about a block follows from its index and version. */
static inline struct tracer_block block_of(uint32_t index, uint32_t version)
{
	return tracer_block_make(
		model.addrs[index], version % (1u << TRACER_HEAPS_LOG2), index, version);
}

static inline bool is_block(const struct tracer_block *entry, uint32_t index, uint32_t version)
{
	struct tracer_block block = block_of(index, version);

	return entry->key == block.key && entry->what == block.what;
}

/* Counts in *found the live blocks of one shard, each once; false when an entry is wrong. */
static inline bool scan_shard(const struct tracer_shard *shard, uint32_t *found)
{
	uint64_t count;
	const struct tracer_block *table = table_of(shard, &count);

	for (uint64_t i = 0; i < count; i++) {
		uint32_t index = tracer_block_stack(&table[i]);

		if (!table[i].key)
			continue;
		if (index >= model.count || model.addrs[index] != tracer_block_addr(&table[i]))
			return false;
		if (index == model.changing)
			continue;
		if (!model.versions[index] || !is_block(&table[i], index, model.versions[index]))
			return false;
		*found += model.seen[index] != model.scan;
		model.seen[index] = model.scan;
	}
	return true;
}

/* The promise to the reader: every live block is there at least once, whole; no other one is. The
 * block that is changing may be there or not. */
static inline bool is_promise_kept(unsigned first_shard, unsigned last_shard)
{
	uint32_t found = 0, expected = model.live_count;

	model.scan++;
	if (model.changing != NONE)
		expected -= model.versions[model.changing] != 0;
	for (unsigned i = first_shard; i <= last_shard; i++) {
		if (!scan_shard(&area.shards[i], &found))
			return false;
	}
	return found == expected;
}

static inline void model_init(void)
{
	memset(&model, 0, sizeof(model));
	model.changing = NONE;
}

/* Addresses as heaps give them: multiples of 16, each once. */
static inline void model_add_anywhere(uint32_t count)
{
	uint64_t addr = 0x7ff000000000;

	for (; count; count--) {
		addr += 16 + fake_dice(&seed) % 64 * 16;
		model.addrs[model.count++] = addr;
	}
}

/* Finds out by trying: true when an address goes to shard 0, and the index of its entry there. The
 * table must be empty. */
static inline bool probe_addr(uint64_t addr, uint64_t *entry, uint64_t *entry_count)
{
	struct tracer_block block = tracer_block_make(addr, 0, 0, 0);
	bool is_ours;

	blocktable_put(&area, &block);
	is_ours = area.shards[0].count != 0;
	if (is_ours) {
		const struct tracer_block *table = table_of(&area.shards[0], entry_count);

		for (*entry = 0; table[*entry].key != addr; ++*entry)
			assert_true(*entry < *entry_count);
	}
	assert_true(blocktable_take(&area, addr, &block));
	return is_ours;
}

/* Addresses that all go to shard 0, so that it is crowded; and there to its last entries. */
static inline void model_add_crowd(uint32_t count, uint64_t last_entries)
{
	static uint64_t addr;
	uint64_t entry, entry_count;

	assert_int_equal(area.shards[0].count, 0);
	addr = model.count ? addr : 0x550000000000;
	while (count) {
		addr += 16;
		if (!probe_addr(addr, &entry, &entry_count) || entry + last_entries < entry_count)
			continue;
		model.addrs[model.count++] = addr;
		count--;
	}
}

#endif
