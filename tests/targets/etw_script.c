/* A known series of heap calls, each printed after it was made. The output is the truth about an
 * ETW log of the program (docs/etw-on-windows.md). With "wait" it starts when Enter is pressed. */
#include <stdio.h>
#include <string.h>

#include <windows.h>

static HANDLE heap;

static void messages(const char *what, const void *addr, size_t bytes)
{
	LARGE_INTEGER now;

	QueryPerformanceCounter(&now);
	printf("%s addr %p bytes %lu heap %p thread %lu ticks %lld\n", what, addr,
		(unsigned long)bytes, (void *)heap, GetCurrentThreadId(), now.QuadPart);
}

__attribute__((noinline)) static char *take(size_t bytes)
{
	char *block = HeapAlloc(heap, 0, bytes);

	messages("alloc", block, bytes);
	return block;
}

__attribute__((noinline)) static void give(char *block)
{
	HeapFree(heap, 0, block);
	messages("free", block, 0);
}

__attribute__((noinline)) static char *change(char *block, size_t bytes)
{
	char *now = HeapReAlloc(heap, 0, block, bytes);

	messages(now == block ? "resize" : "move", now, bytes);
	return now;
}

static DWORD WINAPI give_there(void *block)
{
	give(block);
	return 0;
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = {1009, 2003, 4001, 8009};
	char *kept[4], *small[100], *pages;
	HANDLE thread;

	if (argc > 1 && !strcmp(argv[1], "wait"))
		getchar();
	heap = GetProcessHeap();
	printf("process %lu\nphase 1: four blocks stay\n", GetCurrentProcessId());
	for (size_t i = 0; i < 4; i++)
		kept[i] = take(sizes[i]);
	printf("phase 2: two come and go, one on another thread\n");
	give(take(16001));
	thread = CreateThread(NULL, 0, give_there, take(32003), 0, NULL);
	if (!thread)
		return 1;
	WaitForSingleObject(thread, INFINITE);
	CloseHandle(thread);
	printf("phase 3: realloc, in place and moving\n");
	kept[3] = change(kept[3], 8005);
	kept[3] = change(kept[3], 500009);
	printf("phase 4: a hundred small ones, of which every other goes\n");
	for (size_t i = 0; i < 100; i++)
		small[i] = take(48);
	for (size_t i = 0; i < 100; i += 2)
		give(small[i]);
	printf("phase 5: a large block stays\n");
	take(2 << 20);
	printf("phase 6: a heap with a block in it is destroyed\n");
	heap = HeapCreate(0, 0, 0);
	take(64007);
	HeapDestroy(heap);
	messages("destroy", NULL, 0);
	printf("phase 7: virtual memory: 1 MiB reserved, half of it committed, a part given up\n");
	pages = VirtualAlloc(NULL, 1 << 20, MEM_RESERVE, PAGE_READWRITE);
	messages("reserve", pages, 1 << 20);
	VirtualAlloc(pages, 1 << 19, MEM_COMMIT, PAGE_READWRITE);
	messages("commit", pages, 1 << 19);
	VirtualFree(pages, 1 << 16, MEM_DECOMMIT);
	messages("decommit", pages, 1 << 16);
	printf("left: 1009 + 2003 + 4001 + 500009 bytes in 4, 50 of 48, 1 of 2097152; 458752 of "
	       "pages\n");
	return 0;
}
