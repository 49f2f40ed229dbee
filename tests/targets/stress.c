/*
 * stress THREADS ROUNDS SEED: THREADS threads allocate, reallocate and free each other's blocks in
 * three heaps, while one more thread loads and unloads libraries. They run until the program reads
 * a line, but each does at most ROUNDS rounds. Then the program prints
 *
 *   made FUNCTION COUNT BYTES
 *
 * for each function that allocated live blocks. Step 1 comes before the threads start, step 2 when
 * all threads have ended, and step 3 when all blocks are freed.
 *
 * stress THREADS ROUNDS SEED PLUG EVENTS: repeats this, and no thread is at work at any step. The
 * libraries are PLUG, a copy of plug.dll, which allocates. Further threads create, use and destroy
 * heaps, commit and decommit memory, and start a child process that prints "child". Before an even
 * step each thread does its rounds and states its calls in the file EVENTS, in the format of
 * tests/lib/Replay.pm. Each step is a mark "step K"; time stands still. Before an odd step the
 * threads run until the program reads a line. Then only the remaining blocks are stated, which are
 * freed before the next step. At the end the program prints numbers that are equal in every run.
 *
 * A thread owns a block only while the block is out of its slot, so no two threads use it at the
 * same time. A free is stated before the call and an allocation after the call, so that the
 * statements are in the right order for each address.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "samples/step.h"

#define SLOTS 4096
#define BYTES_MAX 600
#define EVENTS_MAX 400000
#define LOOPS_STATED 20 /* number of rounds of threads that do more than exchange blocks */

struct block {
	uint32_t maker, bytes, kind, check;
};

enum kind {
	C_HEAP,
	PROCESS_HEAP,
	OWN_HEAP,
	KINDS,
};

struct event {
	const char *type, *stack;
	const void *addr;
	size_t bytes;
	const void *heap;
	DWORD thread;
};

static struct block *volatile all_slots[2][SLOTS], *volatile *slots = all_slots[0];
static struct event events[EVENTS_MAX];
static volatile LONG event_count;
static HANDLE own_heap;
static const char *plug_path;
static unsigned long rounds;
static LONG working;
static volatile bool is_over;
static bool is_stated;

static void state(
	const char *type, const void *addr, size_t bytes, const char *stack, const void *heap)
{
	LONG at = is_stated ? InterlockedIncrement(&event_count) - 1 : 0;

	if (!is_stated)
		return;
	if (at >= EVENTS_MAX)
		ExitProcess(5);
	events[at] = (struct event){type, stack, addr, bytes, heap, GetCurrentThreadId()};
}

/* Functions that allocate at different places. */
#define MAKERS(X)                                                                                  \
	X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define COUNT 16

static struct block *fill(struct block *block, uint32_t maker, uint32_t bytes, uint32_t kind);

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

static void state_made(const struct block *block)
{
	state("alloc", block, block->bytes, names[block->maker],
		block->kind == OWN_HEAP ? own_heap : NULL);
}

static struct block *fill(struct block *block, uint32_t maker, uint32_t bytes, uint32_t kind)
{
	if (!block)
		ExitProcess(4);
	*block = (struct block){maker, bytes, kind, ~maker};
	state_made(block);
	return block;
}

static uint32_t next_random(uint64_t *random)
{
	*random = *random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*random >> 33);
}

static void look(const struct block *block)
{
	if (block->check != ~block->maker)
		ExitProcess(6);
	state("free", block, 0, NULL, NULL);
}

static void drop(struct block *block)
{
	look(block);
	if (block->kind == C_HEAP)
		free(block);
	else
		HeapFree(block->kind == PROCESS_HEAP ? GetProcessHeap() : own_heap, 0, block);
}

static void one_round(uint64_t *random)
{
	struct block *volatile *slot = &slots[next_random(random) % SLOTS];
	uint32_t what = next_random(random), bytes = sizeof(struct block) + what % BYTES_MAX;
	struct block *block = InterlockedExchangePointer((PVOID volatile *)slot, NULL);

	what >>= 12;
	if (!block)
		block = makers[what % COUNT](bytes, what / COUNT % KINDS);
	else if (what & 1 << 8) {
		look(block);
		block = remakers[what % COUNT](block, bytes);
	} else {
		drop(block);
		return;
	}
	block = InterlockedExchangePointer((PVOID volatile *)slot, block);
	if (block) /* NULL if another thread was faster */
		drop(block);
}

static bool is_endless(void)
{
	return plug_path && !is_stated;
}

static DWORD WINAPI work(LPVOID seed)
{
	uint64_t random = (uintptr_t)seed * 0x9e3779b97f4a7c15u + 1;

	for (unsigned long i = 0; (i < rounds || is_endless()) && !is_over; i++) {
		one_round(&random);
		if (is_endless() && i % 64 == 0)
			Sleep(1); /* lets the checking threads run */
	}
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

/* ---------------------------------------------------------------- with a file of events */

static bool goes_on(unsigned loops)
{
	if (is_stated)
		return loops < LOOPS_STATED;
	Sleep(30);
	return working != 0;
}

static DWORD WINAPI plug_and_unplug(LPVOID unused)
{
	(void)unused;
	for (unsigned i = 0; goes_on(i); i++) {
		HMODULE plug = LoadLibraryA(plug_path);
		void *(*keep)(unsigned bytes) =
			(void *(*)(unsigned))(void *)GetProcAddress(plug, "plug_keep");
		void *blocks[8];

		for (unsigned k = 0; k < 8; k++) {
			blocks[k] = keep(100 + k);
			state("alloc", blocks[k], 100 + k, "plug_keep", NULL);
		}
		/* If calls are stated, one block stays. */
		for (unsigned k = is_stated; k < 8; k++) {
			state("free", blocks[k], 0, NULL, NULL);
			HeapFree(GetProcessHeap(), 0, blocks[k]);
		}
		FreeLibrary(plug);
	}
	return 0;
}

static NOINLINE void *make_in_heap(HANDLE heap, size_t bytes)
{
	void *block = step_leak(HeapAlloc(heap, 0, bytes));

	state("alloc", block, bytes, "make_in_heap", heap);
	return block;
}

static NOINLINE void *make_pages(size_t bytes)
{
	void *pages =
		step_leak(VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));

	state("commit", pages, bytes, "make_pages", NULL);
	return pages;
}

