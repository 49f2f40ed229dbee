#include "snapshot/tracer/liveblocks.h"

#include "snapshot/tracer/guard.h"
#include "snapshot/tracer/sample.h"

static struct tracer_filter filter;
static uint64_t random_state;
static uint32_t word_offset; /* of the thread's own word, from the TEB on */

bool liveblocks_init(void)
{
	LARGE_INTEGER now = {0};

	QueryPerformanceCounter(&now);
	random_state = (uint64_t)now.QuadPart ^ (uint64_t)GetCurrentProcessId() << 32;
	word_offset = guard_new_slot();
	return word_offset;
}

bool liveblocks_sample(uint64_t bytes)
{
	return sample_crosses((uint32_t *)guard_slot(word_offset), &random_state,
		hsnap_tracer.sample_bytes, bytes);
}

void liveblocks_put_sampled(const struct tracer_block *block)
{
	tracer_filter_add(&filter, tracer_block_addr(block));
	blocktable_put(&hsnap_tracer, block);
}

bool liveblocks_take_sampled(uint64_t addr, struct tracer_block *block)
{
	if (!tracer_filter_may_hold(&filter, addr) || !blocktable_take(&hsnap_tracer, addr, block))
		return false;
	tracer_filter_remove(&filter, addr);
	return true;
}
