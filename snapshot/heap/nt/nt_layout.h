/*
 * The NT heap of Windows 7 to 11: where its structures have their fields, by bitness and build.
 *
 * Offsets are in bytes. What all builds of one bitness share is in struct nt_common_layout; what a
 * build has changed, in its row.
 */
#ifndef SNAPSHOT_HEAP_NT_LAYOUT_H
#define SNAPSHOT_HEAP_NT_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "snapshot/target/target_memory.h"

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

#endif
