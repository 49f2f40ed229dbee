/* early: allocates three blocks of 12345 bytes when the loader starts the program, before its first
 * instruction. After step 1 it frees one of them and moves another to 54321 bytes; then comes step
 * 2. */
#include "samples/step.h"

#define BYTES 12345
#define BYTES_LARGER 54321

static void *blocks[3];

static NTAPI void on_load(PVOID image, DWORD reason, PVOID reserved)
{
	(void)image;
	(void)reserved;
	for (unsigned i = 0; reason == DLL_PROCESS_ATTACH && i < 3; i++)
		blocks[i] = HeapAlloc(GetProcessHeap(), 0, BYTES);
}

/* A TLS callback: "PE Format", Microsoft Learn. mingw's C runtime contains the directory that lists
 * this section. */
__attribute__((section(".CRT$XLD"), used)) static const PIMAGE_TLS_CALLBACK callback = on_load;

static NOINLINE void move(void)
{
	blocks[1] = step_leak(HeapReAlloc(GetProcessHeap(), 0, blocks[1], BYTES_LARGER));
}

int main(void)
{
	unsigned long step = 1;

	while (step_done(step)) {
		if (step++ == 1) {
			HeapFree(GetProcessHeap(), 0, blocks[0]);
			move();
		}
	}
	return 0;
}
