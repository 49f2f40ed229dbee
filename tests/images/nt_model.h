/*
 * A made NT heap while it is being filled. Blocks are placed one behind the other, segment by
 * segment, and the lists are joined up at the end.
 *
 *     struct nt_heap *heap = nt_heap_new(image, false);
 *     uint64_t user = nt_place_block(heap, &(struct nt_block){.requested = 24, .stack = 3});
 *     nt_heap_finish(heap);
 *
 * A light page heap uses it too: its blocks are NT blocks with something in front.
 */
#ifndef TESTS_IMAGES_NT_MODEL_H
#define TESTS_IMAGES_NT_MODEL_H

#include "tests/images/image_nt_layout.h"
#include "tests/images/made_image.h"

/* Flags of an entry: facts, section 2.4. */
enum nt_entry_flag {
	NT_BUSY = 1,
	NT_EXTRA = 2,
	NT_FILL = 4,
	NT_INTERNAL = 8, /* of a big block: got from VirtualAlloc */
};

#define NT_UNUSED_IN_SLOT 0x3f
#define NT_UNUSED_LAST 3
#define NT_UNUSED_BIG 4
#define NT_UNUSED_PREFIX 5

/* What hangs in a list or a table once the heap is finished. */
struct nt_place {
	uint64_t addr, bytes;
};

struct nt_heap {
	struct image *image;
	const struct made_heap_layout *layout;
	const struct made_nt_shape *shape;
	uint64_t base;
	uint8_t key[8]; /* XORed onto an entry's coded 8 bytes */
	bool has_prefix, has_tail;
	bool is_plain; /* headers are not coded, and have no checksum */
	uint64_t committed_bytes, reserved_bytes; /* of all segments and big blocks */
	uint8_t prefix_unused; /* what a header says before a prefix */
	/* the segment being filled */
	uint64_t segment, segment_end, cursor, committed;
	uint64_t next_segment_bytes;
	unsigned segment_count;
	uint32_t hole_pages, hole_count;
	uint32_t previous_units, units_before; /* of the last entry, and of the one before it */
	uint64_t last_entry;
	bool is_last_free;
	struct nt_place *frees;
	size_t free_count, free_capacity;
	struct lfh *lfh;
};

struct nt_block {
	uint64_t requested;
	unsigned stack; /* or STACK_NOTHING */
	bool is_bare; /* without a prefix though the process has stacks */
	unsigned slack; /* units more than needed */
	unsigned user_flags; /* E0: what programs may set */
	bool has_extra; /* a value of the program's, in the block's last unit */
	uint64_t trace; /* with STACK_NOTHING and a prefix: what it says instead of a record */
};

struct nt_heap *nt_heap_new(struct image *image, bool is_process_heap);
/* Finishes segments and lists, tells the truth of their bytes, and frees the struct. Does not enter the
 * heap anywhere: its truth_heap() comes before. */
void nt_heap_finish(struct nt_heap *heap);

/* Places a block and returns its user address; says nothing to the truth. bytes, if not NULL, gets
 * what it takes in all: Size*unit, or a big block's CommitSize. */
uint64_t nt_place_block(struct nt_heap *heap, const struct nt_block *block, uint64_t *bytes);
/* The same, told to the truth. */
uint64_t nt_add_block(struct nt_heap *heap, const struct nt_block *block);
/* The place such a block takes, free instead. */
void nt_add_freed(struct nt_heap *heap, const struct nt_block *block);
void nt_add_free(struct nt_heap *heap, unsigned units);
/* A chunk that belongs to the heap itself; returns its first byte behind the header. */
uint64_t nt_add_internal(struct nt_heap *heap, uint64_t bytes);
/* Makes a page of such a chunk one that nobody may touch. */
void nt_add_guard(struct nt_heap *heap, uint64_t addr);
/* Ends the committed part with an uncommitted range of that many pages, and goes on behind it. */
void nt_add_hole(struct nt_heap *heap, unsigned pages);

/* For the files of the model. */
/* Where the next entry will be, if it has no more than that many bytes. */
uint64_t nt_next_entry(struct nt_heap *heap, uint64_t bytes);
uint64_t nt_place_entry(struct nt_heap *heap, uint32_t units, unsigned flags, unsigned unused);
void nt_put_header(struct nt_heap *heap, uint64_t entry, uint32_t units, unsigned flags,
	uint32_t previous_units, unsigned segment_offset, unsigned unused);
/* Units of a back-end block. */
uint32_t nt_units_of(const struct nt_heap *heap, const struct nt_block *block);
bool nt_block_has_prefix(const struct nt_heap *heap, const struct nt_block *block);
void nt_put_prefix(
	struct nt_heap *heap, uint64_t entry, const struct nt_block *block, uint64_t unused_bytes);
void nt_put_contents(struct nt_heap *heap, uint64_t user, const struct nt_block *block);
uint64_t nt_place_big(struct nt_heap *heap, const struct nt_block *block, uint64_t *bytes);

/* ---- the front end (nt_lfh_model.c) */
struct lfh *lfh_new(struct nt_heap *heap);
void lfh_finish(struct nt_heap *heap);

/* Which blocks of a container are live: is asked for each in turn; false: free. Fills in what was
 * requested, up to most_bytes. */
typedef bool lfh_fill(void *context, unsigned number, uint64_t most_bytes, struct nt_block *block);

/* A container of 2^size_index bytes, with blocks of that many units each. Real ones have 8 to 17. */
void lfh_add_container(
	struct nt_heap *heap, uint32_t units, unsigned size_index, lfh_fill *fill, void *context);
/* Units of the blocks that serve requests of that size; 0: too large for the front end. */
uint32_t lfh_units_of(const struct nt_heap *heap, uint64_t requested);

#endif
