#include "snapshot/stacks/os_stacks.h"

/*
 * RTLP_HEAP_STACK_TRACE_SERIALIZATION_HEADER (older and newer: Version,
 * PointerSize, MappingCount, Heap; Version, PointerSize, Heap, TotalCommit, TotalReserve), from the
 * types in public symbols; ..._ALLOCATION (Address, Flags, DataSize) and ..._STACKFRAME
 * (StackFrame[8]), from phnt's ntrtl.h alone, where they are said to be found by trial. No answer of a
 * real system was at hand.
 */
static const struct os_stacks_layout layouts[] = {
	{.bits = 32,
		.old_header_bytes = 0x0c,
		.header_bytes = 0x10,
		.allocation_address = 0x00,
		.allocation_size = 0x08,
		.allocation_bytes = 0x0c,
		.group_bytes = 0x20},
	{.bits = 64,
		.old_header_bytes = 0x10,
		.header_bytes = 0x20,
		.allocation_address = 0x00,
		.allocation_size = 0x10,
		.allocation_bytes = 0x18,
		.group_bytes = 0x40},
};

const struct os_stacks_layout *os_stacks_layout(unsigned bits)
{
	return &layouts[bits == 64];
}
