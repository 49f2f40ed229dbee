/*
 * Small page heaps in a made target: two roots, a tree of blocks each.
 */
#ifndef TESTS_UNIT_PAGE_MADE_H
#define TESTS_UNIT_PAGE_MADE_H

#include "tests/unit/fake_target.h"

#include "snapshot/heap/nt_heap.h"

/* Numbers of facts, written down once more here, apart from the walker's table. */
struct page_facts {
	unsigned bits, ptr, table, top, count, next, normal, signature;
	unsigned left, right, user, virtual_block, virtual_bytes, access_bytes;
	unsigned requested, trace;
	unsigned info, i_heap, i_requested, i_actual, i_trace, i_end;
};

static const struct page_facts facts[] = {
	{64, 8, 0x38, 0x10, 0x2c, 0x138, 0x150, 0x10, 8, 0x10, 0x20, 0x28, 0x30, 0x38, 0x40, 0x60,
		0x40, 8, 0x10, 0x18, 0x30, 0x3c},
	{32, 4, 0x20, 8, 0x18, 0xa4, 0xb4, 8, 4, 8, 0x10, 0x14, 0x18, 0x1c, 0x20, 0x30, 0x20, 4, 8,
		0xc, 0x18, 0x1c},
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

static inline void put(struct page *p, uint64_t addr, uint64_t value)
{
	fake_put(&p->fake, addr, value, p->f->ptr);
}

/* Across the end of a piece of verifier.dll's data, of whatever size up to 64 KiB that is a power of 2. */
static inline uint64_t head_at(const struct page *p)
{
	return VERIFIER + 0x2000 + 0x10000 - p->f->ptr;
}

static inline void link_up(struct page *p, uint64_t a, uint64_t b)
{
	put(p, a, b);
	put(p, b + p->f->ptr, a);
}

static inline void root(struct page *p, uint64_t addr)
{
	fake_map(&p->fake, addr & ~(uint64_t)0xfff, 0x1000);
	put(p, addr + p->f->normal, NORMAL);
}

/* Two roots on a list whose head lies in verifier.dll. */
static inline void page_init(struct page *p, const struct page_facts *f)
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
static inline void put_verifier(struct page *p, const char *path)
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

static inline uint64_t node_at(unsigned k)
{
	return NODES + 0x100 * (uint64_t)k;
}

/* The k'th block: two pages and what is requested at the end of the first. */
static inline uint64_t node(struct page *p, unsigned k, uint64_t requested)
{
	uint64_t at = node_at(k), pages = BLOCKS + 0x10000 * (uint64_t)k;

	put(p, at + p->f->user, pages + 0x1000 - requested);
	put(p, at + p->f->virtual_block, pages);
	put(p, at + p->f->virtual_bytes, 0x2000);
	put(p, at + p->f->access_bytes, 0x1000);
	put(p, at + p->f->requested, requested);
	put(p, at + p->f->trace, 0x30000000 + 0x100 * k);
	return at;
}

static inline void child(struct page *p, uint64_t parent, unsigned side, uint64_t at)
{
	put(p, parent + side, at);
	put(p, at, parent);
}

static inline void table(struct page *p, uint64_t root_addr, uint64_t top, unsigned count)
{
	uint64_t at = root_addr + p->f->table;

	fake_put(&p->fake, at + p->f->count, count, 4);
	child(p, at, p->f->right, top);
}

/* Three blocks in the first page heap, one in the second. */
static inline void put_blocks(struct page *p)
{
	for (unsigned k = 0; k < 4; k++)
		node(p, k, 0x10 + k);
	child(p, node_at(1), p->f->left, node_at(0));
	child(p, node_at(1), p->f->right, node_at(2));
	table(p, ROOT_A, node_at(1), 3);
	table(p, ROOT_B, node_at(3), 1);
}

static inline void page_walk(struct page *p, uint64_t limit)
{
	assert_int_equal(memory_init(&p->memory, &p->fake.target), 0);
	p->nt = (struct nt_walk){.memory = &p->memory, .process = &p->process, .walk = &p->walk};
	claims_init(&p->nt.claims, limit);
	assert_int_equal(page_heaps_walk(&p->nt), 0);
}

static inline void page_release(struct page *p)
{
	memory_release(&p->memory);
	free(p->nt.behind);
	claims_release(&p->nt.claims);
	walk_release(&p->walk);
	fake_release(&p->fake);
}

static inline void assert_found(const struct page *p, uint64_t second_handle)
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

#endif
