/* The walker of page heaps. It finds the roots without symbols, and finds the blocks in the roots'
 * trees. The field offsets come from the image maker's tables, which are independent of the
 * walker's. */
#include "tests/unit/t.h"

#include "tests/unit/fake_target.h"

#include "snapshot/heap/nt_heap.h"
#include "tests/images/page_image_layout.h"

#define ROOT_A 0x10000000u
#define ROOT_B 0x11001000u /* the page after the handle's page */
#define HANDLE_B 0x11000000u
#define NORMAL 0x12000000u
#define NODES 0x13000000u
#define VERIFIER 0x14000000u
#define BLOCKS 0x20000000u

struct page {
	const struct page_image_layout *f;
	unsigned ptr;
	uint64_t heaps[4];
	struct nt_process process;
	struct memory memory;
	struct walk walk;
	struct nt_walk nt;
};

static struct page page;

static void put(uint64_t addr, uint64_t value)
{
	fake_write(addr, value, page.ptr);
}

/* Returns the address of a list head that lies across the end of a piece of verifier.dll's data.
 * This is true for any piece size up to 64 KiB that is a power of 2. */
static uint64_t head_at(void)
{
	return VERIFIER + 0x2000 + 0x10000 - page.ptr;
}

static void link_up(uint64_t a, uint64_t b)
{
	put(a, b);
	put(b + page.ptr, a);
}

static void root(uint64_t addr)
{
	fake_map(addr & ~(uint64_t)0xfff, 0x1000);
	put(addr + page.f->root.normal, NORMAL);
	put(addr + page.f->root.busy_bytes, 0x5000);
}

/* Makes two roots on a list whose head is in verifier.dll. */
static void page_init(const struct page_image_layout *f)
{
	page = (struct page){.f = f, .ptr = f->bits / 8};
	fake_init();
	fake_map(NORMAL, 0x1000);
	fake_map(NODES, 0x10000);
	fake_map(VERIFIER, 0x20000);
	fake_write(NORMAL + NT_HEAP_SIGNATURE_AT(f->bits), 0xffeeffee, 4);
	root(ROOT_A);
	root(ROOT_B);
	link_up(head_at(), ROOT_A + f->root.next);
	link_up(ROOT_A + f->root.next, ROOT_B + f->root.next);
	link_up(ROOT_B + f->root.next, head_at());
	page.process = (struct nt_process){
		.bits = f->bits, .heaps = page.heaps, .global_flag = NT_FLAG_HPA};
	fake.target.bits = f->bits;
	walk_init(&page.walk);
}

static uint64_t node_at(unsigned k)
{
	return NODES + 0x100 * (uint64_t)k;
}

/* Makes block k, which has two pages. Its requested bytes are at the end of the first page. */
static uint64_t node(unsigned k, uint64_t requested)
{
	uint64_t at = node_at(k), pages = BLOCKS + 0x10000 * (uint64_t)k;

	put(at + page.f->block.user, pages + 0x1000 - requested);
	put(at + page.f->block.base, pages);
	put(at + page.f->block.base_bytes, 0x2000);
	put(at + page.f->block.access_bytes, 0x1000);
	put(at + page.f->block.requested, requested);
	put(at + page.f->block.stack, 0x30000000 + 0x100 * k);
	return at;
}

static void child(uint64_t parent, unsigned side, uint64_t at)
{
	put(parent + side, at);
	put(at, parent);
}

static void table(uint64_t root_addr, uint64_t top, unsigned count)
{
	uint64_t at = root_addr + page.f->root.busy_table;

	fake_write(at + page.f->table.count, count, 4);
	child(at, 2 * page.ptr, top);
}

/* Makes three blocks in the first page heap, one in the second. */
static void write_blocks(void)
{
	for (unsigned k = 0; k < 4; k++)
		node(k, 0x10 + k);
	child(node_at(1), page.ptr, node_at(0));
	child(node_at(1), 2 * page.ptr, node_at(2));
	table(ROOT_A, node_at(1), 3);
	table(ROOT_B, node_at(3), 1);
}

