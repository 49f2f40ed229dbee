/*
 * Events of a recording on their way from the target's threads to hsnap. The events are in rings,
 * in a section that hsnap creates and both processes map. tracer_area.rings is the address of the
 * section in the target, or 0 if there is no recording. This address changes only while no thread
 * holds a lock under which events are published.
 *
 * Each ring has one producer, the thread that owns it, and one consumer, hsnap. Threads that found
 * no free ring share ring 0, under a lock. Integers are little-endian and have the same layout for
 * 32- and 64-bit targets. The target can write to the whole section. So hsnap uses its own
 * ring_count, events_log2 and tails, and checks everything else.
 *
 * Streams: each shard of the block table is one stream, and virtual memory is another stream,
 * RING_RANGES. An event's order is its number in its stream, modulo 2^32. The first number is the
 * value that tracer_shard.order (or tracer_ranges.order) has when the recording begins. A thread
 * assigns the number and publishes the event while it holds the lock under which the table itself
 * changes.
 * This has three consequences:
 * - Sorted by number, the events of a stream are all changes of its table, in the order in which
 *   they were made.
 * - A stream has no gaps: if a reader sees an event and then reads the heads of all rings again, it
 *   finds all earlier events of the stream. A thread that was terminated between assigning the
 *   number and publishing the event holds the lock forever, and the stream ends there. Later
 *   changes are counted in tracer_area (dropped_blocks, dropped_ranges).
 * - An event that is dropped because a ring is full (RING_DROP) has no number.
 *
 * So a consumer accepts an event if its order is the next one in its stream, whichever ring
 * contains the event. All events of one address are in the same stream. Events of different streams
 * can only be ordered by time, and only approximately.
 *
 * Events of blocks. A "known" block is known to the program that replays the events:
 *   RING_ALLOC     the block is live. If another block is known at its address, that block ended
 *                  before: its heap was destroyed, or its free was missed or dropped.
 *   RING_ALLOC_INSIDE like RING_ALLOC, but allocated by a function of the real heap. If the next
 *                  event of the thread is RING_ALLOC or RING_FREE of the same address, this
 *                  allocation was a part of that operation. RING_FREE_OLD events of other
 *                  addresses may be in between.
 *   RING_FREE      the block, described as in its RING_ALLOC, is no longer live. If no block is
 *                  known at the address, the event has no effect.
 *   RING_FREE_OLD  like RING_FREE, for a block that was in no table when the recording began. The
 *                  block is older than the tracer or was just being freed, so only its address is
 *                  known. Does not occur in sampled sessions.
 *   RING_HEAP_GONE a heap was destroyed. This ends the blocks with the heap's tag in this stream,
 *                  and the blocks with the heap's handle that are older than the tracer. The stream
 *                  of each shard has one such event per heap. Blocks with the same handle and
 *                  another tag belong to a later heap at the same address.
 * A realloc is recorded as a RING_FREE and a RING_ALLOC. If a realloc or a free is refused, it is
 * recorded as a RING_FREE and a RING_ALLOC of the same block.
 *
 * Events of virtual memory. Each event describes the pages [addr, addr + bytes). Each page has a
 * kind (enum tracer_range_kind), the stack that gave it this kind, and the stack that reserved it:
 *   RING_RANGE_ADD     all pages have this kind and this stack, which also reserved them. Replaces
 *                      whatever was known about the pages.
 *   RING_RANGE_FILL    like RING_RANGE_ADD, but only for unknown pages. Known pages are unchanged.
 *   RING_RANGE_USE     RANGE_RESERVED pages get this kind and this stack. The stack that reserved
 *                      them is their previous stack. Other pages are unchanged.
 *   RING_RANGE_GIVE_UP pages of this kind become RANGE_RESERVED again, with the stack that reserved
 *                      them. The event's stack is the stack that released them.
 *   RING_RANGE_TAKE    the pages become unknown: this stack freed or unmapped them, or they now
 *                      belong to a heap.
 * Adjacent pages of one call that have equal properties form one range. RING_FLAG_BEGINS means that
 * the range at addr and the memory below it belong to different allocations.
 *
 *   RING_THREAD        the next events in the ring are from this thread. The event is in no stream
 *                      and is accepted immediately. The first event in a ring is a RING_THREAD, so
 *                      a ring may change its owner at any time.
 *
 * A mark is not an event. A thread of the program stores its label in ring_area.letter, and waits
 * until hsnap has answered. All events that happened before the mark are then in the rings, and
 * hsnap reads them before it records the mark.
 */
