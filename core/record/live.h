/*
 * What is live while a recording is made: blocks by address and by heap, and ranges of virtual memory. What happens
 * becomes the recorder's allocations and frees; stacks, kinds and heaps are its numbers.
 */
#ifndef CORE_RECORD_LIVE_H
#define CORE_RECORD_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/record/record.h"

/* Addresses of blocks are below 2^LIVE_ADDR_BITS; the rest of a word is the tag of their heap. */
#define LIVE_ADDR_BITS 48
#define LIVE_TAGS ((size_t)1 << (64 - LIVE_ADDR_BITS))

struct live_blocks;

struct live_blocks *live_blocks_new(struct recorder *recorder);
void live_blocks_free(struct live_blocks *blocks); /* NULL is nothing */

bool live_block_is_there(const struct live_blocks *blocks, uint64_t addr);

/* Tells that it will be asked for soon, which is quicker then. */
void live_block_expect(const struct live_blocks *blocks, uint64_t addr);

/* Allocates a block of a kind, whose heap has this tag or, with tag 0, this handle: all of one kind have one handle.
 * Whatever was at its address ends before: true. */
bool live_block_begin(
	struct live_blocks *blocks, uint64_t addr, unsigned tag, uint64_t heap, uint32_t kind);

/* Frees it, by this stack or RECORD_NO_STACK: false when none is there. */
bool live_block_end(struct live_blocks *blocks, uint64_t addr, uint32_t stack);

/* Frees all blocks of a heap: those with the tag, which is not 0; those with the handle and no tag. */
void live_heap_end_tag(struct live_blocks *blocks, unsigned tag);
void live_heap_end(struct live_blocks *blocks, uint64_t heap);

/*
 * Frees all blocks for whose address exists() returns false, by no stack, unless there are more than most. Returns how many
 * there are.
 */
size_t live_blocks_keep(struct live_blocks *blocks, bool (*exists)(const void *ctx, uint64_t addr),
	const void *ctx, size_t most);

/* Returns the number of blocks. */
size_t live_blocks_count(const struct live_blocks *blocks);

/*
 * Ranges: pages that are alike and were made so at once. Each has the stack that made it what it is, and that
 * which reserved it. Of a range of which a part changes the whole is freed, and what stays is allocated anew.
 */

enum live_change {
	LIVE_FILL, /* where nothing is known the pages become so; what is known stays */
	LIVE_USE, /* what is reserved becomes so; its stack is then that which reserved it */
	LIVE_GIVE_UP, /* what is so becomes reserved, by the stack which reserved it */
	LIVE_TAKE, /* nothing is known there any more */
};

struct live_ranges;

struct live_ranges *live_ranges_new(struct recorder *recorder);
void live_ranges_free(struct live_ranges *ranges); /* NULL is nothing */

/* Changes [from, to), which is not empty. stack is also who frees what changes. */
void live_ranges_change(struct live_ranges *ranges, enum live_change type, uint64_t from,
	uint64_t to, enum record_memory memory, uint32_t stack);

/* The pages at addr, and all that were reserved with them, are a heap's, whose blocks count: they count no more, nor what
 * becomes of them. */
void live_ranges_hide(struct live_ranges *ranges, uint64_t addr);

/* Where the pages end that were reserved with those at start; start itself where nothing is known. */
uint64_t live_ranges_end(const struct live_ranges *ranges, uint64_t start);

#endif
