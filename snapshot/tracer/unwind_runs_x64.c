/*
 * The runs that walks follow. A walk that finds no run records its own steps, and stores them as a
 * run. So most walks only compare the stack with runs.
 *
 * A thread that stores a run makes its key busy first, and stores the key with a new version last. A
 * walk reads the key before and after the words. So it can mix two runs only if the versions in
 * between are a multiple of 2^17.
 */
#include "snapshot/tracer/unwind_parts_x64.h"

#define VERSION_MASK (((uint64_t)1 << UNWIND_RUN_BITS) - 1)

/* Returns the key of the next version of a run. */
static uint64_t key_after(uint64_t key, uint64_t addr)
{
	return addr << UNWIND_RUN_BITS | ((key + 1) & VERSION_MASK);
}

/* Empties a run. If a thread is storing the run, that thread will find the version changed. */
static void empty(struct unwind_run *run)
{
	uint64_t key = __atomic_load_n(&run->key, __ATOMIC_SEQ_CST), addr = key >> UNWIND_RUN_BITS;

	while (addr && !__atomic_compare_exchange_n(&run->key, &key,
			       key_after(key, addr == UNWIND_RUN_BUSY ? addr : 0), false,
			       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		addr = key >> UNWIND_RUN_BITS;
}

void unwind_runs_forget(void)
{
	for (uint64_t i = 0; i < UNWIND_RUNS; i++)
		empty(&unwind_runs[i]);
}

/* Stores a run. Does nothing if another thread is storing one at the same place; if that thread was
 * terminated, the place stays busy. */
static void store(const struct unwind_learner *learner)
{
	struct unwind_run *run = unwind_run_of(learner->addr);
	uint64_t before = __atomic_load_n(&run->key, __ATOMIC_RELAXED);
	uint64_t busy = key_after(before, UNWIND_RUN_BUSY), key = key_after(busy, learner->addr);

	if (before >> UNWIND_RUN_BITS == UNWIND_RUN_BUSY ||
		!__atomic_compare_exchange_n(
			&run->key, &before, busy, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return;
	for (uint32_t i = 0; i < UNWIND_RUN_MAX; i++)
		__atomic_store_n(&run->words[i], i < learner->count ? learner->words[i] : 0,
			__ATOMIC_RELAXED);
	/* The run must not be followed if its steps may have been forgotten. unwind_forget() counts
	 * before it empties the run. So a forget is seen by the first condition or the second. */
	if (unwind_cache_begin() != learner->begun ||
		!__atomic_compare_exchange_n(
			&run->key, &busy, key, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		__atomic_store_n(&run->key, key_after(key, 0), __ATOMIC_SEQ_CST);
}

/* Returns the word for a step to `addr`, or 0 if a run cannot contain the step. */
static uint64_t word_of(uint32_t packed, uint64_t addr)
{
	int64_t size = unwind_packed_cfa(packed) / 8, rbp = unwind_packed_rbp(packed) / 8;
	uint64_t field = UNWIND_RUN_RBP_KEPT;

	if (addr >> (64 - UNWIND_RUN_BITS) || size > UNWIND_RUN_SIZE_MAX)
		return 0;
	if (unwind_packed_is_from_rbp(packed)) {
		if (size < 2 || rbp != -2)
			return 0;
		field = UNWIND_RUN_FROM_RBP;
	} else if (unwind_packed_rbp(packed) != UNWIND_RBP_KEPT) {
		/* RBP is in the frame, or in the caller's room for the first four arguments */
		if (rbp < -size || rbp > 3 || rbp < UNWIND_RUN_RBP_ZERO - (int)UNWIND_RUN_RBP_MAX)
			return 0;
		field = (uint64_t)(UNWIND_RUN_RBP_ZERO - rbp);
	}
	return addr << UNWIND_RUN_BITS | field << UNWIND_RUN_SIZE_BITS | (uint64_t)size;
}

void unwind_learner_begin(struct unwind_learner *learner, uint64_t addr)
{
	learner->addr = addr;
	learner->begun = unwind_cache_begin();
	learner->count = 0;
}

void unwind_learner_end(struct unwind_learner *learner)
{
	if (learner->addr && learner->count)
		store(learner);
	learner->addr = 0;
}

void unwind_learner_step(struct unwind_learner *learner, uint32_t packed, uint64_t addr)
{
	uint64_t word = learner->addr ? word_of(packed, addr) : 0;

	if (word)
		learner->words[learner->count++] = word;
	if (!word || !addr || learner->count == UNWIND_RUN_MAX)
		unwind_learner_end(learner);
}
