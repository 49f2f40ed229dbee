/*
 * Opens a recording: reads all definitions, and the places of event chunks and check-points. A
 * finished file has an index, which is read first. If the index is missing or invalid, all chunks
 * are read in order, up to the first invalid chunk.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/dump/kv.h"
#include "core/record/recording_read.h"

struct opening {
	struct recording *recording;
	struct chunk_reader reader;
	uint64_t offset; /* offset of the current chunk */
	uint64_t event_ms; /* time of the last known event */
	uint64_t mark_ms, load_ms; /* time of the last mark; time of the last module load */
	bool is_by_index; /* the file is opened using its index, so event chunks are not read */
	bool has_start, has_end;
};

int recording_bad(const struct recording *recording, int rc, uint64_t offset, const char *detail,
	struct err *err)
{
	struct buf place;

	buf_init(&place);
	buf_printf(&place, "%s, byte %" PRIu64, recording->path, offset);
	err_set(err, (enum err_code) - rc, place.data, detail ? "%s" : NULL, detail);
	buf_release(&place);
	return rc;
}

/* ---------------------------------------------------------------- contents of chunks */

static char *keep_text(struct recording *recording, struct payload *from)
{
	size_t len;
	size_t room = RECORD_ALL_TEXTS_MAX - recording->text_bytes;
	const char *text =
		payload_text(from, room < RECORD_TEXT_MAX ? room : RECORD_TEXT_MAX, &len);

	recording->text_bytes += len;
	return arena_text(&recording->arena, text, len);
}

static int take_start(struct opening *opening, struct payload *from)
{
	struct record_facts *facts = &opening->recording->facts;
	struct arena *arena = &opening->recording->arena;
	const char *image, *os, *source;
	uint64_t attached = 0, addresses = 0;
	uint32_t bits = 0;
	struct kv pairs;
	int rc;

	kv_init(&pairs);
	rc = kv_parse(&pairs, (const char *)from->at, (size_t)(from->end - from->at));
	rc = rc ? rc : kv_get_u32(&pairs, "pid", 10, &facts->pid);
	rc = rc ? rc : kv_get_u32(&pairs, "parent", 10, &facts->parent_pid);
	rc = rc ? rc : kv_get_u32(&pairs, "bits", 10, &bits);
	rc = rc ? rc : kv_get_number(&pairs, "sample", 10, &facts->sample_bytes);
	rc = rc ? rc : kv_get_number(&pairs, "attached", 10, &attached);
	rc = rc ? rc : kv_get_number(&pairs, "addresses", 10, &addresses);
	rc = rc ? rc : kv_get_date(&pairs, "start", &facts->start_ms);
	rc = rc ? rc : kv_get_date(&pairs, "time", &facts->time_ms);
	if (!rc && !opening->has_start) {
		facts->bits = bits;
		facts->is_attached = attached;
		facts->has_addresses = addresses;
		image = kv_get(&pairs, "image");
		os = kv_get(&pairs, "os");
		source = kv_get(&pairs, "source");
		facts->source = source ? arena_text(arena, source, strlen(source)) : NULL;
		facts->image = image ? arena_text(arena, image, strlen(image)) : NULL;
		facts->os = os ? arena_text(arena, os, strlen(os)) : NULL;
		opening->has_start = true;
	} else {
		from->at = NULL;
	}
	kv_release(&pairs);
	return from->at ? 0 : -ERR_BAD_RECORDING;
}

/* Reads the head of one part of a list; the part must continue the list. Sets *count to the number
 * of items in the part. */
static bool take_list_head(struct payload *from, size_t have, size_t max, size_t *count)
{
	uint64_t first = varint_parse(from);

	*count = (size_t)varint_parse_upto(from, max - have);
	return from->at && first == have;
}

