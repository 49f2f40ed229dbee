/*
 * For the tests of dumps: the modules, heaps and entries of a dump read back into a snapshot; entries that are
 * sums become one block each.
 */
#ifndef TESTS_UNIT_LOAD_DUMP_H
#define TESTS_UNIT_LOAD_DUMP_H

#include <string.h>

#include "core/dump/dump.h"
#include "core/dump/model.h"
#include "core/dump/source.h"

struct loader {
	struct snapshot *snapshot;
	struct module_list modules;
	uint32_t heap; /* of the entries that come */
};

static int load_module(void *ctx, uint64_t base, uint64_t size_bytes, const char *path, size_t len)
{
	return module_list_add(&((struct loader *)ctx)->modules, base, size_bytes, path, len);
}

static uint32_t heap_by_addr(struct snapshot *snapshot, uint64_t addr)
{
	uint32_t heap = 0;

	while (heap < snapshot->heap_count && snapshot->heaps[heap].addr != addr)
		heap++;
	if (heap == snapshot->heap_count)
		snapshot_add_heap(snapshot)->addr = addr;
	return heap;
}

static int load_heap(void *ctx, uint64_t addr)
{
	struct loader *loader = ctx;

	loader->heap = heap_by_addr(loader->snapshot, addr);
	return 0;
}

static int load_entry(void *ctx, const struct dump_entry *entry)
{
	struct loader *loader = ctx;
	struct snapshot *snapshot = loader->snapshot;
	struct block block = {.addr = entry->addr,
		.requested_bytes = entry->requested_bytes,
		.overhead_bytes = entry->overhead_bytes};

	if (loader->heap == UINT32_MAX)
		loader->heap = heap_by_addr(snapshot, 0);
	block.heap = loader->heap;
	stackset_put(&snapshot->stacks, &entry->stack, entry->id_len, &block.stack);
	*snapshot_add_block(snapshot) = block;
	return 0;
}

static void loader_init(struct loader *loader, struct snapshot *snapshot, struct dump_sink *sink)
{
	*loader = (struct loader){.snapshot = snapshot, .heap = UINT32_MAX};
	module_list_init(&loader->modules, &snapshot->arena);
	*sink = (struct dump_sink){
		.ctx = loader, .module = load_module, .heap = load_heap, .entry = load_entry};
}

/* Hands the modules over to the snapshot, which has none yet. */
static void loader_finish(struct loader *loader)
{
	struct snapshot *snapshot = loader->snapshot;

	module_list_finish(&loader->modules);
	snapshot->modules = loader->modules.items;
	snapshot->module_count = loader->modules.count;
	snapshot->module_cap = loader->modules.cap;
	loader->modules.items = NULL;
	module_list_release(&loader->modules);
}

/* A file, packed or not, from its path. */
static inline int dump_scan_file(const char *path, const struct dump_sink *sink, struct err *err)
{
	struct dump_source source;
	struct source *file;
	int rc = source_open(&file, path, err);

	if (rc)
		return rc;
	source = source_stream(file);
	rc = dump_scan(&source, sink, err);
	source_close(file);
	return rc;
}

/* Fills a snapshot (initialised by the caller, who also releases it). Errors as dump_scan(). */
static inline int dump_load_file(struct snapshot *snapshot, const char *path, struct err *err)
{
	struct dump_sink sink;
	struct loader loader;
	int rc;

	loader_init(&loader, snapshot, &sink);
	rc = dump_scan_file(path, &sink, err);
	loader_finish(&loader);
	return rc;
}

#endif
