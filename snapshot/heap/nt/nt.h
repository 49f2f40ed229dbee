/* Walker of NT heaps: layouts, block headers, chains of blocks, the low fragmentation heap. */
#ifndef SNAPSHOT_HEAP_NT_NT_H
#define SNAPSHOT_HEAP_NT_NT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "snapshot/heap/nt_heap.h"
#include "snapshot/target/target_memory.h"

/*
 * Layouts of the NT heap of Windows 7 to 11, by bitness and build.
 *
 * Offsets are in bytes. struct nt_common_layout contains the fields that all builds of one bitness
 * share; the rows of nt_layouts contain the fields that changed. */

#define NT_PAGE_BYTES 0x1000u

/* _HEAP.Signature; _HEAP_USERDATA_HEADER.Signature. */
#define NT_HEAP_OBJECT_SIGNATURE 0xeeffeeffu
#define NT_LFH_SIGNATURE 0xf0e0d0c0u

/* _HEAP.FrontEndHeapType */
#define NT_FRONT_END_LFH 2
#define NT_FRONT_END_MAX 2

/* Fields of a _HEAP_ENTRY in its 8 coded bytes, as right shifts of a 64-bit number. */
#define NT_ENTRY_SIZE 0
#define NT_ENTRY_FLAGS 16
#define NT_ENTRY_TAG 24
#define NT_ENTRY_PREVIOUS 32
#define NT_ENTRY_SEGMENT 48 /* SegmentOffset */
#define NT_ENTRY_UNUSED 56

/* _HEAP_ENTRY.Flags */
#define NT_BLOCK_BUSY 0x01u
#define NT_BLOCK_INTERNAL 0x08u

/* _HEAP_ENTRY.UnusedBytes: values that are not, or not only, a number of bytes. */
/* Windows' own block: the _HEAP itself, and the blocks directly after it */
#define NT_UNUSED_OWN 0x01u
#define NT_UNUSED_END 0x03u /* Windows' own block: the last entry before uncommitted memory */
#define NT_UNUSED_EXTENDED 0x05u /* an extended header follows */
#define NT_UNUSED_LONG 0x3fu /* the number is in the block's last pointer-sized slot */
#define NT_UNUSED_NUMBER 0x3fu
#define NT_UNUSED_MIN 8u /* size of the header itself */
#define NT_UNUSED_LFH 0x80u
#define NT_UNUSED_OFFSET 0x40u /* in LFH blocks: an extended header follows */

/* An extended header as one number: _HEAP_UNPACKED_ENTRY with FunctionIndex 1, ContextValue 0,
 * UnusedBytesLength, EntryOffset 2, ExtendedBlockSignature 5. */
#define NT_EXTENDED_MASK 0xffff0000ffffffffu
#define NT_EXTENDED_VALUE 0x0502000000000001u
#define NT_EXTENDED_UNUSED 32 /* shift; the field has 16 bits */
#define NT_EXTENDED_SIGNATURE 48 /* shift; covers EntryOffset and ExtendedBlockSignature */

struct nt_common_layout {
	/* _HEAP_ENTRY: its size and the offset of its 8 coded bytes; the unit of sizes, and the
	 * unit's binary logarithm */
	uint16_t entry_bytes, entry_coded, unit, unit_shift;
	/* _HEAP_SEGMENT */
	uint16_t segment_signature, segment_link, segment_heap, segment_base, segment_pages;
	uint16_t segment_first, segment_end, segment_hole_pages, segment_holes;
	uint16_t segment_bytes;
	/* _HEAP_UCR_DESCRIPTOR */
	uint16_t hole_link, hole_address, hole_size, hole_bytes;
	/* _HEAP_VIRTUAL_ALLOC_ENTRY */
	uint16_t virtual_commit, virtual_reserve, virtual_entry, virtual_bytes;
	/* Offsets from the header of a block with a stack's record: pointer to the record, extended
	 * header, user's bytes. Then the smallest number of unused bytes of such a block. */
	uint16_t prefix_record, prefix_header, prefix_user, prefix_unused_min;
	/* _RTL_CRITICAL_SECTION.OwningThread */
	uint16_t lock_owner;
	/* Value of the pointer to the record if there is no record. */
	uint64_t no_record;
};

