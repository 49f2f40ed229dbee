/*
 * Recordings: every allocation of a process, in order of time. man/hrec.5 specifies the file.
 *
 * An allocation is identified by its kind (stack, size, heap, type of memory) and its number.
 * Allocations of each kind are numbered from 0. A free contains kind and number, so a state
 * consists of two counters per kind, no matter how many blocks exist. A freed block was allocated
 * within a window if its number is at least the kind's count at the start of the window.
 *
 * A position is the number of events before it. Times are whole milliseconds since the start of the
 * recording and never decrease. A moment given in ms comes after all events of that ms. A realloc
 * is recorded as a free and an allocation. If part of a range of virtual memory is freed, the
 * recording frees the whole range and allocates the rest.
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
#define RECORD_FRAMES_MAX 1024 /* maximum number of frames per stack */
#define RECORD_TEXT_MAX 4096 /* maximum bytes of a label or other string */

enum record_memory {
	RECORD_HEAP,
	RECORD_COMMITTED,
	RECORD_RESERVED,
	RECORD_MAPPED,
	RECORD_STACK, /* committed memory of a thread's stack */
	RECORD_MEMORIES,
};

/* A return address of a stack. */
struct record_frame {
	uint64_t offset; /* offset in the module; with RECORD_NO_MODULE, the address */
	uint32_t module; /* index into modules */
};

struct record_stack {
	const struct record_frame *frames; /* frames, innermost first */
	uint32_t frame_count;
};

struct record_kind {
	uint64_t bytes; /* size of one allocation */
	uint32_t stack; /* index into stacks; RECORD_NO_STACK: unknown */
	uint32_t heap; /* index into heaps; RECORD_NO_HEAP: unknown, or memory is not RECORD_HEAP */
	enum record_memory memory;
};

enum record_event_type { RECORD_ALLOC, RECORD_FREE };

struct record_event {
	uint64_t number; /* number of the allocation within its kind */
	uint64_t time_ms;
	uint64_t addr; /* address of an allocation; 0 unless has_addresses is set */
	uint32_t kind; /* index into kinds */
	uint32_t thread; /* index into threads */
	enum record_event_type type;
	/* Stack of the call that freed the allocation, as an index into stacks. RECORD_NO_STACK:
	 * unknown, or the event is not a free. */
	uint32_t freed_by;
};

struct record_mark {
	uint64_t time_ms, position;
	const char *label;
};

/* A load or unload of a module. A module was loaded before the recording if it has no such event,
 * or if its first event is an unload. */
struct record_load {
	uint64_t time_ms;
	uint32_t module; /* index into modules */
	bool is_loaded;
};

/* Facts about a recording. Strings may contain any byte except NUL: sanitize them before
 * display. */
struct record_facts {
	/* The next members are set by the caller of recorder_open(). 0 or NULL: unknown. */
	uint32_t pid, parent_pid;
	unsigned bits; /* 32 or 64 */
	const char *image, *os;
	/* Start of the process, and time 0 of the recording, both in ms since 1970-01-01 UTC. */
	int64_t start_ms, time_ms;
	/* sampling: one allocation is recorded per this many bytes; 0: no sampling */
	uint64_t sample_bytes;
	bool is_attached; /* the tracer was attached to a running program */
	bool has_addresses; /* allocations have addresses */
	/* source of the events if they do not come from hsnap's tracer: "etw" */
	const char *source;
	/* Set if the file will be read soon and then removed, so that its size does not matter.
	 * Readers do not set this member. */
	bool is_temporary;

