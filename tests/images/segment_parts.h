/* Parts of a made segment heap, for segment_*model.c only. Everything is planned before it is
 * written. All growth states have the same plan: a block that is not live in the requested state
 * still has its place. */
#ifndef TESTS_IMAGES_SEGMENT_PARTS_H
#define TESTS_IMAGES_SEGMENT_PARTS_H

#include "tests/images/made_image.h"
#include "tests/images/model_plan.h"
#include "tests/images/segment_image_layout.h"

#define SEGMENT_PAGE 0x1000u

/* An allocation, which may be live or not in the current state. */
struct segment_block {
	uint32_t requested;
	unsigned stack; /* STACK_NOTHING: no stack was recorded */
	bool has_stack_place; /* has an interceptor's unit, possibly without a record */
	bool is_for_ring; /* contains an entry of the ring of heaps */
	bool is_live;
};

enum range_type {
	RANGE_USER = 0,
	RANGE_LFH = 2,
	RANGE_VS = 3,
};

struct segment_range {
	uint16_t first, units;
	uint16_t pages_per_unit; /* committed pages of each unit */
	uint8_t flags;
	bool has_extra;
	uint32_t unused;
};

struct page_segment {
	uint64_t addr;
	unsigned next; /* number of the first unit after the last range */
	size_t range_count;
	struct segment_range ranges[256];
};

struct segment_context {
	uint64_t addr;
	unsigned unit_shift, first_index;
	struct page_segment *segments;
	size_t count, capacity;
};

/* Content of a VS chunk: a block, or an LFH subsegment. */
struct vs_item {
	struct segment_block block;
	struct segment_subsegment *subsegment;
	uint32_t bytes; /* number of bytes required in the chunk's user part */
};

struct segment_subsegment {
	uint64_t addr;
	uint32_t bytes;
	uint16_t bucket, block_bytes, block_count, first_offset, commit_state;
	bool is_in_vs, has_withheld;
	uint16_t free_count;
	struct segment_block *blocks;
};

struct segment_model {
	struct image *image;
	const struct segment_image_layout *at;
	uint64_t heap, heap_key, lfh_key;
	struct model_plan plan;
	unsigned unit; /* the heap's granularity in bytes */
	uint64_t meta, meta_end; /* unused part of the heap's own memory */
	struct segment_context contexts[2];
	uint64_t large_committed, large_reserved, committed,
		reserved; /* pages that the heap counts */

	struct vs_item *items;
	size_t item_count, item_capacity;
	struct segment_subsegment **subsegments; /* indexed by bucket */
	size_t subsegment_count, subsegment_capacity;
};

/* ---- segment_model.c */

/* Returns a random number below limit, the same in every run. If the order of planning is equal,
 * the number is equal in every growth state. */
uint64_t segment_random(struct segment_model *model, uint64_t limit);
/* Plans a block with random life and stack, and a request of least..most bytes. */
struct segment_block segment_plan_block(struct segment_model *model, uint32_t least, uint32_t most);
/* Allocates zeroed memory for the heap's own records. */
uint64_t segment_meta(struct segment_model *model, uint64_t bytes);
/* Since 26100: allocates such memory for the target of a reference. A reference is a u16 that
 * counts units of 64 bytes from a VS or LFH context. Inferred for the LFH context. */
uint64_t segment_meta_by_ref(struct segment_model *model, uint64_t bytes);
unsigned segment_ref(uint64_t context, uint64_t addr);
void segment_print(struct segment_model *model, const struct segment_block *block, uint64_t addr,
	uint64_t place_bytes);

/* ---- segment_tail_model.c */

enum tail_word {
	TAIL_WORD_NONE, /* the count of unused bytes is stored elsewhere */
	TAIL_WORD_PRESENT,
};
/* Returns the number of bytes that an interceptor adds to a block's place. These bytes follow the
 * user's bytes, which are rounded up to a unit. */
uint32_t segment_tail_bytes(
	const struct segment_model *model, const struct segment_block *block, enum tail_word word);
/* Writes a live block's first word, and the bytes between its request and user + usable. */
void segment_write_block(struct segment_model *model, const struct segment_block *block,
	uint64_t user, uint64_t usable, enum tail_word word);

/* ---- segment_backend_model.c */

unsigned segment_backend_count(const struct segment_model *model); /* number of contexts */
void segment_backend_init(struct segment_model *model);
/* Allocates a range of a context's units for a subsegment, and commits it. */
uint64_t segment_backend_take(
	struct segment_model *model, unsigned context, uint64_t bytes, enum range_type type);
void segment_backend_place_block(
	struct segment_model *model, unsigned number, const struct segment_block *block);
void segment_backend_write(struct segment_model *model);
void segment_backend_count_pages(struct segment_model *model);
void segment_backend_release(struct segment_model *model);

/* ---- segment_vs_model.c */

/* Queues a block; segment_vs_write() places all queued items in chunks. */
void segment_vs_add_block(struct segment_model *model, const struct segment_block *block);
void segment_vs_add_subsegment(struct segment_model *model, struct segment_subsegment *subsegment);
void segment_vs_write(struct segment_model *model);

/* ---- segment_lfh_model.c */

/* Plans about this many places for blocks. Subsegments in VS chunks are added to the VS items, so
 * call segment_lfh_write() after segment_vs_write(). */
void segment_lfh_plan(struct segment_model *model, unsigned place_count);
void segment_lfh_write(struct segment_model *model);
void segment_lfh_release(struct segment_model *model);

/* ---- segment_large_model.c */

void segment_large_write(struct segment_model *model, unsigned count, bool is_encoded);

#endif
