#include "tests/unit/t.h"

#include "tests/unit/fake_segment.h"

SEG_TEST(a_heap_is_known_by_the_pointers_back_to_it, ALL)
{
	/* Without these fields the counts are unknown. */
	bool has_counts = l->at.heap.large_reserved;

	seg_ptr(FAKE_HEAP + l->at.heap.total_reserved, 0x30);
	seg_ptr(FAKE_HEAP + l->at.heap.total_reserved + l->ptr, 0x20);
	seg_walk();
	assert_int_equal(seg.walk.heap_count, 1);
	assert_string_equal(seg.walk.heaps[0].kind, "segment");
	assert_string_equal(seg.walk.heaps[0].layout, l->name);
	assert_int_equal(seg.walk.heaps[0].bits, l->bits);
	assert_int_equal(seg.walk.heaps[0].reserved_bytes, has_counts ? 0x30000 : 0);
	assert_int_equal(seg.walk.heaps[0].committed_bytes, has_counts ? 0x20000 : 0);
	assert_false(seg.walk.heaps[0].unwalked);
	assert_int_equal(seg.walk.block_count, 0);
	assert_int_equal(seg.walk.broken_count, 0);
}

/* We don't know whether a real heap's second context points to the front ends. A pointer to another
 * place is reported and costs nothing. */
SEG_TIMES(contexts_need_not_be_as_expected_for_a_heap_to_be_walked, ALL, 4)
{
	uint64_t context, range;

	if (!l->at.context.bytes)
		return;
	context = seg_context(FAKE_HEAP, 1);
	range = seg_range(seg_segment(FAKE_HEAP, 0), 12, l->first_index, 1, 3, 0x10, false);
	if (i == 0)
		seg_ptr(context + l->at.context.lfh, 0);
	if (i == 0)
		seg_ptr(context + l->at.context.vs, 0);
	if (i == 1)
		seg_ptr(context + l->at.context.heap, FAKE_HEAP + 8);
	if (i == 2)
		seg_ptr(context + l->at.context.vs, FAKE_HEAP + 8);
	if (i == 3)
		seg_ptr(seg_context(FAKE_HEAP, 0) + l->at.context.lfh, 0x1230);
	seg_walk();
	assert_false(seg.walk.heaps[0].unwalked);
	assert_string_equal(seg.walk.heaps[0].layout, l->name);
	assert_int_equal(seg.walk.block_count, 1);
	assert_block(0, range, 0x1000 - 0x10, 0x10, 0);
	assert_int_equal(seg.walk.broken_count, 0);
	assert_int_equal(seg.walk.doubt_count, i != 0);
}

SEG_TEST(a_heap_of_no_known_layout_is_listed_as_unwalked, ALL)
{
	for (uint64_t at = 0x20; at < 0x1000; at += 8)
		fake_write(FAKE_HEAP + at, 0, 8);
	seg_walk();
	assert_int_equal(seg.walk.heap_count, 1);
	assert_true(seg.walk.heaps[0].unwalked);
}

SEG_TIMES(contents_distinguish_layouts_of_any_build, BUILD_26100 | BUILD_22000, 4)
{
	static const uint32_t builds[4] = {0, 22000, 26100, 99999};

	seg.process.os_build = builds[i];
	seg_range(seg_segment(FAKE_HEAP, 0), 12, 2, 3, 3, 0, false);
	seg_walk();
	assert_string_equal(seg.walk.heaps[0].layout, l->name);
	assert_int_equal(seg.walk.block_count, 1);
	assert_int_equal(seg.walk.blocks[0].requested_bytes, 0x3000);
}

/* ---------------------------------------------------------------- VS */

