/*
 * Live blocks, in an open hash table indexed by address. The blocks of each heap also form a list
 * within the table. So the time to destroy a heap depends only on the number of its blocks. Entries
 * are small, because a process may have millions of blocks.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/record/live.h"

#define ADDR_MASK (((uint64_t)1 << LIVE_ADDR_BITS) - 1)
#define FIRST_CAP ((size_t)1 << 12)

/* A live block: its kind, the low bits of its number (see number_of()), and its neighbours in the
 * block list of its heap. */
struct known_block {
	uint64_t key; /* address and tag; 0 in a free entry */
	uint32_t kind, number;
	/* neighbours in the heap's list, as table indexes plus one; 0: none */
	uint32_t next, previous;
};

struct kind_facts {
	/* Number of allocations of the kind. number_of() derives the upper bits of a block's number
	 * from it. */
	uint64_t allocated;
	uint32_t heap; /* number of the heap's handle, if the kind's blocks are untagged */
};

struct live_blocks {
	struct recorder *recorder;
	struct known_block *blocks; /* open hash table, indexed by address */
	size_t block_count, block_cap;
	uint64_t multiplier;
	unsigned shift;
	/* first block of each list; the index is a tag, or LIVE_TAGS + handle number */
	uint32_t *heaps;
	size_t heap_cap;
	uint32_t handle_count;
	struct u64map handles; /* maps handles to handle numbers */
	struct kind_facts *facts; /* indexed by kind */
	size_t fact_cap;
};

static void set_cap(struct live_blocks *blocks, size_t cap)
{
	blocks->block_cap = cap;
	blocks->shift = 64 - (unsigned)__builtin_ctzll(cap);
}

struct live_blocks *live_blocks_new(struct recorder *recorder)
{
	struct live_blocks *blocks = xcalloc(1, sizeof(*blocks));

	*blocks = (struct live_blocks){.recorder = recorder,
		.multiplier = hash_key().words[0] | 1,
		.blocks = xcalloc(FIRST_CAP, sizeof(*blocks->blocks)),
		.heaps = xcalloc(LIVE_TAGS, sizeof(*blocks->heaps)),
		.heap_cap = LIVE_TAGS};
	u64map_init(&blocks->handles);
	set_cap(blocks, FIRST_CAP);
	return blocks;
}

void live_blocks_free(struct live_blocks *blocks)
{
	if (!blocks)
		return;
	free(blocks->blocks);
	free(blocks->heaps);
	u64map_release(&blocks->handles);
	free(blocks->facts);
	free(blocks);
}

static size_t home(const struct live_blocks *blocks, uint64_t addr)
{
	return (size_t)((addr >> 3) * blocks->multiplier >> blocks->shift);
}

/* Returns the entry of the block at `addr`, or the free entry where that block would be stored. */
static struct known_block *find_block(const struct live_blocks *blocks, uint64_t addr)
{
	size_t at = home(blocks, addr);

	while (blocks->blocks[at].key && (blocks->blocks[at].key & ADDR_MASK) != addr)
		at = (at + 1) & (blocks->block_cap - 1);
	return &blocks->blocks[at];
}

/* Returns the head of the list that contains a block. */
static uint32_t *heap_of(struct live_blocks *blocks, const struct known_block *block)
{
	size_t tag = block->key >> LIVE_ADDR_BITS;

	return &blocks->heaps[tag ? tag : LIVE_TAGS + blocks->facts[block->kind].heap];
}

static uint32_t place_of(const struct live_blocks *blocks, const struct known_block *block)
{
	return (uint32_t)(block - blocks->blocks) + 1;
}

/* Updates the block's neighbours after the block moved to another entry. */
static void link_block(struct live_blocks *blocks, const struct known_block *block, uint32_t place)
{
	if (block->previous)
		blocks->blocks[block->previous - 1].next = place;
	else
		*heap_of(blocks, block) = place;
	if (block->next)
		blocks->blocks[block->next - 1].previous = place;
}

static void unlink_block(struct live_blocks *blocks, const struct known_block *block)
{
	if (block->previous)
		blocks->blocks[block->previous - 1].next = block->next;
	else
		*heap_of(blocks, block) = block->next;
	if (block->next)
		blocks->blocks[block->next - 1].previous = block->previous;
}

/* Stores a block in a free entry and inserts it at the head of its heap's list. */
static void write_block(
	struct live_blocks *blocks, struct known_block *entry, struct known_block block)
{
	block.previous = 0;
	block.next = *heap_of(blocks, &block);
	*entry = block;
	link_block(blocks, entry, place_of(blocks, entry));
}

/* Doubles the table in place, because the table takes up most of the memory. Blocks move to their
 * new entries, starting with the last block. Normally a block's new entry lies after all blocks
 * that have not moved yet. The few blocks for which this is not true are moved at the end. */
static void grow(struct live_blocks *blocks)
{
	const size_t old_cap = blocks->block_cap;
	struct known_block *late = NULL;
	size_t late_count = 0, late_cap = 0;

	blocks->blocks = xrealloc(blocks->blocks, 2 * old_cap * sizeof(*blocks->blocks));
	memset(blocks->blocks + old_cap, 0, old_cap * sizeof(*blocks->blocks));
	memset(blocks->heaps, 0, blocks->heap_cap * sizeof(*blocks->heaps));
	set_cap(blocks, 2 * old_cap);
	for (size_t i = old_cap; i--;) {
		const struct known_block block = blocks->blocks[i];

		if (!block.key)
			continue;
		blocks->blocks[i].key = 0;
		if (home(blocks, block.key & ADDR_MASK) >= i) {
			write_block(blocks, find_block(blocks, block.key & ADDR_MASK), block);
		} else {
			array_grow((void **)&late, &late_cap, late_count, sizeof(*late));
			late[late_count++] = block;
		}
	}
	for (size_t i = 0; i < late_count; i++)
		write_block(blocks, find_block(blocks, late[i].key & ADDR_MASK), late[i]);
	free(late);
}

