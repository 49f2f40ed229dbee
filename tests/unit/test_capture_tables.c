/* Blocks from the tracer's tables, combined with an earlier walk of the heaps. Tests which blocks
 * result, and when the tables alone are insufficient. */
#include "tests/unit/t.h"

#include <string.h>

#include "snapshot/capture/capture_parts.h"

#define HEAP_A UINT64_C(0x10000)
#define HEAP_B UINT64_C(0x20000)
#define TAG_A 7u
#define TAG_B 9u

static struct raw_capture captured;
static struct tracer_block blocks[16];

static void traced(uint64_t addr, unsigned tag, uint64_t bytes)
{
	blocks[captured.tracer.block_count++] = tracer_block_make(addr, tag, 0, bytes);
}

static void walked(uint64_t heap, uint64_t addr, uint64_t bytes, uint64_t overhead)
{
	struct walk *walk = &captured.walk;

	if (!walk->heap_count || walk->heaps[walk->heap_count - 1].addr != heap)
		assert_int_equal(walk_add_heap(walk, &(struct heap){.addr = heap, .bits = 64}), 0);
	assert_int_equal(walk_add_block(walk, addr, bytes, overhead, 0), 0);
}

static int set_up(void **state)
{
	(void)state;
	memset(&captured, 0, sizeof(captured));
	walk_init(&captured.walk);
	tracer_copy_init(&captured.tracer);
	captured.tracer.blocks = blocks;
	captured.tracer.area.flags = TRACER_FLAG_LISTED;
	captured.tracer.area.pointer_bytes = 8;
	captured.tracer.area.heaps[TAG_A] = HEAP_A | 1;
	captured.tracer.area.heaps[TAG_B] = HEAP_B | 1;
	walked(HEAP_A, 0x10100, 100, 16);
	walked(HEAP_A, 0x10200, 40, 24);
	walked(HEAP_B, 0x20100, 100, 18);
	traced(0x20100, TAG_B, 100);
	traced(0x10200, TAG_A, 40);
	traced(0x10100, TAG_A, 100);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	captured.tracer.blocks = NULL; /* the test owns the blocks */
	tracer_copy_release(&captured.tracer);
	walk_release(&captured.walk);
	return 0;
}

/* Asserts that exactly one block is at addr, with these values. */
static void assert_given(uint64_t addr, uint64_t heap, uint64_t bytes, uint64_t overhead)
{
	const struct walk *walk = &captured.walk;
	unsigned count = 0;

	for (size_t i = 0; i < walk->block_count; i++) {
		if (walk->blocks[i].addr != addr)
			continue;
		assert_int_equal(walk->heaps[walk->blocks[i].heap].addr, heap);
		assert_int_equal(walk->blocks[i].requested_bytes, bytes);
		assert_int_equal(walk->blocks[i].overhead_bytes, overhead);
		count++;
	}
	assert_int_equal(count, 1);
}

#undef TEST_AROUND
#define TEST_AROUND set_up, tear_down

TEST(where_nothing_changed_walk_holds)
{
	assert_true(tables_have_all(&captured));
	assert_true(tables_add_blocks(&captured));
	assert_int_equal(captured.walk.block_count, 3);
	assert_given(0x10100, HEAP_A, 100, 16);
	assert_given(0x10200, HEAP_A, 40, 24);
	assert_given(0x20100, HEAP_B, 100, 18);
}

TEST(what_was_freed_since_is_gone)
{
	walked(HEAP_B, 0x20300, 7, 16);
	/* A block found twice because the heap changed during the walk. */
	walked(HEAP_B, 0x20100, 100, 18);
	assert_true(tables_add_blocks(&captured));
	assert_int_equal(captured.walk.block_count, 3);
	assert_given(0x20100, HEAP_B, 100, 18);
}

TEST(what_came_since_has_overhead_of_its_like_in_its_heap)
{
	walked(HEAP_B, 0x20300, 55, 33); /* freed since the walk */
	traced(0x10300, TAG_A, 100);
	traced(0x20200, TAG_B, 100);
	traced(0x20400, TAG_B, 55);
	assert_true(tables_add_blocks(&captured));
	assert_int_equal(captured.walk.block_count, 6);
	assert_given(0x10300, HEAP_A, 100, 16);
	assert_given(0x20200, HEAP_B, 100, 18);
	assert_given(0x20400, HEAP_B, 55, 33);
}

