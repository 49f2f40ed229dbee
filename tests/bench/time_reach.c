/* time_reach BLOCKS BYTES LINKS: measures the search for lost blocks. There are BLOCKS blocks of
 * BYTES bytes each, half of them in order of address. Each contains LINKS pointers to other blocks
 * on average, and one block in ten is lost. The memory is built before the clock starts. Prints
 * seconds, bytes of working memory per block, and how many lost blocks were found. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "snapshot/reach/reach.h"

#define AT UINT64_C(0x1f200000000)

static uint64_t seed = 88172645463325252;

static uint64_t next(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

static long peak_kib(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

int main(int argc, char **argv)
{
	const size_t count = argc > 3 ? strtoul(argv[1], NULL, 10) : 0,
		     bytes = argc > 3 ? strtoul(argv[2], NULL, 10) & ~(size_t)15 : 0;
	const double links = argc > 3 ? strtod(argv[3], NULL) : 0;
	const size_t step = bytes + 16, words = bytes / 8;
	uint64_t *memory, *root;
	size_t lost = 0;
	struct reach *reach;
	struct err err;
	int64_t start;
	long before;

	if (!count || !words) {
		fprintf(stderr, "usage: time_reach BLOCKS BYTES LINKS\n");
		return 2;
	}
	memory = xcalloc(count + 1, step);
	root = xcalloc(count, sizeof(*root));
	/* A block points only to later blocks. The roots are the first tenth of all reachable
	 * blocks. */
	for (size_t i = 0; i < count; i++) {
		uint64_t *block = memory + i * step / 8;

		root[i] = i % 10 ? AT + i * step : 0;
		for (double left = links; left * 1000 > next() % 1000; left--) {
			size_t to = next() % count;

			if (i % 10 == 0 || to % 10)
				block[next() % words] = AT + to * step;
		}
	}
	before = peak_kib();
	start = os_clock_ms();
	reach = reach_new(64, true, count);
	for (size_t i = 0; i < count; i++)
		reach_add(reach, AT + i * step, bytes);
	reach_ready(reach);
	printf("%.2f s ready, ", (double)(os_clock_ms() - start) / 1000);
	reach_show(reach, 0x10000, (unsigned char *)root, count * sizeof(*root), true);
	reach_show(reach, AT, (unsigned char *)memory, count * step, false);
	printf("%.2f s shown, ", (double)(os_clock_ms() - start) / 1000);
	if (reach_resolve(reach, "made", &err))
		exit(1);
	printf("%.2f s, %.1f bytes a block, ", (double)(os_clock_ms() - start) / 1000,
		1024.0 * (double)(peak_kib() - before) / (double)count);
	for (size_t i = 0; i < count; i++)
		lost += reach_of(reach, i).reach >= BLOCK_LOST;
	printf("%zu lost of %zu\n", lost, count);
	reach_free(reach);
	free(memory);
	free(root);
	return lost != (count + 9) / 10;
}