static void take_module(struct recording *recording, struct payload *from)
{
	struct module module = {0};
	uint64_t flags;

	module.base = varint_parse(from);
	module.size_bytes = varint_parse(from);
	module.timestamp = (uint32_t)varint_parse_upto(from, UINT32_MAX);
	module.checksum = (uint32_t)varint_parse_upto(from, UINT32_MAX);
	module.pdb_age = (uint32_t)varint_parse_upto(from, UINT32_MAX);
	flags = varint_parse(from);
	module.has_identity = flags & MODULE_HAS_IDENTITY;
	module.path = keep_text(recording, from);
	module.pdb = keep_text(recording, from);
	module.pdb_guid = keep_text(recording, from);
	if (!(flags & MODULE_HAS_PDB))
		module.pdb = NULL;
	if (!(flags & MODULE_HAS_GUID))
		module.pdb_guid = NULL;
	if (!from->at)
		return;
	array_grow((void **)&recording->modules, &recording->module_cap,
		recording->facts.module_count, sizeof(*recording->modules));
	recording->modules[recording->facts.module_count++] = module;
}

static void take_stack(struct recording *recording, struct payload *from)
{
	const struct record_facts *facts = &recording->facts;
	uint64_t most = RECORD_ALL_FRAMES_MAX - recording->frame_count;
	uint32_t count = (uint32_t)varint_parse_upto(
		from, most < RECORD_FRAMES_MAX ? most : RECORD_FRAMES_MAX);
	struct record_frame *frames;

	if (!from->at || (size_t)(from->end - from->at) / 2 < count) {
		from->at = NULL;
		return;
	}
	frames = arena_alloc(&recording->arena, count * sizeof(*frames));
	for (uint32_t i = 0; i < count; i++) {
		uint64_t module = varint_parse_upto(from, facts->module_count);

		frames[i].module = module ? (uint32_t)module - 1 : RECORD_NO_MODULE;
		frames[i].offset = varint_parse(from);
	}
	if (!from->at)
		return;
	array_grow((void **)&recording->stacks, &recording->stack_cap, facts->stack_count,
		sizeof(*recording->stacks));
	recording->stacks[recording->facts.stack_count++] = (struct record_stack){frames, count};
	recording->frame_count += count;
}

static void take_heap(struct recording *recording, struct payload *from)
{
	uint64_t handle = varint_parse(from);

	if (!from->at)
		return;
	array_grow((void **)&recording->heaps, &recording->heap_cap, recording->facts.heap_count,
		sizeof(*recording->heaps));
	recording->heaps[recording->facts.heap_count++] = handle;
}

static void take_thread(struct recording *recording, struct payload *from)
{
	uint64_t id = varint_parse_upto(from, UINT32_MAX);

	if (!from->at)
		return;
	array_grow((void **)&recording->threads, &recording->thread_cap,
		recording->facts.thread_count, sizeof(*recording->threads));
	recording->threads[recording->facts.thread_count++] = (uint32_t)id;
}

static void take_kind(struct recording *recording, struct payload *from)
{
	const struct record_facts *facts = &recording->facts;
	uint64_t bytes = varint_parse(from);
	uint64_t stack = varint_parse_upto(from, facts->stack_count);
	uint64_t heap = varint_parse_upto(from, facts->heap_count);
	uint64_t memory = varint_parse_upto(from, RECORD_MEMORIES - 1);

	if (!from->at)
		return;
	array_grow((void **)&recording->kinds, &recording->kind_cap, facts->kind_count,
		sizeof(*recording->kinds));
	recording->kinds[recording->facts.kind_count++] =
		(struct record_kind){bytes, stack ? (uint32_t)stack - 1 : RECORD_NO_STACK,
			heap ? (uint32_t)heap - 1 : RECORD_NO_HEAP, (enum record_memory)memory};
}

static int take_list(struct opening *opening, enum chunk_type type, struct payload *from)
{
	struct recording *recording = opening->recording;
	const struct record_facts *facts = &recording->facts;
	const struct {
		size_t have, max;
		void (*take)(struct recording *recording, struct payload *from);
	} lists[] = {
		/* ordered by enum chunk_type */
		{facts->module_count, RECORD_MODULES_MAX, take_module},
		{facts->stack_count, RECORD_STACKS_MAX, take_stack},
		{facts->heap_count, RECORD_HEAPS_MAX, take_heap},
		{facts->thread_count, RECORD_THREADS_MAX, take_thread},
		{facts->kind_count, RECORD_KINDS_MAX, take_kind},
	};
	size_t list = type - CHUNK_MODULES, count;

	if (!take_list_head(from, lists[list].have, lists[list].max, &count))
		return -ERR_BAD_RECORDING;
	while (count-- && from->at)
		lists[list].take(recording, from);
	return from->at == from->end ? 0 : -ERR_BAD_RECORDING;
}

