/* Walker of NT heaps: layouts, block headers, chains of blocks, and the low fragmentation heap. */
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
 * Offsets are in bytes. struct nt_common_layout contains the fields that have the same offset in
 * all builds of one bitness. The rows of nt_layouts contain the fields that moved. */

#define NT_PAGE_BYTES 0x1000u

/* _HEAP.Signature, _HEAP_USERDATA_HEADER.Signature */
#define NT_HEAP_OBJECT_SIGNATURE 0xeeffeeffu
#define NT_LFH_SIGNATURE 0xf0e0d0c0u

/* _HEAP.FrontEndHeapType */
#define NT_FRONT_END_LFH 2
#define NT_FRONT_END_MAX 2

/* Positions of fields in the 8 coded bytes of a _HEAP_ENTRY, as right shifts of a 64-bit number. */
#define NT_ENTRY_SIZE 0
#define NT_ENTRY_FLAGS 16
#define NT_ENTRY_TAG 24
#define NT_ENTRY_PREVIOUS 32
#define NT_ENTRY_SEGMENT 48 /* SegmentOffset */
#define NT_ENTRY_UNUSED 56

/* _HEAP_ENTRY.Flags */
#define NT_BLOCK_BUSY 0x01u
#define NT_BLOCK_INTERNAL 0x08u

/* Values of _HEAP_ENTRY.UnusedBytes that have a special meaning. */
/* Windows' own block: the _HEAP itself, and the blocks directly after it */
#define NT_UNUSED_OWN 0x01u
#define NT_UNUSED_END 0x03u /* Windows' own block: the last entry before uncommitted memory */
#define NT_UNUSED_EXTENDED 0x05u /* an extended header follows */
/* The number of unused bytes is stored in the last pointer-sized slot of the block. */
#define NT_UNUSED_LONG 0x3fu
#define NT_UNUSED_NUMBER 0x3fu
#define NT_UNUSED_MIN 8u /* size of the header itself */
#define NT_UNUSED_LFH 0x80u
#define NT_UNUSED_OFFSET 0x40u /* in LFH blocks: an extended header follows */

/* An extended header as one number: _HEAP_UNPACKED_ENTRY with FunctionIndex 1, ContextValue 0,
 * UnusedBytesLength, EntryOffset 2, ExtendedBlockSignature 5. */
#define NT_EXTENDED_MASK 0xffff0000ffffffffu
#define NT_EXTENDED_VALUE 0x0502000000000001u
#define NT_EXTENDED_UNUSED 32 /* shift of UnusedBytesLength, which has 16 bits */
#define NT_EXTENDED_SIGNATURE 48 /* shift; covers EntryOffset and ExtendedBlockSignature */

struct nt_common_layout {
	/* _HEAP_ENTRY: size, offset of the 8 coded bytes, unit of sizes, and the unit's binary
	 * logarithm */
	uint16_t entry_bytes, entry_coded, unit, unit_shift;
	/* _HEAP_SEGMENT */
	uint16_t segment_signature, segment_link, segment_heap, segment_base, segment_pages;
	uint16_t segment_first, segment_end, segment_hole_pages, segment_holes;
	uint16_t segment_bytes;
	/* _HEAP_UCR_DESCRIPTOR */
	uint16_t hole_link, hole_address, hole_size, hole_bytes;
	/* _HEAP_VIRTUAL_ALLOC_ENTRY */
	uint16_t virtual_commit, virtual_reserve, virtual_entry, virtual_bytes;
	/* For blocks that point to the record of a stack. prefix_record, prefix_header and
	 * prefix_user are offsets from the block's header to the pointer, to the extended header
	 * and to the user's bytes. prefix_unused_min is the smallest number of unused bytes of such
	 * a block. */
	uint16_t prefix_record, prefix_header, prefix_user, prefix_unused_min;
	/* _RTL_CRITICAL_SECTION.OwningThread */
	uint16_t lock_owner;
	/* Value of the pointer to a stack's record if there is no record. */
	uint64_t no_record;
};

struct nt_lfh_layout {
	/* _LFH_HEAP */
	uint16_t lfh_zones, lfh_heap;
	/* _LFH_BLOCK_ZONE. If `zone_counts` is set, `zone_end` contains a number of subsegments;
	 * otherwise a pointer. */
	uint16_t zone_end, zone_first;
	bool zone_counts;
	/* _HEAP_SUBSEGMENT */
	uint16_t sub_data, sub_block_size, sub_block_count, sub_bytes;
	/* AggregateExchg.Depth: number of free blocks; 0 in builds with a bitmap. */
	uint16_t sub_free_count;
	/* _HEAP_USERDATA_HEADER. data_room (SizeIndexAndPadding), data_offsets and the bitmap are 0
	 * if the build does not have the field. */
	uint16_t data_sub, data_signature, data_room, data_offsets;
	bool data_is_coded; /* the container's offsets are encoded */
	uint16_t data_bitmap_count, data_bitmap_bytes, data_bitmap, data_bytes;
	/* Distance to the first block before two corrections: first, 4 bytes are added for each 32
	 * blocks or part of 32; then the sum is rounded up to a unit. */
	uint16_t data_first;
	/* Number of bytes at the end of a container's room that contain no block. */
	uint16_t data_slack;
};

