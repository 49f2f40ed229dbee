/*
 * Results of a walk, collected in struct walk: heaps, blocks, records of stacks, and faults.
 *
 * A new block belongs to the heap that was added last. It refers to the record of its stack by the
 * record's number. Many blocks share a record, so the number is looked up by the record's address,
 * first in a cache of recent records. For each kind of fault, all places are counted, and the first
 * place is stored. A second thread can add blocks to a part of the walk, which walk_join() appends.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "snapshot/heap/heap.h"

#define OWN_BITS 12 /* one address per page is enough */
#define RECENT_SHIFT 48 /* reduces a multiplied address to a 16-bit hash */
#define RECENT_RECORDS ((size_t)1 << (64 - RECENT_SHIFT))
#define MANY_BLOCKS ((size_t)1 << 16)
#define CONTAINERS_MAX ((size_t)1 << 20)
#define WALK_HEAPS_MAX (BLOCK_HEAPS_MAX - 8) /* higher numbers are reserved for headings */

void walk_init(struct walk *walk)
{
	*walk = (struct walk){0};
	u64map_init(&walk->record_numbers[0]);
	u64map_init(&walk->record_numbers[1]);
}

void walk_release(struct walk *walk)
{
	free(walk->heaps);
	free(walk->blocks);
	free(walk->records);
	free(walk->recent_records);
	free(walk->own);
	free(walk->containers);
	u64map_release(&walk->record_numbers[0]);
	u64map_release(&walk->record_numbers[1]);
	walk_init(walk);
}

void walk_clear(struct walk *walk)
{
	struct walk kept = *walk;

	u64map_release(&kept.record_numbers[0]);
	u64map_release(&kept.record_numbers[1]);
	*walk = (struct walk){.heaps = kept.heaps,
		.heap_cap = kept.heap_cap,
		.blocks = kept.blocks,
		.block_cap = kept.block_cap,
		.records = kept.records,
		.record_cap = kept.record_cap,
		.recent_records = kept.recent_records,
		.record_numbers = {kept.record_numbers[0], kept.record_numbers[1]},
		.own = kept.own,
		.own_cap = kept.own_cap,
		.containers = kept.containers,
		.container_cap = kept.container_cap};
}

int walk_add_heap(struct walk *walk, const struct heap *heap)
{
	if (walk->heap_count == WALK_HEAPS_MAX ||
		array_try_grow(
			(void **)&walk->heaps, &walk->heap_cap, walk->heap_count, sizeof(*heap)))
		return -ERR_NOMEM;
	walk->heaps[walk->heap_count++] = *heap;
	return 0;
}

int walk_add_own(struct walk *walk, uint64_t addr)
{
	if (walk->own_count && walk->own[walk->own_count - 1] >> OWN_BITS == addr >> OWN_BITS)
		return 0;
	if (array_try_grow(
		    (void **)&walk->own, &walk->own_cap, walk->own_count, sizeof(*walk->own)))
		return -ERR_NOMEM;
	walk->own[walk->own_count++] = addr;
	return 0;
}

int walk_add_container(struct walk *walk, uint64_t addr, uint64_t bytes, enum container_kind kind)
{
	const uint32_t heap = (uint32_t)walk->heap_count - 1;

	if (walk->container_count == CONTAINERS_MAX) {
		walk->lacks_containers = true;
		return 0;
	}
	if (array_try_grow((void **)&walk->containers, &walk->container_cap, walk->container_count,
		    sizeof(*walk->containers)))
		return -ERR_NOMEM;
	walk->containers[walk->container_count++] = (struct walk_container){.addr = addr,
		.bytes = bytes,
		.heap = heap,
		.kind = kind,
		.is_sparse = !strcmp(walk->heaps[heap].kind, "segment")};
	return 0;
}

/* Returns true if this value in a block's prefix means that no stack was recorded. The constants
 * are from DbgHelpUtils. */
static bool is_nothing(uint64_t record)
{
	return !record || record == 0x01010000 || record == UINT64_C(0x0101000000000000);
}

/* Finds or adds a record and stores its index in `*number`. Checks the cache of recent records
 * first. `bits` is the bitness of the heap. Returns 0 or -ERR_NOMEM. */
static int number_record(struct walk *walk, uint64_t addr, unsigned bits, uint32_t *number)
{
	const struct walk_record *record;
	uint32_t *recent;

	if (!walk->recent_records)
		walk->recent_records = calloc(RECENT_RECORDS, sizeof(*walk->recent_records));
	if (!walk->recent_records || walk->record_count == STACK_NONE ||
		array_try_grow((void **)&walk->records, &walk->record_cap, walk->record_count,
			sizeof(*walk->records)))
		return -ERR_NOMEM;
	recent = &walk->recent_records[addr * UINT64_C(0x9e3779b97f4a7c15) >> RECENT_SHIFT];
	record = &walk->records[*recent];
	if (*recent >= walk->record_count || record->addr != addr || record->bits != bits) {
		*recent = (uint32_t)walk->record_count;
		if (u64map_add(&walk->record_numbers[bits == 64], addr, recent))
			walk->records[walk->record_count++] = (struct walk_record){addr, bits};
	}
	*number = *recent;
	return 0;
}