struct nt_lfh_layout {
	/* _LFH_HEAP */
	uint16_t lfh_zones, lfh_heap;
	/* _LFH_BLOCK_ZONE; its end is a pointer, or a number of subsegments if zone_counts */
	uint16_t zone_end, zone_first;
	bool zone_counts;
	/* _HEAP_SUBSEGMENT */
	uint16_t sub_data, sub_block_size, sub_block_count, sub_bytes;
	/* AggregateExchg.Depth: number of free blocks; 0 in builds with a bitmap. */
	uint16_t sub_free_count;
	/* _HEAP_USERDATA_HEADER; 0 if the build has no such field: data_room (SizeIndexAndPadding),
	 * data_offsets and the bitmap */
	uint16_t data_sub, data_signature, data_room, data_offsets;
	bool data_is_coded; /* the offsets are coded */
	uint16_t data_bitmap_count, data_bitmap_bytes, data_bitmap, data_bytes;
	/* Distance to the first block, plus 4 bytes for every 32 blocks, rounded up to a unit. */
	uint16_t data_first;
	/* Bytes at the end of a container's room that no block uses. */
	uint16_t data_slack;
};

struct nt_layout {
	const char *name;
	unsigned bits;
	uint32_t first_build, last_build;
	const struct nt_common_layout *common;
	const struct nt_lfh_layout *lfh;
	/* _HEAP; valid_bytes: offset of its own size (HeaderValidateLength) */
	uint16_t encode_mask, encoding, interceptor, signature, virtual_list, segment_list, lock;
	uint16_t front_end, front_end_type, valid_bytes, heap_bytes;
};

extern const struct nt_layout nt_layouts[];
extern const size_t nt_layout_count;

/*
 * Finds the layout of the heap at addr, which has a segment's signature. Chooses the row with the
 * most evidence in the heap (its size, signature, list and front end) and in the build (0:
 * unknown). Returns NULL if nothing in the heap supports any row. */
const struct nt_layout *nt_layout_find(
	struct memory *memory, unsigned bits, uint64_t addr, uint32_t build);

/* Returns a description (a literal) of the first contradiction between a heap and its layout, or
 * NULL. */
const char *nt_layout_fault(struct memory *memory, const struct nt_layout *layout, uint64_t addr);

/* Returns the heap's front end if it is a low fragmentation heap that names the heap, or one whose
 * memory is missing (*is_missing). Otherwise returns 0. */
uint64_t nt_front_end(
	struct memory *memory, const struct nt_layout *layout, uint64_t addr, bool *is_missing);

/*
 * Parsing of one block of an NT heap: its header, and the program's part of it.
 *
 * A block has `size` bytes, including its header. The program's bytes begin after the header, or
 * after a prefix that leads to the record of the block's stack. For the sources of the prefix see
 * prefix_* in nt_layout.c. */

struct nt_header {
	uint32_t units, previous_units; /* sizes of the block and of the previous block */
	uint8_t flags, segment, unused; /* segment: SegmentOffset */
};

/* Decodes a header's 8 coded bytes with the heap's key. Returns false if the checksum is wrong. In
 * a heap with plain headers that proves nothing, because the byte is a tag's number there
 * (SmallTagIndex). */
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
 * Reads of the target's memory in ascending order; reads near the last place are cheap. A caller
 * that has used memory_*() in between must call nt_span_forget(). */
struct nt_span {
	struct memory *memory;
	struct memory_seen seen;
};

const unsigned char *nt_span_seek(struct nt_span *span, uint64_t addr, size_t len);

static inline void nt_span_forget(struct nt_span *span)
{
	span->seen.len = 0;
}

/* Returns len bytes at addr (at most MEMORY_AT_MAX), valid until the next call, or NULL if they are
 * missing. */
static inline const unsigned char *nt_span_at(struct nt_span *span, uint64_t addr, size_t len)
{
	uint64_t skip = addr - span->seen.addr;

	if (addr >= span->seen.addr && skip < span->seen.len && span->seen.len - skip >= len)
		return span->seen.bytes + skip;
	return nt_span_seek(span, addr, len);
}

struct nt_block {
	uint64_t entry;
	uint64_t size_bytes; /* bytes from the header on */
	uint32_t unused; /* UnusedBytes of the header; in LFH blocks without the mark */
	bool is_large; /* unused is a plain number */
	bool is_extended; /* the header announces a prefix */
	bool may_be_extended; /* the heap's blocks have prefixes */
};

struct nt_found {
	uint64_t addr, requested_bytes, record;
	const char *doubt; /* description (a literal) of invalid data in the block, or NULL */
};

/*
 * The low fragmentation heap (LFH), front end of an NT heap: containers of blocks of one size.
 *
 * A container is an internal block of the back end. It points to the subsegment that describes it.
 * Subsegments lie in zones, which are linked to the _LFH_HEAP. The walk of the back end collects
 * the containers; their blocks are added afterwards. */

struct nt_heap;

