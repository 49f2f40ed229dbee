/*
 * A recording's events on their way from the target's threads to hsnap: rings in a section that hsnap
 * makes and both have mapped. tracer_area.rings is its address in the target; 0: nothing is recorded. It changes
 * only while no thread has a lock under which events are published.
 *
 * Each ring has one producer, the thread that owns it, and one consumer, hsnap. Ring 0 is shared, under
 * a lock, by the threads that found no free one. Integers are little-endian and laid out alike for 32-
 * and 64-bit targets. All that stands here is the target's to write: hsnap goes by its own ring_count,
 * events_log2 and tails, and believes nothing else unchecked.
 *
 * The streams. Each shard of the block table is one, and virtual memory is another: RING_RANGES. An
 * event's order is its number in its stream, modulo 2^32, from where the recording found
 * tracer_shard.order (tracer_ranges.order) on. Number and event are made and
 * published inside the lock under which the table itself changes. So
 *  - the events of a stream, by order, are what happened to its table, one after another;
 *  - who sees one of them finds all that come before it in the rings, once it looks at their heads again:
 *    a stream has no gaps. A thread that was ended between the two has the lock for ever, and the stream
 *    ends there: what follows is counted in tracer_area (dropped_blocks, dropped_ranges);
 *  - what is dropped because a ring is full (RING_DROP) has no number.
 * So a consumer lets an event pass when its order is the next one of its stream, whichever ring it is in.
 * Events of one address are in one stream. Between streams only times tell, roughly.
 *
 * What the events say of blocks, where "known" means to whoever replays them:
 *    RING_ALLOC     block is live. If one is known at its address, that ended first: its heap was destroyed,
 *                   or its free was not seen (or dropped).
 *    RING_ALLOC_INSIDE the same, by a function of the real heap: where its thread says RING_ALLOC (or RING_FREE) of
 *                   that address next, but for RING_FREE_OLD of others, this one was a part of it.
 *    RING_FREE      block, as RING_ALLOC had it, is live no more. If none is known there: nothing happened.
 *    RING_FREE_OLD  the same of a block that was in no table when the recording began, as it is older than the tracer
 *                   or was just being freed: only its address is known. Not in sessions that are sampled.
 *    RING_HEAP_GONE a heap was destroyed: the blocks with its tag end that are in this stream, and those with
 *                   its handle that are older than the tracer. Each shard's stream has one. Blocks with its
 *                   handle and another tag are of the next heap at that place.
 * A realloc is RING_FREE and RING_ALLOC; one that is refused, and a free that is refused, is both too: of
 * the same block.
 *
 * And of virtual memory; each is about the pages [addr, addr + bytes). For each page there is a kind
 * (enum tracer_range_kind), the stack that made it that kind, and the stack that reserved it:
 *    RING_RANGE_ADD     all of them are of this kind by this stack, which also reserved them. Whatever
 *                       was known there is replaced.
 *    RING_RANGE_FILL    the same, but only where nothing is known; what is known stays.
 *    RING_RANGE_USE     what is RANGE_RESERVED becomes of this kind by this stack; the stack it had is that
 *                       which reserved it. Nothing else changes.
 *    RING_RANGE_GIVE_UP what is of this kind becomes RANGE_RESERVED, by the stack which reserved it.
 *                       The event's stack is that which gave it up.
 *    RING_RANGE_TAKE    nothing is known there any more: it was freed or unmapped, by this stack, or is a
 *                       heap's now.
 * Pages of one call that stay neighbours and equal are one range; RING_FLAG_BEGINS says that the range
 * that begins at addr is of another allocation than what lies below it.
 *
 *    RING_THREAD        the ring's next events are by this thread. It is in no stream, and passes at once.
 *                       The first event in a ring is one, so rings may change hands at any time.
 */
#ifndef SNAPSHOT_TRACER_RINGS_H
#define SNAPSHOT_TRACER_RINGS_H

#include "snapshot/tracer/shared.h"

