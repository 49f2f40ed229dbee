#include "snapshot/record/replay.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"

#define ADDR_MASK (((uint64_t)1 << TRACER_ADDR_BITS) - 1)
#define TAGS ((size_t)1 << (64 - TRACER_ADDR_BITS))
#define FIRST_CAP ((size_t)1 << 12)
#define CACHE_LOG2 14
#define NOT_BEGUN UINT32_MAX /* a range's kind: it has no allocation yet */

/* A live block: what it is in the recording. Of its number the low bits, see number_of(). Those of a heap are in a list,
 * so that its end takes the time of its own blocks. */
struct known_block {
	uint64_t key; /* as in struct tracer_block; 0: a free entry */
	uint32_t kind, number;
	uint32_t next, previous; /* in its heap: where in the table, plus one; 0: none */
};

/* Pages that are alike, and were made so at once. */
struct known_range {
	uint64_t start, end;
	uint32_t state; /* enum tracer_range_kind */
	uint32_t stack, reserve_stack; /* ids of the tracer's */
	uint32_t kind;
	uint64_t number;
};

/* Ranges by address, of which none overlaps another: a change moves those of one node. */
#define NODE_RANGES 128
struct range_node {
	size_t count; /* not 0, but in the only one */
	struct known_range items[NODE_RANGES];
};

/* What a kind is looked up by, most often. */
struct cached_kind {
	uint64_t what, heap; /* as in struct tracer_block; the handle */
	uint32_t kind;
	bool is_known;
};

struct kind_facts {
	uint64_t allocated; /* how many, which says the upper bits of a block's number */
	uint32_t heap; /* of blocks without a tag: their heap's number by its handle */
};

struct replay {
	struct recorder *recorder;
	replay_stack_fn stack;
	void *ctx;
	/* Live blocks by address, an open table. */
	struct known_block *blocks;
	size_t block_count, block_cap;
	uint64_t multiplier;
	unsigned shift;
	uint8_t *gone; /* by tag: how many streams have said that the heap is */
	uint32_t *heaps; /* lists of blocks, by tag, and behind these by number */
	size_t heap_cap;
	uint32_t handle_count;
	struct u64map handles; /* to those numbers */
	struct cached_kind *kinds;
	struct kind_facts *facts; /* by kind */
	size_t fact_cap;
	struct range_node **nodes; /* by address; one at least */
	size_t node_count, node_cap;
	struct known_range *pieces; /* that a change makes of some */
	size_t piece_count, piece_cap;
};

static void set_cap(struct replay *replay, size_t cap)
{
	replay->blocks = xcalloc(cap, sizeof(*replay->blocks));
	replay->block_cap = cap;
	replay->shift = 64 - (unsigned)__builtin_ctzll(cap);
}

static struct range_node *add_node(struct replay *replay, size_t at)
{
	struct range_node *node = xcalloc(1, sizeof(*node));

	array_grow((void **)&replay->nodes, &replay->node_cap, replay->node_count,
		sizeof(struct range_node *));
	memmove(&replay->nodes[at + 1], &replay->nodes[at],
		(replay->node_count++ - at) * sizeof(struct range_node *));
	return replay->nodes[at] = node;
}

struct replay *replay_new(struct recorder *recorder, replay_stack_fn stack, void *ctx)
{
	struct replay *replay = xcalloc(1, sizeof(*replay));

	*replay = (struct replay){.recorder = recorder,
		.stack = stack,
		.ctx = ctx,
		.multiplier = hash_key().words[0] | 1,
		.gone = xcalloc(TAGS, sizeof(*replay->gone)),
		.heaps = xcalloc(TAGS, sizeof(*replay->heaps)),
		.heap_cap = TAGS,
		.kinds = xcalloc((size_t)1 << CACHE_LOG2, sizeof(*replay->kinds))};
	u64map_init(&replay->handles);
	set_cap(replay, FIRST_CAP);
	add_node(replay, 0);
	return replay;
}

void replay_free(struct replay *replay)
{
	if (!replay)
		return;
	free(replay->blocks);
	free(replay->gone);
	free(replay->heaps);
	u64map_release(&replay->handles);
	free(replay->kinds);
	free(replay->facts);
	for (size_t i = 0; i < replay->node_count; i++)
		free(replay->nodes[i]);
	free(replay->nodes);
	free(replay->pieces);
	free(replay);
}

static uint32_t stack_of(struct replay *replay, uint32_t id)
{
	return id ? replay->stack(replay->ctx, id) : RECORD_NO_STACK;
}

/* ---------------------------------------------------------------- blocks */

static size_t home(const struct replay *replay, uint64_t addr)
{
	return (size_t)((addr >> 3) * replay->multiplier >> replay->shift);
}

