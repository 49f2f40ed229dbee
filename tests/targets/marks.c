/*
 * marks [threads]: marks its own recording with snapshot/hsnap-mark.h, and states its events for
 * tests/lib/Replay.pm, all at time 0. The tests T1 to T8 keep blocks, free blocks of their own, and
 * free blocks of earlier tests. Nothing happens between the marks "quiet 1" and "quiet 2". Then
 * comes step 1.
 *
 * With "threads", four threads keep one block each before each of their ten marks "K.N", and
 * nothing is stated.
 *
 * The status is 0, or 4 if a mark changed the last error.
 */
#include <stdint.h>
#include <stdlib.h>

#include "snapshot/hsnap-mark.h"
#include "tests/targets/stated.h"

#define TESTS 8
#define BLOCKS 200
#define THREADS 4
#define MARKS 10

static void *live[TESTS * BLOCKS];
static unsigned live_count, number;
static unsigned long seed = 4711;

static unsigned random_below(unsigned limit)
{
	seed = seed * 1103515245 + 12345;
	return (unsigned)(seed >> 16) % limit;
}

static NOINLINE void *keep_small(size_t bytes)
{
	return HeapAlloc(GetProcessHeap(), 0, bytes);
}

static NOINLINE void *keep_large(size_t bytes)
{
	return HeapAlloc(GetProcessHeap(), 0, bytes * 100);
}

/* Blocks are stated by their place in `live`. */
static NOINLINE void run_test(void)
{
	static unsigned ids[TESTS * BLOCKS];

	for (volatile unsigned i = 0; i < BLOCKS; i++) {
		size_t bytes = 16 + random_below(60);
		bool is_large = random_below(4) == 0;

		if (random_below(2) && live_count) {
			unsigned at = random_below(live_count);

			HeapFree(GetProcessHeap(), 0, live[at]);
			state("0 1 free b%u\n", ids[at]);
			live[at] = live[--live_count];
			ids[at] = ids[live_count];
		}
		live[live_count] = step_leak(is_large ? keep_large(bytes) : keep_small(bytes));
		ids[live_count++] = ++number;
		state("0 1 alloc b%u %lu %s 1\n", number,
			(unsigned long)(is_large ? bytes * 100 : bytes),
			is_large ? "keep_large<-run_test<-main" : "keep_small<-run_test<-main");
	}
}

static void mark(const char *label)
{
	SetLastError(4711);
	hsnap_mark(label);
	if (GetLastError() != 4711)
		ExitProcess(4);
	state("0 1 mark %s\n", label);
}

static NOINLINE void keep_of_thread(void)
{
	step_leak(malloc(1000));
}

static DWORD WINAPI send_marks(void *ctx)
{
	for (volatile unsigned i = 0; i < MARKS; i++) {
		char label[] = {(char)('0' + (uintptr_t)ctx), '.', (char)('0' + i), '\0'};

		keep_of_thread();
		hsnap_mark(label);
	}
	return 0;
}

static void run_threads(void)
{
	HANDLE threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		threads[i] = CreateThread(NULL, 0, send_marks, (void *)i, 0, NULL);
	WaitForMultipleObjects(THREADS, threads, TRUE, INFINITE);
}

int main(int argc, char **argv)
{
	char label[] = "T1";

	if (argc > 1 && !strcmp(argv[1], "threads")) {
		run_threads();
		return 0;
	}
	for (volatile unsigned i = 0; i < TESTS; i++) {
		label[1] = (char)('1' + i);
		mark(label);
		run_test();
	}
	mark("quiet 1");
	mark("quiet 2");
	state_step(1);
	return 0;
}
