/* Parts of a tracer's copy: the index of blocks, unloaded modules, virtual ranges. */
#ifndef SNAPSHOT_STACKS_TRACER_PARTS_H
#define SNAPSHOT_STACKS_TRACER_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/memory.h"
#include "core/dump/model.h"
#include "snapshot/tracer/shared.h"

/* Index of sorted blocks. It divides their address space into parts of equal size and stores where
 * each part begins. Blocks lie close together, so a part has few. */
struct tracer_index {
	uint64_t first; /* address of the first block */
	unsigned shift; /* a part covers 1 << shift bytes */
	uint32_t *starts; /* first block of each part, and the end of the last; NULL: no index */
	size_t part_count;
};

/*
 * Modules that a target has unloaded, as recorded by its tracer, and the frames in them.
 *
 * Several modules may have occupied one address, one after another. Frames in an unloaded module
 * are moved to a base of its own, where nothing else can lie. So every reader of a dump finds the
 * module and the offset without special handling. The base depends only on the list of unloaded
 * modules, which only grows, so it is identical in all dumps of one process. */

/* Added to the addresses of frames in an unloaded module that is no longer known, so that they lie
 * in no module. A program's addresses are far below. */
#define TRACER_LOST_BASE ((uint64_t)1 << 62)

struct tracer_unloaded; /* one module */

struct tracer_modules {
	struct arena arena; /* owns texts */
	struct tracer_unloaded *items; /* distinct modules, in the order of their records */
	size_t count;
	struct tracer_extent *extents; /* one for each unload, in order */
	size_t extent_count;
	/* Ends of extents, sorted, and a segment tree over the ranges between them, which lists the
	 * unloads that cover each. */
	uint64_t *edges;
	size_t edge_count;
	uint32_t *first, *list;
	size_t unplaced_count; /* modules for which the address space had no room */
};

void tracer_modules_init(struct tracer_modules *modules);
void tracer_modules_release(struct tracer_modules *modules);

/*
 * Parses record_bytes of module records and unload_count unloads, in the target's form, into
 * freshly initialised modules. Returns 0, or -ERR_TARGET if they are invalid. */
int tracer_modules_parse(struct tracer_modules *modules, const unsigned char *records,
	size_t record_bytes, const unsigned char *unloads, size_t unload_count);

/* Chooses the modules' bases. live is sorted. In a 32-bit address space the bases avoid live; in a
 * 64-bit one nothing can be in their way. */
void tracer_modules_place(struct tracer_modules *modules, unsigned bits, const struct module *live,
	size_t live_count);

/* Finds the unload of the module that contained a return address. born: number of unloads before
 * the stack was handed out. Returns a number below extent_count, or SIZE_MAX if the module is still
 * loaded or there was none. */
size_t tracer_modules_find(const struct tracer_modules *modules, uint32_t born, uint64_t addr);

/* Fills *module with the module of an unload, at its original base. Returns false if the tracer had
 * no room to record the module. */
bool tracer_modules_unload(
	const struct tracer_modules *modules, size_t number, struct module *module);

/* Returns the address in a dump of a return address. born: number of unloads before the stack was
 * handed out. The result is the same address, an address in an unloaded module, which then counts
 * as used, or the address plus TRACER_LOST_BASE. */
uint64_t tracer_modules_resolve(const struct tracer_modules *modules, uint32_t born, uint64_t addr);

/* Adds the used modules to the snapshot's and sorts these. */
void tracer_modules_list(const struct tracer_modules *modules, struct snapshot *snapshot);

/* Virtual memory outside of heaps, as recorded by the tracer. */

struct tracer_range_list {
	struct tracer_range *items; /* sorted by address, without overlaps */
	size_t count;
	/* Invalid nodes: empty, of unknown kind, outside of the address space, or overlapping
	 * another while both are live. */
	uint64_t broken_count;
};

void tracer_ranges_release(struct tracer_range_list *list);

/*
 * Parses the nodes that are not free among node_count nodes, in the target's form. Nodes with
 * RANGE_TAKEN remain, without the mark, if nothing else is in their place. */
void tracer_ranges_parse(
	struct tracer_range_list *list, const unsigned char *nodes, size_t node_count);

#endif
