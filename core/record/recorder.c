/*
 * Writes a recording. Definitions (modules, stacks, heaps, threads, kinds) are interned and
 * collected as rows; events are collected in columns. When a chunk of events is full or flushed,
 * the definitions that it uses are written before it. Check-points, marks and module loads are
 * written between chunks of events. The index and a trailer end the file.
 */
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "core/base/hash.h"
#include "core/base/parse.h"
#include "core/io/file.h"
#include "core/io/out.h"
#include "core/record/chunk.h"
#include "core/record/event_columns.h"
#include "core/record/record.h"

/* Matches in columns are short. Level 9 gave the smallest files in tests (C++, node, Perl, Python)
 * at negligible CPU cost. */
#define PACKING_LEVEL 9
#define PACKING_MATCH 4
#define TEMPORARY_LEVEL 1
/* Larger pending definitions are written without waiting for a flush. */
#define ROWS_BYTES ((size_t)1 << 20)

/* The interval between check-points is this many events per kind, within limits. */
#define EVENTS_A_KIND 32
#define CHECKPOINT_LEAST ((uint64_t)1 << 20)
#define CHECKPOINT_MOST ((uint64_t)4000000)

#define CACHE_KINDS 4096 /* must be a power of two */

/* Lists whose rows are spread over several chunks. */
enum { MODULES, STACKS, HEAPS, THREADS, KINDS, LISTS };

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
};

struct record_list {
	struct buf rows; /* encoded rows not written yet */
	size_t first, count; /* number of the first row in rows; number of all items */
};

struct kind_counter {
	uint64_t allocated, live, freed; /* freed: number of the last freed allocation */
	uint64_t bytes; /* bytes per live allocation */
};

struct pending_mark {
	uint64_t time_ms, position;
	size_t label_at; /* offset in labels; SIZE_MAX: marks the start of the recording */
};

struct recorder {
	struct os_file file;
	char *path;
	struct err err; /* the first error */
	uint64_t bytes; /* size of the file so far */
	ZSTD_CCtx *zstd;
	struct buf payload, chunk, index;

	struct record_list lists[LISTS];
	struct table modules;
	struct u64map heaps, threads;
	struct hash_index stack_index, kind_index;
	struct arena frames;
	struct record_stack *stacks;
	struct record_kind *kinds;
	struct kind_counter *counters; /* indexed by kind */
	size_t stack_cap, kind_cap, counter_cap, frame_count;
	uint32_t cache[CACHE_KINDS]; /* numbers of kinds plus one, indexed by a cheap hash */

	struct event_columns columns;
	uint64_t event_first; /* number of the first event in columns */
	bool has_addresses;
	uint64_t now_ms; /* time of the next event */
	uint32_t now_thread;

	struct pending_mark *marks;
	size_t mark_count, mark_cap, all_mark_count;
	size_t text_bytes; /* total bytes of the strings of all modules and marks */
	struct buf labels;
	struct buf loads; /* not written yet; encoded as in the chunk */
	uint64_t loads_ms, load_ms; /* time of the first pending load; time of the last load */
	size_t load_count, all_load_count, remark_count;
	uint64_t live_bytes, lost_count;
	uint64_t peak_bytes, peak_position, peak_ms;
	uint64_t checkpoint_position;
};

/* ---------------------------------------------------------------- chunks */

static bool is_broken(const struct recorder *recorder)
{
	return recorder->err.code != ERR_OK;
}

static void write_bytes(struct recorder *recorder, const void *bytes, size_t len)
{
	if (is_broken(recorder) ||
		os_write(&recorder->file, bytes, len, recorder->path, &recorder->err))
		return;
	recorder->bytes += len;
}

/* Compresses recorder->payload and writes it as a chunk. Only events and check-points use
 * position. */
static void write_chunk(
	struct recorder *recorder, enum chunk_type type, uint64_t time_ms, uint64_t position)
{
	const struct buf *payload = &recorder->payload;
	struct buf *chunk = &recorder->chunk;
	size_t bound = ZSTD_compressBound(payload->len), packed;
	struct chunk_head head = {.time_ms = time_ms,
		.type = type,
		.packing = CHUNK_ZSTD,
		.unpacked_bytes = (uint32_t)payload->len};
	unsigned char *bytes;

