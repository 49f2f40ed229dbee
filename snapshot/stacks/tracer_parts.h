/* Parts of a copy of a tracer's tables: the index of blocks, unloaded modules, and virtual
 * ranges. */
#ifndef SNAPSHOT_STACKS_TRACER_PARTS_H
#define SNAPSHOT_STACKS_TRACER_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"
#include "core/dump/model.h"
#include "snapshot/tracer/shared.h"

/* Index of sorted blocks. It divides the address range of the blocks into parts of equal size, and
 * stores the position at which each part begins. Blocks are close together, so a part contains only
 * a few. */
struct tracer_index {
	uint64_t first; /* address of the first block */
	unsigned shift; /* a part covers 1 << shift bytes */
	/* Index of the first block of each part, and the end of the last part; NULL: no index. */
	uint32_t *starts;
	size_t part_count;
};

/* Sorts blocks by address. */
void tracer_blocks_sort(struct tracer_block *blocks, size_t count);

/* Builds the index of sorted blocks. If memory is short, builds no index, and lookups take
 * longer. */
void tracer_index_build(
	struct tracer_index *index, const struct tracer_block *blocks, size_t count);
void tracer_index_release(struct tracer_index *index);

/* Returns the part that contains an address. The address must not be below that of the first
 * block. */
static inline size_t tracer_index_part(const struct tracer_index *index, uint64_t addr)
{
	return (size_t)((addr - index->first) >> index->shift);
}

/*
 * Modules that a target has unloaded, as recorded by its tracer, and the frames in these modules.
 *
 * Several modules may have occupied one address, one after another. So frames in an unloaded module
 * are moved to a base address that is used for nothing else. Every reader of a dump then finds the
 * module and the offset without special handling. The base depends only on the list of unloaded
 * modules. Because that list only grows, the base is the same in all dumps of one process.
 */

/* Value that is added to a frame whose module was unloaded and is no longer known. The result is
 * outside all modules, because the addresses of programs are far below this value. */
#define TRACER_LOST_BASE ((uint64_t)1 << 62)

struct tracer_unloaded; /* one module */

struct tracer_modules {
	struct arena arena; /* owns the strings */
	struct tracer_unloaded *items; /* distinct modules, in the order of their records */
	size_t count;
	struct tracer_extent *extents; /* one per unload, in order */
	size_t extent_count;
	/* Sorted ends of the extents, and a segment tree over the ranges between the ends. The tree
	 * lists the unloads that cover each range. */
	uint64_t *edges;
	size_t edge_count;
	uint32_t *first, *list;
	size_t unplaced_count; /* number of modules for which there was no address space */
};

void tracer_modules_init(struct tracer_modules *modules);
void tracer_modules_release(struct tracer_modules *modules);

/*
 * Parses `record_bytes` bytes of module records and `unload_count` unloads, as stored in the
 * target. `modules` must be newly initialised. Returns 0, or -ERR_TARGET if the data is invalid.
 */
int tracer_modules_parse(struct tracer_modules *modules, const unsigned char *records,
	size_t record_bytes, const unsigned char *unloads, size_t unload_count);

/* Chooses the bases of the modules. `live` is sorted. In a 32-bit address space, the bases avoid
 * the live modules. In a 64-bit address space, nothing can conflict with the bases. */
void tracer_modules_place(struct tracer_modules *modules, unsigned bits, const struct module *live,
	size_t live_count);

/* Finds the unload of the module that contained a return address, and returns its index. Returns
 * SIZE_MAX if the module is still loaded or there was no module. `born` is the number of unloads
 * before the stack's id was assigned. */
size_t tracer_modules_find(const struct tracer_modules *modules, uint32_t born, uint64_t addr);

/* Fills *module with the module of an unload, at its original base. Returns false if the module
 * could not be recorded for lack of room. */
bool tracer_modules_unload(
	const struct tracer_modules *modules, size_t number, struct module *module);

/* Returns the address that represents a return address in a dump: the same address; an address in
 * an unloaded module, which is then marked as used; or the address plus TRACER_LOST_BASE. `born` is
 * the number of unloads before the stack's id was assigned. */
uint64_t tracer_modules_resolve(const struct tracer_modules *modules, uint32_t born, uint64_t addr);

/* Adds the used modules to the modules of the snapshot, and sorts these. */
void tracer_modules_list(const struct tracer_modules *modules, struct snapshot *snapshot);

/* Virtual memory outside of heaps, as recorded by the tracer. */

struct tracer_range_list {
	struct tracer_range *items; /* sorted by address, without overlaps */
	size_t count;
	/* Number of invalid nodes. A node is invalid if it is empty, of unknown kind, outside the
	 * address space, or live and overlaps another live node. */
	uint64_t broken_count;
};

void tracer_ranges_release(struct tracer_range_list *list);

/*
 * Parses `node_count` nodes, as stored in the target. Skips free nodes. A node with RANGE_TAKEN
 * remains, without this mark, if no other node has taken its place.
 */
void tracer_ranges_parse(
	struct tracer_range_list *list, const unsigned char *nodes, size_t node_count);

#endif
