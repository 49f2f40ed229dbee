/* Collects, writes and parses the columns of a chunk of events. */
#include "core/record/event_columns.h"

#include <stdlib.h>

#define COLUMNS 9

static void columns_list(struct event_columns *columns, struct column_values *(*list)[COLUMNS])
{
	struct column_values *const all[COLUMNS] = {&columns->codes, &columns->ages,
		&columns->tick_gaps, &columns->ticks, &columns->thread_gaps, &columns->threads,
		&columns->free_gaps, &columns->free_stacks, &columns->addresses};

	for (size_t i = 0; i < COLUMNS; i++)
		(*list)[i] = all[i];
}

void event_columns_init(struct event_columns *columns)
{
	struct column_values *list[COLUMNS];

	*columns = (struct event_columns){0};
	columns_list(columns, &list);
	for (size_t i = 0; i < COLUMNS; i++)
		list[i]->values = xmalloc(EVENT_COLUMNS_MAX * sizeof(*list[i]->values));
	columns->frees = xmalloc(EVENT_COLUMNS_MAX);
}

void event_columns_release(struct event_columns *columns)
{
	struct column_values *list[COLUMNS];

	columns_list(columns, &list);
	for (size_t i = 0; i < COLUMNS; i++)
		free(list[i]->values);
	free(columns->frees);
}

void event_columns_change(struct event_columns *columns, uint64_t now_ms, uint32_t now_thread)
{
	size_t at = columns->codes.count;

	if (!at) {
		columns->begin_ms = now_ms;
		columns->begin_thread = now_thread;
		columns->tick_at = columns->thread_at = 0;
		columns->free_at = SIZE_MAX;
	} else if (now_ms != columns->last_ms) {
		column_values_add(&columns->tick_gaps, at - columns->tick_at - 1);
		column_values_add(&columns->ticks, now_ms - columns->last_ms - 1);
		columns->tick_at = at;
	}
	if (at && now_thread != columns->last_thread) {
		column_values_add(&columns->thread_gaps, at - columns->thread_at - 1);
		column_values_add(&columns->threads, now_thread);
		columns->thread_at = at;
	}
	columns->last_ms = now_ms;
	columns->last_thread = now_thread;
}

void event_columns_write_counts(struct buf *to, const struct event_columns *columns)
{
	varint_write(to, columns->codes.count);
	varint_write(to, columns->free_count);
	varint_write(to, columns->ages.count);
	varint_write(to, columns->ticks.count);
	varint_write(to, columns->threads.count);
	varint_write(to, columns->free_stacks.count);
	varint_write(to, columns->begin_thread);
	varint_write(to, columns->last_ms - columns->begin_ms);
}

static void write_values(struct buf *to, struct column_values *values)
{
	column_write(to, values->values, values->count);
	values->count = 0;
}

void event_columns_write(struct buf *to, struct event_columns *columns, bool has_addresses)
{
	write_values(to, &columns->codes);
	buf_add(to, columns->frees, columns->free_count);
	write_values(to, &columns->ages);
	write_values(to, &columns->tick_gaps);
	write_values(to, &columns->ticks);
	write_values(to, &columns->thread_gaps);
	write_values(to, &columns->threads);
	write_values(to, &columns->free_gaps);
	write_values(to, &columns->free_stacks);
	if (has_addresses)
		write_values(to, &columns->addresses);
	columns->last_addr = 0;
	columns->free_count = 0;
}

bool record_events_parse(struct payload *payload, uint64_t begin_ms, bool has_addresses,
	struct record_events *events)
{
	size_t age_count, tick_count, thread_count, free_stack_count;
	uint64_t span_ms;

	*events = (struct record_events){.first = varint_parse(payload), .begin_ms = begin_ms};
	events->count = (size_t)varint_parse_upto(payload, CHUNK_EVENTS_MAX);
	events->free_count = (size_t)varint_parse_upto(payload, events->count);
	age_count = (size_t)varint_parse_upto(payload, events->free_count);
	tick_count = (size_t)varint_parse_upto(payload, events->count);
	thread_count = (size_t)varint_parse_upto(payload, events->count);
	free_stack_count = (size_t)varint_parse_upto(payload, events->free_count);
	events->thread = (uint32_t)varint_parse_upto(payload, UINT32_MAX);
	span_ms = varint_parse(payload);
	events->end_ms = begin_ms + span_ms;
	events->lost_count = varint_parse(payload);
	events->peak_bytes = varint_parse(payload);
	events->peak_position = varint_parse(payload);
	events->peak_ms = varint_parse(payload);
	events->codes = column_parse(payload, events->count);
	if (!payload->at || events->free_count > (size_t)(payload->end - payload->at))
		return false;
	events->frees = payload->at;
	payload->at += events->free_count;
	events->ages = column_parse(payload, age_count);
	events->tick_gaps = column_parse(payload, tick_count);
	events->ticks = column_parse(payload, tick_count);
	events->thread_gaps = column_parse(payload, thread_count);
	events->threads = column_parse(payload, thread_count);
	events->free_gaps = column_parse(payload, free_stack_count);
	events->free_stacks = column_parse(payload, free_stack_count);
	if (has_addresses)
		events->addresses = column_parse(payload, events->count - events->free_count);
	return payload->at == payload->end && events->count && events->codes.width <= 4 &&
	       events->first <= UINT64_MAX - events->count && events->end_ms >= begin_ms;
}
