/* Layouts of the user-mode stack trace database, with their sources. */
#include "snapshot/stacks/ust_layout.h"

/*
 * struct _RTL_STACK_TRACE_ENTRY: TraceCount with BlockDepth, IndexHigh, Index, Depth, BackTrace.
 *
 * struct _RTL_TRACE_BLOCK: Count, Size, Trace. The only source is radare2's listings (7 x86, 10
 * x64). They also show that a StackTrace of page heap may point to such a block.
 *
 * struct _STACK_TRACE_DATABASE: CommitBase, CurrentLowerCommitLimit, CurrentUpperCommitLimit,
 * NextFreeLowerMemory, NextFreeUpperMemory, NumberOfEntriesLookedUp, NumberOfEntriesAdded,
 * EntryIndexArray, NumberOfAllocationFailures, NumberOfBuckets, Buckets. Each bucket is a struct
 * _RTL_STD_LIST_HEAD.
 *
 * Sources: public symbols of ntdll, Windows 7 to 10 19041, both bitnesses, as listed by radare2 (7
 * x86, 10 x64) and ntdiff (7 x64, 19041). mozdbgext reads the database of Windows 7 in the same
 * way. */
static const struct ust_layout layouts[] = {
	{.bits = 32,
		.trace_count = 0x04,
		.index_high = 0x06,
		.index = 0x08,
		.depth = 0x0a,
		.frames = 0x0c,
		.trace_number = 0x04,
		.trace_size = 0x08,
		.trace_frames = 0x1c,
		.trace_bytes = 0x20,
		.commit_base = 0x48,
		.lower_commit = 0x4c,
		.upper_commit = 0x50,
		.lower_free = 0x54,
		.upper_free = 0x58,
		.lookups = 0x5c,
		.added = 0x60,
		.index_array = 0x64,
		.failures = 0x70,
		.bucket_count = 0x178,
		.buckets = 0x17c,
		.bucket_bytes = 8},
	{.bits = 64,
		.trace_count = 0x08,
		.index_high = 0x0a,
		.index = 0x0c,
		.depth = 0x0e,
		.frames = 0x10,
		.trace_number = 0x04,
		.trace_size = 0x08,
		.trace_frames = 0x30,
		.trace_bytes = 0x38,
		.commit_base = 0x88,
		.lower_commit = 0x90,
		.upper_commit = 0x98,
		.lower_free = 0xa0,
		.upper_free = 0xa8,
		.lookups = 0xb0,
		.added = 0xb4,
		.index_array = 0xb8,
		.failures = 0xc8,
		.bucket_count = 0x2d0,
		.buckets = 0x2d8,
		.bucket_bytes = 16},
};

const struct ust_layout *ust_layout(unsigned bits)
{
	return &layouts[bits == 64];
}
