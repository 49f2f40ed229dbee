/*
 * The consumer of the rings. Each round finds the rings that contain events, and removes the events
 * in order of time. If an event is the next one in its stream, it is passed to the replay.
 * Otherwise its ring waits for that stream. An allocation inside the real heap may be a part of a
 * reallocation. It is held back until the next event of its thread, which shows whether it is. A
 * ring with invalid contents is abandoned.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "snapshot/record/replay.h"

/* maximum wait for a stream's next event if no ring contains it; after that, the event counts as
 * lost */
#define STUCK_MS 5000
#define NO_RING UINT32_MAX
#define BATCH 4096 /* number of events removed from a ring before its tail is published */

/* Private state of a ring, which only hsnap can write. */
struct drained_ring {
	uint32_t tail; /* number of events ever removed */
	uint32_t end; /* number of events ever written, when this round began */
	/* the recording's number of the thread that wrote the next events in the ring */
	uint32_t thread;
	uint32_t next_waiting; /* next ring in the list of rings that wait for the same stream */
	uint64_t time; /* time of the event at the tail */
	uint64_t dropped; /* the ring's counter of dropped events, as last read */
	bool is_damaged;
	/* allocation inside the heap; the next event of its thread shows whether it belongs to a
	 * reallocation */
	struct ring_event held;
	uint32_t held_thread;
	uint64_t held_ms;
};

struct drain {
	struct replay *replay;
	struct recorder *recorder;
	struct ring_area *area;
	uint32_t ring_count, events_log2;
	struct drained_ring *rings;
	/* rings that contain events, as a binary heap with the earliest event at the top */
	uint32_t *heap, heap_count;
	uint32_t *held, held_count; /* rings whose `held` event is in use */
	/* for each stream: list of the rings whose first event must wait for an earlier event of
	 * the stream */
	uint32_t waiting[RING_STREAMS];
	uint32_t orders[RING_STREAMS]; /* for each stream: order of the next event */
	/* if is_limited, for each stream: first order that must not pass */
	uint32_t limits[RING_STREAMS];
	bool is_limited;
	uint64_t last, last_ms, now, now_ms; /* times of the last call and of the current call */
	uint64_t dropped; /* number of events that found no ring, as last read */
	uint64_t lost; /* number of events lost for any reason */
	uint64_t moved_ms; /* last time when an event passed, or when no ring was waiting */
	uint32_t thread; /* current thread of the recorder */
	bool is_begun;
};

struct drain *drain_new(struct replay *replay, struct recorder *recorder, struct ring_area *area,
	uint32_t ring_count, uint32_t events_log2, const uint32_t orders[RING_STREAMS])
{
	struct drain *drain = xcalloc(1, sizeof(*drain));

	*drain = (struct drain){.replay = replay,
		.recorder = recorder,
		.area = area,
		.ring_count = ring_count,
		.events_log2 = events_log2,
		.rings = xcalloc(ring_count, sizeof(*drain->rings)),
		.heap = xcalloc(ring_count, sizeof(*drain->heap)),
		.held = xcalloc(ring_count, sizeof(*drain->held))};
	if (orders)
		memcpy(drain->orders, orders, sizeof(drain->orders));
	return drain;
}

void drain_free(struct drain *drain)
{
	if (!drain)
		return;
	free(drain->rings);
	free(drain->heap);
	free(drain->held);
	free(drain);
}

static void lose(struct drain *drain, uint64_t events)
{
	drain->lost += events;
	recorder_lost(drain->recorder, events);
}

static struct ring_event event_at(const struct drain *drain, uint32_t ring, uint32_t number)
{
	uint32_t mask = ((uint32_t)1 << drain->events_log2) - 1;

	return ring_events(drain->area, drain->ring_count, drain->events_log2, ring)[number & mask];
}

static uint64_t ms_of(const struct drain *drain, uint64_t time)
{
	uint64_t span = drain->now - drain->last, span_ms = drain->now_ms - drain->last_ms;

	if (time <= drain->last || !span)
		return drain->last_ms;
	return time >= drain->now ? drain->now_ms :
				    drain->last_ms + (time - drain->last) * span_ms / span;
}

/* ---------------------------------------------------------------- heap of rings */

static void heap_add(struct drain *drain, uint32_t ring)
{
	uint32_t at = drain->heap_count++;

	for (; at && drain->rings[drain->heap[(at - 1) / 2]].time > drain->rings[ring].time;
		at = (at - 1) / 2)
		drain->heap[at] = drain->heap[(at - 1) / 2];
	drain->heap[at] = ring;
}

static uint32_t heap_remove(struct drain *drain)
{
	uint32_t first = drain->heap[0], last = drain->heap[--drain->heap_count], at = 0;

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child + 1 < drain->heap_count && drain->rings[drain->heap[child + 1]].time <
							     drain->rings[drain->heap[child]].time)
			child++;
		if (child >= drain->heap_count ||
			drain->rings[last].time <= drain->rings[drain->heap[child]].time)
			break;
		drain->heap[at] = drain->heap[child];
		at = child;
	}
	if (drain->heap_count)
		drain->heap[at] = last;
	return first;
}

