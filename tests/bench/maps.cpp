/*
 * maps [INSERTIONS [oldest]]: a C++ program of maps and strings, to measure the cost of recording
 * it. INSERTIONS times (1000000) it inserts a vector, made by push_back, into one of three maps of
 * strings, and after each third insertion it erases a key. The keys, the sizes and their order are
 * the same in each run and on each system. The maps' final contents are not freed.
 *
 * Keys are random, so an insertion may replace an older one, and the erased block, if the key
 * exists, is of any age. The block is unpredictable, so a recording needs bits for it, the
 * logarithm of the number of blocks. With "oldest" keys are new and the oldest is erased, like in a
 * cache: a recording needs little more than the sizes.
 *
 * Prints "allocations N bytes N frees N bytes N", counted by its own operator new and delete: each
 * is one malloc or free of that size.
 */
#include <map>
#include <new>
#include <string>
#include <utility>
#include <vector>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))
#define KEYS 200000
#define HEAD_BYTES 16 /* keeps blocks aligned */

struct table {
	const char *name;
	std::map<std::string, std::vector<uint32_t>> *map;
	uint32_t newest, oldest;
};

static bool is_oldest;
static uint64_t allocations, frees, bytes_allocated, bytes_freed;
static uint64_t seed = 1;

/* Stores the size before each block, because not every delete passes it. */
void *operator new(size_t bytes)
{
	char *block = (char *)malloc(HEAD_BYTES + bytes);

	if (!block)
		abort();
	*(size_t *)block = HEAD_BYTES + bytes;
	allocations++;
	bytes_allocated += HEAD_BYTES + bytes;
	return block + HEAD_BYTES;
}

void operator delete(void *block) noexcept
{
	char *start = (char *)block - HEAD_BYTES;

	if (!block)
		return;
	frees++;
	bytes_freed += *(size_t *)start;
	free(start);
}

void operator delete(void *block, size_t) noexcept
{
	operator delete(block);
}

static uint32_t next_random(uint32_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % below;
}

/* Returns a key. Some are too long for the string object itself, some are not. */
static NOINLINE std::string key_of(const struct table *table, uint32_t number)
{
	return std::string(table->name) + std::to_string(number);
}

static NOINLINE void insert(struct table *table)
{
	std::string key = key_of(table, is_oldest ? table->newest++ : next_random(KEYS));
	std::vector<uint32_t> values;

	for (uint32_t i = 1 + next_random(8); i; i--)
		values.push_back(i);
	(*table->map)[std::move(key)] = std::move(values);
}

static NOINLINE void erase(struct table *table)
{
	table->map->erase(key_of(table, is_oldest ? table->oldest++ : next_random(KEYS)));
}

static NOINLINE void change_orders(struct table *table, bool also_erases)
{
	insert(table);
	if (also_erases)
		erase(table);
}

static NOINLINE void change_customers(struct table *table, bool also_erases)
{
	insert(table);
	if (also_erases)
		erase(table);
}

static NOINLINE void change_addresses(struct table *table, bool also_erases)
{
	insert(table);
	if (also_erases)
		erase(table);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*change)(struct table *table, bool also_erases);
	} kinds[] = {
		{"order ", change_orders},
		{"customer number ", change_customers},
		{"the address of customer number ", change_addresses},
	};
	unsigned long insertions = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
	static struct table tables[3];

	is_oldest = argc > 2 && !strcmp(argv[2], "oldest");
	for (int i = 0; i < 3; i++) {
		tables[i].name = kinds[i].name;
		tables[i].map = new std::map<std::string, std::vector<uint32_t>>;
	}
	for (unsigned long i = 0; i < insertions; i++) {
		uint32_t kind = next_random(3);

		kinds[kind].change(&tables[kind], i % 3 == 2);
	}
	printf("allocations %.0f bytes %.0f frees %.0f bytes %.0f\n", (double)allocations,
		(double)bytes_allocated, (double)frees, (double)bytes_freed);
	fflush(stdout);
	return 0;
}
