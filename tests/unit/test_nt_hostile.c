/* Damaged NT heaps: whatever a process or a file says, the walk ends, and says what it could not do. */
#include "tests/unit/t.h"

#include "tests/unit/nt_made.h"

#define X64 "nt 10.0.17763-22000 x64"
#define X86 "nt 6.1.7600-7601 x86"

struct plain {
	struct made *made;
	uint64_t entries[8]; /* of its blocks */
};

/* A heap of one committed part with 8 blocks, which are expected. */
static struct plain make_plain(const char *row)
{
	struct plain plain = {.made = made_new(row)};
	struct made *made = plain.made;

	made_heap(made, 0x4000, 0x10000);
	for (size_t i = 0; i < 8; i++)
		plain.entries[i] = made_busy(made, 0x100 + 0x20 * i, 8);
	made_end(made, MADE_HEAP + 0x4000, 0xc000);
	return plain;
}

static void forget_block(struct made *made, uint64_t entry)
{
	size_t kept = 0;

	for (size_t i = 0; i < made->expected_count; i++)
		if (made->expected[i].addr != entry + made->common->entry_bytes)
			made->expected[kept++] = made->expected[i];
	assert_int_equal(kept + 1, made->expected_count);
	made->expected_count = kept;
}

/* ---------------------------------------------------------------- headers */

TEST(a_damaged_header_costs_its_own_block)
{
	for (int bit = 0; bit < 32; bit++) {
		struct plain plain = make_plain(bit % 2 ? X64 : X86);
		struct made *made = plain.made;
		uint64_t at = plain.entries[3] + made->common->entry_coded;

		fake_put(&made->fake, at, fake_get(&made->fake, at, 4) ^ (1u << bit), 4);
		forget_block(made, plain.entries[3]);
		made_walk(made);
		made_assert_broken(made, 1, "block whose checksum is wrong");
		assert_int_equal(made->walk.broken_addr, plain.entries[3]);
		made_assert_blocks(made);
		made_free(made);
	}
}

TEST(a_block_of_no_size_costs_itself)
{
	struct plain plain = make_plain(X64);
	struct made *made = plain.made;

	made_header(made, plain.entries[2], 0, 0x12, NT_BLOCK_BUSY, 8);
	forget_block(made, plain.entries[2]);
	made_walk(made);
	made_assert_broken(made, 1, "block of an impossible size");
	made_assert_blocks(made);
	made_free(made);
}

TEST(a_block_beyond_its_segment_costs_itself)
{
	struct plain plain = make_plain(X64);
	struct made *made = plain.made;

	made_header(made, plain.entries[2], 0x4000, 0x12, NT_BLOCK_BUSY, 8);
	forget_block(made, plain.entries[2]);
	made_walk(made);
	made_assert_broken(made, 1, "block of an impossible size");
	made_assert_blocks(made);
	made_free(made);
}

TEST(a_block_that_does_not_know_the_one_before_is_counted_and_found)
{
	struct plain plain = make_plain(X64);
	struct made *made = plain.made;

	made_header(made, plain.entries[5], 0x100 + 0x20 * 5, 0x77, NT_BLOCK_BUSY, 8);
	made_walk(made);
	made_assert_broken(made, 1, "block that does not follow the one before");
	made_assert_blocks(made);
	made_free(made);
}

/* Bytes of the program's that look like one header, in a block whose own header is damaged. */
TEST(what_looks_like_a_header_is_no_block_unless_the_next_agrees)
{
	struct plain plain = make_plain(X64);
	struct made *made = plain.made;

	made_header(made, plain.entries[3] + 0x20, 0x50, 0x2, NT_BLOCK_BUSY, 8);
	fake_put(&made->fake, plain.entries[3] + 8, 0, 4);
	forget_block(made, plain.entries[3]);
	made_walk(made);
	made_assert_broken(made, 1, "block whose checksum is wrong");
	made_assert_blocks(made);
	made_free(made);
}

TEST(a_wrong_key_gives_no_blocks)
{
	struct plain plain = make_plain(X64);
	struct made *made = plain.made;

	fake_put(&made->fake, MADE_HEAP + made->row->encoding + 8, 0x1122334455667788, 8);
	made->expected_count = 0;
	made_walk(made);
	made_assert_broken(made, 1, NULL);
	made_assert_blocks(made);
	made_free(made);
}

/* ---------------------------------------------------------------- what is not committed */