	buf_clear(chunk);
	buf_reserve(chunk, CHUNK_HEAD_BYTES + bound);
	bytes = (unsigned char *)chunk->data;
	packed = ZSTD_compress2(
		recorder->zstd, bytes + CHUNK_HEAD_BYTES, bound, payload->data, payload->len);
	head.bytes = (uint32_t)packed;
	if (ZSTD_isError(packed) || packed >= payload->len || !chunk_is_fit(&head)) {
		head.packing = CHUNK_PLAIN;
		packed = payload->len;
		head.bytes = (uint32_t)packed;
		memcpy(bytes + CHUNK_HEAD_BYTES, payload->data, packed);
	}
	head.crc = chunk_crc(bytes + CHUNK_HEAD_BYTES, packed);
	chunk_head_write(bytes, &head);
	write_bytes(recorder, bytes, CHUNK_HEAD_BYTES + packed);
	varint_write(&recorder->index, type);
	varint_write(&recorder->index, CHUNK_HEAD_BYTES + packed);
	varint_write(&recorder->index, time_ms);
	varint_write(&recorder->index, position);
}

static struct buf *begin_payload(struct recorder *recorder)
{
	buf_clear(&recorder->payload);
	return &recorder->payload;
}

static void write_text(struct buf *to, const char *text)
{
	size_t len = text ? strlen(text) : 0;

	len = len < RECORD_TEXT_MAX ? len : RECORD_TEXT_MAX;
	varint_write(to, len);
	buf_add(to, text, len);
}

static void write_date(struct buf *to, const char *key, int64_t ms)
{
	char text[DATE_TEXT_BYTES];

	if (ms && date_text(ms, text)[0] != '?')
		buf_printf(to, " %s=%s", key, text);
}

static void write_quoted(struct buf *to, const char *key, const char *value)
{
	if (!value)
		return;
	buf_printf(to, " %s=", key);
	kv_quote(to, value);
}

/* Builds the payload of the first chunk, and reserves the memory needed to compress it. */
static void write_start(struct recorder *recorder, const struct record_facts *facts)
{
	struct buf *to = begin_payload(recorder);

	buf_printf(to, "tool=%s pid=%lu parent=%lu bits=%u sample=%llu attached=%d", HSNAP_VERSION,
		(unsigned long)facts->pid, (unsigned long)facts->parent_pid, facts->bits,
		(unsigned long long)facts->sample_bytes, facts->is_attached);
	if (facts->has_addresses)
		buf_printf(to, " addresses=1");
	write_date(to, "start", facts->start_ms);
	write_date(to, "time", facts->time_ms);
	write_quoted(to, "image", facts->image);
	write_quoted(to, "os", facts->os);
	write_quoted(to, "source", facts->source);
	buf_reserve(&recorder->chunk, CHUNK_HEAD_BYTES + ZSTD_compressBound(to->len));
}

static void write_lists(struct recorder *recorder)
{
	for (size_t i = 0; i < LISTS; i++) {
		struct record_list *list = &recorder->lists[i];
		struct buf *to;

		if (list->first == list->count)
			continue;
		to = begin_payload(recorder);
		varint_write(to, list->first);
		varint_write(to, list->count - list->first);
		buf_add(to, list->rows.data, list->rows.len);
		write_chunk(recorder, lists[i].type, recorder->columns.last_ms, 0);
		buf_clear(&list->rows);
		list->first = list->count;
	}
}

static void write_events(struct recorder *recorder)
{
	struct buf *to = begin_payload(recorder);
	struct event_columns *columns = &recorder->columns;
	size_t count = columns->codes.count;

	varint_write(to, recorder->event_first);
	event_columns_write_counts(to, columns);
	varint_write(to, recorder->lost_count);
	varint_write(to, recorder->peak_bytes);
	varint_write(to, recorder->peak_position);
	varint_write(to, recorder->peak_ms);
	event_columns_write(to, columns, recorder->has_addresses);
	write_chunk(recorder, CHUNK_EVENTS, columns->begin_ms, recorder->event_first);
	recorder->event_first += count;
}

static void write_checkpoint(struct recorder *recorder)
{
	struct buf *to = begin_payload(recorder);
	size_t count = recorder->lists[KINDS].count;
	uint64_t *values = xmalloc(count * sizeof(*values));

	varint_write(to, recorder->event_first);
	varint_write(to, count);
	varint_write(to, recorder->live_bytes);
	for (size_t i = 0; i < count; i++)
		values[i] = recorder->counters[i].allocated;
	column_write(to, values, count);
	for (size_t i = 0; i < count; i++) {
		values[i] = recorder->counters[i].live;
		recorder->counters[i].freed = NUMBER_NONE;
	}
	column_write(to, values, count);
	free(values);
	write_chunk(recorder, CHUNK_CHECKPOINT, recorder->columns.last_ms, recorder->event_first);
	recorder->checkpoint_position = recorder->event_first;
}

