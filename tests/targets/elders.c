/*
 * elders: threads that are there before the tracer. Step by step it is to be attached (1), detached (2),
 * and attached again (3); at each step each thread frees its last block, and gets another one. The exit
 * status is 9 when what the tracer knows of that is not so (a line says what), or it is not as far.
 */
#include <stdio.h>

#include "samples/step.h"
#include "tests/targets/own_table.h"

#define THREADS 3

static struct elder {
	HANDLE go, done;
	void *before, *block;
} elders[THREADS];

static int status;

static NOINLINE void *elder_block(void)
{
	return HeapAlloc(GetProcessHeap(), 0, 600);
}

static DWORD WINAPI live(LPVOID ctx)
{
	struct elder *elder = ctx;

	while (WaitForSingleObject(elder->go, INFINITE) == WAIT_OBJECT_0) {
		void *fresh = elder_block();

		if (elder->block && !HeapFree(GetProcessHeap(), 0, elder->block))
			status = 9;
		elder->before = elder->block;
		elder->block = fresh;
		SetEvent(elder->done);
	}
	return 0;
}

static void all_live_on(void)
{
	for (int i = 0; i < THREADS; i++) {
		SetEvent(elders[i].go);
		WaitForSingleObject(elders[i].done, INFINITE);
	}
}

static void wrong(const char *what)
{
	printf("wrong: %s\n", what);
	status = 9;
}

/* Whether there is a block at this address again. */
static bool is_anybodys(const void *addr)
{
	for (int i = 0; i < THREADS; i++) {
		if (elders[i].block == addr)
			return true;
	}
	return false;
}

/* The tracer is at work, and knows just the blocks that there are. */
static void is_traced(void)
{
	const struct tracer_area *area = own_table();

	if (!area || area->state != TRACER_ON) {
		wrong("no tracer");
		return;
	}
	for (int i = 0; i < THREADS; i++) {
		const struct tracer_block *found = own_table_find(area, elders[i].block);

		if (!found || tracer_block_bytes(found) != 600 ||
			!own_table_is_by(area, found, elder_block) ||
			!own_table_is_by(area, found, live))
			wrong("a block of a thread that was there before");
		if (!is_anybodys(elders[i].before) && own_table_find(area, elders[i].before))
			wrong("a block that is gone");
	}
}

int main(void)
{
	const struct tracer_area *area;

	for (int i = 0; i < THREADS; i++) {
		elders[i].go = CreateEventW(NULL, FALSE, FALSE, NULL);
		elders[i].done = CreateEventW(NULL, FALSE, FALSE, NULL);
		CloseHandle(CreateThread(NULL, 0, live, &elders[i], 0, NULL));
	}
	all_live_on();
	if (!step_done(1))
		return status;
	all_live_on();
	is_traced();
	if (!step_done(2))
		return status;
	all_live_on();
	area = own_table();
	if (!area || area->state != TRACER_OFF)
		wrong("it is not detached");
	if (!step_done(3))
		return status;
	all_live_on();
	is_traced();
	step_done(4);
	return status;
}
