/* The walker of page heaps: roots are found without symbols, their trees give the blocks. Fields lie where
 * the image maker's tables have them, apart from the walker's. */
#include "tests/unit/t.h"

#include "tests/unit/fake_target.h"

#include "snapshot/heap/nt_heap.h"
#include "tests/images/page_image_layout.h"

#define ROOT_A 0x10000000u
#define ROOT_B 0x11001000u /* behind a page that the handle is */
#define HANDLE_B 0x11000000u
#define NORMAL 0x12000000u
#define NODES 0x13000000u
#define VERIFIER 0x14000000u
#define BLOCKS 0x20000000u

struct page {
	struct fake fake;
	const struct page_image_layout *f;
	unsigned ptr; /* bytes of a pointer */
	uint64_t heaps[4];
	struct nt_process process;
	struct memory memory;
	struct walk walk;
	struct nt_walk nt;
};

static void put(struct page *p, uint64_t addr, uint64_t value)
{
	fake_put(&p->fake, addr, value, p->ptr);
}

/* Across the end of a piece of verifier.dll's data, of whatever size up to 64 KiB that is a power of 2. */
static uint64_t head_at(const struct page *p)
{
	return VERIFIER + 0x2000 + 0x10000 - p->ptr;
}

static void link_up(struct page *p, uint64_t a, uint64_t b)
{
	put(p, a, b);
	put(p, b + p->ptr, a);
}

static void root(struct page *p, uint64_t addr)
{
	fake_map(&p->fake, addr & ~(uint64_t)0xfff, 0x1000);
	put(p, addr + p->f->root.normal, NORMAL);
	put(p, addr + p->f->root.busy_bytes, 0x5000);
}

/* Two roots on a list whose head lies in verifier.dll. */
static void page_init(struct page *p, const struct page_image_layout *f)
{
	*p = (struct page){.f = f, .ptr = f->bits / 8};
	fake_init(&p->fake);
	fake_map(&p->fake, NORMAL, 0x1000);
	fake_map(&p->fake, NODES, 0x10000);
	fake_map(&p->fake, VERIFIER, 0x20000);
	fake_put(&p->fake, NORMAL + NT_HEAP_SIGNATURE_AT(f->bits), 0xffeeffee, 4);
	root(p, ROOT_A);
	root(p, ROOT_B);
	link_up(p, head_at(p), ROOT_A + f->root.next);
	link_up(p, ROOT_A + f->root.next, ROOT_B + f->root.next);
	link_up(p, ROOT_B + f->root.next, head_at(p));
	p->process =
		(struct nt_process){.bits = f->bits, .heaps = p->heaps, .global_flag = NT_FLAG_HPA};
	p->fake.target.bits = f->bits;
	walk_init(&p->walk);
}

static uint64_t node_at(unsigned k)
{
	return NODES + 0x100 * (uint64_t)k;
}

/* The k'th block: two pages and what is requested at the end of the first. */
static uint64_t node(struct page *p, unsigned k, uint64_t requested)
{
	uint64_t at = node_at(k), pages = BLOCKS + 0x10000 * (uint64_t)k;

	put(p, at + p->f->block.user, pages + 0x1000 - requested);
	put(p, at + p->f->block.base, pages);
	put(p, at + p->f->block.base_bytes, 0x2000);
	put(p, at + p->f->block.access_bytes, 0x1000);
	put(p, at + p->f->block.requested, requested);
	put(p, at + p->f->block.stack, 0x30000000 + 0x100 * k);
	return at;
}

static void child(struct page *p, uint64_t parent, unsigned side, uint64_t at)
{
	put(p, parent + side, at);
	put(p, at, parent);
}

static void table(struct page *p, uint64_t root_addr, uint64_t top, unsigned count)
{
	uint64_t at = root_addr + p->f->root.busy_table;

	fake_put(&p->fake, at + p->f->table.count, count, 4);
	child(p, at, 2 * p->ptr, top);
}

/* Three blocks in the first page heap, one in the second. */
static void put_blocks(struct page *p)
{
	for (unsigned k = 0; k < 4; k++)
		node(p, k, 0x10 + k);
	child(p, node_at(1), p->ptr, node_at(0));
	child(p, node_at(1), 2 * p->ptr, node_at(2));
	table(p, ROOT_A, node_at(1), 3);
	table(p, ROOT_B, node_at(3), 1);
}

