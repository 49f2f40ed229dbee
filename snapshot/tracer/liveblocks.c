#include "snapshot/tracer/liveblocks.h"

#include "snapshot/tracer/guard.h"
#include "snapshot/tracer/sample.h"

static struct tracer_filter filter;
static uint64_t random_state;
/* Of the thread's own word, and of the session that it is from; from the TEB on. */
static uint32_t word_offset, session_offset;

bool liveblocks_init(void)
{
	LARGE_INTEGER now = {0};

	QueryPerformanceCounter(&now);
	random_state = (uint64_t)now.QuadPart ^ (uint64_t)GetCurrentProcessId() << 32;
	word_offset = guard_new_slot();
	/* Of a slot of 64 bits the word is only one half. */
	session_offset = sizeof(uintptr_t) > sizeof(uint32_t) ?
				 word_offset + (uint32_t)sizeof(uint32_t) :
				 guard_new_slot();
	hsnap_tracer.clear = (uintptr_t)&filter;
	hsnap_tracer.clear_bytes = sizeof(filter);
	return word_offset && session_offset;
}

/* A distance of an earlier session is of no use: it was drawn for another mean, say. */
static uint32_t *thread_word(void)
{
	uint32_t *word = (uint32_t *)guard_slot(word_offset);
	uint32_t *session = (uint32_t *)guard_slot(session_offset);

	if (__builtin_expect(*session != hsnap_tracer.session, 0)) {
		*session = hsnap_tracer.session;
		*word = 0;
	}
	return word;
}

bool liveblocks_sample(uint64_t bytes)
{
	return sample_crosses(thread_word(), &random_state, hsnap_tracer.sample_bytes, bytes);
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
