/* Replay of the rings' events. The tracer's blocks and ranges become the recording's allocations
 * and frees (core/record/live.h). Kinds of blocks are cached, because most of them repeat. */
#include "snapshot/record/replay.h"

#include <stdlib.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/record/live.h"

#define ADDR_MASK (((uint64_t)1 << TRACER_ADDR_BITS) - 1)
#define CACHE_LOG2 14
/* maximum number of unseen frees: the number of live blocks divided by UNSEEN_SHARE, or
 * UNSEEN_FEWEST if that is more */
#define UNSEEN_SHARE 100
#define UNSEEN_FEWEST 64

_Static_assert(TRACER_ADDR_BITS == LIVE_ADDR_BITS, "tags are the same");

struct cached_kind {
	uint64_t what, heap; /* what: as in struct tracer_block; heap: the handle */
	uint32_t kind;
	bool is_known;
};

struct replay {
	struct recorder *recorder;
	replay_stack_fn stack;
	void *ctx;
	struct live_blocks *blocks;
	struct live_ranges *ranges;
	uint64_t multiplier;
	uint8_t *gone; /* for each tag: number of streams that have reported the end of the heap */
	struct cached_kind *kinds;
};

struct replay *replay_new(struct recorder *recorder, replay_stack_fn stack, void *ctx)
{
	struct replay *replay = xcalloc(1, sizeof(*replay));

	*replay = (struct replay){.recorder = recorder,
		.stack = stack,
		.ctx = ctx,
		.blocks = live_blocks_new(recorder),
		.ranges = live_ranges_new(recorder),
		.multiplier = hash_key().words[0] | 1,
		.gone = xcalloc(LIVE_TAGS, sizeof(*replay->gone)),
		.kinds = xcalloc((size_t)1 << CACHE_LOG2, sizeof(*replay->kinds))};
	return replay;
}

void replay_free(struct replay *replay)
{
	if (!replay)
		return;
	live_blocks_free(replay->blocks);
	live_ranges_free(replay->ranges);
	free(replay->gone);
	free(replay->kinds);
	free(replay);
}

static uint32_t stack_of(struct replay *replay, uint32_t id)
{
	return id ? replay->stack(replay->ctx, id) : RECORD_NO_STACK;
}

/* ---------------------------------------------------------------- blocks */

static uint32_t kind_of(struct replay *replay, const struct tracer_block *block, uint64_t heap)
{
	uint64_t hash = (block->what ^ heap * replay->multiplier) * replay->multiplier;
	struct cached_kind *cached = &replay->kinds[hash >> (64 - CACHE_LOG2)];

	if (!cached->is_known || cached->what != block->what || cached->heap != heap) {
		const struct record_kind kind = {.bytes = tracer_block_bytes(block),
			.stack = stack_of(replay, tracer_block_stack(block)),
			.heap = recorder_heap(replay->recorder, heap),
			.memory = RECORD_HEAP};

		*cached = (struct cached_kind){
			block->what, heap, recorder_kind(replay->recorder, &kind), true};
	}
	return cached->kind;
}

static void begin_block(struct replay *replay, const struct tracer_block *block, uint64_t heap)
{
	live_block_begin(replay->blocks, tracer_block_addr(block),
		(unsigned)(block->key >> TRACER_ADDR_BITS), heap, kind_of(replay, block, heap));
}

void replay_add_block(
	struct replay *replay, uint64_t addr, uint64_t heap, uint64_t bytes, uint32_t stack)
{
	const struct tracer_block block = tracer_block_make(addr, 0, stack, bytes);

	if (addr && addr <= ADDR_MASK)
		begin_block(replay, &block, heap);
}

/*
 * Counts the streams that have reported the end of a heap. Each stream reports the end once, after
 * all events of the heap's blocks. The last report ends the blocks. Blocks that are older than the
 * tracer have no tag.
 */
static void heap_is_gone(struct replay *replay, uint32_t tag, uint64_t handle)
{
	if (++replay->gone[tag] < TRACER_SHARDS)
		return;
	replay->gone[tag] = 0;
	if (tag)
		live_heap_end_tag(replay->blocks, tag);
	if (handle)
		live_heap_end(replay->blocks, handle);
}

/* ---------------------------------------------------------------- ranges */

static bool range_event(struct replay *replay, const struct ring_event *event)
{
	static const enum record_memory memories[] = {[RANGE_RESERVED] = RECORD_RESERVED,
		[RANGE_COMMITTED] = RECORD_COMMITTED,
		[RANGE_MAPPED] = RECORD_MAPPED,
		[RANGE_STACK] = RECORD_STACK};
	static const enum live_change changes[] = {[RING_RANGE_FILL] = LIVE_FILL,
		[RING_RANGE_USE] = LIVE_USE,
		[RING_RANGE_GIVE_UP] = LIVE_GIVE_UP,
		[RING_RANGE_TAKE] = LIVE_TAKE};
	uint64_t start = ring_event_addr(event), bytes = ring_event_range_bytes(event);
	enum record_memory memory = RECORD_COMMITTED; /* not used for RING_RANGE_TAKE */
	uint32_t stack;

	if (!bytes || bytes > ADDR_MASK + 1 - start)
		return false;
	if (start >= TRACER_HANDLES)
		return true; /* recordings have no handles */
	if (event->type != RING_RANGE_TAKE) {
		if (event->low < RANGE_RESERVED || event->low > RANGE_STACK)
			return false;
		memory = memories[event->low];
	}
	stack = stack_of(replay, tracer_block_stack(&event->block));
	if (event->type != RING_RANGE_ADD) {
		live_ranges_change(
			replay->ranges, changes[event->type], start, start + bytes, memory, stack);
	} else {
		/* the free of the earlier memory was missed */
		live_ranges_change(
			replay->ranges, LIVE_TAKE, start, start + bytes, memory, RECORD_NO_STACK);
		live_ranges_change(replay->ranges, LIVE_FILL, start, start + bytes, memory, stack);
	}
	return true;
}

/* ---------------------------------------------------------------- events */

bool replay_event(struct replay *replay, const struct ring_event *event)
{
	uint64_t addr = ring_event_addr(event);

	switch (event->type) {
	case RING_ALLOC:
		if (!addr)
			return false;
		begin_block(replay, &event->block, ring_event_heap(event));
		return true;
	case RING_FREE:
	case RING_FREE_OLD:
		if (addr)
			live_block_end(replay->blocks, addr, RECORD_NO_STACK);
		return addr;
	case RING_HEAP_GONE:
		heap_is_gone(replay, ring_event_heap_tag(event), ring_event_heap(event));
		return true;
	case RING_RANGE_ADD:
	case RING_RANGE_FILL:
	case RING_RANGE_USE:
	case RING_RANGE_GIVE_UP:
	case RING_RANGE_TAKE: return range_event(replay, event);
	default: return false;
	}
}

size_t replay_filter_blocks(struct replay *replay, bool (*exists)(const void *ctx, uint64_t addr),
	const void *ctx, bool may_free_unseen, bool *is_freed)
{
	const size_t share = live_blocks_count(replay->blocks) / UNSEEN_SHARE;
	const size_t few = share > UNSEEN_FEWEST ? share : UNSEEN_FEWEST;
	const size_t most = may_free_unseen ? SIZE_MAX : few;
	size_t count = live_blocks_filter(replay->blocks, exists, ctx, most);

	*is_freed = count <= most;
	return count;
}
