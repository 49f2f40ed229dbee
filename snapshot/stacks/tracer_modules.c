/* Virtual ranges and unloaded modules in a copy of the tracer's tables. A segment tree over the
 * address ranges of all unloads finds the module that was loaded at an address when a stack was
 * recorded. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/err.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/sorted.h"
#include "core/base/text.h"
#include "snapshot/stacks/tracer_parts.h"
#include "snapshot/target/target.h"

void tracer_ranges_release(struct tracer_range_list *list)
{
	free(list->items);
	*list = (struct tracer_range_list){0};
}

static bool is_sound(const struct tracer_range *range)
{
	uint32_t kind = range->kind & ~RANGE_TAKEN;

	if (kind >= RANGE_HANDLE)
		return kind < RANGE_HANDLE + HANDLE_TYPES && range->start >= TRACER_HANDLES &&
		       range->end - range->start == TRACER_PAGE &&
		       tracer_range_handle(range) < TRACER_HANDLE_MAX;
	return kind != RANGE_NONE && kind <= RANGE_STACK && range->start < range->end &&
	       range->end <= TARGET_SPACE_BYTES;
}

/* Sorts live ranges first, then by address. Compares all fields, so that the order is unique. If
 * two ranges have the same address, the same one of them then remains in every run. */
static int by_start(const void *a, const void *b)
{
	const struct tracer_range *x = a, *y = b;
	uint32_t is_taken = x->kind & RANGE_TAKEN;

	if (is_taken != (y->kind & RANGE_TAKEN))
		return is_taken ? 1 : -1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->stack < y->stack ? -1 : x->stack > y->stack;
}

/* Removes sorted items that overlap an earlier item. Returns the number of remaining items. */
static size_t drop_overlapping(struct tracer_range *items, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (!kept || items[i].start >= items[kept - 1].end)
			items[kept++] = items[i];
	}
	return kept;
}

/* Removes sorted items that overlap a live item. Returns the number of remaining items. */
static size_t drop_replaced(struct tracer_range *items, size_t count,
	const struct tracer_range *live, size_t live_count)
{
	size_t kept = 0, next = 0;

	for (size_t i = 0; i < count; i++) {
		while (next < live_count && live[next].end <= items[i].start)
			next++;
		if (next == live_count || live[next].start >= items[i].end)
			items[kept++] = items[i];
	}
	return kept;
}

/* Removes overlapping ranges. A range that is being freed remains if it overlaps no other range,
 * because the free may fail. If it overlaps a live range, it has been freed, or it was never
 * allocated. So the live range remains. */
static void remove_overlaps(struct tracer_range_list *list)
{
	size_t live_count = 0, taken_count, kept;
	struct tracer_range *taken;

	if (!list->count)
		return;
	qsort(list->items, list->count, sizeof(*list->items), by_start);
	while (live_count < list->count && !(list->items[live_count].kind & RANGE_TAKEN))
		live_count++;
	taken = list->items + live_count;
	taken_count = list->count - live_count;
	kept = drop_overlapping(list->items, live_count);
	list->broken_count += live_count - kept;
	taken_count = drop_replaced(taken, taken_count, list->items, kept);
	taken_count = drop_overlapping(taken, taken_count);
	for (size_t i = 0; i < taken_count; i++) {
		list->items[kept] = taken[i];
		list->items[kept++].kind &= ~RANGE_TAKEN;
	}
	list->count = kept;
	qsort(list->items, list->count, sizeof(*list->items), by_start);
}

void tracer_ranges_parse(
	struct tracer_range_list *list, const unsigned char *nodes, size_t node_count)
{
	struct tracer_range_list made = {.items = xcalloc(node_count, sizeof(*made.items))};

	for (size_t i = 0; i < node_count; i++) {
		struct tracer_range *range = &made.items[made.count];

		memcpy(range, nodes + i * sizeof(*range), sizeof(*range));
		if (range->kind == RANGE_NONE)
			continue;
		if (is_sound(range))
			made.count++;
		else
			made.broken_count++;
	}
	remove_overlaps(&made);
	tracer_ranges_release(list);
	*list = made;
}

/*
 * Artificial bases begin at these addresses. On x64, programs have no addresses of 2^47 and above.
 * In 32-bit address spaces, only few programs may use the upper half, and no system loads DLLs
 * there by default.
 */
#define BASE_64 ((uint64_t)1 << 47)
#define BASE_32 ((uint64_t)1 << 31)
#define LIMIT_64 TRACER_LOST_BASE
#define LIMIT_32 ((uint64_t)1 << 32)
/* Granularity of modules. One such unit after each module stays free. */
#define GRANULE ((uint64_t)0x10000)