struct nt_layout {
	const char *name;
	unsigned bits;
	uint32_t first_build, last_build;
	const struct nt_common_layout *common;
	const struct nt_lfh_layout *lfh;
	/* _HEAP. valid_bytes is the offset of HeaderValidateLength, the size of _HEAP itself. */
	uint16_t encode_mask, encoding, interceptor, signature, virtual_list, segment_list, lock;
	uint16_t front_end, front_end_type, valid_bytes, heap_bytes;
};

extern const struct nt_layout nt_layouts[];
extern const size_t nt_layout_count;

/*
 * Finds the layout of the heap at `addr`, which has the signature of a segment. Chooses the row
 * that best matches the heap (size, signature, list and front end) and the build (0: unknown).
 * Returns NULL if nothing in the heap matches any row.
 */
const struct nt_layout *nt_layout_find(
	struct memory *memory, unsigned bits, uint64_t addr, uint32_t build);

/* Returns a description (a literal) of the first contradiction between a heap and its layout, or
 * NULL. */
const char *nt_layout_fault(struct memory *memory, const struct nt_layout *layout, uint64_t addr);

/* Returns the address of the heap's front end if it is a low fragmentation heap that points back to
 * the heap; otherwise 0. If the memory of the front end is missing, sets `*is_missing`, and returns
 * the address if it is known. */
uint64_t nt_front_end(
	struct memory *memory, const struct nt_layout *layout, uint64_t addr, bool *is_missing);

/*
 * Parsing of one block of an NT heap: the header, and the program's part of the block.
 *
 * A block has `size` bytes, including its header. The program's bytes begin after the header, or
 * after a prefix that points to the record of the block's stack. For the sources of the prefix, see
 * prefix_* in nt_layout.c. */

struct nt_header {
	uint32_t units, previous_units; /* sizes of this block and of the previous block */
	uint8_t flags, segment, unused; /* `segment` is SegmentOffset */
};

/* Decodes the 8 coded bytes of a header, using the heap's key. Returns false if the checksum is
 * wrong. In a heap with plain headers, the result proves nothing, because the checksum byte is a
 * tag index there (SmallTagIndex). */
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
 * Sequential reads of the target's memory. Addresses should ascend; reads near the previous address
 * are cheap. After using memory_*() directly, the caller must call nt_span_forget().
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

/* Returns a pointer to `len` bytes at `addr` (at most MEMORY_AT_MAX), or NULL if the bytes are
 * missing. The pointer is valid until the next call. */
static inline const unsigned char *nt_span_at(struct nt_span *span, uint64_t addr, size_t len)
{
	uint64_t skip = addr - span->seen.addr;

	if (addr >= span->seen.addr && skip < span->seen.len && span->seen.len - skip >= len)
		return span->seen.bytes + skip;
	return nt_span_seek(span, addr, len);
}

struct nt_block {
	uint64_t entry;
	uint64_t size_bytes; /* including the header */
	uint32_t unused; /* UnusedBytes of the header, without the LFH bit */
	bool is_large; /* large block: `unused` contains a plain number of bytes */
	bool is_extended; /* the header indicates a prefix */
	bool may_be_extended; /* the heap's blocks have prefixes */
};

struct nt_found {
	uint64_t addr, requested_bytes, record;
	const char *doubt; /* description (a literal) of invalid data in the block, or NULL */
};

/*
 * The low fragmentation heap (LFH), the front end of an NT heap: containers of blocks of one size.
 *
 * A container is an internal block of the back end. It points to a subsegment, which describes the
 * container. Subsegments are in zones, which are linked to the _LFH_HEAP. The walk of the back end
 * collects the containers; their blocks are added afterwards. */

struct nt_heap;

/* A container (_HEAP_USERDATA_HEADER and its blocks) that the walk of the back end found. */
struct nt_container {
	uint64_t addr, end;
	uint64_t subsegment;
	/* Size of the container according to its own header; 0: the layout does not have this
	 * field. */
	uint64_t room_bytes;
	uint32_t offsets; /* as stored in the container; 0: the layout does not have this field */
	uint32_t stride; /* distance between blocks, from the subsegment; 0: no subsegment */
	uint32_t block_count;
	uint32_t free_count; /* from the subsegment; valid if the layout has the field */
};

