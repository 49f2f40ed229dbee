/*
 * Comparing what a source found with the truth.
 *
 * The child's own heaps must hold the truth's blocks and nothing else. The process heap may hold
 * more, since the system's DLLs use it too.
 */
#ifndef SNAPSHOT_DOCTOR_DOCTOR_JUDGE_H
#define SNAPSHOT_DOCTOR_DOCTOR_JUDGE_H

#include "snapshot/doctor/doctor.h"
#include "snapshot/doctor/doctor_found.h"
#include "snapshot/doctor/doctor_report.h"

/* More heap than this on top of a block is no overhead but a mistake: it has room for what page-sized
 * and larger units leave over, and for what a block had before it was made smaller in its place. */
uint64_t doctor_overhead_max(const struct doctor_block *block);

/*
 * Adds the rows for every heap of the truth: its blocks by group, its freed blocks, what else is in
 * it, and the stacks where found has such. 0 or -ERR_NOMEM.
 */
int doctor_judge(struct doctor_report *report, const struct doctor_truth *truth,
	const struct doctor_found *found);

/* The same by numbers alone: blocks and bytes of the child's own heaps, those that are listed and those
 * that heaps only count because they have no stack. 0 or -ERR_NOMEM. */
int doctor_judge_sums(struct doctor_report *report, const struct doctor_truth *truth,
	const struct doctor_found *found);

/* True when the innermost frame inside the child's program is the site that the block was allocated
 * at, and further out there is the function that calls all sites. */
bool doctor_stack_fits(const struct doctor_truth *truth, const struct doctor_block *block,
	const uint64_t *frames, uint32_t frame_count);

#endif
