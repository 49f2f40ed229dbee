/*
 * The tracer's words for each thread, for a program that has used all TLS slots in the TEB. The
 * system's further slots cannot be used: their memory is allocated from a heap when a thread first
 * writes to one, and this must not happen inside a hook.
 *
 * A hash table with open addressing finds a thread's words by the address of its TEB. No two
 * threads have the same TEB at the same time. Entries are never freed. A later thread may have a
 * TEB at the same address. Its thread id differs, so its words are set to 0 first. There are no
 * locks: once a thread has an entry, only that thread writes to it.
 */
#include "snapshot/tracer/tables.h"

#define THREADS_LOG2 12
#define THREADS (1u << THREADS_LOG2)
#define PROBES 32u /* a thread that finds no free entry in this number of tries has no words */

static struct thread_place {
	uint64_t block; /* address of the TEB; 0: free */
	uintptr_t words[THREADWORDS_COUNT];
	uint32_t thread;
} __attribute__((aligned(64))) places[THREADS];

static struct thread_place *find(uint64_t block)
{
	uint32_t home = (uint32_t)((block >> 12) * 0x9e3779b97f4a7c15u >> (64 - THREADS_LOG2));

	for (uint32_t i = 0; i < PROBES; i++) {
		struct thread_place *place = &places[(home + i) % THREADS];
		uint64_t found = __atomic_load_n(&place->block, __ATOMIC_RELAXED);

		if (found == block ||
			(!found && __atomic_compare_exchange_n(&place->block, &found, block, false,
					   __ATOMIC_RELAXED, __ATOMIC_RELAXED)))
			return place;
	}
	return NULL;
}

uintptr_t *threadwords_find(uint64_t block, uint32_t thread)
{
	struct thread_place *place = find(block);

	if (place && place->thread != thread) {
		for (unsigned i = 0; i < THREADWORDS_COUNT; i++)
			place->words[i] = 0;
		place->thread = thread;
	}
	return place ? place->words : NULL;
}
