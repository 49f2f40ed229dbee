/*
 * The table of virtual memory: a tree of ranges, and the changes to it.
 *
 * The nodes are in one array and are linked by index + 1 (0: none). Their memory is committed when
 * it is needed. The tree is a treap whose priorities are hashes of the addresses. So the same calls
 * always produce the same tree, and the tree is balanced in whatever order the calls are made. No
 * function is recursive.
 *
 * The nodes in the tree do not overlap, and allocations do not overlap. So both are in ascending
 * order of address. Callers of the tree functions hold the lock.
 */
#include "snapshot/tracer/tables.h"
#include "snapshot/tracer/tracer_memory.h"

#define CHUNK ((uint64_t)65536) /* bytes committed at a time */

static struct tracer_range *node_at(const struct tracer_ranges *ranges, uint32_t link)
{
	return (struct tracer_range *)(uintptr_t)ranges->nodes + (link - 1);
}

/* ---------------------------------------------------------------- free nodes */

/* Frees a node that is not in any tree. */
static void node_free(struct tracer_ranges *ranges, uint32_t link)
{
	struct tracer_range *node = node_at(ranges, link);

	node->kind = RANGE_NONE;
	node->right = 0;
	node->left = ranges->free;
	ranges->free = link;
}

static bool grow(struct tracer_area *area)
{
	struct tracer_ranges *ranges = &area->ranges;
	uint64_t used = ranges->node_count * (uint64_t)sizeof(struct tracer_range);
	uint64_t committed = (used + CHUNK - 1) / CHUNK * CHUNK;

	if (ranges->node_count >= ranges->node_limit)
		return false;
	if (used + sizeof(struct tracer_range) > committed &&
		!tables_commit(area, (char *)(uintptr_t)ranges->nodes + committed, CHUNK))
		return false;
	ranges->node_count++;
	node_free(ranges, ranges->node_count);
	return true;
}

/* Returns true if `count` more nodes can be created. */
static bool nodes_are_there(struct tracer_area *area, unsigned count)
{
	struct tracer_ranges *ranges = &area->ranges;
	uint32_t link = ranges->free;

	for (; count && link; count--)
		link = node_at(ranges, link)->left;
	while (count && grow(area))
		count--;
	return !count;
}

/* ---------------------------------------------------------------- the tree */

/* Splits a tree at an address into two: the nodes that start below the address, and all other
 * nodes. */
static void split(const struct tracer_ranges *ranges, uint32_t tree, uint64_t at, uint32_t *below,
	uint32_t *others)
{
	while (tree) {
		struct tracer_range *node = node_at(ranges, tree);

		if (node->start < at) {
			*below = tree;
			below = &node->right;
			tree = node->right;
		} else {
			*others = tree;
			others = &node->left;
			tree = node->left;
		}
	}
	*below = *others = 0;
}

/* Reverses split(). */
static uint32_t merge(const struct tracer_ranges *ranges, uint32_t below, uint32_t others)
{
	uint32_t tree, *to = &tree;

	while (below && others) {
		struct tracer_range *low = node_at(ranges, below);
		struct tracer_range *high = node_at(ranges, others);

		if (low->priority > high->priority) {
			*to = below;
			to = &low->right;
			below = low->right;
		} else {
			*to = others;
			to = &high->left;
			others = high->left;
		}
	}
	*to = below ? below : others;
	return tree;
}

/* Inserts a node that is not in any tree. */
static void tree_insert(struct tracer_ranges *ranges, uint32_t link)
{
	struct tracer_range *node = node_at(ranges, link);
	uint32_t *at = &ranges->root;

	while (*at && node_at(ranges, *at)->priority >= node->priority) {
		struct tracer_range *above = node_at(ranges, *at);

		at = node->start < above->start ? &above->left : &above->right;
	}
	split(ranges, *at, node->start, &node->left, &node->right);
	*at = link;
}

/* Inserts a new node with the contents of *range. The caller has checked that there is room. */
static void tree_add(struct tracer_ranges *ranges, const struct tracer_range *range)
{
	uint32_t link = ranges->free;
	struct tracer_range *node = node_at(ranges, link);

	ranges->free = node->left;
	*node = *range;
	node->left = node->right = 0;
	node->priority = (uint32_t)((range->start >> 12) * 0x9e3779b97f4a7c15u >> 32);
	tree_insert(ranges, link);
}

/* Returns the first node that ends after an address, or 0. */
static uint32_t tree_beyond(const struct tracer_ranges *ranges, uint64_t addr)
{
	uint32_t tree = ranges->root, found = 0;

	while (tree) {
		const struct tracer_range *node = node_at(ranges, tree);

		if (node->end > addr) {
			found = tree;
			tree = node->left;
		} else {
			tree = node->right;
		}
	}
	return found;
}

