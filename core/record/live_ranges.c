/*
 * Ranges of virtual memory: sorted arrays in nodes of limited size, so that a change moves only the
 * ranges of one node. A change removes the ranges that it touches, splits them, and inserts the
 * pieces.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/record/live.h"

#define NOT_BEGUN UINT32_MAX /* kind of a range before its allocation is recorded */

/* A range: pages that have the same properties and were changed by the same call. */
struct known_range {
	uint64_t start, end;
	uint64_t region; /* start of the reservation that contains the range */
	enum record_memory memory;
	uint32_t stack, reserve_stack;
	uint32_t kind;
	bool is_hidden; /* the range's allocation is never recorded */
	uint64_t number;
};

/* Ranges sorted by address, without overlaps. */
#define NODE_RANGES 128
struct range_node {
	size_t count; /* nonzero, unless this is the only node */
	struct known_range items[NODE_RANGES];
};

struct live_ranges {
	struct recorder *recorder;
	struct range_node **nodes; /* sorted by address; at least one node */
	size_t node_count, node_cap;
	struct known_range *pieces; /* ranges produced by the current change */
	size_t piece_count, piece_cap;
};

static struct range_node *add_node(struct live_ranges *ranges, size_t at)
{
	struct range_node *node = xcalloc(1, sizeof(*node));

	array_grow((void **)&ranges->nodes, &ranges->node_cap, ranges->node_count,
		sizeof(struct range_node *));
	memmove(&ranges->nodes[at + 1], &ranges->nodes[at],
		(ranges->node_count++ - at) * sizeof(struct range_node *));
	return ranges->nodes[at] = node;
}

struct live_ranges *live_ranges_new(struct recorder *recorder)
{
	struct live_ranges *ranges = xcalloc(1, sizeof(*ranges));

	ranges->recorder = recorder;
	add_node(ranges, 0);
	return ranges;
}

void live_ranges_free(struct live_ranges *ranges)
{
	if (!ranges)
		return;
	for (size_t i = 0; i < ranges->node_count; i++)
		free(ranges->nodes[i]);
	free(ranges->nodes);
	free(ranges->pieces);
	free(ranges);
}

static void begin_range(struct live_ranges *ranges, struct known_range *range)
{
	const struct record_kind kind = {.bytes = range->end - range->start,
		.stack = range->stack,
		.heap = RECORD_NO_HEAP,
		.memory = range->memory};

	if (range->is_hidden)
		return;
	range->kind = recorder_kind(ranges->recorder, &kind);
	range->number = recorder_alloc(ranges->recorder, range->kind, range->start);
}

static void add_piece(
	struct live_ranges *ranges, struct known_range piece, uint64_t start, uint64_t end)
{
	if (start >= end)
		return;
	array_grow((void **)&ranges->pieces, &ranges->piece_cap, ranges->piece_count,
		sizeof(*ranges->pieces));
	piece.start = start;
	piece.end = end;
	ranges->pieces[ranges->piece_count++] = piece;
}

/* Applies a change to the part of a range that the change covers. Returns 1 after updating
 * `*range`, -1 if the pages become unknown, or 0 if the change does not affect the range. */
static int change(enum live_change type, const struct known_range *how, struct known_range *range)
{
	switch (type) {
	case LIVE_FILL: return 0;
	case LIVE_TAKE: return -1;
	case LIVE_USE:
		if (range->memory != RECORD_RESERVED)
			return 0;
		range->reserve_stack = range->stack;
		range->stack = how->stack;
		range->memory = how->memory;
		return 1;
	case LIVE_GIVE_UP:
		if (range->memory != how->memory || range->memory == RECORD_RESERVED)
			return 0;
		range->memory = RECORD_RESERVED;
		range->stack = range->reserve_stack;
		return 1;
	}
	return 0;
}

/* Position of a range, or position where a range would be inserted. */
struct range_place {
	size_t node, at;
};

static struct range_node *node_of(const struct live_ranges *ranges, struct range_place place)
{
	return ranges->nodes[place.node];
}

/* Returns the position of the first range that ends after `addr`, or the position after the last
 * range. */
static struct range_place range_above(const struct live_ranges *ranges, uint64_t addr)
{
	struct range_place place = {0};
	size_t high = ranges->node_count - 1;

	while (place.node < high) {
		size_t middle = place.node + (high - place.node) / 2;
		const struct range_node *node = ranges->nodes[middle];

		if (node->items[node->count - 1].end <= addr)
			place.node = middle + 1;
		else
			high = middle;
	}
	high = node_of(ranges, place)->count;
	while (place.at < high) {
		size_t middle = place.at + (high - place.at) / 2;

		if (node_of(ranges, place)->items[middle].end <= addr)
			place.at = middle + 1;
		else
			high = middle;
	}
	return place;
}

