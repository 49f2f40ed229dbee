/* NT heaps: layouts, block headers, chains of blocks, the low fragmentation heap. */
#ifndef SNAPSHOT_HEAP_NT_NT_H
#define SNAPSHOT_HEAP_NT_NT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot/heap/nt_heap.h"
#include "snapshot/target/target_memory.h"

/*
 * The NT heap of Windows 7 to 11: where its structures have their fields, by bitness and build.
 *
 * Offsets are in bytes. What all builds of one bitness share is in struct nt_common_layout; what a
 * build has changed, in its row.
 */

#define NT_PAGE_BYTES 0x1000u

/* _HEAP.Signature; _HEAP_USERDATA_HEADER.Signature. */
#define NT_HEAP_OBJECT_SIGNATURE 0xeeffeeffu
#define NT_LFH_SIGNATURE 0xf0e0d0c0u

/* _HEAP.FrontEndHeapType */
#define NT_FRONT_END_LFH 2
#define NT_FRONT_END_MAX 2

/* Fields of a _HEAP_ENTRY in its coded 8 bytes, taken as one number: how far to shift. */
#define NT_ENTRY_SIZE 0
#define NT_ENTRY_FLAGS 16
#define NT_ENTRY_TAG 24
#define NT_ENTRY_PREVIOUS 32
#define NT_ENTRY_SEGMENT 48 /* SegmentOffset */
#define NT_ENTRY_UNUSED 56

/* _HEAP_ENTRY.Flags */
#define NT_BLOCK_BUSY 0x01u
#define NT_BLOCK_INTERNAL 0x08u

/* _HEAP_ENTRY.UnusedBytes that are no number of bytes, or not only. */
#define NT_UNUSED_OWN 0x01u /* Windows' own: the _HEAP itself, and what it keeps right behind */
#define NT_UNUSED_END 0x03u /* the last entry before what is not committed: Windows' own */
#define NT_UNUSED_EXTENDED 0x05u /* an extended header follows */
#define NT_UNUSED_LONG 0x3fu /* the number is in the block's last pointer-sized slot */
#define NT_UNUSED_NUMBER 0x3fu /* mask */
#define NT_UNUSED_MIN 8u /* the header itself */
#define NT_UNUSED_LFH 0x80u
#define NT_UNUSED_OFFSET 0x40u /* an extended header follows; of LFH blocks */

/* An extended header (_HEAP_UNPACKED_ENTRY as FunctionIndex 1, ContextValue 0, UnusedBytesLength,
 * EntryOffset 2, ExtendedBlockSignature 5) as one number. */
#define NT_EXTENDED_MASK 0xffff0000ffffffffu
#define NT_EXTENDED_VALUE 0x0502000000000001u
#define NT_EXTENDED_UNUSED 32 /* shift; 16 bits */
#define NT_EXTENDED_SIGNATURE 48 /* shift; EntryOffset and ExtendedBlockSignature */

struct nt_common_layout {
	/* _HEAP_ENTRY: its size, where its coded 8 bytes lie; the unit that sizes count in, and its
	 * binary logarithm */
	uint16_t entry_bytes, entry_coded, unit, unit_shift;
	/* _HEAP_SEGMENT */
	uint16_t segment_signature, segment_link, segment_heap, segment_base, segment_pages;
	uint16_t segment_first, segment_end, segment_hole_pages, segment_holes;
	uint16_t segment_bytes;
	/* _HEAP_UCR_DESCRIPTOR */
	uint16_t hole_link, hole_address, hole_size, hole_bytes;
	/* _HEAP_VIRTUAL_ALLOC_ENTRY */
	uint16_t virtual_commit, virtual_reserve, virtual_entry, virtual_bytes;
	/* A block with a stack's record, from its header on: pointer to the record, extended header,
	 * the user's bytes; and the smallest number of unused bytes. */
	uint16_t prefix_record, prefix_header, prefix_user, prefix_unused_min;
	/* _RTL_CRITICAL_SECTION.OwningThread */
	uint16_t lock_owner;
	/* What says that there is no record. */
	uint64_t no_record;
};

