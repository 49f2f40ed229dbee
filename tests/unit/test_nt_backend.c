/* The walker of NT heaps' back end, on small made heaps: each rule, for each layout. */
#include "tests/unit/t.h"

#include "tests/unit/nt_made.h"

#define X64 "nt 10.0.17763-22000 x64"
#define X86 "nt 6.1.7600-7601 x86"

/* A heap of 4 pages of 16, with a few blocks. */
static void make_plain(struct made *made)
{
	made_heap(made, 0x4000, 0x10000);
	made_busy(made, 0x40, 8);
	made_busy(made, 0x30, 0x10);
	made_block(made, 0x100, 0, 0);
	made_busy(made, 0x2000, 0x17);
	made_busy(made, 0x20, 0x20); /* nothing was asked for */
}

/* ---------------------------------------------------------------- sound heaps */

static void assert_plain(struct made *made)
{
	const struct heap *heap;

	make_plain(made);
	made_end(made, MADE_HEAP + 0x4000, 0xc000);
	made_walk(made);
	made_assert_broken(made, 0, NULL);
	made_assert_doubt(made, 0, NULL);
	made_assert_blocks(made);
	assert_int_equal(made->walk.heap_count, 1);
	heap = &made->walk.heaps[0];
	assert_int_equal(heap->addr, MADE_HEAP);
	assert_int_equal(heap->bits, made->row->bits);
	assert_string_equal(heap->kind, "nt");
	assert_string_equal(heap->layout, made->row->name);
	assert_false(heap->unwalked);
	assert_int_equal(heap->committed_bytes, 0x4000);
	assert_int_equal(heap->reserved_bytes, 0x10000);
}

TEST(busy_blocks_are_found_in_every_layout)
{
	made_each_layout(assert_plain);
}

/* The byte that is a checksum elsewhere is a tag's number then. */
static void assert_without_a_code(struct made *made)
{
	uint64_t entry;

	made_heap(made, 0x1000, 0x1000);
	made->key = 0;
	fake_put(&made->fake, MADE_HEAP + made->row->encode_mask, 0, 4);
	made_header(made, MADE_HEAP, made->at - MADE_HEAP, 0, NT_BLOCK_BUSY, NT_UNUSED_OWN);
	entry = made->at;
	made_busy(made, 0x80, 8);
	fake_put(&made->fake, entry + made->common->entry_coded + 3, 0x5a, 1);
	made_block(made, MADE_HEAP + 0x1000 - made->at, 0, 0);
	made_walk(made);
	made_assert_broken(made, 0, NULL);
	made_assert_blocks(made);
}

TEST(headers_are_decoded_only_where_the_heap_says_so)
{
	made_each_layout(assert_without_a_code);
}

static void assert_round_holes(struct made *made)
{
	uint64_t second = MADE_HEAP + 0x9000;

	make_plain(made);
	made_end(made, MADE_HEAP + 0x4000, 0x5000);
	fake_map(&made->fake, second, 0x2000);
	made_busy(made, 0x50, 9);
	made_end(made, second + 0x2000, 0x5000);
	made_walk(made);
	made_assert_broken(made, 0, NULL);
	made_assert_blocks(made);
	assert_int_equal(made->walk.heaps[0].committed_bytes, 0x6000);
}

TEST(the_walk_goes_on_behind_what_is_not_committed)
{
	made_each_layout(assert_round_holes);
}

static void assert_in_all_segments(struct made *made)
{
	uint64_t bytes = (made->common->segment_bytes + 15u) / 16 * 16;

	make_plain(made);
	made_end(made, MADE_HEAP + 0x4000, 0xc000);
	for (uint64_t addr = MADE_HEAP + 0x100000; addr < MADE_HEAP + 0x400000; addr += 0x100000) {
		made_segment(made, addr, 0x3000, 0x100000, bytes);
		made_busy(made, 0x1000, 8);
		made_end(made, addr + 0x3000, 0x100000 - 0x3000);
	}
	made_walk(made);
	made_assert_broken(made, 0, NULL);
	made_assert_blocks(made);
	assert_int_equal(made->walk.heaps[0].committed_bytes, 0x4000 + 3 * 0x3000);
	assert_int_equal(made->walk.heaps[0].reserved_bytes, 0x10000 + 3 * 0x100000);
}