SEG_TIMES(chunks_of_a_vs_subsegment_are_blocks_with_either_meaning_of_its_size, ALL, 2)
{
	unsigned h = l->at.chunk.bytes;
	struct fake_vs vs;
	uint64_t at, a, b, c;

	at = seg_segment(FAKE_HEAP, 0);
	vs = seg_vs(FAKE_HEAP, seg_range(at, 12, l->first_index, 1, 15, 0, false));
	a = seg_chunk(&vs, 0x100, true, 0);
	seg_chunk(&vs, 0x40, false, 0);
	b = seg_chunk(&vs, 0x200, true, 13); /* 13 unused bytes */
	c = seg_chunk(&vs, 0x300, true, 0x8041); /* 1 unused byte */
	seg_chunk(&vs,
		0x1000 - 0x640 - l->at.vs_subsegment.first_chunk - l->at.vs_subsegment.first_chunk,
		false, 0);
	/* A chunk as large as the data before the first chunk. */
	seg_chunk(&vs, l->at.vs_subsegment.first_chunk, true, 0);
	seg_vs_end(&vs, i);
	seg_walk();
	assert_int_equal(seg.walk.broken_count, 0);
	assert_int_equal(seg.walk.block_count, 4);
	assert_block(0, a, 0x100 - h, h, 0);
	assert_block(1, b, 0x200 - h - 13, h + 13, 0);
	assert_block(2, c, 0x300 - h - 1, h + 1, 0);
	assert_block(3,
		at + ((uint64_t)l->first_index + 1) * 0x1000 - l->at.vs_subsegment.first_chunk + h,
		l->at.vs_subsegment.first_chunk - h, h, 0);
}

SEG_TEST(a_chunk_that_is_to_be_skipped_is_no_block, BUILD_22000)
{
	struct fake_vs vs;
	uint64_t at, addr;

	at = seg_segment(FAKE_HEAP, 0);
	vs = seg_vs(FAKE_HEAP, seg_range(at, 12, 2, 1, 15, 0, false));
	addr = seg_chunk(&vs, 0x100, true, 0);
	fake_write(addr - 8 + 1, 2, 1);
	seg_chunk(&vs, 0x80, true, 0);
	seg_vs_end(&vs, true);
	seg_walk();
	assert_int_equal(seg.walk.block_count, 1);
	assert_int_equal(seg.walk.broken_count, 0);
}

SEG_TIMES(the_heap_key_is_found_whatever_page_segments_are_signed_with, ALL, 4)
{
	struct fake_vs vs;
	uint64_t at;

	seg.constant = i & 1 ? 0 : seg.constant;
	seg.process.os_build = i & 2 && l->bits == 64 ? 26100 : l->build;
	at = seg_segment(FAKE_HEAP, 0);
	vs = seg_vs(FAKE_HEAP, seg_range(at, 12, l->first_index, 1, 15, 0, false));
	for (unsigned k = 0; k < 8; k++)
		seg_chunk(&vs, 0x20 + 0x10 * k, k % 3, 0);
	seg_vs_end(&vs, true);
	seg_walk();
	assert_int_equal(seg.walk.broken_count, 0);
	assert_int_equal(seg.walk.block_count, 5);
	assert_int_equal(seg.nt.segment_keys.heap, seg.heap_key);
}

SEG_TEST(a_vs_subsegment_that_is_not_listed_is_noted, BUILD_26100 | BUILD_19041)
{
	struct fake_vs vs;
	uint64_t at;

	at = seg_segment(FAKE_HEAP, 0);
	vs = seg_vs(FAKE_HEAP, seg_range(at, 12, 2, 1, 15, 0, false));
	seg_chunk(&vs, 0x100, true, 0);
	seg_vs_end(&vs, true);
	seg_list_init(seg_vs_list(FAKE_HEAP), true);
	seg_walk();
	assert_int_equal(seg.walk.block_count, 1);
	assert_int_equal(seg.walk.broken_count, 1);
}

/* ---------------------------------------------------------------- LFH */

SEG_TEST(bitmaps_of_lfh_subsegments_show_live_blocks, ALL)
{
	struct fake_lfh lfh, other;
	uint64_t at, a, b, c, d, e;

	at = seg_segment(FAKE_HEAP, 0);
	lfh = seg_lfh(
		seg_range(at, 12, l->first_index, 4, 11, 0, false), 0x4000, 0x50, 0x50 / l->unit);
	other = seg_lfh(seg_range(at, 12, l->first_index + 4, 8, 11, 0, false), 0x8000, 0x100,
		0x100 / l->unit);
	a = seg_lfh_block(&lfh, 0, 0);
	b = seg_lfh_block(&lfh, 3, 7);
	c = seg_lfh_block(&lfh, 4, 0x8000);
	d = seg_lfh_block(&lfh, lfh.count - 1, 0x50);
	e = seg_lfh_block(&other, 9, 2);
	seg_walk();
	assert_int_equal(seg.walk.broken_count, 0);
	assert_int_equal(seg.nt.segment_keys.lfh, seg.lfh_key);
	assert_int_equal(seg.walk.block_count, 5);
	assert_block(0, a, 0x50, 0, 0);
	assert_block(1, b, 0x50 - 7, 7, 0);
	assert_block(2, c, 0x50 - 1, 1, 0);
	assert_block(3, d, 0, 0x50, 0);
	assert_block(4, e, 0x100 - 2, 2, 0);
}

