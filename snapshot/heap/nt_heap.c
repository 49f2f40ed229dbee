#include "snapshot/heap/nt_heap.h"

#include <stdlib.h>

#include <strings.h>

#include "core/pe/pe.h"

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
			return walk_broken(nt->walk, link, "list that ends early");
		if (rc || next == list->head)
			return rc;
		if (!nt_list_entry(nt))
			return walk_broken(nt->walk, link, "lists of no end");
		previous = link;
		link = next;
	}
}

bool nt_module_scan(struct nt_walk *nt, const char *name,
	bool (*section)(void *ctx, uint64_t addr, const struct pe_section *section), void *ctx)
{
	struct target *target = nt->memory->target;
	struct pe_image *image = malloc(sizeof(*image));
	struct snapshot modules;
	struct err err;
	bool found = false;

	snapshot_init(&modules);
	if (!image || target->ops->modules(target, &modules, &err))
		modules.module_count = 0;
	for (size_t i = 0; !found && i < modules.module_count; i++) {
		const struct module *module = &modules.modules[i];
		struct target_image at = {target, module->base};
		const struct pe_source source = target_image_source(&at);

		if (!module->path || strcasecmp(module_path_base(module->path), name) != 0 ||
			pe_read_headers(&source, image) || image->bits != nt->process->bits)
			continue;
		for (size_t k = 0; !found && k < image->section_count; k++)
			found = section(
				ctx, module->base + image->sections[k].rva, &image->sections[k]);
	}
	snapshot_release(&modules);
	free(image);
	return found;
}

/* A heap of a kind that nobody here knows. */
static int unknown_heap(struct nt_walk *nt, uint64_t addr)
{
	struct heap heap = {
		.addr = addr, .bits = nt->process->bits, .kind = "unknown", .unwalked = true};

	return walk_add_heap(nt->walk, &heap);
}

/* The kinds of heaps that Windows lists, by the signature that each has at one place. */
static const struct nt_heap_kind {
	uint32_t signature;
	int (*walk)(struct nt_walk *nt, uint64_t addr);
} kinds[] = {
	{NT_HEAP_SIGNATURE, nt_backend_walk},
	{SEGMENT_HEAP_SIGNATURE, segment_heap_walk},
};

static int walk_heap(struct nt_walk *nt, uint64_t addr)
{
	uint32_t signature = 0;

	if (page_heap_knows(nt, addr))
		return 0;
	if (memory_u32(nt->memory, addr + NT_HEAP_SIGNATURE_AT(nt->process->bits), &signature))
		walk_missing(nt->walk, addr, "unreadable heap");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (signature == kinds[i].signature)
			return kinds[i].walk(nt, addr);
	}
	return unknown_heap(nt, addr);
}

/* The heaps of one PEB; a 32-bit process has two of them. */
static int walk_process(struct memory *memory, uint64_t peb, unsigned bits, struct walk *walk,
	struct claims *claims, struct err *err)
{
	struct nt_process process;
	struct nt_walk nt = {.memory = memory,
		.process = &process,
		.walk = walk,
		.claims = *claims,
		.probes_left = NT_PROBES};
	int rc = nt_process_read(&process, memory, peb, bits, err);

	if (rc)
		return rc;
	rc = page_heaps_walk(&nt);
	for (size_t i = 0; !rc && i < process.heap_count; i++)
		rc = walk_heap(&nt, process.heaps[i]);
	for (size_t i = 0; !rc && i < nt.behind_count; i++)
		rc = walk_heap(&nt, nt.behind[i]);
	if (process.is_heap_list_cut)
		walk_missing(walk, peb, "unreadable heap list");
	if (process.is_heap_twice)
		walk_broken(walk, peb, "heap that is listed twice");
	free(nt.behind);
	nt_process_release(&process);
	*claims = nt.claims;
	return rc;
}

static int walk_all(struct memory *memory, uint64_t first_heap, struct walk *walk, struct err *err)
{
	struct target *target = memory->target;
	struct claims claims;
	struct err host_err;
	uint64_t addr;
	int rc;

	(void)first_heap;
	claims_init(&claims, target_committed_bytes(target));
	rc = walk_process(memory, target->peb, target->bits, walk, &claims, err);
	if (!rc && target->host_peb) {
		rc = walk_process(memory, target->host_peb, 64, walk, &claims, &host_err);
		/* The process is the 32-bit one; its host's heaps may be missing from a file. */
		if (rc && rc != -ERR_NOMEM)
			rc = walk_missing(walk, target->host_peb, "unreadable 64-bit PEB");
	}
	if (extents_sort(&claims.extents, &addr))
		walk_broken(walk, addr, "memory that two heaps claim");
	claims_release(&claims);
	return rc;
}

static bool is_process_busy(struct memory *memory, uint64_t peb, unsigned bits)
{
	struct nt_process process;
	bool busy = false;

	if (nt_process_read(&process, memory, peb, bits, NULL))
		return false;
	for (size_t i = 0; !busy && i < process.heap_count; i++)
		busy = nt_heap_is_busy(memory, &process, process.heaps[i]);
	nt_process_release(&process);
	return busy;
}

static bool is_busy(struct target *target, uint64_t first_heap)
{
	struct memory memory;
	bool busy;

	(void)first_heap;
	if (memory_init(&memory, target))
		return false;
	busy = is_process_busy(&memory, target->peb, target->bits) ||
	       (target->host_peb && is_process_busy(&memory, target->host_peb, 64));
	memory_release(&memory);
	return busy;
}

const struct heap_walker heap_walker_nt = {
	.is_busy = is_busy,
	.walk = walk_all,
};
