/*
 * The blocks that the hooks record: all of them, or a sample (tracer_area.sample_bytes).
 *
 * With a sample most blocks are not in the table, and their frees should not look for them: a filter
 * says where there may be one. What is taken out in other ways than liveblocks_take() (with its heap,
 * or because the same address is put twice) stays in the filter, and only makes it less of use.
 */
#ifndef SNAPSHOT_TRACER_LIVEBLOCKS_H
#define SNAPSHOT_TRACER_LIVEBLOCKS_H

#include <stdbool.h>

#include "snapshot/tracer/blocktable.h"
#include "snapshot/tracer/hooks.h"

/* Takes what TLS slots the sample needs; false when there is none. */
bool liveblocks_init(void);

/* The same three where there is a sample. */
bool liveblocks_sample(uint64_t bytes);
void liveblocks_put_sampled(const struct tracer_block *block);
bool liveblocks_take_sampled(uint64_t addr, struct tracer_block *block);

static inline bool liveblocks_are_sampled(void)
{
	return __builtin_expect(hsnap_tracer.sample_bytes != 0, 0);
}

/* Whether to record a block of that size that was just allocated. To be asked once for each. */
static inline bool liveblocks_want(uint64_t bytes)
{
	return !liveblocks_are_sampled() || liveblocks_sample(bytes);
}

static inline void liveblocks_put(const struct tracer_block *block)
{
	if (liveblocks_are_sampled())
		liveblocks_put_sampled(block);
	else
		blocktable_put(&hsnap_tracer, block);
}

/* True when the block was recorded; then it is no more. */
static inline bool liveblocks_take(uint64_t addr, struct tracer_block *block)
{
	if (liveblocks_are_sampled())
		return liveblocks_take_sampled(addr, block);
	return blocktable_take(&hsnap_tracer, addr, block);
}

#endif