/* The forms differ if some busy blocks are fully used: equal numbers of bits lie at other
 * positions. */
SEG_TIMES(the_form_of_bitmaps_is_found_whatever_the_build, BUILD_26100 | BUILD_22000, 2)
{
	struct fake_lfh lfh;
	uint64_t at = seg_segment(FAKE_HEAP, 0), total = 0;

	seg.is_halved = i;
	for (unsigned k = 0; k < 3; k++) {
		lfh = seg_lfh(seg_range(at, 12, l->first_index + 4 * k, 4, 11, 0, false), 0x4000,
			0x50, 0x50 / l->unit);
		for (unsigned block = 0; block < 20 + 20 * k; block++)
			seg_lfh_block(&lfh, block, block % 3 ? 5 : 0);
	}
	seg_walk();
	assert_int_equal(seg.walk.broken_count, 0);
	assert_int_equal(seg.nt.segment_keys.is_halved, i);
	assert_int_equal(seg.walk.block_count, 20 + 40 + 60);
	for (size_t block = 0; block < seg.walk.block_count; block++)
		total += seg.walk.blocks[block].requested_bytes;
	assert_int_equal(total, 120 * 0x50 - (13 + 26 + 40) * 5);
}

/* Later builds of 26100 store the slot's distance from its context. */
SEG_TIMES(slots_name_their_context_by_pointer_or_distance, BUILD_26100, 3)
{
	const uint64_t context = FAKE_HEAP + l->at.heap.vs, slot = context + FAKE_SLOT * 64;
	const uint64_t names[] = {context, slot - context, slot};
	struct fake_vs vs =
		seg_vs(FAKE_HEAP, seg_range(seg_segment(FAKE_HEAP, 0), 12, 2, 1, 15, 0, false));

	seg_ptr(slot + l->at.vs_slot.context, names[i]);
	seg_chunk(&vs, 0x1000 - l->at.vs_subsegment.first_chunk, true, 0);
	seg_vs_end(&vs, true);
	seg_walk();
	assert_int_equal(seg.walk.block_count, 1);
	assert_int_equal(seg.walk.broken_count > 0, i == 2);
}

/* Since 26100 the mask includes all bits of the address. */
SEG_TIMES(the_lfh_key_is_found_with_either_mask, BUILD_22000, 2)
{
	uint64_t at;

	seg.is_wide = i;
	seg.process.os_build = 22000;
	for (unsigned k = 0; k < 4; k++) {
		struct fake_lfh lfh;

		seg.segment = FAKE_SEGMENTS + ((uint64_t)k << 33);
		at = seg_segment(FAKE_HEAP, 0);
		lfh = seg_lfh(
			seg_range(at, 12, 2, 2, 11, 0, false), 0x2000, 0x40 + 0x20 * k, 4 + 2 * k);
		seg_lfh_block(&lfh, k, 3);
	}
	seg_walk();
	assert_int_equal(seg.walk.broken_count, 0);
	assert_int_equal(seg.walk.block_count, 4);
	assert_int_equal(seg.nt.segment_keys.lfh, seg.lfh_key);
	assert_int_equal(seg.nt.segment_keys.is_wide, i);
}

/* Makes blocks of 0x60 bytes that cross a page and are marked live, as many as are withheld. */
SEG_TEST(withheld_blocks_are_not_live, BUILD_22000)
{
	struct fake_lfh lfh;
	unsigned crossing = 0, live = 0;
	uint64_t at;

	at = seg_segment(FAKE_HEAP, 0);
	lfh = seg_lfh(seg_range(at, 12, 2, 4, 11, 0, false), 0x4000, 0x60, 6);
	for (unsigned k = 0; k < lfh.count; k++) {
		uint64_t addr = seg_lfh_addr(&lfh, k);
		bool crosses = addr / 0x1000 != (addr + 0x5f) / 0x1000;

		if (crosses || k % 3 == 0)
			seg_lfh_block(&lfh, k, 0);
		crossing += crosses;
		live += !crosses && k % 3 == 0;
	}
	assert_true(crossing > 0);
	fake_write(lfh.addr + seg.l->at.subsegment.withheld, crossing, 1);
	seg_walk();
	assert_int_equal(seg.walk.broken_count, 0);
	assert_int_equal(seg.walk.block_count, live);
}

