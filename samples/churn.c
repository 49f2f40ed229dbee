/*
 * No leak: each step makes 20000 allocations of 1 to 4000 bytes by malloc, calloc and realloc and
 * frees them out of order. Another 300 blocks live from one step to the next. Each step frees the
 * previous step's 300 blocks and makes 300 of the same sizes at the same places in the code. So
 * blocks move, but no stack grows.
 *
 * truth: nothing
 */
#include <stdlib.h>

#include "samples/step.h"

#define SLOTS 300
#define ROUNDS 20000

static char *slots[SLOTS], *kept[SLOTS];
static unsigned long seed;

/* Returns the next number; the sequence is the same in every step. */
static unsigned next_number(unsigned below)
{
	seed = seed * 1103515245 + 12345;
	return (unsigned)(seed >> 16 & 0x7fff) % below;
}

static NOINLINE char *make_plain(size_t bytes)
{
	return step_leak(malloc(bytes));
}

static NOINLINE char *make_zeroed(size_t bytes)
{
	return step_leak(calloc(1, bytes));
}

static NOINLINE char *make_longer(char *block, size_t bytes)
{
	return step_leak(realloc(block, bytes));
}

static NOINLINE char *make_any(size_t bytes)
{
	char *block = next_number(2) ? make_plain(bytes) : make_zeroed(bytes);

	return next_number(3) ? block : make_longer(block, bytes + 100);
}

static NOINLINE void churn_slots(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		unsigned at = next_number(SLOTS);

		free(slots[at]);
		slots[at] = make_any(1 + next_number(4000));
	}
	for (int i = 0; i < SLOTS; i++) {
		free(slots[i]);
		slots[i] = NULL;
	}
}

static NOINLINE void replace_kept(void)
{
	for (int i = 0; i < SLOTS; i++) {
		char *fresh = make_any(1 + next_number(4000));

		free(kept[i]);
		kept[i] = fresh;
	}
}

int main(void)
{
	unsigned long step = 0;

	for (;;) {
		step++;
		seed = 1;
		churn_slots();
		replace_kept();
		if (!step_done(step))
			return 0;
	}
}