TEST(a_hole_without_a_descriptor_is_counted_and_the_walk_goes_on_behind_it)
{
	for (int has_regions = 0; has_regions < 2; has_regions++) {
		struct made *made = made_new(X64);
		struct target_ops ops = *made->fake.target.ops;
		uint64_t second = MADE_HEAP + 0x9000;

		ops.region = has_regions ? ops.region : NULL;
		made->fake.target.ops = &ops;
		made_heap(made, 0x4000, 0x10000);
		made_busy(made, 0x40, 8);
		made_block(made, MADE_HEAP + 0x4000 - made->at, 0, 0);
		made->at = second;
		made->previous = 0;
		fake_map(&made->fake, second, 0x2000);
		made_busy(made, 0x50, 9);
		made_busy(made, 0x60, 9);
		made_end(made, second + 0x2000, 0x5000);
		made_walk(made);
		made_assert_broken(made, 0, NULL);
		made_assert_missing(made, 1, "heap memory");
		assert_int_equal(made->walk.missing_addr, MADE_HEAP + 0x4000);
		made_assert_blocks(made);
		made_free(made);
	}
}

TEST(impossible_holes_are_counted_and_left_out)
{
	static const struct {
		uint64_t addr, bytes;
	} wrong[] = {
		{MADE_HEAP + 0x2000, 0},
		{MADE_HEAP + 0x2000, (uint64_t)1 << 63},
		{MADE_HEAP + 0x2000, 0x10000},
		{MADE_HEAP - 0x1000, 0x1000},
		{MADE_HEAP, 0x4000},
		{MADE_HEAP + 0x10000, 0x1000},
		{UINT64_MAX, 1},
		{0, UINT64_MAX},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct plain plain = make_plain(X64);
		struct made *made = plain.made;

		made_hole(made, plain.entries[7], wrong[i].addr, wrong[i].bytes);
		made_walk(made);
		made_assert_broken(made, 1, "impossible uncommitted range");
		made_assert_blocks(made);
		made_free(made);
	}
}

TEST(holes_that_overlap_are_counted_and_joined)
{
	struct plain plain = make_plain(X64);
	struct made *made = plain.made;

	made_hole(made, plain.entries[7], MADE_HEAP + 0x5000, 0x2000);
	made_walk(made);
	made_assert_broken(made, 1, "uncommitted ranges that overlap");
	made_assert_blocks(made);
	assert_int_equal(made->walk.heaps[0].committed_bytes, 0x4000);
	made_free(made);
}

/* ---------------------------------------------------------------- segments */

TEST(a_segment_of_another_heap_is_counted_and_left_out)
{
	for (unsigned i = 0; i < 3; i++) {
		struct plain plain = make_plain(X64);
		struct made *made = plain.made;
		uint64_t addr = MADE_HEAP + 0x100000;
		uint64_t fields[] = {made->common->segment_signature, made->common->segment_heap,
			made->common->segment_base};

		made_segment(made, addr, 0x1000, 0x1000, 0x70);
		made_block(made, 0x100, NT_BLOCK_BUSY, 8);
		fake_put(&made->fake, addr + fields[i], 0x1234, 4);
		made_walk(made);
		made_assert_broken(made, 1, "segment of another heap");
		made_assert_blocks(made);
		made_free(made);
	}
}

TEST(a_segment_of_an_impossible_size_is_counted_and_left_out)
{
	for (unsigned i = 0; i < 4; i++) {
		struct plain plain = make_plain(X64);
		struct made *made = plain.made;
		const struct nt_common_layout *c = made->common;
		uint64_t addr = MADE_HEAP + 0x100000;

		made_segment(made, addr, 0x1000, 0x1000, 0x70);
		made_block(made, 0x100, NT_BLOCK_BUSY, 8);
		if (i == 0)
			fake_put(&made->fake, addr + c->segment_pages, 0, 4);
		else if (i == 1)
			made_put_ptr(made, addr + c->segment_first, addr);
		else
			made_put_ptr(
				made, addr + c->segment_first, i == 2 ? addr + 0x1000 : UINT64_MAX);
		made_walk(made);
		made_assert_broken(made, 1, "segment of an impossible size");
		made_assert_blocks(made);
		made_free(made);
	}
}

TEST(a_segment_that_says_to_be_endless_ends_where_memory_does)
{
	struct plain plain = make_plain(X64);
	struct made *made = plain.made;

	fake_put(&made->fake, MADE_HEAP + made->common->segment_pages, UINT32_MAX, 4);
	made_put_ptr(made, MADE_HEAP + made->common->segment_end, UINT64_MAX);
	made_walk(made);
	assert_true(made->walk.broken_count > 0);
	made_assert_blocks(made);
	made_free(made);
}