/* ---------------------------------------------------------------- a round */

static void damage(struct drain *drain, uint32_t ring)
{
	drain->rings[ring].is_damaged = true;
	lose(drain, drain->rings[ring].end - drain->rings[ring].tail);
}

/* Finds the rings that contain events, and counts dropped events as lost. */
static void look(struct drain *drain)
{
	uint64_t all_dropped = __atomic_load_n(&drain->area->dropped, __ATOMIC_RELAXED);

	if (all_dropped > drain->dropped)
		lose(drain, all_dropped - drain->dropped);
	drain->dropped = all_dropped;
	drain->heap_count = 0;
	for (uint32_t i = 0; i < RING_STREAMS; i++)
		drain->waiting[i] = NO_RING;
	for (uint32_t i = 0; i < drain->ring_count; i++) {
		struct drained_ring *ring = &drain->rings[i];
		const struct ring *shared = &drain->area->rings[i];
		uint64_t dropped = __atomic_load_n(&shared->dropped, __ATOMIC_RELAXED);
		uint32_t ready = ring_ready(shared, ring->tail);
		struct ring_event event;

		if (dropped > ring->dropped)
			lose(drain, dropped - ring->dropped);
		ring->dropped = dropped;
		ring->end = ring->tail + ready;
		/* the ring's threads continue to write: discard their events */
		if (ring->is_damaged) {
			ring->tail = ring->end;
			ring_consume(&drain->area->rings[i], ring->tail);
		}
		if (!ready || ring->is_damaged)
			continue;
		if (ready > (uint32_t)1 << drain->events_log2) {
			ring->end = ring->tail;
			damage(drain, i);
			continue;
		}
		event = event_at(drain, i, ring->tail);
		ring->time = ring_event_time(&event, drain->now);
		heap_add(drain, i);
	}
}

static bool record_event(struct drain *drain, uint32_t thread, const struct ring_event *event)
{
	if (drain->thread != thread)
		recorder_thread_is(drain->recorder, drain->thread = thread);
	return replay_event(drain->replay, event);
}

/* ---------------------------------------------------------------- passing events */

/*
 * Holds back an allocation inside the heap. If a block moves, the real RtlReAllocateHeap may call
 * the hooked RtlAllocateHeap and RtlFreeHeap. The next event of the thread with the same address is
 * then the reallocation itself. Until then, no other thread knows the address.
 */
static void hold(struct drain *drain, uint32_t index, const struct ring_event *event)
{
	struct drained_ring *ring = &drain->rings[index];

	ring->held = *event;
	ring->held.type = RING_ALLOC;
	ring->held_thread = ring->thread;
	ring->held_ms = drain->now_ms;
	drain->held[drain->held_count++] = index;
}

/* Passes a held event, because it was an ordinary allocation. */
static bool release(struct drain *drain, uint32_t at)
{
	const struct drained_ring *ring = &drain->rings[drain->held[at]];

	drain->held[at] = drain->held[--drain->held_count];
	return record_event(drain, ring->held_thread, &ring->held);
}

/*
 * Decides about held events before `event` passes. If a held event belongs to `event`, as part of a
 * reallocation, the held event is dropped. If their order matters, the held event passes before
 * `event`. Sets `*is_over` if `event` must be dropped too, because it frees a block that was never
 * reported.
 */
static bool decide_held(
	struct drain *drain, uint32_t index, const struct ring_event *event, bool *is_over)
{
	bool is_sound = true;

	for (uint32_t i = drain->held_count; i-- > 0;) {
		uint32_t other = drain->held[i];
		bool is_same = event->stream != RING_RANGES &&
			       ring_event_addr(&drain->rings[other].held) == ring_event_addr(event);

		if (other == index && is_same &&
			(event->type == RING_ALLOC || event->type == RING_FREE)) {
			drain->held[i] = drain->held[--drain->held_count];
			*is_over = event->type == RING_FREE;
		} else if (is_same || event->type == RING_HEAP_GONE ||
			   (other == index && event->type != RING_FREE_OLD)) {
			is_sound = release(drain, i) && is_sound;
		}
	}
	return is_sound;
}

/* Passes the held events that have been held for late_ms or longer. */
static void release_late(struct drain *drain, uint64_t late_ms)
{
	for (uint32_t i = drain->held_count; i-- > 0;) {
		if (drain->now_ms - drain->rings[drain->held[i]].held_ms >= late_ms)
			release(drain, i);
	}
}

/* Passes an event that is the next one in its stream, or that is in no stream. Returns false if the
 * ring has invalid contents. */
static bool pass(struct drain *drain, uint32_t index, const struct ring_event *event)
{
	struct drained_ring *ring = &drain->rings[index];
	bool is_over = false;

	if (event->type == RING_THREAD) {
		ring->thread = recorder_thread(drain->recorder, event->low);
		return true;
	}
	recorder_time(drain->recorder, ms_of(drain, ring->time));
	drain->orders[event->stream]++;
	if (drain->held_count && !decide_held(drain, index, event, &is_over))
		return false;
	if (event->type == RING_ALLOC_INSIDE)
		hold(drain, index, event);
	else if (!is_over)
		return record_event(drain, ring->thread, event);
	return true;
}