static void page_walk(uint64_t limit)
{
	assert_int_equal(memory_init(&page.memory, &fake.target), 0);
	page.nt = (struct nt_walk){
		.memory = &page.memory, .process = &page.process, .walk = &page.walk};
	claims_init(&page.nt.claims, limit);
	assert_int_equal(page_heaps_walk(&page.nt), 0);
}

static void page_release(void)
{
	memory_release(&page.memory);
	free(page.nt.behind);
	claims_release(&page.nt.claims);
	walk_release(&page.walk);
	fake_release();
}

static void assert_found(void)
{
	assert_int_equal(page.walk.heap_count, 2);
	assert_string_equal(page.walk.heaps[0].kind, "page");
	assert_int_equal(page.walk.heaps[0].committed_bytes, 0x5000);
	assert_int_equal(page.walk.heaps[0].addr, ROOT_A);
	assert_int_equal(page.walk.heaps[1].addr, HANDLE_B);
	assert_int_equal(page.walk.broken_count, 0);
	assert_int_equal(page.walk.block_count, 4);
	for (unsigned k = 0; k < 4; k++) {
		const struct block *block = &page.walk.blocks[k];

		assert_int_equal(block->addr, BLOCKS + 0x10000 * (uint64_t)k + 0x1000 - 0x10 - k);
		assert_int_equal(block->requested_bytes, 0x10 + k);
		assert_int_equal(block->overhead_bytes, 0x2000 - 0x10 - k);
		assert_int_equal(page.walk.records[block->stack].addr, 0x30000000 + 0x100 * k);
		assert_int_equal(block->heap, k == 3);
	}
}

/* Defines a test that runs in a fresh process with empty page heaps, once for each bitness.
 * PAGE_TIMES repeats the test for each i below `times`. */
static void page_run(void (*test)(const struct page_image_layout *f, unsigned i), unsigned times)
{
	for (unsigned bits = 32; bits <= 64; bits += 32) {
		for (unsigned i = 0; i < times; i++) {
			page_init(page_image_layout_of(bits));
			test(page.f, i);
			page_release();
		}
	}
}

#define PAGE_TEST(name) PAGE_TIMES(name, 1)
#define PAGE_TIMES(name, times)                                                                    \
	static void name##_in(const struct page_image_layout *f, unsigned i);                      \
	TEST(name)                                                                                 \
	{                                                                                          \
		page_run(name##_in, times);                                                        \
	}                                                                                          \
	static void name##_in(const struct page_image_layout *f __attribute__((unused)),           \
		unsigned i __attribute__((unused)))

/* ---------------------------------------------------------------- finding roots */

PAGE_TEST(roots_are_found_where_handles_lead_and_on_their_list)
{
	write_blocks();
	page.heaps[page.process.heap_count++] = NORMAL;
	page.heaps[page.process.heap_count++] = HANDLE_B;
	page_walk(TARGET_SPACE_BYTES);
	assert_found();
	assert_true(page_heap_knows(&page.nt, HANDLE_B));
	assert_true(page_heap_knows(&page.nt, ROOT_A));
	assert_false(page_heap_knows(&page.nt, NORMAL));
}

PAGE_TEST(roots_are_found_from_the_data_of_verifier_dll)
{
	write_blocks();
	fake_write_module(
		VERIFIER, f->bits, 0x20000, 0x18000, "C:\\Windows\\system32\\VERIFIER.DLL");
	page.heaps[page.process.heap_count++] = NORMAL;
	page_walk(TARGET_SPACE_BYTES);
	assert_found();
}

PAGE_TEST(verifier_dll_is_not_read_without_its_flags)
{
	write_blocks();
	fake_write_module(VERIFIER, f->bits, 0x20000, 0x18000, "verifier.dll");
	page.process.global_flag = 0x1070;
	page_walk(TARGET_SPACE_BYTES);
	assert_int_equal(page.walk.heap_count, 0);
}

