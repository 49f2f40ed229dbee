/* gaps [N]: makes N blocks (default 1000) like samples/many_blocks.c. Then a separate thread reads
 * the clock continuously. Before each step except the first, the program prints "gap NNN us", the
 * longest time between two readings since the previous step. */
#include <stdlib.h>

#include "samples/step.h"

#define CHAINS 1000
#define DIGITS 10

static volatile LONGLONG longest; /* in clock ticks */

static NOINLINE void *right(unsigned path, unsigned digits, size_t bytes);

static NOINLINE void *make_block(size_t bytes)
{
	char *block = step_leak(malloc(bytes));

	block[0] = 'x';
	return block;
}

static NOINLINE void *left(unsigned path, unsigned digits, size_t bytes)
{
	if (!digits)
		return make_block(bytes);
	return path & 1 ? right(path >> 1, digits - 1, bytes) : left(path >> 1, digits - 1, bytes);
}

static NOINLINE void *right(unsigned path, unsigned digits, size_t bytes)
{
	if (!digits)
		return make_block(bytes);
	return path & 1 ? right(path >> 1, digits - 1, bytes) : left(path >> 1, digits - 1, bytes);
}

static LONGLONG ticks(void)
{
	LARGE_INTEGER now;

	QueryPerformanceCounter(&now);
	return now.QuadPart;
}

static DWORD WINAPI look(void *unused)
{
	LONGLONG last = ticks();

	(void)unused;
	for (;;) {
		LONGLONG now = ticks();

		if (now - last > longest)
			longest = now - last;
		last = now;
	}
	return 0;
}

static void print_gap(void)
{
	LARGE_INTEGER per_second;
	char line[64], *end = step_text(line, "gap ");
	DWORD put;

	QueryPerformanceFrequency(&per_second);
	end = step_decimal(end, (unsigned long)(longest * 1000000 / per_second.QuadPart));
	end = step_text(end, " us\n");
	WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), line, (DWORD)(end - line), &put, NULL);
	longest = 0;
}

int main(int argc, char **argv)
{
	unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000, step = 0;

	for (unsigned long i = 0; i < count; i++) {
		unsigned path = (unsigned)(i % CHAINS);

		if (path & 1)
			right(path >> 1, DIGITS - 1, 16 + i % 97);
		else
			left(path >> 1, DIGITS - 1, 16 + i % 97);
	}
	if (!CreateThread(NULL, 0, look, NULL, 0, NULL))
		return 3;
	while (step_done(++step))
		print_gap();
	return 0;
}