static void page_walk(struct page *p, uint64_t limit)
{
	assert_int_equal(memory_init(&p->memory, &p->fake.target), 0);
	p->nt = (struct nt_walk){.memory = &p->memory, .process = &p->process, .walk = &p->walk};
	claims_init(&p->nt.claims, limit);
	assert_int_equal(page_heaps_walk(&p->nt), 0);
}

static void page_release(struct page *p)
{
	memory_release(&p->memory);
	free(p->nt.behind);
	claims_release(&p->nt.claims);
	walk_release(&p->walk);
	fake_release(&p->fake);
}

static void assert_found(const struct page *p, uint64_t second_handle)
{
	assert_int_equal(p->walk.heap_count, 2);
	assert_string_equal(p->walk.heaps[0].kind, "page");
	assert_int_equal(p->walk.heaps[0].committed_bytes, 0x5000);
	assert_int_equal(p->walk.heaps[0].addr, ROOT_A);
	assert_int_equal(p->walk.heaps[1].addr, second_handle);
	assert_int_equal(p->walk.broken_count, 0);
	assert_int_equal(p->walk.block_count, 4);
	for (unsigned k = 0; k < 4; k++) {
		const struct walked_block *block = &p->walk.blocks[k];

		assert_int_equal(block->addr, BLOCKS + 0x10000 * (uint64_t)k + 0x1000 - 0x10 - k);
		assert_int_equal(block->requested_bytes, 0x10 + k);
		assert_int_equal(block->overhead_bytes, 0x2000 - 0x10 - k);
		assert_int_equal(block->record, 0x30000000 + 0x100 * k);
		assert_int_equal(block->heap, k == 3);
	}
}

/* A test of a fresh process p, with page heaps that have no blocks yet, of both bitnesses; and the same for
 * each i below times. */
static void page_run(
	void (*test)(struct page *p, const struct page_image_layout *f, unsigned i), unsigned times)
{
	for (unsigned bits = 32; bits <= 64; bits += 32) {
		for (unsigned i = 0; i < times; i++) {
			struct page p;

			page_init(&p, page_image_layout_of(bits));
			test(&p, p.f, i);
			page_release(&p);
		}
	}
}

#define PAGE_TEST(name) PAGE_TIMES(name, 1)
#define PAGE_TIMES(name, times)                                                                    \
	static void name##_in(struct page *p, const struct page_image_layout *f, unsigned i);      \
	TEST(name)                                                                                 \
	{                                                                                          \
		page_run(name##_in, times);                                                        \
	}                                                                                          \
	static void name##_in(struct page *p,                                                      \
		const struct page_image_layout *f __attribute__((unused)),                         \
		unsigned i __attribute__((unused)))

/* ---------------------------------------------------------------- finding roots */

PAGE_TEST(roots_are_found_where_handles_lead_and_on_their_list)
{
	put_blocks(p);
	p->heaps[p->process.heap_count++] = NORMAL;
	p->heaps[p->process.heap_count++] = HANDLE_B;
	page_walk(p, TARGET_SPACE_BYTES);
	assert_found(p, HANDLE_B);
	assert_true(page_heap_knows(&p->nt, HANDLE_B));
	assert_true(page_heap_knows(&p->nt, ROOT_A));
	assert_false(page_heap_knows(&p->nt, NORMAL));
}

PAGE_TEST(roots_are_found_from_the_data_of_verifier_dll)
{
	put_blocks(p);
	fake_put_module(&p->fake, VERIFIER, f->bits, 0x20000, 0x18000,
		"C:\\Windows\\system32\\VERIFIER.DLL");
	p->heaps[p->process.heap_count++] = NORMAL;
	page_walk(p, TARGET_SPACE_BYTES);
	assert_found(p, ROOT_B);
}

PAGE_TEST(verifier_dll_is_not_read_without_its_flags)
{
	put_blocks(p);
	fake_put_module(&p->fake, VERIFIER, f->bits, 0x20000, 0x18000, "verifier.dll");
	p->process.global_flag = 0x1070;
	page_walk(p, TARGET_SPACE_BYTES);
	assert_int_equal(p->walk.heap_count, 0);
}

