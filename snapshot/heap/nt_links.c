/* Traversal of linked structures that Windows' heaps share: binary trees and doubly linked lists.
 * The traversals check back pointers and are bounded, so damaged data cannot make a walk loop. */
#include "snapshot/heap/nt_heap.h"

/* Maximum depth of a tree. A red-black tree that fills the address space has 2^44 nodes, and no
 * such tree is this deep. */
#define DEPTH_MAX 96
#define PARENT_FLAGS ((uint64_t)3)

struct node {
	uint64_t addr, left, right, parent;
};

struct tree_walk {
	struct nt_walk *nt;
	const struct nt_tree *tree;
	struct node path[DEPTH_MAX]; /* nodes whose right subtree is still to be walked */
	unsigned path_count, depths[DEPTH_MAX]; /* depth of each node in path */
	uint64_t parent_key;
	bool is_parent_key_known;
};

/* A null pointer is stored as 0 even if pointers are encoded. */
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

/* Returns true if the node's parent pointer matches. The first match determines whether parent
 * pointers are encoded. */
static bool is_child_of(struct tree_walk *walk, const struct node *node, uint64_t parent)
{
	if (!walk->is_parent_key_known) {
		walk->parent_key = is_parent(node->parent, 0, parent) ? 0 : walk->tree->key;
		walk->is_parent_key_known = is_parent(node->parent, walk->parent_key, parent);
	}
	return is_parent(node->parent, walk->parent_key, parent);
}

static const char unreadable[] = "unreadable tree";

/* Reads the node at `addr`, which is a child of `parent`, or the root if `parent` is 0. Returns
 * NULL or a description of the fault. */
static const char *node_at(
	struct tree_walk *walk, uint64_t addr, uint64_t parent, unsigned depth, struct node *node)
{
	if (depth == DEPTH_MAX)
		return "endless tree";
	/* Misaligned nodes are refused. Because the low bits of a parent pointer are flags, two
	 * overlapping nodes could otherwise both match one child. */
	if (addr & PARENT_FLAGS || (parent && addr == child(walk->tree, walk->tree->root)))
		return "broken tree";
	if (!node_read(walk, addr, node))
		return unreadable;
	return parent && !is_child_of(walk, node, parent) ? "broken tree" : NULL;
}

/* Pushes a node and its chain of left descendants onto the path. `parent` is 0 for the root. */
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

#define LIST_ENTRIES_MAX ((uint32_t)1 << 24)

bool nt_list_entry(struct nt_walk *nt)
{
	if (nt->list_entries == LIST_ENTRIES_MAX)
		return false;
	nt->list_entries++;
	return true;
}

int nt_list_walk(struct nt_walk *nt, const struct nt_list *list)
{
	unsigned pointer_bytes = nt->process->bits / 8;
	uint64_t link = list->head, previous = list->head, last = 0, next, back;
	int rc = 0;

	for (;;) {
		const unsigned char *bytes = memory_at(nt->memory, link, (size_t)pointer_bytes * 2);
		uint64_t key = list->is_coded ? link : 0;

		if (!bytes)
			return walk_missing(nt->walk, link, "unreadable list");
		next = bytes_ptr(bytes, nt->process->bits) ^ key;
		back = bytes_ptr(bytes + pointer_bytes, nt->process->bits) ^ key;
		if (link == list->head)
			last = back;
		else if (back != previous)
			return walk_broken(nt->walk, link, "broken list");
		else
			rc = list->each(list->ctx, link);
		if (!rc && next == list->head && link != last)
			return walk_broken(nt->walk, link, "list that ends too early");
		if (rc || next == list->head)
			return rc;
		if (!nt_list_entry(nt))
			return walk_broken(nt->walk, link, "endless lists");
		previous = link;
		link = next;
	}
}
