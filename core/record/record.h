/*
 * Recordings: every allocation of a process, in order of time. man/hrec.5 specifies the file.
 *
 * An allocation is identified by its kind (stack, size, heap, sort of memory) and by its number
 * among all allocations of that kind, from 0 on. A free contains both. So a state is two counters
 * for each kind, for any number of blocks. The number of a freed block also shows if it was
 * allocated in a window: it is then at least the kind's count at the start of the window.
 *
 * A position is the number of events before it. Times are whole milliseconds since the start of the
 * recording and never decrease; a moment in ms is after all events of that ms. A realloc is a free
 * and an allocation. If part of a range of virtual memory is freed, the whole range is freed and
 * the rest is allocated.
 */
#ifndef CORE_RECORD_RECORD_H
#define CORE_RECORD_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/dump/model.h"

#define RECORD_FORMAT 1
#define RECORD_NO_MODULE UINT32_MAX
#define RECORD_NO_STACK UINT32_MAX
#define RECORD_NO_HEAP UINT32_MAX
#define RECORD_FRAMES_MAX 1024 /* in one stack */
#define RECORD_TEXT_MAX 4096 /* bytes of a label or another text */

enum record_memory { RECORD_HEAP, RECORD_COMMITTED, RECORD_RESERVED, RECORD_MAPPED };
#define RECORD_MEMORIES 4

/* One return address. */
struct record_frame {
	uint64_t offset; /* in the module; with RECORD_NO_MODULE the address */
	uint32_t module; /* index into modules */
};

struct record_stack {
	const struct record_frame *frames; /* innermost first */
	uint32_t frame_count;
};

struct record_kind {
	uint64_t bytes; /* of one allocation */
	uint32_t stack; /* index into stacks; RECORD_NO_STACK: unknown */
	uint32_t heap; /* index into heaps; RECORD_NO_HEAP: unknown, or not RECORD_HEAP */
	enum record_memory memory;
};

enum record_event_type { RECORD_ALLOC, RECORD_FREE };

struct record_event {
	uint64_t number; /* of the allocation, within its kind */
	uint64_t time_ms;
	uint64_t addr; /* of an allocation, if has_addresses; otherwise 0 */
	uint32_t kind; /* index into kinds */
	uint32_t thread; /* index into threads */
	enum record_event_type type;
	/* For a free: index into stacks of the stack that freed it; RECORD_NO_STACK: unknown. */
	uint32_t freed_by;
};

struct record_mark {
	uint64_t time_ms, position;
	const char *label;
};

/* A module was loaded or unloaded. A module without such an event, or whose first event is an
 * unload, was loaded before the recording. */
struct record_load {
	uint64_t time_ms;
	uint32_t module; /* index into modules */
	bool is_loaded;
};

/* Facts about a recording. Texts may contain anything except a NUL: sanitize them for display. */
struct record_facts {
	/* Set by the caller of recorder_open(); 0 or NULL: unknown. */
	uint32_t pid, parent_pid;
	unsigned bits; /* 32 or 64 */
	const char *image, *os;
	/* Start of the process, and time 0 of the recording: ms since 1970-01-01 UTC. */
	int64_t start_ms, time_ms;
	uint64_t sample_bytes; /* one allocation per this many bytes was recorded; 0: no sampling */
	bool is_attached; /* the tracer was attached to a running program */
	bool has_addresses; /* of allocations */
	const char *source; /* source of the events if not our tracer: "etw" */
	/* It is read soon and removed, so its size does not matter; only for the recorder. */
	bool is_temporary;

