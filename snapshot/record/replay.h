/*
 * The tracer's rings become a recording: events are put into one order, each free finds its allocation, and
 * what becomes of ranges of virtual memory is told as allocations and frees.
 *
 * What stands in the rings is the target's to write. It is read once and checked; what makes no sense ends the
 * ring that it is in, and costs memory no more than an event does. Time, too, but for each range of virtual memory that
 * a change covers.
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

/* The number in the recording of a stack that the tracer knows by this id, which is not 0; RECORD_NO_STACK
 * when it cannot be read. */
typedef uint32_t (*replay_stack_fn)(void *ctx, uint32_t id);

struct replay *replay_new(struct recorder *recorder, replay_stack_fn stack, void *ctx);
void replay_free(struct replay *replay); /* NULL is nothing */

/* A block that was there before the first event. */
void replay_add_block(
	struct replay *replay, uint64_t addr, uint64_t heap, uint64_t bytes, uint32_t stack);

/* What an event of a stream says: blocks and ranges, by the rules of rings.h. False when it makes no sense. */
bool replay_event(struct replay *replay, const struct ring_event *event);

/*
 * Frees the blocks that no heap has. Unless may_free_unseen, they are freed only if they are few: one in a hundred of all.
 * Returns how many there are; *is_freed: they were.
 */
size_t replay_keep_blocks(struct replay *replay, bool (*exists)(const void *ctx, uint64_t addr),
	const void *ctx, bool may_free_unseen, bool *is_freed);

/* A section of rings that hsnap has mapped; what it says of itself is not asked. */
struct drain;

/* orders: of the next event of each stream; NULL: 0. */
struct drain *drain_new(struct replay *replay, struct recorder *recorder, struct ring_area *area,
	uint32_t ring_count, uint32_t events_log2, const uint32_t orders[RING_STREAMS]);
void drain_free(struct drain *drain); /* NULL is nothing */

/*
 * Takes out the events that are there and may pass: how many. now is ring_time() and now_ms how long the recording
 * has lasted, both of this moment; times between two calls are found by these. The first call
 * begins it: now_ms is 0.
 */
size_t drain_events(struct drain *drain, uint64_t now, uint64_t now_ms);

/* Lets only those events pass that come before these orders of their streams; with NULL, all. */
void drain_limit(struct drain *drain, const uint32_t orders[RING_STREAMS]);

/* Returns true if all events before the limit have passed. */
bool drain_is_at_limit(const struct drain *drain);

/* Lets pass what still waits for others, which will not come: nothing is written into the rings any more. */
void drain_end(struct drain *drain);

/* Events that happened and did not come: dropped, or in rings that made no sense. */
uint64_t drain_lost(const struct drain *drain);

/* Rings, among all, that made no sense and are not read any more. */
unsigned drain_damaged(const struct drain *drain);

/*
 * The tracer's stacks, read from the target while it runs: its records are complete before their ids are handed
 * out. A frame is in the module that was there when its stack was made, also when another one is there by now. Which
 * modules come and go is said to the recorder as it is noticed.
 */
struct stack_reader;

/* target and recorder are the caller's. The modules that are there now were there from the beginning. */
struct stack_reader *stack_reader_new(
	struct recorder *recorder, struct target *target, uint64_t area_addr);
void stack_reader_free(struct stack_reader *reader); /* NULL is nothing */

/* Notices modules that came and went though no stack tells; to be called a few times a second. now_ms is how long the
 * recording has lasted: all events up to then were told. */
void stack_reader_look(struct stack_reader *reader, uint64_t now_ms);

/* Writes a remark on the modules that were unwound by EBP alone for the first time since the last call. */
void stack_reader_remark(struct stack_reader *reader);

/* To be called before each drain_events(): the stacks of what is in the rings by then are all there. */
void stack_reader_begin(struct stack_reader *reader);

/* A replay_stack_fn: ctx is the reader. */
uint32_t stack_reader_number(void *ctx, uint32_t id);

/*
 * Frees that no event tells. ntdll of Windows 7 and 8 frees some blocks without passing the tracer's hooks, and a program
 * may do so anywhere. A recording compares what is live by its events with the heaps themselves (unseen.c).
 */

/* One look at the heaps. */
struct heap_look {
	uint64_t *addrs; /* of all blocks, sorted; owned */
	size_t count;
	uint32_t orders[RING_STREAMS]; /* of the next event of each stream at that moment */
};

/*
 * Holds the target, or clones it, and walks its heaps. Returns false if the walk does not have every block for certain: a
 * thread was always in a heap, or a heap is damaged or has no known layout. Then *look is empty. The target runs again.
 */
bool heap_look_take(struct heap_look *look, struct target *target, uint64_t area_addr);
void heap_look_release(struct heap_look *look);

/* Returns true if a block is at addr; look is a struct heap_look. */
bool heap_look_has(const void *look, uint64_t addr);

#endif
