/*
 * A recording that is being written, in three layers: chunks (recorder_chunks.c); the lists of
 * definitions (recorder_lists.c); events and everything else (recorder.c).
 */
#ifndef CORE_RECORD_RECORDER_PARTS_H
#define CORE_RECORD_RECORDER_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zstd.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/record/chunk.h"
#include "core/record/event_columns.h"
#include "core/record/record.h"

#define CACHE_KINDS 4096 /* must be a power of two */

/* Lists whose rows may be spread over several chunks. */
enum { MODULES, STACKS, HEAPS, THREADS, KINDS, THREAD_STACKS, LISTS };

struct record_list {
	struct buf rows; /* encoded rows not written yet */
	size_t first, count; /* number of the first row in `rows`; number of all items */
};

struct kind_counter {
	uint64_t allocated, live, freed; /* `freed` is the number of the last freed allocation */
	uint64_t bytes; /* bytes per live allocation */
};

struct pending_mark {
	uint64_t time_ms, position;
	size_t label_at; /* offset in labels; SIZE_MAX: marks the start of the recording */
};

struct recorder {
	struct os_file file;
	char *path;
	struct err err; /* the first error */
	uint64_t bytes; /* size of the file so far */
	ZSTD_CCtx *zstd;
	struct buf payload, chunk, index;

	struct record_list lists[LISTS];
	struct table modules;
	struct u64map heaps, threads;
	struct hash_index stack_index, kind_index;
	struct arena frames;
	struct record_stack *stacks;
	struct record_kind *kinds;
	struct kind_counter *counters; /* indexed by kind */
	size_t stack_cap, kind_cap, counter_cap, frame_count;
	uint32_t cache[CACHE_KINDS]; /* numbers of kinds plus one, indexed by a cheap hash */

	struct event_columns columns;
	uint64_t event_first; /* number of the first event in columns */
	bool has_addresses;
	uint64_t now_ms; /* time of the next event */
	uint32_t now_thread;

	struct pending_mark *marks;
	size_t mark_count, mark_cap, all_mark_count;
	size_t text_bytes; /* total bytes of the strings of all modules and marks */
	struct buf labels;
	struct buf loads; /* module loads that have not been written yet, encoded as in the chunk */
	uint64_t loads_ms, load_ms; /* time of the first pending load; time of the last load */
	size_t load_count, all_load_count, remark_count, name_count;
	uint64_t live_bytes, lost_count;
	uint64_t peak_bytes, peak_position, peak_ms;
	uint64_t checkpoint_position;
};

bool recorder_is_broken(const struct recorder *recorder);
void recorder_write_bytes(struct recorder *recorder, const void *bytes, size_t len);

/* Empties recorder->payload, and returns it. */
struct buf *recorder_begin_payload(struct recorder *recorder);

/* Adds a string to a payload: its length, then its bytes. Truncates a string that is too long. */
void recorder_write_text(struct buf *to, const char *text);

/* Compresses recorder->payload and writes it as a chunk. `position` is used only for events and
 * check-points. */
void recorder_write_chunk(
	struct recorder *recorder, enum chunk_type type, uint64_t time_ms, uint64_t position);

/* Records that a limit was reached. This is an error, and ends the recording. */
void recorder_set_limit(struct recorder *recorder, size_t count, const char *what);

/* Counts the bytes of the strings of a module or mark. Returns false if the limit is exceeded. */
bool recorder_add_text(struct recorder *recorder, size_t bytes);

/* Writes the definitions that were added since the last call: one chunk for each list that has new
 * ones. */
void recorder_write_lists(struct recorder *recorder);

#endif