	/* The rest is set by readers. */
	bool is_cut; /* not finished, or damaged: its contents are valid up to cut_bytes */
	uint64_t file_bytes, cut_bytes;
	uint64_t length_ms, event_count;
	/* The allocations before this position are older than the recording. */
	uint64_t start_position;
	uint64_t lost_count; /* events that happened and are not recorded */
	/* The moment of highest memory use, without RECORD_RESERVED. */
	struct {
		uint64_t position, time_ms, bytes;
	} peak;
	const struct module *modules; /* in the order of loading; not sorted */
	const struct record_stack *stacks;
	const uint64_t *heaps; /* handles */
	const uint32_t *threads; /* ids; number 0 means no thread and has id 0 */
	const struct record_kind *kinds;
	const struct record_mark *marks; /* ordered by position */
	const struct record_load *loads; /* ordered by time */
	const char *const *remarks; /* what readers must know about it, one sentence each */
	size_t module_count, stack_count, heap_count, thread_count, kind_count, mark_count,
		load_count, remark_count;
};

/*
 * Writing, on one thread. Equal items get the same number, which never changes. The first write
 * error is kept and returned by recorder_flush() and recorder_end(); nothing is written after it,
 * and the file is valid up to its last chunk. Exceeding a limit of man/hrec.5 is such an error,
 * -ERR_LIMIT.
 */

struct recorder;

/* Creates the file, replacing an existing one. Returns 0, -ERR_KEPT (see out_check()), -ERR_CREATE
 * or -ERR_WRITE. */
int recorder_open(struct recorder **recorder, const char *path, const struct record_facts *facts,
	struct err *err);

/* Adds a module: copies its base, size_bytes, path and identity. */
uint32_t recorder_module(struct recorder *recorder, const struct module *module);
/* Records that a module was loaded or unloaded. */
void recorder_module_is(struct recorder *recorder, uint32_t module, bool is_loaded);
/* Adds a stack; frames after the first RECORD_FRAMES_MAX are dropped. */
uint32_t recorder_stack(
	struct recorder *recorder, const struct record_frame *frames, unsigned frame_count);
uint32_t recorder_heap(struct recorder *recorder, uint64_t handle);
uint32_t recorder_thread(struct recorder *recorder, uint32_t tid); /* tid 0 has number 0 */
uint32_t recorder_kind(struct recorder *recorder, const struct record_kind *kind);

/* Sets the time of the following events. An earlier time than before has no effect. */
void recorder_time(struct recorder *recorder, uint64_t time_ms);
/* Sets the thread of the following events; 0 before the first call. */
void recorder_thread_is(struct recorder *recorder, uint32_t thread);

/* Returns the number of the allocation. addr is recorded only if the facts have has_addresses. */
uint64_t recorder_alloc(struct recorder *recorder, uint32_t kind, uint64_t addr);
/* number must be from recorder_alloc() with this kind, and not freed yet. */
void recorder_free(struct recorder *recorder, uint32_t kind, uint64_t number);
/* As recorder_free(), with the stack that freed it, or RECORD_NO_STACK. */
void recorder_free_by(struct recorder *recorder, uint32_t kind, uint64_t number, uint32_t stack);

/* Starts the recording: the allocations so far are older than it. Without this call it starts with
 * its first event. */
void recorder_start(struct recorder *recorder);
/* Names this moment. A label is truncated to RECORD_TEXT_MAX bytes; an empty one is ignored. */
void recorder_mark(struct recorder *recorder, const char *label);
/* Adds to the number of events that happened and are not recorded. */
void recorder_lost(struct recorder *recorder, uint64_t events);

/* Adds a sentence that readers must know, truncated to RECORD_TEXT_MAX bytes. */
void recorder_remark(struct recorder *recorder, const char *text);

/* Return the bytes of the file so far, and the events, including those not yet written. */
uint64_t recorder_bytes(const struct recorder *recorder);
uint64_t recorder_events(const struct recorder *recorder);

/* Writes pending data; call it once a second. Full chunks are written without it. Returns 0 or the
 * first error. */
int recorder_flush(struct recorder *recorder, struct err *err);

/* Finishes and closes the file and frees recorder, even after an error. Returns 0 or the first
 * error. */
