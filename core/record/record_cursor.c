/*
 * Decodes the events of a recording between two positions. A cursor starts at the last check-point
 * at or before the first position, and verifies its counters at each check-point that it passes.
 * Events are decoded from columns, in batches. This file also computes states.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/text.h"
#include "core/record/recording_read.h"

#define BATCH 2048

struct cursor_counter {
	uint64_t allocated, live, freed; /* `freed` is the number of the last freed allocation */
};

struct record_cursor {
	struct recording *recording;
	struct chunk_reader reader;
	struct cursor_counter *counters; /* indexed by kind */
	/* position after the last decoded event; position at which the cursor ends */
	uint64_t position, to;
	uint64_t time_ms; /* time of the last decoded event */
	uint32_t thread;
	/* index of the next place in recording->events and recording->checkpoints */
	size_t next_chunk, next_checkpoint;

	/* The current chunk, and the progress of decoding in its events and columns. */
	struct record_events chunk;
	uint64_t offset;
	size_t at, free_at, age_at, tick_at, thread_at, free_stack_at, address_at;
	uint64_t addr; /* address of the last allocation */
	/* number of the first event after the next tick, or after the next change of thread;
	 * SIZE_MAX: none left */
	size_t next_tick, next_thread;
	/* event number of the next free with a known stack; SIZE_MAX: none left */
	size_t next_free_stack;

	uint32_t codes[BATCH];
	struct record_event events[BATCH];
	/* number of decoded events in events[]; index of the next event to return */
	size_t event_count, event_at;
};

/* ---------------------------------------------------------------- check-points */

struct checkpoint {
	size_t kind_count;
	struct column allocated, live;
};

/* Returns true if the total of all live blocks fits into 64 bits and equals the total in the
 * check-point. */
static bool is_total(const struct recording *recording, const struct checkpoint *checkpoint,
	uint64_t total_bytes)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < checkpoint->kind_count; i++) {
		const struct record_kind *kind = &recording->kinds[i];
		uint64_t live = column_get(&checkpoint->live, i);
		uint64_t bytes = kind->memory == RECORD_RESERVED ? 0 : kind->bytes;

		if (live > column_get(&checkpoint->allocated, i) ||
			(bytes && live > (UINT64_MAX - sum) / bytes))
			return false;
		sum += live * bytes;
	}
	return sum == total_bytes;
}

static int read_checkpoint(
	struct record_cursor *cursor, size_t number, struct checkpoint *checkpoint)
{
	const struct recording *recording = cursor->recording;
	const struct record_place *place = &recording->checkpoints[number];
	struct payload payload;
	uint64_t position, total_bytes;
	int rc;

	cursor->offset = place->offset;
	rc = record_place_read(&cursor->reader, place, CHUNK_CHECKPOINT, &payload);
	if (rc)
		return rc;
	position = varint_parse(&payload);
	checkpoint->kind_count = (size_t)varint_parse_upto(&payload, recording->facts.kind_count);
	total_bytes = varint_parse(&payload);
	checkpoint->allocated = column_parse(&payload, checkpoint->kind_count);
	checkpoint->live = column_parse(&payload, checkpoint->kind_count);
	return payload.at == payload.end && position == place->position &&
			       is_total(recording, checkpoint, total_bytes) ?
		       0 :
		       -ERR_BAD_RECORDING;
}

/* Verifies that the next check-point agrees with the events before it. */
static int pass_checkpoint(struct record_cursor *cursor)
{
	const struct record_facts *facts = &cursor->recording->facts;
	struct checkpoint checkpoint;
	int rc = read_checkpoint(cursor, cursor->next_checkpoint, &checkpoint);

	if (rc)
		return rc;
	for (size_t i = 0; i < facts->kind_count; i++) {
		struct cursor_counter *counter = &cursor->counters[i];
		bool is_told = i < checkpoint.kind_count;

		if (counter->allocated != (is_told ? column_get(&checkpoint.allocated, i) : 0) ||
			counter->live != (is_told ? column_get(&checkpoint.live, i) : 0))
			return -ERR_BAD_RECORDING;
		counter->freed = NUMBER_NONE;
	}
	cursor->next_checkpoint++;
	return 0;
}

