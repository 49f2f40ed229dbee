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
	uint64_t root;
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

static bool broken(struct tree_walk *walk, uint64_t addr, const char *what)
{
	walk_broken(walk->nt->walk, addr, what);
	return false;
}

/*
 * Goes from a node down its left children. parent 0: it is the root. False: the tree is broken there.
 * A node is entered only from its parent, and the root only once: so no node is met twice.
 */
static bool descend(struct tree_walk *walk, uint64_t addr, uint64_t parent, unsigned depth)
{
	struct node node;

	for (; addr; addr = node.left) {
		if (depth == DEPTH_MAX)
			return broken(walk, addr, "tree of no end");
		if (!node_read(walk, addr, &node))
			return broken(walk, addr, "unreadable tree");
		if ((parent && (addr == walk->root || !is_child_of(walk, &node, parent))) ||
			(node.left && node.left == node.right))
			return broken(walk, addr, "broken tree");
		walk->depths[walk->path_count] = ++depth;
		walk->path[walk->path_count++] = node;
		parent = addr;
	}
	return true;
}

int nt_tree_walk(struct nt_walk *nt, const struct nt_tree *tree)
{
	struct tree_walk walk = {.nt = nt, .tree = tree};
	bool sound;
	int rc = 0;

	walk.root = child(tree, tree->root);
	sound = descend(&walk, walk.root, 0, 0) || tree->goes_on;
	while (sound && !rc && walk.path_count) {
		struct node node = walk.path[--walk.path_count];
		unsigned depth = walk.depths[walk.path_count];

		rc = tree->each(tree->ctx, node.addr);
		sound = rc || descend(&walk, node.right, node.addr, depth) || tree->goes_on;
	}
	return rc < 0 ? rc : 0;
}