#ifndef SNAPSHOT_TRACER_RINGS_H
#define SNAPSHOT_TRACER_RINGS_H

#include <stdbool.h>
#include <string.h>

#include "snapshot/tracer/shared.h"

#define RING_MAGIC 0x53474e4952435254u /* "TRCRINGS" */
#define RING_VERSION 3
#define RING_SHARED 0 /* index of the ring shared by several threads */
#define RING_RANGES TRACER_SHARDS /* index of the stream of virtual memory */
#define RING_STREAMS (TRACER_SHARDS + 1)
#define RING_COUNT_MAX 1024u
/* log2 of the minimum number of events in a ring; even the smallest ring has room for all events of
 * one call */
#define RING_LOG2_MIN 8u
#define RING_LOG2_MAX 20u
#define RING_TIME_SHIFT 10 /* times are values of the time-stamp counter divided by 2^10 */
#define RING_LABEL_BYTES 200 /* maximum size of a mark's label, including its terminator */

enum ring_event_type {
	RING_NONE,
	RING_THREAD,
	RING_ALLOC,
	/* allocated by the real heap's own functions, for example when a reallocated block moves */
	RING_ALLOC_INSIDE,
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
	/*
	 * Block events contain the table's entry. RING_FREE_OLD has only a key, which is the
	 * address. RING_HEAP_GONE has only a key, which contains the tag. In range events, the key
	 * is the address, and the size is in pages.
	 */
	struct tracer_block block;
	uint32_t order;
	uint32_t time; /* low bits of the time */
	/* block events: low half of the heap's handle, or 0; RING_THREAD: the thread's id; range
	 * events: the kind */
	uint32_t low;
	uint16_t high; /* block events: the next 16 bits of the handle; range events: RING_FLAG_* */
	uint8_t type;
	uint8_t stream;
};

struct ring {
	/* Id of the thread that writes to this ring; 0: free. Threads take free rings, and hsnap
	 * frees the rings of threads that have exited. The shared ring never has an owner. */
	uint32_t owner;
	uint32_t lock, broken; /* used only in the shared ring */
	uint32_t events_mask;
	uint64_t events; /* offset of the ring's events, relative to the ring */
	uint64_t waits; /* number of times that a thread has waited for room in this ring */
	uint64_t waited; /* total duration of these waits, in units of time */
	uint64_t dropped; /* number of dropped events */
	uint64_t padding[2];
	/* cache line of the producer */
	uint32_t head; /* number of events ever written, modulo 2^32 */
	uint32_t tail_seen;
	uint32_t thread; /* thread in the last RING_THREAD event */
	uint32_t is_full; /* nonzero: new events are dropped */
	uint32_t time; /* time at which the current call began */
	uint32_t unused[11];
	/* cache line of hsnap */
	uint32_t tail; /* number of events ever removed */
	uint32_t unused_too[15];
};

enum ring_letter_state {
	LETTER_FREE,
	LETTER_TAKEN, /* a thread is writing its label */
	LETTER_SENT, /* hsnap has not answered yet; only hsnap leaves this state */
};

/* Room for the label of one mark on its way to hsnap. */
struct ring_letter {
	uint32_t state;
	uint32_t answered; /* number of marks that hsnap has answered, modulo 2^32 */
	char label[RING_LABEL_BYTES];
	uint8_t padding[48];
};

struct ring_area {
	uint64_t magic;
	uint32_t version, flags; /* flags: RING_DROP */
	uint32_t ring_count, events_log2; /* ring_count includes the shared ring */
	/* number of events that were in no ring and were dropped, because the shared ring is
	 * broken */
	uint64_t dropped;
	uint64_t unused[4];
	struct ring_letter letter;
	struct ring rings[];
	/* the events of each ring follow the rings, at ring_events_offset() */
};

