/*
 * Events of a recording on their way from the target's threads to hsnap: rings in a section that
 * hsnap creates and both processes map. tracer_area.rings is its address in the target; 0: nothing
 * is recorded. That changes only while no thread holds a lock under which events are published.
 *
 * Each ring has one producer, the thread that owns it, and one consumer, hsnap. Ring 0 is shared,
 * under a lock, by the threads that found no free ring. Integers are little-endian and laid out
 * alike for 32- and 64-bit targets. The target can write everything here: hsnap uses its own
 * ring_count, events_log2 and tails, and checks all the rest.
 *
 * Streams: each shard of the block table is one, and virtual memory is another, RING_RANGES. An
 * event's order is its number in its stream, modulo 2^32, counted from the value of
 * tracer_shard.order (tracer_ranges.order) at the beginning of the recording. The number is
 * assigned, and the event published, inside the lock under which the table itself changes. So
 * - the events of a stream, by order, are the changes of its table, one after another;
 * - a reader that sees an event finds all earlier events of its stream in the rings once it reads
 *   their heads again: a stream has no gaps. A thread that was terminated between the two steps
 *   holds the lock forever, and the stream ends there: later changes are counted in tracer_area
 *   (dropped_blocks, dropped_ranges);
 * - an event that is dropped because a ring is full (RING_DROP) has no number.
 *
 * So a consumer lets an event pass when its order is the next of its stream, whichever ring it is
 * in. Events of one address are in one stream. Between streams only the times give an order,
 * roughly.
 *
 * Events of blocks, where "known" means known to the program that replays them:
 *   RING_ALLOC     block is live. If a block is known at its address, that one ended first: its
 *                  heap was destroyed, or its free was not seen (or dropped).
 *   RING_ALLOC_INSIDE like RING_ALLOC, by a function of the real heap. If its thread's next event
 *                  is RING_ALLOC (or RING_FREE) of that address, apart from RING_FREE_OLD of
 *                  others, this allocation was a part of it.
 *   RING_FREE      block, as in its RING_ALLOC, is no longer live. If no block is known there,
 *                  nothing happened.
 *   RING_FREE_OLD  like RING_FREE, for a block that was in no table when the recording began,
 *                  because it is older than the tracer or was just being freed: only its
 *                  address is known. Not in sessions that are sampled.
 *   RING_HEAP_GONE a heap was destroyed: the blocks with its tag in this stream end, and those with
 *                  its handle that are older than the tracer. Each shard's stream has one such
 *                  event. Blocks with its handle and another tag are of the next heap there.
 * A realloc is RING_FREE and RING_ALLOC. A realloc or a free that is refused is both, too, of the
 * same block.
 *
 * Events of virtual memory; each is about the pages [addr, addr + bytes). Each page has a kind
 * (enum tracer_range_kind), the stack that made it that kind, and the stack that reserved it:
 *   RING_RANGE_ADD     all of them are of this kind by this stack, which also reserved them. This
 *                      replaces whatever was known there.
 *   RING_RANGE_FILL    like RING_RANGE_ADD where nothing is known; known pages stay as they are.
 *   RING_RANGE_USE     RANGE_RESERVED pages become this kind by this stack; their previous stack is
 *                      the one that reserved them. Nothing else changes.
 *   RING_RANGE_GIVE_UP pages of this kind become RANGE_RESERVED, by the stack that reserved them.
 *                      The event's stack is the stack that gave them up.
 *   RING_RANGE_TAKE    nothing is known there any more: the pages were freed or unmapped, by this
 *                      stack, or belong to a heap now.
 * Pages of one call that stay neighbours and equal are one range. RING_FLAG_BEGINS means that the
 * range beginning at addr is of another allocation than the memory below it.
 *
 *   RING_THREAD        the ring's next events are by this thread. It is in no stream, and passes at
 *                      once. The first event in a ring is one, so rings may change owners at
 *                      any time.
 */
#ifndef SNAPSHOT_TRACER_RINGS_H
#define SNAPSHOT_TRACER_RINGS_H

#include "snapshot/tracer/shared.h"

#define RING_MAGIC 0x53474e4952435254u /* "TRCRINGS" */
#define RING_VERSION 2
#define RING_SHARED 0 /* index of the ring that several threads use */
#define RING_RANGES TRACER_SHARDS /* the stream of virtual memory */
#define RING_STREAMS (TRACER_SHARDS + 1)
#define RING_COUNT_MAX 1024u
#define RING_LOG2_MIN 8u /* log2 of the events in a ring: room for all events of one call */
#define RING_LOG2_MAX 20u
#define RING_TIME_SHIFT 10 /* times are those of the time-stamp counter, divided by 2^10 */