static int take_loads(struct opening *opening, uint64_t time_ms, struct payload *from)
{
	struct recording *recording = opening->recording;
	struct record_facts *facts = &recording->facts;
	uint64_t more = varint_parse_upto(from, RECORD_LOADS_MAX - facts->load_count);

	if (from->at && time_ms < opening->load_ms)
		return -ERR_BAD_RECORDING;
	for (uint64_t i = 0; i < more; i++) {
		uint64_t module = varint_parse_upto(from, 2 * (uint64_t)facts->module_count);
		uint64_t later_ms = varint_parse_upto(from, UINT64_MAX - time_ms);

		if (!from->at || module >> 1 == facts->module_count)
			return -ERR_BAD_RECORDING;
		time_ms += later_ms;
		array_grow((void **)&recording->loads, &recording->load_cap, facts->load_count,
			sizeof(*recording->loads));
		recording->loads[facts->load_count++] =
			(struct record_load){time_ms, (uint32_t)(module >> 1), !(module & 1)};
	}
	opening->load_ms = time_ms;
	return from->at == from->end ? 0 : -ERR_BAD_RECORDING;
}

static int take_mark(struct opening *opening, uint64_t time_ms, struct payload *from)
{
	struct recording *recording = opening->recording;
	struct record_facts *facts = &recording->facts;
	uint64_t what = varint_parse_upto(from, MARK_START);
	/* When a file is opened using its index, the number of events is known only at the end. */
	uint64_t position =
		varint_parse_upto(from, opening->is_by_index ? UINT64_MAX : facts->event_count);
	const char *label = keep_text(recording, from);
	size_t count = facts->mark_count;

	if (from->at != from->end || time_ms < opening->mark_ms ||
		position < (count ? recording->marks[count - 1].position : 0) ||
		count == RECORD_MARKS_MAX)
		return -ERR_BAD_RECORDING;
	opening->mark_ms = time_ms;
	if (what == MARK_START) {
		if (!facts->start_position)
			facts->start_position = position;
		return 0;
	}
	array_grow(
		(void **)&recording->marks, &recording->mark_cap, count, sizeof(*recording->marks));
	recording->marks[facts->mark_count++] = (struct record_mark){time_ms, position, label};
	return 0;
}

static int take_remark(struct opening *opening, struct payload *from)
{
	struct recording *recording = opening->recording;
	struct record_facts *facts = &recording->facts;
	const char *text = keep_text(recording, from);

	if (from->at != from->end || facts->remark_count == RECORD_REMARKS_MAX)
		return -ERR_BAD_RECORDING;
	array_grow((void **)&recording->remarks, &recording->remark_cap, facts->remark_count,
		sizeof(const char *));
	recording->remarks[facts->remark_count++] = text;
	return 0;
}

static int take_end(struct opening *opening, uint64_t time_ms, struct payload *from)
{
	struct recording *recording = opening->recording;
	struct record_facts *facts = &recording->facts;
	uint64_t count = varint_parse(from), lost = varint_parse(from);
	uint64_t peak_bytes = varint_parse(from), peak_position = varint_parse_upto(from, count);
	uint64_t peak_ms = varint_parse_upto(from, time_ms);

	if (from->at != from->end || time_ms < opening->event_ms || time_ms < opening->mark_ms ||
		time_ms < opening->load_ms || count < facts->event_count ||
		(count && !recording->event_chunk_count) || facts->start_position > count ||
		(facts->mark_count && recording->marks[facts->mark_count - 1].position > count) ||
		(!opening->is_by_index && count != facts->event_count))
		return -ERR_BAD_RECORDING;
	facts->event_count = count;
	facts->lost_count = lost;
	facts->peak.bytes = peak_bytes;
	facts->peak.position = peak_position;
	facts->peak.time_ms = peak_ms;
	facts->length_ms = time_ms;
	opening->has_end = true;
	return 0;
}