static void remove_block(struct live_blocks *blocks, struct known_block *block)
{
	size_t mask = blocks->block_cap - 1, hole = (size_t)(block - blocks->blocks);

	unlink_block(blocks, block);
	for (size_t at = (hole + 1) & mask; blocks->blocks[at].key; at = (at + 1) & mask) {
		size_t from = home(blocks, blocks->blocks[at].key & ADDR_MASK);

		if (((at - from) & mask) < ((at - hole) & mask))
			continue;
		blocks->blocks[hole] = blocks->blocks[at];
		link_block(blocks, &blocks->blocks[hole], (uint32_t)hole + 1);
		hole = at;
	}
	blocks->blocks[hole].key = 0;
	blocks->block_count--;
}

/* Returns the number of a handle whose blocks have no tag. */
static uint32_t heap_number(struct live_blocks *blocks, uint64_t handle)
{
	uint32_t number = blocks->handle_count;

	if (!u64map_add(&blocks->handles, handle, &number))
		return number;
	while (LIVE_TAGS + number >= blocks->heap_cap)
		array_grow((void **)&blocks->heaps, &blocks->heap_cap, blocks->heap_cap,
			sizeof(*blocks->heaps));
	blocks->heaps[LIVE_TAGS + number] = 0;
	return blocks->handle_count++;
}

static uint64_t alloc(struct live_blocks *blocks, uint32_t kind, uint64_t addr, uint64_t heap)
{
	uint64_t number = recorder_alloc(blocks->recorder, kind, addr);

	while (kind >= blocks->fact_cap)
		array_grow((void **)&blocks->facts, &blocks->fact_cap, blocks->fact_cap,
			sizeof(*blocks->facts));
	if (!number)
		blocks->facts[kind].heap = heap_number(blocks, heap);
	blocks->facts[kind].allocated = number + 1;
	return number;
}

/* Returns the full number of a block, which stores only the low bits. This is the newest number
 * with these low bits, because fewer than 2^32 blocks of a kind are allocated during the life of
 * one block. */
static uint64_t number_of(const struct live_blocks *blocks, const struct known_block *block)
{
	uint64_t newest = blocks->facts[block->kind].allocated - 1;

	return newest - (uint32_t)((uint32_t)newest - block->number);
}

static void end_block(struct live_blocks *blocks, struct known_block *block, uint32_t stack)
{
	recorder_free_by(blocks->recorder, block->kind, number_of(blocks, block), stack);
	remove_block(blocks, block);
}

void live_block_expect(const struct live_blocks *blocks, uint64_t addr)
{
	__builtin_prefetch(&blocks->blocks[home(blocks, addr)]);
}

bool live_block_exists(const struct live_blocks *blocks, uint64_t addr)
{
	return find_block(blocks, addr)->key;
}

bool live_block_begin(
	struct live_blocks *blocks, uint64_t addr, unsigned tag, uint64_t heap, uint32_t kind)
{
	struct known_block *known = find_block(blocks, addr);
	const bool was_there = known->key;
	struct known_block block = {.key = addr | (uint64_t)tag << LIVE_ADDR_BITS, .kind = kind};

	if (was_there)
		end_block(blocks, known, RECORD_NO_STACK);
	if (blocks->block_count >= blocks->block_cap / 4 * 3)
		grow(blocks);
	block.number = (uint32_t)alloc(blocks, kind, addr, heap);
	write_block(blocks, find_block(blocks, addr), block);
	blocks->block_count++;
	return was_there;
}

bool live_block_end(struct live_blocks *blocks, uint64_t addr, uint32_t stack)
{
	struct known_block *known = find_block(blocks, addr);

	if (!known->key)
		return false;
	end_block(blocks, known, stack);
	return true;
}

static void end_list(struct live_blocks *blocks, size_t heap)
{
	while (blocks->heaps[heap])
		end_block(blocks, &blocks->blocks[blocks->heaps[heap] - 1], RECORD_NO_STACK);
}

void live_heap_end_tag(struct live_blocks *blocks, unsigned tag)
{
	end_list(blocks, tag);
}

void live_heap_end(struct live_blocks *blocks, uint64_t heap)
{
	uint32_t number;

	if (u64map_find(&blocks->handles, heap, &number))
		end_list(blocks, LIVE_TAGS + number);
}

size_t live_blocks_count(const struct live_blocks *blocks)
{
	return blocks->block_count;
}

size_t live_blocks_filter(struct live_blocks *blocks,
	bool (*exists)(const void *ctx, uint64_t addr), const void *ctx, size_t most)
{
	uint64_t *gone = NULL;
	size_t count = 0, cap = 0;

	/* Collect the addresses first, because removing an entry moves others. */
	for (size_t i = 0; i < blocks->block_cap; i++) {
		const uint64_t addr = blocks->blocks[i].key & ADDR_MASK;

		if (!blocks->blocks[i].key || exists(ctx, addr))
			continue;
		array_grow((void **)&gone, &cap, count, sizeof(*gone));
		gone[count++] = addr;
	}
	for (size_t i = 0; count <= most && i < count; i++)
		live_block_end(blocks, gone[i], RECORD_NO_STACK);
	free(gone);
	return count;
}
