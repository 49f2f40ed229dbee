#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/record/live.h"

#define ADDR_MASK (((uint64_t)1 << LIVE_ADDR_BITS) - 1)
#define FIRST_CAP ((size_t)1 << 12)

/* A live block: what it is in the recording. Of its number the low bits, see number_of(). Those of a heap are in a list,
 * so that its end takes the time of its own blocks. */
struct known_block {
	uint64_t key; /* address and tag; 0: a free entry */
	uint32_t kind, number;
	uint32_t next, previous; /* in its heap: where in the table, plus one; 0: none */
};

struct kind_facts {
	uint64_t allocated; /* how many, which says the upper bits of a block's number */
	uint32_t heap; /* of blocks without a tag: their heap's number by its handle */
};

struct live_blocks {
	struct recorder *recorder;
	struct known_block *blocks; /* by address, an open table */
	size_t block_count, block_cap;
	uint64_t multiplier;
	unsigned shift;
	uint32_t *heaps; /* lists of blocks, by tag, and behind these by number */
	size_t heap_cap;
	uint32_t handle_count;
	struct u64map handles; /* to those numbers */
	struct kind_facts *facts; /* by kind */
	size_t fact_cap;
};

static void set_cap(struct live_blocks *live, size_t cap)
{
	live->block_cap = cap;
	live->shift = 64 - (unsigned)__builtin_ctzll(cap);
}

struct live_blocks *live_blocks_new(struct recorder *recorder)
{
	struct live_blocks *live = xcalloc(1, sizeof(*live));

	*live = (struct live_blocks){.recorder = recorder,
		.multiplier = hash_key().words[0] | 1,
		.blocks = xcalloc(FIRST_CAP, sizeof(*live->blocks)),
		.heaps = xcalloc(LIVE_TAGS, sizeof(*live->heaps)),
		.heap_cap = LIVE_TAGS};
	u64map_init(&live->handles);
	set_cap(live, FIRST_CAP);
	return live;
}

void live_blocks_free(struct live_blocks *live)
{
	if (!live)
		return;
	free(live->blocks);
	free(live->heaps);
	u64map_release(&live->handles);
	free(live->facts);
	free(live);
}

static size_t home(const struct live_blocks *live, uint64_t addr)
{
	return (size_t)((addr >> 3) * live->multiplier >> live->shift);
}

/* The entry of the block at addr, or the free one where it would be. */
static struct known_block *find_block(const struct live_blocks *live, uint64_t addr)
{
	size_t at = home(live, addr);

	while (live->blocks[at].key && (live->blocks[at].key & ADDR_MASK) != addr)
		at = (at + 1) & (live->block_cap - 1);
	return &live->blocks[at];
}

/* The list that a block is in. */
static uint32_t *heap_of(struct live_blocks *live, const struct known_block *block)
{
	size_t tag = block->key >> LIVE_ADDR_BITS;

	return &live->heaps[tag ? tag : LIVE_TAGS + live->facts[block->kind].heap];
}

static uint32_t place_of(const struct live_blocks *live, const struct known_block *block)
{
	return (uint32_t)(block - live->blocks) + 1;
}

/* The neighbours of a block have it where it lies now. */
static void link_block(struct live_blocks *live, const struct known_block *block, uint32_t place)
{
	if (block->previous)
		live->blocks[block->previous - 1].next = place;
	else
		*heap_of(live, block) = place;
	if (block->next)
		live->blocks[block->next - 1].previous = place;
}

static void unlink_block(struct live_blocks *live, const struct known_block *block)
{
	if (block->previous)
		live->blocks[block->previous - 1].next = block->next;
	else
		*heap_of(live, block) = block->next;
	if (block->next)
		live->blocks[block->next - 1].previous = block->previous;
}

/* Puts a block into a free entry, and before all of its heap. */
static void put_block(struct live_blocks *live, struct known_block *entry, struct known_block block)
{
	block.previous = 0;
	block.next = *heap_of(live, &block);
	*entry = block;
	link_block(live, entry, place_of(live, entry));
}

/* Doubles the table where it lies, for it is most of what we need: from its end on each block goes to the place that it
 * has in the new one, which is behind all that have not moved yet; those few of which that is not so go last. */