/* The entry of the block at addr, or the free one where it would be. */
static struct known_block *find_block(struct replay *replay, uint64_t addr)
{
	size_t at = home(replay, addr);

	while (replay->blocks[at].key && (replay->blocks[at].key & ADDR_MASK) != addr)
		at = (at + 1) & (replay->block_cap - 1);
	return &replay->blocks[at];
}

/* The list that a block is in. */
static uint32_t *heap_of(struct replay *replay, const struct known_block *block)
{
	size_t tag = block->key >> TRACER_ADDR_BITS;

	return &replay->heaps[tag ? tag : TAGS + replay->facts[block->kind].heap];
}

static uint32_t place_of(const struct replay *replay, const struct known_block *block)
{
	return (uint32_t)(block - replay->blocks) + 1;
}

/* The neighbours of a block have it where it lies now. */
static void link_block(struct replay *replay, const struct known_block *block, uint32_t place)
{
	if (block->previous)
		replay->blocks[block->previous - 1].next = place;
	else
		*heap_of(replay, block) = place;
	if (block->next)
		replay->blocks[block->next - 1].previous = place;
}

static void unlink_block(struct replay *replay, const struct known_block *block)
{
	if (block->previous)
		replay->blocks[block->previous - 1].next = block->next;
	else
		*heap_of(replay, block) = block->next;
	if (block->next)
		replay->blocks[block->next - 1].previous = block->previous;
}

/* Puts a block into a free entry, and before all of its heap. */
static void put_block(struct replay *replay, struct known_block *entry, struct known_block block)
{
	block.previous = 0;
	block.next = *heap_of(replay, &block);
	*entry = block;
	link_block(replay, entry, place_of(replay, entry));
}

static void grow(struct replay *replay)
{
	struct known_block *old = replay->blocks;
	size_t old_cap = replay->block_cap;

	set_cap(replay, old_cap * 2);
	memset(replay->heaps, 0, replay->heap_cap * sizeof(*replay->heaps));
	for (size_t i = 0; i < old_cap; i++) {
		if (old[i].key)
			put_block(replay, find_block(replay, old[i].key & ADDR_MASK), old[i]);
	}
	free(old);
}

static void remove_block(struct replay *replay, struct known_block *block)
{
	size_t mask = replay->block_cap - 1, hole = (size_t)(block - replay->blocks);

	unlink_block(replay, block);
	for (size_t at = (hole + 1) & mask; replay->blocks[at].key; at = (at + 1) & mask) {
		size_t from = home(replay, replay->blocks[at].key & ADDR_MASK);

		if (((at - from) & mask) < ((at - hole) & mask))
			continue;
		replay->blocks[hole] = replay->blocks[at];
		link_block(replay, &replay->blocks[hole], (uint32_t)hole + 1);
		hole = at;
	}
	replay->blocks[hole].key = 0;
	replay->block_count--;
}

static uint32_t kind_of(struct replay *replay, const struct tracer_block *block, uint64_t heap)
{
	uint64_t hash = (block->what ^ heap * replay->multiplier) * replay->multiplier;
	struct cached_kind *cached = &replay->kinds[hash >> (64 - CACHE_LOG2)];

	if (!cached->is_known || cached->what != block->what || cached->heap != heap) {
		const struct record_kind kind = {.bytes = tracer_block_bytes(block),
			.stack = stack_of(replay, tracer_block_stack(block)),
			.heap = recorder_heap(replay->recorder, heap),
			.memory = RECORD_HEAP};

		*cached = (struct cached_kind){
			block->what, heap, recorder_kind(replay->recorder, &kind), true};
	}
	return cached->kind;
}

/* The number of the heap with a handle, whose blocks have no tag. */
static uint32_t heap_number(struct replay *replay, uint64_t handle)
{
	uint32_t number = replay->handle_count;

	if (!u64map_put(&replay->handles, handle, &number))
		return number;
	while (TAGS + number >= replay->heap_cap)
		array_grow((void **)&replay->heaps, &replay->heap_cap, replay->heap_cap,
			sizeof(*replay->heaps));
	replay->heaps[TAGS + number] = 0;
	return replay->handle_count++;
}

/* Allocates one of a kind: its number. */
static uint64_t alloc(struct replay *replay, uint32_t kind, uint64_t addr, uint64_t heap)
{
	uint64_t number = recorder_alloc(replay->recorder, kind, addr);

	while (kind >= replay->fact_cap)
		array_grow((void **)&replay->facts, &replay->fact_cap, replay->fact_cap,
			sizeof(*replay->facts));
	if (!number)
		replay->facts[kind].heap = heap_number(replay, heap);
	replay->facts[kind].allocated = number + 1;
	return number;
}