/* A root has a normal heap, and it is linked or has a table. A structure that lacks these is not a
 * root. */
PAGE_TIMES(what_only_looks_like_a_root_is_none, 8)
{
	bool is_root = !(i & 1) && (i & 6) != 6;
	size_t found = 0;

	table(ROOT_A, node(0, 8), 1);
	page.heaps[page.process.heap_count++] = ROOT_A;
	if (i & 1)
		put(ROOT_A + f->root.normal, NODES);
	if (i & 2)
		put(ROOT_B + f->root.next + page.ptr, NODES);
	if (i & 4)
		put(NODES, NODES);
	page_walk(TARGET_SPACE_BYTES);
	for (size_t k = 0; k < page.walk.heap_count; k++)
		found += page.walk.heaps[k].addr == ROOT_A;
	assert_int_equal(found, is_root);
}

/* The normal heap also has blocks. No source states whether the PEB lists this heap. */
PAGE_TIMES(the_heap_behind_page_heaps_is_walked_once_whoever_lists_it, 2)
{
	write_blocks();
	page.heaps[page.process.heap_count++] = HANDLE_B;
	if (i)
		page.heaps[page.process.heap_count++] = NORMAL;
	page_walk(TARGET_SPACE_BYTES);
	assert_int_equal(page.nt.page_heap_count, 2);
	assert_int_equal(page.nt.behind_count, !i); /* the normal heaps of both roots */
	if (!i)
		assert_int_equal(page.nt.behind[0], NORMAL);
}

/* ---------------------------------------------------------------- block information */

static void info(uint64_t user, uint32_t start, uint32_t end)
{
	uint64_t at = user - page.f->info.bytes;

	fake_write(at, start, 4);
	put(at + page.f->info.heap, ROOT_A);
	put(at + page.f->info.requested, 0x123);
	put(at + page.f->info.actual, 0x180);
	put(at + page.f->info.stack, 0x30000040);
	fake_write(at + page.f->info.end_stamp, end, 4);
}

PAGE_TIMES(information_before_a_block_is_read, 2)
{
	struct page_block block;

	assert_int_equal(memory_init(&page.memory, &fake.target), 0);
	info(NODES + 0x100, i ? 0xabcdbbbb : 0xabcdaaaa, i ? 0xdcbabbbb : 0xdcbaaaaa);
	assert_true(page_block_parse(&page.memory, f->bits, NODES + 0x100, &block));
	assert_int_equal(block.requested_bytes, 0x123);
	assert_int_equal(block.record, 0x30000040);
	assert_int_equal(block.is_full, i);
	assert_false(!i && page_block_is_damaged(&page.memory, f->bits, NODES + 0x100));
}

PAGE_TIMES(information_of_a_freed_or_damaged_block_is_none, 7)
{
	struct page_block block;
	uint64_t user = NODES + 0x100, at = user - f->info.bytes;

	assert_int_equal(memory_init(&page.memory, &fake.target), 0);
	info(user, 0xabcdaaaa, 0xdcbaaaaa);
	if (i == 0)
		fake_write(at, 0xabcdaaa9, 4); /* marks a freed block */
	else if (i == 1)
		fake_write(at + f->info.end_stamp, 0xdcbabbbb, 4);
	else if (i == 2)
		put(at + f->info.requested, 0x181);
	else if (i == 3)
		put(at + f->info.heap, 0);
	else if (i < 6)
		user = i == 4 ? 8 : 0x7fff0000;
	else { /* both marks, as in a freed block */
		fake_write(at, 0xabcdaaa9, 4);
		fake_write(at + f->info.end_stamp, 0xdcbaaaa9, 4);
	}
	assert_false(page_block_parse(&page.memory, f->bits, user, &block));
	assert_int_equal(page_block_is_damaged(&page.memory, f->bits, user), i < 4);
}

/* ---------------------------------------------------------------- the tree of blocks */

