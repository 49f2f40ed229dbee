/* The walker of segment heaps: what it finds in heaps made by hand from the published layouts. */
#include "tests/unit/t.h"

#include "tests/unit/fake_segment.h"

static const struct fake_layout *const layouts[] = {
	&fake_26100_x64, &fake_22000_x64, &fake_19041_x64, &fake_19041_x86, &fake_14393_x64};

/* l is declared here. NOLINTBEGIN(bugprone-macro-parentheses) */
#define EACH_LAYOUT(l)                                                                             \
	for (size_t i_ = 0; i_ < sizeof(layouts) / sizeof(*layouts); i_++)                         \
		for (const struct fake_layout *l = layouts[i_]; l; l = NULL)
/* NOLINTEND(bugprone-macro-parentheses) */

TEST(a_heap_is_known_by_the_pointers_back_to_it)
{
	EACH_LAYOUT(l)
	{
		struct fake_segment s;

		seg_init(&s, l);
		seg_ptr(&s, FAKE_HEAP + l->mem_stats, 0x30);
		seg_ptr(&s, FAKE_HEAP + l->mem_stats + l->ptr, 0x20);
		seg_walk(&s);
		assert_int_equal(s.walk.heap_count, 1);
		assert_string_equal(s.walk.heaps[0].kind, "segment");
		assert_string_equal(s.walk.heaps[0].layout, l->name);
		assert_int_equal(s.walk.heaps[0].bits, l->bits);
		assert_int_equal(s.walk.heaps[0].reserved_bytes, 0x30000);
		assert_int_equal(s.walk.heaps[0].committed_bytes, 0x20000);
		assert_false(s.walk.heaps[0].unwalked);
		assert_int_equal(s.walk.block_count, 0);
		assert_int_equal(s.walk.broken_count, 0);
		seg_release(&s);
	}
}

/* Of a real heap's second context it is not known whether it has pointers to the front ends. What leads
 * elsewhere is said, and costs nothing else. */
TEST(contexts_need_not_be_as_expected_for_a_heap_to_be_walked)
{
	EACH_LAYOUT(l)
	{
		for (unsigned i = 0; l->context_bytes && i < 4; i++) {
			struct fake_segment s;
			uint64_t context, range;

			seg_init(&s, l);
			context = seg_context(&s, FAKE_HEAP, 1);
			range = seg_range(&s, seg_segment(&s, FAKE_HEAP, 0), 12, l->first_index, 1,
				3, 0x10, false);
			if (i == 0)
				seg_ptr(&s, context + l->c_lfh, 0);
			if (i == 0)
				seg_ptr(&s, context + l->c_vs, 0);
			if (i == 1)
				seg_ptr(&s, context + l->c_heap, FAKE_HEAP + 8);
			if (i == 2)
				seg_ptr(&s, context + l->c_vs, FAKE_HEAP + 8);
			if (i == 3)
				seg_ptr(&s, seg_context(&s, FAKE_HEAP, 0) + l->c_lfh, 0x1230);
			seg_walk(&s);
			assert_false(s.walk.heaps[0].unwalked);
			assert_string_equal(s.walk.heaps[0].layout, l->name);
			assert_int_equal(s.walk.block_count, 1);
			assert_block(&s, 0, range, 0x1000 - 0x10, 0x10, 0);
			assert_int_equal(s.walk.broken_count, 0);
			assert_int_equal(s.walk.doubt_count, i != 0);
			seg_release(&s);
		}
	}
}

TEST(a_heap_of_no_known_layout_is_listed_as_unwalked)
{
	EACH_LAYOUT(l)
	{
		struct fake_segment s;

		seg_init(&s, l);
		for (uint64_t at = 0x20; at < 0x1000; at += 8)
			fake_put(&s.fake, FAKE_HEAP + at, 0, 8);
		seg_walk(&s);
		assert_int_equal(s.walk.heap_count, 1);
		assert_true(s.walk.heaps[0].unwalked);
		seg_release(&s);
	}
}

/* Two layouts differ only in where a range keeps its size: ranges show which it is. */
TEST(ranges_tell_layouts_apart_whatever_the_build)
{
	static const struct fake_layout *const both[] = {&fake_26100_x64, &fake_22000_x64};

	for (unsigned i = 0; i < 8; i++) {
		static const uint32_t builds[] = {0, 22000, 26100, 99999};
		struct fake_segment s;

		seg_init(&s, both[i % 2]);
		s.process.os_build = builds[i / 2];
		seg_range(&s, seg_segment(&s, FAKE_HEAP, 0), 12, 2, 3, 3, 0, false);
		seg_walk(&s);
		assert_string_equal(s.walk.heaps[0].layout, both[i % 2]->name);
		assert_int_equal(s.walk.block_count, 1);
		assert_int_equal(s.walk.blocks[0].requested_bytes, 0x3000);
		seg_release(&s);
	}
}

