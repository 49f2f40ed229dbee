/*
 * Memory usage in a window of a recording: usage over time, and sizes of allocations.
 *
 * The sizes of all blocks that are live at any moment of the window must add up to less than 2^63
 * bytes. sums_read_recording() checks this for FATE_ALL. */
#ifndef DIFF_READ_READ_USE_H
#define DIFF_READ_READ_USE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/record/record.h"

/* Returns "heap", "committed", ... */
const char *use_memory_name(enum record_memory memory);

struct use {
	uint64_t bytes, count;
};

/* Selection of a recording's events. */
struct use_window {
	struct recording *recording;
	uint64_t from, to; /* positions */
	uint64_t from_ms, to_ms;
	const bool *is_wanted; /* indexed by kind */
	/* indexed by memory: true if this type of memory counts as usage, which reserved address
	 * space usually does not */
	bool is_counted[RECORD_MEMORIES];
};

/* A span of the window. It starts at the end of the previous span. */
struct use_span {
	uint64_t end_ms; /* end of the span; includes all events of that millisecond */
	struct use end[RECORD_MEMORIES];
	/* `highest` is the usage at the moment in the span when the sum of counted memory was
	 * highest. The next two fields are this sum and the time of that moment. */
	struct use highest[RECORD_MEMORIES];
	uint64_t highest_bytes, highest_ms;
	struct use allocated, freed; /* allocations and frees of counted memory in the span */
};

struct use_over_time {
	/* the first span has no length: it is the moment at the start of the window */
	struct use_span *spans;
	size_t span_count; /* at least 2 */
	size_t peak; /* index of the first span with the highest usage */
	/* indexed by memory: true if this type of memory was in use at some moment */
	bool is_there[RECORD_MEMORIES];
	/* maximum of the reserved address space, or 0 if that is counted as usage */
	uint64_t reserved_bytes;
	struct use_window window;
};

/* Computes usage over time in one pass over the events. The window is divided into at most
 * `span_max` + 2 spans, which begin at multiples of a round length. Returns 0 or a read error. The
 * caller must release `over_time` even after an error. */
int use_read_over_time(struct use_over_time *over_time, const struct use_window *window,
	size_t span_max, struct err *err);
void use_over_time_release(struct use_over_time *over_time);

/* Returns the sum of the counted memory in `state`. */
struct use use_sum(const struct use_window *window, const struct use state[RECORD_MEMORIES]);

/* Returns the shortest round step (1, 2 or 5 ms, seconds, minutes, ...) that divides a length into
 * at most `count_max` parts. */
uint64_t use_step_ms(uint64_t length_ms, uint64_t count_max);

/* Divides numbers into classes, for charts and medians, and returns the class of a number. Each
 * number below 2^bits has its own class. Above that, each power of two has 2^bits classes. */
size_t use_class(uint64_t value, unsigned bits);
/* Returns the lowest number of a class. */
uint64_t use_class_first(size_t number, unsigned bits);

/* Classes of sizes. */
#define USE_CLASS_BITS 2
#define USE_CLASSES 252

struct use_sizes {
	/* Both arrays are indexed by type of memory and class of size. */
	struct use allocated[RECORD_MEMORIES][USE_CLASSES]; /* in the window */
	struct use live[RECORD_MEMORIES][USE_CLASSES]; /* at the end of the window */
};

int use_read_sizes(struct use_sizes *sizes, const struct use_window *window, struct err *err);

/* Returns the lowest size of a class, or 0 for the class after the last. */
uint64_t use_class_bytes(size_t number);

#define USE_PARTS_MAX 8

/* Divides the events in [from, to) into parts, and calls read() for each part on several threads at
 * once. Parts begin at positions for which the recording contains a complete state. They are
 * numbered in order, and the numbers are below USE_PARTS_MAX. Returns 0 or the first error. */
int use_read_parts(struct recording *recording, uint64_t from, uint64_t to,
	int (*read)(void *ctx, unsigned number, uint64_t from, uint64_t to, struct err *err),
	void *ctx, struct err *err);

#endif
