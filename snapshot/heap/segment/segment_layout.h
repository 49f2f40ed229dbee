/*
 * The segment heap of Windows 10 and 11: offsets, in bytes, of what its walker reads.
 *
 * What differs by build is in a row; what is the same in all builds of one bitness hangs on it. Which
 * row a heap has is found by probing: the one whose pointers and lists stand where the row says, most of
 * them; where that is so for several rows, page ranges must make sense.
 *
 * Sources: type listings made from public symbols of ntkrnlmp (which shares the heap library) and
 * ntdll; the row says which. Structure and field are named beside each number.
 */
#ifndef SNAPSHOT_HEAP_SEGMENT_LAYOUT_H
#define SNAPSHOT_HEAP_SEGMENT_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

/* The same in all builds of one bitness. */
struct segment_parts {
	unsigned bits, unit; /* bytes of a pointer's bits; granularity of blocks */
	/* _HEAP_PAGE_SEGMENT */
	uint16_t segment_signature;
	/* _HEAP_PAGE_RANGE_DESCRIPTOR */
	uint16_t range_bytes, range_signature, range_flags;
	/* _HEAP_VS_SUBSEGMENT, _HEAP_VS_CHUNK_HEADER */
	uint16_t vs_size, vs_signature, vs_first_chunk, vs_chunk_bytes, vs_chunk_bits;
	/* _HEAP_LFH_SUBSEGMENT, _HEAP_LFH_SUBSEGMENT_OWNER */
	uint16_t lfh_owner, lfh_free_count, lfh_block_count, lfh_offsets;
	uint16_t lfh_bitmap, owner_bucket;
	/* _HEAP_LARGE_ALLOC_DATA, _RTL_BALANCED_NODE in it, _RTL_RB_TREE */
	uint16_t large_address, large_pages, node_left, node_right, node_parent, tree_root,
		tree_min;
	/* _SEGMENT_HEAP_EXTRA */
	uint16_t extra_interceptor, extra_units, extra_settable, extra_bytes;
	/* What says that there is no record of a stack. */
	uint64_t no_record;
	/* ntdll!RtlpHpHeapGlobals */
	uint16_t globals_heap_key, globals_lfh_key;
};

struct segment_layout {
	const char *name;
	const struct segment_parts *parts;
	/* _SEGMENT_HEAP; committed_pages 0: these counts are not known */
	uint16_t large_tree, large_reserved, large_committed, reserved_pages, committed_pages;
	/* Two _HEAP_SEG_CONTEXTs; context_bytes 0: there are none, the heap is its only one. */
	uint16_t contexts, context_bytes, vs_context, lfh_context, heap_bytes;
	/* _HEAP_SEG_CONTEXT, or of the heap: there UnitShift and FirstDescriptorIndex are constants */
	uint16_t unit_shift, first_descriptor, to_lfh, to_vs, to_heap, segment_list;
	/* _HEAP_VS_CONTEXT */
	uint16_t vs_list;
	/* _HEAP_PAGE_RANGE_DESCRIPTOR */
	uint16_t range_unused, range_unused_bytes, range_extra, range_units;
	/* _HEAP_LFH_SUBSEGMENT; 0: it has no such field */
	uint16_t lfh_withheld;
	/* Which builds are likelier to be this row's, when several fit. */
	uint32_t first_build;
};

#define SEGMENT_ONLY_SHIFT 12 /* of a heap without contexts */
#define SEGMENT_ONLY_FIRST 2 /* the descriptors that its 256 take */
#define SEGMENT_DESCRIPTORS 256 /* _HEAP_PAGE_SEGMENT.DescArray */
#define SEGMENT_RANGE_SIGNATURE 0xccddccddu /* _HEAP_PAGE_RANGE_DESCRIPTOR.TreeSignature */
#define SEGMENT_RANGE_FLAGS 0x1fu /* on x86 the other bits are a page count */
#define SEGMENT_RANGE_USED 0x03u /* both bits: given out, and the first of its range */
#define SEGMENT_RANGE_USER 0x03u
#define SEGMENT_RANGE_INTERNAL 0x07u
#define SEGMENT_RANGE_LFH 0x0bu
#define SEGMENT_RANGE_VS 0x0fu
#define SEGMENT_VS_SIGNATURE 0x2bedu
/* What page segments are signed with besides the key; nothing from this build on. */
#define SEGMENT_CONSTANT 0xa2e64eada2e64eadu
#define SEGMENT_BUILD_WIDE 26100u

extern const struct segment_layout segment_layouts[];
extern const size_t segment_layout_count;

#endif