#define RECORDS_MAX ((size_t)1 << 28) /* bytes */
#define UNLOADS_MAX ((size_t)1 << 20)
#define MODULE_UNKNOWN UINT32_MAX

struct tracer_unloaded {
	struct module module;
	char guid[33];
	uint8_t is_used;
};

/* Range of a module before it was unloaded. */
struct tracer_extent {
	uint64_t base, end;
	uint32_t module; /* index into items, or MODULE_UNKNOWN */
};

/* Offset of a record, and its module. */
struct module_entry {
	uint64_t at;
	uint32_t module;
};

void tracer_modules_init(struct tracer_modules *modules)
{
	*modules = (struct tracer_modules){0};
	arena_init(&modules->arena);
}

void tracer_modules_release(struct tracer_modules *modules)
{
	free(modules->items);
	free(modules->extents);
	free(modules->edges);
	free(modules->first);
	free(modules->list);
	arena_release(&modules->arena);
	tracer_modules_init(modules);
}

static uint64_t round_up(uint64_t bytes)
{
	return (bytes + GRANULE - 1) & ~(GRANULE - 1);
}

/* ---------------------------------------------------------------- records */

/* Formats a GUID as described in core/pe/pe.h. */
static void guid_text(char text[33], const uint8_t *guid)
{
	static const unsigned char order[] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};

	for (int i = 0; i < 16; i++)
		snprintf(text + 2 * i, 3, "%02X", guid[order[i]]);
}

static const char *path_text(struct arena *arena, const unsigned char *units, size_t count)
{
	size_t len = text_from_utf16(units, count, NULL, 0);
	char *text = len ? arena_alloc(arena, len + 1) : arena_text(arena, "(unknown)", 9);

	if (len)
		text_from_utf16(units, count, text, len + 1);
	return text;
}

/* Parses the head of the record at `bytes`, where `left` bytes remain. Returns the distance to the
 * next record, or 0 if the record is invalid. */
static size_t parse_head(struct tracer_module *head, const unsigned char *bytes, size_t left)
{
	size_t place;

	if (left < sizeof(*head))
		return 0;
	memcpy(head, bytes, sizeof(*head));
	place = ((size_t)head->record_bytes + 7) & ~(size_t)7;
	if (place > left ||
		head->record_bytes < sizeof(*head) + (size_t)head->path_units * 2 + head->pdb_bytes)
		return 0;
	return place;
}

static void fill(struct tracer_modules *modules, struct tracer_unloaded *item,
	const struct tracer_module *head, const unsigned char *texts)
{
	static const uint8_t none[16];
	struct module *module = &item->module;

	*item = (struct tracer_unloaded){.module = {.size_bytes = head->image_bytes,
						 .timestamp = head->timestamp,
						 .checksum = head->checksum,
						 .pdb_age = head->age,
						 .has_identity = true}};
	module->path = path_text(&modules->arena, texts, head->path_units);
	if (head->age || memcmp(head->guid, none, sizeof(none)) != 0) {
		guid_text(item->guid, head->guid);
		module->pdb_guid = item->guid;
	}
	if (head->pdb_bytes)
		module->pdb = arena_text(&modules->arena,
			(const char *)texts + head->path_units * 2, head->pdb_bytes);
}

/* Returns the index of a record's module, and adds the module if it is new. */
static uint32_t add_record(struct tracer_modules *modules, struct table *known, size_t *cap,
	const struct tracer_module *head, const unsigned char *bytes)
{
	const unsigned char *key = bytes + sizeof(head->record_bytes);
	size_t key_bytes = sizeof(*head) - sizeof(head->record_bytes) +
			   (size_t)head->path_units * 2 + head->pdb_bytes;
	const uint64_t *found = table_find(known, key, key_bytes);

	if (found)
		return (uint32_t)*found;
	array_grow((void **)&modules->items, cap, modules->count, sizeof(*modules->items));
	fill(modules, &modules->items[modules->count], head, bytes + sizeof(*head));
	table_add(known, key, key_bytes, modules->count);
	return (uint32_t)modules->count++;
}

/* Parses all records. Stores the offset and module of each in *records, in order. Returns 0 or
 * -ERR_TARGET. */
static int parse_records(struct tracer_modules *modules, const unsigned char *bytes, size_t len,
	struct module_entry **records, size_t *count)
{
	size_t cap = 0, item_cap = 0;
	struct table known;
	int rc = 0;