/* A container and its subsegment, as listed by a zone. */
struct nt_listed {
	uint64_t container, subsegment;
};

struct nt_lfh {
	uint64_t addr; /* address of the _LFH_HEAP; 0: none, or unknown */
	bool is_list_cut; /* some zones or subsegments are missing */
	/* Start addresses of the LFH and its zones, sorted. These structures may lie in ordinary
	 * blocks. */
	struct extents own;
	struct nt_listed *listed; /* sorted by container */
	size_t listed_count, listed_cap;
	struct nt_container *containers;
	size_t container_count, container_cap;
	uint64_t taken_end; /* end of the last container that was found only in the zones */
};

/* The following functions return 0 or -ERR_NOMEM. */

/* Reads the heap's front end. Must be called before the heap's blocks are walked. */
int nt_lfh_open(struct nt_heap *heap);

/* Adds an internal block to `containers` if the block is a container. */
int nt_lfh_note(struct nt_heap *heap, uint64_t addr, uint64_t end);

/* Adds the live blocks of all containers. Must be called after the whole back end has been
 * walked. */
int nt_lfh_walk(struct nt_heap *heap);

void nt_lfh_release(struct nt_lfh *lfh);

/* Returns true if a structure of the LFH itself begins between `addr` and `end`. */
bool nt_lfh_owns(const struct nt_lfh *lfh, uint64_t addr, uint64_t end);

/* Returns true if the zones list a container at `addr`, regardless of the block's header. */
bool nt_lfh_lists(struct nt_heap *heap, uint64_t addr, uint64_t end);

/* Compares the containers with the entries of the zones, and copies the description of each
 * container from its subsegment (nt_lfh_zones.c). Returns 0 or -ERR_NOMEM. */
int nt_lfh_match(struct nt_heap *heap);

/* Copies the description of a container from its subsegment. Returns false if the subsegment is
 * missing or does not refer to the container at `data`. */
bool nt_lfh_describe(
	struct nt_heap *heap, struct nt_container *container, uint64_t subsegment, uint64_t data);

struct nt_offsets {
	uint32_t first, stride; /* bytes to the first block, and distance between blocks */
};

/* Decodes a container's offsets. The key is used only if the offsets are encoded. */
struct nt_offsets nt_offsets_decode(
	const struct nt_heap *heap, const struct nt_container *container, uint32_t key);

uint32_t nt_first_offset(const struct nt_heap *heap, const struct nt_container *container);

/*
 * The back end of an NT heap: a chain of blocks whose headers contain their sizes.
 *
 * A header has a checksum and repeats the size of the previous block, so damage is noticed at the
 * next header. The walk then resumes at the next address where two headers agree.
 */

struct nt_heap {
	struct nt_walk *nt;
	const struct nt_layout *layout;
	uint64_t addr;
	uint64_t key; /* value that is XORed with headers */
	bool is_coded; /* headers are encoded and have a checksum */
	bool has_prefixes; /* blocks may have a prefix that points to a stack's record */
	/* The process uses page heaps, so a block may belong to a light page heap. */
	bool has_page_blocks;
	/* end of Windows' own blocks at the start of the heap, as found so far */
	uint64_t own_end;
	uint64_t committed_bytes, reserved_bytes;
	struct nt_span span;
	struct extents runs; /* chains of blocks between uncommitted ranges; sorted */
	struct extents gaps; /* parts of runs in which no blocks were found; sorted */
	struct nt_lfh lfh;
};

/* Reads the start of a heap, to find its layout and the format of its blocks. Returns false if no
 * layout fits; the heap then cannot be used. The caller must call nt_heap_close() afterwards. */
bool nt_heap_open(struct nt_heap *heap, struct nt_walk *nt, uint64_t addr);
void nt_heap_close(struct nt_heap *heap);

/* Walks the blocks of a run. A run begins and ends at a block boundary. Returns 0 or -ERR_NOMEM. */
int nt_chain_walk(struct nt_heap *heap, const struct extent *run);

/*
 * Finds the runs of all segments and the heap's committed and reserved bytes, and claims the
 * segments' memory (nt_segments.c). Returns 0 or -ERR_NOMEM. */
int nt_segments_find(struct nt_heap *heap);

/* Adds the program's part of a block to the walk. In a block of a light page heap, this part
 * follows the page heap's information. Returns 0 or -ERR_NOMEM. */
int nt_block_add(struct nt_heap *heap, const struct nt_block *block);

#endif
