/* The walker of page heaps: roots are found without symbols, their trees give the blocks. */
#include "tests/unit/fake_target.h"

#include "snapshot/heap/nt_heap.h"

/* Numbers of facts, written down once more here, apart from the walker's table. */
struct page_facts {
	unsigned bits, ptr, table, top, count, next, normal, signature;
	unsigned left, right, user, virtual_block, virtual_bytes, requested, trace;
	unsigned info, i_heap, i_requested, i_actual, i_trace, i_end;
};

static const struct page_facts facts[] = {
	{64, 8, 0x38, 0x10, 0x2c, 0x138, 0x150, 0x10, 8, 0x10, 0x20, 0x28, 0x30, 0x40, 0x60, 0x40,
		8, 0x10, 0x18, 0x30, 0x3c},
	{32, 4, 0x20, 8, 0x18, 0xa4, 0xb4, 8, 4, 8, 0x10, 0x14, 0x18, 0x20, 0x30, 0x20, 4, 8, 0xc,
		0x18, 0x1c},
};

#define ROOT_A 0x10000000u
#define ROOT_B 0x11001000u /* behind a page that the handle is */
#define HANDLE_B 0x11000000u
#define NORMAL 0x12000000u
#define NODES 0x13000000u
#define VERIFIER 0x14000000u
#define BLOCKS 0x20000000u

struct page {
	struct fake fake;
	const struct page_facts *f;
	uint64_t heaps[4];
	struct nt_process process;
	struct memory memory;
	struct walk walk;
	struct nt_walk nt;
};

static void put(struct page *p, uint64_t addr, uint64_t value)
{
	fake_put(&p->fake, addr, value, p->f->ptr);
}

/* Across the end of a piece of verifier.dll's data, of whatever size up to 64 KiB that is a power of 2. */
static uint64_t head_at(const struct page *p)
{
	return VERIFIER + 0x2000 + 0x10000 - p->f->ptr;
}

static void link_up(struct page *p, uint64_t a, uint64_t b)
{
	put(p, a, b);
	put(p, b + p->f->ptr, a);
}

static void root(struct page *p, uint64_t addr)
{
	fake_map(&p->fake, addr & ~(uint64_t)0xfff, 0x1000);
	put(p, addr + p->f->normal, NORMAL);
}

/* Two roots on a list whose head lies in verifier.dll. */
static void page_init(struct page *p, const struct page_facts *f)
{
	*p = (struct page){.f = f};
	fake_init(&p->fake);
	fake_map(&p->fake, NORMAL, 0x1000);
	fake_map(&p->fake, NODES, 0x10000);
	fake_map(&p->fake, VERIFIER, 0x20000);
	fake_put(&p->fake, NORMAL + f->signature, 0xffeeffee, 4);
	root(p, ROOT_A);
	root(p, ROOT_B);
	link_up(p, head_at(p), ROOT_A + f->next);
	link_up(p, ROOT_A + f->next, ROOT_B + f->next);
	link_up(p, ROOT_B + f->next, head_at(p));
	p->process =
		(struct nt_process){.bits = f->bits, .heaps = p->heaps, .global_flag = NT_FLAG_HPA};
	p->fake.target.bits = f->bits;
	walk_init(&p->walk);
}

/* A section of data in verifier.dll, by Microsoft's "PE Format". */
static void put_verifier(struct page *p, const char *path)
{
	uint64_t at = VERIFIER + 0x80, opt = at + 24, sections;
	unsigned is_64 = p->f->bits == 64, opt_bytes = is_64 ? 240 : 224;

	fake_put(&p->fake, VERIFIER, 0x5a4d, 2);
	fake_put(&p->fake, VERIFIER + 60, 0x80, 4);
	fake_put(&p->fake, at, 0x4550, 4);
	fake_put(&p->fake, at + 4, is_64 ? 0x8664 : 0x14c, 2);
	fake_put(&p->fake, at + 6, 1, 2);
	fake_put(&p->fake, at + 20, opt_bytes, 2);
	fake_put(&p->fake, opt, is_64 ? 0x20b : 0x10b, 2);
	fake_put(&p->fake, opt + 56, 0x20000, 4);
	fake_put(&p->fake, opt + 60, 0x1000, 4);
	fake_put(&p->fake, opt + (is_64 ? 108 : 92), 16, 4);
	sections = opt + opt_bytes;
	fake_put(&p->fake, sections, 0x617461642eu, 8); /* .data */
	fake_put(&p->fake, sections + 8, 0x18000, 4);
	fake_put(&p->fake, sections + 12, 0x2000, 4);
	fake_put(&p->fake, sections + 36, 0xc0000040, 4);
	p->fake.modules[p->fake.module_count++] =
		(struct module){.base = VERIFIER, .size_bytes = 0x20000, .path = path};
}