/* As real segments are that have no room left: the last block describes a range of no size. */
static void assert_wholly_committed(struct made *made)
{
	uint64_t bytes = (made->common->segment_bytes + 15u) / 16 * 16, second = 0x2000000;

	make_plain(made);
	made_end(made, MADE_HEAP + 0x4000, 0);
	fake_put(&made->fake, MADE_HEAP + made->common->segment_pages, 4, 4);
	made_put_ptr(made, MADE_HEAP + made->common->segment_end, MADE_HEAP + 0x4000);
	made_segment(made, second, 0x30000, 0x30000, bytes);
	for (int i = 0; i < 20; i++)
		made_busy(made, 0x2000, 8);
	made_end(made, second + 0x30000, 0);
	made_walk(made);
	made_assert_broken(made, 0, NULL);
	made_assert_doubt(made, 0, NULL);
	made_assert_blocks(made);
	assert_int_equal(made->walk.heaps[0].committed_bytes, 0x34000);
	assert_int_equal(made->walk.heaps[0].reserved_bytes, 0x34000);
}

TEST(a_segment_may_be_committed_up_to_its_end)
{
	made_each_layout(assert_wholly_committed);
}

/* 0 in the first segment; 1 for the first 64 KB of another, 2 for the next. */
TEST(a_block_that_says_to_be_elsewhere_in_its_segment_is_in_doubt)
{
	static const struct {
		uint64_t at;
		uint8_t is, said;
	} blocks[] = {{0, 0, 1}, {0x2000, 1, 0}, {0x12000, 2, 1}};

	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
		struct made *made = made_new(X64);
		uint64_t second = 0x2000000, entry, byte;

		make_plain(made);
		entry = made_busy(made, 0x40, 8);
		made_end(made, MADE_HEAP + 0x4000, 0xc000);
		made_segment(made, second, 0x30000, 0x30000, 0x70);
		while (made->at < second + 0x20000) {
			uint64_t next = made_busy(made, 0x1000, 8);

			entry = blocks[i].at && next <= second + blocks[i].at ? next : entry;
		}
		made_end(made, second + 0x30000, 0);
		byte = entry + made->common->entry_coded + NT_ENTRY_SEGMENT / 8;
		assert_int_equal(fake_get(&made->fake, byte, 1), blocks[i].is);
		fake_put(&made->fake, byte, blocks[i].said, 1);
		made_walk(made);
		made_assert_broken(made, 0, NULL);
		made_assert_doubt(made, 1, "block of another segment");
		assert_int_equal(made->walk.doubt_addr, entry);
		made_assert_blocks(made);
		made_free(made);
	}
}

TEST(all_segments_of_the_list_are_walked)
{
	made_each_layout(assert_in_all_segments);
}

/* UnusedBytes 1: the _HEAP's own entry in memory of Windows 7, and what lies right behind it. */
TEST(windows_own_blocks_are_no_blocks_of_the_program)
{
	struct made *made = made_new(X64);

	made_heap(made, 0x1000, 0x4000);
	made_block(made, 0x230, NT_BLOCK_BUSY, NT_UNUSED_OWN);
	made_block(made, 0x40, NT_BLOCK_BUSY, NT_UNUSED_OWN);
	made_busy(made, 0x40, 8);
	made_block(made, 0x100, NT_BLOCK_BUSY | NT_BLOCK_INTERNAL, 8);
	made_busy(made, 0x40, 8);
	made_end(made, MADE_HEAP + 0x1000, 0x3000);
	made_walk(made);
	made_assert_broken(made, 0, NULL);
	made_assert_doubt(made, 0, NULL);
	made_assert_blocks(made);
	made_free(made);
}

TEST(a_block_that_says_to_be_windows_own_elsewhere_is_in_doubt)
{
	struct made *made = made_new(X64);
	uint64_t entry;

	make_plain(made);
	entry = made_block(made, 0x40, NT_BLOCK_BUSY, NT_UNUSED_OWN);
	made_end(made, MADE_HEAP + 0x4000, 0xc000);
	made_walk(made);
	made_assert_broken(made, 0, NULL);
	made_assert_doubt(made, 1, "block that is Windows' own, as it says");
	assert_int_equal(made->walk.doubt_addr, entry);
	made_assert_blocks(made);
	made_free(made);
}

/* What says to be the last block hides none that others follow. */
static void assert_last_block(struct made *made)
{
	uint64_t entry;

	make_plain(made);
	entry = made_block(made, 0x40, NT_BLOCK_BUSY, NT_UNUSED_END);
	made_expect(made, entry + made->common->entry_bytes, 0x40 - 8, 8, 0);
	made_busy(made, 0x50, 8);
	made_end(made, MADE_HEAP + 0x4000, 0xc000);
	made_walk(made);
	made_assert_broken(made, 1, "block with an impossible number of unused bytes");
	assert_int_equal(made->walk.broken_addr, entry);
	made_assert_blocks(made);
}