/* Lets the rings that were waiting for this stream continue. */
static void wake(struct drain *drain, uint32_t stream)
{
	uint32_t ring = drain->waiting[stream];

	drain->waiting[stream] = NO_RING;
	while (ring != NO_RING) {
		uint32_t next = drain->rings[ring].next_waiting;

		heap_add(drain, ring);
		ring = next;
	}
}

/* Returns false if the event's order shows that the event has already passed, or if the stream is
 * invalid. */
static bool may_come(const struct drain *drain, const struct ring_event *event)
{
	return event->stream < RING_STREAMS &&
	       (int32_t)(event->order - drain->orders[event->stream]) >= 0;
}

static bool is_beyond_limit(const struct drain *drain, const struct ring_event *event)
{
	return drain->is_limited && (int32_t)(event->order - drain->limits[event->stream]) >= 0;
}

/* Removes events from a ring until another ring has an earlier event, or an event must wait.
 * Returns the number of removed events. */
static size_t drain_ring(struct drain *drain, uint32_t index)
{
	struct drained_ring *ring = &drain->rings[index];
	size_t count = 0;

	while (ring->tail != ring->end) {
		struct ring_event event = event_at(drain, index, ring->tail);

		ring->time = ring_event_time(&event, drain->now);
		if (drain->heap_count && ring->time > drain->rings[drain->heap[0]].time) {
			heap_add(drain, index);
			break;
		}
		if (event.type != RING_THREAD && !may_come(drain, &event)) {
			damage(drain, index);
			break;
		}
		if (event.type != RING_THREAD && is_beyond_limit(drain, &event))
			break;
		if (event.type != RING_THREAD && event.order != drain->orders[event.stream]) {
			ring->next_waiting = drain->waiting[event.stream];
			drain->waiting[event.stream] = index;
			break;
		}
		if (!pass(drain, index, &event)) {
			damage(drain, index);
			break;
		}
		ring->tail++;
		if (++count % BATCH == 0)
			ring_consume(&drain->area->rings[index], ring->tail);
		if (event.type != RING_THREAD && drain->waiting[event.stream] != NO_RING)
			wake(drain, event.stream);
	}
	if (count)
		ring_consume(&drain->area->rings[index], ring->tail);
	return count;
}

/* Counts the events for which rings have waited too long as lost. Lets each stream continue with
 * the first event that a waiting ring contains. */
static void skip(struct drain *drain)
{
	for (uint32_t stream = 0; stream < RING_STREAMS; stream++) {
		uint32_t least = UINT32_MAX;

		for (uint32_t ring = drain->waiting[stream]; ring != NO_RING;
			ring = drain->rings[ring].next_waiting) {
			struct ring_event event = event_at(drain, ring, drain->rings[ring].tail);
			uint32_t ahead = event.order - drain->orders[stream];

			least = ahead < least ? ahead : least;
		}
		if (least == UINT32_MAX)
			continue;
		lose(drain, least);
		drain->orders[stream] += least;
		wake(drain, stream);
	}
}

static size_t go_round(struct drain *drain)
{
	size_t count = 0;

	while (drain->heap_count)
		count += drain_ring(drain, heap_remove(drain));
	return count;
}

static bool is_waiting(const struct drain *drain)
{
	for (uint32_t stream = 0; stream < RING_STREAMS; stream++) {
		if (drain->waiting[stream] != NO_RING)
			return true;
	}
	return false;
}

size_t drain_events(struct drain *drain, uint64_t now, uint64_t now_ms)
{
	size_t count;

	drain->now = now;
	drain->now_ms = now_ms;
	if (!drain->is_begun) {
		drain->last = now;
		drain->last_ms = now_ms;
		drain->is_begun = true;
	}
	look(drain);
	count = go_round(drain);
	if (count || !is_waiting(drain))
		drain->moved_ms = now_ms;
	if (now_ms - drain->moved_ms >= STUCK_MS) {
		skip(drain);
		count += go_round(drain);
	}
	release_late(drain, STUCK_MS);
	drain->last = now;
	drain->last_ms = now_ms;
	return count;
}

void drain_limit(struct drain *drain, const uint32_t orders[RING_STREAMS])
{
	drain->is_limited = orders != NULL;
	if (orders)
		memcpy(drain->limits, orders, sizeof(drain->limits));
}

bool drain_is_at_limit(const struct drain *drain)
{
	for (unsigned i = 0; i < RING_STREAMS; i++) {
		if ((int32_t)(drain->orders[i] - drain->limits[i]) < 0)
			return false;
	}
	return true;
}

void drain_end(struct drain *drain)
{
	while (is_waiting(drain)) {
		skip(drain);
		go_round(drain);
	}
	release_late(drain, 0);
}

uint64_t drain_lost(const struct drain *drain)
{
	return drain->lost;
}

unsigned drain_damaged(const struct drain *drain)
{
	unsigned count = 0;

	for (uint32_t i = 0; i < drain->ring_count; i++)
		count += drain->rings[i].is_damaged;
	return count;
}
