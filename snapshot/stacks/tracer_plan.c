#include "snapshot/stacks/tracer_plan.h"

#include <stdlib.h>

#include "snapshot/stacks/tracer_table.h"

#define ITEMS_MAX ((uint64_t)1 << 32) /* of any table: no product of sizes overflows */

static int add_items(
	struct target_ranges *ranges, uint64_t addr, uint64_t count, uint64_t item_bytes)
{
	if (addr > TARGET_SPACE_BYTES || count > ITEMS_MAX ||
		count * item_bytes > TARGET_SPACE_BYTES - addr)
		return 0;
	return target_ranges_add(ranges, addr, count * item_bytes);
}

static int add_shard(struct target_ranges *ranges, const struct tracer_shard *shard)
{
	unsigned log2 = shard->table & 63;

	if (!shard->table || shard->broken)
		return 0;
	return add_items(
		ranges, shard->table - log2, (uint64_t)1 << log2, sizeof(struct tracer_block));
}

static int add_tables(struct target_ranges *ranges, const struct tracer_area *area)
{
	int rc = 0;

	for (unsigned i = 0; !rc && i < TRACER_SHARDS; i++)
		rc = add_shard(ranges, &area->shards[i]);
	if (!rc && area->stacks_committed)
		rc = add_items(ranges, area->stacks, area->stacks_top, 1);
	if (!rc)
		rc = add_items(ranges, area->modules, area->modules_top, 1);
	if (!rc)
		rc = add_items(ranges, area->unloads, tracer_unloads_kept(area),
			sizeof(struct tracer_unload));
	if (!rc)
		rc = add_items(ranges, area->ranges.nodes, area->ranges.node_count,
			sizeof(struct tracer_range));
	return rc;
}

int tracer_plan(struct target *target, uint64_t area_addr, struct target_ranges *ranges)
{
	struct tracer_area *area = malloc(sizeof(*area));
	int rc = area ? add_items(ranges, area_addr, 1, sizeof(*area)) : -ERR_NOMEM;

	if (!rc && !tracer_area_read(target, area_addr, area, NULL))
		rc = add_tables(ranges, area);
	free(area);
	return rc;
}
