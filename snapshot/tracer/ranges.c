#include "snapshot/tracer/tables.h"
#include "snapshot/tracer/tracer_memory.h"

#define CHUNK ((uint64_t)65536) /* committed at a time */

struct tracer_range *rangetree_node(const struct tracer_ranges *ranges, uint32_t link)
{
	return (struct tracer_range *)(uintptr_t)ranges->nodes + (link - 1);
}

/* ---------------------------------------------------------------- free nodes */

void rangetree_free(struct tracer_ranges *ranges, uint32_t link)
{
	struct tracer_range *node = rangetree_node(ranges, link);

	node->kind = RANGE_NONE;
	node->right = 0;
	node->left = ranges->free;
	ranges->free = link;
}

/* One node more in the array, free. */
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
	rangetree_free(ranges, ranges->node_count);
	return true;
}

bool rangetree_has_room(struct tracer_area *area, unsigned count)
{
	struct tracer_ranges *ranges = &area->ranges;
	uint32_t link = ranges->free;

	for (; count && link; count--)
		link = rangetree_node(ranges, link)->left;
	while (count && grow(area))
		count--;
	return !count;
}

void rangetree_add(struct tracer_ranges *ranges, const struct tracer_range *range)
{
	uint32_t link = ranges->free;
	struct tracer_range *node = rangetree_node(ranges, link);

	ranges->free = node->left;
	*node = *range;
	node->left = node->right = 0;
	node->priority = (uint32_t)((range->start >> 12) * 0x9e3779b97f4a7c15u >> 32);
	rangetree_insert(ranges, link);
}

/* ---------------------------------------------------------------- the tree */

