/* named: threads with and without names allocate blocks of 10007 bytes. "thread ID ALLOCATED BY-ITSELF
 * BY-MAIN NAME" states, for each, its blocks, how many of them it freed, how many the main thread
 * freed, and its last name in UTF-8, which is the rest of the line and may be empty. "step 1 pid P"
 * follows. Then the threads end, and "step 2 pid P" follows. */
#include <stdio.h>

#include "samples/step.h"

#define BYTES 10007
#define WORKERS 4

struct worker {
	const wchar_t *first, *last; /* names that it gives itself; NULL: none */
	const char *name; /* the last name in UTF-8 */
	int allocated, freed, handed; /* numbers of blocks */
	HANDLE thread, done;
	DWORD id;
	void *blocks[8];
};

typedef HRESULT(WINAPI *describe_fn)(HANDLE, const wchar_t *);

static describe_fn describe;
static HANDLE go;

static DWORD WINAPI work(void *argument)
{
	struct worker *worker = argument;

	if (worker->first)
		describe(GetCurrentThread(), worker->first);
	for (int i = 0; i < worker->allocated; i++)
		worker->blocks[i] = step_leak(HeapAlloc(GetProcessHeap(), 0, BYTES));
	for (int i = 0; i < worker->freed; i++)
		HeapFree(GetProcessHeap(), 0, worker->blocks[worker->handed + i]);
	if (worker->last)
		describe(GetCurrentThread(), worker->last);
	SetEvent(worker->done);
	WaitForSingleObject(go, INFINITE);
	return 0;
}

static void begin(struct worker *worker, const wchar_t *name)
{
	worker->done = CreateEventW(NULL, FALSE, FALSE, NULL);
	worker->thread = CreateThread(NULL, 0, work, worker, CREATE_SUSPENDED, &worker->id);
	if (name)
		describe(worker->thread, name);
	ResumeThread(worker->thread);
	WaitForSingleObject(worker->done, INFINITE);
	for (int i = 0; i < worker->handed; i++)
		HeapFree(GetProcessHeap(), 0, worker->blocks[i]);
}

int main(void)
{
	static struct worker workers[WORKERS] = {
		{L"w\x00f6rker", NULL, "w\xc3\xb6rker", 5, 0, 3, NULL, NULL, 0, {0}},
		{L"first name", L"last name", "last name", 4, 1, 0, NULL, NULL, 0, {0}},
		{NULL, NULL, "named by main", 2, 0, 2, NULL, NULL, 0, {0}},
		{NULL, NULL, "", 6, 2, 1, NULL, NULL, 0, {0}},
	};

	describe = (describe_fn)(void (*)(void))GetProcAddress(
		GetModuleHandleW(L"kernelbase.dll"), "SetThreadDescription");
	go = CreateEventW(NULL, TRUE, FALSE, NULL);
	if (!describe || !go)
		return 2;
	describe(GetCurrentThread(), L"main thread");
	for (int i = 0; i < WORKERS; i++)
		begin(&workers[i], i == 2 ? L"named by main" : NULL);
	step_leak(HeapAlloc(GetProcessHeap(), 0, BYTES));
	for (int i = 0; i < WORKERS; i++)
		printf("thread %lu %d %d %d %s\n", workers[i].id, workers[i].allocated,
			workers[i].freed, workers[i].handed, workers[i].name);
	printf("thread %lu 1 0 0 main thread\n", GetCurrentThreadId());
	fflush(stdout);
	if (!step_done(1))
		return 0;
	SetEvent(go);
	for (int i = 0; i < WORKERS; i++)
		WaitForSingleObject(workers[i].thread, INFINITE);
	step_done(2);
	return 0;
}
