/*
 * Contents of a recording's chunks. Each chunk is parsed and added to the recording that is being
 * opened. This file checks the numbers in chunks, so that readers of the recording can rely on
 * them. For events, only the places of their chunks are stored.
 */
#include <stdlib.h>
#include <string.h>

#include "core/dump/kv.h"
#include "core/record/recording_read.h"

static char *read_text(struct recording *recording, struct payload *from)
{
	size_t len;
	size_t room = RECORD_ALL_TEXTS_MAX - recording->text_bytes;
	const char *text =
		payload_text(from, room < RECORD_TEXT_MAX ? room : RECORD_TEXT_MAX, &len);

	recording->text_bytes += len;
	return arena_text(&recording->arena, text, len);
}

static int read_start(struct recording_opening *opening, struct payload *from)
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

/* Reads the head of one part of a list. The part must continue the list. Sets `*count` to the
 * number of items in the part. */
static bool read_list_head(struct payload *from, size_t have, size_t max, size_t *count)
{
	uint64_t first = varint_parse(from);

	*count = (size_t)varint_parse_upto(from, max - have);
	return from->at && first == have;
}

static void read_module(struct recording *recording, struct payload *from)
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
	module.path = read_text(recording, from);
	module.pdb = read_text(recording, from);
	module.pdb_guid = read_text(recording, from);
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

static void read_stack(struct recording *recording, struct payload *from)
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

static void read_heap(struct recording *recording, struct payload *from)
{
	uint64_t handle = varint_parse(from);

	if (!from->at)
		return;
	array_grow((void **)&recording->heaps, &recording->heap_cap, recording->facts.heap_count,
		sizeof(*recording->heaps));
	recording->heaps[recording->facts.heap_count++] = handle;
}

static void read_thread(struct recording *recording, struct payload *from)
{
	uint64_t id = varint_parse_upto(from, UINT32_MAX);

	if (!from->at)
		return;
	array_grow((void **)&recording->threads, &recording->thread_cap,
		recording->facts.thread_count, sizeof(*recording->threads));
	array_grow((void **)&recording->thread_names, &recording->name_cap,
		recording->facts.thread_count, sizeof(const char *));
	recording->thread_names[recording->facts.thread_count] = NULL;
	recording->threads[recording->facts.thread_count++] = (uint32_t)id;
}

static void read_kind(struct recording *recording, struct payload *from)
{
	const struct record_facts *facts = &recording->facts;
	uint64_t bytes = varint_parse(from);
	uint64_t stack = varint_parse_upto(from, facts->stack_count);
	uint64_t heap = varint_parse_upto(from, facts->heap_count);
	uint64_t memory = varint_parse_upto(from, RECORD_MAPPED);

	if (!from->at)
		return;
	array_grow((void **)&recording->kinds, &recording->kind_cap, facts->kind_count,
		sizeof(*recording->kinds));
	recording->kinds[recording->facts.kind_count++] =
		(struct record_kind){bytes, stack ? (uint32_t)stack - 1 : RECORD_NO_STACK,
			heap ? (uint32_t)heap - 1 : RECORD_NO_HEAP, (enum record_memory)memory};
}

/* Reads the number of a kind whose allocations are stacks of threads. */
static void read_thread_stack(struct recording *recording, struct payload *from)
{
	const size_t count = recording->facts.kind_count;
	uint64_t kind = varint_parse_upto(from, count);

	if (!from->at || kind == count || recording->kinds[kind].memory != RECORD_COMMITTED) {
		from->at = NULL;
		return;
	}
	recording->kinds[kind].memory = RECORD_STACK;
	recording->thread_stack_count++;
}

static int read_list(struct recording_opening *opening, enum chunk_type type, struct payload *from)
{
	struct recording *recording = opening->recording;
	const struct record_facts *facts = &recording->facts;
	const struct {
		size_t have, max;
		void (*take)(struct recording *recording, struct payload *from);
	} lists[] = {
		/* ordered by enum chunk_type */
		{facts->module_count, RECORD_MODULES_MAX, read_module},
		{facts->stack_count, RECORD_STACKS_MAX, read_stack},
		{facts->heap_count, RECORD_HEAPS_MAX, read_heap},
		{facts->thread_count, RECORD_THREADS_MAX, read_thread},
		{facts->kind_count, RECORD_KINDS_MAX, read_kind},
		{recording->thread_stack_count, RECORD_KINDS_MAX, read_thread_stack},
	};
	size_t list = type == CHUNK_THREAD_STACKS ? 5 : type - CHUNK_MODULES, count;

	if (!read_list_head(from, lists[list].have, lists[list].max, &count))
		return -ERR_BAD_RECORDING;
	while (count-- && from->at)
		lists[list].take(recording, from);
	return from->at == from->end ? 0 : -ERR_BAD_RECORDING;
}