static void add_place(
	struct record_place **places, size_t *count, size_t *cap, const struct record_place *place)
{
	array_grow((void **)places, cap, *count, sizeof(**places));
	(*places)[(*count)++] = *place;
}

/* Adds an event chunk or a check-point. When a file is opened using its index, event chunks are
 * read only when needed; the number of events in a chunk follows from the next entry. */
static int take_place(struct opening *opening, unsigned type, const struct record_place *place)
{
	struct recording *recording = opening->recording;
	struct record_facts *facts = &recording->facts;
	size_t count = recording->event_chunk_count;

	if (place->time_ms < opening->event_ms)
		return -ERR_BAD_RECORDING;
	opening->event_ms = place->time_ms;
	if (type == CHUNK_CHECKPOINT) {
		add_place(&recording->checkpoints, &recording->checkpoint_count,
			&recording->checkpoint_cap, place);
		if (opening->is_by_index && place->position > facts->event_count)
			facts->event_count = place->position;
		return place->position == facts->event_count ? 0 : -ERR_BAD_RECORDING;
	}
	if (opening->is_by_index && place->position > facts->event_count)
		facts->event_count = place->position;
	if (place->position != facts->event_count ||
		(count && place->position <= recording->events[count - 1].position) ||
		(!count && place->position))
		return -ERR_BAD_RECORDING;
	add_place(&recording->events, &recording->event_chunk_count, &recording->event_chunk_cap,
		place);
	return 0;
}

/* Reads an event chunk when all chunks are read. */
static int take_events(struct opening *opening, const struct chunk_head *head, struct payload *from)
{
	struct record_facts *facts = &opening->recording->facts;
	struct record_events events;
	int rc = 0;

	if (!record_events_parse(from, head->time_ms, facts->has_addresses, &events) ||
		events.peak_position > events.first + events.count ||
		events.peak_ms > events.end_ms)
		rc = -ERR_BAD_RECORDING;
	if (!rc)
		rc = take_place(opening, CHUNK_EVENTS,
			&(struct record_place){opening->offset, head->time_ms, events.first});
	if (rc)
		return rc;
	facts->event_count += events.count;
	facts->lost_count = events.lost_count;
	facts->peak.bytes = events.peak_bytes;
	facts->peak.position = events.peak_position;
	facts->peak.time_ms = events.peak_ms;
	opening->event_ms = events.end_ms;
	return 0;
}

static int take_chunk(struct opening *opening, const struct chunk_head *head, struct payload *from)
{
	if (!opening->has_start && head->type != CHUNK_START)
		return -ERR_BAD_RECORDING;
	switch (head->type) {
	case CHUNK_START: return take_start(opening, from);
	case CHUNK_MODULES:
	case CHUNK_STACKS:
	case CHUNK_HEAPS:
	case CHUNK_THREADS:
	case CHUNK_KINDS: return take_list(opening, (enum chunk_type)head->type, from);
	case CHUNK_EVENTS: return take_events(opening, head, from);
	case CHUNK_CHECKPOINT:
		return take_place(opening, CHUNK_CHECKPOINT,
			&(struct record_place){opening->offset, head->time_ms, varint_parse(from)});
	case CHUNK_MARK: return take_mark(opening, head->time_ms, from);
	case CHUNK_END: return take_end(opening, head->time_ms, from);
	case CHUNK_LOADS: return take_loads(opening, head->time_ms, from);
	case CHUNK_REMARK: return take_remark(opening, from);
	default: return 0; /* written by a later version; readers may skip it */
	}
}

/* ---------------------------------------------------------------- the index, or all chunks */

/* Reads the chunk at opening->offset and parses its contents. */
static int look_at(struct opening *opening, const struct chunk_head *head)
{
	struct payload payload;
	int rc = chunk_read(&opening->reader, opening->offset, head, &payload);

	return rc ? rc : take_chunk(opening, head, &payload);
}