static void write_marks(struct recorder *recorder)
{
	for (size_t i = 0; i < recorder->mark_count; i++) {
		const struct pending_mark *mark = &recorder->marks[i];
		struct buf *to = begin_payload(recorder);
		bool is_start = mark->label_at == SIZE_MAX;

		varint_write(to, is_start ? MARK_START : MARK_LABEL);
		varint_write(to, mark->position);
		write_text(to, is_start ? "" : recorder->labels.data + mark->label_at);
		write_chunk(recorder, CHUNK_MARK, mark->time_ms, 0);
	}
	recorder->mark_count = 0;
	buf_clear(&recorder->labels);
}

static void write_loads(struct recorder *recorder)
{
	struct buf *to = begin_payload(recorder);

	varint_write(to, recorder->load_count);
	buf_add(to, recorder->loads.data, recorder->loads.len);
	write_chunk(recorder, CHUNK_LOADS, recorder->loads_ms, 0);
	recorder->load_count = 0;
	buf_clear(&recorder->loads);
}

static void write_pending(struct recorder *recorder)
{
	uint64_t wanted = EVENTS_A_KIND * (uint64_t)recorder->lists[KINDS].count;

	write_lists(recorder);
	if (recorder->load_count)
		write_loads(recorder);
	if (recorder->columns.codes.count)
		write_events(recorder);
	wanted = wanted < CHECKPOINT_LEAST ? CHECKPOINT_LEAST : wanted;
	wanted = wanted > CHECKPOINT_MOST - EVENT_COLUMNS_MAX ?
			 CHECKPOINT_MOST - EVENT_COLUMNS_MAX :
			 wanted;
	if (recorder->event_first - recorder->checkpoint_position >= wanted)
		write_checkpoint(recorder);
	write_marks(recorder);
}

/* ---------------------------------------------------------------- definitions */

/* Records the error that ends a recording when it reaches a limit. */
static void set_limit(struct recorder *recorder, size_t count, const char *what)
{
	if (!is_broken(recorder))
		err_set(&recorder->err, ERR_LIMIT, recorder->path,
			"%zu %s; record for a shorter time", count, what);
}

/* Counts the bytes of a module's or mark's strings. Returns false at the limit. */
static bool add_text(struct recorder *recorder, size_t bytes)
{
	if (bytes > RECORD_ALL_TEXTS_MAX - recorder->text_bytes) {
		set_limit(recorder, recorder->text_bytes, "bytes of names");
		return false;
	}
	recorder->text_bytes += bytes;
	return true;
}

/* Returns the number of a new item, or UINT32_MAX at the limit. The caller adds the item's row to
 * the list. */
static uint32_t list_add(struct recorder *recorder, unsigned list)
{
	size_t number = recorder->lists[list].count;

	if (number == lists[list].max) {
		set_limit(recorder, number, lists[list].name);
		return UINT32_MAX;
	}
	if (recorder->lists[list].rows.len >= ROWS_BYTES)
		write_lists(recorder);
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
	write_text(&row, module->path);
	write_text(&row, module->pdb);
	write_text(&row, module->pdb_guid);
	there = table_find(&recorder->modules, row.data, row.len);
	number = there			     ? (uint32_t)*there :
		 add_text(recorder, row.len) ? list_add(recorder, MODULES) :
					       RECORD_NO_MODULE;
	if (!there && number != RECORD_NO_MODULE) {
		table_add(&recorder->modules, row.data, row.len, number);
		buf_add(&recorder->lists[MODULES].rows, row.data, row.len);
	}
	buf_release(&row);
	return number;
}