/* Returns the last node of the allocation with this base. If no such allocation exists, returns the
 * last node of the next lower allocation. */
static uint32_t tree_last_of(const struct tracer_ranges *ranges, uint64_t allocation)
{
	uint32_t tree = ranges->root, found = 0;

	while (tree) {
		const struct tracer_range *node = node_at(ranges, tree);

		if (node->allocation <= allocation) {
			found = tree;
			tree = node->right;
		} else {
			tree = node->left;
		}
	}
	return found;
}

/* Removes the nodes that start in [from, to). Returns them as a tree. */
static uint32_t tree_remove(struct tracer_ranges *ranges, uint64_t from, uint64_t to)
{
	uint32_t below, taken, above;

	split(ranges, ranges->root, to, &taken, &above);
	split(ranges, taken, from, &below, &taken);
	ranges->root = merge(ranges, below, above);
	return taken;
}

/* Removes the first node from a nonempty tree and returns it. */
static uint32_t tree_pop(struct tracer_ranges *ranges, uint32_t *tree)
{
	uint32_t top = *tree;
	struct tracer_range *node = node_at(ranges, top);

	while (node->left) { /* rotates the left child to the top */
		uint32_t left = node->left;
		struct tracer_range *child = node_at(ranges, left);

		node->left = child->right;
		child->right = top;
		top = left;
		node = child;
	}
	*tree = node->right;
	node->right = 0;
	return top;
}

/* ---------------------------------------------------------------- the lock */

static void count_dropped(struct tracer_area *area)
{
	__atomic_fetch_add(&area->dropped_ranges, 1, __ATOMIC_RELAXED);
}

/* Takes the lock before a change that needs at most two events. If the lock is broken, counts a
 * dropped change and returns false. */