/* Reads an entry of the index. The entry must agree with its chunk. */
static int take_entry(struct opening *opening, struct payload *index, uint64_t end)
{
	uint64_t type = varint_parse_upto(index, UINT8_MAX);
	uint64_t bytes = varint_parse_upto(index, end - opening->offset);
	uint64_t time_ms = varint_parse(index), position = varint_parse(index);
	struct chunk_head head;
	int rc;

	if (!index->at || bytes < CHUNK_HEAD_BYTES)
		return -ERR_BAD_RECORDING;
	if (type == CHUNK_EVENTS || type == CHUNK_CHECKPOINT) {
		rc = !opening->has_start ?
			     -ERR_BAD_RECORDING :
			     take_place(opening, (unsigned)type,
				     &(struct record_place){opening->offset, time_ms, position});
	} else {
		rc = chunk_read_head(&opening->reader, opening->offset, &head);
		if (!rc && (head.type != type || head.bytes + CHUNK_HEAD_BYTES != bytes ||
				   head.time_ms != time_ms))
			rc = -ERR_BAD_RECORDING;
		if (!rc)
			rc = look_at(opening, &head);
	}
	opening->offset += bytes;
	return rc;
}

/* Finds the index using the trailer and reads it into *copy: other chunks are read before the index
 * is used up. */
static int read_index(struct opening *opening, uint64_t *index_offset, struct buf *copy)
{
	uint64_t file_bytes = opening->recording->facts.file_bytes;
	unsigned char trailer[FILE_TRAILER_BYTES];
	struct chunk_head head;
	struct payload payload;
	int rc;

	if (file_bytes < FILE_HEAD_BYTES + FILE_TRAILER_BYTES)
		return -ERR_BAD_RECORDING;
	if (os_read_at(&opening->recording->file, file_bytes - FILE_TRAILER_BYTES, trailer,
		    sizeof(trailer)))
		return -ERR_READ;
	if (!file_trailer_parse(trailer, index_offset))
		return -ERR_BAD_RECORDING;
	rc = chunk_read_head(&opening->reader, *index_offset, &head);
	if (rc || head.type != CHUNK_INDEX)
		return rc ? rc : -ERR_BAD_RECORDING;
	rc = chunk_read(&opening->reader, *index_offset, &head, &payload);
	if (!rc)
		buf_add(copy, payload.at, (size_t)(payload.end - payload.at));
	return rc;
}

static int open_by_index(struct opening *opening)
{
	struct buf copy;
	struct payload index;
	uint64_t end;
	int rc;

	buf_init(&copy);
	rc = read_index(opening, &end, &copy);
	if (!rc) {
		opening->is_by_index = true;
		opening->offset = FILE_HEAD_BYTES;
		index.at = (const unsigned char *)copy.data;
		index.end = index.at + copy.len;
		while (!rc && !opening->has_end && index.at < index.end)
			rc = take_entry(opening, &index, end);
		if (!rc && (!opening->has_end || index.at != index.end || opening->offset != end))
			rc = -ERR_BAD_RECORDING;
	}
	buf_release(&copy);
	return rc;
}

/* Reads all chunks in order, up to the first invalid one. */
static int open_by_chunks(struct opening *opening)
{
	struct record_facts *facts = &opening->recording->facts;
	int rc = 0;

	opening->offset = FILE_HEAD_BYTES;
	while (!rc && !opening->has_end) {
		struct chunk_head head;

		rc = chunk_read_head(&opening->reader, opening->offset, &head);
		if (!rc)
			rc = look_at(opening, &head);
		if (!rc)
			opening->offset += CHUNK_HEAD_BYTES + (uint64_t)head.bytes;
	}
	if (rc == -ERR_BAD_RECORDING && opening->has_start) {
		facts->is_cut = true;
		facts->cut_bytes = opening->offset;
		rc = 0;
	}
	return rc;
}

/* ---------------------------------------------------------------- open, close */

/* Clears everything except the file, its name and its size. */
static void recording_clear(struct recording *recording)
{
	arena_release(&recording->arena);
	free(recording->events);
	free(recording->checkpoints);
	free(recording->modules);
	free(recording->stacks);
	free(recording->heaps);
	free(recording->threads);
	free(recording->kinds);
	free(recording->marks);
	free(recording->loads);
	free(recording->remarks);
	*recording = (struct recording){.path = recording->path,
		.file = recording->file,
		.facts.file_bytes = recording->facts.file_bytes};
}

