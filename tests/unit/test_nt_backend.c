#include "tests/unit/t.h"

#include "tests/unit/nt_made.h"

#include "snapshot/heap/page_layout.h"
#include "snapshot/target/peb_layout.h"

/* Makes a heap with 4 of 16 pages committed and a few blocks. */
static void make_plain(void)
{
	made_heap(0x4000, 0x10000);
	made_busy(0x40, 8);
	made_busy(0x30, 0x10);
	made_block(0x100, 0, 0);
	made_busy(0x2000, 0x17);
	made_busy(0x20, 0x20); /* a block of 0 requested bytes */
}

/* ---------------------------------------------------------------- valid heaps */

/* 0: in the first segment; 1: in the first 64 KB of another segment; 2: in the next 64 KB. */
MADE_TIMES(a_block_with_a_wrong_offset_in_its_segment_is_in_doubt, X64, 3)
{
	static const struct {
		uint64_t at;
		uint8_t is, said;
	} blocks[3] = {{0, 0, 1}, {0x2000, 1, 0}, {0x12000, 2, 1}};
	uint64_t second = 0x2000000, entry, byte;

	make_plain();
	entry = made_busy(0x40, 8);
	made_end(MADE_HEAP + 0x4000, 0xc000);
	made_segment(second, 0x30000, 0x30000, 0x70);
	while (made.at < second + 0x20000) {
		uint64_t next = made_busy(0x1000, 8);

		entry = blocks[i].at && next <= second + blocks[i].at ? next : entry;
	}
	made_end(second + 0x30000, 0);
	byte = entry + made.shape->header_at + NT_ENTRY_SEGMENT / 8;
	assert_int_equal(fake_get(byte, 1), blocks[i].is);
	fake_write(byte, blocks[i].said, 1);
	made_walk_and_assert(0, NULL);
	made_assert_doubt(1, "block of another segment");
	assert_int_equal(made.walk.doubt_addr, entry);
}

MADE_TEST(a_block_marked_as_windows_own_in_another_heap_is_in_doubt, X64)
{
	uint64_t entry;

	make_plain();
	entry = made_block(0x40, NT_BLOCK_BUSY, NT_UNUSED_OWN);
	made_end(MADE_HEAP + 0x4000, 0xc000);
	made_walk_and_assert(0, NULL);
	made_assert_doubt(1, "block marked as Windows' own");
	assert_int_equal(made.walk.doubt_addr, entry);
}

MADE_TEST(a_last_block_before_memory_that_is_not_there_is_one, X64)
{
	make_plain();
	made_end(MADE_HEAP + 0x4000, 0xc000);
	made_list_init(MADE_HEAP + made.shape->segment_ucr_list);
	made_walk_and_assert(0, NULL);
	made_assert_missing(1, "heap memory");
	made_assert_doubt(1, "uncommitted ranges whose sum differs from the segment's record");
}

MADE_TEST(a_hole_that_grew_is_in_doubt, ALL)
{
	uint64_t second = MADE_HEAP + 0x9000;

	make_plain();
	made_end(MADE_HEAP + 0x4000, 0x5000);
	fake_map(second, 0x2000);
	made_block(0x1000, NT_BLOCK_BUSY, 8);
	made_busy(0x50, 9);
	made_end(second + 0x2000, 0x5000);
	made_write_ptr(MADE_HEAP + 0x4000 - made.shape->ucr_bytes + made.shape->ucr_size, 0x6000);
	made_walk();
	made_assert_doubt(1, "uncommitted ranges whose sum differs from the segment's record");
	made_assert_blocks();
}

/* A walk cannot find blocks that lie before the first or after the last one. */
MADE_TEST(a_first_block_elsewhere_than_behind_the_segment_is_in_doubt, ALL)
{
	const struct made_nt_shape *c = made.shape;
	uint64_t first;

	make_plain();
	made_end(MADE_HEAP + 0x4000, 0xc000);
	first = fake_get(MADE_HEAP + c->segment_first, 4);
	made_write_ptr(MADE_HEAP + c->segment_first, first + 0x40);
	made_walk();
	made_assert_broken(0, NULL);
	made_assert_doubt(1, "segment whose first block is not where its own entry ends");
	assert_int_equal(made.walk.block_count, made.expected_count - 1);
}

