/*
 * What one source found in the child, in one form.
 */
#ifndef SNAPSHOT_DOCTOR_DOCTOR_FOUND_H
#define SNAPSHOT_DOCTOR_DOCTOR_FOUND_H

#include "core/model.h"
#include "snapshot/heap/heap.h"

struct doctor_found_block {
	uint64_t addr, requested_bytes, overhead_bytes;
	uint64_t heap; /* address */
	const uint64_t *frames; /* innermost first; NULL: not known */
	uint32_t frame_count;
};

/* Owns blocks; heaps and frames are those of the walk or snapshot it was made of. */
struct doctor_found {
	const char *source; /* its name, a literal */
	bool has_stacks;
	struct doctor_found_block *blocks; /* by address */
	size_t block_count;
	const struct heap *heaps;
	size_t heap_count;
};

/* Each returns 0 or -ERR_NOMEM, then with nothing to release. Of a snapshot only the blocks with a
 * stack are listed; the others are numbers of their heaps (heap.stackless). */
int doctor_found_by_walk(struct doctor_found *found, const struct walk *walk);
int doctor_found_by_snapshot(struct doctor_found *found, const struct snapshot *snapshot);
void doctor_found_release(struct doctor_found *found);

/* Orders the blocks, as the above do. */
void doctor_found_sort(struct doctor_found *found);

/* The first block at addr, or NULL; others at the same address follow it. */
const struct doctor_found_block *doctor_found_at(const struct doctor_found *found, uint64_t addr);

/* The heap at addr, or NULL. */
const struct heap *doctor_found_heap(const struct doctor_found *found, uint64_t addr);

#endif