static DWORD WINAPI create_and_destroy(LPVOID unused)
{
	(void)unused;
	for (unsigned i = 0; goes_on(i); i++) {
		HANDLE heap = HeapCreate(0, 0, 0);
		void *pages = make_pages(0x10000);

		for (unsigned k = 1; k <= 60; k++) {
			void *block = make_in_heap(heap, 16 * k);

			if (k % 3)
				continue;
			state("free", block, 0, NULL, NULL);
			HeapFree(heap, 0, block);
		}
		state("destroy", NULL, 0, NULL, heap);
		HeapDestroy(heap);
		state("decommit", pages, 0x10000, NULL, NULL);
		VirtualFree(pages, 0, MEM_RELEASE);
	}
	return 0;
}

static DWORD WINAPI start_child(LPVOID unused)
{
	STARTUPINFOW startup = {.cb = sizeof(startup)};
	PROCESS_INFORMATION info;
	wchar_t image[MAX_PATH], command[] = L"stress child";

	(void)unused;
	if (!GetModuleFileNameW(NULL, image, MAX_PATH) ||
		!CreateProcessW(image, command, NULL, NULL, TRUE, 0, NULL, NULL, &startup, &info))
		ExitProcess(7);
	WaitForSingleObject(info.hProcess, INFINITE);
	CloseHandle(info.hThread);
	CloseHandle(info.hProcess);
	return 0;
}

static bool write_events(const char *path)
{
	FILE *file = fopen(path, "wb");

	for (LONG i = 0; file && i < event_count; i++) {
		const struct event *event = &events[i];

		fprintf(file, "0 %lu %s ", event->thread, event->type);
		if (!strcmp(event->type, "mark"))
			fprintf(file, "step %zu\n", event->bytes);
		else if (!strcmp(event->type, "destroy"))
			fprintf(file, "%p\n", event->heap);
		else if (!strcmp(event->type, "free"))
			fprintf(file, "%p\n", event->addr);
		else if (!strcmp(event->type, "alloc"))
			fprintf(file, "%p %zu %s %p\n", event->addr, event->bytes, event->stack,
				event->heap);
		else
			fprintf(file, "%p %zu%s%s\n", event->addr, event->bytes,
				event->stack ? " " : "", event->stack ? event->stack : "");
	}
	return file && !fclose(file);
}

static void print_what_is_left(void)
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
	static const LPTHREAD_START_ROUTINE others[] = {
		plug_and_unplug, create_and_destroy, start_child};
	HANDLE handles[35];
	unsigned count = threads;
	char line[8];

	working = (LONG)threads;
	is_over = false;
	for (unsigned i = 0; i < threads; i++)
		handles[i] = CreateThread(NULL, 0, work, (LPVOID)(seed * 100 + i), 0, NULL);
	if (!plug_path)
		handles[count++] = CreateThread(NULL, 0, load_and_unload, NULL, 0, NULL);
	for (unsigned i = 0; plug_path && i < 3; i++)
		handles[count++] = CreateThread(NULL, 0, others[i], NULL, 0, NULL);
	if (!is_stated)
		step_line(line, sizeof(line));
	is_over = !is_stated;
	WaitForMultipleObjects(count, handles, TRUE, INFINITE);
	for (unsigned i = 0; i < count; i++)
		CloseHandle(handles[i]);
}

static void drop_all(void)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		if (slots[i])
			drop(slots[i]);
		slots[i] = NULL;
	}
}

static int run_stated(unsigned threads, uintptr_t seed, const char *events_path)
{
	bool is_wanted = true;

	is_stated = true;
	for (unsigned step = 1; is_wanted; step++) {
		state("mark", NULL, step, NULL, NULL);
		is_wanted = step_done(step);
		slots = all_slots[step % 2];
		if (step % 2 == 0)
			drop_all();
		is_stated = step % 2;
		if (is_wanted)
			run_all(threads, seed + step);
		is_stated = true;
		for (unsigned i = 0; i < SLOTS && step % 2 == 0; i++) {
			if (slots[i])
				state_made(slots[i]);
		}
	}
	for (unsigned i = 0; i < 5000; i++)
		printf("%u\n", i * i);
	return write_events(events_path) ? 0 : 8;
}

int main(int argc, char **argv)
{
	unsigned long threads = argc > 1 ? strtoul(argv[1], NULL, 10) : 8;
	uintptr_t seed = argc > 3 ? strtoul(argv[3], NULL, 10) : 1;

	if (argc == 2 && !strcmp(argv[1], "child"))
		return puts("child") < 0;
	rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 100000;
	own_heap = HeapCreate(0, 0, 0);
	if (!own_heap || threads > 32)
		return 1;
	if (argc == 6) {
		plug_path = argv[4];
		return run_stated(threads, seed, argv[5]);
	}
	if (!step_done(1))
		return 1;
	run_all(threads, seed);
	print_what_is_left();
	if (!step_done(2))
		return 0;
	drop_all();
	step_done(3);
	return 0;
}
