#include "tests/unit/t.h"

#include "snapshot/doctor/doctor.h"

static struct doctor_truth truth; /* true: only the plan of a truth is wanted */

static int make_plan(void **state)
{
	(void)state;
	memset(&truth, 0, sizeof(truth));
	doctor_plan(&truth);
	return 0;
}

static uint64_t first_bytes(const struct doctor_block *block)
{
	return block->was_bytes ? block->was_bytes : block->requested_bytes;
}

/* Counts a heap's blocks of `from` to `to` bytes. If `that_stay` is set, counts only blocks that
 * are not freed. */
static size_t count(enum doctor_heap heap, uint64_t from, uint64_t to, bool that_stay)
{
	size_t count = 0;

	for (uint32_t i = 0; i < truth.block_count; i++) {
		const struct doctor_block *block = &truth.blocks[i];
		uint64_t bytes = first_bytes(block);

		count += block->heap == heap && bytes >= from && bytes <= to &&
			 !(that_stay && (block->is_freed || block->was_bytes));
	}
	return count;
}

#undef TEST_AROUND
#define TEST_AROUND make_plan, NULL

TEST(test_every_step_of_8_bytes_to_1024_is_there_often_enough)
{
	static const enum doctor_heap heaps[] = {
		DOCTOR_PROCESS_HEAP, DOCTOR_GROWABLE, DOCTOR_SEGMENT};

	for (size_t i = 0; i < sizeof(heaps) / sizeof(*heaps); i++) {
		for (uint64_t bytes = 0; bytes <= 1024; bytes += 8) {
			uint64_t from = bytes ? bytes - 7 : 0;

			/* 18 blocks of a size activate the low fragmentation heap */
			assert_true(count(heaps[i], from, bytes, false) > 18);
			assert_true(count(heaps[i], from, bytes, true) > 2);
		}
	}
}

TEST(test_every_size_of_class_is_there)
{
	for (uint64_t bytes = 1; bytes <= 1024; bytes++)
		assert_true(count(DOCTOR_GROWABLE, bytes, bytes, true) > 0);
}

TEST(test_big_blocks_lie_on_both_sides_of_every_threshold)
{
	/* 508 KiB; 1020 KiB; HEAP_MIN_LARGE_BLOCK_SIZE of Wine 8.0, which includes 8 bytes of
	 * header */
	static const uint64_t thresholds[] = {0x7f000, 0xff000, 0xfeff0 - 8};

	for (size_t i = 0; i < sizeof(thresholds) / sizeof(*thresholds); i++) {
		uint64_t at = thresholds[i];

		assert_true(count(DOCTOR_GROWABLE, at - 0x20, at - 1, true) > 0);
		assert_true(count(DOCTOR_GROWABLE, at + 1, at + 0x20, true) > 0);
	}
	assert_true(count(DOCTOR_GROWABLE, 0x200000, UINT64_MAX, true) > 0);
}

TEST(test_heap_of_fixed_size_is_not_asked_for_more)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < truth.block_count; i++) {
		const struct doctor_block *block = &truth.blocks[i];

		if (block->heap != DOCTOR_FIXED)
			continue;
		assert_true(block->requested_bytes < 508 * 1024 && block->was_bytes < 508 * 1024);
		bytes += block->requested_bytes + block->was_bytes + 0x60;
	}
	assert_true(bytes < DOCTOR_FIXED_BYTES / 2);
}

/* The child's minidump contains all live blocks. 30 MB take about 1.5 s under Wine. */
TEST(test_child_is_no_large_program)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < truth.block_count; i++) {
		if (truth.blocks[i].heap != DOCTOR_SEGMENT && !truth.blocks[i].is_freed)
			bytes += truth.blocks[i].requested_bytes;
	}
	assert_true(bytes < 48u << 20);
}

/* Smallest size for which x86, x64 and segment heaps use separate memory. */
TEST(test_big_blocks_are_in_every_growing_heap)
{
	static const enum doctor_heap heaps[] = {
		DOCTOR_PROCESS_HEAP, DOCTOR_GROWABLE, DOCTOR_UNLOCKED, DOCTOR_SEGMENT};

	for (size_t i = 0; i < sizeof(heaps) / sizeof(*heaps); i++) {
		assert_true(count(heaps[i], 0x7f000 - 0x20, 0x7f000 - 1, true) > 0);
		assert_true(count(heaps[i], 0x7f000 + 1, 0x80000, true) > 0);
	}
}

TEST(test_truth_has_room_for_plan)
{
	size_t blocks = truth.block_count;

	/* A moved block counts as one freed and one live block. */
	for (uint32_t i = 0; i < truth.block_count; i++)
		blocks += truth.blocks[i].was_bytes != 0;
	assert_true(blocks < DOCTOR_BLOCKS_MAX);
}