TEST(a_last_block_that_is_not_the_last_is_taken_and_counted)
{
	made_each_layout(assert_last_block);
}

TEST(a_last_block_before_memory_that_is_not_there_is_one)
{
	struct made *made = made_new(X64);

	make_plain(made);
	made_end(made, MADE_HEAP + 0x4000, 0xc000);
	made_list_init(made, MADE_HEAP + made->common->segment_holes);
	made_walk(made);
	made_assert_broken(made, 0, NULL);
	made_assert_missing(made, 1, "heap memory");
	made_assert_doubt(made, 1, "uncommitted ranges of another size than the segment says");
	made_assert_blocks(made);
	made_free(made);
}

static void assert_larger_hole(struct made *made)
{
	uint64_t second = MADE_HEAP + 0x9000;

	make_plain(made);
	made_end(made, MADE_HEAP + 0x4000, 0x5000);
	fake_map(&made->fake, second, 0x2000);
	made_block(made, 0x1000, NT_BLOCK_BUSY, 8);
	made_busy(made, 0x50, 9);
	made_end(made, second + 0x2000, 0x5000);
	made_put_ptr(made, MADE_HEAP + 0x4000 - made->common->hole_bytes + made->common->hole_size,
		0x6000);
	made_walk(made);
	made_assert_doubt(made, 1, "uncommitted ranges of another size than the segment says");
	made_assert_blocks(made);
}

TEST(a_hole_that_grew_is_in_doubt)
{
	made_each_layout(assert_larger_hole);
}

/* Blocks before the first or behind the last are seen by nobody. */
static void assert_ends(struct made *made)
{
	const struct nt_common_layout *c = made->common;
	uint64_t first;

	make_plain(made);
	made_end(made, MADE_HEAP + 0x4000, 0xc000);
	first = fake_get(&made->fake, MADE_HEAP + c->segment_first, 4);
	made_put_ptr(made, MADE_HEAP + c->segment_first, first + 0x40);
	made_walk(made);
	made_assert_broken(made, 0, NULL);
	made_assert_doubt(made, 1, "segment whose first block is not where its own entry ends");
	assert_int_equal(made->walk.block_count, made->expected_count - 1);
}

TEST(a_first_block_elsewhere_than_behind_the_segment_is_in_doubt)
{
	made_each_layout(assert_ends);
}

TEST(a_segment_that_ends_before_its_end_is_in_doubt)
{
	struct made *made = made_new(X64);
	uint64_t last;

	made_heap(made, 0x4000, 0x4000);
	made_busy(made, 0x40, 8);
	made_block(made, 0x1000, 0, 0);
	last = made->at;
	made_block(made, MADE_HEAP + 0x4000 - made->at, NT_BLOCK_BUSY, 8);
	made_put_ptr(made, MADE_HEAP + made->common->segment_end, last);
	made_walk(made);
	made_assert_broken(made, 0, NULL);
	made_assert_doubt(made, 1, "segment whose blocks do not go up to its end");
	made_assert_blocks(made);
	made_free(made);
}

/* ---------------------------------------------------------------- large blocks */

static uint64_t put_large(
	struct made *made, uint64_t addr, uint64_t commit, uint64_t reserve, uint16_t unused)
{
	const struct nt_common_layout *c = made->common;

	fake_map(&made->fake, addr, commit);
	made_put_ptr(made, addr + c->virtual_commit, commit);
	made_put_ptr(made, addr + c->virtual_reserve, reserve);
	made_header(made, addr + c->virtual_entry, (uint64_t)unused * c->unit, 0,
		NT_BLOCK_BUSY | NT_BLOCK_INTERNAL, 4);
	made_list_add(made, MADE_HEAP + made->row->virtual_list, addr);
	return addr;
}

static void assert_large(struct made *made)
{
	const struct nt_common_layout *c = made->common;
	uint64_t addr;

	make_plain(made);
	made_end(made, MADE_HEAP + 0x4000, 0xc000);
	put_large(made, 0x2000000, 0x101000, 0x101000, 0xe3f);
	made_expect(made, 0x2000000 + c->virtual_bytes, 0x101000 - 0xe3f, 0xe3f, 0);
	made->process.global_flag = NT_FLAG_UST;
	addr = put_large(made, 0x3000000, 0x90000, 0x100000, 4);
	made_put_ptr(made, addr + c->virtual_bytes, 0xabcdef0);
	fake_put(&made->fake, addr + c->virtual_entry + c->prefix_header,
		0x0502000000000001 | (uint64_t)0x777 << 32, 8);
	made_expect(made, addr + (made->row->bits == 64 ? 0x60 : 0x30), 0x90000 - 0x777, 0x777,
		0xabcdef0);
	made_walk(made);
	made_assert_broken(made, 0, NULL);
	made_assert_blocks(made);
	assert_int_equal(made->walk.heaps[0].committed_bytes, 0x4000 + 0x101000 + 0x90000);
	assert_int_equal(made->walk.heaps[0].reserved_bytes, 0x10000 + 0x101000 + 0x100000);
}

