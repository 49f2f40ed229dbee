/*
 * pairs N DEPTH: N pairs of malloc and free in one thread, under DEPTH calls, and prints how many
 * nanoseconds a pair took. For measuring what the tracer costs.
 */
#include <stdlib.h>
#include <windows.h>

#include "samples/step.h"

static NOINLINE void *allocate(unsigned depth)
{
	char *block = depth ? allocate(depth - 1) : step_leak(malloc(48));

	block[0] = 'x'; /* keeps the call above from becoming a jump */
	return block;
}

int main(int argc, char **argv)
{
	unsigned long pairs = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
	unsigned depth = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 10;
	LARGE_INTEGER from, to, per_second;
	char text[40], *end;
	DWORD put;

	QueryPerformanceFrequency(&per_second);
	QueryPerformanceCounter(&from);
	for (unsigned long i = 0; i < pairs; i++)
		free(allocate(depth));
	QueryPerformanceCounter(&to);
	end = step_decimal(text, (unsigned long)((to.QuadPart - from.QuadPart) * 1000000000.0 /
						 per_second.QuadPart / pairs));
	*end++ = '\n';
	WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), text, (DWORD)(end - text), &put, NULL);
	return 0;
}