MADE_TEST(a_segment_that_ends_before_its_end_is_in_doubt, X64)
{
	uint64_t last;

	made_heap(0x4000, 0x4000);
	made_busy(0x40, 8);
	made_block(0x1000, 0, 0);
	last = made.at;
	made_block(MADE_HEAP + 0x4000 - made.at, NT_BLOCK_BUSY, 8);
	made_write_ptr(MADE_HEAP + made.shape->segment_last, last);
	made_walk_and_assert(0, NULL);
	made_assert_doubt(1, "segment whose blocks do not go up to its end");
}

/* ---------------------------------------------------------------- large blocks */

static uint64_t write_large(uint64_t addr, uint64_t commit, uint64_t reserve, uint16_t unused)
{
	const struct made_nt_shape *c = made.shape;

	fake_map(addr, commit);
	made_write_ptr(addr + c->big_commit, commit);
	made_write_ptr(addr + c->big_reserve, reserve);
	made_header(addr + c->big_entry, (uint64_t)unused * c->unit, 0,
		NT_BLOCK_BUSY | NT_BLOCK_INTERNAL, 4);
	made_list_add(MADE_HEAP + made.row->virtual_blocks, addr);
	return addr;
}

MADE_TIMES(a_large_block_whose_prefix_is_damaged_is_counted, X64, 3)
{
	static const uint64_t wrong[3] = {
		0x0502077700000000, /* wrong FunctionIndex */
		0x0502000700000001, 0x0502ffff00000001, /* wrong lengths */
	};
	const struct made_nt_shape *c = made.shape;
	uint64_t addr;

	make_plain();
	made_end(MADE_HEAP + 0x4000, 0xc000);
	made.process.global_flag = NT_FLAG_UST;
	addr = write_large(0x2000000, 0x1000, 0x1000, 0x50);
	fake_write(addr + c->big_entry + c->prefix_header, wrong[i], 8);
	made_expect(addr + c->big_bytes, 0x1000 - 0x30 - 8, 8, 0);
	made_walk();
	made_assert_broken(1, "large block with a damaged prefix");
	assert_int_equal(made.walk.block_count, made.expected_count);
}

MADE_TIMES(a_large_block_that_cannot_be_is_counted_and_left_out, X64, 5)
{
	static const struct {
		uint64_t commit, reserve;
	} wrong[5] = {
		{0, 0x1000},
		{0x2000, 0x1000},
		{0x1000, (uint64_t)1 << 63},
		{(uint64_t)1 << 46, (uint64_t)1 << 46},
		{0x3f, 0x1000},
	};

	make_plain();
	made_end(MADE_HEAP + 0x4000, 0xc000);
	write_large(0x2000000, 0x1000, 0x1000, 0x50);
	write_large(0x3000000, 0x1000, 0x1000, 0x50);
	made_expect(0x3000040, 0x1000 - 0x50, 0x50, 0);
	made_write_ptr(0x2000000 + made.shape->big_commit, wrong[i].commit);
	made_write_ptr(0x2000000 + made.shape->big_reserve, wrong[i].reserve);
	if (wrong[i].commit > 0x1000 && wrong[i].commit <= wrong[i].reserve)
		/* Expect the readable part of the block. */
		made_expect(0x2000040, 0x1000 - 0x50, 0x50, 0);
	made_walk_and_assert(1, NULL);
	assert_int_equal(made.walk.broken_addr, 0x2000000);
}

/* ---------------------------------------------------------------- locks */

static bool is_busy(void)
{
	memory_clear(&made.memory);
	return nt_heap_is_busy(&made.memory, &made.process, MADE_HEAP);
}

