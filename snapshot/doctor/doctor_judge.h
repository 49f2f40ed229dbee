/*
 * Comparing what a source found with the truth.
 *
 * The child's own heaps must hold the truth's blocks and nothing else. The process heap may hold
 * more, since the system's DLLs use it too.
 *
 * Two things may differ in a heap of Windows without a mistake of ours, and no published fact says
 * that they do not: ntdll may keep blocks of its own in a heap that a program made, and it may put a
 * freed block aside for a while before it marks it free. Both are few, whereas a walker that takes
 * free blocks for live ones does so for a whole kind of them. So what is few is a note, with its
 * numbers, and more is off. Wine's heaps, whose source is open, do neither.
 */
#ifndef SNAPSHOT_DOCTOR_DOCTOR_JUDGE_H
#define SNAPSHOT_DOCTOR_DOCTOR_JUDGE_H

#include "snapshot/doctor/doctor.h"
#include "snapshot/doctor/doctor_found.h"
#include "snapshot/doctor/doctor_report.h"

/* Few: no more than so many, and than this part of the blocks that the child freed or has. */
#define DOCTOR_FEW_MAX 32
#define DOCTOR_FREED_PART 8
#define DOCTOR_OTHERS_PART 64

/* More heap than this on top of a block is no overhead but a mistake: it has room for what page-sized
 * and larger units leave over, and for what a block had before it was made smaller in its place. */
uint64_t doctor_overhead_max(const struct doctor_block *block);

/*
 * Adds the rows for every heap of the truth: its blocks by group, its freed blocks, what else is in
 * it, blocks that lie in one another, and the stacks where found has such. before is what was in the
 * heaps when the child had just made them, or NULL. 0 or -ERR_NOMEM.
 */
int doctor_judge(struct doctor_report *report, const struct doctor_truth *truth,
	const struct doctor_found *found, const struct doctor_found *before);

/* The same by numbers alone: blocks and bytes of the child's own heaps, those that are listed and those
 * that heaps only count because they have no stack. What a walk of this child listed beyond the truth
 * (that is doctor_judge()'s to judge) is expected here too; walked may be NULL. 0 or -ERR_NOMEM. */
int doctor_judge_sums(struct doctor_report *report, const struct doctor_truth *truth,
	const struct doctor_found *found, const struct doctor_found *walked);

/* True when the innermost frame inside the child's program is the site that the block was allocated
 * at, and further out there is the function that calls all sites. */
bool doctor_stack_fits(const struct doctor_truth *truth, const struct doctor_block *block,
	const uint64_t *frames, uint32_t frame_count);

#endif