static void add_range(struct live_ranges *ranges, const struct known_range *range)
{
	struct range_place place = range_above(ranges, range->start);
	struct range_node *node = node_of(ranges, place), *upper;

	if (node->count == NODE_RANGES) {
		upper = add_node(ranges, place.node + 1);
		node->count = upper->count = NODE_RANGES / 2;
		memcpy(upper->items, node->items + node->count,
			upper->count * sizeof(*upper->items));
		if (place.at > node->count) {
			place.at -= node->count;
			node = upper;
		}
	}
	memmove(&node->items[place.at + 1], &node->items[place.at],
		(node->count++ - place.at) * sizeof(*node->items));
	node->items[place.at] = *range;
}

/* Removes the first range that overlaps [start, end). Returns false if there is no such range. */
static bool remove_range(
	struct live_ranges *ranges, uint64_t start, uint64_t end, struct known_range *range)
{
	struct range_place place = range_above(ranges, start);
	struct range_node *node = node_of(ranges, place);

	if (place.at == node->count || node->items[place.at].start >= end)
		return false;
	*range = node->items[place.at];
	memmove(&node->items[place.at], &node->items[place.at + 1],
		(--node->count - place.at) * sizeof(*node->items));
	if (!node->count && ranges->node_count > 1) {
		free(node);
		memmove(&ranges->nodes[place.node], &ranges->nodes[place.node + 1],
			(--ranges->node_count - place.node) * sizeof(struct range_node *));
	}
	return true;
}

void live_ranges_change(struct live_ranges *ranges, enum live_change type, uint64_t from,
	uint64_t to, enum record_memory memory, uint32_t stack)
{
	const struct known_range how = {.start = from,
		.end = to,
		.region = from,
		.memory = memory,
		.stack = stack,
		.reserve_stack = stack,
		.kind = NOT_BEGUN};
	uint64_t known_to = from;
	struct known_range old;

	ranges->piece_count = 0;
	while (remove_range(ranges, from, to, &old)) {
		struct known_range now = old;
		uint64_t start = old.start > from ? old.start : from;
		uint64_t end = old.end < to ? old.end : to;
		int changed = change(type, &how, &now);

		if (type == LIVE_FILL)
			add_piece(ranges, how, known_to, start);
		known_to = end;
		if (!changed) {
			add_piece(ranges, old, old.start, old.end);
			continue;
		}
		if (!old.is_hidden)
			recorder_free_by(ranges->recorder, old.kind, old.number, stack);
		old.kind = now.kind = NOT_BEGUN;
		add_piece(ranges, old, old.start, start);
		if (changed > 0)
			add_piece(ranges, now, start, end);
		add_piece(ranges, old, end, old.end);
	}
	if (type == LIVE_FILL)
		add_piece(ranges, how, known_to, to);
	for (size_t i = 0; i < ranges->piece_count; i++) {
		if (ranges->pieces[i].kind == NOT_BEGUN)
			begin_range(ranges, &ranges->pieces[i]);
		add_range(ranges, &ranges->pieces[i]);
	}
}

void live_ranges_hide(struct live_ranges *ranges, uint64_t addr)
{
	struct range_place place = range_above(ranges, addr);
	const struct range_node *node = node_of(ranges, place);
	uint64_t region;

	if (place.at == node->count || node->items[place.at].start > addr ||
		node->items[place.at].is_hidden)
		return;
	region = node->items[place.at].region;
	for (place = range_above(ranges, region); place.node < ranges->node_count;
		place.node++, place.at = 0) {
		for (; place.at < node_of(ranges, place)->count; place.at++) {
			struct known_range *range = &node_of(ranges, place)->items[place.at];

			if (range->region != region)
				return;
			if (!range->is_hidden)
				recorder_free(ranges->recorder, range->kind, range->number);
			range->is_hidden = true;
		}
	}
}

uint64_t live_ranges_end(const struct live_ranges *ranges, uint64_t start)
{
	struct range_place place = range_above(ranges, start);
	uint64_t region = 0, end = start;

	for (; place.node < ranges->node_count; place.node++, place.at = 0) {
		const struct range_node *node = node_of(ranges, place);

		for (; place.at < node->count; place.at++) {
			const struct known_range *range = &node->items[place.at];

			if (range->start > end || (end != start && range->region != region))
				return end;
			region = range->region;
			end = range->end;
		}
	}
	return end;
}
