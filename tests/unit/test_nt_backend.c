/* The walker of NT heaps' back end, on small made heaps: each rule, for each layout. */
#include "tests/unit/nt_made.h"

static const char *const rows[] = {
	"nt 10.0.17763-22000 x64",
	"nt 10.0.14393-17134 x64",
	"nt 6.3.9600-10.0.10586 x64",
	"nt 6.2.9200 x64",
	"nt 6.1.7600-7601 x64",
	"nt 10.0.17763-19041 x86",
	"nt 10.0.14393-17134 x86",
	"nt 6.3.9600-10.0.10586 x86",
	"nt 6.2.9200 x86",
	"nt 6.1.7600-7601 x86",
};

#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))
#define X64 "nt 10.0.17763-22000 x64"
#define X86 "nt 6.1.7600-7601 x86"

/* Calls test() with a fresh process of each layout. */
static void for_each_row(void (*test)(struct made *made))
{
	assert_int_equal(ROW_COUNT, nt_layout_count);
	for (size_t i = 0; i < ROW_COUNT; i++) {
		struct made *made = made_new(rows[i]);

		test(made);
		made_free(made);
	}
}

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

static void busy_blocks_are_found_in_every_layout(void **state)
{
	(void)state;
	for_each_row(assert_plain);
}

static void assert_without_a_code(struct made *made)
{
	made_heap(made, 0x1000, 0x1000);
	made->key = 0;
	fake_put(&made->fake, MADE_HEAP + made->row->encode_mask, 0, 4);
	made_busy(made, 0x80, 8);
	made_block(made, MADE_HEAP + 0x1000 - made->at, 0, 0);
	made_walk(made);
	made_assert_broken(made, 0, NULL);
	made_assert_blocks(made);
}

static void headers_are_decoded_only_where_the_heap_says_so(void **state)
{
	(void)state;
	for_each_row(assert_without_a_code);
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

static void the_walk_goes_on_behind_what_is_not_committed(void **state)
{
	(void)state;
	for_each_row(assert_round_holes);
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

static void all_segments_of_the_list_are_walked(void **state)
{
	(void)state;
	for_each_row(assert_in_all_segments);
}

static void windows_own_blocks_are_no_blocks_of_the_program(void **state)
{
	struct made *made = made_new(X64);

	(void)state;
	made_heap(made, 0x1000, 0x1000);
	made_block(made, 0x100, NT_BLOCK_BUSY | NT_BLOCK_INTERNAL, 8);
	made_block(made, 0x40, NT_BLOCK_BUSY, NT_UNUSED_END);
	made_busy(made, 0x40, 8);
	made_block(made, MADE_HEAP + 0x1000 - made->at, 0, 0);
	made_walk(made);
	made_assert_broken(made, 0, NULL);
	made_assert_blocks(made);
	made_free(made);
}

/* ---------------------------------------------------------------- what is unused in a block */

static void assert_long_unused(struct made *made)
{
	unsigned pointer = made->row->bits / 8;
	uint64_t entry;

	made_heap(made, 0x2000, 0x2000);
	entry = made_block(made, 0x400, NT_BLOCK_BUSY, NT_UNUSED_LONG);
	made_put_ptr(made, entry + 0x400 - pointer, 0x123);
	made_expect(made, entry + made->common->entry_bytes, 0x400 - 0x123, 0x123, 0);
	made_block(made, MADE_HEAP + 0x2000 - made->at, 0, 0);
	made_walk(made);
	made_assert_broken(made, 0, NULL);
	made_assert_blocks(made);
}

static void a_long_number_of_unused_bytes_is_in_the_last_slot(void **state)
{
	(void)state;
	for_each_row(assert_long_unused);
}

/* On x64 a block's last 8 bytes are the first of the next header. */
static void a_long_number_may_be_in_the_next_headers_first_bytes(void **state)
{
	struct made *made = made_new(X64);
	uint64_t entry;

	(void)state;
	made_heap(made, 0x2000, 0x2000);
	entry = made_block(made, 0x400, NT_BLOCK_BUSY, NT_UNUSED_LONG);
	fake_put(&made->fake, entry + 0x400, 0x123, 8);
	made_expect(made, entry + 16, 0x400 - 0x123, 0x123, 0);
	made_block(made, MADE_HEAP + 0x2000 - made->at, 0, 0);
	made_walk(made);
	made_assert_broken(made, 0, NULL);
	made_assert_blocks(made);
	made_free(made);
}

static void a_long_number_that_is_not_long_or_too_long_is_none(void **state)
{
	static const uint64_t wrong[] = {1, 0x3e, 0x401, 0xffffffff};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct made *made = made_new(i % 2 ? X64 : X86);
		unsigned pointer = made->row->bits / 8;
		uint64_t entry;

		made_heap(made, 0x2000, 0x2000);
		entry = made_block(made, 0x400, NT_BLOCK_BUSY, NT_UNUSED_LONG);
		made_put_ptr(made, entry + 0x400 - pointer, wrong[i]);
		made_expect(made, entry + made->common->entry_bytes, 0x3f8, 8, 0);
		made_block(made, MADE_HEAP + 0x2000 - made->at, 0, 0);
		made_walk(made);
		made_assert_broken(made, 1, "block with an impossible number of unused bytes");
		made_assert_blocks(made);
		made_free(made);
	}
}

static void an_impossible_number_of_unused_bytes_is_counted_and_the_block_is_kept(void **state)
{
	static const uint8_t wrong[] = {0, 1, 4, 7, 0x21, 0x80, 0xc2, NT_UNUSED_LONG};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong); i++) {
		struct made *made = made_new(X64);
		uint64_t entry;

		made_heap(made, 0x1000, 0x1000);
		entry = made_block(made, 0x20, NT_BLOCK_BUSY, wrong[i]);
		made_expect(made, entry + 16, 0x18, 8, 0);
		made_block(made, MADE_HEAP + 0x1000 - made->at, 0, 0);
		made_walk(made);
		made_assert_broken(made, 1, "block with an impossible number of unused bytes");
		assert_int_equal(made->walk.broken_addr, entry);
		made_assert_blocks(made);
		made_free(made);
	}
}