static uint64_t node_at(unsigned k)
{
	return NODES + 0x100 * (uint64_t)k;
}

/* The k'th block: two pages and what is requested at the end of the first. */
static uint64_t node(struct page *p, unsigned k, uint64_t requested)
{
	uint64_t at = node_at(k), pages = BLOCKS + 0x10000 * (uint64_t)k;

	put(p, at + p->f->user, pages + 0x1000 - requested);
	put(p, at + p->f->virtual_block, pages);
	put(p, at + p->f->virtual_bytes, 0x2000);
	put(p, at + p->f->requested, requested);
	put(p, at + p->f->trace, 0x30000000 + 0x100 * k);
	return at;
}

static void child(struct page *p, uint64_t parent, unsigned side, uint64_t at)
{
	put(p, parent + side, at);
	put(p, at, parent);
}

static void table(struct page *p, uint64_t root_addr, uint64_t top, unsigned count)
{
	uint64_t at = root_addr + p->f->table;

	fake_put(&p->fake, at + p->f->count, count, 4);
	child(p, at, p->f->right, top);
}

/* Three blocks in the first page heap, one in the second. */
static void put_blocks(struct page *p)
{
	for (unsigned k = 0; k < 4; k++)
		node(p, k, 0x10 + k);
	child(p, node_at(1), p->f->left, node_at(0));
	child(p, node_at(1), p->f->right, node_at(2));
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
	claims_release(&p->nt.claims);
	walk_release(&p->walk);
	fake_release(&p->fake);
}

