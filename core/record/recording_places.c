/* Places of event chunks and check-points in an open recording. Finds a place by its position or
 * time. Reads the chunk at a place, and checks it against the place. */
#include <inttypes.h>
#include <stdio.h>

#include "core/record/recording_read.h"

size_t record_place_at(
	const struct record_place *places, size_t count, uint64_t position, uint64_t time_ms)
{
	size_t from = 0, to = count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (places[middle].position <= position && places[middle].time_ms <= time_ms)
			from = middle + 1;
		else
			to = middle;
	}
	return from - 1;
}

/* Returns the position after the last event of a chunk, using the list of places. */
static uint64_t chunk_end(const struct recording *recording, size_t number)
{
	return number + 1 < recording->event_chunk_count ? recording->events[number + 1].position :
							   recording->facts.event_count;
}

int record_place_read(struct chunk_reader *reader, const struct record_place *place,
	enum chunk_type type, struct payload *payload)
{
	struct chunk_head head;
	int rc = chunk_read_head(reader, place->offset, &head);

	if (!rc && (head.type != type || head.time_ms != place->time_ms))
		rc = -ERR_BAD_RECORDING;
	return rc ? rc : chunk_read(reader, place->offset, &head, payload);
}

int record_events_read(const struct recording *recording, struct chunk_reader *reader,
	size_t number, struct record_events *events)
{
	const struct record_place *place = &recording->events[number];
	struct payload payload;
	int rc = record_place_read(reader, place, CHUNK_EVENTS, &payload);

	if (rc)
		return rc;
	return record_events_parse(
		       &payload, place->time_ms, recording->facts.has_addresses, events) &&
			       events->first == place->position &&
			       events->count == chunk_end(recording, number) - events->first &&
			       events->end_ms <= recording->facts.length_ms ?
		       0 :
		       -ERR_BAD_RECORDING;
}

int record_events_bad(const struct recording *recording, int rc, uint64_t offset, uint64_t time_ms,
	struct err *err)
{
	char detail[80];

	snprintf(detail, sizeof(detail), "readable up to %" PRIu64 ".%03u s", time_ms / 1000,
		(unsigned)(time_ms % 1000));
	return recording_bad(recording, rc, offset, detail, err);
}

int record_events_until(
	struct recording *recording, uint64_t time_ms, uint64_t *position, struct err *err)
{
	size_t number = record_place_at(
		recording->events, recording->event_chunk_count, UINT64_MAX, time_ms);
	struct chunk_reader reader;
	struct record_events events;
	uint64_t at = 0, now_ms;
	size_t tick = 0;
	int rc;

	if (number == SIZE_MAX) {
		*position = 0;
		return 0;
	}
	chunk_reader_init(&reader, &recording->file, recording->facts.file_bytes);
	rc = record_events_read(recording, &reader, number, &events);
	for (now_ms = recording->events[number].time_ms; !rc && tick < events.ticks.count; tick++) {
		uint64_t gap = column_get(&events.tick_gaps, tick);
		uint64_t more_ms = column_get(&events.ticks, tick);

		if (gap >= events.count - at - 1 || more_ms >= events.end_ms - now_ms) {
			rc = -ERR_BAD_RECORDING;
		} else if (more_ms >= time_ms - now_ms) {
			break;
		} else {
			at += gap + 1;
			now_ms += more_ms + 1;
		}
	}
	if (rc)
		record_events_bad(recording, rc, recording->events[number].offset,
			recording->events[number].time_ms, err);
	else if (tick < events.ticks.count)
		*position = events.first + at + column_get(&events.tick_gaps, tick) + 1;
	else
		*position = events.first + events.count;
	chunk_reader_release(&reader);
	return rc;
}
