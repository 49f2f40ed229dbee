/*
 * One leak, and two functions that seem to leak when only two snapshots are compared. In every
 * step:
 * - leak() forgets three blocks
 * - fill_cache() adds a block to a cache until the cache has three
 * - take_job() adds a block to a queue, which is emptied at every fourth step
 * - replace() replaces one block with another
 *
 * truth: step 1->2 stack leak<-one_step<-main bytes +3000 allocs +3
 * truth: step 1->2 stack fill_cache<-one_step<-main bytes +4096 allocs +1
 * truth: step 1->2 stack take_job<-one_step<-main bytes +700 allocs +1
 *
 * Live blocks after steps 1 to 8, and the verdicts on a series of such snapshots:
 *
 * trend: grows leak<-one_step<-main bytes 3000 6000 9000 12000 15000 18000 21000 24000
 * trend: grows leak<-one_step<-main blocks 3 6 9 12 15 18 21 24
 * trend: grew-once fill_cache<-one_step<-main bytes 4096 8192 12288 12288 12288 12288 12288 12288
 * trend: grew-once fill_cache<-one_step<-main blocks 1 2 3 3 3 3 3 3
 * trend: returns take_job<-one_step<-main bytes 700 1400 2100 0 700 1400 2100 0
 * trend: returns take_job<-one_step<-main blocks 1 2 3 0 1 2 3 0
 * trend: same replace<-one_step<-main bytes 5000 5000 5000 5000 5000 5000 5000 5000
 * trend: same replace<-one_step<-main blocks 1 1 1 1 1 1 1 1
 */
#include <stdlib.h>

#include "samples/step.h"

#define CACHE_SLOTS 3
#define QUEUE_SLOTS 4

static void *cache[CACHE_SLOTS], *queue[QUEUE_SLOTS], *replaced;

static NOINLINE void leak(void)
{
	step_leak(malloc(1000));
}

static NOINLINE void fill_cache(unsigned long step)
{
	if (step <= CACHE_SLOTS)
		cache[step - 1] = step_leak(malloc(4096));
}

static NOINLINE void take_job(unsigned long step)
{
	queue[step % QUEUE_SLOTS] = step_leak(malloc(700));
}

static NOINLINE void empty_queue(void)
{
	for (int i = 0; i < QUEUE_SLOTS; i++) {
		free(queue[i]);
		queue[i] = NULL;
	}
}

static NOINLINE void replace(void)
{
	free(replaced);
	replaced = step_leak(malloc(5000));
}

static NOINLINE void one_step(unsigned long step)
{
	for (volatile int i = 0; i < 3; i++)
		leak();
	fill_cache(step);
	take_job(step);
	replace();
	if (step % QUEUE_SLOTS == 0)
		empty_queue();
}

int main(void)
{
	unsigned long step = 0;

	do
		one_step(++step);
	while (step_done(step));
	return 0;
}
