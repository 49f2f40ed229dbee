#include "snapshot/control/parts.h"

#include "snapshot/tracer/blocktable.h"
#include "snapshot/tracer/stacktable.h"

#define GRANULE ((uint64_t)0x10000)
#define STACKS_MAX ((uint64_t)8 << TRACER_STACK_BITS) /* what an id can reach */
#define RANGES_MAX ((uint64_t)1 << 20)
#define MODULES_BYTES ((uint64_t)1 << 20)
#define UNLOADS_MAX ((uint64_t)1 << 16)

static uint64_t at_most(uint64_t value, uint64_t max)
{
	return value < max ? value : max;
}

/* Whole granules, one at least. */
static uint64_t granules(uint64_t bytes)
{
	return bytes < GRANULE ? GRANULE : bytes & ~(GRANULE - 1);
}

/* The next part's address: behind one of so many bytes. */
static uint64_t take(uint64_t *next, uint64_t bytes)
{
	uint64_t addr = *next;

	*next = (addr + bytes + GRANULE - 1) & ~(GRANULE - 1);
	return addr;
}

/*
 * Room for all tables of a shard that can lie beside each other: each is twice as large as the last.
 * The largest ones take all that may be committed, or more than half of it.
 */
static uint64_t shard_bytes(uint64_t limit_bytes)
{
	uint64_t largest = BLOCKTABLE_FIRST_BYTES;

	while (largest * 2 <= limit_bytes / TRACER_SHARDS)
		largest *= 2;
	return largest * 2;
}

void parts_set(struct tracer_area *area, uint64_t base, uint64_t limit_bytes)
{
	uint64_t next = base;

	area->limit_bytes = limit_bytes;
	area->committed_bytes = 0;
	/* Half of all is more than stacks are likely to take, and 32-bit targets are short of room. */
	area->stacks_limit = granules(at_most(limit_bytes / 2, STACKS_MAX));
	area->stack_buckets =
		take(&next, stacktable_index_offset(stacktable_levels(area->stacks_limit)));
	area->stacks = take(&next, area->stacks_limit);
	area->stacks_top = 8; /* no record has id 0 */
	area->stacks_committed = 0;
	area->shard_bytes = shard_bytes(limit_bytes);
	area->shard_tables = take(&next, area->shard_bytes * TRACER_SHARDS);
	area->modules_limit = MODULES_BYTES;
	area->modules = take(&next, area->modules_limit);
	area->modules_top = 0;
	area->unload_limit = UNLOADS_MAX;
	area->unloads = take(&next, area->unload_limit * sizeof(struct tracer_unload));
	area->unload_count = 0;
	area->unload_lock = area->unload_broken = 0;
	area->lost_from = UINT64_MAX;
	area->lost_to = 0;
	area->heaps_destroyed = 0;
	area->dropped_blocks = area->dropped_stacks = 0;
	area->dropped_ranges = area->dropped_unloads = 0;
	area->unwind_base += area->unwind_mismatches; /* its tracer counts on */
	area->unwind_mismatches = 0;
	area->ranges = (struct tracer_ranges){0};
	area->ranges.node_limit =
		at_most(limit_bytes / 16 / sizeof(struct tracer_range), RANGES_MAX);
	area->ranges.nodes = take(&next, area->ranges.node_limit * sizeof(struct tracer_range));
	for (unsigned i = 0; i < TRACER_SHARDS; i++)
		area->shards[i] = (struct tracer_shard){0};
	for (unsigned i = 0; i < 1u << TRACER_HEAPS_LOG2; i++)
		area->heaps[i] = 0;
	area->reserved = base;
	area->reserved_bytes = next - base;
}

uint64_t parts_reserve_bytes(uint64_t limit_bytes)
{
	struct tracer_area area = {0}; /* only asked for its size */

	parts_set(&area, 0, limit_bytes);
	return area.reserved_bytes;
}
