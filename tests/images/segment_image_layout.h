/* Offsets of the fields of a segment heap, for its model, in bytes from the start of the structure
 * that names the group. */
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
		 * TotalCommittedPages of MemStats; large_reserved 0: not known */
		uint16_t large_reserved, large_committed, total_reserved, total_committed;
		uint16_t
			/* of the heap's entry in the ring; 0: not known and not used */
			user_context;
	} heap;
	/* _HEAP_SEG_CONTEXT, two of them; bytes 0: the heap itself is the only context, and has
	 * only its list, its count and its free ranges. */
	struct {
		uint8_t bytes, mask, unit_shift, pages_shift, first_index, max_bytes;
		uint8_t lfh, vs, heap, list, count, free_ranges;
	} context;
	struct { /* _HEAP_PAGE_SEGMENT */
		uint16_t signature, watermark, header_bytes;
		bool has_no_constant; /* Signature does not include A2E64EAD... */
	} segment;
	struct { /* _HEAP_PAGE_RANGE_DESCRIPTOR; committed 0: does not exist */
		uint8_t bytes, unused, unused_bytes, extra, flags, committed;
		uint8_t unit; /* UnitSize of a range's first unit */
		bool is_count_in_flags; /* CommittedPageCount is bits 5..7 of the flags' byte */
		uint8_t unit_inside; /* UnitOffset of its other units; 0: at UnitSize's offset */
	} range;
	struct { /* _HEAP_VS_CONTEXT; tree and list 0: in the slots; units 0: not known */
		uint8_t free_tree, list, backend, total_units, free_units;
	} vs;
	/* _HEAP_VS_AFFINITY_SLOT; bytes 0: does not exist. map and mask: SlotMapRef and
	 * AffinityMask of _HEAP_VS_CONTEXT. */
	struct {
		uint8_t bytes, map, mask, context, free_tree, list;
	} vs_slot;
	struct { /* _HEAP_VS_SUBSEGMENT; owner: OwnerSlotRef, 0: does not exist */
		uint8_t bitmap, size, signature, first_chunk, owner;
	} vs_subsegment;
	struct { /* _HEAP_VS_CHUNK_HEADER and _HEAP_VS_CHUNK_FREE_HEADER */
		uint8_t bits, bytes, free_node, least_free;
	} chunk;
	struct { /* _HEAP_LFH_CONTEXT */
		uint16_t backend, buckets;
		uint16_t slot_maps; /* after 128 buckets; 0: no maps, and 129 buckets */
	} lfh;
	struct { /* _HEAP_LFH_SUBSEGMENT_OWNER; available_count 0: does not exist */
		uint8_t bytes, available_count, available, full;
		uint8_t bucket, private_map; /* BucketRef, PrivateSlotMapRef; 0: do not exist */
	} owner;
	struct { /* _HEAP_LFH_BUCKET */
		uint8_t bytes, block_count, subsegment_count, reciprocal, slots;
	} bucket;
	struct { /* _HEAP_LFH_AFFINITY_SLOT; active 0: no ActiveSubsegment */
		uint8_t bytes, active;
	} slot;
	struct { /* _HEAP_LFH_SUBSEGMENT; withheld 0: no block is withheld */
		uint8_t owner, free_count, block_count, free_hint, location, withheld;
		uint8_t offsets, commit_shift, commit_count, commit_state, bitmap;
		/* From 26100 on, where owner is a reference; bucket 0: an earlier build. */
		uint8_t bucket, private_map, watermark, search_width, private_format;
	} subsegment;
	struct { /* _HEAP_LARGE_ALLOC_DATA */
		uint8_t bytes, address, pages;
	} large;
};

/* Returns NULL for a Windows without segment heaps or with an unknown layout. */
const struct segment_image_layout *segment_image_layout_of(unsigned bits, unsigned build);

#endif
