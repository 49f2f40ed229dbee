/*
 * A target's memory as bytes at hand: walkers ask for what they want to see, and it is read in
 * large pieces, or not at all where a file is mapped.
 *
 * Bytes are kept until memory_clear(); nothing may be kept over a time in which the target ran.
 */
#ifndef SNAPSHOT_TARGET_TARGET_MEMORY_H
#define SNAPSHOT_TARGET_TARGET_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot/target/target.h"

#define MEMORY_PIECE_BYTES ((size_t)1 << 18)
#define MEMORY_PIECES 512 /* 128 MiB at most */
#define MEMORY_AT_MAX ((size_t)1 << 16)

/* A part of one region, within one aligned piece of the address space. */
struct memory_piece {
	uint64_t addr;
	size_t len; /* 0: nothing */
	unsigned char *bytes; /* MEMORY_PIECE_BYTES, or NULL: not needed yet */
	uint64_t torn; /* what was last found to be there in part only: where it begins */
	bool is_torn;
};

struct memory_seen {
	uint64_t addr;
	size_t len; /* 0: nothing */
	const unsigned char *bytes;
};

struct memory {
	struct target *target;
	struct memory_seen last; /* what was found last: the commonest answer */
	struct memory_seen before; /* of a mapped file, what was found before that */
	struct memory_piece *pieces; /* MEMORY_PIECES, by address; NULL for a mapped file */
	unsigned char *joined; /* MEMORY_AT_MAX bytes that lie in two pieces */
	uint64_t within, within_end; /* as memory_within() says */
};

/* 0 or -ERR_NOMEM. */
int memory_init(struct memory *memory, struct target *target);
void memory_release(struct memory *memory);

/* Forgets what was read. */
void memory_clear(struct memory *memory);

/* Says that addr..end is a region, as the walker knows. Where the target does not know its regions,
 * what is asked for in there is read without what lies around it, which may not be there. */
void memory_within(struct memory *memory, uint64_t addr, uint64_t end);

/* len (1..MEMORY_AT_MAX) bytes at addr, valid until the next call; NULL when they are not all there
 * or cannot be read. */
const unsigned char *memory_at(struct memory *memory, uint64_t addr, size_t len);

/* The bytes from addr on as far as they are at hand, and how many (at least 1); NULL as above. */
const unsigned char *memory_from(struct memory *memory, uint64_t addr, size_t *len);

/*
 * Lets the processor fetch what will be asked for soon, as far as it is in what was seen. It takes longer than all else
 * that is done for a block.
 */
#define MEMORY_AHEAD_BLOCKS 16 /* of one size */
#define MEMORY_AHEAD_BYTES 512 /* where the next one's size is not known before it is there */

static inline void memory_fetch(const struct memory_seen *seen, uint64_t addr, size_t len)
{
	for (uint64_t line = addr & ~(uint64_t)63; line < addr + len; line += 64) {
		if (line - seen->addr < seen->len)
			__builtin_prefetch(seen->bytes + (line - seen->addr));
	}
}

/* Copies any number of bytes: 0 or -ERR_READ. */
int memory_copy(struct memory *memory, uint64_t addr, void *bytes, size_t len);

/* Little-endian numbers in the target: 0 or -ERR_READ, then with *value as it was. memory_ptr() reads a
 * pointer of a process of that many bits. */
int memory_u8(struct memory *memory, uint64_t addr, uint8_t *value);
int memory_u16(struct memory *memory, uint64_t addr, uint16_t *value);
int memory_u32(struct memory *memory, uint64_t addr, uint32_t *value);
int memory_u64(struct memory *memory, uint64_t addr, uint64_t *value);
int memory_ptr(struct memory *memory, unsigned bits, uint64_t addr, uint64_t *value);

/* A pointer in bytes that were read. */
static inline uint64_t bytes_ptr(const unsigned char *bytes, unsigned bits)
{
	return bits == 64 ? bytes_u64(bytes) : bytes_u32(bytes);
}

#endif