MADE_TEST(a_heap_is_busy_while_a_thread_has_its_lock, ALL)
{
	uint64_t lock = MADE_HEAP + 0xf00;

	made_heap(0x1000, 0x1000);
	assert_false(is_busy()); /* a heap may have no lock */
	made_write_ptr(MADE_HEAP + made.row->lock, lock);
	assert_false(is_busy());
	made_write_ptr(lock + (made.kind->bits == 64 ? 0x10 : 0xc), 0x1234);
	assert_true(is_busy());
	made_walk();
	assert_int_equal(made.walk.busy_count, 1);
	made_write_ptr(MADE_HEAP + made.row->lock, 0x66660000);
	assert_false(is_busy());
}

/* ---------------------------------------------------------------- layouts */

MADE_TEST(without_a_build_number_the_signatures_pick_a_layout_that_reads_all, ALL)
{
	made.process.os_build = 0;
	make_plain();
	made_end(MADE_HEAP + 0x4000, 0xc000);
	made_walk_and_assert(0, NULL);
	assert_true(!strstr(made.walk.heaps[0].layout, "6.1") == !strstr(made.kind->name, "6.1"));
}

MADE_TEST(a_lying_build_number_does_not_outweigh_the_signatures, WIN7_X86)
{
	made.process.os_build = 19041;
	make_plain();
	made_end(MADE_HEAP + 0x4000, 0xc000);
	made_walk();
	made_assert_blocks();
	assert_string_equal(made.walk.heaps[0].layout, made.kind->name);
}

/* One of the layout's characteristics is damaged. The other ones decide, and the walk records a
 * warning. */
MADE_TIMES(a_layout_is_known_by_most_of_its_characteristics, ALL, 3)
{
	make_plain();
	made_end(MADE_HEAP + 0x4000, 0xc000);
	if (i == 0)
		fake_write(MADE_HEAP + made.row->signature, 0, 4);
	else if (i == 1)
		fake_write(made_valid_bytes(), 0x777, 2);
	else
		made.process.os_build = 0;
	made_walk();
	assert_false(made.walk.heaps[0].unwalked);
	made_assert_blocks();
	made_assert_doubt(i < 2, i == 0 ? "heap without its signature" :
				 i == 1 ? "heap whose size does not match its layout" :
					  NULL);
}

/* A file may have only the first 180h bytes of a heap, and then the front end gives no evidence. A
 * build number that contradicts the layout is ignored. Some rows have equal sizes. */
MADE_TEST(the_size_in_a_heap_decides_its_layout, ALL)
{
	const struct nt_layout *found;

	fake_map(MADE_HEAP, 0x180);
	fake_write(MADE_HEAP + made.row->signature, NT_HEAP_OBJECT_SIGNATURE, 4);
	fake_write(made_valid_bytes(), made.row->bytes, 2);
	found = nt_layout_find(&made.memory, made.kind->bits, MADE_HEAP,
		made.kind->build == 17763 ? 14393 : 17763);
	assert_non_null(found);
	assert_int_equal(found->heap_bytes, made.row->bytes);
	assert_int_equal(found->signature, made.row->signature);
}

MADE_TEST(a_heap_of_no_known_layout_is_listed_as_unwalked, X64)
{
	make_plain();
	fake_write(MADE_HEAP + made.row->signature, 0, 4);
	fake_write(made_valid_bytes(), 0, 2);
	made_list_init(MADE_HEAP + made.row->segment_list);
	made_list_init(MADE_HEAP + made.shape->segment_link);
	made_walk();
	made_assert_broken(0, NULL);
	assert_int_equal(made.walk.heap_count, 1);
	assert_true(made.walk.heaps[0].unwalked);
	assert_int_equal(made.walk.block_count, 0);
}

/* ---------------------------------------------------------------- all heaps of a process */

#define ROOT 0x10000000u /* address and handle of a page heap's root */
#define HOST_PEB 0x7f0000u

static void write_peb(uint64_t at, unsigned bits, uint64_t first_heap)
{
	const struct peb_layout *peb = peb_layout(bits);

	fake_write(at + peb->process_heap, first_heap, bits / 8);
	fake_write(at + peb->os_build, 19041, 2);
}

static void make_heap(void)
{
	made_heap(0x4000, 0x10000);
	made_busy(0x40, 8);
	made_end(MADE_HEAP + 0x4000, 0xc000);
}

static void walk(void)
{
	struct err err;

	assert_int_equal(heaps_walk(&made.memory, NULL, &made.walk, &err), 0);
}

