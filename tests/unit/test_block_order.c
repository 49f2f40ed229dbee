#include "tests/unit/t.h"

#include "core/dump/model.h"

static uint64_t random_below(uint64_t *seed, uint64_t limit)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed % limit;
}

static struct snapshot snapshot;

static void add(uint32_t heap, uint64_t addr)
{
	struct block *block = snapshot_add_block(&snapshot);

	block->heap = heap;
	block->addr = addr;
	/* Distinguishes blocks at the same address. */
	block->requested_bytes = snapshot.block_count;
}

/* Checks that each block is present once, that blocks are sorted by heap and address, and that
 * blocks at the same address keep their order. */
static void check(void)
{
	unsigned char *seen = calloc(snapshot.block_count, 1);
	const struct block *last = NULL;
	struct block_span *runs;
	size_t run_count, count = 0;

	assert_non_null(seen);
	assert_int_equal(block_order(&snapshot, &runs, &run_count), 0);
	for (size_t run = 0; run < run_count; run++) {
		assert_true(runs[run].first < runs[run].end);
		assert_true(runs[run].end <= snapshot.block_count);
		for (size_t i = runs[run].first; i < runs[run].end; i++) {
			const struct block *block = &snapshot.blocks[i];

			assert_false(seen[i]++);
			count++;
			assert_int_equal(block->heap, snapshot.blocks[runs[run].first].heap);
			if (last && last->heap == block->heap) {
				assert_true(last->addr <= block->addr);
				assert_true(last->addr < block->addr || last < block);
			} else if (last) {
				assert_true(last->heap < block->heap);
			}
			last = block;
		}
	}
	assert_int_equal(count, snapshot.block_count);
	free(seen);
	free(runs);
	snapshot_release(&snapshot);
}

TEST(block_has_24_bytes)
{
	assert_int_equal(sizeof(struct block), 24);
}

TEST(blocks_in_order_are_one_run_for_each_heap)
{
	struct block_span *runs;
	size_t count;

	snapshot_init(&snapshot);
	assert_int_equal(block_order(&snapshot, &runs, &count), 0);
	assert_int_equal(count, 0);
	free(runs);
	for (uint64_t i = 0; i < 1000; i++)
		add((uint32_t)i / 100, i / 3);
	assert_int_equal(block_order(&snapshot, &runs, &count), 0);
	assert_int_equal(count, 10);
	free(runs);
	check();
}

TEST(any_order_becomes_that_of_dump)
{
	uint64_t seed = 4711;

	for (size_t count = 2; count < 3000; count += count / 3 + 1) {
		snapshot_init(&snapshot);
		for (size_t i = 0; i < count; i++)
			add((uint32_t)random_below(&seed, 3), random_below(&seed, count));
		add(0, 0);
		check();
	}
}

TEST(runs_in_order_and_falling_order_are_merged)
{
	snapshot_init(&snapshot);
	for (uint64_t i = 0; i < 5000; i++)
		add(0, (i * 7 % 10) * 1000 + i / 10);
	check();
	snapshot_init(&snapshot);
	for (uint64_t i = 0; i < 5000; i++)
		add(0, 5000 - i);
	check();
	snapshot_init(&snapshot);
	for (uint64_t run = 0; run < 7; run++) {
		for (uint64_t i = 0; i < 500; i++)
			add(0, i * 7 + run);
	}
	check();
}
