/* The tracer's blocks by address: in order, none lost, and each found, wherever a process has them. */
#include "tests/unit/t.h"

#include "snapshot/stacks/tracer_parts.h"

#define ADDR_MAX (((uint64_t)1 << TRACER_ADDR_BITS) - 1)
#define COUNT_MAX 70000u

/* Where a process might have its blocks, or say that it has. */
enum scatter {
	DENSE, /* side by side */
	TWO_PLACES, /* far from each other */
	EVERYWHERE,
	ONE_ADDRESS,
	BACKWARDS,
	BITS, /* one bit each */
	SCATTER_COUNT,
};

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 16;
}

static uint64_t address(enum scatter scatter, size_t i, uint64_t *seed)
{
	uint64_t random = next_random(seed);

	switch (scatter) {
	case DENSE: return 0x20000 + random % COUNT_MAX * 16;
	case TWO_PLACES: return (random & 1 ? ADDR_MAX - 0xfffff : 0x10) + random / 2 % 0xffff0;
	case ONE_ADDRESS: return 0x123456780;
	case BACKWARDS: return ADDR_MAX - i * 48;
	case BITS: return (uint64_t)1 << random % TRACER_ADDR_BITS;
	default: return random & ADDR_MAX;
	}
}

/* Each block's what is where it stood. */
static void fill(struct tracer_block *blocks, size_t count, enum scatter scatter)
{
	uint64_t seed = count * 31 + scatter;

	for (size_t i = 0; i < count; i++)
		blocks[i] = (struct tracer_block){
			.key = address(scatter, i, &seed) | (next_random(&seed) & 0xffff)
								    << TRACER_ADDR_BITS,
			.what = i};
}

static void assert_ordered(
	const struct tracer_block *sorted, const struct tracer_block *before, size_t count)
{
	unsigned char *is_there = calloc(count + 1, 1);

	assert_non_null(is_there);
	for (size_t i = 0; i < count; i++) {
		assert_true(sorted[i].what < count && !is_there[sorted[i].what]++);
		assert_int_equal(sorted[i].key, before[sorted[i].what].key);
		if (i)
			assert_true(
				tracer_block_addr(&sorted[i - 1]) <= tracer_block_addr(&sorted[i]));
	}
	free(is_there);
}

static bool has(const struct tracer_block *sorted, size_t count, uint64_t addr)
{
	size_t low = 0;

	for (size_t step = COUNT_MAX; step; step /= 2) {
		while (low + step <= count && tracer_block_addr(&sorted[low + step - 1]) < addr)
			low += step;
	}
	return low < count && tracer_block_addr(&sorted[low]) == addr;
}

static void look_for(const struct tracer_index *index, const struct tracer_block *sorted,
	size_t count, uint64_t addr)
{
	const struct tracer_block *found = tracer_index_find(index, sorted, count, addr);

	assert_int_equal(found != NULL, has(sorted, count, addr));
	if (found)
		assert_int_equal(tracer_block_addr(found), addr);
}

static void assert_found(
	const struct tracer_index *index, const struct tracer_block *sorted, size_t count)
{
	uint64_t seed = 5;

	for (size_t i = 0; i < count; i++) {
		uint64_t addr = tracer_block_addr(&sorted[i]);

		look_for(index, sorted, count, addr);
		look_for(index, sorted, count, addr + 1);
		look_for(index, sorted, count, addr - 1);
		look_for(index, sorted, count, next_random(&seed));
	}
	look_for(index, sorted, count, 0);
	look_for(index, sorted, count, ADDR_MAX);
	look_for(index, sorted, count, UINT64_MAX);
}

TEST(blocks_are_ordered_and_each_is_found)
{
	const size_t counts[] = {0, 1, 2, 63, 64, 65, 66, 1000, COUNT_MAX};
	struct tracer_block *before = malloc(COUNT_MAX * sizeof(*before));
	struct tracer_block *sorted = malloc(COUNT_MAX * sizeof(*sorted));
	const struct tracer_index none = {0};

	assert_true(before && sorted);
	for (size_t k = 0; k < sizeof(counts) / sizeof(*counts); k++) {
		for (int scatter = 0; scatter < SCATTER_COUNT; scatter++) {
			struct tracer_index index;

			fill(before, counts[k], (enum scatter)scatter);
			fill(sorted, counts[k], (enum scatter)scatter);
			tracer_blocks_sort(sorted, counts[k]);
			assert_ordered(sorted, before, counts[k]);
			tracer_index_build(&index, sorted, counts[k]);
			assert_true(index.part_count <= counts[k]);
			assert_found(&index, sorted, counts[k]);
			assert_found(&none, sorted, counts[k]); /* without memory */
			tracer_index_release(&index);
		}
	}
	free(before);
	free(sorted);
}
