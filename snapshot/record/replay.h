/*
 * Replay of the tracer's rings into a recording: events are put into one order, each free finds its
 * allocation, and changes of virtual memory become allocations and frees.
 *
 * The target may write anything into the rings. Everything is read once and checked. Invalid
 * contents end the ring that they are in. They cost no more memory than an event does, and no more
 * time, except for each range of virtual memory that a change covers.
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

/* Returns the recording's number of the stack with the tracer's id, which is not 0; RECORD_NO_STACK
 * if the stack cannot be read. */
typedef uint32_t (*replay_stack_fn)(void *ctx, uint32_t id);

struct replay *replay_new(struct recorder *recorder, replay_stack_fn stack, void *ctx);
void replay_free(struct replay *replay); /* accepts NULL */

/* Adds a block that existed before the first event. */
void replay_add_block(
	struct replay *replay, uint64_t addr, uint64_t heap, uint64_t bytes, uint32_t stack);

/* Applies an event of a stream to blocks and ranges, by the rules of rings.h. Returns false if the
 * event is invalid. */
bool replay_event(struct replay *replay, const struct ring_event *event);

/*
 * Frees the blocks that are in no heap. Unless may_free_unseen, they are freed only if they are
 * few: one in a hundred of all. Returns their number; *is_freed: they were freed.
 */
size_t replay_keep_blocks(struct replay *replay, bool (*exists)(const void *ctx, uint64_t addr),
	const void *ctx, bool may_free_unseen, bool *is_freed);

/* Consumer of a section of rings that hsnap has mapped; the section's own description of itself is
 * not used. */
struct drain;

/* orders: of the next event of each stream; NULL: all 0. */
struct drain *drain_new(struct replay *replay, struct recorder *recorder, struct ring_area *area,
	uint32_t ring_count, uint32_t events_log2, const uint32_t orders[RING_STREAMS]);
void drain_free(struct drain *drain); /* accepts NULL */

/*
 * Takes out the events that are there and may pass. Returns their number. now is ring_time(), and
 * now_ms the length of the recording, both of this moment; times between two calls are
 * interpolated. The first call begins the recording: its now_ms is 0.
 */
size_t drain_events(struct drain *drain, uint64_t now, uint64_t now_ms);

/* Lets only the events before these orders of their streams pass; with NULL, all events. */
void drain_limit(struct drain *drain, const uint32_t orders[RING_STREAMS]);

bool drain_is_at_limit(const struct drain *drain);

/* Lets the remaining events pass, even if they wait for others. To be called when nothing is
 * written into the rings any more. */
void drain_end(struct drain *drain);

/* Returns the number of events that did not arrive: dropped, or in rings with invalid contents. */
uint64_t drain_lost(const struct drain *drain);

/* Returns the number of rings with invalid contents, which are not read any more. */
unsigned drain_damaged(const struct drain *drain);

/*
 * Reader of the tracer's stacks in the running target. The tracer completes a record before it
 * hands out the id. A frame belongs to the module that was loaded when its stack was made, even if
 * another module is there by now. The reader reports loads and unloads to the recorder when it
 * notices them.
 */
struct stack_reader;

/* Makes a reader. target and recorder are the caller's. Modules that are loaded now count as loaded
 * from the beginning. */
struct stack_reader *stack_reader_new(
	struct recorder *recorder, struct target *target, uint64_t area_addr);
void stack_reader_free(struct stack_reader *reader); /* accepts NULL */

/* Notices loads and unloads of modules that no stack shows. To be called a few times a second.
 * now_ms is the length of the recording, up to which all events have been replayed. */
void stack_reader_look(struct stack_reader *reader, uint64_t now_ms);

/* Writes a remark on the modules that were unwound by EBP alone for the first time since the last
 * call. */
void stack_reader_remark(struct stack_reader *reader);

/* Prepares for drain_events(), and is to be called before each call of it: after that, the stacks
 * of all events in the rings can be read. */
void stack_reader_begin(struct stack_reader *reader);

/* Implements replay_stack_fn; ctx is the reader. */
uint32_t stack_reader_number(void *ctx, uint32_t id);

/*
 * Frees without events. ntdll of Windows 7 and 8 frees some blocks without passing the tracer's
 * hooks, and a program may do so anywhere. A recording compares the blocks that are live by its
 * events with the heaps themselves (unseen.c).
 */

/* Blocks of the heaps at one moment. */
struct heap_look {
	uint64_t *addrs; /* of all blocks, sorted; owned */
	size_t count;
	uint32_t orders[RING_STREAMS]; /* order of each stream's next event at that moment */
};

/*
 * Holds the target, or clones it, and walks its heaps. Returns false if the walk may have missed a
 * block: a thread was always in a heap, or a heap is damaged or has no known layout. Then *look is
 * empty. The target runs again.
 */
bool heap_look_take(struct heap_look *look, struct target *target, uint64_t area_addr);
void heap_look_release(struct heap_look *look);

/* Returns true if a block is at addr; look is a struct heap_look. */
bool heap_look_has(const void *look, uint64_t addr);

#endif
