/*
 * hsnap doctor: does hsnap read this system's heaps rightly? A child of ours makes known blocks and
 * tells the truth about them; every source of blocks and stacks is compared with it.
 *
 * struct doctor_truth lies in memory that child and parent share and is only numbers. The child is
 * hsnap.exe itself, so both sides have one layout; the parent checks all of it all the same.
 */
#ifndef SNAPSHOT_DOCTOR_DOCTOR_H
#define SNAPSHOT_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The heaps of the child. All but the process heap are its own: nobody else puts blocks there. */
enum doctor_heap {
	DOCTOR_PROCESS_HEAP,
	DOCTOR_GROWABLE,
	DOCTOR_FIXED, /* with a maximum size */
	DOCTOR_UNLOCKED, /* HEAP_NO_SERIALIZE, which rules out the low fragmentation heap */
	DOCTOR_SEGMENT, /* where the system makes one */
	DOCTOR_HEAPS,
};

/* What a block is there to try. Bounds are those of the allocators: sizes up to 16 KiB may be in the
 * low fragmentation heap, and big ones lie about where a heap takes memory of its own for each. */
enum doctor_group {
	DOCTOR_SMALL, /* every step of 8 bytes from 0 to 1024 */
	DOCTOR_MIDDLE, /* to 16 KiB */
	DOCTOR_BACK_END, /* to 256 KiB */
	DOCTOR_BIG,
	DOCTOR_RESIZED, /* reallocated */
	DOCTOR_GROUPS,
};

#define DOCTOR_SITES 4 /* functions of the child that allocate */
#define DOCTOR_RESIZE_SITE DOCTOR_SITES /* the one that reallocates */
#define DOCTOR_BLOCKS_MAX 32768
#define DOCTOR_MAGIC 0x31434f44u /* "DOC1" */

struct doctor_block {
	uint64_t addr, requested_bytes;
	uint64_t was_bytes; /* before it was reallocated; 0: it was not */
	uint8_t heap, group;
	uint8_t site; /* where it was allocated; the stack of a reallocated one may show either */
	bool is_freed;
};

/* Code of one function: a return address into it is above from and not above to. */
struct doctor_range {
	uint64_t from, to;
};

struct doctor_truth {
	uint32_t magic;
	uint32_t
		failed_bytes; /* the child got no block of so many bytes and gave up; 0: all is well */
	uint64_t heaps[DOCTOR_HEAPS]; /* 0: there is none */
	/* HeapCompatibilityInformation: 0 plain, 1 look-aside, 2 low fragmentation */
	uint32_t front_ends[DOCTOR_HEAPS];
	struct doctor_range image; /* the child's program */
	struct doctor_range sites[DOCTOR_SITES + 1];
	struct doctor_range outer; /* the function that calls all of them */
	uint32_t block_count;
	struct doctor_block blocks[DOCTOR_BLOCKS_MAX]; /* by address, each once */
};

const char *doctor_heap_name(enum doctor_heap heap);
const char *doctor_group_name(enum doctor_group group);

/* Adds a block; false when there is no room. */
bool doctor_truth_add(struct doctor_truth *truth, const struct doctor_block *block);

/* Orders the blocks, and forgets freed ones whose place another block has taken. */
void doctor_truth_settle(struct doctor_truth *truth);

/* True when everything in it has its bounds, as the parent asks of what it was handed. */
bool doctor_truth_is_sound(const struct doctor_truth *truth);

/* The index of the first block at or above addr, or block_count. */
size_t doctor_truth_from(const struct doctor_truth *truth, uint64_t addr);

/* The block at addr, freed or not, or NULL. */
const struct doctor_block *doctor_truth_find(const struct doctor_truth *truth, uint64_t addr);

#endif