struct nt_lfh_layout {
	/* _LFH_HEAP */
	uint16_t lfh_zones, lfh_heap;
	/* _LFH_BLOCK_ZONE: its end is a pointer, or a number of subsegments */
	uint16_t zone_end, zone_first;
	bool zone_counts;
	/* _HEAP_SUBSEGMENT */
	uint16_t sub_data, sub_block_size, sub_block_count, sub_bytes;
	/* .AggregateExchg.Depth: how many blocks are free; 0 where a bitmap tells. */
	uint16_t sub_free_count;
	/* _HEAP_USERDATA_HEADER; data_room (SizeIndexAndPadding), data_offsets and the bitmap: 0 where
	 * there are none */
	uint16_t data_sub, data_signature, data_room, data_offsets;
	bool data_is_coded; /* the offsets are */
	uint16_t data_bitmap_count, data_bitmap_bytes, data_bitmap, data_bytes;
	/* The first block lies this far on, and 4 bytes for every 32 blocks, at the next whole unit. */
	uint16_t data_first;
	/* The last bytes of a container's room that no block has. */
	uint16_t data_slack;
};

struct nt_layout {
	const char *name;
	unsigned bits;
	uint32_t first_build, last_build;
	const struct nt_common_layout *common;
	const struct nt_lfh_layout *lfh;
	/* _HEAP; valid_bytes: where it has its own size (HeaderValidateLength) */
	uint16_t encode_mask, encoding, interceptor, signature, virtual_list, segment_list, lock;
	uint16_t front_end, front_end_type, valid_bytes, heap_bytes;
};

extern const struct nt_layout nt_layouts[];
extern const size_t nt_layout_count;

/*
 * The layout of the heap at addr, which has a segment's signature: the row that most speaks for, of
 * what the heap says of itself (its size, its signature, its list, its front end) and the build (0: not
 * known). NULL: nothing but the build speaks for any.
 */
const struct nt_layout *nt_layout_find(
	struct memory *memory, unsigned bits, uint64_t addr, uint32_t build);

/* What of a heap contradicts its layout (a literal), or NULL. */
const char *nt_layout_fault(struct memory *memory, const struct nt_layout *layout, uint64_t addr);

/* The front end of a heap when it is a low fragmentation heap that knows the heap, or whose memory is
 * not there (*is_missing); else 0. */
uint64_t nt_front_end(
	struct memory *memory, const struct nt_layout *layout, uint64_t addr, bool *is_missing);

/*
 * One block of an NT heap taken apart: its header, and what of it the program got.
 *
 * A block is "size" bytes from its header on. The program's bytes begin after the header, or after a
 * prefix that leads to the record of the block's stack (facts of the prefix: nt_layout.c, prefix_*).
 */

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
	struct memory_seen seen;
};

const unsigned char *nt_span_seek(struct nt_span *span, uint64_t addr, size_t len);

static inline void nt_span_forget(struct nt_span *span)
{
	span->seen.len = 0;
}

