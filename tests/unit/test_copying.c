/*
 * Processes that are copied while they are held and walked when they run again: nothing of before or
 * after that moment gets into the snapshot, whatever came, went or grew on the way; and what cannot be
 * copied is walked while it is held.
 */
#include "tests/unit/capture_scene.h"

#include "snapshot/target/target_memory.h"

#define LATE_SUB 0x50000000u
#define LATE_LARGE 0x60000000u

/* ---------------------------------------------------------------- what copying is about */

/* The process runs on, and nothing is where it was. */
static void spoil(struct fake *fake)
{
	for (size_t i = 0; i < fake->range_count; i++) {
		if (fake->ranges[i].needs_hold)
			memset(fake->ranges[i].bytes, 0xee, fake->ranges[i].len);
	}
}

static uint64_t heap_bytes(const struct scene *scene)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < scene->fake->range_count; i++) {
		const struct fake_range *range = &scene->fake->ranges[i];

		if (range->addr < LARGE_A && range->addr != FAKE_PEB)
			bytes += range->len;
	}
	return bytes;
}

static void what_the_process_does_later_is_not_seen(void **state)
{
	struct scene *scene = *state;
	uint64_t bytes = heap_bytes(scene);

	scene->fake->on_resume = spoil;
	assert_int_equal(take(scene), 0);
	assert_whole(scene);
	assert_int_equal(scene->stats.tries, 1);
	assert_null(scene->stats.why_not_copied);
	assert_in_range(scene->stats.copied_bytes, bytes,
		bytes + 25 * (sizeof(struct tracer_block) << TABLE_LOG2) +
			sizeof(struct tracer_area) + 0x10000 + 2 * EACH_LARGE * 0x40 + 0x1000);
}

static void what_is_larger_than_the_limit_is_walked_while_it_is_held(void **state)
{
	struct scene *scene = *state;

	scene->options.copy_limit_bytes = 1;
	assert_int_equal(take(scene), 0);
	assert_int_equal(scene->stats.copied_bytes, 0);
	assert_string_equal(scene->stats.why_not_copied, "it is too large to be copied");
	assert_whole(scene);
	scene->options.copy_limit_bytes = heap_bytes(scene);
	assert_int_equal(take(scene), 0);
	assert_int_equal(scene->stats.copied_bytes, 0); /* the tables come on top */
	scene->options.copy_limit_bytes = heap_bytes(scene) + 0x80000;
	assert_int_equal(take(scene), 0);
	assert_true(scene->stats.copied_bytes > 0);
	assert_whole(scene);
}

static void with_the_flag_of_ust_it_is_walked_while_it_is_held(void **state)
{
	struct scene *scene = *state;

	fake_put(scene->fake, FAKE_PEB + 0xbc, 0x1000, 4); /* NtGlobalFlag */
	assert_int_equal(take(scene), 0);
	assert_int_equal(scene->stats.copied_bytes, 0);
	assert_whole(scene);
}

/* A clone stands still by itself. */
static void be_cloned(struct fake *fake)
{
	fake->target.is_cloned = true;
}

static void a_clone_is_not_copied(void **state)
{
	struct scene *scene = *state;

	scene->fake->on_suspend = be_cloned;
	assert_int_equal(take(scene), 0);
	assert_int_equal(scene->stats.copied_bytes, 0);
	assert_whole(scene);
}

/* ---------------------------------------------------------------- between the look and the hold */

static void add_late(struct fake *fake)
{
	struct truth *truth = &current->image->truth;
	struct filling fill;

	if (fake->suspends > 1)
		return;
	fill = heap_extend(fake, truth, HEAP_B, LATE_SUB, 0x300000, 0x400000);
	for (unsigned i = 0; i < 500; i++)
		fill_used(&fill, 100 + i * 10, 0);
	fill_rest(&fill);
	large_place(fake, truth, HEAP_A, LATE_LARGE, 0x123456);
}

/* Of blocks that the tracer has not seen only sizes and number are kept. */
static void what_comes_before_the_hold_is_there(void **state)
{
	struct scene *scene = *state;
	const struct truth *truth = &scene->image->truth;
	uint64_t requested = 0, overhead = 0;
	struct census total;

	scene->fake->on_suspend = add_late;
	scene->fake->on_resume = spoil;
	assert_int_equal(take(scene), 0);
	assert_int_equal(scene->stats.tries, 1);
	assert_true(scene->stats.copied_bytes > 0x300000);
	for (size_t i = 0; i < truth->block_count; i++) {
		requested += truth->blocks[i].requested_bytes;
		overhead += truth->blocks[i].overhead_bytes;
	}
	total = snapshot_total(&scene->snapshot);
	assert_int_equal(total.block_count, truth->block_count);
	assert_int_equal(total.requested_bytes, requested);
	assert_int_equal(total.overhead_bytes, overhead);
	assert_false(has_warning(scene, "made no sense"));
}

/* Takes the entry out of its list. */
static void take_out(struct fake *fake, uint64_t entry)
{
	uint64_t next = fake_get(fake, entry, 8), back = fake_get(fake, entry + 8, 8);

	fake_put(fake, back, next, 8);
	fake_put(fake, next + 8, back, 8);
}