static void grow(struct live_blocks *live)
{
	const size_t old_cap = live->block_cap;
	struct known_block *late = NULL;
	size_t late_count = 0, late_cap = 0;

	live->blocks = xrealloc(live->blocks, 2 * old_cap * sizeof(*live->blocks));
	memset(live->blocks + old_cap, 0, old_cap * sizeof(*live->blocks));
	memset(live->heaps, 0, live->heap_cap * sizeof(*live->heaps));
	set_cap(live, 2 * old_cap);
	for (size_t i = old_cap; i--;) {
		const struct known_block block = live->blocks[i];

		if (!block.key)
			continue;
		live->blocks[i].key = 0;
		if (home(live, block.key & ADDR_MASK) >= i) {
			put_block(live, find_block(live, block.key & ADDR_MASK), block);
		} else {
			array_grow((void **)&late, &late_cap, late_count, sizeof(*late));
			late[late_count++] = block;
		}
	}
	for (size_t i = 0; i < late_count; i++)
		put_block(live, find_block(live, late[i].key & ADDR_MASK), late[i]);
	free(late);
}

static void remove_block(struct live_blocks *live, struct known_block *block)
{
	size_t mask = live->block_cap - 1, hole = (size_t)(block - live->blocks);

	unlink_block(live, block);
	for (size_t at = (hole + 1) & mask; live->blocks[at].key; at = (at + 1) & mask) {
		size_t from = home(live, live->blocks[at].key & ADDR_MASK);

		if (((at - from) & mask) < ((at - hole) & mask))
			continue;
		live->blocks[hole] = live->blocks[at];
		link_block(live, &live->blocks[hole], (uint32_t)hole + 1);
		hole = at;
	}
	live->blocks[hole].key = 0;
	live->block_count--;
}

/* The number of the heap with a handle, whose blocks have no tag. */
static uint32_t heap_number(struct live_blocks *live, uint64_t handle)
{
	uint32_t number = live->handle_count;

	if (!u64map_put(&live->handles, handle, &number))
		return number;
	while (LIVE_TAGS + number >= live->heap_cap)
		array_grow((void **)&live->heaps, &live->heap_cap, live->heap_cap,
			sizeof(*live->heaps));
	live->heaps[LIVE_TAGS + number] = 0;
	return live->handle_count++;
}

/* Allocates one of a kind: its number. */
static uint64_t alloc(struct live_blocks *live, uint32_t kind, uint64_t addr, uint64_t heap)
{
	uint64_t number = recorder_alloc(live->recorder, kind, addr);

	while (kind >= live->fact_cap)
		array_grow((void **)&live->facts, &live->fact_cap, live->fact_cap,
			sizeof(*live->facts));
	if (!number)
		live->facts[kind].heap = heap_number(live, heap);
	live->facts[kind].allocated = number + 1;
	return number;
}

/* The newest number that has these low bits: no block sees 2^32 others of its kind come. */
static uint64_t number_of(const struct live_blocks *live, const struct known_block *block)
{
	uint64_t newest = live->facts[block->kind].allocated - 1;

	return newest - (uint32_t)((uint32_t)newest - block->number);
}

static void end_block(struct live_blocks *live, struct known_block *block, uint32_t stack)
{
	recorder_free_by(live->recorder, block->kind, number_of(live, block), stack);
	remove_block(live, block);
}

void live_block_expect(const struct live_blocks *live, uint64_t addr)
{
	__builtin_prefetch(&live->blocks[home(live, addr)]);
}

bool live_block_is_there(const struct live_blocks *live, uint64_t addr)
{
	return find_block(live, addr)->key;
}

bool live_block_begin(
	struct live_blocks *live, uint64_t addr, unsigned tag, uint64_t heap, uint32_t kind)
{
	struct known_block *known = find_block(live, addr);
	const bool was_there = known->key;
	struct known_block block = {.key = addr | (uint64_t)tag << LIVE_ADDR_BITS, .kind = kind};

	if (was_there)
		end_block(live, known, RECORD_NO_STACK);
	if (live->block_count >= live->block_cap / 4 * 3)
		grow(live);
	block.number = (uint32_t)alloc(live, kind, addr, heap);
	put_block(live, find_block(live, addr), block);
	live->block_count++;
	return was_there;
}

bool live_block_end(struct live_blocks *live, uint64_t addr, uint32_t stack)
{
	struct known_block *known = find_block(live, addr);

	if (!known->key)
		return false;
	end_block(live, known, stack);
	return true;
}

static void end_list(struct live_blocks *live, size_t heap)
{
	while (live->heaps[heap])
		end_block(live, &live->blocks[live->heaps[heap] - 1], RECORD_NO_STACK);
}

void live_heap_end_tag(struct live_blocks *live, unsigned tag)
{
	end_list(live, tag);
}

void live_heap_end(struct live_blocks *live, uint64_t heap)
{
	uint32_t number;

	if (u64map_find(&live->handles, heap, &number))
		end_list(live, LIVE_TAGS + number);
}