	table_init(&known);
	for (size_t at = 0, place; at < len; at += place) {
		struct tracer_module head;

		place = parse_head(&head, bytes + at, len - at);
		if (!place) {
			rc = -ERR_TARGET;
			break;
		}
		array_grow((void **)records, &cap, *count, sizeof(**records));
		(*records)[(*count)++] = (struct module_entry){
			at, add_record(modules, &known, &item_cap, &head, bytes + at)};
	}
	table_release(&known);
	/* The items do not move any more, so pointers to them can be set. */
	for (size_t i = 0; i < modules->count; i++) {
		if (modules->items[i].module.pdb_guid)
			modules->items[i].module.pdb_guid = modules->items[i].guid;
	}
	return rc;
}

/* ---------------------------------------------------------------- unloads */

static int by_place(const void *a, const void *b)
{
	const struct module_entry *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static int parse_unloads(struct tracer_modules *modules, const unsigned char *bytes, size_t count,
	const struct module_entry *records, size_t record_count)
{
	modules->extents = xcalloc(count, sizeof(*modules->extents));
	for (size_t i = 0; i < count; i++) {
		struct tracer_unload unload;
		struct tracer_extent *extent = &modules->extents[i];
		struct module_entry wanted;
		const struct module_entry *record;
		uint64_t span;

		memcpy(&unload, bytes + i * sizeof(unload), sizeof(unload));
		wanted.at = unload.module;
		record = record_count ?
				 bsearch(&wanted, records, record_count, sizeof(wanted), by_place) :
				 NULL;
		if (unload.base >= unload.end || (!record && unload.module != TRACER_NO_MODULE))
			return -ERR_TARGET;
		if (!record) {
			*extent = (struct tracer_extent){unload.base, unload.end, MODULE_UNKNOWN};
			continue;
		}
		/* If the headers of a module contain no size, the module gets the size of its first
		 * unload. */
		if (!modules->items[record->module].module.size_bytes)
			modules->items[record->module].module.size_bytes =
				(uint32_t)(unload.end - unload.base);
		/* Memory after the image does not belong to the module. */
		span = round_up(modules->items[record->module].module.size_bytes);
		if (unload.end - unload.base > span)
			unload.end = unload.base + span;
		*extent = (struct tracer_extent){unload.base, unload.end, record->module};
		modules->items[record->module].module.unloaded_at = unload.base;
	}
	modules->extent_count = count;
	return 0;
}

/* ---------------------------------------------------------------- unloads by address */

static void make_edges(struct tracer_modules *modules)
{
	size_t count = 0;

	modules->edges = xcalloc(2 * modules->extent_count, sizeof(*modules->edges));
	for (size_t i = 0; i < modules->extent_count; i++) {
		modules->edges[count++] = modules->extents[i].base;
		modules->edges[count++] = modules->extents[i].end;
	}
	modules->edge_count = sorted_unique(modules->edges, count);
}

/* Returns the number of edges that are <= addr. */
static size_t edges_below(const struct tracer_modules *modules, uint64_t addr)
{
	return sorted_up_to(modules->edges, modules->edge_count, sizeof(*modules->edges), 0, addr);
}

/*
 * Adds an unload to the segment tree. Leaf edge_count + i is the range between edge i and the next
 * edge; an inner node covers the ranges of its children. The unload is added to the few nodes that
 * together cover its range. */
static void add_to_tree(const struct tracer_modules *modules, uint32_t number,
	void (*add)(const struct tracer_modules *modules, size_t node, uint32_t number))
{
	const struct tracer_extent *extent = &modules->extents[number];
	size_t from, to;

	if (extent->base == extent->end)
		return;
	from = edges_below(modules, extent->base) - 1 + modules->edge_count;
	to = edges_below(modules, extent->end) - 1 + modules->edge_count;
	for (; from < to; from /= 2, to /= 2) {
		if (from & 1)
			add(modules, from++, number);
		if (to & 1)
			add(modules, --to, number);
	}
}

static void count_at(const struct tracer_modules *modules, size_t node, uint32_t number)
{
	(void)number;
	modules->first[node]++;
}

/* Adds an unload to a node's part of the list. The part is filled from its end to its start. */
static void add_at(const struct tracer_modules *modules, size_t node, uint32_t number)
{
	modules->list[--modules->first[node]] = number;
}

static void make_tree(struct tracer_modules *modules)
{
	size_t nodes = 2 * modules->edge_count;
	uint32_t sum = 0;

	modules->first = xcalloc(nodes + 1, sizeof(*modules->first));
	for (size_t i = 0; i < modules->extent_count; i++)
		add_to_tree(modules, (uint32_t)i, count_at);
	for (size_t i = 0; i < nodes; i++)
		modules->first[i] = sum += modules->first[i];
	modules->first[nodes] = sum;
	modules->list = xcalloc(sum, sizeof(*modules->list));
	for (size_t i = modules->extent_count; i--;)
		add_to_tree(modules, (uint32_t)i, add_at);
}

/* Returns the first unload with number `born` or higher that covers `addr`, or extent_count. */
static size_t find_unload(const struct tracer_modules *modules, uint32_t born, uint64_t addr)
{
	size_t best = modules->extent_count, below = edges_below(modules, addr);

	if (!below || below == modules->edge_count)
		return best;
	for (size_t node = below - 1 + modules->edge_count; node; node /= 2) {
		size_t low = modules->first[node], count = modules->first[node + 1] - low;
		size_t end = low + count;

		while (count) {
			size_t half = count / 2;

			if (modules->list[low + half] < born) {
				low += half + 1;
				count -= half + 1;
			} else {
				count = half;
			}
		}
		if (low < end && modules->list[low] < best)
			best = modules->list[low];
	}
	return best;
}

int tracer_modules_parse(struct tracer_modules *modules, const unsigned char *records,
	size_t record_bytes, const unsigned char *unloads, size_t unload_count)
{
	struct module_entry *starts = NULL;
	size_t count = 0;
	int rc = -ERR_TARGET;

	if (record_bytes <= RECORDS_MAX && unload_count <= UNLOADS_MAX)
		rc = parse_records(modules, records, record_bytes, &starts, &count);
	if (!rc)
		rc = parse_unloads(modules, unloads, unload_count, starts, count);
	if (!rc && unload_count) {
		make_edges(modules);
		make_tree(modules);
	}
	free(starts);
	return rc;
}

/* ---------------------------------------------------------------- bases of unloaded modules */

/* Returns the first address at or after `at` that avoids live modules. */
static uint64_t clear_place(
	uint64_t at, uint64_t span, const struct module *live, size_t live_count)
{
	for (size_t i = 0; i < live_count; i++) {
		if (live[i].base < at + span && live[i].base + live[i].size_bytes > at)
			at = round_up(live[i].base + live[i].size_bytes) + GRANULE;
	}
	return at;
}

void tracer_modules_place(
	struct tracer_modules *modules, unsigned bits, const struct module *live, size_t live_count)
{
	uint64_t next = bits == 32 ? BASE_32 : BASE_64, limit = bits == 32 ? LIMIT_32 : LIMIT_64;

	for (size_t i = 0; i < modules->count; i++) {
		struct module *module = &modules->items[i].module;
		uint64_t span = round_up(module->size_bytes) + GRANULE, at = next;

		if (bits == 32)
			at = clear_place(at, span, live, live_count);
		module->base = 0;
		if (at > limit || span > limit - at) {
			modules->unplaced_count++;
			continue;
		}
		module->base = at;
		next = at + span;
	}
}

size_t tracer_modules_find(const struct tracer_modules *modules, uint32_t born, uint64_t addr)
{
	size_t number;

	if (born >= modules->extent_count || !addr)
		return SIZE_MAX;
	/* Look up the address of the call, which precedes the return address. */
	number = find_unload(modules, born, addr - 1);
	if (number == modules->extent_count)
		number = find_unload(modules, born, addr);
	return number == modules->extent_count ? SIZE_MAX : number;
}

bool tracer_modules_unload(
	const struct tracer_modules *modules, size_t number, struct module *module)
{
	const struct tracer_extent *extent = &modules->extents[number];

	if (extent->module == MODULE_UNKNOWN)
		return false;
	*module = modules->items[extent->module].module;
	module->base = extent->base;
	module->unloaded_at = 0;
	return true;
}

uint64_t tracer_modules_resolve(const struct tracer_modules *modules, uint32_t born, uint64_t addr)
{
	size_t number = tracer_modules_find(modules, born, addr);
	const struct tracer_extent *extent;
	struct tracer_unloaded *item;

	if (number == SIZE_MAX)
		return addr;
	extent = &modules->extents[number];
	if (extent->module == MODULE_UNKNOWN)
		return TRACER_LOST_BASE + addr;
	item = &modules->items[extent->module];
	if (!item->module.base)
		return TRACER_LOST_BASE + addr;
	__atomic_store_n(&item->is_used, 1, __ATOMIC_RELAXED);
	return item->module.base + (addr - extent->base);
}

void tracer_modules_list(const struct tracer_modules *modules, struct snapshot *snapshot)
{
	for (size_t i = 0; i < modules->count; i++) {
		if (modules->items[i].is_used)
			snapshot_copy_module(snapshot, &modules->items[i].module);
	}
	modules_sort(snapshot->modules, snapshot->module_count);
}
