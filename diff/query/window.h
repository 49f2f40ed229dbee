/*
 * The fates of allocations in a window of a recording, in two steps: one pass over the events
 * (window.c), and the sums of rows and groups (window_sums.c).
 */
#ifndef DIFF_QUERY_WINDOW_H
#define DIFF_QUERY_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/hash.h"
#include "core/record/record.h"
#include "diff/query/view.h"
#include "diff/read/dump_sums.h"

#define LIFE_CLASS_BITS 5 /* classes of lifetimes in ms: exact below 64, within 1/64 above */

struct life_maker;
struct time_page;

/* A kind that belongs to a selected row. */
struct window_kind {
	uint64_t bytes;
	/* bytes per recorded block; in a sample, a recorded block represents several blocks, whose
	 * bytes are added up */
	uint64_t use_bytes;
	uint64_t stands_for; /* number of blocks that one recorded block represents */
	uint64_t live; /* number of live blocks when the window began */
	/* number of the first allocation in the window, and of the first that does not count */
	uint64_t first_number, end_number;
	uint64_t allocated, freed_inside, freed_before;
	struct time_span allocated_ms, freed_ms;
	uint64_t shortest_ms, longest_ms;
	double lives_ms;
	uint64_t threads_seen; /* bit mask of the threads below 64 that allocated blocks */
	const uint32_t *windows; /* indexes in `view->window` of the sums that include the kind */
	size_t window_count;
	/* pages with the times of the allocations in the window, in order of their numbers; an
	 * element is NULL if all allocations of the page were freed */
	struct time_page **pages;
	size_t page_count, page_cap;
	uint32_t number; /* number of the kind in the recording */
};

struct window_use {
	uint64_t bytes, peak_bytes, peak_ms;
	/* indexed by class of lifetime: number of blocks that were allocated and freed in the
	 * window; NULL if all numbers are 0 */
	uint64_t *lives;
};

struct window_run {
	struct view *view;
	const struct dump_sums *sums;
	const struct record_facts *facts;
	size_t window_count;
	/* Each row has a list of the sums (elements of `view->window`) that include it. `windows`
	 * contains all lists, one after another. `windows_at`, indexed by row, is the start of the
	 * row's list. Sum 0 includes all rows. */
	uint32_t *windows_at, *windows;
	uint32_t *numbers; /* indexed by kind: index in `kinds`, or NO_KIND */
	struct window_kind *kinds;
	size_t kind_count, kind_cap;
	struct window_use *uses; /* indexed like view->window */
	/* number of classes needed for lifetimes up to the length of the window */
	size_t life_classes;
	/* each key is the index of a kind and the number of a thread that allocated blocks of this
	 * kind */
	struct u64map threads;
	/* number of frees by kind and stack, and, if kinds are divided by thread, by kind and
	 * thread */
	struct free_tally {
		struct u64map
			keys; /* maps the index of a kind and the stack or thread to an index */
		uint64_t *counts;
		size_t cap;
	} by_stack, by_thread;
	struct life_maker *lives; /* NULL: not requested */
};

/* Sets the error for sums that are too large. Returns it. */
int window_too_large(const struct window_run *run, struct err *err);

/* Extends a span to a time. */
static inline void span_extend(struct time_span *span, uint64_t time_ms)
{
	if (span->first_ms > time_ms)
		span->first_ms = time_ms;
	if (span->last_ms < time_ms)
		span->last_ms = time_ms;
}

/* Stores the sums of all kinds in the view, after the last event. */
int window_add_up(struct window_run *run, struct err *err);

#endif