/* A heap stands behind a root, and it is linked or has a table: what has less is none. */
PAGE_TIMES(what_only_looks_like_a_root_is_none, 8)
{
	bool is_root = !(i & 1) && (i & 6) != 6;
	size_t found = 0;

	table(p, ROOT_A, node(p, 0, 8), 1);
	p->heaps[p->process.heap_count++] = ROOT_A;
	if (i & 1)
		put(p, ROOT_A + f->root.normal, NODES);
	if (i & 2)
		put(p, ROOT_B + f->root.next + p->ptr, NODES);
	if (i & 4)
		put(p, NODES, NODES);
	page_walk(p, TARGET_SPACE_BYTES);
	for (size_t k = 0; k < p->walk.heap_count; k++)
		found += p->walk.heaps[k].addr == ROOT_A;
	assert_int_equal(found, is_root);
}

/* It holds blocks too; whether the PEB lists it is nowhere written. */
PAGE_TIMES(the_heap_behind_page_heaps_is_walked_once_whoever_lists_it, 2)
{
	put_blocks(p);
	p->heaps[p->process.heap_count++] = HANDLE_B;
	if (i)
		p->heaps[p->process.heap_count++] = NORMAL;
	page_walk(p, TARGET_SPACE_BYTES);
	assert_int_equal(p->nt.page_heap_count, 2);
	assert_int_equal(p->nt.behind_count, !i); /* of both */
	if (!i)
		assert_int_equal(p->nt.behind[0], NORMAL);
}

/* ---------------------------------------------------------------- before a block */

static void info(struct page *p, uint64_t user, uint32_t start, uint32_t end)
{
	uint64_t at = user - p->f->info.bytes;

	fake_put(&p->fake, at, start, 4);
	put(p, at + p->f->info.heap, ROOT_A);
	put(p, at + p->f->info.requested, 0x123);
	put(p, at + p->f->info.actual, 0x180);
	put(p, at + p->f->info.stack, 0x30000040);
	fake_put(&p->fake, at + p->f->info.end_stamp, end, 4);
}

PAGE_TIMES(information_before_a_block_is_read, 2)
{
	struct page_block block;

	assert_int_equal(memory_init(&p->memory, &p->fake.target), 0);
	info(p, NODES + 0x100, i ? 0xabcdbbbb : 0xabcdaaaa, i ? 0xdcbabbbb : 0xdcbaaaaa);
	assert_true(page_block_parse(&p->memory, f->bits, NODES + 0x100, &block));
	assert_int_equal(block.requested_bytes, 0x123);
	assert_int_equal(block.record, 0x30000040);
	assert_int_equal(block.is_full, i);
	assert_false(!i && page_block_is_damaged(&p->memory, f->bits, NODES + 0x100));
}

PAGE_TIMES(information_of_a_freed_or_damaged_block_is_none, 7)
{
	struct page_block block;
	uint64_t user = NODES + 0x100, at = user - f->info.bytes;

	assert_int_equal(memory_init(&p->memory, &p->fake.target), 0);
	info(p, user, 0xabcdaaaa, 0xdcbaaaaa);
	if (i == 0)
		fake_put(&p->fake, at, 0xabcdaaa9, 4); /* freed */
	else if (i == 1)
		fake_put(&p->fake, at + f->info.end_stamp, 0xdcbabbbb, 4);
	else if (i == 2)
		put(p, at + f->info.requested, 0x181);
	else if (i == 3)
		put(p, at + f->info.heap, 0);
	else if (i < 6)
		user = i == 4 ? 8 : 0x7fff0000;
	else { /* both, as of what was freed */
		fake_put(&p->fake, at, 0xabcdaaa9, 4);
		fake_put(&p->fake, at + f->info.end_stamp, 0xdcbaaaa9, 4);
	}
	assert_false(page_block_parse(&p->memory, f->bits, user, &block));
	assert_int_equal(page_block_is_damaged(&p->memory, f->bits, user), i < 4);
}

/* ---------------------------------------------------------------- the tree of blocks */

