/* The LFH key is read from ntdll, or is derived from other evidence. Each test leaves one kind of
 * evidence. Without sufficient evidence the walk lists no block. */
#include "tests/unit/t.h"

#include "tests/unit/fake_segment.h"

#define NO_BUCKET 200

static struct fake_lfh subsegment(
	uint64_t segment, unsigned k, unsigned block_bytes, unsigned bucket)
{
	uint64_t addr = seg_range(segment, 12, 4 + 4 * k, 4, 11, 0, false);

	return seg_lfh(addr, 0x4000, block_bytes, bucket);
}

/* Moves the subsegment's first block, and updates the offset to it. */
static void shift_first(struct fake_lfh *lfh, unsigned first)
{
	uint64_t at = lfh->addr + seg.l->at.subsegment.offsets;

	fake_write(at, fake_get(at, 4) ^ (uint64_t)(lfh->first ^ first) << 16, 4);
	lfh->first = first;
}

static void count_write(struct fake_lfh *lfh, unsigned count)
{
	lfh->count = count;
	fake_write(lfh->addr + seg.l->at.subsegment.block_count, count, 2);
	seg_lfh_free_write(lfh, count);
}

/* Marks some blocks with at least 2 unused bytes. */
static void some_tails(const struct fake_lfh *lfh)
{
	for (unsigned k = 0; k < 4 && k < lfh->count; k++)
		seg_lfh_block(lfh, k, 2 + k);
}

static void assert_key_found(void)
{
	seg_walk();
	assert_true(seg.nt.segment_keys.has_lfh);
	assert_int_equal(seg.nt.segment_keys.lfh, seg.lfh_key);
	assert_int_equal(seg.walk.broken_count, 0);
}

/* Asserts that the walk reports the subsegments and lists none of their blocks. */
static void assert_no_key(unsigned subsegments)
{
	seg_walk();
	assert_false(seg.nt.segment_keys.has_lfh);
	assert_int_equal(seg.walk.block_count, 0);
	assert_int_equal(seg.walk.broken_count, subsegments);
	assert_string_equal(seg.walk.broken_what, "LFH subsegment with an uncertain key");
}

/* ---------------------------------------------------------------- in ntdll */

/* Makes subsegments whose blocks have equal sizes and begin later than expected. */
static struct fake_lfh odd_subsegments(void)
{
	uint64_t segment = seg_segment(FAKE_HEAP, 0);
	struct fake_lfh lfh = {0};

	for (unsigned k = 0; k < 4; k++) {
		lfh = subsegment(segment, k, 0x60, 0x60 / seg.l->unit);
		count_write(&lfh, lfh.count - 1);
		shift_first(&lfh, lfh.first + 2 * seg.l->unit);
	}
	seg_lfh_block(&lfh, 3, 0);
	return lfh;
}

SEG_TEST(the_key_stands_beside_the_heap_key_in_ntdll, ALL)
{
	struct fake_lfh lfh;

	lfh = odd_subsegments();
	seg_walk();
	assert_int_equal(seg.nt.segment_keys.lfh, seg.lfh_key);
	assert_int_equal(seg.walk.broken_count, 0);
	assert_int_equal(seg.walk.block_count, 1);
	assert_block(0, seg_lfh_addr(&lfh, 3), 0x60, 0, 0);
}

/* Both signatures of page segments must work. Without VS subsegments no other evidence exists. */
SEG_TEST(the_heap_key_in_ntdll_may_be_either, ALL)
{
	seg.constant ^= FAKE_CONSTANT & seg_mask();
	odd_subsegments();
	assert_key_found();
}

SEG_TEST(a_value_like_the_heap_key_is_not_believed, ALL)
{
	seg_ptr(FAKE_GLOBALS - 0x80, seg.heap_key);
	seg_ptr(FAKE_GLOBALS - 0x80 + l->ptr, 0x5fff1237);
	odd_subsegments();
	assert_key_found();
}

/* A dump may list ntdll without its data, or with data from another place. */
SEG_TIMES(without_ntdll_s_data_the_key_of_one_kind_is_not_certain, ALL, 4)
{
	odd_subsegments();
	if (i == 0)
		seg_no_ntdll();
	else if (i == 1)
		fake_unmap(FAKE_NTDLL);
	else if (i == 2)
		seg_ptr(FAKE_GLOBALS, seg.heap_key + 1);
	else
		seg_ptr(FAKE_GLOBALS + l->ptr, seg.lfh_key ^ 0x80008001);
	assert_no_key(4);
}

/* ---------------------------------------------------------------- derived */

/* The number of blocks is so large that a size difference of one unit changes it. */
SEG_TIMES(blocks_that_fill_their_subsegment_show_their_size, ALL, 5)
{
	struct fake_lfh lfh;

	seg_no_ntdll();
	lfh = subsegment(seg_segment(FAKE_HEAP, 0), 0, 0x30 * (i + 1), NO_BUCKET);
	some_tails(&lfh);
	assert_key_found();
}

