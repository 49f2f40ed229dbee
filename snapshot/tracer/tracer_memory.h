/*
 * System services for the tracer's tables. The DLL implements them with ntdll (tracer_memory.c,
 * guard.c); the unit tests implement them with the C library. None of these functions allocates
 * from a heap, and no hook sees their calls.
 */
#ifndef SNAPSHOT_TRACER_TRACER_MEMORY_H
#define SNAPSHOT_TRACER_TRACER_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Commits zeroed memory in a reserved range. Committing a page a second time has no effect. */
bool memory_commit(void *at, uint64_t bytes);

/* Decommits memory. The range stays reserved. */
void memory_decommit(void *at, uint64_t bytes);

/* times are in units of 100 ns */
#define MEMORY_PATIENCE ((uint64_t)10 * 10000000) /* maximum wait for a thread that holds a lock */
#define MEMORY_SPINS 2000 /* number of tries before waiting begins */
#define MEMORY_STEP_MAX ((uint64_t)100 * 10000)
#define MEMORY_STEP_MIN ((uint64_t)1000)

/* State of one wait for another thread. Initially all 0. */
struct memory_patience {
	unsigned tries;
	uint64_t last, waited;
};

/*
 * Returns true if the wait has taken less than `limit` when the clock reads `now`. Adds up the time
 * between calls, because the number of sleeps is not a measure of time: one sleep may take 1 ms or
 * 20 ms. A step counts for at most MEMORY_STEP_MAX. If it was longer, the whole process was
 * suspended, or the clock was set. A step counts for at least MEMORY_STEP_MIN, so the wait ends
 * even if the clock is set back.
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

/* Calls memory_is_patient() with the current time. */
bool memory_may_wait(struct memory_patience *patience, uint64_t limit);

/* Waits for another thread. Each call waits longer than the call before. Returns false if waiting
 * is pointless: MEMORY_PATIENCE has passed, or the process is ending and its other threads have
 * exited. */
bool memory_wait(struct memory_patience *patience);

/* Takes the lock of a table. Sets `*broken` and returns false if the lock was never released. A
 * thread holds the lock only for a few memory accesses or one system call. */
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

/* Services for the rings of a recording. */

/* Returns the calling thread's id, never 0. */
uint32_t memory_thread_id(void);

/* Reserves a word per thread for memory_thread_word(). */
void memory_thread_word_init(void);

/* Returns the thread's own word, initially 0, or NULL if the thread has none. */
uintptr_t *memory_thread_word(void);

/* Returns true if the thread is inside a function of the real heap. */
bool memory_is_in_heap(void);

/* Waits a moment for hsnap. Each call waits longer than the call before. Returns false if hsnap has
 * exited. */
bool memory_wait_hsnap(struct memory_patience *patience);

/* Waits for 1 ms. Returns true if hsnap_process has exited. */
bool memory_is_alone(uint64_t hsnap_process);

#endif
