/* The key of the LFH is found by whatever evidence there is; each test leaves only one kind of it. */
#include "tests/unit/fake_segment.h"

static const struct fake_layout *const layouts[] = {
	&fake_26100_x64, &fake_22000_x64, &fake_19041_x64, &fake_19041_x86, &fake_14393_x64};

#define EACH_LAYOUT(l)                                                                             \
	for (size_t i_ = 0; i_ < sizeof(layouts) / sizeof(*layouts); i_++)                         \
		for (const struct fake_layout *l = layouts[i_]; l; l = NULL)

#define NO_BUCKET 200

/* The k'th subsegment of a heap, of four pages. */
static struct fake_lfh subsegment(
	struct fake_segment *s, uint64_t segment, unsigned k, unsigned block_bytes, unsigned bucket)
{
	uint64_t addr = seg_range(s, segment, 12, 4 + 4 * k, 4, 11, 0, false);

	return seg_lfh(s, addr, 0x4000, block_bytes, bucket);
}

/* Puts the first block elsewhere, and says so. */
static void shift_first(struct fake_segment *s, struct fake_lfh *lfh, unsigned first)
{
	uint64_t at = lfh->addr + s->l->l_offsets;

	fake_put(&s->fake, at, fake_get(&s->fake, at, 4) ^ (uint64_t)(lfh->first ^ first) << 16, 4);
	lfh->first = first;
}

static void count_put(struct fake_segment *s, struct fake_lfh *lfh, unsigned count)
{
	lfh->count = count;
	fake_put(&s->fake, lfh->addr + s->l->l_count, count, 2);
}

static void assert_key_found(struct fake_segment *s)
{
	seg_walk(s);
	assert_true(s->nt.segment_keys.has_lfh);
	assert_int_equal(s->nt.segment_keys.lfh, s->lfh_key);
	assert_int_equal(s->walk.broken_count, 0);
	seg_release(s);
}

/* As long as there are so many that one unit more or less makes a difference. */
static void blocks_that_fill_their_subsegment_are_enough(void **state)
{
	(void)state;
	EACH_LAYOUT(l)
	{
		for (unsigned bytes = 0x30; bytes < 0x120; bytes += 0x30) {
			struct fake_segment s;

			seg_init(&s, l);
			subsegment(&s, seg_segment(&s, FAKE_HEAP, 0), 0, bytes, NO_BUCKET);
			assert_key_found(&s);
		}
	}
}

/* So few blocks that many sizes would do. */
static void a_bucket_s_size_class_is_enough(void **state)
{
	/* Documented: 8 bytes apart up to 256, then 16 to 512, 32 to 1024, 64 to 2048. */
	static const unsigned x86[][2] = {
		{3, 0x18}, {32, 0x100}, {35, 0x130}, {50, 0x240}, {70, 0x580}};
	static const unsigned x64[][2] = {
		{3, 0x30}, {32, 0x200}, {35, 0x230}, {64, 0x400}, {70, 0x580}};

	(void)state;
	EACH_LAYOUT(l)
	{
		for (size_t i = 0; i < sizeof(x86) / sizeof(*x86); i++) {
			const unsigned *bucket = l->bits == 64 ? x64[i] : x86[i];
			struct fake_segment s;
			struct fake_lfh lfh;

			seg_init(&s, l);
			lfh = subsegment(
				&s, seg_segment(&s, FAKE_HEAP, 0), 0, bucket[1], bucket[0]);
			count_put(&s, &lfh, 5);
			shift_first(&s, &lfh, seg_lfh_room(&s, 5));
			assert_key_found(&s);
		}
	}
}

