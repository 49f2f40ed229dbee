/* pairs N DEPTH: measures the cost of the tracer. One thread makes N pairs of malloc and free at
 * the end of DEPTH calls. Prints ns per pair, both in elapsed time and in processor time. */
#include <stdlib.h>
#include <windows.h>

#include "samples/step.h"

static NOINLINE void *allocate(unsigned depth)
{
	char *block = depth ? allocate(depth - 1) : step_leak(malloc(48));

	block[0] = 'x'; /* prevents a tail call */
	return block;
}

/* Returns this thread's processor time in units of 100 ns. */
static ULONGLONG processor_time(void)
{
	FILETIME made, ended, kernel, user;

	GetThreadTimes(GetCurrentThread(), &made, &ended, &kernel, &user);
	return ((ULONGLONG)kernel.dwHighDateTime << 32 | kernel.dwLowDateTime) +
	       ((ULONGLONG)user.dwHighDateTime << 32 | user.dwLowDateTime);
}

int main(int argc, char **argv)
{
	unsigned long pairs = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
	unsigned depth = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 10;
	LARGE_INTEGER from, to, per_second;
	ULONGLONG used;
	char text[40], *end;
	DWORD put;

	if (!pairs)
		return 2;
	QueryPerformanceFrequency(&per_second);
	QueryPerformanceCounter(&from);
	used = processor_time();
	for (unsigned long i = 0; i < pairs; i++)
		free(allocate(depth));
	QueryPerformanceCounter(&to);
	used = processor_time() - used;
	end = step_decimal(text, (unsigned long)((to.QuadPart - from.QuadPart) * 1000000000.0 /
						 per_second.QuadPart / pairs));
	*end++ = ' ';
	end = step_decimal(end, (unsigned long)(used * 100 / pairs));
	*end++ = '\n';
	WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), text, (DWORD)(end - text), &put, NULL);
	return 0;
}