TEST(a_range_of_the_back_end_is_one_block)
{
	EACH_LAYOUT(l)
	{
		struct fake_segment s;
		uint64_t small, large, a, b, c;

		seg_init(&s, l);
		small = seg_segment(&s, FAKE_HEAP, 0);
		large = l->context_bytes ? seg_segment(&s, FAKE_HEAP, 1) : 0;
		a = seg_range(&s, small, 12, l->first_index, 3, 3, 0x123, false);
		seg_range(&s, small, 12, l->first_index + 3, 5, 1, 0, false); /* free */
		seg_range(&s, small, 12, l->first_index + 8, 2, 7, 0, false); /* the heap's own */
		b = seg_range(&s, small, 12, 255, 1, 3, 0, false);
		c = large ? seg_range(&s, large, 16, 200, 9, 3, 0x10001, false) : 0;
		seg_walk(&s);
		assert_int_equal(s.walk.broken_count, 0);
		assert_int_equal(s.walk.block_count, large ? 3 : 2);
		assert_block(&s, 0, a, 0x3000 - 0x123, 0x123, 0);
		assert_block(&s, 1, b, 0x1000, 0, 0);
		if (large)
			assert_block(&s, 2, c, 0x90000 - 0x10001, 0x10001, 0);
		seg_release(&s);
	}
}

/* ---------------------------------------------------------------- VS */

TEST(chunks_of_a_vs_subsegment_are_blocks_with_either_meaning_of_its_size)
{
	EACH_LAYOUT(l)
	{
		for (unsigned counts = 0; counts < 2; counts++) {
			struct fake_segment s;
			unsigned h = l->v_header;
			struct fake_vs vs;
			uint64_t at, a, b, c;

			seg_init(&s, l);
			at = seg_segment(&s, FAKE_HEAP, 0);
			vs = seg_vs(&s, FAKE_HEAP,
				seg_range(&s, at, 12, l->first_index, 1, 15, 0, false));
			a = seg_chunk(&s, &vs, 0x100, true, 0);
			seg_chunk(&s, &vs, 0x40, false, 0);
			b = seg_chunk(&s, &vs, 0x200, true, 13); /* 13 bytes are not used */
			c = seg_chunk(&s, &vs, 0x300, true, 0x8041); /* 1 byte is not */
			seg_chunk(&s, &vs, 0x1000 - 0x640 - l->v_first - l->v_first, false, 0);
			/* As large as what stands before the first chunk. */
			seg_chunk(&s, &vs, l->v_first, true, 0);
			seg_vs_end(&s, &vs, counts);
			seg_walk(&s);
			assert_int_equal(s.walk.broken_count, 0);
			assert_int_equal(s.walk.block_count, 4);
			assert_block(&s, 0, a, 0x100 - h, h, 0);
			assert_block(&s, 1, b, 0x200 - h - 13, h + 13, 0);
			assert_block(&s, 2, c, 0x300 - h - 1, h + 1, 0);
			assert_block(&s, 3,
				at + ((uint64_t)l->first_index + 1) * 0x1000 - l->v_first + h,
				l->v_first - h, h, 0);
			seg_release(&s);
		}
	}
}

TEST(a_chunk_that_is_to_be_skipped_is_no_block)
{
	struct fake_segment s;
	struct fake_vs vs;
	uint64_t at, addr;

	seg_init(&s, &fake_22000_x64);
	at = seg_segment(&s, FAKE_HEAP, 0);
	vs = seg_vs(&s, FAKE_HEAP, seg_range(&s, at, 12, 2, 1, 15, 0, false));
	addr = seg_chunk(&s, &vs, 0x100, true, 0);
	fake_put(&s.fake, addr - 8 + 1, 2, 1);
	seg_chunk(&s, &vs, 0x80, true, 0);
	seg_vs_end(&s, &vs, true);
	seg_walk(&s);
	assert_int_equal(s.walk.block_count, 1);
	assert_int_equal(s.walk.broken_count, 0);
	seg_release(&s);
}

