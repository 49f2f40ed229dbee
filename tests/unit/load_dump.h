/*
 * For the tests of dumps: a dump read back into a snapshot, whose entries that are sums become one
 * block each.
 */
#ifndef TESTS_UNIT_LOAD_DUMP_H
#define TESTS_UNIT_LOAD_DUMP_H

#include <string.h>

#include "core/base/parse.h"
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

static int heap_by_addr(struct snapshot *snapshot, uint64_t addr, uint32_t *index)
{
	struct heap *heap;

	for (size_t i = 0; i < snapshot->heap_count; i++) {
		if (snapshot->heaps[i].addr == addr) {
			*index = (uint32_t)i;
			return 0;
		}
	}
	heap = snapshot->heap_count < UINT32_MAX ? snapshot_add_heap(snapshot) : NULL;
	if (!heap)
		return -ERR_NOMEM;
	heap->addr = addr;
	*index = (uint32_t)snapshot->heap_count - 1;
	return 0;
}

static int load_heap(void *ctx, uint64_t addr)
{
	struct loader *loader = ctx;

	return heap_by_addr(loader->snapshot, addr, &loader->heap);
}

static int load_entry(void *ctx, const struct dump_entry *entry)
{
	struct loader *loader = ctx;
	struct snapshot *snapshot = loader->snapshot;
	struct block block = {.addr = entry->addr,
		.requested_bytes = entry->requested_bytes,
		.overhead_bytes = entry->overhead_bytes};
	struct block *added;

	if (loader->heap == UINT32_MAX && heap_by_addr(snapshot, 0, &loader->heap))
		return -ERR_NOMEM;
	block.heap = loader->heap;
	if (stackset_put(&snapshot->stacks, &entry->stack, entry->id_len, &block.stack))
		return -ERR_NOMEM;
	added = snapshot_add_block(snapshot);
	if (!added)
		return -ERR_NOMEM;
	*added = block;
	return 0;
}

static const char *keep(struct snapshot *snapshot, const struct kv *kv, const char *key)
{
	const char *value = kv_get(kv, key);

	return value ? arena_text(&snapshot->arena, value, strlen(value)) : NULL;
}

static int note_dump(struct snapshot *snapshot, const struct kv *kv)
{
	const char *time = kv_get(kv, "time");

	return time ? date_parse(time, &snapshot->time_ms) : 0;
}

static int note_process(struct snapshot *snapshot, const struct kv *kv)
{
	const char *start = kv_get(kv, "start");
	uint32_t bits = 0;
	int rc = kv_get_u32(kv, "id", 10, &snapshot->pid);

	if (!rc)
		rc = kv_get_u32(kv, "bits", 10, &bits);
	if (!rc)
		rc = kv_get_u32(kv, "parent", 10, &snapshot->parent_pid);
	if (!rc && start)
		rc = date_parse(start, &snapshot->start_ms);
	snapshot->bits = bits;
	snapshot->image = keep(snapshot, kv, "image");
	snapshot->os = keep(snapshot, kv, "os");
	return rc;
}

static int note_stacks(struct snapshot *snapshot, const struct kv *kv)
{
	snapshot->stack_source = keep(snapshot, kv, "source");
	return 0;
}

static int note_sums(struct snapshot *snapshot, const struct kv *kv)
{
	const char *by = kv_get(kv, "by");

	snapshot->is_by_stack = by && !strcmp(by, "stack");
	return 0;
}

static int note_warning(struct snapshot *snapshot, const struct kv *kv)
{
	const char *text = kv_get(kv, "text");

	if (text)
		snapshot_warn(snapshot, "%s", text);
	return 0;
}

struct number {
	const char *key;
	uint64_t *value;
};

static int get_numbers(const struct kv *kv, const struct number *numbers, size_t count)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < count; i++)
		rc = kv_get_number(kv, numbers[i].key, 10, numbers[i].value);
	return rc;
}

static int note_ust(struct snapshot *snapshot, const struct kv *kv)
{
	struct stack_records read = {.is_known = true};
	const struct number numbers[] = {
		{"records", &read.record_count},
		{"broken-records", &read.broken_count},
		{"cut-records", &read.cut_count},
		{"entries", &read.entry_count},
		{"lookups", &read.lookup_count},
		{"failures", &read.failure_count},
		{"indexed", &read.indexed_count},
		{"chained", &read.chained_count},
		{"used", &read.used_bytes},
		{"reserved", &read.reserved_bytes},
	};
	int rc = kv_get_number(kv, "database", 16, &read.database);

	if (!rc)
		rc = get_numbers(kv, numbers, sizeof(numbers) / sizeof(*numbers));
	if (!rc)
		snapshot->records = read;
	return rc;
}