/* A container (_HEAP_USERDATA_HEADER and its blocks) that the walk of the back end found. */
struct nt_container {
	uint64_t addr, end;
	uint64_t subsegment;
	uint64_t room_bytes; /* bytes from addr on, by its own header; 0: not in its layout */
	uint32_t offsets; /* as stored; 0: not in its layout */
	uint32_t stride; /* bytes from block to block, by its subsegment; 0: no subsegment */
	uint32_t block_count;
	uint32_t free_count; /* by its subsegment, if the layout has the field */
};

/* A pair of container and subsegment, found in a zone. */
struct nt_listed {
	uint64_t container, subsegment;
};

struct nt_lfh {
	uint64_t addr; /* _LFH_HEAP; 0: none, or unknown */
	bool is_list_cut; /* zones or subsegments are missing */
	/* Start addresses of the LFH and its zones, sorted. They may lie in ordinary blocks. */
	struct extents own;
	struct nt_listed *listed; /* sorted */
	size_t listed_count, listed_cap;
	struct nt_container *containers;
	size_t container_count, container_cap;
	uint64_t taken_end; /* end of the last container that was found only in zones */
};

/* The following functions return 0 or -ERR_NOMEM. */

/* Reads the heap's front end. Called before the heap's blocks are walked. */
int nt_lfh_open(struct nt_heap *heap);

/* Adds an internal block to the containers if it is a container. */
int nt_lfh_note(struct nt_heap *heap, uint64_t addr, uint64_t end);

/* Adds the live blocks of all containers. Called after the whole back end was walked. */
int nt_lfh_walk(struct nt_heap *heap);

void nt_lfh_release(struct nt_lfh *lfh);

/* Returns true if a structure of the LFH itself begins between addr and end. */
bool nt_lfh_owns(const struct nt_lfh *lfh, uint64_t addr, uint64_t end);

/* Returns true if the zones list a container at addr, regardless of the block's header. */
bool nt_lfh_lists(struct nt_heap *heap, uint64_t addr, uint64_t end);

/* Compares the containers with the entries of the zones, and reads their descriptions from the
 * subsegments (nt_lfh_zones.c). Returns 0 or -ERR_NOMEM. */
int nt_lfh_match(struct nt_heap *heap);

/* Copies a subsegment's description of its container. Returns false if the subsegment is missing or
 * does not refer to the container at data. */
bool nt_lfh_describe(
	struct nt_heap *heap, struct nt_container *container, uint64_t subsegment, uint64_t data);

struct nt_offsets {
	uint32_t first, stride; /* bytes to the first block, and from block to block */
};

/* Decodes the offsets of a container; uses the key if they are coded. */
struct nt_offsets nt_offsets_decode(
	const struct nt_heap *heap, const struct nt_container *container, uint32_t key);

uint32_t nt_first_offset(const struct nt_heap *heap, const struct nt_container *container);

/*
 * The back end of an NT heap: blocks that follow each other, with their sizes in their headers.
 *
 * A header has a checksum and repeats the size of the previous block, so a walk notices when it
 * goes astray. It then resumes at the next place where two headers agree. */

struct nt_heap {
	struct nt_walk *nt;
	const struct nt_layout *layout;
	uint64_t addr;
	uint64_t key; /* XORed with headers */
	bool is_coded; /* headers are coded and have a checksum */
	bool has_prefixes; /* blocks may have a prefix with a stack's record */
	bool has_page_blocks; /* the process uses page heaps, so blocks may belong to a light one */
	uint64_t own_end; /* end of Windows' own blocks at the heap's start, as found so far */
	uint64_t committed_bytes, reserved_bytes;
	struct nt_span span;
	struct extents runs; /* blocks from header to header, between uncommitted ranges; sorted */
	struct extents gaps; /* parts of runs in which no blocks were found; sorted */
	struct nt_lfh lfh;
};

/* Reads a heap's head: its layout, and the form of its blocks. Returns false if no layout fits; the
 * heap cannot be used then. End the use with nt_heap_close(). */
bool nt_heap_open(struct nt_heap *heap, struct nt_walk *nt, uint64_t addr);
void nt_heap_close(struct nt_heap *heap);

/* Walks the blocks of a run, which begins with the start of a block and ends with the end of a
 * block. Returns 0 or -ERR_NOMEM. */
int nt_chain_walk(struct nt_heap *heap, const struct extent *run);

/*
 * Finds the runs of all segments and the heap's committed and reserved bytes, and claims the
 * segments' memory (nt_segments.c). Returns 0 or -ERR_NOMEM. */
int nt_segments_find(struct nt_heap *heap);

/* Adds the program's part of a block to the walk; for a light page heap, the part after the page
 * heap's information. Returns 0 or -ERR_NOMEM. */
int nt_block_add(struct nt_heap *heap, const struct nt_block *block);

#endif
