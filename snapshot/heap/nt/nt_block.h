/*
 * One block of an NT heap taken apart: its header, and what of it the program got.
 *
 * A block is "size" bytes from its header on. The program's bytes begin after the header, or after a
 * prefix that leads to the record of the block's stack (facts of the prefix: nt_layout.c, prefix_*).
 */
#ifndef SNAPSHOT_HEAP_NT_BLOCK_H
#define SNAPSHOT_HEAP_NT_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "snapshot/heap/nt/nt_layout.h"
#include "snapshot/target/target_memory.h"

/* A header, decoded. */
struct nt_header {
	uint32_t units, previous_units; /* sizes of the block and of the one before it */
	uint8_t flags, segment, unused; /* segment: SegmentOffset */
};

/* Decodes a header's 8 coded bytes with the heap's key. False: its checksum is wrong, which tells
 * nothing of a heap whose headers are in clear: there the byte is a tag's number (SmallTagIndex). */
static inline bool nt_header_decode(uint64_t coded, uint64_t key, struct nt_header *header)
{
	uint64_t plain = coded ^ key;
	uint32_t low = (uint32_t)plain, sum = low ^ low >> 16;

	header->units = (uint16_t)(plain >> NT_ENTRY_SIZE);
	header->flags = (uint8_t)(plain >> NT_ENTRY_FLAGS);
	header->previous_units = (uint16_t)(plain >> NT_ENTRY_PREVIOUS);
	header->segment = (uint8_t)(plain >> NT_ENTRY_SEGMENT);
	header->unused = (uint8_t)(plain >> NT_ENTRY_UNUSED);
	return ((sum ^ sum >> 8) & 0xff) == 0;
}

/*
 * The target's bytes in the order of their addresses: asking again near the last place is cheap.
 * Whoever used memory_*() meanwhile calls nt_span_forget().
 */
struct nt_span {
	struct memory *memory;
	uint64_t addr;
	size_t len;
	const unsigned char *bytes;
};

const unsigned char *nt_span_seek(struct nt_span *span, uint64_t addr, size_t len);

static inline void nt_span_forget(struct nt_span *span)
{
	span->len = 0;
}

/* len bytes at addr (at most MEMORY_AT_MAX), valid until the next call; NULL: they are not there. */
static inline const unsigned char *nt_span_at(struct nt_span *span, uint64_t addr, size_t len)
{
	uint64_t skip = addr - span->addr;

	if (addr >= span->addr && skip < span->len && span->len - skip >= len)
		return span->bytes + skip;
	return nt_span_seek(span, addr, len);
}

/* What to take apart. */
struct nt_block {
	uint64_t entry; /* address of the header */
	uint64_t size_bytes; /* from there on */
	uint32_t unused; /* of the header; of LFH blocks without the mark */
	bool is_large; /* unused is a plain number */
	bool is_extended; /* the header says that a prefix follows */
	bool may_be_extended; /* the heap's blocks have prefixes */
};

struct nt_found {
	uint64_t addr, requested_bytes, record;
	const char *doubt; /* what makes no sense in the block (a literal), or NULL */
};

/* Where the program's bytes are and how many. With a doubt the number is the largest possible. */
void nt_block_parse(const struct nt_common_layout *layout, unsigned bits, struct nt_span *span,
	const struct nt_block *block, struct nt_found *found);

#endif