static int pass_checkpoints(struct record_cursor *cursor)
{
	const struct recording *recording = cursor->recording;
	int rc = 0;

	while (!rc && cursor->next_checkpoint < recording->checkpoint_count &&
		recording->checkpoints[cursor->next_checkpoint].position <= cursor->position)
		rc = pass_checkpoint(cursor);
	return rc;
}

/* Starts at the last check-point at or before the position `from`, or at the beginning of the
 * recording. */
static int start_at_checkpoint(struct record_cursor *cursor, uint64_t from)
{
	const struct recording *recording = cursor->recording;
	size_t number = record_place_at(
		recording->checkpoints, recording->checkpoint_count, from, UINT64_MAX);
	struct checkpoint checkpoint = {0};
	int rc = 0;

	cursor->next_checkpoint = number + 1;
	if (number != SIZE_MAX)
		rc = read_checkpoint(cursor, number, &checkpoint);
	if (rc)
		return rc;
	for (size_t i = 0; i < recording->facts.kind_count; i++) {
		cursor->counters[i].freed = NUMBER_NONE;
		if (i < checkpoint.kind_count) {
			cursor->counters[i].allocated = column_get(&checkpoint.allocated, i);
			cursor->counters[i].live = column_get(&checkpoint.live, i);
		}
	}
	if (number == SIZE_MAX)
		return 0;
	cursor->position = recording->checkpoints[number].position;
	cursor->time_ms = recording->checkpoints[number].time_ms;
	cursor->next_chunk = record_place_at(
		recording->events, recording->event_chunk_count, cursor->position, UINT64_MAX);
	if (cursor->position == recording->facts.event_count)
		cursor->next_chunk = recording->event_chunk_count;
	else if (cursor->next_chunk == SIZE_MAX ||
		 recording->events[cursor->next_chunk].position != cursor->position)
		return -ERR_BAD_RECORDING;
	return 0;
}

/* ---------------------------------------------------------------- events */

/* Advances `*next` to the next place, using the gap with this number in the column. After the last
 * gap, sets `*next` to SIZE_MAX. Returns false if the place lies outside the chunk. */
static bool next_place(
	const struct record_cursor *cursor, const struct column *gaps, size_t number, size_t *next)
{
	uint64_t gap;

	if (number == gaps->count) {
		*next = SIZE_MAX;
		return true;
	}
	gap = column_get(gaps, number);
	if (gap >= cursor->chunk.count - *next - 1)
		return false;
	*next += (size_t)gap + 1;
	return true;
}

static int next_chunk(struct record_cursor *cursor)
{
	const struct recording *recording = cursor->recording;
	struct record_events *chunk = &cursor->chunk;
	int rc = pass_checkpoints(cursor);

	if (!rc && cursor->next_chunk == recording->event_chunk_count)
		rc = -ERR_BAD_RECORDING;
	if (rc)
		return rc;
	cursor->offset = recording->events[cursor->next_chunk].offset;
	rc = record_events_read(recording, &cursor->reader, cursor->next_chunk, chunk);
	if (rc)
		return rc;
	cursor->next_chunk++;
	cursor->at = cursor->free_at = cursor->age_at = 0;
	cursor->tick_at = cursor->thread_at = cursor->free_stack_at = 0;
	cursor->addr = cursor->address_at = 0;
	cursor->next_tick = cursor->next_thread = 0;
	/* must come before the first event, which may itself be a free with a known stack */
	cursor->next_free_stack = SIZE_MAX;
	if (chunk->begin_ms < cursor->time_ms || chunk->thread >= recording->facts.thread_count ||
		!next_place(cursor, &chunk->tick_gaps, 0, &cursor->next_tick) ||
		!next_place(cursor, &chunk->thread_gaps, 0, &cursor->next_thread) ||
		!next_place(cursor, &chunk->free_gaps, 0, &cursor->next_free_stack))
		return -ERR_BAD_RECORDING;
	cursor->time_ms = chunk->begin_ms;
	cursor->thread = chunk->thread;
	return 0;
}

