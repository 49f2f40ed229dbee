/*
 * The columns of a chunk of events. Their names are those in man/hrec.5 (EVENTS).
 *
 * recorder.c collects events in struct event_columns and writes the chunk. Readers of a recording
 * parse the chunk into struct record_events, whose columns are still encoded as in the file.
 */
#ifndef CORE_RECORD_EVENT_COLUMNS_H
#define CORE_RECORD_EVENT_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"
#include "core/record/chunk.h"

#define EVENT_COLUMNS_MAX ((size_t)128 << 10) /* number of events */

struct column_values {
	uint64_t *values; /* has room for EVENT_COLUMNS_MAX */
	size_t count;
};

/* Events that have not been written yet. */
struct event_columns {
	struct column_values codes, ages, tick_gaps, ticks, thread_gaps, threads;
	struct column_values free_gaps, free_stacks; /* one item per free with a known stack */
	struct column_values addresses; /* addresses of allocations, as differences */
	unsigned char *frees;
	size_t free_count;
	/* Index of the event at the last tick, and index of the event at the last change of
	 * thread. */
	size_t tick_at, thread_at;
	size_t free_at; /* index of the last free with a known stack; SIZE_MAX: none */
	uint64_t begin_ms, last_ms;
	uint32_t begin_thread, last_thread;
	uint64_t last_addr;
};

void event_columns_init(struct event_columns *columns);
void event_columns_release(struct event_columns *columns);

/* Records a change of time or thread before an event. Also called for the first event of a chunk,
 * to set both. */
void event_columns_change(struct event_columns *columns, uint64_t now_ms, uint32_t now_thread);

/* event_columns_write_counts() writes the numbers at the start of a chunk, which describe its
 * columns. event_columns_write() writes the columns and empties them. */
void event_columns_write_counts(struct buf *to, const struct event_columns *columns);
void event_columns_write(struct buf *to, struct event_columns *columns, bool has_addresses);

/* The functions that add to the columns are called for each event, so they are inline. */

static inline void column_values_add(struct column_values *values, uint64_t value)
{
	values->values[values->count++] = value;
}

static inline void event_columns_add(
	struct event_columns *columns, uint64_t now_ms, uint32_t now_thread, uint64_t code)
{
	if (now_ms != columns->last_ms || now_thread != columns->last_thread ||
		!columns->codes.count)
		event_columns_change(columns, now_ms, now_thread);
	column_values_add(&columns->codes, code);
}

/* Adds the difference from the last address, with the sign in the lowest bit. Most differences are
 * small, so the column is narrow. */
static inline void event_columns_add_address(struct event_columns *columns, uint64_t addr)
{
	uint64_t far = addr - columns->last_addr;

	column_values_add(&columns->addresses, far >> 63 ? ~(far << 1) : far << 1);
	columns->last_addr = addr;
}

/* Adds the number of the allocation that the newest event frees. `last` is the number of the
 * previously freed allocation of that kind. `age` is the number of allocations of that kind after
 * this one. */
static inline void event_columns_add_free(
	struct event_columns *columns, uint64_t number, uint64_t last, uint64_t age)
{
	uint64_t ahead = number - (last + 1), back = last - 1 - number;
	unsigned char *how = &columns->frees[columns->free_count++];

	if (ahead < AGE_BACK - AGE_AHEAD) {
		*how = (unsigned char)(AGE_AHEAD + ahead);
	} else if (back < AGE_NEAR - AGE_BACK) {
		*how = (unsigned char)(AGE_BACK + back);
	} else if (age < AGE_FAR - AGE_NEAR) {
		*how = (unsigned char)(AGE_NEAR + age);
	} else {
		*how = AGE_FAR;
		column_values_add(&columns->ages, age);
	}
}

static inline void event_columns_add_free_stack(struct event_columns *columns, uint32_t stack)
{
	size_t at = columns->codes.count - 1;

	column_values_add(&columns->free_gaps, at - columns->free_at - 1);
	column_values_add(&columns->free_stacks, stack);
	columns->free_at = at;
}

/* A chunk of events, as readers parse it. */
struct record_events {
	uint64_t first, begin_ms, end_ms;
	uint64_t lost_count, peak_bytes, peak_position, peak_ms; /* values at the chunk's end */
	size_t count, free_count;
	uint32_t thread; /* thread of the first event */
	const unsigned char *frees;
	struct column codes, ages, tick_gaps, ticks, thread_gaps, threads;
	struct column free_gaps, free_stacks; /* columns for frees with a known stack */
	struct column addresses; /* empty if the recording has no addresses */
};

/* Parses an event chunk. Returns false if the chunk is invalid. */
bool record_events_parse(struct payload *payload, uint64_t begin_ms, bool has_addresses,
	struct record_events *events);

#endif