#define RING_DROP 1u /* a thread whose ring is full does not wait */

_Static_assert(sizeof(struct ring_event) == 32, "layout");
_Static_assert(offsetof(struct ring_event, order) == 16, "layout");
_Static_assert(offsetof(struct ring_event, stream) == 31, "layout");
_Static_assert(offsetof(struct ring, head) == 64, "layout");
_Static_assert(offsetof(struct ring, tail) == 128, "layout");
_Static_assert(sizeof(struct ring) == 192, "layout");
_Static_assert(sizeof(struct ring_letter) == 256, "layout");
_Static_assert(offsetof(struct ring_area, rings) == 320, "layout");

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

/* Initializes a section whose bytes are all 0. */
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

/* Returns the event array of a ring, computed from hsnap's own `ring_count` and `events_log2`. The
 * target can change ring.events. Event n, counted from the first event ever written, has the index
 * n modulo 2^events_log2. */
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

/* Returns the index and the generation of the event's heap, encoded as in blocks. */
static inline uint32_t ring_event_heap_tag(const struct ring_event *event)
{
	return (uint32_t)(event->block.key >> TRACER_ADDR_BITS);
}

/* Returns the handle of the event's heap, or 0. */
static inline uint64_t ring_event_heap(const struct ring_event *event)
{
	return event->low | (uint64_t)event->high << 32;
}

/* Returns the full current time from this processor's counter. Events contain only its low bits.
 * The target and hsnap use the same clock. */
static inline uint64_t ring_time(void)
{
	return __builtin_ia32_rdtsc() >> RING_TIME_SHIFT;
}

/*
 * Restores the full time of an event. The event must have been less than 2^31 units old (about 10
 * minutes) when it was read at `now`. The clocks of processors may differ by a few units. So the
 * time may be in the future, or may decrease slightly from one event of a stream to the next.
 */
static inline uint64_t ring_event_time(const struct ring_event *event, uint64_t now)
{
	return now + (uint64_t)(int64_t)(int32_t)(event->time - (uint32_t)now);
}

/* ---------------------------------------------------------------- the producer's side */

/* Appends an event. The ring must have room for it. */
static inline void ring_write(struct ring *ring, const struct ring_event *event)
{
	struct ring_event *to = (struct ring_event *)((char *)ring + ring->events) +
				(ring->head & ring->events_mask);

	/* Copy field by field; otherwise the compiler builds a second copy in memory. */
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

/* Returns the number of events after `tail`, which is the consumer's own count of removed events.
 * If the result is greater than 2^events_log2, the ring is damaged. */
static inline uint32_t ring_ready(const struct ring *ring, uint32_t tail)
{
	return __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) - tail;
}

/* Frees the events before `tail`, so that they may be overwritten. */
static inline void ring_consume(struct ring *ring, uint32_t tail)
{
	__atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
}

/*
 * Frees a ring whose thread has exited. The caller must first read the owner, and then check that
 * the thread has exited. In the other order, the id could belong to a new thread, which has another
 * ring.
 */
static inline void ring_release(struct ring *ring)
{
	__atomic_store_n(&ring->owner, 0, __ATOMIC_RELEASE);
}

/* Copies the label of the mark that was sent. Returns false if none was sent. After the mark is
 * recorded or refused, the caller answers with ring_letter_answer(). */
static inline bool ring_letter_read(const struct ring_area *area, char label[RING_LABEL_BYTES])
{
	if (__atomic_load_n(&area->letter.state, __ATOMIC_ACQUIRE) != LETTER_SENT)
		return false;
	memcpy(label, area->letter.label, RING_LABEL_BYTES - 1);
	label[RING_LABEL_BYTES - 1] = '\0';
	return true;
}

static inline void ring_letter_answer(struct ring_area *area)
{
	__atomic_fetch_add(&area->letter.answered, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&area->letter.state, LETTER_FREE, __ATOMIC_RELEASE);
}

#endif
