/* Memory usage in a window: usage over time, and sizes of allocations. Several threads each read a
 * part of the window. Usage over time needs one pass over the events. */
#include "diff/read/read_use.h"

#include <stdlib.h>
#include <string.h>

#include <stdatomic.h>

#include "core/base/memory.h"
#include "core/base/os.h"

/* A window that is divided into parts, and the function that reads a part. */
struct use_parts {
	int (*read)(void *ctx, unsigned number, uint64_t from, uint64_t to, struct err *err);
	void *ctx;
	uint64_t cuts[USE_PARTS_MAX + 1];
	unsigned count;
	atomic_uint next;
	int rc[USE_PARTS_MAX];
	struct err err[USE_PARTS_MAX];
};

static void read_some(void *ctx, unsigned thread)
{
	struct use_parts *parts = ctx;
	unsigned at;

	(void)thread;
	while ((at = atomic_fetch_add(&parts->next, 1)) < parts->count)
		parts->rc[at] = parts->read(
			parts->ctx, at, parts->cuts[at], parts->cuts[at + 1], &parts->err[at]);
}

int use_read_parts(struct recording *recording, uint64_t from, uint64_t to,
	int (*read)(void *ctx, unsigned number, uint64_t from, uint64_t to, struct err *err),
	void *ctx, struct err *err)
{
	struct use_parts parts = {.read = read, .ctx = ctx, .cuts = {from}};
	unsigned threads = thread_cores();

	threads = threads < USE_PARTS_MAX ? threads : USE_PARTS_MAX;
	for (unsigned i = 1; i < threads; i++) {
		uint64_t end = recording_checkpoint(recording, from + (to - from) / threads * i);

		if (end > parts.cuts[parts.count])
			parts.cuts[++parts.count] = end;
	}
	parts.cuts[++parts.count] = to;
	thread_run(parts.count, read_some, &parts);
	for (unsigned i = 0; i < parts.count; i++) {
		if (parts.rc[i]) {
			*err = parts.err[i];
			return parts.rc[i];
		}
	}
	return 0;
}

const char *use_memory_name(enum record_memory memory)
{
	static const char *const names[] = {
		[RECORD_HEAP] = "heap",
		[RECORD_COMMITTED] = "committed",
		[RECORD_RESERVED] = "reserved",
		[RECORD_MAPPED] = "mapped",
		[RECORD_STACK] = "stack",
	};

	return names[memory];
}

struct use use_sum(const struct use_window *window, const struct use state[RECORD_MEMORIES])
{
	struct use sum = {0};

	for (unsigned i = 0; i < RECORD_MEMORIES; i++) {
		if (!window->is_counted[i])
			continue;
		sum.bytes += state[i].bytes;
		sum.count += state[i].count;
	}
	return sum;
}

/* ---------------------------------------------------------------- spans */

#define SECOND UINT64_C(1000)
#define DAY (24 * 60 * 60 * SECOND)

uint64_t use_step_ms(uint64_t length_ms, uint64_t count_max)
{
	static const uint64_t steps[] = {1, 2, 5, 10, 20, 50, 100, 200, 500, SECOND, 2 * SECOND,
		5 * SECOND, 10 * SECOND, 20 * SECOND, 60 * SECOND, 120 * SECOND, 300 * SECOND,
		600 * SECOND, 1200 * SECOND, 3600 * SECOND, 2 * 3600 * SECOND, 6 * 3600 * SECOND,
		12 * 3600 * SECOND};
	uint64_t step = DAY;

	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		if (length_ms / steps[i] < count_max)
			return steps[i];
	}
	while (length_ms / step >= count_max)
		step *= 2;
	return step;
}