TEST(the_heap_key_is_found_whatever_page_segments_are_signed_with)
{
	EACH_LAYOUT(l)
	{
		for (unsigned i = 0; i < 4; i++) {
			struct fake_segment s;
			struct fake_vs vs;
			uint64_t at;

			seg_init(&s, l);
			s.constant = i & 1 ? 0 : s.constant;
			s.process.os_build = i & 2 ? 26100 : l->build;
			at = seg_segment(&s, FAKE_HEAP, 0);
			vs = seg_vs(&s, FAKE_HEAP,
				seg_range(&s, at, 12, l->first_index, 1, 15, 0, false));
			for (unsigned k = 0; k < 8; k++)
				seg_chunk(&s, &vs, 0x20 + 0x10 * k, k % 3, 0);
			seg_vs_end(&s, &vs, true);
			seg_walk(&s);
			assert_int_equal(s.walk.broken_count, 0);
			assert_int_equal(s.walk.block_count, 5);
			assert_int_equal(s.nt.segment_keys.heap, s.heap_key);
			seg_release(&s);
		}
	}
}

TEST(a_page_segment_of_another_key_is_left_out)
{
	struct fake_segment s;
	uint64_t at[3];

	seg_init(&s, &fake_19041_x64);
	for (unsigned i = 0; i < 3; i++) {
		at[i] = seg_segment(&s, FAKE_HEAP, 0);
		seg_range(&s, at[i], 12, 2, 1, 3, 0, false);
	}
	fake_put(&s.fake, at[0] + 0x10, 0x1234, 8);
	seg_walk(&s);
	assert_int_equal(s.walk.broken_count, 1);
	assert_int_equal(s.walk.broken_addr, at[0]);
	assert_int_equal(s.walk.block_count, 2);
	seg_release(&s);
}

TEST(a_vs_subsegment_that_is_not_listed_is_noted)
{
	struct fake_segment s;
	struct fake_vs vs;
	uint64_t at;

	seg_init(&s, &fake_19041_x64);
	at = seg_segment(&s, FAKE_HEAP, 0);
	vs = seg_vs(&s, FAKE_HEAP, seg_range(&s, at, 12, 2, 1, 15, 0, false));
	seg_chunk(&s, &vs, 0x100, true, 0);
	seg_vs_end(&s, &vs, true);
	seg_list_init(&s, FAKE_HEAP + s.l->vs + s.l->v_list, true);
	seg_walk(&s);
	assert_int_equal(s.walk.block_count, 1);
	assert_int_equal(s.walk.broken_count, 1);
	seg_release(&s);
}

/* ---------------------------------------------------------------- LFH */

TEST(bitmaps_of_lfh_subsegments_say_which_blocks_are_live)
{
	EACH_LAYOUT(l)
	{
		struct fake_segment s;
		struct fake_lfh lfh, other;
		uint64_t at, a, b, c, d, e;

		seg_init(&s, l);
		at = seg_segment(&s, FAKE_HEAP, 0);
		lfh = seg_lfh(&s, seg_range(&s, at, 12, l->first_index, 4, 11, 0, false), 0x4000,
			0x50, 0x50 / l->unit);
		other = seg_lfh(&s, seg_range(&s, at, 12, l->first_index + 4, 8, 11, 0, false),
			0x8000, 0x100, 0x100 / l->unit);
		a = seg_lfh_block(&s, &lfh, 0, 0);
		b = seg_lfh_block(&s, &lfh, 3, 7);
		c = seg_lfh_block(&s, &lfh, 4, 0x8000);
		d = seg_lfh_block(&s, &lfh, lfh.count - 1, 0x50);
		e = seg_lfh_block(&s, &other, 9, 2);
		seg_walk(&s);
		assert_int_equal(s.walk.broken_count, 0);
		assert_int_equal(s.nt.segment_keys.lfh, s.lfh_key);
		assert_int_equal(s.walk.block_count, 5);
		assert_block(&s, 0, a, 0x50, 0, 0);
		assert_block(&s, 1, b, 0x50 - 7, 7, 0);
		assert_block(&s, 2, c, 0x50 - 1, 1, 0);
		assert_block(&s, 3, d, 0, 0x50, 0);
		assert_block(&s, 4, e, 0x100 - 2, 2, 0);
		seg_release(&s);
	}
}

