/*
 * A made NT heap while it is being filled. Blocks are placed one after another, segment by segment,
 * and the lists are linked at the end.
 *
 *     struct nt_heap *heap = nt_heap_new(image, false);
 *     uint64_t user = nt_place_block(heap, &(struct nt_block){.requested = 24, .stack = 3});
 *     nt_heap_finish(heap);
 *
 * A light page heap uses it too: its blocks are NT blocks with a header in front.
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
	NT_INTERNAL = 8, /* big blocks only (those from VirtualAlloc) */
};

#define NT_UNUSED_IN_SLOT 0x3f
#define NT_UNUSED_LAST 3
#define NT_UNUSED_BIG 4
#define NT_UNUSED_PREFIX 5

/* Place that is linked into a list or a table once the heap is finished. */
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
	uint64_t committed_bytes, reserved_bytes; /* total of all segments and big blocks */
	uint8_t prefix_unused; /* unused byte in the header of a block with a prefix */
	/* segment that is being filled */
	uint64_t segment, segment_end, cursor, committed;
	uint64_t run; /* start of the committed part that is being filled */
	uint64_t next_segment_bytes;
	unsigned segment_count;
	uint32_t hole_pages, hole_count;
	uint32_t previous_units, units_before; /* of the last entry, and of its predecessor */
	uint64_t last_entry;
	bool is_last_free;
	struct nt_place *frees;
	size_t free_count, free_capacity;
	struct lfh *lfh;
};

struct nt_block {
	uint64_t requested;
	unsigned stack; /* stack number, or STACK_NOTHING */
	bool is_bare; /* has no prefix, although the process records stacks */
	unsigned slack; /* units more than needed */
	unsigned user_flags; /* E0: flags that programs may set */
	bool has_extra; /* the program set a value; it is stored in the block's last unit */
	uint64_t trace; /* with STACK_NOTHING: content of the prefix in place of a record */
};

struct nt_heap *nt_heap_new(struct image *image, bool is_process_heap);
/* Finishes segments and lists, records the truth about their bytes, and frees the struct. Does not
 * enter the heap into any list of heaps. Call truth_heap() first. */
void nt_heap_finish(struct nt_heap *heap);

/* Places a block and returns its user address; records no truth. If bytes is not NULL, it receives
 * the block's total: Size*unit, or a big block's CommitSize. */
uint64_t nt_place_block(struct nt_heap *heap, const struct nt_block *block, uint64_t *bytes);
/* Calls nt_place_block() and records the truth. */
uint64_t nt_add_block(struct nt_heap *heap, const struct nt_block *block);
/* Adds a free place that has the size of such a block. */
void nt_add_freed(struct nt_heap *heap, const struct nt_block *block);
void nt_add_free(struct nt_heap *heap, unsigned units);
/* Adds a chunk for the heap's own use; returns its first byte after the header. */
uint64_t nt_add_internal(struct nt_heap *heap, uint64_t bytes);
void nt_add_guard(struct nt_heap *heap, uint64_t addr);
/* Ends the committed part with an uncommitted range of this many pages, and continues after it. */
void nt_add_hole(struct nt_heap *heap, unsigned pages);

/* Internal to the model. */
/* Returns the place of the next entry if the entry has at most this many bytes. */
uint64_t nt_next_entry(struct nt_heap *heap, uint64_t bytes);
uint64_t nt_place_entry(struct nt_heap *heap, uint32_t units, unsigned flags, unsigned unused);
void nt_write_header(struct nt_heap *heap, uint64_t entry, uint32_t units, unsigned flags,
	uint32_t previous_units, unsigned segment_offset, unsigned unused);
uint32_t nt_units_of(const struct nt_heap *heap, const struct nt_block *block);
bool nt_block_has_prefix(const struct nt_heap *heap, const struct nt_block *block);
void nt_write_prefix(
	struct nt_heap *heap, uint64_t entry, const struct nt_block *block, uint64_t unused_bytes);
void nt_write_contents(struct nt_heap *heap, uint64_t user, const struct nt_block *block);
uint64_t nt_place_big(struct nt_heap *heap, const struct nt_block *block, uint64_t *bytes);

/* ---- the front end (nt_lfh_model.c) */
struct lfh *lfh_new(struct nt_heap *heap);
void lfh_finish(struct nt_heap *heap);

/* Called once for each block of a container. Returns false if the block is free. Otherwise sets the
 * block's request, up to most_bytes. */
typedef bool lfh_fill(void *context, unsigned number, uint64_t most_bytes, struct nt_block *block);

/* Adds a container of 2^size_index bytes whose blocks have `units` units. In real heaps size_index
 * is 8 to 17. */
void lfh_add_container(
	struct nt_heap *heap, uint32_t units, unsigned size_index, lfh_fill *fill, void *context);
/* Returns the number of units of the blocks that serve requests of this size, or 0 if the size is
 * too large for the front end. */
uint32_t lfh_units_of(const struct nt_heap *heap, uint64_t requested);

#endif
