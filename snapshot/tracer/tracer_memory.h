/*
 * What the tracer's tables need from the system. The DLL takes it from ntdll (tracer.c), the unit
 * tests from the C library. None of these allocates from a heap, and none is seen by the hooks.
 */
#ifndef SNAPSHOT_TRACER_TRACER_MEMORY_H
#define SNAPSHOT_TRACER_TRACER_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed memory in a reserved range; committing a page again changes nothing. */
bool memory_commit(void *at, uint64_t bytes);

/* The range stays reserved. */
void memory_decommit(void *at, uint64_t bytes);

/* Times here are in units of 100 ns. */
#define MEMORY_PATIENCE ((uint64_t)10 * 10000000) /* for a thread that holds a lock */
#define MEMORY_SPINS 2000 /* before that */
#define MEMORY_STEP_MAX ((uint64_t)100 * 10000)
#define MEMORY_STEP_MIN ((uint64_t)1000)

/* One wait for another thread; all 0 at its beginning. */
struct memory_patience {
	unsigned tries;
	uint64_t last, waited;
};

/*
 * Whether less than limit has been waited, at a look at the clock. One sleep may take 1 ms or 20, so
 * their number says nothing. What is far more than a sleep was no waiting: the whole process stood
 * still, or the clock was set; and however that is set, waiting ends.
 */
static inline bool memory_is_patient(struct memory_patience *patience, uint64_t now, uint64_t limit)
{
	uint64_t step = now - patience->last;

	if (!patience->last || now < patience->last || step < MEMORY_STEP_MIN)
		step = MEMORY_STEP_MIN;
	patience->waited += step < MEMORY_STEP_MAX ? step : MEMORY_STEP_MAX;
	patience->last = now;
	return patience->waited < limit;
}

/* The same, at the time that it is. */
bool memory_may_wait(struct memory_patience *patience, uint64_t limit);

/* Waits for another thread, longer when it was called before. False when waiting is of no use any
 * more: MEMORY_PATIENCE has passed, or the process is ending and its other threads are gone. */
bool memory_wait(struct memory_patience *patience);

/*
 * Takes a lock of a table; false when it was never given back, from then on *broken is set. Who has it is
 * at work for some memory accesses, or for a system call.
 */
static inline bool memory_lock(uint32_t *lock, uint32_t *broken)
{
	struct memory_patience patience = {0};

	for (unsigned tries = 0;; tries++) {
		if (!__atomic_load_n(lock, __ATOMIC_RELAXED) &&
			!__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE))
			return true;
		if (__atomic_load_n(broken, __ATOMIC_RELAXED))
			return false;
		if (tries < MEMORY_SPINS)
			__builtin_ia32_pause();
		else if (!memory_wait(&patience))
			break;
	}
	__atomic_store_n(broken, 1, __ATOMIC_RELAXED);
	return false;
}

static inline void memory_unlock(uint32_t *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

/*
 * For the rings of a recording.
 */

/* The calling thread's id, never 0. */
uint32_t memory_thread_id(void);

/* A word of the thread's own, 0 at its beginning; NULL: there is none. */
uintptr_t *memory_thread_word(void);

/* Whether it is inside a function of the real heap. */
bool memory_is_in_heap(void);

/* Waits a moment for hsnap, longer when it was called before. False when hsnap has ended. */
bool memory_wait_hsnap(struct memory_patience *patience);

#endif
