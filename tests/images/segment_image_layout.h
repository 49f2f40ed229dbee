/* Offsets of a segment heap's fields, for its model. Each offset is in bytes from the start of the
 * structure that names the group. */
#ifndef TESTS_IMAGES_SEGMENT_IMAGE_LAYOUT_H
#define TESTS_IMAGES_SEGMENT_IMAGE_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

struct segment_image_layout {
	unsigned bits, build_first, build_last;

	struct { /* _SEGMENT_HEAP */
		uint16_t bytes, signature, global_flags, interceptor, list_index;
		uint16_t large_tree, allocated_base, contexts, vs, lfh;
		/* LargeReservedPages, LargeCommittedPages; TotalReservedPages and
		 * TotalCommittedPages of MemStats. If large_reserved is 0, the fields are not
		 * known. */
		uint16_t large_reserved, large_committed, total_reserved, total_committed;
		uint16_t
			/* pointer to the heap's entry in the ring; 0: not known and not used */
			user_context;
	} heap;
	/* _HEAP_SEG_CONTEXT, of which there are two. If bytes is 0, the heap itself is the only
	 * context, and it has only the list, the count and the free ranges. */
	struct {
		uint8_t bytes, mask, unit_shift, pages_shift, first_index, max_bytes;
		uint8_t lfh, vs, heap, list, count, free_ranges;
	} context;
	struct { /* _HEAP_PAGE_SEGMENT */
		uint16_t signature, watermark, header_bytes;
		bool has_no_constant; /* Signature is computed without the constant A2E64EAD... */
	} segment;
	struct { /* _HEAP_PAGE_RANGE_DESCRIPTOR; committed is 0 if it does not exist */
		uint8_t bytes, unused, unused_bytes, extra, flags, committed;
		uint8_t unit; /* UnitSize of a range's first unit */
		bool is_count_in_flags; /* CommittedPageCount is bits 5..7 of the flags' byte */
		/* UnitOffset of the range's other units; 0: at UnitSize's offset. */
		uint8_t unit_inside;
	} range;
	/* _HEAP_VS_CONTEXT; tree and list are 0 if they are in the slots; units is 0 if not
	 * known. */
	struct {
		uint8_t free_tree, list, backend, total_units, free_units;
	} vs;
	/* _HEAP_VS_AFFINITY_SLOT; bytes is 0 if the structure does not exist. map and mask:
	 * SlotMapRef and AffinityMask of _HEAP_VS_CONTEXT. */
	struct {
		uint8_t bytes, map, mask, context, free_tree, list;
	} vs_slot;
	struct { /* _HEAP_VS_SUBSEGMENT; owner: OwnerSlotRef, or 0 if it does not exist */
		uint8_t bitmap, size, signature, first_chunk, owner;
	} vs_subsegment;
	struct { /* _HEAP_VS_CHUNK_HEADER and _HEAP_VS_CHUNK_FREE_HEADER */
		uint8_t bits, bytes, free_node, least_free;
	} chunk;
	struct { /* _HEAP_LFH_CONTEXT */
		uint16_t backend, buckets;
		uint16_t slot_maps; /* the field follows 128 buckets; 0: no maps, and 129 buckets */
	} lfh;
	struct { /* _HEAP_LFH_SUBSEGMENT_OWNER; available_count is 0 if it does not exist */
		uint8_t bytes, available_count, available, full;
		/* BucketRef, PrivateSlotMapRef; 0: the fields do not exist. */
		uint8_t bucket, private_map;
	} owner;
	struct { /* _HEAP_LFH_BUCKET */
		uint8_t bytes, block_count, subsegment_count, reciprocal, slots;
	} bucket;
	struct { /* _HEAP_LFH_AFFINITY_SLOT; active is 0 if ActiveSubsegment does not exist */
		uint8_t bytes, active;
	} slot;
	struct { /* _HEAP_LFH_SUBSEGMENT; withheld is 0 if no block is withheld */
		uint8_t owner, free_count, block_count, free_hint, location, withheld;
		uint8_t offsets, commit_shift, commit_count, commit_state, bitmap;
		/* Since 26100, where owner is a reference. bucket is 0 for earlier builds. */
		uint8_t bucket, private_map, watermark, search_width, private_format;
	} subsegment;
	struct { /* _HEAP_LARGE_ALLOC_DATA */
		uint8_t bytes, address, pages;
	} large;
};

/* Returns NULL if the Windows has no segment heaps, or if their layout is not known. */
const struct segment_image_layout *segment_image_layout_of(unsigned bits, unsigned build);

#endif