int recorder_end(struct recorder *recorder, struct err *err);

/*
 * Reading. An open recording does not change, and any number of threads may read it, each with its
 * own cursor. Memory is bounded by modules, stacks, kinds, marks and one chunk. Inconsistent data
 * is -ERR_BAD_RECORDING, with its place in the file.
 */

struct recording;

#define RECORD_HEAD_BYTES 16

/* Returns true if a file that begins with these bytes is a recording of any version. */
bool record_is_head(const void *bytes, size_t len);

/* Returns 0, -ERR_OPEN, -ERR_READ, -ERR_EMPTY, -ERR_NOT_RECORDING, -ERR_VERSION or
 * -ERR_BAD_RECORDING. A recording that was not finished, because its writer was killed or the disk
 * was full, is not an error: see is_cut. */
int recording_open(struct recording **recording, const char *path, struct err *err);
void recording_close(struct recording *recording); /* recording may be NULL */

/* Returns facts that are valid until the recording is closed. */
const struct record_facts *recording_facts(const struct recording *recording);

/* Returns the number of allocations that count sampled allocations of a kind stand for; without
 * sampling, count. It is rounded up or down depending on the kind's number, as if at random. So
 * sums over many kinds are correct, and a constant count gives a constant result. */
uint64_t record_kind_stands_for(const struct record_facts *facts, uint32_t kind, uint64_t count);
/* Returns the number of bytes that one allocation of a kind stands for. */
uint64_t record_kind_bytes(const struct record_facts *facts, uint32_t kind);

/* Parses a moment: "start", "end", "peak"; a time since time 0 ("1m30s", "500ms"); a percentage of
 * the whole time ("40%", "12.5%"); a time in UTC ("2026-11-20T10:00"); otherwise a mark's label, of
 * which the first is used; or a distance from a name ("peak-1s"). Returns 0; -ERR_MOMENT for any
 * other text or a moment outside the recording; or an error of reading. */
int recording_position(struct recording *recording, const char *moment, uint64_t *position,
	uint64_t *time_ms, struct err *err);

/* Returns the last position at or before position where a state is cheap to find. A recording can
 * be split there for several threads. */
uint64_t recording_checkpoint(const struct recording *recording, uint64_t position);

/* The counters of all kinds at a position. */
struct record_state {
	uint64_t position, time_ms; /* time_ms: of the last event before it */
	uint64_t *allocated, *live;
	size_t kind_count;
};

/* Fills *state, which record_state_release() frees. position is at most event_count. Returns 0,
 * -ERR_BAD_RECORDING or -ERR_READ. */
int recording_state(struct recording *recording, uint64_t position, struct record_state *state,
	struct err *err);
void record_state_release(struct record_state *state);

struct record_block {
	uint64_t addr;
	uint32_t kind; /* index into kinds */
};

/* Lists the blocks that are live at a position, in the order of allocation, and reads all events
 * before it. The recording must have addresses. The caller frees *blocks. Returns as
 * recording_state(). */
int recording_blocks(struct recording *recording, uint64_t position, struct record_block **blocks,
	size_t *count, struct err *err);

/* Reads the events from one position to another. */
struct record_cursor;
int record_cursor_open(struct record_cursor **cursor, struct recording *recording, uint64_t from,
	uint64_t to, struct err *err);
void record_cursor_close(struct record_cursor *cursor); /* cursor may be NULL */

/* Returns 1 and the next event, 0 at the end, -ERR_BAD_RECORDING or -ERR_READ. Reading up to a
 * check-point verifies it. So parts that several cursors read, each from a check-point on, are
 * consistent. */
int record_next(struct record_cursor *cursor, struct record_event *event, struct err *err);

/* Reads many events: returns 1 and at least one event, valid until the next call. Otherwise as
 * record_next(). */
int record_next_events(struct record_cursor *cursor, const struct record_event **events,
	size_t *count, struct err *err);

#endif
