/* stacks N DEPTH ORDER [THREADS]: measures the cost of the tracer in a program that allocates from
 * many places. Each thread has a heap, and makes N pairs of allocation and free, each pair at the end
 * of one of 16,384 stacks of DEPTH (8 to 60) calls. The stacks form a tree: on each of 7 levels, one of 4 calls is
 * made. The functions of the first 6 levels are all different, so there are 5,500 return addresses.
 * Half of the other calls are outside of the tree, half inside. ORDER is "one" for a single stack,
 * "random" for all stacks equally often, or "zipf" if the kth stack occurs 1/k times as often as the
 * first. Prints ns per pair of a thread, both in elapsed time and in processor time. */
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <windows.h>

#include "samples/step.h"

static const unsigned LEVELS = 7, OWN_LEVELS = 6, STACKS = 1u << 2 * LEVELS, STEPS = 1u << 18;

static unsigned long pairs;
static unsigned inside, outside; /* calls inside and outside of the tree */
static std::vector<uint16_t> steps; /* the stacks, in the order of the calls */
static volatile unsigned used; /* prevents tail calls */

/* The assembly prevents compilers from merging several calls into one. */
#define CALL(number, call)                                                                         \
	call;                                                                                      \
	__asm__ volatile("# " #number ::: "memory")

static NOINLINE void allocate(HANDLE heap, unsigned depth)
{
	if (depth)
		allocate(heap, depth - 1);
	else
		HeapFree(heap, 0, step_leak(HeapAlloc(heap, 0, 48)));
	used = depth;
}

template <unsigned level, unsigned node> static NOINLINE void visit(HANDLE heap, unsigned path)
{
	if constexpr (level == LEVELS) {
		allocate(heap, inside);
	} else {
		constexpr unsigned next = level + 1, own = next < OWN_LEVELS,
				   child = own * node * 4;

		switch (path >> 2 * level & 3) {
		case 0: CALL(0, (visit<next, child>(heap, path))); break;
		case 1: CALL(1, (visit<next, child + own>(heap, path))); break;
		case 2: CALL(2, (visit<next, child + 2 * own>(heap, path))); break;
		default: CALL(3, (visit<next, child + 3 * own>(heap, path))); break;
		}
	}
	used = path;
}

static NOINLINE void enter(HANDLE heap, unsigned depth, unsigned path)
{
	if (depth)
		enter(heap, depth - 1, path);
	else
		visit<0, 0>(heap, path);
	used = depth;
}

static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 32);
}

/* Chooses the stacks. Paths are mixed, so that the most frequent ones have few calls in common. */
static void choose(const char *how)
{
	std::vector<double> below(STACKS);
	uint64_t state = 1;
	double sum = 0;

	for (unsigned i = 0; i < STACKS; i++)
		below[i] = sum += !strcmp(how, "one")  ? !i :
				  !strcmp(how, "zipf") ? 1.0 / (i + 1) :
							 1;
	for (unsigned i = 0; i < STEPS; i++) {
		double at = next_random(&state) * (sum / 4294967296.0);
		auto found = std::upper_bound(below.begin(), below.end(), at) - below.begin();

		steps.push_back((uint16_t)(found * 0x2f5b % STACKS));
	}
}

static ULONGLONG time_of(const FILETIME *time)
{
	return (ULONGLONG)time->dwHighDateTime << 32 | time->dwLowDateTime;
}

static DWORD WINAPI work(LPVOID first)
{
	HANDLE heap = HeapCreate(0, 0, 0);

	for (unsigned long i = 0, at = (uintptr_t)first; i < pairs; i++, at++)
		enter(heap, outside, steps[at % STEPS]);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned depth = argc > 2 ? strtoul(argv[2], NULL, 10) : 16;
	unsigned long threads = argc > 4 ? strtoul(argv[4], NULL, 10) : 1;
	FILETIME made, ended, kernel, user;
	LARGE_INTEGER from, to, per_second;
	HANDLE handles[16];
	char text[40], *end;
	ULONGLONG spent;
	DWORD put;

	pairs = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
	if (!pairs || depth < 8 || depth > 60 || !threads || threads > 16)
		return 2;
	inside = (depth - 8) / 2;
	outside = depth - 8 - inside;
	choose(argc > 3 ? argv[3] : "random");
	GetProcessTimes(GetCurrentProcess(), &made, &ended, &kernel, &user);
	spent = time_of(&kernel) + time_of(&user);
	QueryPerformanceFrequency(&per_second);
	QueryPerformanceCounter(&from);
	for (unsigned i = 0; i < threads; i++)
		handles[i] = CreateThread(NULL, 0, work, (LPVOID)(uintptr_t)(i * 12345), 0, NULL);
	WaitForMultipleObjects(threads, handles, TRUE, INFINITE);
	QueryPerformanceCounter(&to);
	GetProcessTimes(GetCurrentProcess(), &made, &ended, &kernel, &user);
	spent = time_of(&kernel) + time_of(&user) - spent;
	end = step_decimal(text, (unsigned long)((to.QuadPart - from.QuadPart) * 1000000000.0 /
						 per_second.QuadPart / pairs));
	*end++ = ' ';
	end = step_decimal(end, (unsigned long)(spent * 100 / pairs / threads));
	*end++ = '\n';
	WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), text, (DWORD)(end - text), &put, NULL);
	return 0;
}
