/* Blocks with known content. The program prints "block SIZE ADDRESS" for each block, then "ready
 * PID". It ends when it reads a line. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>

#define NOINLINE __attribute__((noinline))

struct object {
	/* Points 16 bytes past session_methods, like a pointer to a virtual table in C++. */
	const void *methods;
	const char *middle; /* points into the block of text */
	void (*code)(void);
	uint64_t number;
	char name[16];
};

static NOINLINE void on_close(void)
{
	puts("closed");
}

void (*const session_methods[8])(void) = {on_close, on_close, on_close, on_close};

static char *volatile text;
static struct object *volatile object;
static void *volatile zeros[10];

static void *make(size_t bytes)
{
	void *block = HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, bytes);

	if (!block)
		ExitProcess(3);
	printf("block %u %llX\n", (unsigned)bytes, (unsigned long long)(uintptr_t)block);
	return block;
}

static NOINLINE void make_text(void)
{
	text = make(2001);
	memcpy(text,
		"user=alice; path=/login; a long line of text that goes on for more than is taken "
		"of a block",
		91);
}

static NOINLINE void make_object(void)
{
	object = make(sizeof(*object) + 2000);
	object->methods = &session_methods[2];
	object->middle = text + 5;
	object->code = on_close;
	object->number = 0x1122334455667788;
	memcpy(object->name, "session 17", 10);
}

static NOINLINE void make_zeros(void)
{
	for (unsigned i = 0; i < 10; i++)
		zeros[i] = make(2100 + i);
}

int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	make_text();
	make_object();
	make_zeros();
	printf("ready %lu\n", GetCurrentProcessId());
	return getchar() == EOF;
}
