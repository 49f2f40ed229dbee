/* Tests of snapshot/capture/heap_space.c: unused ranges, blocks by kind of container, and almost
 * unused containers. The truth comes from a map with one entry per byte. */
#include "tests/unit/fake_target.h"
#include "tests/unit/t.h"

#include "snapshot/capture/capture_parts.h"

#define BASE 0x100000u
#define SPACE 0x10000u
#define PAGE 4096u
#define NOTHING UINT32_MAX

static struct raw_capture captured;
static struct snapshot snapshot;

static int begin(void **state)
{
	const struct heap heap = {.addr = BASE, .bits = 64, .kind = "segment"};

	(void)state;
	captured = (struct raw_capture){0};
	fake.range_count = 0;
	walk_init(&captured.walk);
	snapshot_init(&snapshot);
	return walk_add_heap(&captured.walk, &heap);
}

static int end(void **state)
{
	(void)state;
	walk_release(&captured.walk);
	snapshot_release(&snapshot);
	while (fake.range_count)
		free(fake.ranges[--fake.range_count].bytes);
	return 0;
}

#undef TEST_AROUND
#define TEST_AROUND begin, end

static void contain(uint64_t at, uint64_t bytes, enum container_kind kind, bool is_sparse)
{
	assert_int_equal(walk_add_container(&captured.walk, BASE + at, bytes, kind), 0);
	captured.walk.containers[captured.walk.container_count - 1].is_sparse = is_sparse;
}

static void block(uint64_t at, uint64_t requested, uint64_t overhead)
{
	assert_int_equal(walk_add_block(&captured.walk, BASE + at, requested, overhead, 0), 0);
}

static const struct heap_space *measure(void)
{
	static const struct target_ops ops = {.region = fake_region};
	struct target target = {.ops = &ops};

	heap_space_capture(&target, &captured, &snapshot);
	return &captured.walk.heaps[0].space;
}

/* ---------------------------------------------------------------- single cases */

TEST(heap_without_containers_has_no_numbers)
{
	block(0, 16, 8);
	assert_false(measure()->is_known);
	assert_int_equal(snapshot.container_count, 0);
}

TEST(empty_container_is_one_unused_range_and_is_not_listed)
{
	contain(0, 0x8000, CONTAINER_SEGMENT, false);
	assert_true(measure()->is_known);
	assert_int_equal(captured.walk.heaps[0].space.free_run_bytes, 0x8000);
	assert_true(snapshot.has_containers);
	assert_int_equal(snapshot.container_count, 0);
}

TEST(containers_of_impossible_sizes_are_ignored)
{
	contain(0, 0, CONTAINER_SEGMENT, false);
	contain(0, UINT64_MAX, CONTAINER_SEGMENT, false);
	assert_int_equal(
		walk_add_container(&captured.walk, UINT64_MAX - 5, 0x1000, CONTAINER_LFH), 0);
	block(0, 16, 8);
	assert_false(measure()->is_known);
}

TEST(overlapping_containers_make_numbers_of_heap_unknown)
{
	contain(0, 0x4000, CONTAINER_SEGMENT, false);
	contain(0x2000, 0x4000, CONTAINER_SEGMENT, false);
	block(0, 16, 8);
	assert_false(measure()->is_known);
	assert_int_equal(snapshot.container_count, 0);
}

TEST(containers_nested_too_deeply_make_numbers_unknown)
{
	for (unsigned i = 0; i < 10; i++)
		contain(i, 0x4000 - i, CONTAINER_LFH, false);
	block(5, 16, 8);
	assert_false(measure()->is_known);
}

TEST(partly_walked_heap_has_no_numbers)
{
	contain(0, 0x4000, CONTAINER_SEGMENT, false);
	block(0, 16, 8);
	captured.walk.heaps[0].is_partial = true;
	assert_false(measure()->is_known);
	assert_int_equal(snapshot.container_count, 0);
}

TEST(sample_lists_no_containers)
{
	contain(0, 0x4000, CONTAINER_SEGMENT, false);
	block(0, 16, 8);
	captured.source.sample_bytes = 512;
	assert_true(measure()->is_known);
	assert_false(snapshot.has_containers);
}

/* 0x4000 / 8 = 0x800 bytes are the limit. */
TEST(container_is_listed_up_to_eighth_of_its_bytes)
{
	contain(0, 0x4000, CONTAINER_SEGMENT, false);
	contain(0x4000, 0x4000, CONTAINER_SEGMENT, false);
	block(0, 0x7f0, 0x10);
	block(0x4000, 0x7f0, 0x11);
	measure();
	assert_int_equal(snapshot.container_count, 1);
	assert_int_equal(snapshot.containers[0].addr, BASE);
	assert_int_equal(snapshot.containers[0].blocks.block_count, 1);
	assert_int_equal(snapshot.containers[0].blocks.requested_bytes, 0x7f0);
	assert_int_equal(snapshot.containers[0].blocks.overhead_bytes, 0x10);
}

TEST(container_of_single_page_is_not_listed)
{
	contain(0, PAGE, CONTAINER_LFH, false);
	block(0, 16, 8);
	measure();
	assert_int_equal(snapshot.container_count, 0);
}

TEST(only_outermost_container_is_listed)
{
	contain(0, 0x8000, CONTAINER_SEGMENT, false);
	contain(0x1000, 0x4000, CONTAINER_LFH, false);
	block(0x2000, 16, 8);
	measure();
	assert_int_equal(snapshot.container_count, 1);
	assert_int_equal(snapshot.containers[0].kind, CONTAINER_SEGMENT);
	assert_int_equal(captured.walk.heaps[0].space.lfh.block_count, 1);
}