TEST(no_memory_is_walked_as_a_part_of_two_segments)
{
	struct plain plain = make_plain(X64);
	struct made *made = plain.made;
	uint64_t inner = MADE_HEAP + 0x3000;
	const struct nt_common_layout *c = made->common;

	/* A segment in the free block at the end, with the heap's last blocks for its own. */
	fake_put(&made->fake, inner + c->segment_signature, NT_HEAP_SIGNATURE, 4);
	made_put_ptr(made, inner + c->segment_heap, MADE_HEAP);
	made_put_ptr(made, inner + c->segment_base, inner);
	fake_put(&made->fake, inner + c->segment_pages, 1, 4);
	made_put_ptr(made, inner + c->segment_first, inner + 0x100);
	made_put_ptr(made, inner + c->segment_end, inner + 0x1000);
	made_list_init(made, inner + c->segment_holes);
	made_list_add(made, MADE_HEAP + made->row->segment_list, inner + c->segment_link);
	made->at = inner + 0x100;
	made_block(made, 0x100, NT_BLOCK_BUSY, 8);
	made_walk(made);
	made_assert_broken(made, 1, "segments that overlap");
	made_assert_blocks(made);
	made_free(made);
}

TEST(no_more_memory_is_walked_than_the_process_has)
{
	for (uint64_t limit = 0x3000; limit <= 0x4000; limit += 0x1000) {
		struct plain plain = make_plain(X64);
		struct made *made = plain.made;

		made->nt = (struct nt_walk){
			.memory = &made->memory, .process = &made->process, .walk = &made->walk};
		claims_init(&made->nt.claims, limit);
		assert_int_equal(nt_backend_walk(&made->nt, MADE_HEAP), 0);
		if (limit == 0x3000)
			made->expected_count = 0;
		made_assert_broken(made, limit == 0x3000,
			limit == 0x3000 ? "more heap memory than the process has" : NULL);
		made_assert_blocks(made);
		made_free(made);
	}
}

/* ---------------------------------------------------------------- lists */

TEST(a_list_that_leads_round_or_away_ends)
{
	const struct nt_layout *row = NULL;

	for (unsigned i = 0; i < 3 * 5; i++) {
		struct plain plain = make_plain(X64);
		struct made *made = plain.made;
		uint64_t heads[3], links[5];

		row = made->row;
		heads[0] = MADE_HEAP + row->segment_list;
		heads[1] = MADE_HEAP + row->virtual_list;
		heads[2] = MADE_HEAP + row->common->segment_holes;
		links[0] = 0;
		links[1] = UINT64_MAX - 3;
		links[2] = plain.entries[4];
		links[3] = MADE_HEAP + row->common->segment_link;
		links[4] = (uint64_t)1 << 63;
		made_put_ptr(made, heads[i / 5], links[i % 5]);
		made_walk(made);
		/* The heap's own segment is always there; but for holes, all is found. */
		made_assert_blocks(made);
		assert_true(!walk_is_sound(&made->walk) || (i / 5 == 0 && i % 5 == 3));
		made_free(made);
	}
}

TEST(a_list_of_one_entry_that_follows_itself_ends)
{
	struct plain plain = make_plain(X64);
	struct made *made = plain.made;
	uint64_t link = MADE_HEAP + made->common->segment_link;

	made_put_ptr(made, link, link);
	made_walk(made);
	made_assert_broken(made, 1, "broken list");
	made_assert_blocks(made);
	made_free(made);
}

/* ---------------------------------------------------------------- anything */

TEST(whatever_is_in_memory_the_walk_ends_and_takes_no_more_than_there_is)
{
	uint64_t seed = 17;

	for (int i = 0; i < 2000; i++) {
		struct plain plain = make_plain(i % 2 ? X64 : X86);
		struct made *made = plain.made;
		uint64_t bytes = 0;

		for (uint64_t n = 1 + fake_random(&seed) % 20; n; n--) {
			uint64_t at = MADE_HEAP + fake_random(&seed) % 0x800;
			uint64_t value = fake_random(&seed) << fake_random(&seed) % 48;

			fake_put(&made->fake, at, value, 1 + fake_random(&seed) % 8);
		}
		made_walk(made);
		for (size_t j = 0; j < made->walk.block_count; j++)
			bytes += made->walk.blocks[j].requested_bytes;
		assert_true(bytes <= 0x5000);
		made_free(made);
	}
}

TEST(a_failing_read_is_no_crash)
{
	for (uint64_t from = 1; from < 12; from++) {
		struct plain plain = make_plain(X64);
		struct made *made = plain.made;

		made->fake.fail_from = from;
		made->fake.fail_count = UINT64_MAX;
		made_walk(made);
		assert_true(made->walk.block_count <= 8);
		made_free(made);
	}
}
