/* The parts of what the tracer knows: order of blocks, unloaded modules, virtual ranges. */
#ifndef SNAPSHOT_STACKS_TRACER_PARTS_H
#define SNAPSHOT_STACKS_TRACER_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"
#include "core/dump/model.h"
#include "snapshot/tracer/shared.h"

/* Where in ordered blocks the parts of their address space begin, all parts being of one size: blocks
 * lie close together, so a part has few. */
struct tracer_index {
	uint64_t first; /* address of the first block */
	unsigned shift; /* a part has 1 << shift bytes */
	uint32_t *starts; /* of each part, and the end of the last; NULL: there is no index */
	size_t part_count;
};

/*
 * Modules that a target has unloaded, as its tracer remembers them, and which of its frames lie in
 * them.
 *
 * One address may have belonged to several modules, one after the other. Frames in such a module are
 * moved to a base of its own, where nothing else can lie, so that every reader of a dump finds the
 * module and the offset without knowing of all this. Where that is depends on nothing but the list of
 * such modules, which only grows: it is the same in all dumps of one process.
 */

/* Frames in a module that is gone and not known any more are at their address plus this: in no module.
 * An address of a program is far below. */
#define TRACER_LOST_BASE ((uint64_t)1 << 62)

struct tracer_unloaded; /* one module */

struct tracer_modules {
	struct arena arena; /* of texts */
	struct tracer_unloaded *items; /* each identity once, in the order of their records */
	size_t count;
	struct tracer_extent *extents; /* of each unload, in their order */
	size_t extent_count;
	/* Ends of extents, sorted, and a tree over what is between them: which unloads cover it. */
	uint64_t *edges;
	size_t edge_count;
	uint32_t *first, *list;
	size_t unplaced_count; /* for which there was no room in the address space */
};

void tracer_modules_init(struct tracer_modules *modules);
void tracer_modules_release(struct tracer_modules *modules);

/*
 * Takes record_bytes of module records and unload_count unloads, in the target's form, into modules,
 * which were just initialised. 0, or -ERR_TARGET when they cannot be.
 */
int tracer_modules_parse(struct tracer_modules *modules, const unsigned char *records,
	size_t record_bytes, const unsigned char *unloads, size_t unload_count);

/* Chooses their bases. live, sorted, is what they must keep clear of in a 32-bit address space; in a
 * 64-bit one nothing can be in their way. */
void tracer_modules_place(struct tracer_modules *modules, unsigned bits, const struct module *live,
	size_t live_count);

/* The unload, among extent_count, by which the module of a return address went, of a stack that was handed out after
 * born of them; SIZE_MAX: it is still there, if there was any. */
size_t tracer_modules_find(const struct tracer_modules *modules, uint32_t born, uint64_t addr);

/* Fills *module with what was unloaded, at the base that it had. False: there was no room to say what. */
bool tracer_modules_unload(
	const struct tracer_modules *modules, size_t number, struct module *module);

/* Where a return address of a stack that was handed out after born unloads is to be found in a dump:
 * the same address, or one in a module that is gone, which then counts as used, or with
 * TRACER_LOST_BASE. */
uint64_t tracer_modules_resolve(const struct tracer_modules *modules, uint32_t born, uint64_t addr);

/* Adds those that were used to the snapshot's modules, and sorts these. */
void tracer_modules_list(const struct tracer_modules *modules, struct snapshot *snapshot);

/*
 * Virtual memory that did not come from a heap, as the tracer knows it, read from outside.
 */

struct tracer_range_list {
	struct tracer_range *items; /* by address; none overlaps another */
	size_t count;
	/* Nodes that could not be: without an extent, of no kind, outside the address space, or on top
	 * of another while both are live. */
	uint64_t broken_count;
};

void tracer_ranges_release(struct tracer_range_list *list);

/*
 * Takes the nodes that are not free out of node_count nodes, in the target's form; of those that are
 * RANGE_TAKEN the ones where nothing else is, without the mark.
 */
void tracer_ranges_parse(
	struct tracer_range_list *list, const unsigned char *nodes, size_t node_count);

#endif
