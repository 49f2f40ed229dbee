/* The order of blocks in a dump, against its definition. */
#include "tests/unit/t.h"

#include "core/dump/model.h"

static uint64_t random_below(uint64_t *seed, uint64_t limit)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed % limit;
}

static void add(struct snapshot *snapshot, uint32_t heap, uint64_t addr)
{
	struct block *block = snapshot_add_block(snapshot);

	assert_non_null(block);
	block->heap = heap;
	block->addr = addr;
	block->requested_bytes = snapshot->block_count; /* tells it from others of its place */
}

/* All blocks are there once, by heap and address, and those of one place as they were added. */
static void assert_in_order(const struct snapshot *snapshot, const struct block **order)
{
	unsigned char *seen = calloc(snapshot->block_count, 1);

	assert_non_null(seen);
	for (size_t i = 0; i < snapshot->block_count; i++) {
		size_t at = (size_t)(order[i] - snapshot->blocks);

		assert_true(at < snapshot->block_count && !seen[at]);
		seen[at] = 1;
		if (!i)
			continue;
		assert_true(order[i - 1]->heap <= order[i]->heap);
		if (order[i - 1]->heap != order[i]->heap)
			continue;
		assert_true(order[i - 1]->addr <= order[i]->addr);
		if (order[i - 1]->addr == order[i]->addr)
			assert_true(order[i - 1] < order[i]);
	}
	free(seen);
}

static void check(struct snapshot *snapshot)
{
	const struct block **order;

	assert_int_equal(block_order(snapshot, &order), 0);
	assert_non_null(order);
	assert_in_order(snapshot, order);
	free(order);
	snapshot_release(snapshot);
}

TEST(blocks_in_order_stay_where_they_are)
{
	const struct block **order;
	struct snapshot snapshot;

	snapshot_init(&snapshot);
	assert_int_equal(block_order(&snapshot, &order), 0);
	assert_null(order);
	for (uint64_t i = 0; i < 1000; i++)
		add(&snapshot, (uint32_t)i / 100, i / 3);
	assert_int_equal(block_order(&snapshot, &order), 0);
	assert_null(order);
	snapshot_release(&snapshot);
}

TEST(any_order_becomes_that_of_a_dump)
{
	uint64_t seed = 4711;

	for (size_t count = 2; count < 3000; count += count / 3 + 1) {
		struct snapshot snapshot;

		snapshot_init(&snapshot);
		for (size_t i = 0; i < count; i++)
			add(&snapshot, (uint32_t)random_below(&seed, 3),
				random_below(&seed, count));
		add(&snapshot, 0, 0);
		snapshot.blocks[0].heap = 3; /* at least one has to move */
		check(&snapshot);
	}
}

TEST(runs_in_order_and_a_falling_order_are_merged)
{
	struct snapshot snapshot;

	snapshot_init(&snapshot);
	for (uint64_t i = 0; i < 5000; i++)
		add(&snapshot, 0, (i * 7 % 10) * 1000 + i / 10);
	check(&snapshot);
	snapshot_init(&snapshot);
	for (uint64_t i = 0; i < 5000; i++)
		add(&snapshot, 0, 5000 - i);
	check(&snapshot);
	snapshot_init(&snapshot);
	for (uint64_t run = 0; run < 7; run++) {
		for (uint64_t i = 0; i < 500; i++)
			add(&snapshot, 0, i * 7 + run);
	}
	check(&snapshot);
}
