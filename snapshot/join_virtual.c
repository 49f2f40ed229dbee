#include "snapshot/join_virtual.h"

#include "snapshot/traced_stacks.h"

/* In the order of the headings. */
static const struct {
	uint64_t addr;
	enum tracer_range_kind kind;
	const char *name;
} headings[] = {
	{HEAP_VIRTUAL, RANGE_COMMITTED, "virtual"},
	{HEAP_RESERVED, RANGE_RESERVED, "reserved"},
	{HEAP_MAPPED, RANGE_MAPPED, "mapped"},
};

static int add_range(struct traced_stacks *stacks, const struct tracer_range *range, uint32_t heap)
{
	struct snapshot *snapshot = stacks->snapshot;
	struct block made = {
		.addr = range->start, .requested_bytes = range->end - range->start, .heap = heap};
	struct block *block;
	int rc = traced_stacks_find(stacks, range->stack, &made.stack);

	if (rc)
		return rc;
	if (made.stack == STACK_NONE) {
		census_add(&snapshot->heaps[heap].stackless,
			&(struct census){
				.block_count = 1, .requested_bytes = made.requested_bytes});
		return 0;
	}
	block = snapshot_add_block(snapshot);
	if (!block)
		return -ERR_NOMEM;
	*block = made;
	return 0;
}

static int add_heading(struct traced_stacks *stacks, size_t number)
{
	const struct tracer_range_list *ranges = &stacks->tracer->ranges;
	struct snapshot *snapshot = stacks->snapshot;
	struct heap *heap = snapshot_add_heap(snapshot);
	uint64_t bytes = 0;
	int rc = 0;

	if (!heap)
		return -ERR_NOMEM;
	*heap = (struct heap){.addr = headings[number].addr,
		.bits = snapshot->bits,
		.kind = headings[number].name};
	for (size_t i = 0; !rc && i < ranges->count; i++) {
		const struct tracer_range *range = &ranges->items[i];

		if (range->kind != headings[number].kind)
			continue;
		bytes += range->end - range->start;
		rc = add_range(stacks, range, (uint32_t)snapshot->heap_count - 1);
	}
	heap->reserved_bytes = bytes;
	heap->committed_bytes = headings[number].kind == RANGE_RESERVED ? 0 : bytes;
	return rc;
}

/* The functions that tell of it are hooked, or were. */
static bool is_recorded(const struct tracer_copy *tracer)
{
	return tracer->area.hooks[HOOK_VIRTUAL_ALLOCATE].patch_bytes || tracer->ranges.count;
}

int join_virtual(struct snapshot *snapshot, const struct captured *captured)
{
	struct traced_stacks stacks;
	int rc = 0;

	if (!captured->has_tracer || !is_recorded(&captured->tracer))
		return 0;
	traced_stacks_init(&stacks, snapshot, &captured->tracer);
	for (size_t i = 0; !rc && i < sizeof(headings) / sizeof(*headings); i++)
		rc = add_heading(&stacks, i);
	traced_stacks_release(&stacks);
	return rc;
}
