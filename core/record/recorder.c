/*
 * Writes a recording. Definitions are interned (recorder_lists.c); events are collected in columns
 * (event_columns.h). When a chunk of events is full or flushed, the recorder first writes the
 * definitions that the chunk uses. Check-points, marks and module loads are written between chunks
 * of events. The index and a trailer end the file.
 */
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "core/base/parse.h"
#include "core/io/file.h"
#include "core/io/out.h"
#include "core/record/recorder_parts.h"

/* Parameters of zstd, chosen for columns, in which matches are short. In tests (C++, node, Perl,
 * Python), level 9 gave the smallest files at negligible CPU cost. */
#define PACKING_LEVEL 9
#define PACKING_MATCH 4
#define TEMPORARY_LEVEL 1

/* Interval between check-points: this many events per kind, within limits. */
#define EVENTS_A_KIND 32
#define CHECKPOINT_LEAST ((uint64_t)1 << 20)
#define CHECKPOINT_MOST ((uint64_t)4000000)

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
	struct buf *to = recorder_begin_payload(recorder);

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

static void write_events(struct recorder *recorder)
{
	struct buf *to = recorder_begin_payload(recorder);
	struct event_columns *columns = &recorder->columns;
	size_t count = columns->codes.count;

	varint_write(to, recorder->event_first);
	event_columns_write_counts(to, columns);
	varint_write(to, recorder->lost_count);
	varint_write(to, recorder->peak_bytes);
	varint_write(to, recorder->peak_position);
	varint_write(to, recorder->peak_ms);
	event_columns_write(to, columns, recorder->has_addresses);
	recorder_write_chunk(recorder, CHUNK_EVENTS, columns->begin_ms, recorder->event_first);
	recorder->event_first += count;
}

static void write_checkpoint(struct recorder *recorder)
{
	struct buf *to = recorder_begin_payload(recorder);
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
	recorder_write_chunk(
		recorder, CHUNK_CHECKPOINT, recorder->columns.last_ms, recorder->event_first);
	recorder->checkpoint_position = recorder->event_first;
}

static void write_marks(struct recorder *recorder)
{
	for (size_t i = 0; i < recorder->mark_count; i++) {
		const struct pending_mark *mark = &recorder->marks[i];
		struct buf *to = recorder_begin_payload(recorder);
		bool is_start = mark->label_at == SIZE_MAX;

		varint_write(to, is_start ? MARK_START : MARK_LABEL);
		varint_write(to, mark->position);
		recorder_write_text(to, is_start ? "" : recorder->labels.data + mark->label_at);
		recorder_write_chunk(recorder, CHUNK_MARK, mark->time_ms, 0);
	}
	recorder->mark_count = 0;
	buf_clear(&recorder->labels);
}

static void write_loads(struct recorder *recorder)
{
	struct buf *to = recorder_begin_payload(recorder);

	varint_write(to, recorder->load_count);
	buf_add(to, recorder->loads.data, recorder->loads.len);
	recorder_write_chunk(recorder, CHUNK_LOADS, recorder->loads_ms, 0);
	recorder->load_count = 0;
	buf_clear(&recorder->loads);
}

static void write_pending(struct recorder *recorder)
{
	uint64_t wanted = EVENTS_A_KIND * (uint64_t)recorder->lists[KINDS].count;

	recorder_write_lists(recorder);
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

void recorder_module_is(struct recorder *recorder, uint32_t module, bool is_loaded)
{
	if (recorder->all_load_count++ >= RECORD_LOADS_MAX) {
		recorder_set_limit(recorder, RECORD_LOADS_MAX, "loads and unloads of modules");
		return;
	}
	if (!recorder->load_count++)
		recorder->loads_ms = recorder->load_ms = recorder->now_ms;
	varint_write(&recorder->loads, (uint64_t)module << 1 | !is_loaded);
	varint_write(&recorder->loads, recorder->now_ms - recorder->load_ms);
	recorder->load_ms = recorder->now_ms;
}

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
		recorder_set_limit(recorder, RECORD_MARKS_MAX, "marks");
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
	if (!*label || !recorder_add_text(recorder, strlen(label)))
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

void recorder_thread_name(struct recorder *recorder, uint32_t thread, const char *name)
{
	struct buf *to;

	if (!thread || !*name || recorder->name_count++ >= RECORD_THREAD_NAMES_MAX ||
		!recorder_add_text(recorder, strlen(name)))
		return;
	recorder_write_lists(recorder); /* the thread may be pending */
	to = recorder_begin_payload(recorder);
	varint_write(to, thread);
	recorder_write_text(to, name);
	recorder_write_chunk(recorder, CHUNK_THREAD_NAME, recorder->columns.last_ms, 0);
}

void recorder_remark(struct recorder *recorder, const char *text)
{
	struct buf *to;

	if (recorder->remark_count++ >= RECORD_REMARKS_MAX ||
		!recorder_add_text(recorder, strlen(text)))
		return;
	to = recorder_begin_payload(recorder);
	recorder_write_text(to, text);
	recorder_write_chunk(recorder, CHUNK_REMARK, recorder->columns.last_ms, 0);
}

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
	if (recorder_is_broken(recorder) && err)
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

	/* A file without its first chunk is useless, so reserve the memory for that chunk before
	 * creating the file. */
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
	recorder_write_bytes(made, head, sizeof(head));
	recorder_write_chunk(made, CHUNK_START, 0, 0);
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
	struct buf *to = recorder_begin_payload(recorder);

	varint_write(to, recorder->event_first);
	varint_write(to, recorder->lost_count);
	varint_write(to, recorder->peak_bytes);
	varint_write(to, recorder->peak_position);
	varint_write(to, recorder->peak_ms);
	recorder_write_chunk(recorder, CHUNK_END, recorder->now_ms, 0);
}

/* Writes the index, unless the file has too many chunks. Readers of a file without an index must
 * read all chunks. */
static void write_index(struct recorder *recorder)
{
	unsigned char trailer[FILE_TRAILER_BYTES];
	uint64_t offset = recorder->bytes;
	struct buf *to = recorder_begin_payload(recorder);

	if (recorder->index.len > CHUNK_UNPACKED_MAX)
		return;
	buf_add(to, recorder->index.data, recorder->index.len);
	recorder_write_chunk(recorder, CHUNK_INDEX, recorder->now_ms, 0);
	file_trailer_write(trailer, offset);
	recorder_write_bytes(recorder, trailer, sizeof(trailer));
}

int recorder_end(struct recorder *recorder, struct err *err)
{
	int rc;

	write_pending(recorder);
	if (recorder->event_first != recorder->checkpoint_position)
		write_checkpoint(recorder);
	write_end(recorder);
	write_index(recorder);
	if (!recorder_is_broken(recorder))
		os_sync(&recorder->file, recorder->path, &recorder->err);
	os_close(&recorder->file);
	rc = result(recorder, err);
	recorder_release(recorder);
	return rc;
}