/* Computes the ends of the spans. */
static void make_spans(struct use_over_time *over_time, size_t span_max)
{
	const struct use_window *window = &over_time->window;
	uint64_t step = use_step_ms(window->to_ms - window->from_ms, span_max);
	uint64_t now = window->from_ms;

	over_time->spans = xcalloc(span_max + 2, sizeof(*over_time->spans));
	over_time->spans[over_time->span_count++].end_ms = now;
	do {
		uint64_t more = step - now % step;

		now = more < window->to_ms - now ? now + more : window->to_ms;
		over_time->spans[over_time->span_count++].end_ms = now;
	} while (now < window->to_ms);
}

/* ---------------------------------------------------------------- one pass over the events */

/* Data that each event needs about its kind (allocations with the same stack, size, heap and
 * memory). */
struct use_kind {
	uint64_t bytes;
	unsigned char memory;
	bool is_wanted, is_counted;
};

/* Results for one part of the window, which one thread reads. */
struct use_part {
	/* one element for each span of the window; filled only if the part has events in the
	 * span */
	struct use_span *spans;
	bool *is_filled;
	bool is_there[RECORD_MEMORIES];
	uint64_t reserved_bytes; /* maximum */
};

struct use_pass {
	const struct use_over_time *over_time;
	const struct use_kind *kinds;
	struct use_part parts[USE_PARTS_MAX]; /* parts that do not exist have no spans */
};

/* Computes the usage at a position. If the recording is a sample, also stores the number of
 * recorded blocks of each kind in `*live`. The caller frees `*live`. */
static int state_at(const struct use_window *window, uint64_t position,
	struct use now[RECORD_MEMORIES], uint64_t **live, struct err *err)
{
	const struct record_facts *facts = recording_facts(window->recording);
	struct record_state state;
	int rc = recording_state(window->recording, position, &state, err);

	memset(now, 0, RECORD_MEMORIES * sizeof(*now));
	if (rc)
		return rc;
	for (size_t i = 0; i < state.kind_count; i++) {
		const struct record_kind *kind = &facts->kinds[i];
		uint64_t blocks;

		if (!window->is_wanted[i])
			continue;
		blocks = record_kind_stands_for(facts, (uint32_t)i, state.live[i]);
		now[kind->memory].bytes += kind->bytes * blocks;
		now[kind->memory].count += blocks;
	}
	if (facts->sample_bytes && live) {
		*live = state.live;
		state.live = NULL;
	}
	record_state_release(&state);
	return 0;
}

static void set_highest(
	struct use_span *span, const struct use now[RECORD_MEMORIES], uint64_t bytes, uint64_t ms)
{
	memcpy(span->highest, now, sizeof(span->highest));
	span->highest_bytes = bytes;
	span->highest_ms = ms;
}

/* Returns the change in a kind's number of blocks after one recorded allocation or free. In a
 * sample, one recorded block represents several blocks. */
static uint64_t step_of(
	const struct record_facts *facts, const struct record_event *event, uint64_t *live)
{
	uint64_t before = record_kind_stands_for(facts, event->kind, *live);

	if (event->type == RECORD_ALLOC)
		return record_kind_stands_for(facts, event->kind, ++*live) - before;
	return before - record_kind_stands_for(facts, event->kind, --*live);
}

static void make_part(struct use_part *part, const struct use_over_time *over_time)
{
	part->is_filled = xcalloc(over_time->span_count, sizeof(*part->is_filled));
	part->spans = xcalloc(over_time->span_count, sizeof(*part->spans));
	for (size_t i = 0; i < over_time->span_count; i++)
		part->spans[i].end_ms = over_time->spans[i].end_ms;
}

