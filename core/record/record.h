/*
 * Recordings: every allocation of a process in time. man/hrec.5 is the specification of the file.
 *
 * An allocation is known by its kind (stack, size, heap, which sort of memory) and by its number among all of
 * that kind, from 0 on. A free names both. So a state is two counters of each kind, however many blocks there
 * are, and whether a freed block was allocated in a window is told by its number: it is at least what the
 * kind's count was where the window begins.
 *
 * A position is an event number: so many events have happened. Times are whole milliseconds since the
 * beginning of the recording and never go back; a moment in ms is after all events of that ms. A realloc is a
 * free and an allocation. Of a range of virtual memory of which a part goes the whole is freed, and what stays is
 * allocated.
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
#define RECORD_FRAMES_MAX 1024 /* of one stack */
#define RECORD_TEXT_MAX 4096 /* bytes of a label or another text */

enum record_memory { RECORD_HEAP, RECORD_COMMITTED, RECORD_RESERVED, RECORD_MAPPED };
#define RECORD_MEMORIES 4

/* One return address. */
struct record_frame {
	uint64_t offset; /* in the module; of RECORD_NO_MODULE the address */
	uint32_t module; /* index of modules */
};

struct record_stack {
	const struct record_frame *frames; /* innermost first */
	uint32_t frame_count;
};

struct record_kind {
	uint64_t bytes; /* of one allocation */
	uint32_t stack; /* index of stacks, or RECORD_NO_STACK: none is known */
	uint32_t heap; /* index of heaps; RECORD_NO_HEAP: not RECORD_HEAP, or not known */
	enum record_memory memory;
};

enum record_event_type { RECORD_ALLOC, RECORD_FREE };

struct record_event {
	uint64_t number; /* of the allocation, in its kind */
	uint64_t time_ms;
	uint64_t addr; /* of an allocation, of a recording that has_addresses; else 0 */
	uint32_t kind; /* index of kinds */
	uint32_t thread; /* index of threads */
	enum record_event_type type;
	/* Of a free: the stack that did it, index of stacks; RECORD_NO_STACK: not known. */
	uint32_t freed_by;
};

struct record_mark {
	uint64_t time_ms, position;
	const char *label;
};

/* A module came or went. Those of which this is not said, or first that they went, were there from the beginning. */
struct record_load {
	uint64_t time_ms;
	uint32_t module; /* index of modules */
	bool is_loaded;
};

/* What a recording says about itself. Texts may hold anything but a NUL: make them harmless to show them. */
struct record_facts {
	/* The recorder is told these; what is not known is 0 or NULL. */
	uint32_t pid, parent_pid;
	unsigned bits; /* 32 or 64 */
	const char *image, *os;
	int64_t start_ms, time_ms; /* of the process, and of time 0: since 1970-01-01 UTC */
	uint64_t sample_bytes; /* one allocation in so many bytes was recorded; 0: all */
	bool is_attached; /* the process ran before */
	bool has_addresses; /* of allocations */
	const char *source; /* who saw the events, if it was not our tracer: "etw" */
	bool is_temporary; /* it is read at once and removed: its size does not matter. The recorder alone is told */

	/* The rest is for readers alone. */
	bool is_cut; /* it was not ended, or is damaged: what is there is right, up to cut_bytes */
	uint64_t file_bytes, cut_bytes;
	uint64_t length_ms, event_count;
	uint64_t start_position; /* the allocations up to here were there before */
	uint64_t lost_count; /* events that happened and are not in it */
	/* When most memory was in use, of all sorts but RECORD_RESERVED. */
	struct {
		uint64_t position, time_ms, bytes;
	} peak;
	const struct module *modules; /* each as it was loaded; not sorted */
	const struct record_stack *stacks;
	const uint64_t *heaps; /* handles */
	const uint32_t *threads; /* ids; number 0 is no thread: its id is 0 */
	const struct record_kind *kinds;
	const struct record_mark *marks; /* in the order of their positions */
	const struct record_load *loads; /* in the order of their times */
	const char *const *remarks; /* what must be known about it, a sentence each */
	size_t module_count, stack_count, heap_count, thread_count, kind_count, mark_count,
		load_count, remark_count;
};

/*
 * Writing, on one thread. Whatever is equal has one number, and a number that was given stays. The first error of
 * writing is kept and returned by recorder_flush() and recorder_end(); after it nothing more is written, and
 * the file is right up to the end of its last chunk. What is more than a recording holds (man/hrec.5) is such an
 * error, -ERR_LIMIT.
 */

struct recorder;

/* Creates the file, in the place of what is there: 0, -ERR_KEPT (see out_check()), -ERR_CREATE, -ERR_WRITE. */
int recorder_open(struct recorder **recorder, const char *path, const struct record_facts *facts,
	struct err *err);

/* base, size_bytes, path and the identity are kept, as copies. */
uint32_t recorder_module(struct recorder *recorder, const struct module *module);
/* It came, or it went. */
void recorder_module_is(struct recorder *recorder, uint32_t module, bool is_loaded);
/* Frames behind the first RECORD_FRAMES_MAX are left out. */
uint32_t recorder_stack(
	struct recorder *recorder, const struct record_frame *frames, unsigned frame_count);
uint32_t recorder_heap(struct recorder *recorder, uint64_t handle);
uint32_t recorder_thread(struct recorder *recorder, uint32_t tid); /* of tid 0 it is 0 */
uint32_t recorder_kind(struct recorder *recorder, const struct record_kind *kind);

