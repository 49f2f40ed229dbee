/*
 * stress THREADS ROUNDS SEED: so many threads allocate, reallocate and free each other's blocks, of
 * three heaps, while one more loads and unloads libraries: until a line comes in, at most so many times
 * each. Then it says what is left:
 *
 *	made FUNCTION COUNT BYTES
 *
 * for each function that allocated what is live. Step 1: before; 2: when all threads have ended; 3:
 * when all blocks are freed.
 *
 * A block is somebody's only while it is out of its slot, so no two threads touch one at a time.
 */
#include <stdint.h>
#include <stdlib.h>

#include "samples/step.h"

#define SLOTS 4096
#define BYTES_MAX 600

struct block {
	uint32_t maker, bytes, kind, unused;
};

enum kind {
	C_HEAP,
	PROCESS_HEAP,
	OWN_HEAP,
	KINDS,
};

static struct block *volatile slots[SLOTS];
static HANDLE own_heap;
static unsigned long rounds;
static LONG working;
static volatile bool is_over;

/* Each of them a place of its own that allocates. */
#define MAKERS(X)                                                                                  \
	X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define COUNT 16

static struct block *fill(struct block *block, uint32_t maker, uint32_t bytes, uint32_t kind)
{
	if (!block)
		ExitProcess(4);
	*block = (struct block){maker, bytes, kind, 0};
	return block;
}

#define MAKER(n)                                                                                   \
	static NOINLINE struct block *make_##n(uint32_t bytes, uint32_t kind)                      \
	{                                                                                          \
		void *block = kind == C_HEAP	   ? malloc(bytes) :                               \
			      kind == PROCESS_HEAP ? HeapAlloc(GetProcessHeap(), 0, bytes) :       \
						     HeapAlloc(own_heap, HEAP_ZERO_MEMORY, bytes); \
                                                                                                   \
		return fill(block, n, bytes, kind);                                                \
	}                                                                                          \
	static NOINLINE struct block *remake_##n(struct block *old, uint32_t bytes)                \
	{                                                                                          \
		uint32_t kind = old->kind;                                                         \
		void *block = kind == C_HEAP ? realloc(old, bytes) :                               \
			      kind == PROCESS_HEAP ?                                               \
					       HeapReAlloc(GetProcessHeap(), 0, old, bytes) :      \
					       HeapReAlloc(own_heap, 0, old, bytes);               \
                                                                                                   \
		return fill(block, COUNT + (n), bytes, kind);                                      \
	}
MAKERS(MAKER)

#define ONE_MAKER(n) make_##n,
static struct block *(*const makers[])(uint32_t, uint32_t) = {MAKERS(ONE_MAKER)};
#define ONE_REMAKER(n) remake_##n,
static struct block *(*const remakers[])(struct block *, uint32_t) = {MAKERS(ONE_REMAKER)};
#define MAKER_NAME(n) "make_" #n,
#define REMAKER_NAME(n) "remake_" #n,
static const char *const names[] = {MAKERS(MAKER_NAME) MAKERS(REMAKER_NAME)};

static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static void drop(struct block *block)
{
	if (block->kind == C_HEAP)
		free(block);
	else
		HeapFree(block->kind == PROCESS_HEAP ? GetProcessHeap() : own_heap, 0, block);
}

static void one_round(uint64_t *state)
{
	struct block *volatile *slot = &slots[next_random(state) % SLOTS];
	uint32_t what = next_random(state), bytes = sizeof(struct block) + what % BYTES_MAX;
	struct block *block = InterlockedExchangePointer((PVOID volatile *)slot, NULL);

	what >>= 12;
	if (!block)
		block = makers[what % COUNT](bytes, what / COUNT % KINDS);
	else if (what & 1 << 8)
		block = remakers[what % COUNT](block, bytes);
	else {
		drop(block);
		return;
	}
	block = InterlockedExchangePointer((PVOID volatile *)slot, block);
	if (block) /* somebody was faster */
		drop(block);
}

static DWORD WINAPI work(LPVOID seed)
{
	uint64_t state = (uintptr_t)seed * 0x9e3779b97f4a7c15u + 1;

	for (unsigned long i = 0; i < rounds && !is_over; i++)
		one_round(&state);
	InterlockedDecrement(&working);
	return 0;
}

static DWORD WINAPI load_and_unload(LPVOID unused)
{
	static const wchar_t *const libraries[] = {L"version.dll", L"mpr.dll", L"dbghelp.dll"};

	(void)unused;
	for (unsigned i = 0; working; i++) {
		HMODULE library = LoadLibraryW(libraries[i % 3]);

		if (library)
			FreeLibrary(library);
	}
	return 0;
}

static void say_what_is_left(void)
{
	unsigned long counts[2 * COUNT] = {0}, bytes[2 * COUNT] = {0};

	for (unsigned i = 0; i < SLOTS; i++) {
		if (slots[i]) {
			counts[slots[i]->maker]++;
			bytes[slots[i]->maker] += slots[i]->bytes;
		}
	}
	for (unsigned i = 0; i < 2 * COUNT; i++) {
		char line[80], *end = step_text(step_text(line, "made "), names[i]);
		DWORD put;

		*end++ = ' ';
		end = step_decimal(end, counts[i]);
		*end++ = ' ';
		end = step_decimal(end, bytes[i]);
		*end++ = '\n';
		WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), line, (DWORD)(end - line), &put, NULL);
	}
}

static void run_all(unsigned threads, uintptr_t seed)
{
	HANDLE handles[33];
	char line[8];

	working = (LONG)threads;
	for (unsigned i = 0; i < threads; i++)
		handles[i] = CreateThread(NULL, 0, work, (LPVOID)(seed * 100 + i), 0, NULL);
	handles[threads] = CreateThread(NULL, 0, load_and_unload, NULL, 0, NULL);
	step_line(line, sizeof(line));
	is_over = true;
	WaitForMultipleObjects(threads + 1, handles, TRUE, INFINITE);
	for (unsigned i = 0; i <= threads; i++)
		CloseHandle(handles[i]);
}

int main(int argc, char **argv)
{
	unsigned long threads = argc > 1 ? strtoul(argv[1], NULL, 10) : 8;
	uintptr_t seed = argc > 3 ? strtoul(argv[3], NULL, 10) : 1;

	rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 100000;
	own_heap = HeapCreate(0, 0, 0);
	if (!own_heap || threads > 32 || !step_done(1))
		return 1;
	run_all(threads, seed);
	say_what_is_left();
	if (!step_done(2))
		return 0;
	for (unsigned i = 0; i < SLOTS; i++) {
		if (slots[i])
			drop(slots[i]);
	}
	step_done(3);
	return 0;
}