TEST(block_that_walk_should_have_found_needs_walk_while_it_is_held)
{
	traced(0x10300, TAG_A | 1u << TRACER_HEAPS_LOG2, 100); /* allocated before the walk */
	assert_false(tables_add_blocks(&captured));
}

TEST(block_without_its_like_needs_walk_while_it_is_held)
{
	walked(HEAP_B, 0x20300, 55, 33);
	traced(0x10400, TAG_A, 55); /* the walk found no block of this size in this heap */
	assert_false(tables_add_blocks(&captured));
}

TEST(another_block_in_same_place_is_another_block)
{
	captured.tracer.block_count = 0;
	traced(0x10100, TAG_A, 40); /* freed and allocated again */
	traced(0x20100, TAG_A, 100); /* freed and allocated again in another heap */
	assert_true(tables_add_blocks(&captured));
	assert_int_equal(captured.walk.block_count, 2);
	assert_given(0x10100, HEAP_A, 40, 24);
	assert_given(0x20100, HEAP_A, 100, 16);
}

TEST(process_without_blocks_has_none)
{
	captured.tracer.block_count = 0;
	assert_true(tables_have_all(&captured));
	assert_true(tables_add_blocks(&captured));
	assert_int_equal(captured.walk.block_count, 0);
}

TEST(tables_that_lack_something_are_not_enough)
{
	struct tracer_area *area = &captured.tracer.area;

	area->flags = TRACER_FLAG_ATTACHED;
	assert_false(tables_have_all(&captured));
	area->flags = TRACER_FLAG_LISTED;
	area->dropped_blocks = 1;
	assert_false(tables_have_all(&captured));
	area->dropped_blocks = 0;
	area->shards[5].reallocating = 1;
	assert_false(tables_have_all(&captured));
	area->shards[5].reallocating = 0;
	area->sample_bytes = 512;
	assert_false(tables_have_all(&captured));
	area->sample_bytes = 0;
	captured.tracer.broken_shards = 1;
	assert_false(tables_have_all(&captured));
	captured.tracer.broken_shards = 0;
	assert_true(tables_have_all(&captured));
	traced(0x30000, TAG_A, TRACER_SIZE_MAX); /* the real size is at least this value */
	assert_false(tables_have_all(&captured));
	captured.tracer.block_count--;
	blocks[captured.tracer.block_count++] = tracer_block_make(0x30000, 0, 0, 8);
	assert_false(tables_have_all(&captured));
}

TEST(other_heaps_than_were_walked_are_not_enough)
{
	uint64_t *heaps = captured.tracer.area.heaps;

	heaps[TAG_B] = HEAP_B | TRACER_HEAP_DEAD;
	assert_false(tables_have_all(&captured));
	heaps[TAG_B] = HEAP_B | 1 | TRACER_HEAP_LEAVING;
	assert_false(tables_have_all(&captured));
	heaps[TAG_B] = HEAP_B | TRACER_HEAP_CLEANING;
	assert_false(tables_have_all(&captured));
	heaps[TAG_B] = HEAP_B | 2;
	assert_true(tables_have_all(&captured));
	heaps[4095] = UINT64_C(0x50000) | 1; /* a heap created since the walk */
	assert_false(tables_have_all(&captured));
	for (unsigned generation = 0; generation < TRACER_HEAP_GENERATIONS; generation++) {
		heaps[4095] = UINT64_C(0x50000) | TRACER_HEAP_DEAD | generation;
		assert_true(tables_have_all(&captured));
	}
}

TEST(living_heaps_that_were_not_walked_are_added)
{
	uint64_t *heaps = captured.tracer.area.heaps;
	const size_t walked = captured.walk.heap_count;

	for (unsigned generation = 0; generation < TRACER_HEAP_GENERATIONS; generation++) {
		heaps[4000 + generation] =
			(UINT64_C(0x500000) + (generation << 16)) | TRACER_HEAP_DEAD | generation;
		heaps[4050 + generation] = (UINT64_C(0x700000) + (generation << 16)) |
					   TRACER_HEAP_LEAVING | generation;
	}
	captured.source.has_tracer = true;
	assert_int_equal(tables_add_heaps(&captured), 0);
	assert_int_equal(captured.walk.heap_count, walked);
	heaps[4095] = UINT64_C(0x900000) | 3;
	assert_int_equal(tables_add_heaps(&captured), 0);
	assert_int_equal(captured.walk.heap_count, walked + 1);
	assert_int_equal(captured.walk.heaps[walked].addr, 0x900000);
	assert_true(captured.walk.heaps[walked].unwalked);
}