static int read_loads(struct recording_opening *opening, uint64_t time_ms, struct payload *from)
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

static int read_mark(struct recording_opening *opening, uint64_t time_ms, struct payload *from)
{
	struct recording *recording = opening->recording;
	struct record_facts *facts = &recording->facts;
	uint64_t what = varint_parse_upto(from, MARK_START);
	/* If the file is opened with its index, the number of events is not known until the end, so
	 * every position is accepted here. */
	uint64_t position =
		varint_parse_upto(from, opening->is_by_index ? UINT64_MAX : facts->event_count);
	const char *label = read_text(recording, from);
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

static int read_thread_name(struct recording_opening *opening, struct payload *from)
{
	struct recording *recording = opening->recording;
	const size_t count = recording->facts.thread_count;
	uint64_t thread = varint_parse_upto(from, count);
	const char *name = read_text(recording, from);

	if (from->at != from->end || thread == count ||
		recording->name_count++ == RECORD_THREAD_NAMES_MAX)
		return -ERR_BAD_RECORDING;
	recording->thread_names[thread] = *name ? name : NULL;
	return 0;
}

static int read_remark(struct recording_opening *opening, struct payload *from)
{
	struct recording *recording = opening->recording;
	struct record_facts *facts = &recording->facts;
	const char *text = read_text(recording, from);

	if (from->at != from->end || facts->remark_count == RECORD_REMARKS_MAX)
		return -ERR_BAD_RECORDING;
	array_grow((void **)&recording->remarks, &recording->remark_cap, facts->remark_count,
		sizeof(const char *));
	recording->remarks[facts->remark_count++] = text;
	return 0;
}

static int read_end(struct recording_opening *opening, uint64_t time_ms, struct payload *from)
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

int recording_add_place(
	struct recording_opening *opening, unsigned type, const struct record_place *place)
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

/* Reads an event chunk, if all chunks are being read. */
static int read_events(
	struct recording_opening *opening, const struct chunk_head *head, struct payload *from)
{
	struct record_facts *facts = &opening->recording->facts;
	struct record_events events;
	int rc = 0;

	if (!record_events_parse(from, head->time_ms, facts->has_addresses, &events) ||
		events.peak_position > events.first + events.count ||
		events.peak_ms > events.end_ms)
		rc = -ERR_BAD_RECORDING;
	if (!rc)
		rc = recording_add_place(opening, CHUNK_EVENTS,
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

int recording_add_chunk(
	struct recording_opening *opening, const struct chunk_head *head, struct payload *from)
{
	if (!opening->has_start && head->type != CHUNK_START)
		return -ERR_BAD_RECORDING;
	switch (head->type) {
	case CHUNK_START: return read_start(opening, from);
	case CHUNK_MODULES:
	case CHUNK_STACKS:
	case CHUNK_HEAPS:
	case CHUNK_THREADS:
	case CHUNK_KINDS:
	case CHUNK_THREAD_STACKS: return read_list(opening, (enum chunk_type)head->type, from);
	case CHUNK_EVENTS: return read_events(opening, head, from);
	case CHUNK_CHECKPOINT:
		return recording_add_place(opening, CHUNK_CHECKPOINT,
			&(struct record_place){opening->offset, head->time_ms, varint_parse(from)});
	case CHUNK_MARK: return read_mark(opening, head->time_ms, from);
	case CHUNK_END: return read_end(opening, head->time_ms, from);
	case CHUNK_LOADS: return read_loads(opening, head->time_ms, from);
	case CHUNK_REMARK: return read_remark(opening, from);
	case CHUNK_THREAD_NAME: return read_thread_name(opening, from);
	default: return 0; /* written by a later version; readers may skip it */
	}
}
