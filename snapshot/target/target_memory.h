/*
 * Cached access to the memory of a target. Walkers request small parts, but the cache reads large
 * pieces. A mapped file is accessed without reads. Bytes are cached until memory_clear(), which
 * must be called after the target has run.
 */
#ifndef SNAPSHOT_TARGET_TARGET_MEMORY_H
#define SNAPSHOT_TARGET_TARGET_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot/target/target.h"

#define MEMORY_PIECE_BYTES ((size_t)1 << 18)
#define MEMORY_PIECES 512 /* at most 128 MiB in total */
#define MEMORY_AT_MAX ((size_t)1 << 16)

/* Cached part of one region, within one aligned piece of the address space. */
struct memory_piece {
	uint64_t addr;
	size_t len; /* 0: empty */
	unsigned char *bytes; /* MEMORY_PIECE_BYTES bytes; NULL: not allocated yet */
	uint64_t torn; /* address of the last piece that could be read only in part */
	bool is_torn;
};

struct memory_seen {
	uint64_t addr;
	size_t len; /* 0: empty */
	const unsigned char *bytes;
};

struct memory {
	struct target *target;
	struct memory_seen last; /* bytes that were found last, which satisfy most requests */
	struct memory_seen before; /* in a mapped file, the bytes that were found before `last` */
	/* MEMORY_PIECES pieces, indexed by address; NULL for a mapped file */
	struct memory_piece *pieces;
	/* Buffer of MEMORY_AT_MAX bytes for requests that cross two pieces. */
	unsigned char *joined;
	uint64_t within, within_end; /* range that was passed to memory_within() */
};

/* Returns 0 or -ERR_NOMEM. */
int memory_init(struct memory *memory, struct target *target);
void memory_release(struct memory *memory);

void memory_clear(struct memory *memory);

/* Declares [addr, end) to be a region that the walker knows. This matters if the target does not
 * know its regions. Requests inside the range then read no memory outside it, because that memory
 * may not exist. */
void memory_within(struct memory *memory, uint64_t addr, uint64_t end);

/* Returns a pointer to `len` (1 to MEMORY_AT_MAX) bytes at `addr`, or NULL if any of them is
 * missing or unreadable. The pointer is valid until the next call. */
const unsigned char *memory_at(struct memory *memory, uint64_t addr, size_t len);

/* Returns a pointer to the cached bytes that begin at `addr`, and their number (at least 1), or
 * NULL if they are missing or unreadable. */
const unsigned char *memory_from(struct memory *memory, uint64_t addr, size_t *len);

/*
 * Prefetches bytes that will be needed soon, if `seen` contains them. Otherwise waiting for memory
 * would take longer than all other work on a block.
 */
#define MEMORY_AHEAD_BLOCKS 16 /* for blocks of one size */
#define MEMORY_AHEAD_BYTES 512 /* if the next block's size is not known until the block is read */

static inline void memory_fetch(const struct memory_seen *seen, uint64_t addr, size_t len)
{
	for (uint64_t line = addr & ~(uint64_t)63; line < addr + len; line += 64) {
		if (line - seen->addr < seen->len)
			__builtin_prefetch(seen->bytes + (line - seen->addr));
	}
}

/* Copies any number of bytes. Returns 0 or -ERR_READ. */
int memory_copy(struct memory *memory, uint64_t addr, void *bytes, size_t len);

/* Read little-endian numbers in the target. All return 0, or -ERR_READ with *value unchanged.
 * memory_ptr() reads a pointer of the given bitness. */
int memory_u8(struct memory *memory, uint64_t addr, uint8_t *value);
int memory_u16(struct memory *memory, uint64_t addr, uint16_t *value);
int memory_u32(struct memory *memory, uint64_t addr, uint32_t *value);
int memory_u64(struct memory *memory, uint64_t addr, uint64_t *value);
int memory_ptr(struct memory *memory, unsigned bits, uint64_t addr, uint64_t *value);

static inline uint64_t bytes_ptr(const unsigned char *bytes, unsigned bits)
{
	return bits == 64 ? bytes_u64(bytes) : bytes_u32(bytes);
}

#endif