TEST(test_late_blocks_stay_and_every_site_is_used)
{
	size_t late = 0, sites[DOCTOR_SITES] = {0};

	for (uint32_t i = 0; i < truth.block_count; i++) {
		const struct doctor_block *block = &truth.blocks[i];

		assert_false(block->is_late && (block->is_freed || block->was_bytes));
		assert_true((block->was_bytes != 0) == (block->group == DOCTOR_RESIZED));
		assert_true(block->heap < DOCTOR_HEAPS && block->group < DOCTOR_GROUPS);
		assert_int_equal(block->addr, 0);
		late += block->is_late;
		sites[block->site]++;
	}
	assert_true(late > 100);
	for (int i = 0; i < DOCTOR_SITES; i++)
		assert_true(sites[i] > 100);
}

/* Makes a valid truth whose blocks are at 0x1000, 0x1010, ... */
static int make_truth(void **state)
{
	(void)state;
	memset(&truth, 0, sizeof(truth));
	truth.heaps[DOCTOR_GROWABLE] = 0x500;
	for (unsigned i = 0; i < 40; i++) {
		const struct doctor_block block = {.addr = 0x1000 + i * 16,
			.requested_bytes = i,
			.heap = DOCTOR_GROWABLE,
			.site = (uint8_t)(i % DOCTOR_SITES)};

		assert_true(doctor_truth_add(&truth, &block));
	}
	return 0;
}

static const struct doctor_block *find(uint64_t addr)
{
	for (uint32_t i = 0; i < truth.block_count; i++) {
		if (truth.blocks[i].addr == addr)
			return &truth.blocks[i];
	}
	return NULL;
}

TEST_WITH(test_a_place_that_is_taken_again_is_not_free, make_truth, NULL)
{
	struct doctor_block again = {.addr = 0x1020, .heap = DOCTOR_GROWABLE, .is_freed = true};

	assert_true(doctor_truth_add(&truth, &again)); /* freed, then reused by a live block */
	again.addr = 0x900; /* freed twice at one address */
	assert_true(doctor_truth_add(&truth, &again));
	assert_true(doctor_truth_add(&truth, &again));
	again.addr = 0; /* a missing heap */
	assert_true(doctor_truth_add(&truth, &again));
	doctor_truth_sort(&truth);
	assert_int_equal(truth.block_count, 41);
	assert_true(find(0x900)->is_freed);
	assert_false(find(0x1020)->is_freed);
	assert_int_equal(find(0x1020)->requested_bytes, 2);
	assert_true(doctor_truth_is_sound(&truth));
}

TEST_WITH(test_a_full_truth_takes_no_more, make_truth, NULL)
{
	const struct doctor_block block = {.addr = 1};

	truth.block_count = DOCTOR_BLOCKS_MAX;
	assert_false(doctor_truth_add(&truth, &block));
	assert_int_equal(truth.block_count, DOCTOR_BLOCKS_MAX);
}

/* Changes one byte, checks that this makes the truth invalid, and restores the byte. */
#define UNSOUND(change, undo)                                                                      \
	do {                                                                                       \
		assert_true(doctor_truth_is_sound(&truth));                                        \
		change;                                                                            \
		assert_false(doctor_truth_is_sound(&truth));                                       \
		undo;                                                                              \
	} while (0)

TEST_WITH(test_an_unsound_truth_is_refused, make_truth, NULL)
{
	UNSOUND(truth.block_count = 0, truth.block_count = 40);
	UNSOUND(truth.block_count = DOCTOR_BLOCKS_MAX + 1, truth.block_count = 40);
	UNSOUND(truth.block_count = UINT32_MAX, truth.block_count = 40);
	UNSOUND(truth.listed_count = DOCTOR_LISTED_MAX + 1, truth.listed_count = 0);
	UNSOUND(truth.blocks[7].heap = DOCTOR_HEAPS, truth.blocks[7].heap = DOCTOR_GROWABLE);
	UNSOUND(truth.blocks[7].heap = DOCTOR_FIXED, truth.blocks[7].heap = DOCTOR_GROWABLE);
	UNSOUND(truth.blocks[7].group = DOCTOR_GROUPS, truth.blocks[7].group = 0);
	UNSOUND(truth.blocks[7].site = DOCTOR_SITES, truth.blocks[7].site = 0);
	UNSOUND(truth.blocks[7].addr -= 16, truth.blocks[7].addr += 16);
	UNSOUND(truth.blocks[0].addr = 0, truth.blocks[0].addr = 0x1000);
}
