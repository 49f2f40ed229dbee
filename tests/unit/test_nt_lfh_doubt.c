/* The low fragmentation heap where it says two things of one: bitmap and headers, subsegment and bitmap. */
#include "tests/unit/t.h"

#include "tests/unit/nt_made_lfh.h"

#define X64 "nt 10.0.17763-22000 x64"
#define X86 "nt 10.0.17763-19041 x86"

TEST(where_there_is_a_bitmap_it_decides_and_headers_that_say_otherwise_are_counted)
{
	for (unsigned count = 1; count < 3; count++) {
		struct made *made = made_new(X64);
		struct made_lfh lfh;
		struct made_container c;

		made_heap(made, MADE_LFH_BYTES, MADE_LFH_BYTES);
		lfh = made_lfh(made);
		c = made_container(&lfh, 0x40, 60);
		for (unsigned i = 0; i < count; i++)
			made_lfh_header(
				&lfh, c.addr, c.addr + c.first + (7 + 9 * i) * c.stride, 0x88);
		made_rest(made, MADE_LFH_BYTES);
		/* Once for all of a container. */
		made_walk_and_assert(made, 1, "LFH block in use that its container has not in use");
		made_free(made);
	}
}

/* Being freed later, or damaged: its stack is an old one, or it is none of the program's. */
TEST(a_block_whose_header_says_free_is_in_doubt)
{
	struct made *made = made_new(X64);
	struct made_lfh lfh;
	struct made_container c;
	uint64_t entry;

	made_heap(made, MADE_LFH_BYTES, MADE_LFH_BYTES);
	lfh = made_lfh(made);
	c = made_container(&lfh, 0x40, 60);
	entry = made_lfh_busy(&lfh, &c, 3, 0x88);
	made_expect(made, entry + 16, 0x40 - 8, 8, 0);
	entry = made_lfh_busy(&lfh, &c, 5, 0x80);
	made_rest(made, MADE_LFH_BYTES);
	made_walk_and_assert(made, 0, NULL);
	made_assert_doubt(
		made, 1, "LFH block that its container has in use and its header has not");
	assert_int_equal(made->walk.doubt_addr, entry);
	made_free(made);
}

/* A container has as many blocks as find room: 60 here, or 30 of twice the size. */
TEST(a_subsegment_that_has_another_number_of_blocks_is_in_doubt)
{
	static const struct {
		uint32_t count;
		unsigned doubts;
	} said[] = {{60, 0}, {59, 1}, {30, 1}};

	for (size_t i = 0; i < 2 * sizeof(said) / sizeof(said[0]); i++) {
		struct made *made = made_new(i % 2 ? X86 : X64);
		unsigned doubts = said[i / 2].doubts;
		struct made_lfh lfh;
		struct made_container c;

		made_heap(made, MADE_LFH_BYTES, MADE_LFH_BYTES);
		lfh = made_lfh(made);
		for (unsigned k = 0; k < 4; k++)
			made_container(&lfh, 0x30, 60);
		c = made_container(&lfh, 0x40, 60);
		for (uint32_t k = 0; k < 60; k += 6) {
			uint64_t entry = made_lfh_busy(&lfh, &c, k, 0x88);

			if (k < said[i / 2].count)
				made_expect(
					made, entry + made->common->entry_bytes, 0x40 - 8, 8, 0);
		}
		fake_put(&made->fake, c.subsegment + lfh.layout->sub_block_count, said[i / 2].count,
			2);
		made_rest(made, MADE_LFH_BYTES);
		made_walk(made);
		made_assert_doubt(made, doubts,
			doubts ? "LFH container with room for another number of blocks" : NULL);
		made_assert_blocks(made);
		made_free(made);
	}
}

/* Its room, by itself, is more than the block that it is in. */
TEST(a_container_larger_than_its_block_is_in_doubt)
{
	struct made *made = made_new(X64);
	struct made_lfh lfh;
	struct made_container c;

	made_heap(made, MADE_LFH_BYTES, MADE_LFH_BYTES);
	lfh = made_lfh(made);
	made_container(&lfh, 0x30, 60);
	c = made_container(&lfh, 0x40, 60);
	fake_put(&made->fake, c.addr + 0x10, 0x15, 4);
	made_rest(made, MADE_LFH_BYTES);
	made_walk_and_assert(made, 0, NULL);
	made_assert_doubt(made, 1, "LFH container of another size than its block");
	made_free(made);
}

/* Its subsegment lost it; it is empty and kept for later only when no block in it is in use. */
TEST(a_container_without_a_subsegment_that_is_in_use_is_in_doubt)
{
	for (unsigned i = 0; i < 2 * nt_layout_count; i++) {
		struct made *made = made_new(nt_layouts[i / 2].name);
		struct made_lfh lfh;
		struct made_container c;

		made_heap(made, MADE_LFH_BYTES, MADE_LFH_BYTES);
		lfh = made_lfh(made);
		c = made_container(&lfh, 0x40, 20);
		if (i % 2)
			made_lfh_busy(&lfh, &c, 13, 0x88);
		made_put_ptr(made, c.subsegment + lfh.layout->sub_data, 0);
		made_rest(made, MADE_LFH_BYTES);
		made_walk_and_assert(made, 0, NULL);
		made_assert_doubt(
			made, i % 2, i % 2 ? "LFH container in use without a subsegment" : NULL);
		made_free(made);
	}
}

/* Without a bitmap a header that lost its mark would hide its block. */
TEST(a_block_that_lost_its_mark_is_in_doubt_where_there_is_no_bitmap)
{
	static const char *const rows[] = {"nt 6.1.7600-7601 x64", "nt 6.1.7600-7601 x86"};

	for (unsigned i = 0; i < 4; i++) {
		struct made *made = made_new(rows[i / 2]);
		struct made_lfh lfh;
		struct made_container c;
		uint64_t entry;

		made_heap(made, MADE_LFH_BYTES, MADE_LFH_BYTES);
		lfh = made_lfh(made);
		c = made_container(&lfh, 0x40, 60);
		entry = made_lfh_busy(&lfh, &c, 5, 0x88);
		if (i % 2)
			made_lfh_header(&lfh, c.addr, entry, 0x80);
		else
			made_expect(made, entry + made->common->entry_bytes, 0x40 - 8, 8, 0);
		made_rest(made, MADE_LFH_BYTES);
		made_walk_and_assert(made, 0, NULL);
		made_assert_doubt(made, i % 2, NULL);
		made_free(made);
	}
}
