/*
 * Blocks of several kinds, without any source of stacks. Step 2 adds what the lines below state;
 * step 3 adds nothing.
 *
 * blocks: 64 bytes, first word = address of session_table: 500
 * blocks: 4096 bytes, zeros: 300
 * blocks: 40 bytes, text "GET /in": 200
 * blocks: 48 bytes, UTF-16 text "queue-n": 100
 * blocks: 16384 to 32767 bytes, zeros: 80, of 80 different sizes from 20000 bytes
 */
#include "samples/step.h"

/* Like the table of a class's virtual functions. Not static, so it has a name. */
const void *session_table[4] = {session_table, session_table, session_table, session_table};

static void add(SIZE_T bytes, const void *start, SIZE_T start_bytes)
{
	char *block = HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, bytes);

	step_leak(block);
	for (SIZE_T i = 0; i < start_bytes; i++)
		block[i] = ((const char *)start)[i];
}

int main(void)
{
	static const char text[] = "GET /index.html";
	static const WCHAR wide[] = L"queue-name";
	const void *table = session_table;

	for (unsigned long step = 1;; step++) {
		for (int i = 0; step == 2 && i < 500; i++)
			add(64, &table, sizeof(table));
		for (int i = 0; step == 2 && i < 300; i++)
			add(4096, NULL, 0);
		for (int i = 0; step == 2 && i < 200; i++)
			add(40, text, sizeof(text));
		for (int i = 0; step == 2 && i < 100; i++)
			add(48, wide, sizeof(wide));
		for (int i = 0; step == 2 && i < 80; i++)
			add(20000 + 100 * (SIZE_T)i, NULL, 0);
		if (!step_done(step))
			return 0;
	}
}