/* len bytes at addr (at most MEMORY_AT_MAX), valid until the next call; NULL: they are not there. */
static inline const unsigned char *nt_span_at(struct nt_span *span, uint64_t addr, size_t len)
{
	uint64_t skip = addr - span->seen.addr;

	if (addr >= span->seen.addr && skip < span->seen.len && span->seen.len - skip >= len)
		return span->seen.bytes + skip;
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

/*
 * The low fragmentation heap (LFH), front end of an NT heap: containers of blocks of one size.
 *
 * A container is an internal block of the back end. A subsegment describes it, and it leads to its
 * subsegment; subsegments lie in zones, which hang on the _LFH_HEAP. Containers are collected while
 * the back end is walked, and what is in them is added afterwards.
 */

struct nt_heap;

/* A container (_HEAP_USERDATA_HEADER and what follows) that was found in the back end. */
struct nt_container {
	uint64_t addr, end;
	uint64_t subsegment;
	uint64_t room_bytes; /* from addr on, as it says; 0: its layout has none */
	uint32_t offsets; /* as they are stored; 0: its layout has none */
	uint32_t stride; /* from block to block, in bytes, by its subsegment; 0: none has it */
	uint32_t block_count;
	uint32_t free_count; /* by its subsegment, where the layout has that */
};

/* A container as a subsegment in a zone has it. */
struct nt_listed {
	uint64_t container, subsegment;
};

struct nt_lfh {
	uint64_t addr; /* _LFH_HEAP; 0: none, or not known */
	bool is_list_cut; /* zones or subsegments are not there */
	struct extents
		own; /* where it and its zones begin, sorted: they may be blocks like others */
	struct nt_listed *listed; /* sorted */
	size_t listed_count, listed_cap;
	struct nt_container *containers;
	size_t container_count, container_cap;
	uint64_t taken_end; /* of the last container that was only in zones */
};

/* Each returns 0 or -ERR_NOMEM. */

/* Looks at the heap's front end: before its blocks are walked. */
int nt_lfh_open(struct nt_heap *heap);

/* An internal block: kept when it is a container. */
int nt_lfh_note(struct nt_heap *heap, uint64_t addr, uint64_t end);

/* Adds the live blocks of all containers, after all of the back end was walked. */
int nt_lfh_walk(struct nt_heap *heap);

void nt_lfh_release(struct nt_lfh *lfh);

/* True when the LFH's own structures begin in addr..end. */
bool nt_lfh_owns(const struct nt_lfh *lfh, uint64_t addr, uint64_t end);

/* True when addr..end is a container as the zones have it, whatever its own header says. */
bool nt_lfh_lists(struct nt_heap *heap, uint64_t addr, uint64_t end);

/* Holds the containers against what zones list, and lets subsegments describe them
 * (nt_lfh_zones.c). 0 or -ERR_NOMEM. */
int nt_lfh_match(struct nt_heap *heap);

/* Takes over what a subsegment says of a container. False: it is not there, or its own container is not
 * the one at data. */
bool nt_lfh_describe(
	struct nt_heap *heap, struct nt_container *container, uint64_t subsegment, uint64_t data);

/* What the offsets of a container say. */
struct nt_offsets {
	uint32_t first, stride; /* of the first block, from block to block; in bytes */
};

/* Takes offsets apart, with the key where they are coded. */
struct nt_offsets nt_offsets_decode(
	const struct nt_heap *heap, const struct nt_container *container, uint32_t key);

/* Where a container's first block lies. */
uint32_t nt_first_offset(const struct nt_heap *heap, const struct nt_container *container);

/*
 * The blocks of an NT heap's back end: one after the other, each as long as its header says.
 *
 * A header has a checksum and repeats the size of the block before, so that a walk that went astray
 * is seen. It goes on at the next place where two headers agree on each other.
 */

/* One NT heap while it is walked. */
struct nt_heap {
	struct nt_walk *nt;
	const struct nt_layout *layout;
	uint64_t addr;
	uint64_t key; /* what headers are XORed with */
	bool is_coded; /* they are, and have a checksum */
	bool has_prefixes; /* blocks may lead to a record of their stack */
	bool has_page_blocks; /* the process uses page heaps: blocks may be of a light one */
	uint64_t own_end; /* so far the heap's first blocks are Windows' own */
	uint64_t committed_bytes, reserved_bytes;
	struct nt_span span;
	struct extents runs; /* from header to header, between what is not committed; sorted */
	struct extents gaps; /* of runs, where no blocks were found; sorted */
	struct nt_lfh lfh;
};

/* Reads a heap's head: its layout, and how its blocks are stored. False: no layout fits, and heap is
 * of no use. nt_heap_close() ends it. */
bool nt_heap_open(struct nt_heap *heap, struct nt_walk *nt, uint64_t addr);
void nt_heap_close(struct nt_heap *heap);

/* Walks the blocks of a run: one begins where it does, one ends where it does. 0 or -ERR_NOMEM. */
int nt_chain_walk(struct nt_heap *heap, const struct extent *run);

/*
 * Finds the runs of all segments, with the heap's committed and reserved bytes, and claims their
 * memory (nt_segments.c). 0 or -ERR_NOMEM.
 */
int nt_segments_find(struct nt_heap *heap);

/* Adds the program's part of a block to the walk, its page heap's as the case may be. 0 or
 * -ERR_NOMEM. */
int nt_block_add(struct nt_heap *heap, const struct nt_block *block);

#endif
