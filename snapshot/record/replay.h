/*
 * Replay of the tracer's rings into a recording. Events are sorted into one order, each free is
 * matched with its allocation, and changes of virtual memory become allocations and frees.
 *
 * The target may write anything into the rings. So everything is read once and checked. A ring with
 * invalid contents is abandoned. Invalid contents use no more memory than valid events. They use no
 * more time either, with one exception: a change of virtual memory takes time for each range that
 * it covers.
 */
#ifndef SNAPSHOT_RECORD_REPLAY_H
#define SNAPSHOT_RECORD_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/record/record.h"
#include "snapshot/target/target.h"
#include "snapshot/tracer/rings.h"

struct replay;

/* Converts a stack id of the tracer, which is not 0, to the number of the stack in the recording.
 * Returns RECORD_NO_STACK if the stack cannot be read. */
typedef uint32_t (*replay_stack_fn)(void *ctx, uint32_t id);

struct replay *replay_new(struct recorder *recorder, replay_stack_fn stack, void *ctx);
void replay_free(struct replay *replay); /* accepts NULL */

/* Adds a block that existed before the first event. */
void replay_add_block(
	struct replay *replay, uint64_t addr, uint64_t heap, uint64_t bytes, uint32_t stack);

/* Applies an event of a stream to the blocks and ranges, as described in rings.h. Returns false if
 * the event is invalid. */
bool replay_event(struct replay *replay, const struct ring_event *event);

/*
 * Frees the blocks that are in no heap. If `may_free_unseen` is false, frees them only if they are
 * few: about one in a hundred live blocks. Returns the number of blocks that are in no heap. Sets
 * `*is_freed` to true if they were freed.
 */
size_t replay_filter_blocks(struct replay *replay, bool (*exists)(const void *ctx, uint64_t addr),
	const void *ctx, bool may_free_unseen, bool *is_freed);

/* Consumer of a section of rings that hsnap has mapped. The section's own header is not trusted and
 * not used. */
struct drain;

/* Creates a consumer. `orders` contains the order of the next event in each stream; NULL: all 0. */
struct drain *drain_new(struct replay *replay, struct recorder *recorder, struct ring_area *area,
	uint32_t ring_count, uint32_t events_log2, const uint32_t orders[RING_STREAMS]);
void drain_free(struct drain *drain); /* accepts NULL */

/*
 * Removes the events that are present and may pass. Returns the number of removed events. `now` is
 * the current ring_time(), and `now_ms` is the current length of the recording. Times between two
 * calls are interpolated. The first call begins the recording, and its `now_ms` is 0.
 */
size_t drain_events(struct drain *drain, uint64_t now, uint64_t now_ms);

/* Limits the events that may pass: in each stream, only events before the given order pass. NULL
 * removes the limit. */
void drain_limit(struct drain *drain, const uint32_t orders[RING_STREAMS]);

bool drain_is_at_limit(const struct drain *drain);

/* Lets the remaining events pass, even if they wait for earlier events. Must be called when nothing
 * writes to the rings any more. */
void drain_end(struct drain *drain);

/* Returns the number of lost events: events that were dropped, or were in rings with invalid
 * contents. */
uint64_t drain_lost(const struct drain *drain);

/* Returns the number of rings that are no longer read because they have invalid contents. */
unsigned drain_damaged(const struct drain *drain);

/*
 * Reader of the tracer's stacks in the running target. A stack's record is complete before the
 * tracer uses its id. A frame belongs to the module that was loaded when its stack was recorded,
 * even if another module is at its address now. The reader reports loads and unloads of modules to
 * the recorder when it notices them.
 */
struct stack_reader;

/* Creates a reader. The caller owns target and recorder. Modules that are loaded now count as
 * loaded from the beginning. */
struct stack_reader *stack_reader_new(
	struct recorder *recorder, struct target *target, uint64_t area_addr);
void stack_reader_free(struct stack_reader *reader); /* accepts NULL */

/* Finds modules that were loaded or unloaded, even if no stack passes through them. Call this
 * function a few times per second. `now_ms` is the time in the recording up to which all events
 * have been replayed. */
void stack_reader_look(struct stack_reader *reader, uint64_t now_ms);

/* Writes a remark about modules that were unwound using only EBP. Covers only modules that are new
 * since the last call. */
void stack_reader_remark(struct stack_reader *reader);

/* Prepares for drain_events(). Must be called before each call of drain_events(). After that, the
 * stacks of all events in the rings can be read. */
void stack_reader_begin(struct stack_reader *reader);

/* Implements replay_stack_fn. `ctx` is the reader. */
uint32_t stack_reader_number(void *ctx, uint32_t id);

/*
 * Frees without events. ntdll of Windows 7 and 8 frees some blocks without calling the hooked
 * functions, and a program may do so on any system. So a recording compares the blocks that are
 * live according to its events with the heaps themselves (unseen.c).
 */

/* The blocks in the heaps at one moment. */
struct heap_look {
	uint64_t *addrs; /* addresses of all blocks, in ascending order; owned */
	size_t count;
	uint32_t orders[RING_STREAMS]; /* for each stream: order of the next event at that moment */
};

/*
 * Holds the target, or clones it, and walks its heaps. The target runs again afterwards. Returns
 * false, with an empty *look, if the walk may have missed a block: a thread was always in a heap, a
 * heap is damaged, or a heap's layout is not known.
 */
bool heap_look_capture(struct heap_look *look, struct target *target, uint64_t area_addr);
void heap_look_release(struct heap_look *look);

/* Returns true if a block is at `addr`. `look` points to a struct heap_look. */
bool heap_look_has(const void *look, uint64_t addr);

/* Names of the target's threads (thread_names_windows.c). thread_names_add() opens the threads that
 * the recorder got since the last call, so that they are found even if they end soon.
 * thread_names_look() records new names. */
struct thread_names;
struct thread_names *thread_names_new(struct recorder *recorder, uint32_t pid);
void thread_names_free(struct thread_names *names); /* accepts NULL */
void thread_names_add(struct thread_names *names);
void thread_names_look(struct thread_names *names);

#endif