static bool begin(struct tracer_area *area, struct ring **ring)
{
	struct tracer_ranges *ranges = &area->ranges;

	if (!rings_lock(area, 2, &ranges->lock, &ranges->broken, ring)) {
		count_dropped(area);
		return false;
	}
	__atomic_store_n(&ranges->changing, ranges->changing + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	return true;
}

static void end(struct tracer_area *area, struct ring *ring)
{
	struct tracer_ranges *ranges = &area->ranges;

	__atomic_store_n(&ranges->changing, ranges->changing + 1, __ATOMIC_RELEASE);
	memory_unlock(&ranges->lock);
	rings_end(ring);
}

/* Records an event of the given type for the pages of *range. */
static void publish_range(struct tracer_area *area, struct ring *ring, enum ring_event_type type,
	const struct tracer_range *range)
{
	uint64_t pages = (range->end - range->start) / TRACER_PAGE;

	if (!ring)
		return;
	rings_publish(ring, &area->ranges.order,
		&(struct ring_event){
			.block = tracer_block_make(range->start, 0, range->stack, pages),
			.low = range->kind,
			.high = range->start == range->allocation ? RING_FLAG_BEGINS : 0,
			.type = (uint8_t)type,
			.stream = RING_RANGES,
		});
}

/* ---------------------------------------------------------------- splitting and joining */

static struct tracer_range *first_in(struct tracer_ranges *ranges, uint64_t from, uint64_t to)
{
	uint32_t link = tree_beyond(ranges, from);
	struct tracer_range *node = link ? node_at(ranges, link) : NULL;

	return node && node->start < to ? node : NULL;
}

static bool has_room(struct tracer_area *area, unsigned count)
{
	if (nodes_are_there(area, count))
		return true;
	count_dropped(area);
	return false;
}

/* Returns the node that contains addresses on both sides of `at`, or NULL. */
static struct tracer_range *across(struct tracer_ranges *ranges, uint64_t at)
{
	return first_in(ranges, at, at);
}

/* Splits the node that spans an address. Does nothing if there is no such node. */
static void cut(struct tracer_area *area, uint64_t at)
{
	struct tracer_range *node = across(&area->ranges, at);
	struct tracer_range upper;

	if (!node)
		return;
	upper = *node;
	upper.start = at;
	node->end = at;
	if (has_room(area, 1))
		tree_add(&area->ranges, &upper);
}

static bool is_one(const struct tracer_range *low, const struct tracer_range *high)
{
	return low->end == high->start && low->allocation == high->allocation &&
	       low->kind == high->kind && low->stack == high->stack &&
	       low->reserve_stack == high->reserve_stack;
}

/* Joins adjacent nodes with equal properties, from the node that ends at `from` to the node that
 * starts at `to`. */
static void join(struct tracer_ranges *ranges, uint64_t from, uint64_t to)
{
	struct tracer_range *low = first_in(ranges, from ? from - 1 : 0, to);

	while (low && low->end <= to) {
		uint32_t next = tree_beyond(ranges, low->end);
		struct tracer_range *high = next ? node_at(ranges, next) : NULL;

		if (!high || !is_one(low, high)) {
			low = high;
			continue;
		}
		next = tree_remove(ranges, high->start, high->end);
		low->end = high->end;
		node_free(ranges, next);
	}
}

/* ---------------------------------------------------------------- queries */

/* Returns the end of the allocation with this base. If no such allocation exists, returns the end
 * of the next lower allocation. */
static uint64_t end_of(const struct tracer_ranges *ranges, uint64_t allocation)
{
	return node_at(ranges, tree_last_of(ranges, allocation))->end;
}

bool ranges_find(struct tracer_area *area, uint64_t addr, struct ranges_extent *extent)
{
	struct tracer_ranges *ranges = &area->ranges;
	const struct tracer_range *node;
	uint32_t link;
	bool found;

	if (!memory_lock(&ranges->lock, &ranges->broken))
		return false;
	link = tree_beyond(ranges, addr);
	node = link ? node_at(ranges, link) : NULL;
	found = node && node->allocation <= addr;
	if (found)
		*extent = (struct ranges_extent){
			node->allocation, end_of(ranges, node->allocation), node->kind};
	memory_unlock(&ranges->lock);
	return found;
}

bool ranges_is_known(struct tracer_area *area, uint64_t from, uint64_t to)
{
	struct tracer_ranges *ranges = &area->ranges;
	const struct tracer_range *node;

	if (!memory_lock(&ranges->lock, &ranges->broken))
		return true; /* the caller cannot do anything about the unknown parts */
	while (from < to && (node = first_in(ranges, from, from + 1)))
		from = node->end;
	memory_unlock(&ranges->lock);
	return from >= to;
}

/* ---------------------------------------------------------------- adding */

static void discard(struct tracer_ranges *ranges, uint32_t tree)
{
	while (tree)
		node_free(ranges, tree_pop(ranges, &tree));
}

/* Forgets all allocations that overlap [from, to), even if none of their known pages are there. The
 * system has allocated this memory again, so the frees of these allocations were missed. */
static void forget_stale(struct tracer_area *area, uint64_t from, uint64_t to, struct ring *ring)
{
	struct tracer_ranges *ranges = &area->ranges;
	const struct tracer_range *first = first_in(ranges, from, UINT64_MAX);
	struct tracer_range stale;

	if (!first || first->allocation >= to)
		return;
	stale = (struct tracer_range){.start = first->allocation, .end = end_of(ranges, to - 1)};
	discard(ranges, tree_remove(ranges, stale.start, stale.end));
	publish_range(area, ring, RING_RANGE_TAKE, &stale);
}

void ranges_add(struct tracer_area *area, const struct tracer_range *range)
{
	struct ring *ring;

	if (!begin(area, &ring))
		return;
	forget_stale(area, range->start, range->end, ring);
	if (has_room(area, 1)) {
		tree_add(&area->ranges, range);
		publish_range(area, ring, RING_RANGE_ADD, range);
	}
	end(area, ring);
}

void ranges_fill(struct tracer_area *area, const struct tracer_range *range)
{
	struct tracer_ranges *ranges = &area->ranges;
	struct tracer_range gap = *range;
	struct ring *ring;

	if (!begin(area, &ring))
		return;
	while (gap.start < range->end) {
		const struct tracer_range *known = first_in(ranges, gap.start, range->end);
		uint64_t next = known ? known->end : range->end;

		gap.end = known ? known->start : range->end;
		if (gap.end > gap.start && has_room(area, 1))
			tree_add(ranges, &gap);
		gap.start = next;
	}
	join(ranges, range->start, range->end);
	publish_range(area, ring, RING_RANGE_FILL, range);
	end(area, ring);
}

/* ---------------------------------------------------------------- changing */

void ranges_use(struct tracer_area *area, uint64_t from, uint64_t to, uint32_t kind, uint32_t stack)
{
	const struct tracer_range used = {.start = from, .end = to, .kind = kind, .stack = stack};
	struct tracer_ranges *ranges = &area->ranges;
	struct tracer_range *node;
	struct ring *ring;

	if (!begin(area, &ring))
		return;
	if (has_room(area, (across(ranges, from) != NULL) + (across(ranges, to) != NULL))) {
		cut(area, from);
		cut(area, to);
		for (uint64_t at = from; (node = first_in(ranges, at, to)); at = node->end) {
			if (node->kind != RANGE_RESERVED)
				continue;
			node->kind = kind;
			node->reserve_stack = node->stack;
			node->stack = stack;
		}
		join(ranges, from, to);
		publish_range(area, ring, RING_RANGE_USE, &used);
	}
	end(area, ring);
}

void ranges_decommit(
	struct tracer_area *area, uint64_t from, uint64_t to, uint32_t kind, uint32_t stack)
{
	const struct tracer_range given_up = {
		.start = from, .end = to, .kind = kind, .stack = stack};
	struct tracer_ranges *ranges = &area->ranges;
	struct tracer_range *node;
	struct ring *ring;

	if (!begin(area, &ring))
		return;
	cut(area, from);
	cut(area, to);
	for (uint64_t at = from; (node = first_in(ranges, at, to)); at = node->end) {
		if (node->kind != kind)
			continue;
		node->kind = RANGE_RESERVED;
		node->stack = node->reserve_stack;
		node->reserve_stack = 0;
	}
	join(ranges, from, to);
	publish_range(area, ring, RING_RANGE_GIVE_UP, &given_up);
	end(area, ring);
}

static void set_base(struct tracer_ranges *ranges, uint64_t from, uint64_t to, uint64_t base)
{
	struct tracer_range *node;

	for (uint64_t at = from; (node = first_in(ranges, at, to)); at = node->end)
		node->allocation = base;
}

void ranges_rebase(struct tracer_area *area, uint64_t from, uint64_t to, uint64_t base)
{
	struct ring *ring;

	if (!begin(area, &ring))
		return;
	cut(area, from);
	cut(area, to);
	set_base(&area->ranges, from, to, base);
	join(&area->ranges, from, to);
	end(area, ring);
}

/* ---------------------------------------------------------------- removing */

/* Marks nodes before they leave the tree. Only this mark shows hsnap, which reads the nodes from
 * outside, that they are no longer live. */
static void mark_taken(struct tracer_ranges *ranges, uint64_t from, uint64_t to)
{
	struct tracer_range *node;

	for (uint64_t at = from; (node = first_in(ranges, at, to)); at = node->end)
		node->kind |= RANGE_TAKEN;
}

bool ranges_detach(struct tracer_area *area, uint64_t from, uint64_t to, uint32_t stack,
	struct ranges_taken *taken)
{
	const struct tracer_range gone = {.start = from, .end = to, .stack = stack};
	struct tracer_ranges *ranges = &area->ranges;
	const struct tracer_range *rest;
	struct ring *ring;

	*taken = (struct ranges_taken){.session = area->session};
	if (!begin(area, &ring))
		return false;
	cut(area, from);
	cut(area, to);
	mark_taken(ranges, from, to);
	taken->nodes = tree_remove(ranges, from, to);
	rest = first_in(ranges, to, UINT64_MAX);
	if (rest && rest->allocation < to) {
		taken->base = rest->allocation;
		taken->rest = to;
		taken->rest_end = end_of(ranges, rest->allocation);
		set_base(ranges, to, taken->rest_end, to);
	}
	if (taken->nodes)
		publish_range(area, ring, RING_RANGE_TAKE, &gone);
	end(area, ring);
	return taken->nodes || taken->rest_end;
}

void ranges_drop(struct tracer_area *area, const struct ranges_taken *taken)
{
	struct ring *ring;

	if (!taken->nodes || !begin(area, &ring))
		return;
	discard(&area->ranges, taken->nodes);
	end(area, ring);
}

/* Restores a removed node, unless other memory has become known at its addresses. */
static void restore(struct tracer_area *area, uint32_t link, struct ring *ring)
{
	struct tracer_ranges *ranges = &area->ranges;
	struct tracer_range *node = node_at(ranges, link);
	uint64_t from = node->start, to = node->end;
	struct tracer_range below = *node;

	node->kind &= ~RANGE_TAKEN;
	if (first_in(ranges, from, to)) {
		node_free(ranges, link);
		return;
	}
	if (node->kind != RANGE_RESERVED) {
		below.kind = RANGE_RESERVED;
		below.stack = node->reserve_stack;
		publish_range(area, ring, RING_RANGE_ADD, &below);
	}
	publish_range(
		area, ring, node->kind == RANGE_RESERVED ? RING_RANGE_ADD : RING_RANGE_USE, node);
	tree_insert(ranges, link);
	join(ranges, from, to);
}

/* Restore nodes one at a time, because each of them needs its own events. */
void ranges_restore(struct tracer_area *area, const struct ranges_taken *taken)
{
	uint32_t nodes = taken->nodes;
	struct ring *ring;

	if (!begin(area, &ring))
		return;
	set_base(&area->ranges, taken->rest, taken->rest_end, taken->base);
	end(area, ring);
	while (nodes && begin(area, &ring)) {
		restore(area, tree_pop(&area->ranges, &nodes), ring);
		end(area, ring);
	}
}

void ranges_forget(struct tracer_area *area, uint64_t from, uint64_t to)
{
	const struct tracer_range gone = {.start = from, .end = to};
	struct ring *ring;

	if (!begin(area, &ring))
		return;
	cut(area, from);
	cut(area, to);
	discard(&area->ranges, tree_remove(&area->ranges, from, to));
	publish_range(area, ring, RING_RANGE_TAKE, &gone);
	end(area, ring);
}