void recorder_module_is(struct recorder *recorder, uint32_t module, bool is_loaded)
{
	if (recorder->all_load_count++ >= RECORD_LOADS_MAX) {
		set_limit(recorder, RECORD_LOADS_MAX, "modules that came and went");
		return;
	}
	if (!recorder->load_count++)
		recorder->loads_ms = recorder->load_ms = recorder->now_ms;
	varint_write(&recorder->loads, (uint64_t)module << 1 | !is_loaded);
	varint_write(&recorder->loads, recorder->now_ms - recorder->load_ms);
	recorder->load_ms = recorder->now_ms;
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
		set_limit(recorder, recorder->frame_count, "frames of stacks");
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

/* Interns a plain number. Returns `none` when the list is full. */
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
	varint_write(row, kind->memory);
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

/* Called for every allocation. The cache uses a cheap hash instead of the keyed hash: a collision
 * is harmless, because it only evicts an entry. */
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

/* ---------------------------------------------------------------- events */

void recorder_time(struct recorder *recorder, uint64_t time_ms)
{
	if (time_ms > recorder->now_ms)
		recorder->now_ms = time_ms;
}

void recorder_thread_is(struct recorder *recorder, uint32_t thread)
{
	recorder->now_thread = thread;
}

static void write_full(struct recorder *recorder)
{
	if (recorder->columns.codes.count == EVENT_COLUMNS_MAX)
		write_pending(recorder);
}

uint64_t recorder_alloc(struct recorder *recorder, uint32_t kind, uint64_t addr)
{
	struct kind_counter *counter = &recorder->counters[kind];
	uint64_t number = counter->allocated++;

	event_columns_add(
		&recorder->columns, recorder->now_ms, recorder->now_thread, (uint64_t)kind << 1);
	if (recorder->has_addresses)
		event_columns_add_address(&recorder->columns, addr);
	counter->live++;
	recorder->live_bytes += counter->bytes;
	if (recorder->live_bytes > recorder->peak_bytes) {
		recorder->peak_bytes = recorder->live_bytes;
		recorder->peak_position = recorder->event_first + recorder->columns.codes.count;
		recorder->peak_ms = recorder->now_ms;
	}
	write_full(recorder);
	return number;
}

void recorder_free(struct recorder *recorder, uint32_t kind, uint64_t number)
{
	recorder_free_by(recorder, kind, number, RECORD_NO_STACK);
}

void recorder_free_by(struct recorder *recorder, uint32_t kind, uint64_t number, uint32_t stack)
{
	struct kind_counter *counter = &recorder->counters[kind];
	uint64_t age = counter->allocated - 1 - number;

	if (number >= counter->allocated || !counter->live) {
		recorder->lost_count++;
		return;
	}
	event_columns_add(&recorder->columns, recorder->now_ms, recorder->now_thread,
		(uint64_t)kind << 1 | 1);
	if (stack != RECORD_NO_STACK)
		event_columns_add_free_stack(&recorder->columns, stack);
	event_columns_add_free(&recorder->columns, number, counter->freed, age);
	counter->freed = number;
	counter->live--;
	recorder->live_bytes -= counter->bytes;
	write_full(recorder);
}

static void add_mark(struct recorder *recorder, size_t label_at)
{
	if (recorder->all_mark_count++ >= RECORD_MARKS_MAX) {
		set_limit(recorder, RECORD_MARKS_MAX, "marks");
		return;
	}
	array_grow((void **)&recorder->marks, &recorder->mark_cap, recorder->mark_count,
		sizeof(*recorder->marks));
	recorder->marks[recorder->mark_count++] = (struct pending_mark){
		recorder->now_ms, recorder->event_first + recorder->columns.codes.count, label_at};
}

void recorder_start(struct recorder *recorder)
{
	add_mark(recorder, SIZE_MAX);
}

void recorder_mark(struct recorder *recorder, const char *label)
{
	if (!*label || !add_text(recorder, strlen(label)))
		return;
	add_mark(recorder, recorder->labels.len);
	buf_add(&recorder->labels, label, strlen(label) + 1);
}

void recorder_lost(struct recorder *recorder, uint64_t events)
{
	recorder->lost_count += events;
}

uint64_t recorder_bytes(const struct recorder *recorder)
{
	return recorder->bytes;
}

uint64_t recorder_events(const struct recorder *recorder)
{
	return recorder->event_first + recorder->columns.codes.count;
}

void recorder_remark(struct recorder *recorder, const char *text)
{
	struct buf *to;

	if (recorder->remark_count++ >= RECORD_REMARKS_MAX || !add_text(recorder, strlen(text)))
		return;
	to = begin_payload(recorder);
	write_text(to, text);
	write_chunk(recorder, CHUNK_REMARK, recorder->columns.last_ms, 0);
}

/* ---------------------------------------------------------------- the file from start to end */

static int create(struct recorder *recorder, const char *path, const char *place, struct err *err)
{
	int rc = out_check(path, err);

	if (!rc && os_is_special(place)) {
		rc = err_set(err, ERR_NOT_FILE, path, NULL);
	} else if (!rc) {
		if (os_exists(place))
			os_remove(place);
		rc = file_append_open(&recorder->file, place, err);
	}
	if (!rc && os_size(&recorder->file)) {
		os_close(&recorder->file);
		rc = err_set(err, ERR_CREATE, path, "the existing file cannot be removed");
	}
	return rc;
}

static void recorder_init(struct recorder *recorder, const char *path)
{
	recorder->path = xstrdup(path);
	recorder->zstd = ZSTD_createCCtx();
	if (!recorder->zstd)
		memory_out();
	ZSTD_CCtx_setParameter(recorder->zstd, ZSTD_c_compressionLevel, PACKING_LEVEL);
	ZSTD_CCtx_setParameter(recorder->zstd, ZSTD_c_minMatch, PACKING_MATCH);
	event_columns_init(&recorder->columns);
	table_init(&recorder->modules);
	u64map_init(&recorder->heaps);
	u64map_init(&recorder->threads);
	hash_index_init(&recorder->stack_index);
	hash_index_init(&recorder->kind_index);
	arena_init(&recorder->frames);
}

static void recorder_release(struct recorder *recorder)
{
	event_columns_release(&recorder->columns);
	for (size_t i = 0; i < LISTS; i++)
		buf_release(&recorder->lists[i].rows);
	free(recorder->marks);
	free(recorder->stacks);
	free(recorder->kinds);
	free(recorder->counters);
	table_release(&recorder->modules);
	u64map_release(&recorder->heaps);
	u64map_release(&recorder->threads);
	hash_index_release(&recorder->stack_index);
	hash_index_release(&recorder->kind_index);
	arena_release(&recorder->frames);
	buf_release(&recorder->labels);
	buf_release(&recorder->loads);
	buf_release(&recorder->payload);
	buf_release(&recorder->chunk);
	buf_release(&recorder->index);
	ZSTD_freeCCtx(recorder->zstd);
	free(recorder->path);
	free(recorder);
}

/* Returns the first error and copies it to *err. */
static int result(const struct recorder *recorder, struct err *err)
{
	if (is_broken(recorder) && err)
		*err = recorder->err;
	return -(int)recorder->err.code;
}

int recorder_open(struct recorder **recorder, const char *path, const struct record_facts *facts,
	struct err *err)
{
	struct recorder *made = xcalloc(1, sizeof(*made));
	unsigned char head[FILE_HEAD_BYTES];
	char *place = os_final_path(path);
	int rc;

	/* A file without its first chunk is useless, so reserve that chunk's memory before creating
	 * the file. */
	recorder_init(made, path);
	write_start(made, facts);
	rc = create(made, path, place ? place : path, err);
	if (rc) {
		recorder_release(made);
		free(place);
		return rc;
	}
	made->has_addresses = facts->has_addresses;
	if (facts->is_temporary)
		ZSTD_CCtx_setParameter(made->zstd, ZSTD_c_compressionLevel, TEMPORARY_LEVEL);
	file_head_write(head);
	write_bytes(made, head, sizeof(head));
	write_chunk(made, CHUNK_START, 0, 0);
	recorder_thread(made, 0);
	rc = result(made, err);
	if (rc) { /* the file is useless */
		os_close(&made->file);
		os_remove(place ? place : path);
		recorder_release(made);
	} else {
		*recorder = made;
	}
	free(place);
	return rc;
}

int recorder_flush(struct recorder *recorder, struct err *err)
{
	write_pending(recorder);
	return result(recorder, err);
}

static void write_end(struct recorder *recorder)
{
	struct buf *to = begin_payload(recorder);

	varint_write(to, recorder->event_first);
	varint_write(to, recorder->lost_count);
	varint_write(to, recorder->peak_bytes);
	varint_write(to, recorder->peak_position);
	varint_write(to, recorder->peak_ms);
	write_chunk(recorder, CHUNK_END, recorder->now_ms, 0);
}

/* Writes the index. If the file has too many chunks, writes no index, and readers must then read
 * all chunks. */
static void write_index(struct recorder *recorder)
{
	unsigned char trailer[FILE_TRAILER_BYTES];
	uint64_t offset = recorder->bytes;
	struct buf *to = begin_payload(recorder);

	if (recorder->index.len > CHUNK_UNPACKED_MAX)
		return;
	buf_add(to, recorder->index.data, recorder->index.len);
	write_chunk(recorder, CHUNK_INDEX, recorder->now_ms, 0);
	file_trailer_write(trailer, offset);
	write_bytes(recorder, trailer, sizeof(trailer));
}

int recorder_end(struct recorder *recorder, struct err *err)
{
	int rc;

	write_pending(recorder);
	if (recorder->event_first != recorder->checkpoint_position)
		write_checkpoint(recorder);
	write_end(recorder);
	write_index(recorder);
	if (!is_broken(recorder))
		os_sync(&recorder->file, recorder->path, &recorder->err);
	os_close(&recorder->file);
	rc = result(recorder, err);
	recorder_release(recorder);
	return rc;
}