/* Applies the tick and the change of thread that come before the current event, if any. */
static int apply_changes(struct record_cursor *cursor)
{
	struct record_events *chunk = &cursor->chunk;

	if (cursor->at == cursor->next_tick) {
		uint64_t more_ms = column_get(&chunk->ticks, cursor->tick_at++);

		if (more_ms >= chunk->end_ms - cursor->time_ms ||
			!next_place(cursor, &chunk->tick_gaps, cursor->tick_at, &cursor->next_tick))
			return -ERR_BAD_RECORDING;
		cursor->time_ms += more_ms + 1;
	}
	if (cursor->at == cursor->next_thread) {
		uint64_t thread = column_get(&chunk->threads, cursor->thread_at++);

		if (thread >= cursor->recording->facts.thread_count ||
			!next_place(cursor, &chunk->thread_gaps, cursor->thread_at,
				&cursor->next_thread))
			return -ERR_BAD_RECORDING;
		cursor->thread = (uint32_t)thread;
	}
	return 0;
}

static void decode_codes(struct record_cursor *cursor, size_t count)
{
	const struct column *codes = &cursor->chunk.codes;
	const unsigned char *plane = codes->bytes + cursor->at;

	memset(cursor->codes, 0, count * sizeof(*cursor->codes));
	for (unsigned byte = 0; byte < codes->width; byte++, plane += codes->count) {
		for (size_t i = 0; i < count; i++)
			cursor->codes[i] |= (uint32_t)plane[i] << 8 * byte;
	}
}

/* Returns the number of the allocation that the next free releases, or UINT64_MAX if it is
 * invalid. */
static uint64_t read_freed(struct record_cursor *cursor, const struct cursor_counter *counter)
{
	const struct record_events *chunk = &cursor->chunk;
	uint64_t age;
	unsigned how;

	if (cursor->free_at == chunk->free_count)
		return UINT64_MAX;
	how = chunk->frees[cursor->free_at];
	if (how < AGE_BACK)
		return counter->freed + 1 + (how - AGE_AHEAD);
	if (how < AGE_NEAR)
		return counter->freed - 1 - (how - AGE_BACK);
	if (how < AGE_FAR)
		age = how - AGE_NEAR;
	else if (cursor->age_at < chunk->ages.count)
		age = column_get(&chunk->ages, cursor->age_at++);
	else
		return UINT64_MAX;
	return age < counter->allocated ? counter->allocated - 1 - age : UINT64_MAX;
}

/* Decodes consecutive events that have the same time and thread. */
static int decode_run(struct record_cursor *cursor, const uint32_t *codes,
	struct record_event *events, size_t count)
{
	size_t kind_count = cursor->recording->facts.kind_count;

	for (size_t i = 0; i < count; i++) {
		uint32_t kind = codes[i] >> 1;
		struct cursor_counter *counter;

		if (kind >= kind_count)
			return -ERR_BAD_RECORDING;
		counter = &cursor->counters[kind];
		if (codes[i] & 1) {
			uint64_t number = read_freed(cursor, counter);

			if (number >= counter->allocated || !counter->live)
				return -ERR_BAD_RECORDING;
			cursor->free_at++;
			counter->live--;
			counter->freed = number;
			events[i].number = number;
			events[i].type = RECORD_FREE;
		} else {
			counter->live++;
			events[i].number = counter->allocated++;
			events[i].type = RECORD_ALLOC;
		}
		events[i].freed_by = RECORD_NO_STACK;
		events[i].kind = kind;
		events[i].time_ms = cursor->time_ms;
		events[i].thread = cursor->thread;
	}
	return 0;
}

/* Returns true if all columns of the chunk are used up and the end time of the chunk has been
 * reached. */