#define RING_MAGIC 0x53474e4952435254u /* "TRCRINGS" */
#define RING_VERSION 2
#define RING_SHARED 0 /* the index of the ring that several threads use */
#define RING_RANGES TRACER_SHARDS /* the stream of virtual memory */
#define RING_STREAMS (TRACER_SHARDS + 1)
#define RING_COUNT_MAX 1024u
#define RING_LOG2_MIN 8u /* of events in a ring: room for all that one call may have to say */
#define RING_LOG2_MAX 20u
#define RING_TIME_SHIFT 10 /* times are those of the time-stamp counter, divided by 2^10 */

enum ring_event_type {
	RING_NONE,
	RING_THREAD,
	RING_ALLOC,
	RING_ALLOC_INSIDE, /* by the real heap's own functions, as when a block moves that is reallocated */
	RING_FREE,
	RING_FREE_OLD,
	RING_HEAP_GONE,
	RING_RANGE_ADD,
	RING_RANGE_FILL,
	RING_RANGE_USE,
	RING_RANGE_GIVE_UP,
	RING_RANGE_TAKE,
	RING_TYPES,
};

#define RING_FLAG_BEGINS 0x8000u

/* One event; ring_event_*() below take it apart. */
struct ring_event {
	/* Of blocks: as the table has it. Its key alone: RING_FREE_OLD (the address), RING_HEAP_GONE (the tag).
	 * Of ranges: the key is addr, and the bytes are counted in pages. */
	struct tracer_block block;
	uint32_t order;
	uint32_t time; /* the low bits */
	uint32_t
		low; /* of the heap's handle, or 0; of RING_THREAD: its id; of ranges: their kind */
	uint16_t high; /* the handle's next 16 bits; of ranges: RING_FLAG_* */
	uint8_t type;
	uint8_t stream;
};

struct ring {
	/* The id of the thread that writes it; 0: it is free. Threads take a free one, and hsnap gives it back.
	 * The shared one is never owned. */
	uint32_t owner;
	uint32_t lock, broken; /* of the shared one */
	uint32_t events_mask;
	uint64_t events; /* where they are, from this ring on */
	uint64_t waits; /* how often its threads had to wait for room */
	uint64_t waited; /* how long, in units of time */
	uint64_t dropped; /* events */
	uint64_t padding[2];
	/* The producer's cache line. */
	uint32_t head; /* events ever written, modulo 2^32 */
	uint32_t tail_seen;
	uint32_t thread; /* whom the last RING_THREAD named */
	uint32_t is_full; /* what comes now is dropped */
	uint32_t time; /* when what is being recorded began */
	uint32_t unused[11];
	/* hsnap's. */
	uint32_t tail; /* events ever taken out */
	uint32_t unused_too[15];
};

struct ring_area {
	uint64_t magic;
	uint32_t version, flags; /* RING_DROP */
	uint32_t ring_count, events_log2; /* the shared ring counts */
	uint64_t dropped; /* events that found no ring at all: the shared one is broken */
	uint64_t unused[4];
	struct ring rings[];
	/* then, from ring_events_offset() on, the events of each ring */
};

#define RING_DROP 1u /* who finds its ring full does not wait */

_Static_assert(sizeof(struct ring_event) == 32, "layout");
_Static_assert(offsetof(struct ring_event, order) == 16, "layout");
_Static_assert(offsetof(struct ring_event, stream) == 31, "layout");
_Static_assert(offsetof(struct ring, head) == 64, "layout");
_Static_assert(offsetof(struct ring, tail) == 128, "layout");
_Static_assert(sizeof(struct ring) == 192, "layout");
_Static_assert(offsetof(struct ring_area, rings) == 64, "layout");

/* ---------------------------------------------------------------- the section */

static inline uint64_t ring_events_offset(uint32_t ring_count)
{
	uint64_t bytes =
		offsetof(struct ring_area, rings) + ring_count * (uint64_t)sizeof(struct ring);

	return (bytes + TRACER_PAGE - 1) & ~(TRACER_PAGE - 1);
}

