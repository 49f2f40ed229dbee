/*
 * When the blocks of a window were allocated and freed.
 *
 * The window is divided into spans. For each row, the table counts the blocks that were allocated
 * in one span and freed in another. From these counts follow the fates of the blocks in any window
 * that consists of whole spans. */
#ifndef DIFF_QUERY_LIVES_H
#define DIFF_QUERY_LIVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"
#include "core/record/record.h"

#define LIFE_SPANS_MAX 256
#define LIFE_LABELS_MAX 100 /* with more marks, spans do not end at marks */
#define LIFE_OTHER UINT32_MAX /* stands for all rows that are too small to be listed */

/* End of a span, and memory use there. Edge 0 is the start of the window. Span i ends at edge i. */
struct life_edge {
	uint64_t time_ms;
	/* Number of events before the edge. UINT64_MAX: the edge comes after all events of its
	 * millisecond. */
	uint64_t position;
	const char *label; /* name of the moment: a mark's label, "peak", ...; NULL: only a time */
	uint64_t bytes[RECORD_MEMORIES], blocks[RECORD_MEMORIES];
	/* highest use in the span, and when it was first reached */
	uint64_t highest_bytes, highest_ms;
};

/* Blocks of a row with the same spans of birth and death. `birth` is 0 for blocks that are older
 * than the window. `death` is the number of edges for blocks that outlive the window. */
struct life_entry {
	uint32_t row;
	uint16_t birth, death;
	uint64_t blocks, bytes;
};

struct lives {
	struct life_edge *edges;
	size_t edge_count; /* at least 2 */
	struct life_entry *entries; /* sorted by row, birth and death, without duplicates */
	size_t entry_count;
	struct record_mark *marks; /* marks in the window */
	size_t mark_count;
	struct arena arena; /* storage of labels */
};

struct life_window {
	const struct record_facts *facts;
	size_t row_count;
	uint64_t from_position, from_ms, to_position, to_ms;
};

struct life_kind {
	uint32_t number; /* of the kind in the recording */
	uint32_t row;
	uint64_t live; /* number of live blocks when the window began */
	uint64_t first_number; /* number of the first allocation in the window */
	uint64_t weight; /* bytes of the row that the report shows; small rows are merged first */
};

/* Makes a table in one pass over the events of a window. Kinds are numbered in the order in which
 * they are added, before the first event. */
struct life_maker;
struct life_maker *lives_begin(const struct life_window *window);
void lives_add_kind(struct life_maker *maker, const struct life_kind *kind);

/* Must be called before each event. `position` is the number of events before it. */
void lives_advance(struct life_maker *maker, uint64_t position, uint64_t time_ms);

/* Prefetches the data of a kind, and later of its blocks, before an event. */
void lives_fetch(const struct life_maker *maker, uint32_t kind, bool are_blocks);

void lives_alloc(struct life_maker *maker, uint32_t kind);
/* The block must be live. */
void lives_free(struct life_maker *maker, uint32_t kind, uint64_t number);

/* Returns the table and frees `maker`. */
struct lives *lives_end(struct life_maker *maker);
void lives_cancel(struct life_maker *maker); /* frees `maker`, which may be NULL */

void lives_release(struct lives *lives); /* may be NULL */

/* Steps of the above. lives_add_edges() stores the edges, whose labels belong to the facts.
 * lives_copy_labels() copies the labels, and the marks in the window. */
void lives_add_edges(struct lives *lives, const struct life_window *window);
void lives_copy_labels(struct lives *lives, const struct life_window *window);

#endif