/* ---------------------------------------------------------------- prefixes */

/* A block with a prefix, whose header says what it says. */
static uint64_t put_prefixed(
	struct made *made, uint64_t size_bytes, uint8_t unused, uint16_t length, uint64_t record)
{
	uint64_t entry = made_block(made, size_bytes, NT_BLOCK_BUSY, unused);

	made_put_ptr(made, entry + made->common->prefix_record, record);
	fake_put(&made->fake, entry + made->common->prefix_header,
		0x0502000000000001 | (uint64_t)length << 32, 8);
	return entry;
}

static void expect_prefixed(
	struct made *made, uint64_t entry, uint64_t size_bytes, uint16_t length, uint64_t record)
{
	made_expect(made, entry + made->common->prefix_user, size_bytes - length, length, record);
}

static void assert_prefixes(struct made *made)
{
	uint64_t record = made->row->bits == 64 ? 0x7ff612345678 : 0x12345678;
	uint64_t entry;

	made->process.global_flag = NT_FLAG_UST;
	made_heap(made, 0x2000, 0x2000);
	entry = put_prefixed(made, 0x60, NT_UNUSED_EXTENDED, 0x30, record);
	expect_prefixed(made, entry, 0x60, 0x30, record);
	/* the shortest */
	entry = put_prefixed(made, 0x30, 0x42, made->common->prefix_unused_min, 0);
	expect_prefixed(made, entry, 0x30, made->common->prefix_unused_min, 0);
	/* "no record" has a value of its own */
	entry = put_prefixed(made, 0x100, 0x42, 0x40, made->common->no_record);
	expect_prefixed(made, entry, 0x100, 0x40, 0);
	made_busy(made, 0x80, 0x10); /* older than the database: no prefix */
	made_block(made, MADE_HEAP + 0x2000 - made->at, 0, 0);
	made_walk(made);
	made_assert_broken(made, 0, NULL);
	made_assert_blocks(made);
}

static void a_prefix_leads_to_the_record_of_the_stack(void **state)
{
	(void)state;
	for_each_row(assert_prefixes);
}

static void a_prefix_is_believed_where_an_interceptor_or_the_header_says_so(void **state)
{
	struct made *made = made_new(X64);
	uint64_t entry;

	(void)state;
	made_heap(made, 0x2000, 0x2000);
	entry = put_prefixed(made, 0x60, NT_UNUSED_EXTENDED, 0x30, 0x1000);
	expect_prefixed(made, entry, 0x60, 0x30, 0x1000);
	/* Leftovers in a process without the database are the program's bytes. */
	entry = put_prefixed(made, 0x60, 0x10, 0x30, 0x2000);
	made_expect(made, entry + 16, 0x50, 0x10, 0);
	made_block(made, MADE_HEAP + 0x2000 - made->at, 0, 0);
	made_walk(made);
	made_assert_broken(made, 0, NULL);
	made_assert_blocks(made);
	fake_put(&made->fake, MADE_HEAP + made->row->interceptor, 0x11223344, 4);
	made->expected_count = 1;
	expect_prefixed(made, entry, 0x60, 0x30, 0x2000);
	walk_clear(&made->walk);
	claims_release(&made->nt.claims);
	memory_clear(&made->memory);
	made_walk(made);
	made_assert_broken(made, 0, NULL);
	made_assert_blocks(made);
	made_free(made);
}

