#ifndef TESTS_IMAGES_PAGE_PARTS_H
#define TESTS_IMAGES_PAGE_PARTS_H

#include "tests/images/made_image.h"
#include "tests/images/page_image_layout.h"

struct page_info {
	uint64_t heap;
	uint64_t requested;
	uint64_t stack; /* address of a record, or 0 */
	bool is_full;
};

/* Writes a busy block's _DPH_BLOCK_INFORMATION, which directly precedes the user's bytes. */
void page_write_info(struct image *image, const struct page_image_layout *at, uint64_t user,
	const struct page_info *info);

struct page_plan {
	uint32_t requested;
	unsigned stack;
	bool is_live;
};

struct model_plan;
struct page_plan page_plan_block(struct image *image, struct model_plan *plan);

/* Links nodes (in ascending order of their values) into the _RTL_AVL_TABLE at table_addr. */
void avl_image_build(struct image *image, const struct page_image_layout *at, uint64_t table_addr,
	const uint64_t *nodes, size_t count);

uint64_t page_full_make(struct image *image, const struct model_request *request);
uint64_t page_light_make(struct image *image, const struct model_request *request);

#endif