MADE_TEST(the_heap_behind_a_page_heap_is_walked_when_the_peb_does_not_list_it, X64)
{
	make_heap();
	fake_map(ROOT, 0x1000);
	made_list_init(ROOT + 0x138); /* NextHeap */
	made_write_ptr(ROOT + 0x150, MADE_HEAP); /* NormalHeap */
	write_peb(FAKE_PEB, 64, ROOT);
	walk();
	assert_int_equal(made.walk.heap_count, 2);
	assert_string_equal(made.walk.heaps[0].kind, "page");
	assert_int_equal(made.walk.heaps[1].addr, MADE_HEAP);
	made_assert_broken(0, NULL);
	made_assert_blocks();
}

/* Walks a process whose PEB names only a heap of an unknown kind. */
static void walk_unlisted(const struct heap_hints *hints)
{
	struct err err;

	fake_map(ROOT, 0x1000);
	write_peb(FAKE_PEB, made.kind->bits, ROOT);
	assert_int_equal(heaps_walk(&made.memory, hints, &made.walk, &err), 0);
	assert_null(made.walk.list_fault);
}

MADE_TEST(heap_that_no_list_names_is_found_by_its_signature, ALL)
{
	make_heap();
	made_write_ptr(MADE_HEAP + made.shape->segment_heap, MADE_HEAP);
	fake_know_regions();
	walk_unlisted(NULL);
	assert_int_equal(made.walk.heap_count, 2);
	assert_int_equal(made.walk.heaps[1].addr, MADE_HEAP);
	assert_int_equal(made.walk.unlisted_count, 1);
	assert_int_equal(made.walk.unlisted_addr, MADE_HEAP);
	made_assert_blocks();
}

/* A copy of a heap's first page does not contain its own address. */
MADE_TEST(memory_that_looks_like_a_heap_is_no_heap, ALL)
{
	make_heap();
	made_write_ptr(MADE_HEAP + made.shape->segment_heap, MADE_HEAP + 0x10000);
	fake_know_regions();
	walk_unlisted(NULL);
	assert_int_equal(made.walk.heap_count, 1);
	assert_int_equal(made.walk.unlisted_count, 0);
}

MADE_TEST(heap_that_the_tracer_saw_is_walked_whatever_lists_it, ALL)
{
	const uint64_t traced[] = {0x66660000, ROOT, MADE_HEAP};

	make_heap();
	made_write_ptr(MADE_HEAP + made.shape->segment_heap, MADE_HEAP);
	walk_unlisted(&(struct heap_hints){made.kind->bits, traced, 3});
	assert_int_equal(made.walk.heap_count, 2);
	assert_int_equal(made.walk.heaps[1].addr, MADE_HEAP);
	assert_int_equal(made.walk.unlisted_count, 1);
	made_assert_blocks();
}

/* Makes a heap with a lock. If owner is not 0, that thread owns the lock. */
static void make_locked(uint64_t owner)
{
	uint64_t lock = MADE_HEAP + 0xf00;

	make_heap();
	made_write_ptr(MADE_HEAP + made.row->lock, lock);
	made_write_ptr(lock + (made.kind->bits == 64 ? 0x10 : 0xc), owner);
}

MADE_TIMES(a_lock_of_a_heap_of_the_64_bit_part_makes_a_process_busy, X64, 2)
{
	make_locked(0x10ull * i);
	fake_map(HOST_PEB, 0x1000);
	write_peb(HOST_PEB, 64, MADE_HEAP);
	fake.target.bits = 32;
	fake.target.host_peb = HOST_PEB;
	write_peb(FAKE_PEB, 32, 0x770000);
	assert_int_equal(heaps_are_busy(&fake.target), i);
}

/* ---------------------------------------------------------------- unused bytes of a block */