static void assert_broken(unsigned blocks, unsigned broken)
{
	unsigned found = 0;

	page.heaps[page.process.heap_count++] = ROOT_A;
	page_walk(TARGET_SPACE_BYTES);
	for (size_t i = 0; i < page.walk.block_count; i++)
		found += page.walk.blocks[i].heap == 0;
	assert_int_equal(found, blocks);
	assert_int_equal(page.walk.broken_count + page.walk.missing_count, broken);
}

PAGE_TEST(a_tree_deeper_than_any_sound_one_ends)
{
	for (unsigned k = 0; k < 200; k++) {
		node(k, 8);
		if (k)
			child(node_at(k - 1), page.ptr, node_at(k));
	}
	table(ROOT_A, node_at(0), 200);
	assert_broken(96, 2);
}

PAGE_TIMES(what_hangs_elsewhere_than_on_a_damaged_node_is_found, 6)
{
	unsigned bad = i % 3;

	write_blocks();
	if (i < 3) {
		put(node_at(bad) + f->block.requested, 0x7fffffff);
		assert_broken(2, 1);
	} else {
		put(node_at(bad), NODES + 0x8000); /* address of the node's parent */
		assert_broken(bad == 1 ? 3 : 2, bad == 1 ? 0 : 2);
	}
}

PAGE_TIMES(a_block_outside_of_its_pages_is_none, 8)
{
	uint64_t at = node_at(2), last = f->bits == 32 ? 0xfffff000 : INT64_MAX - 4095;

	write_blocks();
	if (i == 0)
		put(at + page.f->block.requested, UINT64_MAX);
	else if (i == 1)
		put(at + page.f->block.user, BLOCKS);
	else if (i == 2)
		put(at + page.f->block.base_bytes, 0);
	else if (i == 3)
		put(at + page.f->block.base, 0);
	else if (i == 4) { /* the block ends at the end of the address space */
		put(at + page.f->block.base, last);
		put(at + page.f->block.user, last);
	} else /* more bytes than its pages have, and too few bytes */
		put(at + page.f->block.access_bytes, i == 5 ? 0x2001 : i == 6 ? 0xf : 0);
	assert_broken(2, 1);
}

PAGE_TEST(a_block_of_too_many_pages_is_in_doubt)
{
	write_blocks();
	page.heaps[page.process.heap_count++] = ROOT_A;
	put(node_at(2) + page.f->block.base_bytes, 0x1000000);
	page_walk(TARGET_SPACE_BYTES);
	assert_int_equal(page.walk.broken_count, 0);
	assert_int_equal(page.walk.block_count, 4);
	assert_int_equal(page.walk.doubt_count, 1);
}

PAGE_TIMES(a_block_that_contradicts_its_information_is_in_doubt, 3)
{
	uint64_t user = BLOCKS + 0x20000 + 0x1000 - 0x12, at = user - f->info.bytes;

	write_blocks();
	fake_map(BLOCKS + 0x20000, 0x1000);
	fake_write(at, i == 1 ? 0xabcdbbba : 0xabcdbbbb, 4);
	put(at + f->info.heap, ROOT_A);
	put(at + f->info.requested, i == 2 ? 0x11 : 0x12);
	put(at + f->info.actual, 0x80);
	fake_write(at + f->info.end_stamp, 0xdcbabbbb, 4);
	page.heaps[page.process.heap_count++] = ROOT_A;
	page_walk(TARGET_SPACE_BYTES);
	assert_int_equal(page.walk.broken_count, 0);
	assert_int_equal(page.walk.block_count, 4);
	assert_int_equal(page.walk.doubt_count, i > 0);
}

PAGE_TEST(blocks_are_no_more_than_memory)
{
	write_blocks();
	page.heaps[page.process.heap_count++] = ROOT_A;
	page_walk(0x2000);
	assert_int_equal(page.walk.block_count, 2);
	assert_true(page.walk.broken_count > 0);
}