enum ring_event_type {
	RING_NONE,
	RING_THREAD,
	RING_ALLOC,
	RING_ALLOC_INSIDE, /* by the real heap's own functions, as when a reallocated block moves */
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

/* One event; see the ring_event_*() accessors below. */
struct ring_event {
	/* Blocks: as in the table. RING_FREE_OLD has only a key (the address), and so has
	 * RING_HEAP_GONE (the tag). Ranges: the key is addr, and the bytes are counted in pages. */
	struct tracer_block block;
	uint32_t order;
	uint32_t time; /* the low bits */
	/* blocks: low half of the heap's handle, or 0; RING_THREAD: its id; ranges: their kind */
	uint32_t low;
	uint16_t high; /* blocks: the handle's next 16 bits; ranges: RING_FLAG_* */
	uint8_t type;
	uint8_t stream;
};

struct ring {
	/* Id of the thread that writes it; 0: free. Threads take a free ring, and hsnap gives it
	 * back. The shared ring is never owned. */
	uint32_t owner;
	uint32_t lock, broken; /* of the shared ring */
	uint32_t events_mask;
	uint64_t events; /* offset of the events from this ring */
	uint64_t waits; /* times that its threads had to wait for room */
	uint64_t waited; /* duration of these waits, in units of time */
	uint64_t dropped; /* events */
	uint64_t padding[2];
	/* The producer's cache line. */
	uint32_t head; /* events ever written, modulo 2^32 */
	uint32_t tail_seen;
	uint32_t thread; /* thread of the last RING_THREAD */
	uint32_t is_full; /* new events are dropped */
	uint32_t time; /* time at which the current call began */
	uint32_t unused[11];
	/* hsnap's cache line. */
	uint32_t tail; /* events ever taken out */
	uint32_t unused_too[15];
};

struct ring_area {
	uint64_t magic;
	uint32_t version, flags; /* RING_DROP */
	uint32_t ring_count, events_log2; /* including the shared ring */
	uint64_t dropped; /* events that found no ring at all: the shared ring is broken */
	uint64_t unused[4];
	struct ring rings[];
	/* followed by the events of each ring, at ring_events_offset() */
};

#define RING_DROP 1u /* threads whose ring is full do not wait */

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

/* Returns the size of a section for ring_count rings of 2^events_log2 events. */
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

/* Returns the events of a ring, for hsnap. Event n, counted from the first ever, is at n modulo
 * 2^events_log2. */
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

static inline uint64_t ring_event_range_bytes(const struct ring_event *event)
{
	return tracer_block_bytes(&event->block) * TRACER_PAGE;
}

/* Returns index and generation of the event's heap, as in blocks. */
static inline uint32_t ring_event_heap_tag(const struct ring_event *event)
{
	return (uint32_t)(event->block.key >> TRACER_ADDR_BITS);
}

/* Returns the handle of the event's heap, or 0. */
static inline uint64_t ring_event_heap(const struct ring_event *event)
{
	return event->low | (uint64_t)event->high << 32;
}

/* Returns the whole time now, of this processor; the same in the target and in hsnap. */
static inline uint64_t ring_time(void)
{
	return __builtin_ia32_rdtsc() >> RING_TIME_SHIFT;
}

/* Returns the whole time of an event that was read at now, and is younger than 2^31 units: about 10
 * minutes. Processors may disagree slightly: the time may be in the future, or go back from one
 * event of a stream to the next, by a few units. */
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

	/* field by field, so that the compiler makes no other copy of it in memory */
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

/* Returns the number of events from tail on, which is the consumer's own count of events taken out.
 * More than 2^events_log2: the ring is damaged. */
static inline uint32_t ring_ready(const struct ring *ring, uint32_t tail)
{
	return __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) - tail;
}

/* Allows the events before tail to be overwritten. */
static inline void ring_consume(struct ring *ring, uint32_t tail)
{
	__atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
}

/* Gives back a ring whose thread has exited. The caller must have found that out after it read the
 * owner: the id may soon be that of another thread, which has another ring. */
static inline void ring_give_back(struct ring *ring)
{
	__atomic_store_n(&ring->owner, 0, __ATOMIC_RELEASE);
}

#endif
