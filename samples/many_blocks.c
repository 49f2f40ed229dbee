/*
 * many_blocks N MORE: makes N blocks (default 1000) in step 1, MORE (default 0) in each later step,
 * and keeps them. For measurements.
 *
 * Block i (from 0) has 16 + i % 97 bytes and is allocated by call chain c = i % 1000. A chain has
 * ten functions, one for each binary digit of c: left() for 0, right() for 1. main() calls the
 * function of the lowest digit; the function of the highest digit calls make_block(). So there are
 * 1000 stacks (or N if N is smaller).
 *
 * truth: nothing
 */
#include <stdlib.h>

#include "samples/step.h"

#define CHAINS 1000
#define DIGITS 10

static NOINLINE void *right(unsigned path, unsigned digits, size_t bytes);

static NOINLINE void *make_block(size_t bytes)
{
	char *block = step_leak(malloc(bytes));

	block[0] = 'x';
	return block;
}

static NOINLINE void *left(unsigned path, unsigned digits, size_t bytes)
{
	if (!digits)
		return make_block(bytes);
	return path & 1 ? right(path >> 1, digits - 1, bytes) : left(path >> 1, digits - 1, bytes);
}

static NOINLINE void *right(unsigned path, unsigned digits, size_t bytes)
{
	if (!digits)
		return make_block(bytes);
	return path & 1 ? right(path >> 1, digits - 1, bytes) : left(path >> 1, digits - 1, bytes);
}

int main(int argc, char **argv)
{
	unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000, step = 0;
	unsigned long more = argc > 2 ? strtoul(argv[2], NULL, 10) : 0, i = 0;

	do {
		for (; i < count; i++) {
			unsigned path = (unsigned)(i % CHAINS);

			if (path & 1)
				right(path >> 1, DIGITS - 1, 16 + i % 97);
			else
				left(path >> 1, DIGITS - 1, 16 + i % 97);
		}
		count += more;
	} while (step_done(++step));
	return 0;
}