static int note_heap(struct snapshot *snapshot, const struct kv *kv)
{
	uint64_t addr = 0, unwalked = 0;
	struct heap *heap;
	uint32_t index, bits = 0;
	int rc = kv_get_number(kv, "addr", 16, &addr);

	if (!rc)
		rc = heap_by_addr(snapshot, addr, &index);
	if (rc)
		return rc;
	heap = &snapshot->heaps[index];
	heap->kind = keep(snapshot, kv, "kind");
	heap->layout = keep(snapshot, kv, "layout");
	heap->has_exact = kv_get(kv, "exact-blocks") != NULL;
	rc = kv_get_u32(kv, "bits", 10, &bits);
	heap->bits = bits;
	if (!rc) {
		const struct number numbers[] = {
			{"committed", &heap->committed_bytes},
			{"reserved", &heap->reserved_bytes},
			{"stackless-blocks", &heap->stackless.block_count},
			{"stackless-requested", &heap->stackless.requested_bytes},
			{"stackless-overhead", &heap->stackless.overhead_bytes},
			{"exact-blocks", &heap->exact.block_count},
			{"exact-requested", &heap->exact.requested_bytes},
			{"exact-overhead", &heap->exact.overhead_bytes},
			{"unwalked", &unwalked},
		};

		rc = get_numbers(kv, numbers, sizeof(numbers) / sizeof(*numbers));
	}
	heap->unwalked = unwalked != 0;
	return rc;
}

static int note_tracer(struct snapshot *snapshot, const struct kv *kv)
{
	struct tracer_facts read = {.sample_bytes = snapshot->tracer.sample_bytes};
	uint64_t attached = 0;
	const struct number numbers[] = {
		{"dropped-blocks", &read.dropped_blocks},
		{"dropped-stacks", &read.dropped_stacks},
		{"dropped-ranges", &read.dropped_ranges},
		{"dropped-unloads", &read.dropped_unloads},
		{"mismatches", &read.mismatch_count},
		{"attached", &attached},
		{"before-blocks", &read.before.block_count},
		{"before-requested", &read.before.requested_bytes},
		{"before-overhead", &read.before.overhead_bytes},
		{"limit", &read.limit_bytes},
		{"committed", &read.committed_bytes},
	};
	int rc = kv_get_u32(kv, "version", 10, &read.version);

	if (!rc)
		rc = get_numbers(kv, numbers, sizeof(numbers) / sizeof(*numbers));
	read.is_attached = attached != 0;
	if (!rc)
		snapshot->tracer = read;
	return rc;
}

static int note_sample(struct snapshot *snapshot, const struct kv *kv)
{
	return kv_get_number(kv, "bytes", 10, &snapshot->tracer.sample_bytes);
}

static int note_incomplete(struct snapshot *snapshot, const struct kv *kv)
{
	return kv_get_number(kv, "missing", 10, &snapshot->missing_count);
}

static int load_note(void *ctx, const char *kind, const struct kv *kv)
{
	static const struct {
		const char *kind;
		int (*load)(struct snapshot *snapshot, const struct kv *kv);
	} notes[] = {
		{"dump", note_dump},
		{"process", note_process},
		{"stacks", note_stacks},
		{"sums", note_sums},
		{"ust", note_ust},
		{"tracer", note_tracer},
		{"sample", note_sample},
		{"warning", note_warning},
		{"heap", note_heap},
		{"incomplete", note_incomplete},
	};
	struct loader *loader = ctx;

	if (!strcmp(kind, "module"))
		return module_list_note(&loader->modules, kv);
	for (size_t i = 0; i < sizeof(notes) / sizeof(*notes); i++) {
		if (!strcmp(kind, notes[i].kind))
			return notes[i].load(loader->snapshot, kv);
	}
	return 0; /* notes of later versions: skipped */
}

static void loader_init(struct loader *loader, struct snapshot *snapshot, struct dump_sink *sink)
{
	*loader = (struct loader){.snapshot = snapshot, .heap = UINT32_MAX};
	module_list_init(&loader->modules, &snapshot->arena);
	*sink = (struct dump_sink){.ctx = loader,
		.module = load_module,
		.heap = load_heap,
		.entry = load_entry,
		.note = load_note};
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

/* Fills a snapshot (initialised by the caller, who also releases it). Errors as dump_scan(). */
static inline int dump_load(
	struct snapshot *snapshot, const struct dump_source *source, struct err *err)
{
	struct dump_sink sink;
	struct loader loader;
	int rc;

	loader_init(&loader, snapshot, &sink);
	rc = dump_scan(source, &sink, err);
	loader_finish(&loader);
	return rc;
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
