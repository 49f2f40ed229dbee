/* What of a block the program got: numbers of unused bytes, prefixes. */
#include "tests/unit/t.h"

#include "tests/unit/nt_made.h"

#include "snapshot/heap/page_layout.h"

/* ---------------------------------------------------------------- what is unused in a block */

/* On x64 a block's last 8 bytes are the first of the next header. */
MADE_TEST(a_long_number_may_be_in_the_next_headers_first_bytes, X64)
{
	uint64_t entry;

	made_heap(0x2000, 0x2000);
	entry = made_block(0x400, NT_BLOCK_BUSY, NT_UNUSED_LONG);
	fake_put(entry + 0x400, 0x123, 8);
	made_expect(entry + 16, 0x400 - 0x123, 0x123, 0);
	made_rest(0x2000);
	made_walk_and_assert(0, NULL);
}

MADE_TIMES(a_long_number_that_is_not_long_or_too_long_is_none, X64 | X86, 4)
{
	static const uint64_t wrong[4] = {1, 0x3e, 0x401, 0xffffffff};
	unsigned pointer = made.kind->bits / 8;
	uint64_t entry;

	made_heap(0x2000, 0x2000);
	entry = made_block(0x400, NT_BLOCK_BUSY, NT_UNUSED_LONG);
	made_put_ptr(entry + 0x400 - pointer, wrong[i]);
	made_expect(entry + made.shape->unit, 0x3f8, 8, 0);
	made_rest(0x2000);
	made_walk_and_assert(1, "block with an impossible number of unused bytes");
}

MADE_TIMES(an_impossible_number_of_unused_bytes_is_counted_and_the_block_is_kept, X64, 8)
{
	static const uint8_t wrong[8] = {0, 2, 4, 7, 0x21, 0x80, 0xc2, NT_UNUSED_LONG};
	uint64_t entry;

	made_heap(0x1000, 0x1000);
	entry = made_block(0x20, NT_BLOCK_BUSY, wrong[i]);
	made_expect(entry + 16, 0x18, 8, 0);
	made_rest(0x1000);
	made_walk_and_assert(1, "block with an impossible number of unused bytes");
	assert_int_equal(made.walk.broken_addr, entry);
}

/* ---------------------------------------------------------------- prefixes */

/* A block with a prefix, whose header says what it says. */
static uint64_t put_prefixed(uint64_t size_bytes, uint8_t unused, uint16_t length, uint64_t record)
{
	uint64_t entry = made_block(size_bytes, NT_BLOCK_BUSY, unused);

	made_put_ptr(entry + made.shape->prefix_trace, record);
	fake_put(entry + made.shape->prefix_header, 0x0502000000000001 | (uint64_t)length << 32, 8);
	return entry;
}

static void expect_prefixed(uint64_t entry, uint64_t size_bytes, uint16_t length, uint64_t record)
{
	made_expect(entry + made.shape->prefix_bytes + made.shape->unit, size_bytes - length,
		length, record);
}

MADE_TEST(a_prefix_is_believed_where_an_interceptor_or_the_header_says_so, X64)
{
	uint64_t entry;

	made_heap(0x2000, 0x2000);
	entry = put_prefixed(0x60, NT_UNUSED_EXTENDED, 0x30, 0x1000);
	expect_prefixed(entry, 0x60, 0x30, 0x1000);
	/* Leftovers in a process without the database are the program's bytes. */
	entry = put_prefixed(0x60, 0x10, 0x30, 0x2000);
	made_expect(entry + 16, 0x50, 0x10, 0);
	made_rest(0x2000);
	made_walk_and_assert(0, NULL);
	fake_put(MADE_HEAP + made.row->interceptor, 0x11223344, 4);
	made.expected_count = 1;
	expect_prefixed(entry, 0x60, 0x30, 0x2000);
	walk_clear(&made.walk);
	claims_release(&made.nt.claims);
	memory_clear(&made.memory);
	made_walk_and_assert(0, NULL);
}

MADE_TIMES(a_prefix_of_impossible_lengths_is_none, X64, 4)
{
	static const uint16_t wrong[4] = {0, 0x27, 0x61, 0xffff};
	uint64_t entry;

	made.process.global_flag = NT_FLAG_UST;
	made_heap(0x1000, 0x1000);
	entry = put_prefixed(0x60, NT_UNUSED_EXTENDED, wrong[i], 0x1000);
	made_expect(entry + 16, 0x58, 8, 0);
	made_rest(0x1000);
	made_walk_and_assert(1, "block without the prefix that its header promises");
}

/* ---------------------------------------------------------------- light page heap */

/* What a page heap writes before the bytes of a live block of bytes. */
static void put_page_block(uint64_t at, uint64_t bytes, uint32_t start)
{
	const struct page_layout *page = page_layout(made.kind->bits);

	fake_put(at, start, 4);
	made_put_ptr(at + page->info_heap, MADE_HEAP);
	made_put_ptr(at + page->info_requested, bytes);
	made_put_ptr(at + page->info_actual, bytes + page->info_bytes);
	made_put_ptr(at + page->info_trace, 0x765430);
	fake_put(
		at + page->info_end, start == PAGE_START_LIGHT ? PAGE_END_LIGHT : PAGE_END_FULL, 4);
}

MADE_TEST(a_block_of_a_light_page_heap_begins_behind_its_information, ALL)
{
	uint64_t info_bytes = made.kind->bits == 64 ? 0x40 : 0x20, user;

	made.process.global_flag = NT_FLAG_HPA;
	made_heap(0x2000, 0x2000);
	user = made_block(0x100, NT_BLOCK_BUSY, 12) + made.shape->unit;
	put_page_block(user, 0x51, PAGE_START_LIGHT);
	made_expect(user + info_bytes, 0x51, 0x100 - 0x51, 0x765430);
	made_busy(0x80, 9); /* Windows' own: as any block */
	/* No such block: it says to be larger than what it lies in, or is of a full page heap. */
	user = made_busy(0x100, 12) + made.shape->unit;
	put_page_block(user, 0x100 - 12 - info_bytes + 1, PAGE_START_LIGHT);
	user = made_busy(0x100, 12) + made.shape->unit;
	put_page_block(user, 0x20, PAGE_START_FULL);
	made_rest(0x2000);
	made_walk_and_assert(0, NULL);
}

MADE_TEST(without_page_heaps_no_block_is_one_of_theirs, X64)
{
	uint64_t user;

	made_heap(0x2000, 0x2000);
	user = made_busy(0x100, 12) + 16;
	put_page_block(user, 0x51, PAGE_START_LIGHT);
	made_rest(0x2000);
	made_walk_and_assert(0, NULL);
}