static int read_part(void *ctx, unsigned number, uint64_t from, uint64_t to, struct err *err)
{
	struct use_pass *pass = ctx;
	struct use_part *part = &pass->parts[number];
	const struct use_window *window = &pass->over_time->window;
	const struct record_facts *facts = recording_facts(window->recording);
	struct use_span *span, *last;
	struct use now[RECORD_MEMORIES];
	const struct record_event *events;
	struct record_cursor *cursor;
	uint64_t in_use, *live = NULL;
	size_t count;
	int rc = state_at(window, from, now, &live, err);

	if (!rc)
		rc = record_cursor_open(&cursor, window->recording, from, to, err);
	if (rc) {
		free(live);
		return rc;
	}
	make_part(part, pass->over_time);
	span = part->spans;
	last = part->spans + pass->over_time->span_count - 1;
	in_use = use_sum(window, now).bytes;
	part->reserved_bytes = now[RECORD_RESERVED].bytes;
	for (unsigned i = 0; i < RECORD_MEMORIES; i++)
		part->is_there[i] = now[i].count != 0;
	while ((rc = record_next_events(cursor, &events, &count, err)) > 0) {
		for (size_t i = 0; i < count; i++) {
			const struct record_event *event = &events[i];
			const struct use_kind *kind = &pass->kinds[event->kind];
			struct use *use = &now[kind->memory];
			uint64_t blocks = 1, bytes = kind->bytes;

			if (!kind->is_wanted)
				continue;
			if (live) {
				blocks = step_of(facts, event, &live[event->kind]);
				bytes *= blocks;
			}
			if (span == part->spans ||
				(event->time_ms > span->end_ms && span != last)) {
				memcpy(span->end, now, sizeof(now));
				do
					span++;
				while (event->time_ms > span->end_ms && span != last);
				part->is_filled[span - part->spans] = true;
				set_highest(span, now, in_use, span[-1].end_ms);
			}
			if (event->type == RECORD_FREE) {
				use->bytes -= bytes;
				use->count -= blocks;
				if (!kind->is_counted)
					continue;
				span->freed.bytes += bytes;
				span->freed.count += blocks;
				in_use -= bytes;
				continue;
			}
			use->bytes += bytes;
			use->count += blocks;
			part->is_there[kind->memory] = true;
			if (!kind->is_counted) {
				if (use->bytes > part->reserved_bytes)
					part->reserved_bytes = use->bytes;
				continue;
			}
			span->allocated.bytes += bytes;
			span->allocated.count += blocks;
			in_use += bytes;
			if (in_use > span->highest_bytes)
				set_highest(span, now, in_use, event->time_ms);
		}
	}
	memcpy(span->end, now, sizeof(now));
	record_cursor_close(cursor);
	free(live);
	return rc;
}

/* Merges the spans of all parts. In a span without events, the usage is the same as at the end of
 * the previous span. */
static void join_parts(struct use_over_time *over_time, const struct use_pass *pass,
	const struct use begin[RECORD_MEMORIES])
{
	const struct use_window *window = &over_time->window;
	struct use_span *first = over_time->spans;

	memcpy(first->end, begin, sizeof(first->end));
	set_highest(first, begin, use_sum(window, begin).bytes, first->end_ms);
	for (size_t i = 1; i < over_time->span_count; i++) {
		struct use_span *span = &over_time->spans[i];

		memcpy(span->end, span[-1].end, sizeof(span->end));
		set_highest(span, span->end, use_sum(window, span->end).bytes, span[-1].end_ms);
		for (unsigned k = 0; k < USE_PARTS_MAX && pass->parts[k].spans; k++) {
			const struct use_span *part = &pass->parts[k].spans[i];

			if (!pass->parts[k].is_filled[i])
				continue;
			span->allocated.bytes += part->allocated.bytes;
			span->allocated.count += part->allocated.count;
			span->freed.bytes += part->freed.bytes;
			span->freed.count += part->freed.count;
			memcpy(span->end, part->end, sizeof(span->end));
			if (part->highest_bytes > span->highest_bytes)
				set_highest(
					span, part->highest, part->highest_bytes, part->highest_ms);
		}
		if (span->highest_bytes > over_time->spans[over_time->peak].highest_bytes)
			over_time->peak = i;
	}
	for (unsigned k = 0; k < USE_PARTS_MAX && pass->parts[k].spans; k++) {
		for (unsigned i = 0; i < RECORD_MEMORIES; i++)
			over_time->is_there[i] |= pass->parts[k].is_there[i];
		if (!window->is_counted[RECORD_RESERVED] &&
			pass->parts[k].reserved_bytes > over_time->reserved_bytes)
			over_time->reserved_bytes = pass->parts[k].reserved_bytes;
	}
}