static void assert_found(const struct page *p, uint64_t second_handle)
{
	assert_int_equal(p->walk.heap_count, 2);
	assert_string_equal(p->walk.heaps[0].kind, "page");
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

#define EACH_FACTS(f) for (const struct page_facts *f = facts; f < facts + 2; f++)

/* ---------------------------------------------------------------- finding roots */

static void roots_are_found_where_handles_lead_and_on_their_list(void **state)
{
	(void)state;
	EACH_FACTS(f)
	{
		struct page p;

		page_init(&p, f);
		put_blocks(&p);
		p.heaps[p.process.heap_count++] = NORMAL;
		p.heaps[p.process.heap_count++] = HANDLE_B;
		page_walk(&p, TARGET_SPACE_BYTES);
		assert_found(&p, HANDLE_B);
		assert_true(page_heap_knows(&p.nt, HANDLE_B));
		assert_true(page_heap_knows(&p.nt, ROOT_A));
		assert_false(page_heap_knows(&p.nt, NORMAL));
		page_release(&p);
	}
}

static void roots_are_found_from_the_data_of_verifier_dll(void **state)
{
	(void)state;
	EACH_FACTS(f)
	{
		struct page p;

		page_init(&p, f);
		put_blocks(&p);
		put_verifier(&p, "C:\\Windows\\system32\\VERIFIER.DLL");
		p.heaps[p.process.heap_count++] = NORMAL;
		page_walk(&p, TARGET_SPACE_BYTES);
		assert_found(&p, ROOT_B);
		page_release(&p);
	}
}

static void verifier_dll_is_not_read_without_its_flags(void **state)
{
	struct page p;

	(void)state;
	page_init(&p, &facts[0]);
	put_blocks(&p);
	put_verifier(&p, "verifier.dll");
	p.process.global_flag = 0x1070;
	page_walk(&p, TARGET_SPACE_BYTES);
	assert_int_equal(p.walk.heap_count, 0);
	page_release(&p);
}

/* A heap stands behind a root, and it is linked or has a table: what has less is none. */
static void what_only_looks_like_a_root_is_none(void **state)
{
	(void)state;
	for (unsigned damage = 0; damage < 8; damage++) {
		struct page p;
		const struct page_facts *f = &facts[0];
		bool is_root = !(damage & 1) && (damage & 6) != 6;
		size_t found = 0;

		page_init(&p, f);
		table(&p, ROOT_A, node(&p, 0, 8), 1);
		p.heaps[p.process.heap_count++] = ROOT_A;
		if (damage & 1)
			put(&p, ROOT_A + f->normal, NODES);
		if (damage & 2)
			put(&p, ROOT_B + f->next + f->ptr, NODES);
		if (damage & 4)
			put(&p, NODES, NODES);
		page_walk(&p, TARGET_SPACE_BYTES);
		for (size_t i = 0; i < p.walk.heap_count; i++)
			found += p.walk.heaps[i].addr == ROOT_A;
		assert_int_equal(found, is_root);
		page_release(&p);
	}
}

/*
 * An ordinary heap whose memory has a list and a pointer to the heap where a root would have them, as
 * the low fragmentation heap of Windows 7 x64 does (_LFH_HEAP.SubSegmentZones 28, .Heap 40).
 */
static void an_ordinary_heap_is_no_page_heap(void **state)
{
	(void)state;
	EACH_FACTS(f)
	{
		uint64_t heap = 0x15000000, inside = heap + 0x1000;
		struct page p;

		page_init(&p, f);
		fake_map(&p.fake, heap, 0x2000);
		fake_put(&p.fake, heap + f->signature, 0xffeeffee, 4);
		link_up(&p, inside + f->next, inside + f->next);
		put(&p, inside + f->normal, heap);
		p.heaps[p.process.heap_count++] = heap;
		page_walk(&p, TARGET_SPACE_BYTES);
		assert_int_equal(p.walk.heap_count, 0);
		page_release(&p);
		/* Nor where another heap is pointed to. */
		page_init(&p, f);
		fake_map(&p.fake, heap, 0x2000);
		fake_put(&p.fake, heap + f->signature, 0xffeeffee, 4);
		link_up(&p, inside + f->next, inside + f->next);
		put(&p, inside + f->normal, NORMAL);
		p.heaps[p.process.heap_count++] = heap;
		page_walk(&p, TARGET_SPACE_BYTES);
		assert_int_equal(p.walk.heap_count, 0);
		page_release(&p);
	}
}

/* ---------------------------------------------------------------- trees that harm */

/* How many blocks the first page heap is found to have, and what is noted. */
static void assert_broken(struct page *p, unsigned blocks, unsigned broken)
{
	unsigned found = 0;

	p->heaps[p->process.heap_count++] = ROOT_A;
	page_walk(p, TARGET_SPACE_BYTES);
	for (size_t i = 0; i < p->walk.block_count; i++)
		found += p->walk.blocks[i].heap == 0;
	assert_int_equal(found, blocks);
	assert_int_equal(p->walk.broken_count, broken);
	page_release(p);
}

static void a_tree_that_leads_round_ends(void **state)
{
	(void)state;
	EACH_FACTS(f)
	{
		struct page p;

		page_init(&p, f);
		put_blocks(&p);
		put(&p, node_at(2) + f->right, node_at(1));
		assert_broken(&p, 3, 1);
		/* Also when the table itself is said to be a child. */
		page_init(&p, f);
		put_blocks(&p);
		child(&p, node_at(2), f->right, node_at(0));
		assert_broken(&p, 0, 2);
		/* Twice the same. */
		page_init(&p, f);
		put_blocks(&p);
		put(&p, node_at(1) + f->left, node_at(2));
		assert_broken(&p, 0, 2);
	}
}

static void a_tree_deeper_than_any_sound_one_ends(void **state)
{
	struct page p;

	(void)state;
	page_init(&p, &facts[0]);
	for (unsigned k = 0; k < 200; k++) {
		node(&p, k, 8);
		if (k)
			child(&p, node_at(k - 1), p.f->left, node_at(k));
	}
	table(&p, ROOT_A, node_at(0), 200);
	assert_broken(&p, 0, 2);
}

static void wrong_counts_and_wild_pointers_are_noted(void **state)
{
	(void)state;
	EACH_FACTS(f)
	{
		struct page p;

		page_init(&p, f);
		put_blocks(&p);
		table(&p, ROOT_A, node_at(1), 0xffffffff);
		assert_broken(&p, 3, 1);
		page_init(&p, f);
		put_blocks(&p);
		put(&p, node_at(2) + f->left, 0x7fff0000);
		assert_broken(&p, 2, 2);
	}
}

static void a_block_outside_of_its_pages_is_none(void **state)
{
	(void)state;
	for (unsigned damage = 0; damage < 6; damage++) {
		struct page p;
		uint64_t at = node_at(2);

		page_init(&p, &facts[damage / 5]);
		put_blocks(&p);
		if (damage == 0)
			put(&p, at + p.f->requested, UINT64_MAX);
		else if (damage == 1)
			put(&p, at + p.f->user, BLOCKS);
		else if (damage == 2)
			put(&p, at + p.f->virtual_bytes, 0);
		else if (damage > 3) { /* at the end of all addresses */
			put(&p, at + p.f->virtual_block,
				damage == 5 ? 0xfffff000 : INT64_MAX - 4095);
			put(&p, at + p.f->user, damage == 5 ? 0xfffff000 : INT64_MAX - 4095);
		} else
			put(&p, at + p.f->virtual_block, 0);
		assert_broken(&p, 2, 1);
	}
}

static void blocks_are_no_more_than_memory(void **state)
{
	struct page p;

	(void)state;
	page_init(&p, &facts[0]);
	put_blocks(&p);
	p.heaps[p.process.heap_count++] = ROOT_A;
	page_walk(&p, 0x2000);
	assert_int_equal(p.walk.block_count, 2);
	assert_true(p.walk.broken_count > 0);
	page_release(&p);
}

/* ---------------------------------------------------------------- before a block */

static void info(struct page *p, uint64_t user, uint32_t start, uint32_t end)
{
	uint64_t at = user - p->f->info;

	fake_put(&p->fake, at, start, 4);
	put(p, at + p->f->i_heap, ROOT_A);
	put(p, at + p->f->i_requested, 0x123);
	put(p, at + p->f->i_actual, 0x180);
	put(p, at + p->f->i_trace, 0x30000040);
	fake_put(&p->fake, at + p->f->i_end, end, 4);
}

static void information_before_a_block_is_read(void **state)
{
	(void)state;
	EACH_FACTS(f)
	{
		for (unsigned full = 0; full < 2; full++) {
			struct page p;
			struct page_block block;

			page_init(&p, f);
			assert_int_equal(memory_init(&p.memory, &p.fake.target), 0);
			info(&p, NODES + 0x100, full ? 0xabcdbbbb : 0xabcdaaaa,
				full ? 0xdcbabbbb : 0xdcbaaaaa);
			assert_true(page_block_parse(&p.memory, f->bits, NODES + 0x100, &block));
			assert_int_equal(block.requested_bytes, 0x123);
			assert_int_equal(block.record, 0x30000040);
			assert_int_equal(block.is_full, full);
			page_release(&p);
		}
	}
}

static void information_of_a_freed_or_damaged_block_is_none(void **state)
{
	(void)state;
	EACH_FACTS(f)
	{
		for (unsigned damage = 0; damage < 6; damage++) {
			struct page p;
			struct page_block block;
			uint64_t user = NODES + 0x100, at = user - f->info;

			page_init(&p, f);
			assert_int_equal(memory_init(&p.memory, &p.fake.target), 0);
			info(&p, user, 0xabcdaaaa, 0xdcbaaaaa);
			if (damage == 0)
				fake_put(&p.fake, at, 0xabcdaaa9, 4); /* freed */
			else if (damage == 1)
				fake_put(&p.fake, at + f->i_end, 0xdcbabbbb, 4);
			else if (damage == 2)
				put(&p, at + f->i_requested, 0x181);
			else if (damage == 3)
				put(&p, at + f->i_heap, 0);
			else
				user = damage == 4 ? 8 : 0x7fff0000;
			assert_false(page_block_parse(&p.memory, f->bits, user, &block));
			page_release(&p);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(roots_are_found_where_handles_lead_and_on_their_list),
		cmocka_unit_test(roots_are_found_from_the_data_of_verifier_dll),
		cmocka_unit_test(verifier_dll_is_not_read_without_its_flags),
		cmocka_unit_test(what_only_looks_like_a_root_is_none),
		cmocka_unit_test(an_ordinary_heap_is_no_page_heap),
		cmocka_unit_test(a_tree_that_leads_round_ends),
		cmocka_unit_test(a_tree_deeper_than_any_sound_one_ends),
		cmocka_unit_test(wrong_counts_and_wild_pointers_are_noted),
		cmocka_unit_test(a_block_outside_of_its_pages_is_none),
		cmocka_unit_test(blocks_are_no_more_than_memory),
		cmocka_unit_test(information_before_a_block_is_read),
		cmocka_unit_test(information_of_a_freed_or_damaged_block_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