static void a_prefix_of_impossible_lengths_is_none(void **state)
{
	static const uint16_t wrong[] = {0, 0x27, 0x61, 0xffff};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct made *made = made_new(X64);
		uint64_t entry;

		made->process.global_flag = NT_FLAG_UST;
		made_heap(made, 0x1000, 0x1000);
		entry = put_prefixed(made, 0x60, NT_UNUSED_EXTENDED, wrong[i], 0x1000);
		made_expect(made, entry + 16, 0x58, 8, 0);
		made_block(made, MADE_HEAP + 0x1000 - made->at, 0, 0);
		made_walk(made);
		made_assert_broken(made, 1, "block without the prefix that its header promises");
		made_assert_blocks(made);
		made_free(made);
	}
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

static void large_blocks_have_memory_of_their_own(void **state)
{
	(void)state;
	for_each_row(assert_large);
}

static void a_large_block_that_cannot_be_is_counted_and_left_out(void **state)
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

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct made *made = made_new(X64);

		make_plain(made);
		made_end(made, MADE_HEAP + 0x4000, 0xc000);
		put_large(made, 0x2000000, 0x1000, 0x1000, 0x50);
		put_large(made, 0x3000000, 0x1000, 0x1000, 0x50);
		made_expect(made, 0x3000040, 0x1000 - 0x50, 0x50, 0);
		made_put_ptr(made, 0x2000000 + made->common->virtual_commit, wrong[i].commit);
		made_put_ptr(made, 0x2000000 + made->common->virtual_reserve, wrong[i].reserve);
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
	made_put_ptr(made, MADE_HEAP + made->row->lock, 0x66660000);
	assert_false(is_busy(made));
}

static void a_heap_is_busy_while_a_thread_has_its_lock(void **state)
{
	(void)state;
	for_each_row(assert_lock);
}

/* ---------------------------------------------------------------- layouts */

static void without_a_build_number_the_signatures_pick_a_layout_that_reads_all(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROW_COUNT; i++) {
		struct made *made = made_new(rows[i]);

		made->process.os_build = 0;
		make_plain(made);
		made_end(made, MADE_HEAP + 0x4000, 0xc000);
		made_walk(made);
		made_assert_broken(made, 0, NULL);
		made_assert_blocks(made);
		assert_true(!strstr(made->walk.heaps[0].layout, "6.1") == !strstr(rows[i], "6.1"));
		made_free(made);
	}
}

static void a_lying_build_number_does_not_outweigh_the_signatures(void **state)
{
	struct made *made = made_new(X86);

	(void)state;
	made->process.os_build = 19041;
	make_plain(made);
	made_end(made, MADE_HEAP + 0x4000, 0xc000);
	made_walk(made);
	made_assert_blocks(made);
	assert_string_equal(made->walk.heaps[0].layout, X86);
	made_free(made);
}

static void a_heap_of_no_known_layout_is_listed_as_unwalked(void **state)
{
	struct made *made = made_new(X64);

	(void)state;
	make_plain(made);
	fake_put(&made->fake, MADE_HEAP + made->row->signature, 0, 4);
	made_walk(made);
	made_assert_broken(made, 1, "heap of no layout that is known");
	assert_int_equal(made->walk.heap_count, 1);
	assert_true(made->walk.heaps[0].unwalked);
	assert_int_equal(made->walk.block_count, 0);
	made_free(made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(busy_blocks_are_found_in_every_layout),
		cmocka_unit_test(headers_are_decoded_only_where_the_heap_says_so),
		cmocka_unit_test(the_walk_goes_on_behind_what_is_not_committed),
		cmocka_unit_test(all_segments_of_the_list_are_walked),
		cmocka_unit_test(windows_own_blocks_are_no_blocks_of_the_program),
		cmocka_unit_test(a_long_number_of_unused_bytes_is_in_the_last_slot),
		cmocka_unit_test(a_long_number_may_be_in_the_next_headers_first_bytes),
		cmocka_unit_test(a_long_number_that_is_not_long_or_too_long_is_none),
		cmocka_unit_test(
			an_impossible_number_of_unused_bytes_is_counted_and_the_block_is_kept),
		cmocka_unit_test(a_prefix_leads_to_the_record_of_the_stack),
		cmocka_unit_test(a_prefix_is_believed_where_an_interceptor_or_the_header_says_so),
		cmocka_unit_test(a_prefix_of_impossible_lengths_is_none),
		cmocka_unit_test(large_blocks_have_memory_of_their_own),
		cmocka_unit_test(a_large_block_that_cannot_be_is_counted_and_left_out),
		cmocka_unit_test(a_heap_is_busy_while_a_thread_has_its_lock),
		cmocka_unit_test(
			without_a_build_number_the_signatures_pick_a_layout_that_reads_all),
		cmocka_unit_test(a_lying_build_number_does_not_outweigh_the_signatures),
		cmocka_unit_test(a_heap_of_no_known_layout_is_listed_as_unwalked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