TEST(a_large_block_whose_prefix_is_damaged_is_counted)
{
	static const uint64_t wrong[] = {
		0x0502077700000000, /* FunctionIndex */
		0x0502000700000001, 0x0502ffff00000001, /* length */
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct made *made = made_new(X64);
		const struct nt_common_layout *c = made->common;
		uint64_t addr;

		make_plain(made);
		made_end(made, MADE_HEAP + 0x4000, 0xc000);
		made->process.global_flag = NT_FLAG_UST;
		addr = put_large(made, 0x2000000, 0x1000, 0x1000, 0x50);
		fake_put(&made->fake, addr + c->virtual_entry + c->prefix_header, wrong[i], 8);
		made_expect(made, addr + c->virtual_bytes, 0x1000 - 0x30 - 8, 8, 0);
		made_walk(made);
		made_assert_broken(made, 1, "large block with a damaged prefix");
		assert_int_equal(made->walk.block_count, made->expected_count);
		made_free(made);
	}
}

TEST(a_large_block_that_has_more_than_it_says_is_in_doubt)
{
	struct made *made = made_new(X64);

	make_plain(made);
	made_end(made, MADE_HEAP + 0x4000, 0xc000);
	put_large(made, 0x2000000, 0x4000, 0x4000, 0x50);
	made_put_ptr(made, 0x2000000 + made->common->virtual_commit, 0x2000);
	made_expect(made, 0x2000040, 0x2000 - 0x50, 0x50, 0);
	made_walk(made);
	made_assert_broken(made, 0, NULL);
	made_assert_doubt(made, 1, "large block of less than is committed for it");
	made_assert_blocks(made);
	made_free(made);
}

TEST(a_large_block_is_no_larger_than_what_is_committed)
{
	struct made *made = made_new(X64);

	make_plain(made);
	made_end(made, MADE_HEAP + 0x4000, 0xc000);
	put_large(made, 0x2000000, 0x3000, 0x8000, 0x50);
	made_put_ptr(made, 0x2000000 + made->common->virtual_commit, 0x8000);
	made_expect(made, 0x2000040, 0x3000 - 0x50, 0x50, 0);
	made_walk(made);
	made_assert_broken(made, 1, "large block that is not all there");
	made_assert_blocks(made);
	made_free(made);
}

TEST(large_blocks_have_memory_of_their_own)
{
	made_each_layout(assert_large);
}

TEST(a_large_block_that_cannot_be_is_counted_and_left_out)
{
	static const struct {
		uint64_t commit, reserve;
	} wrong[] = {
		{0, 0x1000},
		{0x2000, 0x1000},
		{0x1000, (uint64_t)1 << 63},
		{(uint64_t)1 << 46, (uint64_t)1 << 46},
		{0x3f, 0x1000},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct made *made = made_new(X64);

		make_plain(made);
		made_end(made, MADE_HEAP + 0x4000, 0xc000);
		put_large(made, 0x2000000, 0x1000, 0x1000, 0x50);
		put_large(made, 0x3000000, 0x1000, 0x1000, 0x50);
		made_expect(made, 0x3000040, 0x1000 - 0x50, 0x50, 0);
		made_put_ptr(made, 0x2000000 + made->common->virtual_commit, wrong[i].commit);
		made_put_ptr(made, 0x2000000 + made->common->virtual_reserve, wrong[i].reserve);
		if (wrong[i].commit > 0x1000 && wrong[i].commit <= wrong[i].reserve)
			/* As much of it as there is. */
			made_expect(made, 0x2000040, 0x1000 - 0x50, 0x50, 0);
		made_walk(made);
		made_assert_broken(made, 1, NULL);
		assert_int_equal(made->walk.broken_addr, 0x2000000);
		made_assert_blocks(made);
		made_free(made);
	}
}

/* ---------------------------------------------------------------- locks */

static bool is_busy(struct made *made)
{
	memory_clear(&made->memory);
	return nt_heap_is_busy(&made->memory, &made->process, MADE_HEAP);
}

