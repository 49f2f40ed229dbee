/* At each step, commits and uses 16 MiB more memory, so that the number of its private bytes is
 * known. */
#include <stdlib.h>

#include "samples/step.h"

#define GROWTH_BYTES ((size_t)16 << 20)

int main(void)
{
	unsigned long step = 0;

	do {
		unsigned char *block = step_leak(malloc(GROWTH_BYTES));

		for (size_t i = 0; i < GROWTH_BYTES; i++)
			block[i] = (unsigned char)i;
	} while (step_done(++step));
	return 0;
}