/* The owner's bucket helps, but sizes that fill their subsegments are enough. */
TEST(the_lfh_key_is_found_without_knowing_buckets)
{
	EACH_LAYOUT(l)
	{
		struct fake_segment s;
		uint64_t at;

		seg_init(&s, l);
		at = seg_segment(&s, FAKE_HEAP, 0);
		for (unsigned i = 0; i < 6; i++) {
			unsigned bytes = i & 1 ? 0x4000 : 0x2000;
			uint64_t addr = seg_range(
				&s, at, 12, l->first_index + 4 * i, bytes >> 12, 11, 0, false);
			struct fake_lfh lfh = seg_lfh(&s, addr, bytes, 0x30 + 0x20 * i, 200);

			seg_lfh_block(&s, &lfh, 2 * i, 0);
			seg_lfh_block(&s, &lfh, 2 * i + 1, 5 + i);
		}
		seg_walk(&s);
		assert_int_equal(s.walk.broken_count, 0);
		assert_int_equal(s.nt.segment_keys.lfh, s.lfh_key);
		assert_int_equal(s.walk.block_count, 12);
		seg_release(&s);
	}
}

/* From 26100 on the mask is made from all bits of the address. */
TEST(the_lfh_key_is_found_with_either_mask)
{
	for (unsigned i = 0; i < 2; i++) {
		struct fake_segment s;
		uint64_t at;

		seg_init(&s, &fake_22000_x64);
		s.is_wide = i;
		s.process.os_build = 22000;
		for (unsigned k = 0; k < 4; k++) {
			struct fake_lfh lfh;

			s.segment = FAKE_SEGMENTS + ((uint64_t)k << 33);
			at = seg_segment(&s, FAKE_HEAP, 0);
			lfh = seg_lfh(&s, seg_range(&s, at, 12, 2, 2, 11, 0, false), 0x2000,
				0x40 + 0x20 * k, 4 + 2 * k);
			seg_lfh_block(&s, &lfh, k, 3);
		}
		seg_walk(&s);
		assert_int_equal(s.walk.broken_count, 0);
		assert_int_equal(s.walk.block_count, 4);
		assert_int_equal(s.nt.segment_keys.lfh, s.lfh_key);
		assert_int_equal(s.nt.segment_keys.is_wide, i);
		seg_release(&s);
	}
}

TEST(an_lfh_subsegment_in_a_vs_chunk_is_no_block_but_its_blocks_are)
{
	EACH_LAYOUT(l)
	{
		struct fake_segment s;
		struct fake_vs vs;
		struct fake_lfh lfh;
		uint64_t at, a, b, in;

		seg_init(&s, l);
		at = seg_segment(&s, FAKE_HEAP, 0);
		vs = seg_vs(&s, FAKE_HEAP, seg_range(&s, at, 12, l->first_index, 2, 15, 0, false));
		a = seg_chunk(&s, &vs, 0x100, true, 0);
		in = seg_chunk(&s, &vs, 0x800, true, 0x2000 | 0x10);
		seg_vs_end(&s, &vs, true);
		lfh = seg_lfh(&s, in, 0x800 - l->v_header - 0x10, 0x30, 0x30 / l->unit);
		b = seg_lfh_block(&s, &lfh, 5, 0);
		seg_walk(&s);
		assert_int_equal(s.walk.broken_count, 0);
		assert_int_equal(s.walk.block_count, 2);
		assert_block(&s, 0, a, 0x100 - l->v_header, l->v_header, 0);
		assert_block(&s, 1, b, 0x30, 0, 0);
		seg_release(&s);
	}
}

/* Blocks of 0x60 bytes in a page-crossing place, marked live, as many as are withheld. */
TEST(withheld_blocks_are_not_live)
{
	struct fake_segment s;
	struct fake_lfh lfh;
	unsigned crossing = 0, live = 0;
	uint64_t at;

	seg_init(&s, &fake_22000_x64);
	at = seg_segment(&s, FAKE_HEAP, 0);
	lfh = seg_lfh(&s, seg_range(&s, at, 12, 2, 4, 11, 0, false), 0x4000, 0x60, 6);
	for (unsigned k = 0; k < lfh.count; k++) {
		uint64_t addr = seg_lfh_addr(&lfh, k);
		bool crosses = addr / 0x1000 != (addr + 0x5f) / 0x1000;

		if (crosses || k % 3 == 0)
			seg_lfh_block(&s, &lfh, k, 0);
		crossing += crosses;
		live += !crosses && k % 3 == 0;
	}
	assert_true(crossing > 0);
	fake_put(&s.fake, lfh.addr + s.l->l_withheld, crossing, 1);
	seg_walk(&s);
	assert_int_equal(s.walk.broken_count, 0);
	assert_int_equal(s.walk.block_count, live);
	seg_release(&s);
}

/* ---------------------------------------------------------------- large blocks */

static uint64_t large(
	struct fake_segment *s, uint64_t va, unsigned pages, unsigned unused, uint64_t key)
{
	uint64_t node = seg_meta(s, 0x30);

