/* Definitions of a recording: modules, stacks, heaps, threads, and kinds of allocations. Each
 * definition is interned, and gets the next number of its list. Its encoded row is kept until
 * recorder_write_lists() writes the new rows of all lists. */
#include <string.h>

#include "core/record/recorder_parts.h"

/* Pending definitions larger than this are written without waiting for a flush. */
#define ROWS_BYTES ((size_t)1 << 20)

static const struct {
	enum chunk_type type;
	size_t max;
	const char *name;
} lists[LISTS] = {
	{CHUNK_MODULES, RECORD_MODULES_MAX, "modules"},
	{CHUNK_STACKS, RECORD_STACKS_MAX, "stacks"},
	{CHUNK_HEAPS, RECORD_HEAPS_MAX, "heaps"},
	{CHUNK_THREADS, RECORD_THREADS_MAX, "threads"},
	{CHUNK_KINDS, RECORD_KINDS_MAX, "kinds of allocations"},
	{CHUNK_THREAD_STACKS, RECORD_KINDS_MAX, "kinds of thread stacks"},
};

void recorder_write_lists(struct recorder *recorder)
{
	for (size_t i = 0; i < LISTS; i++) {
		struct record_list *list = &recorder->lists[i];
		struct buf *to;

		if (list->first == list->count)
			continue;
		to = recorder_begin_payload(recorder);
		varint_write(to, list->first);
		varint_write(to, list->count - list->first);
		buf_add(to, list->rows.data, list->rows.len);
		recorder_write_chunk(recorder, lists[i].type, recorder->columns.last_ms, 0);
		buf_clear(&list->rows);
		list->first = list->count;
	}
}

/* Returns the number for a new item, or UINT32_MAX at the limit. The caller adds the item's row to
 * the list. */
static uint32_t list_add(struct recorder *recorder, unsigned list)
{
	size_t number = recorder->lists[list].count;

	if (number == lists[list].max) {
		recorder_set_limit(recorder, number, lists[list].name);
		return UINT32_MAX;
	}
	if (recorder->lists[list].rows.len >= ROWS_BYTES)
		recorder_write_lists(recorder);
	recorder->lists[list].count++;
	return (uint32_t)number;
}

uint32_t recorder_module(struct recorder *recorder, const struct module *module)
{
	unsigned flags = (module->has_identity ? MODULE_HAS_IDENTITY : 0) |
			 (module->pdb ? MODULE_HAS_PDB : 0) |
			 (module->pdb_guid ? MODULE_HAS_GUID : 0);
	struct buf row;
	const uint64_t *there;
	uint32_t number;

	buf_init(&row);
	varint_write(&row, module->base);
	varint_write(&row, module->size_bytes);
	varint_write(&row, module->timestamp);
	varint_write(&row, module->checksum);
	varint_write(&row, module->pdb_age);
	varint_write(&row, flags);
	recorder_write_text(&row, module->path);
	recorder_write_text(&row, module->pdb);
	recorder_write_text(&row, module->pdb_guid);
	there = table_find(&recorder->modules, row.data, row.len);
	number = there				      ? (uint32_t)*there :
		 recorder_add_text(recorder, row.len) ? list_add(recorder, MODULES) :
							RECORD_NO_MODULE;
	if (!there && number != RECORD_NO_MODULE) {
		table_add(&recorder->modules, row.data, row.len, number);
		buf_add(&recorder->lists[MODULES].rows, row.data, row.len);
	}
	buf_release(&row);
	return number;
}

static bool same_frames(
	const struct record_stack *stack, const struct record_frame *frames, unsigned count)
{
	bool same = stack->frame_count == count;

	for (unsigned i = 0; same && i < count; i++)
		same = stack->frames[i].module == frames[i].module &&
		       stack->frames[i].offset == frames[i].offset;
	return same;
}

static uint32_t add_stack(
	struct recorder *recorder, const struct record_frame *frames, unsigned count, uint32_t hash)
{
	struct record_frame *copy;
	struct buf *row;
	uint32_t number;

	if (count > RECORD_ALL_FRAMES_MAX - recorder->frame_count) {
		recorder_set_limit(recorder, recorder->frame_count, "frames of stacks");
		return RECORD_NO_STACK;
	}
	number = list_add(recorder, STACKS);
	if (number == UINT32_MAX)
		return RECORD_NO_STACK;
	row = &recorder->lists[STACKS].rows;
	copy = arena_alloc(&recorder->frames, count * sizeof(*copy));
	varint_write(row, count);
	for (unsigned i = 0; i < count; i++) {
		copy[i] = frames[i];
		varint_write(row,
			frames[i].module == RECORD_NO_MODULE ? 0 : (uint64_t)frames[i].module + 1);
		varint_write(row, frames[i].offset);
	}
	array_grow((void **)&recorder->stacks, &recorder->stack_cap, number,
		sizeof(*recorder->stacks));
	recorder->stacks[number] = (struct record_stack){copy, count};
	recorder->frame_count += count;
	hash_index_add(&recorder->stack_index, hash, number);
	return number;
}

