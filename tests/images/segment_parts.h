/*
 * The parts a made segment heap is put together from: for segment_*model.c alone.
 *
 * All is planned before anything is written, and the plan is the same for every growth state: a
 * block that is not live in the state asked for has its place all the same.
 */
#ifndef TESTS_IMAGES_SEGMENT_PARTS_H
#define TESTS_IMAGES_SEGMENT_PARTS_H

#include "tests/images/made_image.h"
#include "tests/images/model_plan.h"
#include "tests/images/segment_image_layout.h"

#define SEGMENT_PAGE 0x1000u

/* One allocation, live or not in the state that is made. */
struct segment_block {
	uint32_t requested;
	unsigned stack; /* STACK_NOTHING: none was recorded */
	bool has_stack_place; /* an interceptor's unit is there, maybe with no record */
	bool is_for_ring; /* an entry of the ring of heaps will lie there */
	bool is_live;
};

enum range_type {
	RANGE_USER = 0,
	RANGE_LFH = 2,
	RANGE_VS = 3,
};

struct segment_range {
	uint16_t first, units;
	uint16_t pages_per_unit; /* committed */
	uint8_t flags;
	bool has_extra;
	uint32_t unused;
};

struct page_segment {
	uint64_t addr;
	unsigned next; /* the first unit that no range has */
	size_t range_count;
	struct segment_range ranges[256];
};

struct segment_context {
	uint64_t addr;
	unsigned unit_shift, first_index;
	struct page_segment *segments;
	size_t count, capacity;
};

/* What is to lie in a VS chunk: a block, or an LFH subsegment. */
struct vs_item {
	struct segment_block block;
	struct segment_subsegment *subsegment;
	uint32_t bytes; /* wanted of the chunk's user part */
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
	unsigned unit; /* the heap's granularity, bytes */
	uint64_t meta, meta_end; /* the heap's own memory not yet used */
	struct segment_context contexts[2];
	uint64_t large_committed, large_reserved, committed,
		reserved; /* pages, as it counts them */

	struct vs_item *items;
	size_t item_count, item_capacity;
	struct segment_subsegment **subsegments; /* by bucket */
	size_t subsegment_count, subsegment_capacity;
};

/* ---- segment_model.c */

/* A repeatable number below limit, the same in every growth state as long as all is planned in
 * the same order. */
uint64_t segment_random(struct segment_model *model, uint64_t limit);
/* A block of random life and stack that asks for least..most bytes. */
struct segment_block segment_plan_block(struct segment_model *model, uint32_t least, uint32_t most);
/* Zeroed memory that the heap keeps its own records in. */
uint64_t segment_meta(struct segment_model *model, uint64_t bytes);
/* Reserves such memory for a structure that a reference leads to, from 26100 on. A reference is a u16
 * that counts units of 64 bytes from a VS or LFH context. Inferred for the LFH context. */
uint64_t segment_meta_by_ref(struct segment_model *model, uint64_t bytes);
unsigned segment_ref(uint64_t context, uint64_t addr);
void segment_tell(struct segment_model *model, const struct segment_block *block, uint64_t addr,
	uint64_t place_bytes);

/* ---- segment_tail_model.c */

enum tail_word {
	TAIL_WORD_NONE, /* the count of unused bytes is kept elsewhere */
	TAIL_WORD_PRESENT,
};
/* Bytes that an interceptor adds to a block's place, after the user's bytes rounded up to a unit. */
uint32_t segment_tail_bytes(
	const struct segment_model *model, const struct segment_block *block, enum tail_word word);
/* Writes a live block's first word and what follows its bytes, to user + usable. */
void segment_put_block(struct segment_model *model, const struct segment_block *block,
	uint64_t user, uint64_t usable, enum tail_word word);

/* ---- segment_backend_model.c */

unsigned segment_backend_count(const struct segment_model *model); /* of contexts */
void segment_backend_init(struct segment_model *model);
/* Takes a range of a context's units, committed, for a subsegment. */
uint64_t segment_backend_take(
	struct segment_model *model, unsigned context, uint64_t bytes, enum range_type type);
void segment_backend_place_block(
	struct segment_model *model, unsigned number, const struct segment_block *block);
/* Writes all that was taken. */
void segment_backend_write(struct segment_model *model);
/* Counts the pages of its segments. */
void segment_backend_count_pages(struct segment_model *model);
void segment_backend_release(struct segment_model *model);

/* ---- segment_vs_model.c */

/* To lie in some chunk; segment_vs_write() finds the place of all. */
void segment_vs_add_block(struct segment_model *model, const struct segment_block *block);
void segment_vs_add_subsegment(struct segment_model *model, struct segment_subsegment *subsegment);
void segment_vs_write(struct segment_model *model);

/* ---- segment_lfh_model.c */

/* Plans about that many places for blocks; those of subsegments in VS chunks are put among the VS
 * items. segment_lfh_write() is for after segment_vs_write(). */
void segment_lfh_plan(struct segment_model *model, unsigned place_count);
void segment_lfh_write(struct segment_model *model);
void segment_lfh_release(struct segment_model *model);

/* ---- segment_large_model.c */

void segment_large_write(struct segment_model *model, unsigned count, bool is_encoded);

#endif
