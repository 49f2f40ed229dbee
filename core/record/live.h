/*
 * The live blocks and live ranges of virtual memory while a recording is made. Blocks are found by
 * address and by heap, ranges by address. Each change is recorded as allocations and frees. Stacks,
 * kinds and heaps are identified by the numbers that the recorder returned for them.
 */
#ifndef CORE_RECORD_LIVE_H
#define CORE_RECORD_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/record/record.h"

/* Block addresses are below 2^LIVE_ADDR_BITS; the upper bits of a key store the tag of the block's
 * heap. */
#define LIVE_ADDR_BITS 48
#define LIVE_TAGS ((size_t)1 << (64 - LIVE_ADDR_BITS))

struct live_blocks;

struct live_blocks *live_blocks_new(struct recorder *recorder);
void live_blocks_free(struct live_blocks *blocks); /* blocks may be NULL */

bool live_block_exists(const struct live_blocks *blocks, uint64_t addr);

/* Prefetches the table entry of a block that will be looked up soon. */
void live_block_expect(const struct live_blocks *blocks, uint64_t addr);

/* Records an allocated block of a kind. `tag` identifies the block's heap. If `tag` is 0, `heap` is
 * the heap's handle, which must be the same for all untagged blocks of a kind. If another block is
 * at the address, frees that block first and returns true. */
bool live_block_begin(
	struct live_blocks *blocks, uint64_t addr, unsigned tag, uint64_t heap, uint32_t kind);

/* Frees the block at `addr`. `stack` is the stack of the call that freed the block, or
 * RECORD_NO_STACK. Returns false if no block is at the address. */
bool live_block_end(struct live_blocks *blocks, uint64_t addr, uint32_t stack);

/* Free all blocks of a heap. live_heap_end_tag() frees the blocks with a nonzero tag;
 * live_heap_end() frees the untagged blocks with a handle. */
void live_heap_end_tag(struct live_blocks *blocks, unsigned tag);
void live_heap_end(struct live_blocks *blocks, uint64_t heap);

/* Frees, with RECORD_NO_STACK, all blocks for which exists() returns false. Frees none if there are
 * more than `most` such blocks. Returns the number of such blocks. */
size_t live_blocks_filter(struct live_blocks *blocks,
	bool (*exists)(const void *ctx, uint64_t addr), const void *ctx, size_t most);

size_t live_blocks_count(const struct live_blocks *blocks);

/*
 * A range consists of pages that have the same properties and were changed by the same call. A
 * range has two stacks: the stack of the call that set its state, and the stack of the call that
 * reserved it. If part of a range changes, the whole range is freed, and the unchanged rest is
 * allocated again.
 */

enum live_change {
	LIVE_FILL, /* unknown pages get this memory type and stack; known pages do not change */
	/* Reserved pages get this memory type and stack. Their previous stack becomes the reserving
	 * stack. */
	LIVE_USE,
	/* Pages of this memory type become reserved again. Their stack is the reserving stack
	 * again. */
	LIVE_GIVE_UP,
	LIVE_TAKE, /* all pages become unknown */
};

struct live_ranges;

struct live_ranges *live_ranges_new(struct recorder *recorder);
void live_ranges_free(struct live_ranges *ranges); /* ranges may be NULL */

/* Changes the pages in [from, to), which must not be empty. `stack` is also recorded as the stack
 * that freed the changed ranges. */
void live_ranges_change(struct live_ranges *ranges, enum live_change type, uint64_t from,
	uint64_t to, enum record_memory memory, uint32_t stack);

/* Marks the page at `addr`, and all pages reserved together with it, as heap memory. Such pages are
 * not recorded, because the heap's blocks are counted instead. If the pages were already recorded,
 * records a free. Later changes of the pages are not recorded either. */
void live_ranges_hide(struct live_ranges *ranges, uint64_t addr);

/* Returns the end of the pages that were reserved together with the page at `start`. Returns
 * `start` if that page is unknown. */
uint64_t live_ranges_end(const struct live_ranges *ranges, uint64_t start);

#endif
