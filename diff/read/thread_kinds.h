/*
 * Kinds of a recording, divided by the thread that allocated.
 *
 * A free does not record which thread allocated the block. So the events are replayed from the
 * beginning of the recording, and the thread of each live block is stored. The parts of a kind are
 * numbered in the order of their first allocations, and the allocations of each part from 0.
 */
#ifndef DIFF_READ_THREAD_KINDS_H
#define DIFF_READ_THREAD_KINDS_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/record/record.h"
#include "diff/read/dump_sums.h"

struct part_event {
	struct record_event
		event; /* its kind and number are the part's index and its number there */
	uint32_t kind; /* index in the recording */
	uint64_t position;
};

/* Replays the events up to the end of the window of the sums. Returns 0, an error of the function, or
 * a read error. */
int thread_kinds_replay(struct recording *recording, const struct dump_sums *sums,
	int (*handle)(void *ctx, const struct part_event *event, struct err *err), void *ctx,
	struct err *err);

/* Counts the blocks of a window by part. The caller frees `*parts`, even after an error. */
int thread_kinds_read(struct recording *recording, const struct dump_sums *sums,
	struct thread_kind **parts, size_t *count, struct err *err);

#endif