/* Nodes that start below an address, and the others. */
static void split(const struct tracer_ranges *ranges, uint32_t tree, uint64_t at, uint32_t *below,
	uint32_t *others)
{
	while (tree) {
		struct tracer_range *node = rangetree_node(ranges, tree);

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

/* The contrary of split(). */
static uint32_t merge(const struct tracer_ranges *ranges, uint32_t below, uint32_t others)
{
	uint32_t tree, *to = &tree;

	while (below && others) {
		struct tracer_range *low = rangetree_node(ranges, below);
		struct tracer_range *high = rangetree_node(ranges, others);

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

void rangetree_insert(struct tracer_ranges *ranges, uint32_t link)
{
	struct tracer_range *node = rangetree_node(ranges, link);
	uint32_t *at = &ranges->root;

	while (*at && rangetree_node(ranges, *at)->priority >= node->priority) {
		struct tracer_range *above = rangetree_node(ranges, *at);

		at = node->start < above->start ? &above->left : &above->right;
	}
	split(ranges, *at, node->start, &node->left, &node->right);
	*at = link;
}

uint32_t rangetree_beyond(const struct tracer_ranges *ranges, uint64_t addr)
{
	uint32_t tree = ranges->root, found = 0;

	while (tree) {
		const struct tracer_range *node = rangetree_node(ranges, tree);

		if (node->end > addr) {
			found = tree;
			tree = node->left;
		} else {
			tree = node->right;
		}
	}
	return found;
}

uint32_t rangetree_last_of(const struct tracer_ranges *ranges, uint64_t allocation)
{
	uint32_t tree = ranges->root, found = 0;

	while (tree) {
		const struct tracer_range *node = rangetree_node(ranges, tree);

		if (node->allocation <= allocation) {
			found = tree;
			tree = node->right;
		} else {
			tree = node->left;
		}
	}
	return found;
}

uint32_t rangetree_take(struct tracer_ranges *ranges, uint64_t from, uint64_t to)
{
	uint32_t below, taken, above;

	split(ranges, ranges->root, to, &taken, &above);
	split(ranges, taken, from, &below, &taken);
	ranges->root = merge(ranges, below, above);
	return taken;
}

uint32_t rangetree_pop(struct tracer_ranges *ranges, uint32_t *tree)
{
	uint32_t top = *tree;
	struct tracer_range *node = rangetree_node(ranges, top);

	while (node->left) { /* what is left of it becomes the top */
		uint32_t left = node->left;
		struct tracer_range *child = rangetree_node(ranges, left);

		node->left = child->right;
		child->right = top;
		top = left;
		node = child;
	}
	*tree = node->right;
	node->right = 0;
	return top;
}

#define SPINS 2000

/* ---------------------------------------------------------------- the lock */

static bool lock(struct tracer_ranges *ranges)
{
	struct memory_patience patience = {0};

	for (unsigned tries = 0;; tries++) {
		if (!__atomic_load_n(&ranges->lock, __ATOMIC_RELAXED) &&
			!__atomic_exchange_n(&ranges->lock, 1, __ATOMIC_ACQUIRE))
			return true;
		if (__atomic_load_n(&ranges->broken, __ATOMIC_RELAXED))
			return false;
		if (tries < SPINS)
			__builtin_ia32_pause();
		else if (!memory_wait(&patience))
			break;
	}
	__atomic_store_n(&ranges->broken, 1, __ATOMIC_RELAXED);
	return false;
}

static void unlock(struct tracer_ranges *ranges)
{
	__atomic_store_n(&ranges->lock, 0, __ATOMIC_RELEASE);
}

static void count_dropped(struct tracer_area *area)
{
	__atomic_fetch_add(&area->dropped_ranges, 1, __ATOMIC_RELAXED);
}

/* The lock, to change something; false, and that counts as dropped, when it is not to be had. */
static bool begin(struct tracer_area *area)
{
	struct tracer_ranges *ranges = &area->ranges;

	if (!lock(ranges)) {
		count_dropped(area);
		return false;
	}
	__atomic_store_n(&ranges->changing, ranges->changing + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	return true;
}

static void end(struct tracer_area *area)
{
	struct tracer_ranges *ranges = &area->ranges;

	__atomic_store_n(&ranges->changing, ranges->changing + 1, __ATOMIC_RELEASE);
	unlock(ranges);
}

/* ---------------------------------------------------------------- cutting and joining */

/* The first node of those in [from, to), or NULL. */
static struct tracer_range *first_in(struct tracer_ranges *ranges, uint64_t from, uint64_t to)
{
	uint32_t link = rangetree_beyond(ranges, from);
	struct tracer_range *node = link ? rangetree_node(ranges, link) : NULL;

	return node && node->start < to ? node : NULL;
}

static bool has_room(struct tracer_area *area, unsigned count)
{
	if (rangetree_has_room(area, count))
		return true;
	count_dropped(area);
	return false;
}

/* The node that goes across an address, or NULL. */
static struct tracer_range *across(struct tracer_ranges *ranges, uint64_t at)
{
	return first_in(ranges, at, at);
}

/* Makes sure that none does. */
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
		rangetree_add(&area->ranges, &upper);
}

static bool is_one(const struct tracer_range *low, const struct tracer_range *high)
{
	return low->end == high->start && low->allocation == high->allocation &&
	       low->kind == high->kind && low->stack == high->stack &&
	       low->reserve_stack == high->reserve_stack;
}

/* Makes one of neighbours that agree, from the one that ends at from to the one that starts at to. */
static void join(struct tracer_ranges *ranges, uint64_t from, uint64_t to)
{
	struct tracer_range *low = first_in(ranges, from ? from - 1 : 0, to);

	while (low && low->end <= to) {
		uint32_t next = rangetree_beyond(ranges, low->end);
		struct tracer_range *high = next ? rangetree_node(ranges, next) : NULL;

		if (!high || !is_one(low, high)) {
			low = high;
			continue;
		}
		next = rangetree_take(ranges, high->start, high->end);
		low->end = high->end;
		rangetree_free(ranges, next);
	}
}

/* ---------------------------------------------------------------- what is there */

/* Where the allocation with this base ends or, if there is none, the one below it. */
static uint64_t end_of(const struct tracer_ranges *ranges, uint64_t allocation)
{
	return rangetree_node(ranges, rangetree_last_of(ranges, allocation))->end;
}

bool ranges_find(struct tracer_area *area, uint64_t addr, struct ranges_extent *extent)
{
	struct tracer_ranges *ranges = &area->ranges;
	const struct tracer_range *node;
	uint32_t link;
	bool found;

	if (!lock(ranges))
		return false;
	link = rangetree_beyond(ranges, addr);
	node = link ? rangetree_node(ranges, link) : NULL;
	found = node && node->allocation <= addr;
	if (found)
		*extent = (struct ranges_extent){
			node->allocation, end_of(ranges, node->allocation), node->kind};
	unlock(ranges);
	return found;
}

bool ranges_is_known(struct tracer_area *area, uint64_t from, uint64_t to)
{
	struct tracer_ranges *ranges = &area->ranges;
	const struct tracer_range *node;

	if (!lock(ranges))
		return true; /* there is nothing to be done about what is not */
	while (from < to && (node = first_in(ranges, from, from + 1)))
		from = node->end;
	unlock(ranges);
	return from >= to;
}

/* ---------------------------------------------------------------- coming */

static void discard(struct tracer_ranges *ranges, uint32_t tree)
{
	while (tree)
		rangetree_free(ranges, rangetree_pop(ranges, &tree));
}

/* The allocations that overlap [from, to) are stale, even where nothing is known of what overlaps. */
static void forget_stale(struct tracer_ranges *ranges, uint64_t from, uint64_t to)
{
	const struct tracer_range *first = first_in(ranges, from, UINT64_MAX);

	if (first && first->allocation < to)
		discard(ranges, rangetree_take(ranges, first->allocation, end_of(ranges, to - 1)));
}

void ranges_add(struct tracer_area *area, const struct tracer_range *range)
{
	if (!begin(area))
		return;
	forget_stale(&area->ranges, range->start, range->end);
	if (has_room(area, 1))
		rangetree_add(&area->ranges, range);
	end(area);
}

void ranges_fill(struct tracer_area *area, const struct tracer_range *range)
{
	struct tracer_ranges *ranges = &area->ranges;
	struct tracer_range gap = *range;

	if (!begin(area))
		return;
	while (gap.start < range->end) {
		const struct tracer_range *known = first_in(ranges, gap.start, range->end);
		uint64_t next = known ? known->end : range->end;

		gap.end = known ? known->start : range->end;
		if (gap.end > gap.start && has_room(area, 1))
			rangetree_add(ranges, &gap);
		gap.start = next;
	}
	join(ranges, range->start, range->end);
	end(area);
}

/* ---------------------------------------------------------------- changing */

void ranges_use(struct tracer_area *area, uint64_t from, uint64_t to, uint32_t kind, uint32_t stack)
{
	struct tracer_ranges *ranges = &area->ranges;
	struct tracer_range *node;

	if (!begin(area))
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
	}
	end(area);
}

void ranges_give_up(struct tracer_area *area, uint64_t from, uint64_t to, uint32_t kind)
{
	struct tracer_ranges *ranges = &area->ranges;
	struct tracer_range *node;

	if (!begin(area))
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
	end(area);
}

static void set_base(struct tracer_ranges *ranges, uint64_t from, uint64_t to, uint64_t base)
{
	struct tracer_range *node;

	for (uint64_t at = from; (node = first_in(ranges, at, to)); at = node->end)
		node->allocation = base;
}

void ranges_rebase(struct tracer_area *area, uint64_t from, uint64_t to, uint64_t base)
{
	if (!begin(area))
		return;
	cut(area, from);
	cut(area, to);
	set_base(&area->ranges, from, to, base);
	join(&area->ranges, from, to);
	end(area);
}

/* ---------------------------------------------------------------- going */

/* Before they leave the tree: from outside nothing else tells them from live ones. */
static void mark_taken(struct tracer_ranges *ranges, uint64_t from, uint64_t to)
{
	struct tracer_range *node;

	for (uint64_t at = from; (node = first_in(ranges, at, to)); at = node->end)
		node->kind |= RANGE_TAKEN;
}

bool ranges_take(struct tracer_area *area, uint64_t from, uint64_t to, struct ranges_taken *taken)
{
	struct tracer_ranges *ranges = &area->ranges;
	const struct tracer_range *rest;

	*taken = (struct ranges_taken){.session = area->session};
	if (!begin(area))
		return false;
	cut(area, from);
	cut(area, to);
	mark_taken(ranges, from, to);
	taken->nodes = rangetree_take(ranges, from, to);
	rest = first_in(ranges, to, UINT64_MAX);
	if (rest && rest->allocation < to) {
		taken->base = rest->allocation;
		taken->rest = to;
		taken->rest_end = end_of(ranges, rest->allocation);
		set_base(ranges, to, taken->rest_end, to);
	}
	end(area);
	return taken->nodes || taken->rest_end;
}

void ranges_drop(struct tracer_area *area, const struct ranges_taken *taken)
{
	if (!taken->nodes || !begin(area))
		return;
	discard(&area->ranges, taken->nodes);
	end(area);
}

/* A node that was taken, unless something else is known there by now. */
static void put_back(struct tracer_ranges *ranges, uint32_t link)
{
	struct tracer_range *node = rangetree_node(ranges, link);
	uint64_t from = node->start, to = node->end;

	node->kind &= ~RANGE_TAKEN;
	if (first_in(ranges, from, to)) {
		rangetree_free(ranges, link);
		return;
	}
	rangetree_insert(ranges, link);
	join(ranges, from, to);
}

void ranges_put_back(struct tracer_area *area, const struct ranges_taken *taken)
{
	uint32_t nodes = taken->nodes;

	if (!begin(area))
		return;
	set_base(&area->ranges, taken->rest, taken->rest_end, taken->base);
	while (nodes)
		put_back(&area->ranges, rangetree_pop(&area->ranges, &nodes));
	end(area);
}

void ranges_forget(struct tracer_area *area, uint64_t from, uint64_t to)
{
	if (!begin(area))
		return;
	cut(area, from);
	cut(area, to);
	discard(&area->ranges, rangetree_take(&area->ranges, from, to));
	end(area);
}
