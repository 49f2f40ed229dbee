/* Blocks to which no whole word points. 32-bit words hold 50 blocks of 1,000 bytes. Words with a
 * tag above the address hold 20 blocks of 2,000 bytes. 3 blocks of 3,000 bytes are lost. The thread
 * that allocated all of them overwrites its stack, which Wine keeps after the thread has ended, so no
 * stack contains old copies of their addresses. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <windows.h>

#define TAG (UINT64_C(0xfffa) << 48)

static uint32_t halves[50];
static uint64_t tagged[20];
static volatile uintptr_t hidden[3];

static __attribute__((noinline)) void overwrite_stack(void)
{
	volatile char room[16384];

	for (size_t i = 0; i < sizeof(room); i++)
		room[i] = 0;
}

static DWORD WINAPI make_all(void *unused)
{
	(void)unused;
	for (size_t i = 0; i < 50; i++)
		halves[i] = (uint32_t)(uintptr_t)malloc(1000);
	for (size_t i = 0; i < 20; i++)
		tagged[i] = (uintptr_t)malloc(2000) | TAG;
	for (size_t i = 0; i < 3; i++)
		hidden[i] = (uintptr_t)malloc(3000) ^ (uintptr_t)0x5555aaaa5555aaaa;
	overwrite_stack();
	return 0;
}

int main(void)
{
	HANDLE thread = CreateThread(NULL, 0, make_all, NULL, 0, NULL);

	WaitForSingleObject(thread, INFINITE);
	CloseHandle(thread);
	printf("%p %p %p\n", (void *)halves, (void *)tagged, (void *)hidden);
	return 0;
}