TEST(only_committed_pages_of_sparse_container_count)
{
	fake_map(BASE, PAGE);
	fake_map(BASE + 3 * PAGE, 2 * PAGE);
	contain(0, 16 * PAGE, CONTAINER_VS, true);
	block(3 * PAGE + 0x100, 16, 8);
	assert_int_equal(measure()->free_run_bytes, 2 * PAGE - 0x118);
	assert_int_equal(snapshot.container_count, 1);
	assert_int_equal(snapshot.containers[0].bytes, 16 * PAGE);
	assert_int_equal(snapshot.containers[0].committed_bytes, 3 * PAGE);
}

TEST(largest_containers_are_listed_and_others_counted)
{
	for (uint64_t i = 0; i < 5000; i++) {
		contain(i * 0x8000, i < 4096 ? 0x3000 : 0x4000, CONTAINER_SEGMENT, false);
		block(i * 0x8000, 16, 8);
	}
	measure();
	assert_int_equal(snapshot.container_count, 4096);
	assert_int_equal(snapshot.container_left_count, 5000 - 4096);
	assert_int_equal(snapshot.containers[0].addr, BASE + 4096 * 0x8000u);
	assert_int_equal(snapshot.containers[903].committed_bytes, 0x4000);
	assert_int_equal(snapshot.containers[904].addr, BASE);
}

/* ---------------------------------------------------------------- random heaps */

static uint32_t inner_of[SPACE]; /* innermost container of each byte, or NOTHING */
static uint32_t start_of[SPACE]; /* start of each byte's block, or NOTHING */

/* Fills [from, end) of the map with nested containers. */
static void make_containers(uint64_t *seed, uint64_t from, uint64_t end, unsigned depth)
{
	while (from < end && captured.walk.container_count < 200) {
		uint64_t bytes = 1 + fake_random(seed) % (end - from);

		if (fake_random(seed) % 2) {
			uint32_t number = (uint32_t)captured.walk.container_count;

			contain(from, bytes, (enum container_kind)(fake_random(seed) % 3),
				fake_random(seed) % 2);
			for (uint64_t i = from; i < from + bytes; i++)
				inner_of[i] = number;
			if (depth < 3)
				make_containers(seed, from, from + bytes, depth + 1);
		}
		from += bytes;
	}
}

static void make_blocks(uint64_t *seed)
{
	for (uint64_t at = fake_random(seed) % 64; at < SPACE - 200;) {
		uint64_t requested = 1 + fake_random(seed) % 100, overhead = fake_random(seed) % 20;

		block(at, requested, overhead);
		for (uint64_t i = at; i < at + requested + overhead; i++)
			start_of[i] = (uint32_t)at;
		at += requested + overhead + fake_random(seed) % (fake_random(seed) % 2000 + 1);
	}
}

/* Exchanges some blocks: none, a few, or all. */
static void shuffle(uint64_t *seed)
{
	struct walk *walk = &captured.walk;
	uint64_t kind = fake_random(seed) % 3;

	for (size_t i = walk->block_count; i > 1; i--) {
		size_t other = fake_random(seed) % i;
		struct block moved = walk->blocks[other];

		if (!kind || (kind == 1 && fake_random(seed) % 16))
			continue;
		walk->blocks[other] = walk->blocks[i - 1];
		walk->blocks[i - 1] = moved;
	}
}

static bool is_committed(uint64_t at)
{
	return at / PAGE % 3 != 1;
}

/* Returns the longest run of committed bytes that belong to one container and to no block that
 * begins in it. */
static uint64_t longest_run(void)
{
	uint64_t longest = 0, run = 0;

	for (uint64_t i = 0; i < SPACE; i++) {
		const uint32_t inner = inner_of[i];
		const bool is_used = start_of[i] != NOTHING && inner_of[start_of[i]] == inner;
		const bool is_unused =
			inner != NOTHING && !is_used &&
			(!captured.walk.containers[inner].is_sparse || is_committed(i));

		run = !is_unused ? 0 : i && inner_of[i - 1] == inner ? run + 1 : 1;
		longest = run > longest ? run : longest;
	}
	return longest;
}

static struct block_totals totals_in(enum container_kind kind)
{
	struct block_totals totals = {0};

	for (size_t i = 0; i < captured.walk.block_count; i++) {
		const struct block *now = &captured.walk.blocks[i];
		const uint32_t inner = inner_of[now->addr - BASE];

		if (inner != NOTHING && captured.walk.containers[inner].kind == kind)
			block_totals_add(&totals, &(struct block_totals){1, now->requested_bytes,
							  now->overhead_bytes});
	}
	return totals;
}

TEST(random_heaps_agree_with_map_of_bytes)
{
	for (uint64_t round = 1; round <= 300; round++) {
		uint64_t seed = round * 0x9e3779b97f4a7c15u;
		const struct heap_space *space;
		struct block_totals lfh, vs;

		end(NULL);
		begin(NULL);
		memset(inner_of, 0xff, sizeof(inner_of));
		memset(start_of, 0xff, sizeof(start_of));
		for (uint64_t at = 0; at < SPACE; at += PAGE)
			if (is_committed(at))
				fake_map(BASE + at, PAGE);
		make_containers(&seed, 0, SPACE, 1);
		make_blocks(&seed);
		shuffle(&seed);
		lfh = totals_in(CONTAINER_LFH);
		vs = totals_in(CONTAINER_VS);
		space = measure();
		assert_int_equal(space->is_known, captured.walk.container_count > 0);
		assert_int_equal(space->free_run_bytes, longest_run());
		assert_memory_equal(&space->lfh, &lfh, sizeof(lfh));
		assert_memory_equal(&space->vs, &vs, sizeof(vs));
	}
}
