#include "snapshot/heap/nt/nt_tree.h"

/* The deepest red-black tree of 2^44 nodes, which fill the address space, is not as deep. */
#define DEPTH_MAX 96
#define PARENT_FLAGS ((uint64_t)3)

struct node {
	uint64_t addr, left, right, parent;
};

struct tree_walk {
	struct nt_walk *nt;
	const struct nt_tree *tree;
	struct node path[DEPTH_MAX]; /* nodes whose right part is still to come */
	unsigned path_count, depths[DEPTH_MAX]; /* of each: how deep it lies */
	uint64_t parent_key;
	bool is_parent_key_known;
};

/* NULL is NULL, encoded or not. */
static uint64_t child(const struct nt_tree *tree, uint64_t stored)
{
	return stored ? stored ^ tree->key : 0;
}

static bool node_read(struct tree_walk *walk, uint64_t addr, struct node *node)
{
	const struct nt_tree *tree = walk->tree;
	struct memory *memory = walk->nt->memory;
	unsigned bits = walk->nt->process->bits;

	node->addr = addr;
	if (memory_ptr(memory, bits, addr + tree->left, &node->left) ||
		memory_ptr(memory, bits, addr + tree->right, &node->right) ||
		memory_ptr(memory, bits, addr + tree->parent, &node->parent))
		return false;
	node->left = child(tree, node->left);
	node->right = child(tree, node->right);
	return true;
}

static bool is_parent(uint64_t stored, uint64_t key, uint64_t parent)
{
	return (stored & ~PARENT_FLAGS) == ((parent ^ key) & ~PARENT_FLAGS);
}

/* Whether a node hangs on that parent; the first child that does says how parents are stored. */
static bool is_child_of(struct tree_walk *walk, const struct node *node, uint64_t parent)
{
	if (!walk->is_parent_key_known) {
		walk->parent_key = is_parent(node->parent, 0, parent) ? 0 : walk->tree->key;
		walk->is_parent_key_known = is_parent(node->parent, walk->parent_key, parent);
	}
	return is_parent(node->parent, walk->parent_key, parent);
}

static const char unreadable[] = "unreadable tree";

/* Reads a child of parent, or (parent 0) the root. NULL, or what is wrong with it. */
static const char *node_at(
	struct tree_walk *walk, uint64_t addr, uint64_t parent, unsigned depth, struct node *node)
{
	if (depth == DEPTH_MAX)
		return "tree of no end";
	/* Nodes that overlap could have one child in common, whose parent's low bits are flags. */
	if (addr & PARENT_FLAGS || (parent && addr == child(walk->tree, walk->tree->root)))
		return "broken tree";
	if (!node_read(walk, addr, node))
		return unreadable;
	return parent && !is_child_of(walk, node, parent) ? "broken tree" : NULL;
}

/* Goes from a node down its left children. parent 0: it is the root. */
static void descend(struct tree_walk *walk, uint64_t addr, uint64_t parent, unsigned depth)
{
	struct node node;

	for (; addr; addr = node.left) {
		const char *fault = node_at(walk, addr, parent, depth, &node);

		if (fault == unreadable)
			walk_missing(walk->nt->walk, addr, fault);
		else if (fault)
			walk_broken(walk->nt->walk, addr, fault);
		if (fault)
			return;
		if (node.left && node.left == node.right) {
			walk_broken(walk->nt->walk, addr, "broken tree");
			node.left = 0;
		}
		walk->depths[walk->path_count] = ++depth;
		walk->path[walk->path_count++] = node;
		parent = addr;
	}
}

int nt_tree_walk(struct nt_walk *nt, const struct nt_tree *tree)
{
	struct tree_walk walk = {.nt = nt, .tree = tree};
	int rc = 0;

	descend(&walk, child(tree, tree->root), 0, 0);
	while (!rc && walk.path_count) {
		struct node node = walk.path[--walk.path_count];
		unsigned depth = walk.depths[walk.path_count];

		rc = tree->each(tree->ctx, node.addr);
		if (!rc)
			descend(&walk, node.right, node.addr, depth);
	}
	return rc < 0 ? rc : 0;
}