/* A 32-bit process on 64-bit Windows has heaps of both bitnesses, and its tracer sees only one
 * side. */
TEST(blocks_of_other_half_of_process_are_kept)
{
	const struct heap other = {.addr = 0x90000, .bits = 32};

	assert_int_equal(walk_add_heap(&captured.walk, &other), 0);
	assert_int_equal(walk_add_block(&captured.walk, 0x90100, 30, 16, 0), 0);
	tables_compare(&captured);
	assert_int_equal(captured.untraced_count, 0);
	assert_true(tables_have_all(&captured));
	assert_true(tables_add_blocks(&captured));
	assert_int_equal(captured.walk.block_count, 4);
	assert_given(0x90100, 0x90000, 30, 16);
}

TEST(walk_while_it_is_held_is_compared)
{
	tables_compare(&captured);
	assert_int_equal(captured.untraced_count, 0);
	assert_int_equal(captured.unfound_count, 0);
	walked(HEAP_B, 0x20300, 7, 16);
	walked(HEAP_B, 0x20500, 8, 16);
	traced(0x20500, TAG_B, 9);
	traced(0x10700, TAG_A, 5);
	traced(0x10800, TAG_A, 5);
	tables_compare(&captured);
	assert_int_equal(captured.untraced_count, 2);
	assert_int_equal(captured.unfound_count, 3);
	assert_int_equal(captured.walk.block_count, 5);
}

/* ---------------------------------------------------------------- doubtful layouts */

#define JUDGED 200u /* number of the heap's blocks that both the walk and the tracer have */
#define GONE 100u /* number of the tracer's blocks that are not in the heap */

static struct tracer_block judged[JUDGED + GONE];

/* Makes a walk that lacks a third of the tracer's blocks because of its layout. */
static void set_up_judged(void)
{
	captured.tracer.blocks = judged;
	captured.tracer.block_count = 0;
	captured.source.has_tracer = true;
	walk_clear(&captured.walk);
	for (unsigned i = 0; i < JUDGED; i++)
		walked(HEAP_A, HEAP_A + 0x1000 + 64 * i, 40, 24);
	captured.walk.heaps[0].layout = "guessed";
	captured.walk.heaps[0].committed_bytes = 0x100000;
	for (unsigned i = 0; i < JUDGED + GONE; i++)
		judged[captured.tracer.block_count++] =
			tracer_block_make(HEAP_A + 0x1000 + 64 * i, TAG_A, 0, 40);
}

TEST(blocks_that_walk_lacks_contradict_its_layout_since_windows_10)
{
	set_up_judged();
	assert_string_equal(tables_judge(&captured), "guessed");
	assert_int_equal(captured.walk.block_count, 0);
}

TEST(blocks_that_walk_lacks_were_freed_unseen_before_windows_10)
{
	set_up_judged();
	captured.may_free_unseen = true;
	assert_null(tables_judge(&captured));
	assert_int_equal(captured.walk.block_count, JUDGED);
}

TEST(missing_blocks_that_fit_into_no_free_space_contradict_layout)
{
	set_up_judged();
	/* An attached tracer may lack blocks that were allocated earlier. */
	captured.tracer.area.flags = TRACER_FLAG_ATTACHED;
	captured.may_free_unseen = true;
	captured.walk.heaps[0].committed_bytes = JUDGED * 64 + GONE * 40 - 1;
	assert_string_equal(tables_judge(&captured), "guessed");
}

TEST(blocks_of_walk_that_complete_tracer_lacks_contradict_layout)
{
	set_up_judged();
	captured.may_free_unseen = true;
	for (unsigned i = 0; i < JUDGED; i++)
		walked(HEAP_A, HEAP_A + 0x80000 + 64 * i, 40, 24);
	assert_string_equal(tables_judge(&captured), "guessed");
}
