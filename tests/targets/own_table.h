/* Access to the tracer's entries in this process, for programs that compare the entries with their
 * own calls. Reads the tracer's area as hsnap does, but from inside, and in one thread while no
 * other thread allocates. Without a tracer own_table() returns NULL. */
#ifndef TESTS_OWN_TABLE_H
#define TESTS_OWN_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <windows.h>

#include "snapshot/tracer/shared.h"

static inline const struct tracer_area *own_table(void)
{
	HMODULE tracer = GetModuleHandleW(L"" TRACER_DLL_64);

	return tracer ? (const void *)GetProcAddress(tracer, TRACER_EXPORT) : NULL;
}

/* Returns the entry of an address, or NULL. Searches each shard from end to end, without
 * assumptions about the entries' order. */
static inline const struct tracer_block *own_table_find(
	const struct tracer_area *area, const void *addr)
{
	const struct tracer_block *found = NULL;

	for (unsigned i = 0; i < TRACER_SHARDS; i++) {
		const struct tracer_block *entries = (const void *)(uintptr_t)area->shards[i].table;
		uint64_t count = area->shards[i].pages * TRACER_PAGE / sizeof(*entries);

		for (uint64_t at = 0; at < count; at++) {
			if (entries[at].key && tracer_block_addr(&entries[at]) == (uintptr_t)addr &&
				tracer_block_is_live(area, &entries[at]))
				found = &entries[at];
		}
	}
	return found;
}

static inline const struct tracer_stack *own_table_stack(
	const struct tracer_area *area, const struct tracer_block *block)
{
	return (const void *)(uintptr_t)(area->stacks + (uint64_t)tracer_block_stack(block) * 8);
}

/* Returns true if the stack passes through the function that begins at this address. */
static inline bool own_table_is_by(
	const struct tracer_area *area, const struct tracer_block *block, const void *function)
{
	const struct tracer_stack *stack = own_table_stack(area, block);

	for (unsigned i = 0; tracer_block_stack(block) && i < stack->depth; i++) {
		DWORD64 base;
		const RUNTIME_FUNCTION *entry =
			RtlLookupFunctionEntry(stack->frames[i], &base, NULL);

		if (entry && base + entry->BeginAddress == (uintptr_t)function)
			return true;
	}
	return false;
}

/* Returns how many bytes of [from, to) are in recorded pages of this kind. */
static inline uint64_t own_table_virtual(
	const struct tracer_area *area, uint32_t kind, uint64_t from, uint64_t to)
{
	const struct tracer_range *nodes = (const void *)(uintptr_t)area->ranges.nodes;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < area->ranges.node_count; i++) {
		uint64_t start = nodes[i].start > from ? nodes[i].start : from;
		uint64_t end = nodes[i].end < to ? nodes[i].end : to;

		if (nodes[i].kind == kind && start < end)
			bytes += end - start;
	}
	return bytes;
}

#endif
