/*
 * Four threads leak with the same stack: in every step they leak 10, 20, 30 and 40 blocks of 256
 * bytes. Each thread also allocates 50 blocks that another thread frees before the step ends. So
 * nearly all freed blocks are freed by a thread that did not allocate them. The threads live as
 * long as the program.
 *
 * truth: step 1->2 stack leak_one<-worker bytes +25600 allocs +100
 * truth: step 2->3 stack leak_one<-worker bytes +25600 allocs +100
 * truth: step 1->3 stack leak_one<-worker bytes +51200 allocs +200
 */
#include <stdlib.h>

#include "samples/step.h"

#define THREADS 4
#define PARCELS 50

struct worker {
	unsigned number;
	HANDLE go, done;
	char *parcels[PARCELS]; /* for the neighbour to free */
};

static struct worker workers[THREADS];

static NOINLINE void leak_one(unsigned number)
{
	char *block = step_leak(malloc(256));

	block[0] = (char)number;
}

static NOINLINE void pack(struct worker *worker)
{
	for (size_t i = 0; i < PARCELS; i++)
		worker->parcels[i] = step_leak(malloc(16 + 37 * i));
}

static NOINLINE void unpack(struct worker *neighbour)
{
	for (size_t i = 0; i < PARCELS; i++) {
		free(neighbour->parcels[i]);
		neighbour->parcels[i] = NULL;
	}
}

/* A step has two rounds, so that all threads have packed before any thread unpacks. */
static DWORD WINAPI worker(void *arg)
{
	struct worker *me = arg;

	for (;;) {
		WaitForSingleObject(me->go, INFINITE);
		for (unsigned i = 0; i < 10 * (me->number + 1); i++)
			leak_one(i);
		pack(me);
		SetEvent(me->done);
		WaitForSingleObject(me->go, INFINITE);
		unpack(&workers[(me->number + 1) % THREADS]);
		SetEvent(me->done);
	}
	return 0;
}

static void start(unsigned number)
{
	struct worker *me = &workers[number];

	me->number = number;
	me->go = CreateEventW(NULL, FALSE, FALSE, NULL);
	me->done = CreateEventW(NULL, FALSE, FALSE, NULL);
	CloseHandle(CreateThread(NULL, 0, worker, me, 0, NULL));
}

static void one_round(void)
{
	for (unsigned i = 0; i < THREADS; i++)
		SetEvent(workers[i].go);
	for (unsigned i = 0; i < THREADS; i++)
		WaitForSingleObject(workers[i].done, INFINITE);
}

int main(void)
{
	unsigned long step = 0;

	for (unsigned i = 0; i < THREADS; i++)
		start(i);
	for (;;) {
		step++;
		one_round();
		one_round();
		if (!step_done(step))
			return 0;
	}
}