static bool is_used_up(const struct record_cursor *cursor)
{
	const struct record_events *chunk = &cursor->chunk;

	return cursor->free_at == chunk->free_count && cursor->age_at == chunk->ages.count &&
	       cursor->tick_at == chunk->ticks.count && cursor->thread_at == chunk->threads.count &&
	       cursor->time_ms == chunk->end_ms;
}

/* Sets `freed_by` in the last `count` decoded events. */
static int decode_freed_by(struct record_cursor *cursor, size_t count)
{
	const struct record_events *chunk = &cursor->chunk;

	while (cursor->next_free_stack < cursor->at) {
		struct record_event *event =
			&cursor->events[cursor->next_free_stack - (cursor->at - count)];
		uint64_t stack = column_get(&chunk->free_stacks, cursor->free_stack_at++);

		if (event->type != RECORD_FREE || stack >= cursor->recording->facts.stack_count ||
			!next_place(cursor, &chunk->free_gaps, cursor->free_stack_at,
				&cursor->next_free_stack))
			return -ERR_BAD_RECORDING;
		event->freed_by = (uint32_t)stack;
	}
	return 0;
}

static int decode_addrs(struct record_cursor *cursor, size_t count)
{
	const struct column *addresses = &cursor->chunk.addresses;

	for (size_t i = 0; i < count; i++) {
		struct record_event *event = &cursor->events[i];
		uint64_t far;

		event->addr = 0;
		if (event->type == RECORD_FREE)
			continue;
		if (cursor->address_at == addresses->count)
			return -ERR_BAD_RECORDING;
		far = column_get(addresses, cursor->address_at++);
		cursor->addr += far & 1 ? ~(far >> 1) : far >> 1;
		event->addr = cursor->addr;
	}
	return 0;
}

/* Decodes the next events of the current or next chunk into events[]. Stops at the position
 * `end`. */
static int decode(struct record_cursor *cursor, uint64_t end)
{
	size_t count, done = 0;
	int rc = 0;

	if (cursor->at == cursor->chunk.count)
		rc = next_chunk(cursor);
	if (rc)
		return rc;
	count = cursor->chunk.count - cursor->at;
	count = count < BATCH ? count : BATCH;
	count = count < end - cursor->position ? count : (size_t)(end - cursor->position);
	decode_codes(cursor, count);
	while (!rc && done < count) {
		size_t run = count - done;

		rc = apply_changes(cursor);
		run = run < cursor->next_tick - cursor->at ? run : cursor->next_tick - cursor->at;
		run = run < cursor->next_thread - cursor->at ? run :
							       cursor->next_thread - cursor->at;
		if (!rc)
			rc = decode_run(cursor, cursor->codes + done, cursor->events + done, run);
		done += run;
		cursor->at += run;
	}
	if (!rc)
		rc = decode_freed_by(cursor, count);
	if (!rc && cursor->recording->facts.has_addresses)
		rc = decode_addrs(cursor, count);
	if (!rc && cursor->at == cursor->chunk.count && !is_used_up(cursor))
		rc = -ERR_BAD_RECORDING;
	cursor->position += count;
	cursor->event_count = count;
	cursor->event_at = 0;
	return rc;
}

static int fail(struct record_cursor *cursor, int rc, struct err *err)
{
	cursor->to = cursor->position; /* read nothing more */
	cursor->next_checkpoint = cursor->recording->checkpoint_count;
	cursor->event_at = cursor->event_count = 0;
	return record_events_bad(cursor->recording, rc, cursor->offset, cursor->time_ms, err);
}

int record_cursor_open(struct record_cursor **cursor, struct recording *recording, uint64_t from,
	uint64_t to, struct err *err)
{
	struct record_cursor *made;
	int rc;

	if (from > to || to > recording->facts.event_count) {
		err_set(err, ERR_MOMENT, recording->path, "the recording has %" PRIu64 " event%s",
			recording->facts.event_count, text_plural(recording->facts.event_count));
		return -ERR_MOMENT;
	}
	made = xcalloc(1, sizeof(*made));
	made->recording = recording;
	made->to = to;
	made->counters = xcalloc(recording->facts.kind_count, sizeof(*made->counters));
	chunk_reader_init(&made->reader, &recording->file, recording->facts.file_bytes);
	rc = start_at_checkpoint(made, from);
	while (!rc && made->position < from)
		rc = decode(made, from);
	made->event_count = 0;
	if (rc) {
		fail(made, rc, err);
		record_cursor_close(made);
		return rc;
	}
	*cursor = made;
	return 0;
}

