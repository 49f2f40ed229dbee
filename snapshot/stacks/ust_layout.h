/* Offsets of fields in the user-mode stack trace database (snapshot/stacks/ust.h). */
#ifndef SNAPSHOT_STACKS_UST_LAYOUT_H
#define SNAPSHOT_STACKS_UST_LAYOUT_H

#include <stdint.h>

struct ust_layout {
	unsigned bits;
	/* One record: _RTL_STACK_TRACE_ENTRY. */
	uint16_t trace_count; /* 16 bits: the upper 5 are BlockDepth */
	uint16_t index_high, index, depth, frames;
	/* A trace of page heap: _RTL_TRACE_BLOCK. */
	uint16_t trace_number, trace_size, trace_frames; /* Count, Size, Trace */
	uint16_t trace_bytes;
	/* The database: _STACK_TRACE_DATABASE. */
	uint16_t commit_base, lower_commit, upper_commit, lower_free, upper_free;
	uint16_t lookups, added, index_array, failures;
	uint16_t bucket_count, buckets;
	uint16_t bucket_bytes; /* size of one bucket; its first field points to a record */
};

const struct ust_layout *ust_layout(unsigned bits);

#endif