/* On x64 a block's last 8 bytes are the first bytes of the next header. */
MADE_TEST(a_long_number_may_be_in_the_next_headers_first_bytes, X64)
{
	uint64_t entry;

	made_heap(0x2000, 0x2000);
	entry = made_block(0x400, NT_BLOCK_BUSY, NT_UNUSED_LONG);
	fake_write(entry + 0x400, 0x123, 8);
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
	made_write_ptr(entry + 0x400 - pointer, wrong[i]);
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

/* Adds a block with a prefix. `unused` is the value in the block's header. */
static uint64_t write_prefixed(
	uint64_t size_bytes, uint8_t unused, uint16_t length, uint64_t record)
{
	uint64_t entry = made_block(size_bytes, NT_BLOCK_BUSY, unused);

	made_write_ptr(entry + made.shape->prefix_trace, record);
	fake_write(
		entry + made.shape->prefix_header, 0x0502000000000001 | (uint64_t)length << 32, 8);
	return entry;
}

static void expect_prefixed(uint64_t entry, uint64_t size_bytes, uint16_t length, uint64_t record)
{
	made_expect(entry + made.shape->prefix_bytes + made.shape->unit, size_bytes - length,
		length, record);
}

MADE_TEST(a_prefix_counts_if_an_interceptor_or_the_header_marks_it, X64)
{
	uint64_t entry;

	made_heap(0x2000, 0x2000);
	entry = write_prefixed(0x60, NT_UNUSED_EXTENDED, 0x30, 0x1000);
	expect_prefixed(entry, 0x60, 0x30, 0x1000);
	/* Without the stack database, bytes that look like a prefix are the program's bytes. */
	entry = write_prefixed(0x60, 0x10, 0x30, 0x2000);
	made_expect(entry + 16, 0x50, 0x10, 0);
	made_rest(0x2000);
	made_walk_and_assert(0, NULL);
	fake_write(MADE_HEAP + made.row->interceptor, 0x11223344, 4);
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
	entry = write_prefixed(0x60, NT_UNUSED_EXTENDED, wrong[i], 0x1000);
	made_expect(entry + 16, 0x58, 8, 0);
	made_rest(0x1000);
	made_walk_and_assert(1, "block without the prefix that its header announces");
}

/* ---------------------------------------------------------------- light page heap */

/* Writes a page heap's header before the contents of a live block. */
static void write_page_block(uint64_t at, uint64_t bytes, uint32_t start)
{
	const struct page_layout *page = page_layout(made.kind->bits);

	fake_write(at, start, 4);
	made_write_ptr(at + page->info_heap, MADE_HEAP);
	made_write_ptr(at + page->info_requested, bytes);
	made_write_ptr(at + page->info_actual, bytes + page->info_bytes);
	made_write_ptr(at + page->info_trace, 0x765430);
	fake_write(
		at + page->info_end, start == PAGE_START_LIGHT ? PAGE_END_LIGHT : PAGE_END_FULL, 4);
}

MADE_TEST(a_block_of_a_light_page_heap_begins_behind_its_information, ALL)
{
	uint64_t info_bytes = made.kind->bits == 64 ? 0x40 : 0x20, user;

	made.process.global_flag = NT_FLAG_HPA;
	made_heap(0x2000, 0x2000);
	user = made_block(0x100, NT_BLOCK_BUSY, 12) + made.shape->unit;
	write_page_block(user, 0x51, PAGE_START_LIGHT);
	made_expect(user + info_bytes, 0x51, 0x100 - 0x51, 0x765430);
	made_busy(0x80, 9); /* a normal block of Windows */
	/* Not such a block: it claims to be larger than its container, or it belongs to a full page
	 * heap. */
	user = made_busy(0x100, 12) + made.shape->unit;
	write_page_block(user, 0x100 - 12 - info_bytes + 1, PAGE_START_LIGHT);
	user = made_busy(0x100, 12) + made.shape->unit;
	write_page_block(user, 0x20, PAGE_START_FULL);
	made_rest(0x2000);
	made_walk_and_assert(0, NULL);
}

MADE_TEST(without_page_heaps_no_block_is_one_of_theirs, X64)
{
	uint64_t user;

	made_heap(0x2000, 0x2000);
	user = made_busy(0x100, 12) + 16;
	write_page_block(user, 0x51, PAGE_START_LIGHT);
	made_rest(0x2000);
	made_walk_and_assert(0, NULL);
}
