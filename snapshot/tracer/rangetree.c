#include "snapshot/tracer/rangetree.h"

#include "snapshot/tracer/tables.h"

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