void record_cursor_close(struct record_cursor *cursor)
{
	if (!cursor)
		return;
	chunk_reader_release(&cursor->reader);
	free(cursor->counters);
	free(cursor);
}

int record_next_events(struct record_cursor *cursor, const struct record_event **events,
	size_t *count, struct err *err)
{
	bool is_end = cursor->position == cursor->to;

	if (cursor->event_at == cursor->event_count) {
		/* Another cursor may start at this check-point, so the counters must agree. */
		int rc = is_end ? pass_checkpoints(cursor) : decode(cursor, cursor->to);

		if (rc)
			return fail(cursor, rc, err);
		if (is_end)
			return 0;
	}
	*events = cursor->events + cursor->event_at;
	*count = cursor->event_count - cursor->event_at;
	cursor->event_at = cursor->event_count;
	return 1;
}

int record_next(struct record_cursor *cursor, struct record_event *event, struct err *err)
{
	const struct record_event *events;
	size_t count;
	int rc;

	if (cursor->event_at == cursor->event_count) {
		rc = record_next_events(cursor, &events, &count, err);
		if (rc <= 0)
			return rc;
		cursor->event_at = 0;
	}
	*event = cursor->events[cursor->event_at++];
	return 1;
}

/* ---------------------------------------------------------------- states */

uint64_t recording_checkpoint(const struct recording *recording, uint64_t position)
{
	size_t number = record_place_at(
		recording->checkpoints, recording->checkpoint_count, position, UINT64_MAX);

	return number == SIZE_MAX ? 0 : recording->checkpoints[number].position;
}

/* Adds up the memory in use at a state. Returns false if the sum does not fit into 64 bits. */
static bool state_bytes(
	const struct recording *recording, const struct record_state *state, uint64_t *bytes)
{
	*bytes = 0;
	for (size_t i = 0; i < state->kind_count; i++) {
		const struct record_kind *kind = &recording->kinds[i];

		if (kind->memory == RECORD_RESERVED || !kind->bytes)
			continue;
		if (state->live[i] > (UINT64_MAX - *bytes) / kind->bytes)
			return false;
		*bytes += state->live[i] * kind->bytes;
	}
	return true;
}

int recording_state(
	struct recording *recording, uint64_t position, struct record_state *state, struct err *err)
{
	const struct record_facts *facts = &recording->facts;
	struct record_cursor *cursor;
	struct record_state made;
	uint64_t bytes;
	int rc = record_cursor_open(&cursor, recording, position, position, err);

	if (rc)
		return rc;
	made = (struct record_state){
		.position = position, .time_ms = cursor->time_ms, .kind_count = facts->kind_count};
	made.allocated = xmalloc(made.kind_count * sizeof(*made.allocated));
	made.live = xmalloc(made.kind_count * sizeof(*made.live));
	for (size_t i = 0; i < made.kind_count; i++) {
		made.allocated[i] = cursor->counters[i].allocated;
		made.live[i] = cursor->counters[i].live;
	}
	if (!state_bytes(recording, &made, &bytes) || bytes > facts->peak.bytes ||
		(position == facts->peak.position && bytes != facts->peak.bytes))
		rc = recording_bad(recording, -ERR_BAD_RECORDING, cursor->offset,
			"the recorded peak is wrong", err);
	record_cursor_close(cursor);
	if (rc)
		record_state_release(&made);
	else
		*state = made;
	return rc;
}

void record_state_release(struct record_state *state)
{
	free(state->allocated);
	free(state->live);
	*state = (struct record_state){0};
}