/* Of the events that follow. One that is earlier than what was said before counts as that. */
void recorder_time(struct recorder *recorder, uint64_t time_ms);
/* It is 0 before the first call. */
void recorder_thread_is(struct recorder *recorder, uint32_t thread);

/* Returns the number that the allocation has. addr is kept where the facts ask for it. */
uint64_t recorder_alloc(struct recorder *recorder, uint32_t kind, uint64_t addr);
/* number is one that recorder_alloc() returned for kind and that was not freed since. */
void recorder_free(struct recorder *recorder, uint32_t kind, uint64_t number);
/* The same, by this stack, or RECORD_NO_STACK. */
void recorder_free_by(struct recorder *recorder, uint32_t kind, uint64_t number, uint32_t stack);

/* The recording starts here: the allocations up to now were there before. Without this call it starts with its
 * first event. */
void recorder_start(struct recorder *recorder);
/* Names this moment. Of a long label RECORD_TEXT_MAX bytes are kept; an empty one marks nothing. */
void recorder_mark(struct recorder *recorder, const char *label);
/* So many more events happened and are not in the recording. */
void recorder_lost(struct recorder *recorder, uint64_t events);

/* What whoever reads it must be told: a sentence. Of a long one RECORD_TEXT_MAX bytes are kept. */
void recorder_remark(struct recorder *recorder, const char *text);

/* The bytes of the file so far, and the events, with those that recorder_flush() will write. */
uint64_t recorder_bytes(const struct recorder *recorder);
uint64_t recorder_events(const struct recorder *recorder);

/* Writes what is there; to be called once a second. Chunks that are full are written without it. 0 or
 * the first error. */
int recorder_flush(struct recorder *recorder, struct err *err);

/* Finishes the file, closes it and frees recorder, also after an error: 0 or the first one. */
int recorder_end(struct recorder *recorder, struct err *err);

/*
 * Reading. A recording does not change once it is open, and any number of threads may read it, each with a
 * cursor of its own. Memory is bounded by modules, stacks, kinds, marks and a chunk. What does not fit together is
 * -ERR_BAD_RECORDING with the place in the file.
 */

struct recording;

#define RECORD_HEAD_BYTES 16

/* Whether a file that begins with these bytes is a recording, of whatever version. */
bool record_is_head(const void *bytes, size_t len);

/* 0; -ERR_OPEN, -ERR_READ, -ERR_EMPTY, -ERR_NOT_RECORDING, -ERR_VERSION, -ERR_BAD_RECORDING. One that was not
 * ended, as its writer was killed or its disk was full, is no error: see is_cut. */
int recording_open(struct recording **recording, const char *path, struct err *err);
void recording_close(struct recording *recording); /* NULL is nothing */

/* Valid until it is closed. */
const struct record_facts *recording_facts(const struct recording *recording);

/* How many allocations so many of a kind stand for, where one in facts->sample_bytes was recorded; else so many. It is
 * rounded up or down by the kind's number, as if at random: so sums over many kinds are right, and what does not change
 * from one moment to another stays the same. */
uint64_t record_kind_stands_for(const struct record_facts *facts, uint32_t kind, uint64_t count);
/* And how many bytes one does. */
uint64_t record_kind_bytes(const struct record_facts *facts, uint32_t kind);

/*
 * Reads a moment: "start", "end", "peak"; a span from time 0 on ("1m30s", "500ms"); a share of the whole time
 * ("40%", "12.5%"); a wall time in UTC ("2026-11-20T10:00"); or a mark's label, where it is none of these: of several that
 * have it the first. 0; -ERR_MOMENT when it is none or outside of the recording; or an error of reading.
 */
int recording_position(struct recording *recording, const char *moment, uint64_t *position,
	uint64_t *time_ms, struct err *err);

/* The last position, at or before this one, where a state costs nothing to find: a whole may be cut there into parts
 * for several threads. */
uint64_t recording_checkpoint(const struct recording *recording, uint64_t position);

/* The counters of each kind of facts->kinds at a position. */
struct record_state {
	uint64_t position, time_ms; /* that of the last event before it */
	uint64_t *allocated, *live;
	size_t kind_count;
};

/* Fills *state, which record_state_release() empties: 0 or -ERR_BAD_RECORDING, -ERR_READ. position is at most
 * event_count. */
int recording_state(struct recording *recording, uint64_t position, struct record_state *state,
	struct err *err);
void record_state_release(struct record_state *state);

struct record_block {
	uint64_t addr;
	uint32_t kind; /* index of kinds */
};

/* Fills *blocks, to be freed by the caller, with those that are live at a position, in the order in which they were
 * allocated; of a recording that has_addresses. It reads all events before. The same codes. */
int recording_blocks(struct recording *recording, uint64_t position, struct record_block **blocks,
	size_t *count, struct err *err);

/* Goes through the events from a position to another. */
struct record_cursor;
int record_cursor_open(struct record_cursor **cursor, struct recording *recording, uint64_t from,
	uint64_t to, struct err *err);
void record_cursor_close(struct record_cursor *cursor); /* NULL is nothing */

/* 1 and the next event, 0 behind the last one, or -ERR_BAD_RECORDING, -ERR_READ. Whoever reads up to a check-point
 * learns whether that lies: so parts that are read by several cursors, each from a check-point on, fit together. */
int record_next(struct record_cursor *cursor, struct record_event *event, struct err *err);

/* The same for many at once: 1 and the next ones, valid until the next call, at least one. */
int record_next_events(struct record_cursor *cursor, const struct record_event **events,
	size_t *count, struct err *err);

#endif