static inline int grow_blocks(struct walk *walk, size_t more)
{
	size_t cap = walk->block_cap;

	while (walk->block_cap - walk->block_count < more) {
		if (walk->is_split || array_try_grow((void **)&walk->blocks, &walk->block_cap,
					      walk->block_cap, sizeof(*walk->blocks)))
			return -ERR_NOMEM;
	}
	if (walk->block_cap != cap && walk->block_cap > MANY_BLOCKS)
		os_large_pages(walk->blocks, walk->block_cap * sizeof(*walk->blocks));
	return 0;
}

int walk_add_block(struct walk *walk, uint64_t addr, uint64_t requested_bytes,
	uint64_t overhead_bytes, uint64_t record)
{
	const uint32_t heap = (uint32_t)walk->heap_count - 1;
	uint32_t number = STACK_NONE;

	if (!block_fits(addr, requested_bytes))
		return walk_broken(walk, addr, "block of an impossible size or place");
	if (grow_blocks(walk, 1) ||
		(!is_nothing(record) &&
			number_record(walk, record, walk->heaps[heap].bits, &number)))
		return -ERR_NOMEM;
	walk->blocks[walk->block_count++] = (struct block){.addr = addr,
		.requested_bytes = requested_bytes,
		/* if a page heap block is in doubt, its overhead_bytes may be any number */
		.overhead_bytes =
			overhead_bytes < BLOCK_OVERHEAD_MAX ? overhead_bytes : BLOCK_OVERHEAD_MAX,
		.heap = heap,
		.stack = number};
	return 0;
}

/* Counts a fault, and stores its place if it is the first. Returns true if it is the first. */
static bool note(unsigned *count, uint64_t *first_addr, const char **first_what, uint64_t addr,
	const char *what)
{
	if ((*count)++)
		return false;
	*first_addr = addr;
	*first_what = what;
	return true;
}

static void mark_partial(struct walk *walk)
{
	if (walk->heap_count && !walk->is_part)
		walk->heaps[walk->heap_count - 1].is_partial = true;
}

int walk_broken(struct walk *walk, uint64_t addr, const char *what)
{
	if (note(&walk->broken_count, &walk->broken_addr, &walk->broken_what, addr, what) &&
		walk->heap_count)
		walk->broken_heap = walk->heaps[walk->heap_count - 1].addr;
	mark_partial(walk);
	return 0;
}

int walk_missing(struct walk *walk, uint64_t addr, const char *what)
{
	note(&walk->missing_count, &walk->missing_addr, &walk->missing_what, addr, what);
	mark_partial(walk);
	return 0;
}

int walk_doubt(struct walk *walk, uint64_t addr, const char *what)
{
	note(&walk->doubt_count, &walk->doubt_addr, &walk->doubt_what, addr, what);
	return 0;
}

bool walk_split(struct walk *walk, size_t most, struct walk *part, size_t part_most)
{
	if (grow_blocks(walk, most + part_most))
		return false;
	walk_init(part);
	part->heaps = walk->heaps;
	part->heap_count = walk->heap_count;
	part->blocks = walk->blocks + walk->block_count + most;
	part->block_cap = walk->block_cap - walk->block_count - most;
	walk->block_cap -= part->block_cap;
	walk->is_split = part->is_split = part->is_part = true;
	return true;
}

bool walk_join(struct walk *walk, struct walk *part, bool is_made)
{
	uint32_t *numbers = malloc((part->record_count + 1) * sizeof(*numbers));
	bool joins = numbers && is_made && walk_is_sound(part) && !part->doubt_count;

	walk->is_split = false;
	walk->block_cap += part->block_cap;
	for (size_t i = 0; joins && i < part->record_count; i++)
		joins = !number_record(
			walk, part->records[i].addr, part->records[i].bits, &numbers[i]);
	for (size_t i = 0; joins && i < part->block_count; i++) {
		struct block *block = &walk->blocks[walk->block_count++];

		*block = part->blocks[i];
		if (block->stack != STACK_NONE)
			block->stack = numbers[block->stack];
	}
	free(numbers);
	part->heaps = NULL; /* the walk now owns the heaps and the part's blocks */
	part->blocks = NULL;
	walk_release(part);
	return joins;
}