/* The newest number that has these low bits: no block sees 2^32 others of its kind come. */
static uint64_t number_of(const struct replay *replay, const struct known_block *block)
{
	uint64_t newest = replay->facts[block->kind].allocated - 1;

	return newest - (uint32_t)((uint32_t)newest - block->number);
}

static void end_block(struct replay *replay, struct known_block *block)
{
	recorder_free(replay->recorder, block->kind, number_of(replay, block));
	remove_block(replay, block);
}

static void begin_block(struct replay *replay, const struct tracer_block *block, uint64_t heap)
{
	struct known_block *known = find_block(replay, tracer_block_addr(block));
	uint64_t number;
	uint32_t kind;

	if (known->key) /* its heap was destroyed, or its free was dropped */
		end_block(replay, known);
	if (replay->block_count >= replay->block_cap / 4 * 3)
		grow(replay);
	kind = kind_of(replay, block, heap);
	number = alloc(replay, kind, tracer_block_addr(block), heap);
	put_block(replay, find_block(replay, tracer_block_addr(block)),
		(struct known_block){.key = block->key, .kind = kind, .number = (uint32_t)number});
	replay->block_count++;
}

void replay_add_block(
	struct replay *replay, uint64_t addr, uint64_t heap, uint64_t bytes, uint32_t stack)
{
	const struct tracer_block block = tracer_block_make(addr, 0, stack, bytes);

	if (addr && addr <= ADDR_MASK)
		begin_block(replay, &block, heap);
}

static void end_heap(struct replay *replay, size_t heap)
{
	while (replay->heaps[heap])
		end_block(replay, &replay->blocks[replay->heaps[heap] - 1]);
}

/* Every stream says once that a heap is gone, behind all that it has to say of its blocks. Those that are older than
 * the tracer have no tag. */
static void heap_is_gone(struct replay *replay, uint32_t tag, uint64_t handle)
{
	uint32_t number;

	if (++replay->gone[tag] < TRACER_SHARDS)
		return;
	replay->gone[tag] = 0;
	if (tag)
		end_heap(replay, tag);
	if (handle && u64map_find(&replay->handles, handle, &number))
		end_heap(replay, TAGS + number);
}

/* ---------------------------------------------------------------- ranges */

static void begin_range(struct replay *replay, struct known_range *range)
{
	static const enum record_memory memories[] = {[RANGE_RESERVED] = RECORD_RESERVED,
		[RANGE_COMMITTED] = RECORD_COMMITTED,
		[RANGE_MAPPED] = RECORD_MAPPED};
	const struct record_kind kind = {.bytes = range->end - range->start,
		.stack = stack_of(replay, range->stack),
		.heap = RECORD_NO_HEAP,
		.memory = memories[range->state]};

	range->kind = recorder_kind(replay->recorder, &kind);
	range->number = recorder_alloc(replay->recorder, range->kind, range->start);
}

static void add_piece(struct replay *replay, struct known_range piece, uint64_t start, uint64_t end)
{
	if (start >= end)
		return;
	array_grow((void **)&replay->pieces, &replay->piece_cap, replay->piece_count,
		sizeof(*replay->pieces));
	piece.start = start;
	piece.end = end;
	replay->pieces[replay->piece_count++] = piece;
}

/* What a change makes of the pages of a range that it is about: true and *range, which stays as it was in all
 * else; RANGE_NONE: nothing is known of them any more. False: it does not touch them. */
static bool change(unsigned type, const struct known_range *how, struct known_range *range)
{
	switch (type) {
	case RING_RANGE_TAKE: range->state = RANGE_NONE; return true;
	case RING_RANGE_USE:
		if (range->state != RANGE_RESERVED)
			return false;
		range->reserve_stack = range->stack;
		range->stack = how->stack;
		range->state = how->state;
		return true;
	case RING_RANGE_GIVE_UP:
		if (range->state != how->state || range->state == RANGE_RESERVED)
			return false;
		range->state = RANGE_RESERVED;
		range->stack = range->reserve_stack;
		return true;
	default: return false; /* RING_RANGE_FILL */
	}
}

/* Where a range is, or where one would be. */
struct range_place {
	size_t node, at;
};

static struct range_node *node_of(const struct replay *replay, struct range_place place)
{
	return replay->nodes[place.node];
}

/* The first range that ends behind addr; behind the last one if none does. */
static struct range_place range_above(const struct replay *replay, uint64_t addr)
{
	struct range_place place = {0};
	size_t high = replay->node_count - 1;

