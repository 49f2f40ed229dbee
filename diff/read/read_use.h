/*
 * What a recording's memory did in a window of it: use over time, and sizes of allocations.
 *
 * All bytes of what was there at any moment of the window add up to less than 2^63: sums_read_recording() says so of
 * FATE_ALL.
 */
#ifndef DIFF_READ_READ_USE_H
#define DIFF_READ_READ_USE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/record/record.h"

/* "heap", "committed", ... */
const char *use_memory_name(enum record_memory memory);

struct use {
	uint64_t bytes, count;
};

/* Which events of a recording are looked at. */
struct use_window {
	struct recording *recording;
	uint64_t from, to; /* positions */
	uint64_t from_ms, to_ms;
	const bool *is_wanted; /* by kind */
	bool is_counted
		[RECORD_MEMORIES]; /* what of it is memory in use, and not address space alone */
};

/* A part of the window, from the end of the one before it up to its own. */
struct use_span {
	uint64_t end_ms; /* with all events of that ms */
	struct use end[RECORD_MEMORIES];
	/* At the moment in it when most was in use, and the sum of what counts then. */
	struct use highest[RECORD_MEMORIES];
	uint64_t highest_bytes, highest_ms;
	struct use allocated, freed; /* in it, of what counts */
};

struct use_over_time {
	struct use_span *spans; /* the first one is the moment at which the window begins */
	size_t span_count; /* at least 2 */
	size_t peak; /* the first span with most in use */
	bool is_there[RECORD_MEMORIES]; /* at any moment */
	uint64_t reserved_bytes; /* the most address space at any moment, where it does not count */
	struct use_window window;
};

/* Goes through the events once. Spans begin at whole multiples of a length that is easy to read, and there are
 * span_max + 2 of them at most. 0 or an error of reading; over_time is released in any case. */
int use_read_over_time(struct use_over_time *over_time, const struct use_window *window,
	size_t span_max, struct err *err);
void use_over_time_release(struct use_over_time *over_time);

/* What counts of a state, together. */
struct use use_sum(const struct use_window *window, const struct use state[RECORD_MEMORIES]);

/* The shortest step of 1, 2 or 5 ms, seconds, minutes, ... that makes no more than count_max of a length. */
uint64_t use_step_ms(uint64_t length_ms, uint64_t count_max);

/* Numbers fall into classes: those below 2^bits by themselves, above that 2^bits to each power of two. */
size_t use_class(uint64_t value, unsigned bits);
/* The lowest number of a class. */
uint64_t use_class_first(size_t number, unsigned bits);

/* Of sizes. */
#define USE_CLASS_BITS 2
#define USE_CLASSES 252

struct use_sizes {
	/* By memory and class. */
	struct use allocated[RECORD_MEMORIES][USE_CLASSES]; /* in the window */
	struct use live[RECORD_MEMORIES][USE_CLASSES]; /* at its end */
};

int use_read_sizes(struct use_sizes *sizes, const struct use_window *window, struct err *err);

/* The lowest size of a class, also of the one behind the last: then 0. */
uint64_t use_class_bytes(size_t number);

#define USE_PARTS_MAX 8

/* Cuts the events from a position to another into parts, where a state costs nothing to find, and calls read for each,
 * several at once: on threads of their own, with numbers below USE_PARTS_MAX, in order of place. 0 or the first error. */
int use_read_parts(struct recording *recording, uint64_t from, uint64_t to,
	int (*read)(void *ctx, unsigned number, uint64_t from, uint64_t to, struct err *err),
	void *ctx, struct err *err);

#endif