	/* Readers set all members below. */
	/* the file is unfinished or damaged; only its first cut_bytes bytes are valid */
	bool is_cut;
	uint64_t file_bytes, cut_bytes;
	uint64_t length_ms, event_count;
	/* Allocations before this position are older than the recording. */
	uint64_t start_position;
	uint64_t lost_count; /* number of events that happened but were not recorded */
	/* The moment of highest memory use. RECORD_RESERVED does not count as use. */
	struct {
		uint64_t position, time_ms, bytes;
	} peak;
	const struct module *modules; /* in the order in which they were loaded; not sorted */
	const struct record_stack *stacks;
	const uint64_t *heaps; /* heap handles */
	const uint32_t *threads; /* thread ids; index 0 means no thread and has id 0 */
	const char *const *thread_names; /* indexed by thread; the last name of each, or NULL */
	const struct record_kind *kinds;
	const struct record_mark *marks; /* ordered by position */
	const struct record_load *loads; /* ordered by time */
	const char *const *remarks; /* facts that readers must know, one sentence each */
	size_t module_count, stack_count, heap_count, thread_count, kind_count, mark_count,
		load_count, remark_count;
};

/*
 * Writing a recording, on one thread. Equal items get the same number, which never changes. After
 * the first write error nothing more is written. recorder_flush() and recorder_end() return that
 * error, and the file is valid up to its last chunk. Exceeding a limit of man/hrec.5 counts as a
 * write error (-ERR_LIMIT).
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
/* Adds a stack. Frames after the first RECORD_FRAMES_MAX are dropped. */
uint32_t recorder_stack(
	struct recorder *recorder, const struct record_frame *frames, unsigned frame_count);
uint32_t recorder_heap(struct recorder *recorder, uint64_t handle);
uint32_t recorder_thread(struct recorder *recorder, uint32_t tid); /* tid 0 has number 0 */
/* Gets the id of a thread. Returns false if fewer threads were added. */
bool recorder_get_thread(const struct recorder *recorder, uint32_t thread, uint32_t *tid);
uint32_t recorder_kind(struct recorder *recorder, const struct record_kind *kind);

/* Sets the time of the following events. A time before the current one is ignored. */
void recorder_time(struct recorder *recorder, uint64_t time_ms);
/* Sets the thread of the following events. Before the first call, the thread is 0. */
void recorder_thread_is(struct recorder *recorder, uint32_t thread);

/* Records an allocation and returns its number. `addr` is recorded only if has_addresses is set in
 * the facts. */
uint64_t recorder_alloc(struct recorder *recorder, uint32_t kind, uint64_t addr);
/* Records a free. `number` must come from recorder_alloc() with this kind, and must not have been
 * freed yet. */
void recorder_free(struct recorder *recorder, uint32_t kind, uint64_t number);
/* Like recorder_free(), but also records the stack of the call that freed the allocation, which may
 * be RECORD_NO_STACK. */
void recorder_free_by(struct recorder *recorder, uint32_t kind, uint64_t number, uint32_t stack);

/* Starts the recording: earlier allocations count as older than the recording. Without this call,
 * the recording starts with its first event. */
void recorder_start(struct recorder *recorder);
/* Adds a mark for the current moment. A label longer than RECORD_TEXT_MAX bytes is truncated; an
 * empty label is ignored. */
void recorder_mark(struct recorder *recorder, const char *label);
/* Adds to the number of events that happened but were not recorded. */
void recorder_lost(struct recorder *recorder, uint64_t events);

/* Records the name of a thread. Ignores names after the first 65,536, empty ones, and thread 0. */
void recorder_thread_name(struct recorder *recorder, uint32_t thread, const char *name);

/* Adds a remark: one sentence that readers must know, truncated to RECORD_TEXT_MAX bytes. */
void recorder_remark(struct recorder *recorder, const char *text);

/* Return the size of the file in bytes, and the number of events, including those not yet
 * written. */
uint64_t recorder_bytes(const struct recorder *recorder);
uint64_t recorder_events(const struct recorder *recorder);

/* Writes pending data. Call this once a second; full chunks are also written without it. Returns 0
 * or the first error. */
int recorder_flush(struct recorder *recorder, struct err *err);

/* Finishes and closes the file and frees `recorder`, even after an error. Returns 0 or the first
 * error. */
int recorder_end(struct recorder *recorder, struct err *err);