/* The blocks are so few that many sizes would fit. */
SEG_TIMES(a_bucket_s_size_class_shows_their_size, ALL, 5)
{
	/* The documented distances of sizes: 8 bytes up to 256, 16 up to 512, 32 up to 1024, 64 up
	 * to 2048. */
	static const unsigned x86[5][2] = {
		{3, 0x18}, {32, 0x100}, {35, 0x130}, {50, 0x240}, {70, 0x580}};
	static const unsigned x64[5][2] = {
		{3, 0x30}, {32, 0x200}, {35, 0x230}, {64, 0x400}, {70, 0x580}};
	const unsigned *bucket = l->bits == 64 ? x64[i] : x86[i];
	struct fake_lfh lfh;

	seg_no_ntdll();
	lfh = subsegment(seg_segment(FAKE_HEAP, 0), 0, bucket[1], bucket[0]);
	count_write(&lfh, 5);
	shift_first(&lfh, seg_lfh_room(5));
	some_tails(&lfh);
	assert_key_found();
}

/* If blocks have one unit, only one place is possible for the first block. */
SEG_TEST(a_subsegment_without_room_to_spare_shows_where_the_first_block_is, ALL)
{
	uint64_t segment;

	seg_no_ntdll();
	segment = seg_segment(FAKE_HEAP, 0);
	subsegment(segment, 0, l->unit, 1);
	for (unsigned k = 1; k < 5; k++) {
		struct fake_lfh lfh = subsegment(segment, k, 0x90, 0x90 / l->unit);

		count_write(&lfh, lfh.count - 1);
		shift_first(&lfh, lfh.first + 2 * l->unit);
	}
	assert_key_found();
}

/* Unknown data precede the first block, so only the ends of blocks show where it is. */
SEG_TEST(tails_show_where_the_first_block_is, ALL)
{
	struct fake_lfh lfh;
	uint64_t segment;

	seg_no_ntdll();
	segment = seg_segment(FAKE_HEAP, 0);
	for (unsigned k = 0; k < 4; k++) {
		lfh = subsegment(segment, k, 0x50 + 0x20 * k, NO_BUCKET);
		count_write(&lfh, lfh.count - 2);
		shift_first(&lfh, lfh.first + 0x40);
		fake_write(lfh.addr + lfh.first - 0x40, 0xffffffffffffffff, 8);
		some_tails(&lfh);
	}
	assert_key_found();
}

/* Many words in memory look like the end of a block. Only marks of stacks are reliable. */
SEG_TIMES(marks_of_stacks_show_where_the_first_block_is, ALL, 2)
{
	struct fake_lfh lfh;
	uint64_t end;

	seg_no_ntdll();
	lfh = subsegment(seg_segment(FAKE_HEAP, 0), 0, 0x60, 0x60 / l->unit);
	count_write(&lfh, lfh.count - 2);
	shift_first(&lfh, lfh.first + 4 * l->unit);
	for (unsigned at = 0; at < 0x1000; at += 2) /* marks an extra, with 2 unused bytes */
		fake_write(lfh.addr + lfh.first + at, 0x4002, 2);
	for (unsigned k = 0; k < 4; k++) {
		end = seg_lfh_block(&lfh, k, 0x4000 | 0x20) + 0x60;
		memset(fake_bytes(end - 0x20, 0x1e), 0, 0x1e);
		if (i)
			fake_write(end - 0x20 + 2, 0x0101, 2);
	}
	if (i)
		assert_key_found();
	else
		assert_no_key(1);
}

/* A word whose topmost bit is set looks like the end of a block with one unused byte. */
SEG_TEST(one_unused_byte_shows_nothing, ALL)
{
	struct fake_lfh lfh;

	seg_no_ntdll();
	lfh = odd_subsegments();
	memset(fake_bytes(lfh.addr + lfh.first, 0x1000), 0xff, 0x1000);
	for (unsigned k = 0; k < 8; k++)
		seg_lfh_block(&lfh, k, 0x80ff);
	assert_no_key(4);
}

SEG_TEST(keys_that_differ_are_none, ALL)
{
	uint64_t seed = 77;

	uint64_t segment;

	seg_no_ntdll();
	segment = seg_segment(FAKE_HEAP, 0);
	for (unsigned k = 0; k < 12; k++) {
		struct fake_lfh lfh = subsegment(segment, k, 0x40, 4);

		seg_lfh_block(&lfh, 0, 0);
		fake_write(lfh.addr + l->at.subsegment.offsets, fake_random(&seed), 4);
	}
	assert_no_key(12);
}

SEG_TEST(the_key_is_the_process_s, ALL)
{
	struct fake_lfh lfh;
	uint64_t second = FAKE_HEAP + 0x100000, segment;

	seg_no_ntdll();
	lfh = subsegment(seg_segment(FAKE_HEAP, 0), 0, 0x90, NO_BUCKET);
	count_write(&lfh, 2);
	shift_first(&lfh, seg_lfh_room(2));
	seg_lfh_block(&lfh, 1, 0);
	seg_heap(second);
	segment = seg_segment(second, 0);
	subsegment(segment, 0, l->unit, 1);
	for (unsigned k = 1; k < 4; k++)
		subsegment(segment, k, 0x40 + 0x30 * k, NO_BUCKET);
	seg_walk();
	assert_int_equal(seg.nt.segment_keys.lfh, seg.lfh_key);
	assert_int_equal(seg.walk.broken_count, 0);
	assert_int_equal(seg.walk.block_count, 1);
	assert_block(0, seg_lfh_addr(&lfh, 1), 0x90, 0, 0);
}