/* The first block stands behind something unknown: only the ends of blocks show where. */
static void tails_show_where_the_first_block_is(void **state)
{
	(void)state;
	EACH_LAYOUT(l)
	{
		struct fake_segment s;
		struct fake_lfh lfh;
		uint64_t segment;

		seg_init(&s, l);
		segment = seg_segment(&s, FAKE_HEAP, 0);
		for (unsigned k = 0; k < 4; k++) {
			lfh = subsegment(&s, segment, k, 0x50 + 0x20 * k, NO_BUCKET);
			count_put(&s, &lfh, lfh.count - 2);
			shift_first(&s, &lfh, lfh.first + 0x40);
			fake_put(&s.fake, lfh.addr + lfh.first - 0x40, 0xffffffffffffffff, 8);
			for (unsigned b = 0; b < 4; b++)
				seg_lfh_block(&s, &lfh, b, 3 + b);
		}
		assert_key_found(&s);
	}
}

/* CommitStateOffset and CommitUnitCount: what stands between the bitmap and the first block. */
static void the_first_block_lies_behind_the_commit_state(void **state)
{
	(void)state;
	EACH_LAYOUT(l)
	{
		unsigned at_count = l->l_offsets + 5, at_state = l->l_offsets + 6;
		struct fake_segment s;
		struct fake_lfh lfh;
		unsigned head;

		seg_init(&s, l);
		lfh = subsegment(&s, seg_segment(&s, FAKE_HEAP, 0), 0, 0x40, NO_BUCKET);
		head = lfh.first;
		count_put(&s, &lfh, lfh.count - 1);
		shift_first(&s, &lfh, head + l->unit);
		fake_put(&s.fake, lfh.addr + at_count, 2, 1);
		fake_put(&s.fake, lfh.addr + at_state, head, 2);
		assert_key_found(&s);
	}
}

static void keys_that_differ_are_none(void **state)
{
	uint64_t seed = 77;

	(void)state;
	EACH_LAYOUT(l)
	{
		struct fake_segment s;
		uint64_t segment;

		seg_init(&s, l);
		segment = seg_segment(&s, FAKE_HEAP, 0);
		for (unsigned k = 0; k < 12; k++) {
			struct fake_lfh lfh = subsegment(&s, segment, k, 0x40, 4);

			seg_lfh_block(&s, &lfh, 0, 0);
			fake_put(&s.fake, lfh.addr + l->l_offsets, fake_random(&seed), 4);
		}
		seg_walk(&s);
		assert_false(s.nt.segment_keys.has_lfh);
		assert_int_equal(s.walk.block_count, 0);
		assert_int_equal(s.walk.broken_count, 12);
		seg_release(&s);
	}
}

/* Of two heaps the one that says little is read with the key that the other gave. */
static void the_key_is_the_process_s(void **state)
{
	(void)state;
	EACH_LAYOUT(l)
	{
		struct fake_segment s;
		struct fake_lfh lfh;
		uint64_t second = FAKE_HEAP + 0x100000, segment;

		seg_init(&s, l);
		lfh = subsegment(&s, seg_segment(&s, FAKE_HEAP, 0), 0, 0x90, NO_BUCKET);
		count_put(&s, &lfh, 2);
		shift_first(&s, &lfh, seg_lfh_room(&s, 2));
		seg_lfh_block(&s, &lfh, 1, 0);
		seg_heap(&s, second);
		segment = seg_segment(&s, second, 0);
		for (unsigned k = 0; k < 4; k++)
			subsegment(&s, segment, k, 0x40 + 0x30 * k, NO_BUCKET);
		seg_walk(&s);
		assert_int_equal(s.nt.segment_keys.lfh, s.lfh_key);
		assert_int_equal(s.walk.broken_count, 0);
		assert_int_equal(s.walk.block_count, 1);
		assert_block(&s, 0, seg_lfh_addr(&lfh, 1), 0x90, 0, 0);
		seg_release(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_that_fill_their_subsegment_are_enough),
		cmocka_unit_test(a_bucket_s_size_class_is_enough),
		cmocka_unit_test(tails_show_where_the_first_block_is),
		cmocka_unit_test(the_first_block_lies_behind_the_commit_state),
		cmocka_unit_test(keys_that_differ_are_none),
		cmocka_unit_test(the_key_is_the_process_s),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