/* How many blocks the first page heap is found to have, and what is noted. */
static void assert_broken(struct page *p, unsigned blocks, unsigned broken)
{
	unsigned found = 0;

	p->heaps[p->process.heap_count++] = ROOT_A;
	page_walk(p, TARGET_SPACE_BYTES);
	for (size_t i = 0; i < p->walk.block_count; i++)
		found += p->walk.blocks[i].heap == 0;
	assert_int_equal(found, blocks);
	assert_int_equal(p->walk.broken_count + p->walk.missing_count, broken);
}

PAGE_TEST(a_tree_deeper_than_any_sound_one_ends)
{
	for (unsigned k = 0; k < 200; k++) {
		node(p, k, 8);
		if (k)
			child(p, node_at(k - 1), p->ptr, node_at(k));
	}
	table(p, ROOT_A, node_at(0), 200);
	assert_broken(p, 96, 2);
}

PAGE_TIMES(what_hangs_elsewhere_than_on_a_damaged_node_is_found, 6)
{
	unsigned bad = i % 3;

	put_blocks(p);
	if (i < 3) {
		put(p, node_at(bad) + f->block.requested, 0x7fffffff);
		assert_broken(p, 2, 1);
	} else {
		put(p, node_at(bad), NODES + 0x8000); /* its parent */
		assert_broken(p, bad == 1 ? 3 : 2, bad == 1 ? 0 : 2);
	}
}

PAGE_TIMES(a_block_outside_of_its_pages_is_none, 8)
{
	uint64_t at = node_at(2), last = f->bits == 32 ? 0xfffff000 : INT64_MAX - 4095;

	put_blocks(p);
	if (i == 0)
		put(p, at + p->f->block.requested, UINT64_MAX);
	else if (i == 1)
		put(p, at + p->f->block.user, BLOCKS);
	else if (i == 2)
		put(p, at + p->f->block.base_bytes, 0);
	else if (i == 3)
		put(p, at + p->f->block.base, 0);
	else if (i == 4) { /* at the end of all addresses */
		put(p, at + p->f->block.base, last);
		put(p, at + p->f->block.user, last);
	} else /* more than its pages are, and too little */
		put(p, at + p->f->block.access_bytes, i == 5 ? 0x2001 : i == 6 ? 0xf : 0);
	assert_broken(p, 2, 1);
}

PAGE_TEST(a_block_of_too_many_pages_is_in_doubt)
{
	put_blocks(p);
	p->heaps[p->process.heap_count++] = ROOT_A;
	put(p, node_at(2) + p->f->block.base_bytes, 0x1000000);
	page_walk(p, TARGET_SPACE_BYTES);
	assert_int_equal(p->walk.broken_count, 0);
	assert_int_equal(p->walk.block_count, 4);
	assert_int_equal(p->walk.doubt_count, 1);
}

/* The information before a block, when it can be read, is about that block. */
PAGE_TIMES(a_block_whose_information_says_otherwise_is_in_doubt, 3)
{
	uint64_t user = BLOCKS + 0x20000 + 0x1000 - 0x12, at = user - f->info.bytes;

	put_blocks(p);
	fake_map(&p->fake, BLOCKS + 0x20000, 0x1000);
	fake_put(&p->fake, at, i == 1 ? 0xabcdbbba : 0xabcdbbbb, 4);
	put(p, at + f->info.heap, ROOT_A);
	put(p, at + f->info.requested, i == 2 ? 0x11 : 0x12);
	put(p, at + f->info.actual, 0x80);
	fake_put(&p->fake, at + f->info.end_stamp, 0xdcbabbbb, 4);
	p->heaps[p->process.heap_count++] = ROOT_A;
	page_walk(p, TARGET_SPACE_BYTES);
	assert_int_equal(p->walk.broken_count, 0);
	assert_int_equal(p->walk.block_count, 4);
	assert_int_equal(p->walk.doubt_count, i > 0);
}

PAGE_TEST(blocks_are_no_more_than_memory)
{
	put_blocks(p);
	p->heaps[p->process.heap_count++] = ROOT_A;
	page_walk(p, 0x2000);
	assert_int_equal(p->walk.block_count, 2);
	assert_true(p->walk.broken_count > 0);
}
