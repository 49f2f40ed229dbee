/* Offsets in Windows' structures for the models, by bitness and build. */
#ifndef TESTS_IMAGES_IMAGE_NT_LAYOUT_H
#define TESTS_IMAGES_IMAGE_NT_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

/* Fields of _HEAP that differ between builds. */
struct made_heap_layout {
	unsigned bits, first_build;
	uint16_t bytes, first_entry;
	uint16_t pointer_key; /* 0: the field does not exist */
	uint16_t interceptor, threshold, signature, segment_reserve, total_free;
	uint16_t ucr_list, align_round, virtual_blocks, segment_list, blocks_index;
	uint16_t free_lists, lock, commit_routine;
	uint16_t front_end, front_end_type;
	/* Offset of the pointer to the heap's entry in the ring; 0: not known and not used. */
	uint16_t user_context;
};

/* Layouts that differ only by bitness: entries, segments, big blocks, prefixes, the stack
 * database. */
struct made_nt_shape {
	unsigned bits;
	uint16_t unit; /* unit of sizes in bytes, which is also the size of a header */
	uint16_t header_at; /* offset of the coded 8 bytes in an entry */
	uint16_t segment_signature, segment_flags, segment_link, segment_heap, segment_base;
	uint16_t segment_pages, segment_first, segment_last, segment_holes_pages, segment_holes;
	uint16_t segment_ucr_list, segment_bytes;
	uint16_t flags, force_flags, encode_mask, encoding; /* fields of _HEAP */
	uint16_t ucr_link, ucr_segment_link, ucr_address, ucr_size, ucr_bytes;
	uint16_t big_commit, big_reserve, big_entry, big_bytes;
	uint16_t prefix_bytes, prefix_trace, prefix_header; /* offsets from the block's entry */
	uint16_t extra_bytes, tail_bytes;
	uint16_t most_units;
	/* _STACK_TRACE_DATABASE and its entries */
	uint16_t db_peak, db_lower_start, db_pre_committed, db_commit_base, db_lower_limit;
	uint16_t db_upper_limit, db_next_lower, db_next_upper, db_lookups, db_added;
	uint16_t db_index_array, db_allocated, db_available, db_failures, db_free_lists;
	uint16_t db_slist_bytes, db_bucket_count, db_buckets, db_bucket_bytes;
	uint16_t trace_count, trace_index_high, trace_index, trace_depth, trace_frames;
};

/* Low fragmentation front end. */
struct made_lfh_layout {
	unsigned bits, first_build;
	uint16_t heap_bytes, zones, heap; /* _LFH_HEAP */
	/* _LFH_BLOCK_ZONE; limit is 0 if it does not exist. */
	uint16_t zone_end, zone_limit, zone_first;
	bool is_zone_end_index;
	uint16_t subsegment_bytes, user_blocks, exchange, block_size, flags, block_count,
		size_index;
	uint16_t blocks_size_index, blocks_signature, blocks_bytes; /* _HEAP_USERDATA_HEADER */
	uint16_t offsets; /* 0: the field does not exist */
	bool are_offsets_coded;
	uint16_t bitmap, bitmap_buffer, bitmap_data; /* 0: the fields do not exist */
	bool is_header_coded;
	uint16_t guard; /* field in the container's header: a guard page follows; 0: never */
};

const struct made_heap_layout *made_heap_layout(unsigned bits, unsigned build);
const struct made_lfh_layout *made_lfh_layout(unsigned bits, unsigned build);
const struct made_nt_shape *made_nt_shape(unsigned bits);

#endif
