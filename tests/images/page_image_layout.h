/* Offsets of the fields of page heaps, for their model. */
#ifndef TESTS_IMAGES_PAGE_IMAGE_LAYOUT_H
#define TESTS_IMAGES_PAGE_IMAGE_LAYOUT_H

#include <stdint.h>

struct page_image_layout {
	unsigned bits;
	struct { /* _DPH_HEAP_ROOT */
		uint16_t signature, flags, busy_table, busy_count, busy_bytes, free_head, free_tail;
		uint16_t free_count, node_pool_head, next, seed, normal, create_stack, bytes;
	} root;
	struct { /* _RTL_AVL_TABLE; its BalancedRoot is at 0 */
		uint8_t balance, ordered, count, depth;
	} table;
	struct { /* _DPH_HEAP_BLOCK; its TableLinks or pNextAlloc are at 0 */
		uint8_t user, base, base_bytes, access_bytes, requested, actual, stack, adjacency;
		uint8_t region, bytes;
	} block;
	struct { /* _DPH_BLOCK_INFORMATION */
		uint8_t heap, requested, actual, trace_index, stack, end_stamp, bytes;
	} info;
};

const struct page_image_layout *page_image_layout_of(unsigned bits);

#endif
