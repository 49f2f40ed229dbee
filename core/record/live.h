/*
 * The live blocks and ranges of virtual memory while a recording is made: blocks by address and by
 * heap, ranges by address. Changes become allocations and frees of the recorder; stacks, kinds and
 * heaps are the recorder's numbers.
 */
#ifndef CORE_RECORD_LIVE_H
#define CORE_RECORD_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/record/record.h"

/* Addresses of blocks are below 2^LIVE_ADDR_BITS; the upper bits of a word hold the tag of their
 * heap. */
#define LIVE_ADDR_BITS 48
#define LIVE_TAGS ((size_t)1 << (64 - LIVE_ADDR_BITS))

struct live_blocks;

struct live_blocks *live_blocks_new(struct recorder *recorder);
void live_blocks_free(struct live_blocks *blocks); /* blocks may be NULL */

bool live_block_is_there(const struct live_blocks *blocks, uint64_t addr);

/* Prefetches the entry of a block that will be looked up soon. */
void live_block_expect(const struct live_blocks *blocks, uint64_t addr);

/* Allocates a block of a kind. Its heap is given by a tag or, with tag 0, by a handle; all blocks
 * of a kind without a tag have the same handle. Returns true if another block was at the address,
 * which is freed first. */
bool live_block_begin(
	struct live_blocks *blocks, uint64_t addr, unsigned tag, uint64_t heap, uint32_t kind);

/* Frees a block, by this stack or RECORD_NO_STACK. Returns false if no block is there. */
bool live_block_end(struct live_blocks *blocks, uint64_t addr, uint32_t stack);

/* Free all blocks of a heap: those with the tag, which is not 0, or those without a tag and with
 * the handle. */
void live_heap_end_tag(struct live_blocks *blocks, unsigned tag);
void live_heap_end(struct live_blocks *blocks, uint64_t heap);

/* Frees all blocks for whose address exists() returns false, by no stack, unless there are more
 * than most of them. Returns their number. */
size_t live_blocks_keep(struct live_blocks *blocks, bool (*exists)(const void *ctx, uint64_t addr),
	const void *ctx, size_t most);

size_t live_blocks_count(const struct live_blocks *blocks);

/*
 * Ranges: pages with the same properties, changed by the same call. A range has the stack that gave
 * it its state, and the stack that reserved it. If part of a range changes, the whole range is
 * freed, and the rest is allocated anew.
 */

enum live_change {
	LIVE_FILL, /* unknown pages get this memory and stack; known pages stay */
	/* Reserved pages get this memory and stack; their old stack is kept as the one that
	 * reserved them. */
	LIVE_USE,
	/* Pages of this memory become reserved again, by the stack that reserved them. */
	LIVE_GIVE_UP,
	LIVE_TAKE, /* pages become unknown */
};

struct live_ranges;

struct live_ranges *live_ranges_new(struct recorder *recorder);
void live_ranges_free(struct live_ranges *ranges); /* ranges may be NULL */

/* Changes the pages from start to end, which are not empty. stack is also the stack that frees the
 * changed ranges. */
void live_ranges_change(struct live_ranges *ranges, enum live_change type, uint64_t from,
	uint64_t to, enum record_memory memory, uint32_t stack);

/* Marks the pages at addr, and all pages reserved with them, as pages of a heap, whose blocks are
 * counted instead. They are freed in the recording, and their later changes are not recorded. */
void live_ranges_hide(struct live_ranges *ranges, uint64_t addr);

/* Returns the end of the pages that were reserved with those at start; start itself if they are
 * unknown. */
uint64_t live_ranges_end(const struct live_ranges *ranges, uint64_t start);

#endif
