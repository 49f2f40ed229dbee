/* The target's side of the rings: finds a ring for the thread, waits until the ring has room, and
 * sends marks. */
#include "snapshot/tracer/rings.h"

#include <stddef.h>

#include "snapshot/tracer/tables.h"
#include "snapshot/tracer/tracer_memory.h"

/* a thread in the shared ring tries again to get its own ring after this number of events */
#define RETRY_EVENTS 1024u

/* Returns a free ring, or the shared ring if no ring is free. */
static struct ring *find_ring(struct ring_area *rings, uint32_t thread, uintptr_t *word)
{
	if (!word)
		return &rings->rings[RING_SHARED];
	for (uint32_t i = RING_SHARED + 1; i < rings->ring_count; i++) {
		struct ring *ring = &rings->rings[i];
		uint32_t nobody = 0;

		if (!__atomic_load_n(&ring->owner, __ATOMIC_RELAXED) &&
			__atomic_compare_exchange_n(&ring->owner, &nobody, thread, false,
				__ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			*word = i + 1;
			return ring;
		}
	}
	*word = RING_SHARED + 1;
	return &rings->rings[RING_SHARED];
}

/* Returns the thread's ring. The thread's word is the index of its ring + 1. The word may be left
 * from an earlier recording; the ring then belongs to another thread. */
static struct ring *ring_of(struct ring_area *rings, uint32_t thread)
{
	uintptr_t *word = memory_thread_word();
	uintptr_t index = word ? *word - 1 : UINTPTR_MAX;
	struct ring *ring;

	if (index >= rings->ring_count)
		return find_ring(rings, thread, word);
	ring = &rings->rings[index];
	if (__builtin_expect(__atomic_load_n(&ring->owner, __ATOMIC_RELAXED) == thread, 1) ||
		(index == RING_SHARED &&
			__atomic_load_n(&ring->head, __ATOMIC_RELAXED) % RETRY_EVENTS))
		return ring;
	return find_ring(rings, thread, word);
}

static bool has_room(struct ring *ring, uint32_t count)
{
	if (__builtin_expect(ring->head - ring->tail_seen + count <= ring->events_mask + 1, 1))
		return true;
	ring->tail_seen = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
	return ring->head - ring->tail_seen + count <= ring->events_mask + 1;
}

static bool is_shared(const struct ring_area *rings, const struct ring *ring)
{
	return ring == &rings->rings[RING_SHARED];
}

/* Begins to use a ring. The lock of the shared ring is taken before the lock of any table. No lock
 * is held while a thread waits for room. */
static bool begin_ring(struct ring_area *rings, struct ring *ring)
{
	if (!is_shared(rings, ring) || memory_lock(&ring->lock, &ring->broken))
		return true;
	__atomic_fetch_add(&rings->dropped, 1, __ATOMIC_RELAXED);
	return false;
}

/* Waits until the ring has room. Leaves the ring and returns false if waiting is pointless. This is
 * the case if hsnap has exited, which ends the recording, or if the tracer is being turned off. */
static bool wait_for_room(
	struct tracer_area *area, struct ring_area *rings, struct ring *ring, uint32_t count)
{
	struct memory_patience patience = {0};
	uint64_t began = ring_time(), now = began;
	uint32_t state = __atomic_load_n(&area->state, __ATOMIC_RELAXED);

	ring->waits++;
	while (!has_room(ring, count)) {
		rings_leave(ring);
		if (!memory_wait_hsnap(&patience))
			__atomic_store_n(&area->rings, 0, __ATOMIC_RELAXED);
		if (__atomic_load_n(&area->rings, __ATOMIC_RELAXED) != (uintptr_t)rings ||
			__atomic_load_n(&area->state, __ATOMIC_RELAXED) != state ||
			!begin_ring(rings, ring))
			return false;
		now = ring_time();
	}
	ring->waited += now - began;
	return true;
}

struct ring *rings_enter(struct tracer_area *area, uint32_t count)
{
	struct ring_area *rings =
		(struct ring_area *)(uintptr_t)__atomic_load_n(&area->rings, __ATOMIC_RELAXED);
	uint32_t thread = memory_thread_id();
	struct ring *ring = rings ? ring_of(rings, thread) : NULL;

	if (!rings || !begin_ring(rings, ring))
		return NULL;
	count++; /* one more for RING_THREAD */
	ring->is_full = rings->flags & RING_DROP && !has_room(ring, count);
	if (ring->is_full)
		return ring;
	if (!has_room(ring, count) && !wait_for_room(area, rings, ring, count))
		return NULL;
	ring->time = (uint32_t)ring_time();
	if (ring->thread != thread) {
		ring->thread = thread;
		ring_write(ring, &(struct ring_event){
					 .type = RING_THREAD, .low = thread, .time = ring->time});
	}
	return ring;
}

void rings_leave(struct ring *ring)
{
	if (ring->lock)
		memory_unlock(&ring->lock);
}

/* ---------------------------------------------------------------- marks */

/* Waits for hsnap. Returns false if waiting is pointless, because the recording has ended. */
static bool wait_for_answer(
	struct tracer_area *area, const struct ring_area *rings, struct memory_patience *patience)
{
	if (__atomic_load_n(&area->rings, __ATOMIC_RELAXED) != (uintptr_t)rings)
		return false;
	if (memory_wait_hsnap(patience))
		return true;
	__atomic_store_n(&area->rings, 0, __ATOMIC_RELAXED);
	return false;
}

/* Reserves the letter for the calling thread. A thread holds it unsent only for a moment. If such a
 * thread was terminated, no other mark is possible, and this function returns false after a while. */
static bool reserve_letter(struct tracer_area *area, struct ring_area *rings)
{
	struct memory_patience answer = {0}, writer = {0};
	uint32_t state = LETTER_FREE;

	while (!__atomic_compare_exchange_n(&rings->letter.state, &state, LETTER_TAKEN, false,
		__ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		if (state == LETTER_TAKEN && !memory_may_wait(&writer, MEMORY_PATIENCE))
			return false;
		if (!wait_for_answer(area, rings, &answer))
			return false;
		state = LETTER_FREE;
	}
	return true;
}

static void copy_label(char to[RING_LABEL_BYTES], const char *label)
{
	size_t len = 0;

	while (len < RING_LABEL_BYTES - 1 && label[len])
		len++;
	while (len && (label[len] & 0xc0) == 0x80) /* inside a character */
		len--;
	memcpy(to, label, len);
	to[len] = '\0';
}

void rings_mark(struct tracer_area *area, const char *label)
{
	struct ring_area *rings =
		(struct ring_area *)(uintptr_t)__atomic_load_n(&area->rings, __ATOMIC_RELAXED);
	struct memory_patience patience = {0};
	uint32_t number;

	if (!rings || !reserve_letter(area, rings))
		return;
	number = __atomic_load_n(&rings->letter.answered, __ATOMIC_RELAXED);
	copy_label(rings->letter.label, label && *label ? label : "mark");
	__atomic_store_n(&rings->letter.state, LETTER_SENT, __ATOMIC_RELEASE);
	while (__atomic_load_n(&rings->letter.answered, __ATOMIC_ACQUIRE) == number) {
		if (!wait_for_answer(area, rings, &patience))
			return;
	}
}
