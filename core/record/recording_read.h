/* Shared by the files that read a recording: the open recording, and the places of its chunks. */
#ifndef CORE_RECORD_RECORDING_READ_H
#define CORE_RECORD_RECORDING_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/record/chunk.h"
#include "core/record/event_columns.h"
#include "core/record/record.h"

/* Place of an event chunk or a check-point. */
struct record_place {
	uint64_t offset, time_ms;
	uint64_t position; /* position of the check-point or of the chunk's first event */
};

struct recording {
	struct record_facts facts;
	char *path;
	struct os_file file;
	struct arena arena; /* holds all data that the facts point to, except the arrays */
	/* in ascending order; event chunks follow each other without gaps */
	struct record_place *events, *checkpoints;
	size_t event_chunk_count, event_chunk_cap, checkpoint_count, checkpoint_cap;
	struct module *modules;
	struct record_stack *stacks;
	uint64_t *heaps;
	uint32_t *threads;
	struct record_kind *kinds;
	struct record_mark *marks;
	struct record_load *loads;
	const char **remarks;
	size_t module_cap, stack_cap, heap_cap, thread_cap, kind_cap, mark_cap, load_cap,
		remark_cap;
	size_t frame_count, text_bytes;
};

/* Returns the index of the last place at or before position or time_ms; SIZE_MAX: none. */
size_t record_place_at(
	const struct record_place *places, size_t count, uint64_t position, uint64_t time_ms);

/* Finds the position after all events up to time_ms. */
int record_events_until(
	struct recording *recording, uint64_t time_ms, uint64_t *position, struct err *err);

/* Sets an error that contains the offset in the file. Returns rc. */
int recording_bad(const struct recording *recording, int rc, uint64_t offset, const char *detail,
	struct err *err);

#endif