/* Of a section for so many rings of 2^events_log2 events. */
static inline uint64_t ring_area_bytes(uint32_t ring_count, uint32_t events_log2)
{
	return ring_events_offset(ring_count) +
	       ((uint64_t)ring_count << events_log2) * sizeof(struct ring_event);
}

/* Prepares a section that is all zeros. */
static inline void ring_area_init(
	struct ring_area *area, uint32_t ring_count, uint32_t events_log2, uint32_t flags)
{
	*area = (struct ring_area){.magic = RING_MAGIC,
		.version = RING_VERSION,
		.flags = flags,
		.ring_count = ring_count,
		.events_log2 = events_log2};
	for (uint32_t i = 0; i < ring_count; i++) {
		struct ring *ring = &area->rings[i];
		uint64_t events = ring_events_offset(ring_count) +
				  ((uint64_t)i << events_log2) * sizeof(struct ring_event);

		ring->events = events - (uint64_t)((char *)ring - (char *)area);
		ring->events_mask = ((uint32_t)1 << events_log2) - 1;
	}
}

/* The events of a ring, for hsnap; its event n, counted from the first ever, is at n modulo 2^events_log2. */
static inline const struct ring_event *ring_events(
	const struct ring_area *area, uint32_t ring_count, uint32_t events_log2, uint32_t index)
{
	return (const struct ring_event *)((const char *)area + ring_events_offset(ring_count)) +
	       ((size_t)index << events_log2);
}

/* ---------------------------------------------------------------- events */

static inline uint64_t ring_event_addr(const struct ring_event *event)
{
	return tracer_block_addr(&event->block);
}

/* Of a range. */
static inline uint64_t ring_event_range_bytes(const struct ring_event *event)
{
	return tracer_block_bytes(&event->block) * TRACER_PAGE;
}

/* Index and generation of its heap, as blocks have them. */
static inline uint32_t ring_event_heap_tag(const struct ring_event *event)
{
	return (uint32_t)(event->block.key >> TRACER_ADDR_BITS);
}

/* The handle of its heap, or 0. */
static inline uint64_t ring_event_heap(const struct ring_event *event)
{
	return event->low | (uint64_t)event->high << 32;
}

/* The time now, whole: of this processor, in the target as in hsnap. */
static inline uint64_t ring_time(void)
{
	return __builtin_ia32_rdtsc() >> RING_TIME_SHIFT;
}

/* The whole time of an event that was read at now, and is younger than 2^31 units: 10 minutes or so.
 * Processors may not quite agree: it may be in the future, or go back from one event of a stream to the next,
 * by a few units. */
static inline uint64_t ring_event_time(const struct ring_event *event, uint64_t now)
{
	return now + (uint64_t)(int64_t)(int32_t)(event->time - (uint32_t)now);
}

/* ---------------------------------------------------------------- the producer's side */

/* Appends an event; there must be room. */
static inline void ring_write(struct ring *ring, const struct ring_event *event)
{
	struct ring_event *to = (struct ring_event *)((char *)ring + ring->events) +
				(ring->head & ring->events_mask);

	/* Field by field: so it never is in memory but there. */
	to->block.key = event->block.key;
	to->block.what = event->block.what;
	to->order = event->order;
	to->time = event->time;
	to->low = event->low;
	to->high = event->high;
	to->type = event->type;
	to->stream = event->stream;
	__atomic_store_n(&ring->head, ring->head + 1, __ATOMIC_RELEASE);
}

/* ---------------------------------------------------------------- the consumer's side */

/* How many events are there from tail on, which is the consumer's own count of those that it took out;
 * more than 2^events_log2: the ring is damaged. */
static inline uint32_t ring_ready(const struct ring *ring, uint32_t tail)
{
	return __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) - tail;
}

/* The events before tail may be overwritten from now on. */
static inline void ring_consume(struct ring *ring, uint32_t tail)
{
	__atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
}

/* Gives back a ring whose thread is gone. That must have been found out after the owner was read: its id may be
 * that of another thread soon, which has another ring. */
static inline void ring_give_back(struct ring *ring)
{
	__atomic_store_n(&ring->owner, 0, __ATOMIC_RELEASE);
}

#endif
