#include "snapshot/tracer_describe.h"

#include <inttypes.h>

/* What the tracer was full of. */
#define REMEDY "give its tables more room with --max-mb"

/* Blocks that the walkers found and that are not in the tracer's table: of a process that ran before
 * its tracer came, those from before. */
static struct census unseen(const struct captured *captured)
{
	const struct walk *walk = &captured->walk;
	struct census census = {0};

	for (size_t i = 0; i < walk->block_count; i++) {
		const struct walked_block *block = &walk->blocks[i];

		if (tracer_copy_find(&captured->tracer, block->addr))
			continue;
		census_add(&census,
			&(struct census){1, block->requested_bytes, block->overhead_bytes});
	}
	return census;
}

void describe_tracer(struct snapshot *snapshot, const struct captured *captured)
{
	const struct tracer_area *area = &captured->tracer.area;

	if (!captured->has_tracer)
		return;
	snapshot->tracer = (struct tracer_facts){
		.version = area->version,
		.dropped_blocks = area->dropped_blocks,
		.dropped_stacks = area->dropped_stacks,
		.dropped_ranges = area->dropped_ranges,
		.dropped_unloads = area->dropped_unloads,
		.mismatch_count = area->unwind_mismatches,
		.is_attached = area->flags & TRACER_FLAG_ATTACHED,
		.limit_bytes = area->limit_bytes,
		.committed_bytes = area->committed_bytes,
		.sample_bytes = area->sample_bytes,
	};
	/* Of a sample most blocks are not in the table, whenever they were made. */
	if (snapshot->tracer.is_attached && !area->sample_bytes)
		snapshot->tracer.before = unseen(captured);
}

static void warn_of_drops(struct snapshot *snapshot, const struct tracer_area *area)
{
	if (area->dropped_blocks)
		snapshot_warn(snapshot,
			"the tracer had no room for %" PRIu64
			" blocks, which have no stack if they still live; " REMEDY,
			area->dropped_blocks);
	if (area->dropped_stacks)
		snapshot_warn(snapshot,
			"the tracer had no room for the stacks of %" PRIu64 " blocks; " REMEDY,
			area->dropped_stacks);
	/* With a broken lock what was dropped is not for want of room. */
	if (area->ranges.broken)
		snapshot_lacks(snapshot,
			"the tracer's table of virtual memory was left locked by a thread that "
			"ended; ranges are as they were then, and %" PRIu64 " changes are missing",
			area->dropped_ranges);
	else if (area->dropped_ranges)
		snapshot_lacks(snapshot,
			"the tracer had no room for %" PRIu64
			" ranges of virtual memory, which are not listed; " REMEDY,
			area->dropped_ranges);
	if (area->dropped_unloads)
		snapshot_warn(snapshot,
			"the tracer had no room for %" PRIu64
			" modules that were unloaded: frames in them have no name; " REMEDY,
			area->dropped_unloads);
}

void warn_of_tracer(struct snapshot *snapshot, const struct captured *captured)
{
	const struct tracer_copy *tracer = &captured->tracer;
	const struct tracer_area *area = &tracer->area;

	if (!captured->has_tracer)
		return;
	if (area->sample_bytes)
		snapshot_warn(snapshot,
			"figures are estimates: one in %" PRIu64 " bytes was recorded",
			area->sample_bytes);
	warn_of_drops(snapshot, area);
	if (area->unwind_mismatches)
		snapshot_warn(snapshot,
			"%" PRIu64
			" times the tracer's fast way through a stack was found wrong, and was put "
			"right from there on; stacks before may have a frame too many or too few",
			area->unwind_mismatches);
	if (tracer->broken_shards)
		snapshot_warn(snapshot,
			"%u of the %d parts of the tracer's table were left locked by a thread "
			"that ended; their blocks are counted without a stack",
			tracer->broken_shards, TRACER_SHARDS);
	if (tracer->ranges.broken_count)
		snapshot_lacks(snapshot,
			"%" PRIu64 " ranges of virtual memory in the tracer's table make no sense; "
			"they are not listed",
			tracer->ranges.broken_count);
	if (tracer->modules.unplaced_count)
		snapshot_warn(snapshot,
			"there is no address space to list %zu modules that were unloaded; frames "
			"in them have no name",
			tracer->modules.unplaced_count);
}