/* ---------------------------------------------------------------- large blocks */

static uint64_t large(uint64_t va, unsigned pages, unsigned unused, uint64_t key)
{
	uint64_t node = seg_meta(0x30);

	seg_ptr(node, key);
	seg_ptr(node + seg.l->ptr, key);
	seg_ptr(node + seg.l->at.large.address, va | unused);
	seg_ptr(node + seg.l->at.large.pages, (uint64_t)pages << 12 | 2);
	return node;
}

SEG_TIMES(large_blocks_hang_on_a_tree_encoded_or_not, ALL, 4)
{
	uint64_t tree, key, parents, a, b, c;

	tree = FAKE_HEAP + l->at.heap.large_tree;
	key = i & 1 ? tree : 0;
	parents = i & 2 ? key : 0;
	a = large(0x40000000, 32, 0x10, key);
	b = large(0x50000000, 40, 0xfff, key);
	c = large(0x60000000, 48, 0, i & 2 ? 0 : key);
	seg_ptr(tree, b ^ key);
	seg_ptr(tree + l->ptr, (a ^ key) | (key != 0));
	seg_ptr(b, a ^ key);
	seg_ptr(b + l->ptr, c ^ key);
	seg_ptr(a + 2ull * l->ptr, (b ^ parents) | 1);
	seg_ptr(c + 2ull * l->ptr, b ^ parents);
	seg_walk();
	assert_int_equal(seg.walk.broken_count, 0);
	assert_int_equal(seg.walk.block_count, 3);
	assert_block(0, 0x40000000, 32 * 0x1000 - 0x10, 0x10, 0);
	assert_block(1, 0x50000000, 40 * 0x1000 - 0xfff, 0xfff, 0);
	assert_block(2, 0x60000000, 48 * 0x1000, 0, 0);
}

/* ---------------------------------------------------------------- stacks */

/* Writes a _SEGMENT_HEAP_EXTRA of the first interceptor, with the interceptor's unit. */
static void write_extra(uint64_t addr, uint64_t record)
{
	fake_write(addr + 2, 0x0101, 2);
	seg_ptr(addr + (seg.l->bits == 64 ? 0x10 : 8), record);
}

SEG_TEST(the_record_of_a_stack_lies_in_the_tail_of_its_block, ALL)
{
	struct fake_vs vs;
	struct fake_lfh lfh;
	uint64_t at, record, in_vs, in_lfh, range, p = l->bits == 64 ? 0x20 : 0x10;

	record = seg_meta(0x100);
	at = seg_segment(FAKE_HEAP, 0);
	vs = seg_vs(FAKE_HEAP, seg_range(at, 12, l->first_index, 1, 15, 0, false));
	in_vs = seg_chunk(&vs, 0x100, true, 0x4000 | 0x60);
	write_extra(in_vs - l->at.chunk.bytes + 0x100 - 0x60, record);
	seg_vs_end(&vs, true);
	range = seg_range(at, 12, l->first_index + 1, 2, 3, 0x205, true);
	/* The valid extra follows a similar pattern that leads nowhere. */
	write_extra(range + 0x2000 - 0x205 + 5, 0x8888888800000000 & seg_mask());
	write_extra(range + 0x2000 - 0x205 + 5 + 4 * p, record + 8);
	lfh = seg_lfh(seg_range(at, 12, l->first_index + 3, 2, 11, 0, false), 0x2000, 0x80,
		0x80 / l->unit);
	in_lfh = seg_lfh_block(&lfh, 1, 0x4000 | 0x33);
	write_extra(in_lfh + 0x80 - 0x33, record + 16);
	in_lfh = seg_lfh_block(&lfh, 2, 0x4000 | 0x33); /* a block without an extra */
	seg_walk();
	assert_int_equal(seg.walk.broken_count, 0);
	assert_int_equal(seg.walk.block_count, 4);
	assert_block(0, in_vs, 0x100 - l->at.chunk.bytes - 0x60, l->at.chunk.bytes + 0x60, record);
	assert_block(1, range, 0x2000 - 0x205, 0x205, record + 8);
	assert_block(2, in_lfh - 0x80, 0x80 - 0x33, 0x33, record + 16);
	assert_block(3, in_lfh, 0x80 - 0x33, 0x33, 0);
}