static int read_all(struct recording *recording, bool is_by_index, struct err *err)
{
	struct opening opening = {.recording = recording};
	struct record_facts *facts = &recording->facts;
	int rc;

	chunk_reader_init(&opening.reader, &recording->file, facts->file_bytes);
	rc = is_by_index ? open_by_index(&opening) : open_by_chunks(&opening);
	chunk_reader_release(&opening.reader);
	if (rc)
		return recording_bad(recording, rc, opening.offset, NULL, err);
	if (!opening.has_end) {
		facts->length_ms =
			opening.event_ms > opening.mark_ms ? opening.event_ms : opening.mark_ms;
		if (opening.load_ms > facts->length_ms)
			facts->length_ms = opening.load_ms;
	}
	facts->modules = recording->modules;
	facts->stacks = recording->stacks;
	facts->heaps = recording->heaps;
	facts->threads = recording->threads;
	facts->kinds = recording->kinds;
	facts->marks = recording->marks;
	facts->loads = recording->loads;
	facts->remarks = recording->remarks;
	return 0;
}

static int read_head(struct recording *recording, struct err *err)
{
	unsigned char head[FILE_HEAD_BYTES];
	int rc;

	if (!recording->facts.file_bytes)
		return err_set(err, ERR_EMPTY, recording->path, NULL);
	if (recording->facts.file_bytes < sizeof(head))
		return err_set(err, ERR_NOT_RECORDING, recording->path, NULL);
	if (os_read_at(&recording->file, 0, head, sizeof(head)))
		return err_set(err, ERR_READ, recording->path, NULL);
	rc = file_head_check(head);
	return rc ? err_set(err, (enum err_code) - rc, recording->path, NULL) : 0;
}

bool record_is_head(const void *bytes, size_t len)
{
	return len >= FILE_HEAD_BYTES && file_head_check(bytes) != -ERR_NOT_RECORDING;
}

int recording_open(struct recording **recording, const char *path, struct err *err)
{
	struct recording *made = xcalloc(1, sizeof(*made));
	int rc = os_open(&made->file, path, err);

	if (rc) {
		free(made);
		return rc;
	}
	made->path = xstrdup(path);
	made->facts.file_bytes = os_size(&made->file);
	rc = read_head(made, err);
	if (!rc && read_all(made, true, NULL)) {
		recording_clear(made);
		rc = read_all(made, false, err);
	}
	if (rc) {
		recording_close(made);
		return rc;
	}
	*recording = made;
	return 0;
}

void recording_close(struct recording *recording)
{
	if (!recording)
		return;
	recording_clear(recording);
	os_close(&recording->file);
	free(recording->path);
	free(recording);
}

const struct record_facts *recording_facts(const struct recording *recording)
{
	return &recording->facts;
}

static double weight_of(const struct record_facts *facts, uint32_t kind)
{
	return facts->sample_bytes && facts->kinds[kind].memory == RECORD_HEAP ?
		       block_sample_weight(facts->kinds[kind].bytes, facts->sample_bytes) :
		       1;
}

/* Rounds down. Returns 2^62 for larger numbers, which cannot occur. */
static uint64_t round_down(double number)
{
	return number < 0x1p62 ? (uint64_t)number : (uint64_t)1 << 62;
}

uint64_t record_kind_stands_for(const struct record_facts *facts, uint32_t kind, uint64_t count)
{
	/* The fractions of part are evenly distributed over all kinds. */
	double weight = weight_of(facts, kind), part = kind * 0.6180339887498949;

	return weight > 1 && count ?
		       round_down((double)count * weight + part - (double)(uint64_t)part) :
		       count;
}

uint64_t record_kind_bytes(const struct record_facts *facts, uint32_t kind)
{
	uint64_t bytes = facts->kinds[kind].bytes;
	double weight = weight_of(facts, kind);

	return weight > 1 ? round_down((double)bytes * weight + 0.5) : bytes;
}
