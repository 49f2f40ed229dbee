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
	const char **thread_names;
	struct record_kind *kinds;
	struct record_mark *marks;
	struct record_load *loads;
	const char **remarks;
	size_t module_cap, stack_cap, heap_cap, thread_cap, kind_cap, mark_cap, load_cap,
		remark_cap, name_cap;
	size_t name_count, frame_count, text_bytes, thread_stack_count;
};

struct recording_opening {
	struct recording *recording;
	struct chunk_reader reader;
	uint64_t offset; /* offset of the current chunk */
	uint64_t event_ms; /* time of the last known event */
	uint64_t mark_ms, load_ms; /* time of the last mark; time of the last module load */
	bool is_by_index; /* the file is opened with its index, so event chunks are not read */
	bool has_start, has_end;
};

/* Adds the contents of a chunk to the recording. Returns 0 or an error. */
int recording_add_chunk(
	struct recording_opening *opening, const struct chunk_head *head, struct payload *from);

/* Adds an event chunk or a check-point. When a file is opened with its index, an event chunk is
 * read only when it is needed. The number of its events is known only from the next entry. */
int recording_add_place(
	struct recording_opening *opening, unsigned type, const struct record_place *place);

/* Returns the index of the last place at or before `position` or `time_ms`; SIZE_MAX if no such
 * place exists. */
size_t record_place_at(
	const struct record_place *places, size_t count, uint64_t position, uint64_t time_ms);

/* Reads the payload of the chunk at a place, which must have the given type. Returns 0 or an
 * error. */
int record_place_read(struct chunk_reader *reader, const struct record_place *place,
	enum chunk_type type, struct payload *payload);

/* Reads the chunk of events with this index, and checks it against its place. Returns 0 or an
 * error. */
int record_events_read(const struct recording *recording, struct chunk_reader *reader,
	size_t number, struct record_events *events);

/* Reports an invalid chunk, and the time up to which the recording is valid. Returns `rc`. */
int record_events_bad(const struct recording *recording, int rc, uint64_t offset, uint64_t time_ms,
	struct err *err);

/* Finds the position after all events up to `time_ms`. */
int record_events_until(
	struct recording *recording, uint64_t time_ms, uint64_t *position, struct err *err);

/* Sets an error that contains the offset in the file. Returns `rc`. */
int recording_bad(const struct recording *recording, int rc, uint64_t offset, const char *detail,
	struct err *err);

#endif