static void assert_lock(struct made *made)
{
	uint64_t lock = MADE_HEAP + 0xf00;

	made_heap(made, 0x1000, 0x1000);
	assert_false(is_busy(made)); /* a heap may have no lock */
	made_put_ptr(made, MADE_HEAP + made->row->lock, lock);
	assert_false(is_busy(made));
	made_put_ptr(made, lock + made->common->lock_owner, 0x1234);
	assert_true(is_busy(made));
	made_walk(made);
	assert_int_equal(made->walk.busy_count, 1);
	made_put_ptr(made, MADE_HEAP + made->row->lock, 0x66660000);
	assert_false(is_busy(made));
}

TEST(a_heap_is_busy_while_a_thread_has_its_lock)
{
	made_each_layout(assert_lock);
}

/* ---------------------------------------------------------------- layouts */

TEST(without_a_build_number_the_signatures_pick_a_layout_that_reads_all)
{
	for (size_t i = 0; i < nt_layout_count; i++) {
		struct made *made = made_new(nt_layouts[i].name);

		made->process.os_build = 0;
		make_plain(made);
		made_end(made, MADE_HEAP + 0x4000, 0xc000);
		made_walk(made);
		made_assert_broken(made, 0, NULL);
		made_assert_blocks(made);
		assert_true(!strstr(made->walk.heaps[0].layout, "6.1") ==
			    !strstr(nt_layouts[i].name, "6.1"));
		made_free(made);
	}
}

TEST(a_lying_build_number_does_not_outweigh_the_signatures)
{
	struct made *made = made_new(X86);

	made->process.os_build = 19041;
	make_plain(made);
	made_end(made, MADE_HEAP + 0x4000, 0xc000);
	made_walk(made);
	made_assert_blocks(made);
	assert_string_equal(made->walk.heaps[0].layout, X86);
	made_free(made);
}

/* Each of what tells a layout may be damaged: the others do, and it is said. */
static void assert_one_fact_less(struct made *made)
{
	static unsigned fact;
	const struct nt_layout *row = made->row;
	unsigned lost = fact++ % 3;

	make_plain(made);
	made_end(made, MADE_HEAP + 0x4000, 0xc000);
	if (lost == 0)
		fake_put(&made->fake, MADE_HEAP + row->signature, 0, 4);
	else if (lost == 1)
		fake_put(&made->fake, MADE_HEAP + row->valid_bytes, 0x777, 2);
	else
		made->process.os_build = 0;
	made_walk(made);
	assert_false(made->walk.heaps[0].unwalked);
	made_assert_blocks(made);
	made_assert_doubt(made, lost < 2,
		lost == 0 ? "heap without its signature" :
		lost == 1 ? "heap of another size than its layout's" :
			    NULL);
}

TEST(a_layout_is_known_by_most_of_what_tells_it)
{
	for (unsigned i = 0; i < 3; i++) {
		made_each_layout(assert_one_fact_less);
	}
}

/* A file may have no more than the first 180h bytes of a heap; a front end says nothing then. */
TEST(the_size_that_a_heap_says_decides_its_layout)
{
	for (size_t i = 0; i < nt_layout_count; i++) {
		const struct nt_layout *row = &nt_layouts[i], *found;
		struct made *made = made_new(row->name);

		fake_map(&made->fake, MADE_HEAP, 0x180);
		fake_put(&made->fake, MADE_HEAP + row->signature, NT_HEAP_OBJECT_SIGNATURE, 4);
		fake_put(&made->fake, MADE_HEAP + row->valid_bytes, row->heap_bytes, 2);
		/* A build that says otherwise does not count; some rows have one size. */
		found = nt_layout_find(&made->memory, row->bits, MADE_HEAP,
			row->first_build == 17763 ? 14393 : 17763);
		assert_non_null(found);
		assert_int_equal(found->heap_bytes, row->heap_bytes);
		assert_int_equal(found->signature, row->signature);
		made_free(made);
	}
}

TEST(a_heap_of_no_known_layout_is_listed_as_unwalked)
{
	struct made *made = made_new(X64);

	make_plain(made);
	fake_put(&made->fake, MADE_HEAP + made->row->signature, 0, 4);
	fake_put(&made->fake, MADE_HEAP + made->row->valid_bytes, 0, 2);
	made_list_init(made, MADE_HEAP + made->row->segment_list);
	made_list_init(made, MADE_HEAP + made->common->segment_link);
	made_walk(made);
	made_assert_broken(made, 1, "heap of no layout that is known");
	assert_int_equal(made->walk.heap_count, 1);
	assert_true(made->walk.heaps[0].unwalked);
	assert_int_equal(made->walk.block_count, 0);
	made_free(made);
}