/*
 * Reading a recording. An open recording does not change, and any number of threads may read it,
 * each with its own cursor. The memory needed depends only on the number of modules, stacks, kinds
 * and marks, plus one chunk. Inconsistent data is reported as -ERR_BAD_RECORDING with its offset in
 * the file.
 */

struct recording;

#define RECORD_HEAD_BYTES 16

/* Returns true if a file that begins with these bytes is a recording of any version. */
bool record_is_head(const void *bytes, size_t len);

/* Opens a recording. Returns 0, -ERR_OPEN, -ERR_READ, -ERR_EMPTY, -ERR_NOT_RECORDING, -ERR_VERSION
 * or -ERR_BAD_RECORDING. A recording is unfinished if its writer was killed or ran out of disk
 * space. That is not an error: see is_cut. */
int recording_open(struct recording **recording, const char *path, struct err *err);
void recording_close(struct recording *recording); /* recording may be NULL */

/* Returns the facts, which are valid until the recording is closed. */
const struct record_facts *recording_facts(const struct recording *recording);

/* Returns the number of real allocations that `count` sampled allocations of a kind represent, or
 * `count` without sampling. The result is rounded up or down. The direction looks random but
 * depends only on the kind. So rounding errors cancel out in sums over many kinds, and equal counts
 * of a kind give equal results. */
uint64_t record_kind_stands_for(const struct record_facts *facts, uint32_t kind, uint64_t count);
/* Returns the number of bytes that one recorded allocation of a kind represents. */
uint64_t record_kind_bytes(const struct record_facts *facts, uint32_t kind);

/* Parses a moment:
 * - "start", "end" or "peak"
 * - a time since time 0 ("1m30s", "500ms")
 * - a percentage of the whole time ("40%", "12.5%")
 * - a time in UTC ("2026-11-20T10:00")
 * - the label of a mark, unless several marks have that label
 * - a distance from a name ("peak-1s")
 * Returns 0; -ERR_MOMENT for any other text, or for a moment outside the recording; or a read
 * error. */
int recording_position(struct recording *recording, const char *moment, uint64_t *position,
	uint64_t *time_ms, struct err *err);

/* Returns the last position at or before `position` where the state is cheap to find. Several
 * threads can read the recording in parts that are split at such positions. */
uint64_t recording_checkpoint(const struct recording *recording, uint64_t position);

/* Counters of all kinds at a position. */
struct record_state {
	uint64_t position, time_ms; /* time_ms is the time of the last event before the position */
	uint64_t *allocated, *live;
	size_t kind_count;
};

/* Fills `*state`; free it with recording_state_release(). `position` must not exceed event_count.
 * Returns 0, -ERR_BAD_RECORDING or -ERR_READ. */
int recording_state(struct recording *recording, uint64_t position, struct record_state *state,
	struct err *err);
void record_state_release(struct record_state *state);

struct record_block {
	uint64_t addr;
	uint32_t kind; /* index into kinds */
};

/* Lists the blocks that are live at a position, in order of allocation. Reads all events before the
 * position. The recording must have addresses. The caller frees *blocks. Returns the same values as
 * recording_state(). */
int recording_blocks(struct recording *recording, uint64_t position, struct record_block **blocks,
	size_t *count, struct err *err);

/* A cursor reads the events from one position to another. */
struct record_cursor;
int record_cursor_open(struct record_cursor **cursor, struct recording *recording, uint64_t from,
	uint64_t to, struct err *err);
void record_cursor_close(struct record_cursor *cursor); /* cursor may be NULL */

/* Gets the next event. Returns 1, 0 at the end, -ERR_BAD_RECORDING or -ERR_READ. A cursor that
 * reaches a check-point verifies the check-point's counters. So several cursors that each begin at
 * a check-point give consistent results. */
int record_next(struct record_cursor *cursor, struct record_event *event, struct err *err);

/* Like record_next(), but gets several events at once: at least one if it returns 1. The events are
 * valid until the next call. */
int record_next_events(struct record_cursor *cursor, const struct record_event **events,
	size_t *count, struct err *err);

#endif