static struct use_kind *make_kinds(const struct use_window *window)
{
	const struct record_facts *facts = recording_facts(window->recording);
	struct use_kind *kinds = xcalloc(facts->kind_count + 1, sizeof(*kinds));

	for (size_t i = 0; i < facts->kind_count; i++) {
		const struct record_kind *kind = &facts->kinds[i];

		kinds[i] = (struct use_kind){.bytes = kind->bytes,
			.memory = (unsigned char)kind->memory,
			.is_wanted = window->is_wanted[i],
			.is_counted = window->is_counted[kind->memory]};
	}
	return kinds;
}

int use_read_over_time(struct use_over_time *over_time, const struct use_window *window,
	size_t span_max, struct err *err)
{
	struct use_pass pass = {.over_time = over_time};
	struct use_kind *kinds = make_kinds(window);
	struct use begin[RECORD_MEMORIES];
	int rc = state_at(window, window->from, begin, NULL, err);

	*over_time = (struct use_over_time){.window = *window};
	make_spans(over_time, span_max);
	pass.kinds = kinds;
	if (!rc)
		rc = use_read_parts(
			window->recording, window->from, window->to, read_part, &pass, err);
	if (!rc)
		join_parts(over_time, &pass, begin);
	for (unsigned i = 0; i < USE_PARTS_MAX; i++) {
		free(pass.parts[i].is_filled);
		free(pass.parts[i].spans);
	}
	free(kinds);
	return rc;
}

void use_over_time_release(struct use_over_time *over_time)
{
	free(over_time->spans);
}

/* ---------------------------------------------------------------- sizes */

size_t use_class(uint64_t value, unsigned bits)
{
	unsigned octave = 0;

	if (value >> bits)
		octave = 63 - (unsigned)__builtin_clzll(value) - bits;
	return ((size_t)octave << bits) + (size_t)(value >> octave);
}

uint64_t use_class_first(size_t number, unsigned bits)
{
	size_t octave = number >> bits ? (number >> bits) - 1 : 0;

	return (uint64_t)(number - (octave << bits)) << octave;
}

uint64_t use_class_bytes(size_t number)
{
	return number < USE_CLASSES ? use_class_first(number, USE_CLASS_BITS) : 0;
}

int use_read_sizes(struct use_sizes *sizes, const struct use_window *window, struct err *err)
{
	const struct record_facts *facts = recording_facts(window->recording);
	struct record_state from, to;
	int rc = recording_state(window->recording, window->from, &from, err);

	*sizes = (struct use_sizes){0};
	if (rc)
		return rc;
	rc = recording_state(window->recording, window->to, &to, err);
	for (size_t i = 0; !rc && i < facts->kind_count; i++) {
		const struct record_kind *kind = &facts->kinds[i];
		size_t size_class = use_class(kind->bytes, USE_CLASS_BITS);
		struct use *live = &sizes->live[kind->memory][size_class];
		struct use *allocated = &sizes->allocated[kind->memory][size_class];
		uint64_t there = record_kind_stands_for(facts, (uint32_t)i, to.live[i]);
		uint64_t more = record_kind_stands_for(
			facts, (uint32_t)i, to.allocated[i] - from.allocated[i]);

		if (!window->is_wanted[i])
			continue;
		live->count += there;
		live->bytes += there * kind->bytes;
		allocated->count += more;
		allocated->bytes += more * kind->bytes;
	}
	if (!rc)
		record_state_release(&to);
	record_state_release(&from);
	return rc;
}