	while (place.node < high) {
		size_t middle = place.node + (high - place.node) / 2;
		const struct range_node *node = replay->nodes[middle];

		if (node->items[node->count - 1].end <= addr)
			place.node = middle + 1;
		else
			high = middle;
	}
	high = node_of(replay, place)->count;
	while (place.at < high) {
		size_t middle = place.at + (high - place.at) / 2;

		if (node_of(replay, place)->items[middle].end <= addr)
			place.at = middle + 1;
		else
			high = middle;
	}
	return place;
}

static void add_range(struct replay *replay, const struct known_range *range)
{
	struct range_place place = range_above(replay, range->start);
	struct range_node *node = node_of(replay, place), *upper;

	if (node->count == NODE_RANGES) {
		upper = add_node(replay, place.node + 1);
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

/* Takes out the first range that lies in [start, end), or partly: false, there is none. */
static bool take_range(
	struct replay *replay, uint64_t start, uint64_t end, struct known_range *range)
{
	struct range_place place = range_above(replay, start);
	struct range_node *node = node_of(replay, place);

	if (place.at == node->count || node->items[place.at].start >= end)
		return false;
	*range = node->items[place.at];
	memmove(&node->items[place.at], &node->items[place.at + 1],
		(--node->count - place.at) * sizeof(*node->items));
	if (!node->count && replay->node_count > 1) {
		free(node);
		memmove(&replay->nodes[place.node], &replay->nodes[place.node + 1],
			(--replay->node_count - place.node) * sizeof(struct range_node *));
	}
	return true;
}

/*
 * Changes the pages of *how, whose state and stack are what they become. Ranges that the change does not touch
 * stay what they are; of others what is left is allocated anew. how->stack is also who frees them.
 */
static void change_ranges(struct replay *replay, unsigned type, const struct known_range *how)
{
	uint64_t known_to = how->start;
	struct known_range old;

	replay->piece_count = 0;
	while (take_range(replay, how->start, how->end, &old)) {
		struct known_range now = old;
		uint64_t start = old.start > how->start ? old.start : how->start;
		uint64_t end = old.end < how->end ? old.end : how->end;

		if (type == RING_RANGE_FILL)
			add_piece(replay, *how, known_to, start);
		known_to = end;
		if (!change(type, how, &now)) {
			add_piece(replay, old, old.start, old.end);
			continue;
		}
		recorder_free_by(
			replay->recorder, old.kind, old.number, stack_of(replay, how->stack));
		old.kind = now.kind = NOT_BEGUN;
		add_piece(replay, old, old.start, start);
		if (now.state != RANGE_NONE)
			add_piece(replay, now, start, end);
		add_piece(replay, old, end, old.end);
	}
	if (type == RING_RANGE_FILL)
		add_piece(replay, *how, known_to, how->end);
	for (size_t i = 0; i < replay->piece_count; i++) {
		if (replay->pieces[i].kind == NOT_BEGUN)
			begin_range(replay, &replay->pieces[i]);
		add_range(replay, &replay->pieces[i]);
	}
}

static bool range_event(struct replay *replay, const struct ring_event *event)
{
	uint64_t start = ring_event_addr(event), bytes = ring_event_range_bytes(event);
	uint32_t stack = tracer_block_stack(&event->block);
	const struct known_range how = {.start = start,
		.end = start + bytes,
		.state = event->low,
		.stack = stack,
		.reserve_stack = stack,
		.kind = NOT_BEGUN};
	struct known_range gone = how;

	if (!bytes || bytes > ADDR_MASK + 1 - start ||
		(event->type != RING_RANGE_TAKE &&
			(event->low < RANGE_RESERVED || event->low > RANGE_MAPPED)))
		return false;
	if (event->type != RING_RANGE_ADD) {
		change_ranges(replay, event->type, &how);
	} else {
		/* Whoever freed what was there was not seen. */
		gone.stack = 0;
		change_ranges(replay, RING_RANGE_TAKE, &gone);
		change_ranges(replay, RING_RANGE_FILL, &how);
	}
	return true;
}

/* ---------------------------------------------------------------- events */

bool replay_event(struct replay *replay, const struct ring_event *event)
{
	uint64_t addr = ring_event_addr(event);
	struct known_block *known;

	switch (event->type) {
	case RING_ALLOC:
		if (!addr)
			return false;
		begin_block(replay, &event->block, ring_event_heap(event));
		return true;
	case RING_FREE:
	case RING_FREE_OLD:
		known = addr ? find_block(replay, addr) : NULL;
		if (known && known->key)
			end_block(replay, known);
		return known;
	case RING_HEAP_GONE:
		heap_is_gone(replay, ring_event_heap_tag(event), ring_event_heap(event));
		return true;
	case RING_RANGE_ADD:
	case RING_RANGE_FILL:
	case RING_RANGE_USE:
	case RING_RANGE_GIVE_UP:
	case RING_RANGE_TAKE: return range_event(replay, event);
	default: return false;
	}
}