static void lose_some(struct fake *fake)
{
	if (fake->suspends > 1)
		return;
	take_out(fake, SUB_A2 + SUBHEAP_LINKS);
	fake_unmap(fake, SUB_A2);
	take_out(fake, LARGE_B + LARGE_STEP + LARGE_LINKS);
	fake_unmap(fake, LARGE_B + LARGE_STEP);
}

static void what_goes_before_the_hold_is_not_there(void **state)
{
	struct scene *scene = *state;
	struct truth *truth = &scene->image->truth;
	size_t kept = 0;

	scene->fake->on_suspend = lose_some;
	scene->fake->on_resume = spoil;
	assert_int_equal(take(scene), 0);
	assert_int_equal(scene->stats.tries, 1);
	assert_true(scene->stats.copied_bytes > 0);
	for (size_t i = 0; i < truth->block_count; i++)
		kept += truth->blocks[i].part != SUB_A2 &&
			truth->blocks[i].part != LARGE_B + LARGE_STEP;
	assert_true(kept < truth->block_count);
	assert_int_equal(snapshot_total(&scene->snapshot).block_count, kept);
	assert_false(has_warning(scene, "made no sense"));
}

/* The look sees a heap that is being changed; by the time of the hold it is sound. */
static void a_look_that_finds_nothing_costs_the_copy_only(void **state)
{
	struct scene *scene = *state;

	be_busy_at(scene, HEAP_A + HEAP_RING, 0);
	fake_put(scene->fake, HEAP_A + HEAP_RING, 0x24, 8);
	assert_int_equal(take(scene), 0);
	assert_int_equal(scene->stats.tries, 1);
	assert_true(scene->stats.copied_bytes > 0); /* the rest was asked for while it was held */
	assert_whole(scene);
}

#define MANY (COPY_MISSES_MAX + 100)

static void add_many(struct fake *fake)
{
	if (fake->suspends > 1)
		return;
	fake_map(fake, LATE_LARGE, MANY * (size_t)0x1000)->needs_hold = true;
	for (unsigned i = 0; i < MANY; i++)
		large_place(
			fake, &current->image->truth, HEAP_B, LATE_LARGE + i * 0x1000, 0x100000);
}

static void too_much_that_is_new_is_walked_in_the_same_hold(void **state)
{
	struct scene *scene = *state;

	scene->fake->on_suspend = add_many;
	assert_int_equal(take(scene), 0);
	assert_int_equal(scene->stats.tries, 1);
	assert_int_equal(scene->stats.copied_bytes, 0);
	assert_string_equal(scene->stats.why_not_copied, "too much has changed before it was held");
	assert_int_equal(
		snapshot_total(&scene->snapshot).block_count, scene->image->truth.block_count);
	scene->fake->on_suspend = NULL;
	assert_int_equal(take(scene), 0); /* it is no longer new */
	assert_true(scene->stats.copied_bytes > 0);
	assert_int_equal(
		snapshot_total(&scene->snapshot).block_count, scene->image->truth.block_count);
}

/* ---------------------------------------------------------------- trying again */

static void a_broken_copy_is_taken_again(void **state)
{
	struct scene *scene = *state;
	const struct placed *block = &scene->image->truth.blocks[700];

	be_busy_at(scene, block->addr - 8, 2);
	assert_int_equal(take(scene), 0);
	assert_int_equal(scene->stats.tries, 3);
	assert_true(scene->stats.copied_bytes > 0);
	assert_false(has_warning(scene, "made no sense"));
	assert_whole(scene);
}

static void a_copy_that_stays_broken_is_walked_as_it_is(void **state)
{
	struct scene *scene = *state;
	const struct placed *block = &scene->image->truth.blocks[700];

	be_busy_at(scene, block->addr - 8, UINT64_MAX);
	assert_int_equal(take(scene), 0);
	assert_int_equal(scene->stats.tries, 3);
	assert_true(scene->stats.copied_bytes > 0);
	assert_true(has_warning(scene, "1 places in the heaps made no sense"));
}

/* ---------------------------------------------------------------- sizes that lie */

static void a_size_that_cannot_be_is_never_asked_for(void **state)
{
	struct scene *scene = *state;
	const uint64_t lies[] = {1ull << 46, 1ull << 40, (uint64_t)1 << 33};

	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		fake_put(scene->fake, SUB_B1 + SUBHEAP_BLOCK_SIZE, lies[i], 8);
		fake_put(scene->fake, SUB_B1 + SUBHEAP_DATA_SIZE, lies[i] - 0x40, 8);
		assert_int_equal(take(scene), 0);
		assert_int_equal(scene->stats.copied_bytes, 0);
		assert_string_equal(scene->stats.why_not_copied, "it is too large to be copied");
		assert_true(scene->fake->got_bytes < (uint64_t)1 << 30);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_the_process_does_later_is_not_seen),
		TEST(what_is_larger_than_the_limit_is_walked_while_it_is_held),
		TEST(with_the_flag_of_ust_it_is_walked_while_it_is_held),
		TEST(a_clone_is_not_copied),
		TEST(what_comes_before_the_hold_is_there),
		TEST(what_goes_before_the_hold_is_not_there),
		TEST(a_look_that_finds_nothing_costs_the_copy_only),
		TEST(too_much_that_is_new_is_walked_in_the_same_hold),
		TEST(a_broken_copy_is_taken_again),
		TEST(a_copy_that_stays_broken_is_walked_as_it_is),
		TEST(a_size_that_cannot_be_is_never_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
