/* Loses blocks after freeing many other blocks, so that addresses of lost blocks remain in memory
 * that was not overwritten. Blocks of odd sizes are lost; a table holds the blocks of even sizes.
 * The argument selects how much of a block is written: "all" of it, or only the first "word", so
 * that the rest keeps its old contents. Then the program prints "ready PID", and ends when it reads
 * a line. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>

#define NOINLINE __attribute__((noinline))
#define SLOTS 20000
#define ROUNDS 200000
#define LOST 1000

static void **table[SLOTS];
static uint64_t seed = 19;

static unsigned next(unsigned below)
{
	seed = seed * 6364136223846793005 + 1442695040888963407;
	return (unsigned)((seed >> 33) % below);
}

static void **make(size_t bytes, int is_written)
{
	void **block = malloc(bytes);

	if (!block)
		ExitProcess(3);
	memset(block, 0x11, is_written ? bytes : sizeof(*block));
	return block;
}

static NOINLINE void come_and_go(unsigned rounds, int is_written)
{
	while (rounds--) {
		unsigned slot = next(SLOTS);

		free(table[slot]);
		table[slot] = make(16 + 2 * next(500), is_written);
	}
}

static NOINLINE void lose(int is_written)
{
	for (unsigned i = 0; i < LOST; i++) {
		unsigned slot = next(SLOTS);

		free(table[slot]);
		table[slot] = make(17 + 2 * next(500), is_written);
		table[slot] = NULL;
	}
	come_and_go(ROUNDS / 2, is_written);
}

int main(int argc, char **argv)
{
	int is_written = argc > 1 && !strcmp(argv[1], "all");

	setvbuf(stdout, NULL, _IONBF, 0);
	come_and_go(ROUNDS, is_written);
	lose(is_written);
	printf("ready %lu\n", GetCurrentProcessId());
	return getchar() == EOF;
}