	seg_ptr(s, node + s->l->n_left, key);
	seg_ptr(s, node + s->l->n_right, key);
	seg_ptr(s, node + s->l->n_address, va | unused);
	seg_ptr(s, node + s->l->n_pages, (uint64_t)pages << 12 | 2);
	return node;
}

TEST(large_blocks_hang_on_a_tree_encoded_or_not)
{
	EACH_LAYOUT(l)
	{
		for (unsigned i = 0; i < 4; i++) {
			struct fake_segment s;
			uint64_t tree, key, parents, a, b, c;

			seg_init(&s, l);
			tree = FAKE_HEAP + l->tree;
			key = i & 1 ? tree : 0;
			parents = i & 2 ? key : 0;
			a = large(&s, 0x40000000, 32, 0x10, key);
			b = large(&s, 0x50000000, 40, 0xfff, key);
			c = large(&s, 0x60000000, 48, 0, i & 2 ? 0 : key);
			seg_ptr(&s, tree, b ^ key);
			seg_ptr(&s, tree + l->ptr, (a ^ key) | (key != 0));
			seg_ptr(&s, b + l->n_left, a ^ key);
			seg_ptr(&s, b + l->n_right, c ^ key);
			seg_ptr(&s, a + l->n_parent, (b ^ parents) | 1);
			seg_ptr(&s, c + l->n_parent, b ^ parents);
			seg_walk(&s);
			assert_int_equal(s.walk.broken_count, 0);
			assert_int_equal(s.walk.block_count, 3);
			assert_block(&s, 0, 0x40000000, 32 * 0x1000 - 0x10, 0x10, 0);
			assert_block(&s, 1, 0x50000000, 40 * 0x1000 - 0xfff, 0xfff, 0);
			assert_block(&s, 2, 0x60000000, 48 * 0x1000, 0, 0);
			seg_release(&s);
		}
	}
}

/* ---------------------------------------------------------------- stacks */

/* _SEGMENT_HEAP_EXTRA of the first interceptor and its own unit, at addr. */
static void put_extra(struct fake_segment *s, uint64_t addr, uint64_t record)
{
	fake_put(&s->fake, addr + 2, 0x0101, 2);
	seg_ptr(s, addr + (s->l->bits == 64 ? 0x10 : 8), record);
}

TEST(the_record_of_a_stack_lies_in_the_tail_of_its_block)
{
	EACH_LAYOUT(l)
	{
		struct fake_segment s;
		struct fake_vs vs;
		struct fake_lfh lfh;
		uint64_t at, record, in_vs, in_lfh, range, p = l->bits == 64 ? 0x20 : 0x10;

		seg_init(&s, l);
		record = seg_meta(&s, 0x100);
		at = seg_segment(&s, FAKE_HEAP, 0);
		vs = seg_vs(&s, FAKE_HEAP, seg_range(&s, at, 12, l->first_index, 1, 15, 0, false));
		in_vs = seg_chunk(&s, &vs, 0x100, true, 0x4000 | 0x60);
		put_extra(&s, in_vs - l->v_header + 0x100 - 0x60, record);
		seg_vs_end(&s, &vs, true);
		range = seg_range(&s, at, 12, l->first_index + 1, 2, 3, 0x205, true);
		/* Behind what looks like it but leads nowhere. */
		put_extra(&s, range + 0x2000 - 0x205 + 5, 0x8888888800000000 & seg_mask(&s));
		put_extra(&s, range + 0x2000 - 0x205 + 5 + 4 * p, record + 8);
		lfh = seg_lfh(&s, seg_range(&s, at, 12, l->first_index + 3, 2, 11, 0, false),
			0x2000, 0x80, 0x80 / l->unit);
		in_lfh = seg_lfh_block(&s, &lfh, 1, 0x4000 | 0x33);
		put_extra(&s, in_lfh + 0x80 - 0x33, record + 16);
		in_lfh = seg_lfh_block(&s, &lfh, 2, 0x4000 | 0x33); /* has none */
		seg_walk(&s);
		assert_int_equal(s.walk.broken_count, 0);
		assert_int_equal(s.walk.block_count, 4);
		assert_block(&s, 0, in_vs, 0x100 - l->v_header - 0x60, l->v_header + 0x60, record);
		assert_block(&s, 1, range, 0x2000 - 0x205, 0x205, record + 8);
		assert_block(&s, 2, in_lfh - 0x80, 0x80 - 0x33, 0x33, record + 16);
		assert_block(&s, 3, in_lfh, 0x80 - 0x33, 0x33, 0);
		seg_release(&s);
	}
}