uint32_t recorder_stack(
	struct recorder *recorder, const struct record_frame *frames, unsigned frame_count)
{
	unsigned count = frame_count < RECORD_FRAMES_MAX ? frame_count : RECORD_FRAMES_MAX;
	struct hasher hasher = hasher_begin(&recorder->stack_index.key);
	struct hash_probe probe;
	uint32_t hash, number;

	for (unsigned i = 0; i < count; i++) {
		hasher_add(&hasher, frames[i].module);
		hasher_add(&hasher, frames[i].offset);
	}
	hash = hasher_end(&hasher);
	probe = hash_index_probe(&recorder->stack_index, hash);
	while ((number = hash_index_next(&recorder->stack_index, &probe)) != INDEX_NONE) {
		if (same_frames(&recorder->stacks[number], frames, count))
			return number;
	}
	return add_stack(recorder, frames, count, hash);
}

/* Interns a plain number. Returns `none` if the list is full. */
static uint32_t number_of(
	struct recorder *recorder, unsigned list, struct u64map *map, uint64_t value, uint32_t none)
{
	uint32_t number;

	if (u64map_find(map, value, &number))
		return number;
	number = list_add(recorder, list);
	if (number == UINT32_MAX)
		return none;
	varint_write(&recorder->lists[list].rows, value);
	u64map_add(map, value, &number);
	return number;
}

uint32_t recorder_heap(struct recorder *recorder, uint64_t handle)
{
	return number_of(recorder, HEAPS, &recorder->heaps, handle, RECORD_NO_HEAP);
}

uint32_t recorder_thread(struct recorder *recorder, uint32_t tid)
{
	return number_of(recorder, THREADS, &recorder->threads, tid, 0);
}

bool recorder_get_thread(const struct recorder *recorder, uint32_t thread, uint32_t *tid)
{
	if (thread >= recorder->lists[THREADS].count)
		return false;
	*tid = (uint32_t)recorder->threads.items[thread].number; /* in the order of the list */
	return true;
}

static bool same_kind(const struct record_kind *a, const struct record_kind *b)
{
	return a->bytes == b->bytes && a->stack == b->stack && a->heap == b->heap &&
	       a->memory == b->memory;
}

static uint32_t add_kind(struct recorder *recorder, const struct record_kind *kind, uint32_t hash)
{
	uint32_t number = list_add(recorder, KINDS);
	struct buf *row = &recorder->lists[KINDS].rows;

	if (number == UINT32_MAX)
		return 0;
	varint_write(row, kind->bytes);
	varint_write(row, kind->stack == RECORD_NO_STACK ? 0 : (uint64_t)kind->stack + 1);
	varint_write(row, kind->heap == RECORD_NO_HEAP ? 0 : (uint64_t)kind->heap + 1);
	/* Readers that do not know the list of thread stacks treat them as committed memory. */
	varint_write(row, kind->memory == RECORD_STACK ? RECORD_COMMITTED : kind->memory);
	if (kind->memory == RECORD_STACK && list_add(recorder, THREAD_STACKS) != UINT32_MAX)
		varint_write(&recorder->lists[THREAD_STACKS].rows, number);
	array_grow(
		(void **)&recorder->kinds, &recorder->kind_cap, number, sizeof(*recorder->kinds));
	recorder->kinds[number] = *kind;
	array_grow((void **)&recorder->counters, &recorder->counter_cap, number,
		sizeof(*recorder->counters));
	recorder->counters[number] = (struct kind_counter){
		.freed = NUMBER_NONE, .bytes = kind->memory == RECORD_RESERVED ? 0 : kind->bytes};
	hash_index_add(&recorder->kind_index, hash, number);
	return number;
}

static uint32_t find_kind(struct recorder *recorder, const struct record_kind *kind)
{
	struct hasher hasher = hasher_begin(&recorder->kind_index.key);
	struct hash_probe probe;
	uint32_t hash, number;

	hasher_add(&hasher, kind->bytes);
	hasher_add(&hasher, (uint64_t)kind->heap << 32 | kind->stack);
	hasher_add(&hasher, kind->memory);
	hash = hasher_end(&hasher);
	probe = hash_index_probe(&recorder->kind_index, hash);
	while ((number = hash_index_next(&recorder->kind_index, &probe)) != INDEX_NONE) {
		if (same_kind(&recorder->kinds[number], kind))
			return number;
	}
	return add_kind(recorder, kind, hash);
}

/* Called for every allocation. The cache therefore uses a cheap hash instead of the keyed hash. A
 * collision is harmless: it only evicts an entry. */
uint32_t recorder_kind(struct recorder *recorder, const struct record_kind *kind)
{
	uint64_t mixed = (kind->bytes + ((uint64_t)kind->stack << 20)) ^ (uint64_t)kind->heap << 50;
	uint32_t *cached =
		&recorder->cache[(mixed * UINT64_C(0x9e3779b97f4a7c15)) >> 52 & (CACHE_KINDS - 1)];

	if (!*cached || !same_kind(&recorder->kinds[*cached - 1], kind)) {
		uint32_t number = find_kind(recorder, kind);

		if (number >= recorder->lists[KINDS].count)
			return 0;
		*cached = number + 1;
	}
	return *cached - 1;
}
