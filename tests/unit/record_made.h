/* Recordings of made-up events, and a plain list of all events as the truth. */
#ifndef TESTS_UNIT_RECORD_MADE_H
#define TESTS_UNIT_RECORD_MADE_H

#include "tests/unit/scratch.h"

#include "core/record/record.h"

static char path[400];

static inline int record_begin(void **state)
{
	int rc = scratch_begin(state);

	snprintf(path, sizeof(path), "%s/run.hrec", dir);
	return rc;
}

GROUP(record_begin, scratch_end)

static uint64_t random_word = 88172645463325252u;

/* xorshift64 by Marsaglia */
static inline uint64_t random_next(void)
{
	random_word ^= random_word << 13;
	random_word ^= random_word >> 7;
	random_word ^= random_word << 17;
	return random_word;
}

static inline uint64_t random_below(uint64_t n)
{
	return random_next() % n;
}

#define TRUTH_KINDS_MAX 300

struct truth_kind {
	struct record_kind kind;
	uint32_t number;
	uint64_t allocated, live_count;
	uint64_t *live; /* numbers of the live blocks */
	size_t cap;
};

struct truth {
	struct recorder *recorder;
	struct record_event *events;
	size_t count, cap;
	struct truth_kind kinds[TRUTH_KINDS_MAX];
	size_t kind_count;
	uint32_t stack_count;
	bool has_addresses;
	uint64_t now_ms, lost_count, start_position;
	uint32_t thread; /* index of the thread */
	struct record_mark marks[100];
	char labels[100][40];
	size_t mark_count;
};

static inline void truth_open(struct truth *truth, const struct record_facts *facts)
{
	*truth = (struct truth){.has_addresses = facts->has_addresses};
	assert_int_equal(recorder_open(&truth->recorder, path, facts, NULL), 0);
}

static inline void truth_end(struct truth *truth)
{
	assert_int_equal(recorder_end(truth->recorder, NULL), 0);
	truth->recorder = NULL;
}

static inline void truth_release(struct truth *truth)
{
	for (size_t i = 0; i < truth->kind_count; i++)
		free(truth->kinds[i].live);
	free(truth->events);
}

/* Adds a new kind and returns its index among the test's kinds. */
static inline size_t truth_kind(struct truth *truth, const struct record_kind *kind)
{
	struct truth_kind *made = &truth->kinds[truth->kind_count];

	assert_true(truth->kind_count < TRUTH_KINDS_MAX);
	*made = (struct truth_kind){.kind = *kind, .number = recorder_kind(truth->recorder, kind)};
	if (kind->stack != RECORD_NO_STACK && kind->stack >= truth->stack_count)
		truth->stack_count = kind->stack + 1;
	return truth->kind_count++;
}

static inline void truth_event(struct truth *truth, enum record_event_type type, uint32_t kind,
	uint64_t number, uint64_t addr)
{
	array_grow((void **)&truth->events, &truth->cap, truth->count, sizeof(*truth->events));
	truth->events[truth->count++] = (struct record_event){
		number, truth->now_ms, addr, kind, truth->thread, type, RECORD_NO_STACK};
}

/* Returns an address near earlier ones, or a random one. */
static inline uint64_t some_addr(const struct truth *truth)
{
	uint64_t addr = random_below(30) ? 0x650000 + 16 * random_below(5000) : random_next();

	return truth->has_addresses ? addr : 0;
}

static inline void truth_alloc(struct truth *truth, size_t which)
{
	struct truth_kind *kind = &truth->kinds[which];
	uint64_t addr = some_addr(truth);
	uint64_t number = recorder_alloc(truth->recorder, kind->number, addr);

	assert_int_equal(number, kind->allocated);
	array_grow((void **)&kind->live, &kind->cap, kind->live_count, sizeof(*kind->live));
	kind->live[kind->live_count++] = kind->allocated++;
	truth_event(truth, RECORD_ALLOC, kind->number, number, addr);
}

/* Frees live block number `at` of kind `which`. The free gets a random kind's stack, or no
 * stack. */
static inline void truth_free(struct truth *truth, size_t which, size_t at)
{
	struct truth_kind *kind = &truth->kinds[which];
	uint64_t number = kind->live[at];
	uint32_t freed_by = truth->stack_count && random_below(2) ?
				    (uint32_t)random_below(truth->stack_count) :
				    RECORD_NO_STACK;

	memmove(kind->live + at, kind->live + at + 1,
		(kind->live_count - at - 1) * sizeof(*kind->live));
	kind->live_count--;
	recorder_free_by(truth->recorder, kind->number, number, freed_by);
	truth_event(truth, RECORD_FREE, kind->number, number, 0);
	truth->events[truth->count - 1].freed_by = freed_by;
}

static inline void truth_time(struct truth *truth, uint64_t ms)
{
	truth->now_ms = ms;
	recorder_time(truth->recorder, ms);
}

static inline void truth_thread(struct truth *truth, uint32_t thread)
{
	truth->thread = thread;
	recorder_thread_is(truth->recorder, thread);
}

static inline void truth_mark(struct truth *truth, const char *label)
{
	size_t i = truth->mark_count++;

	snprintf(truth->labels[i], sizeof(truth->labels[i]), "%s", label);
	truth->marks[i] = (struct record_mark){truth->now_ms, truth->count, truth->labels[i]};
	recorder_mark(truth->recorder, label);
}

static inline void assert_event(const struct record_event *got, const struct record_event *want)
{
	assert_int_equal(got->type, want->type);
	assert_int_equal(got->kind, want->kind);
	assert_int_equal(got->number, want->number);
	assert_int_equal(got->time_ms, want->time_ms);
	assert_int_equal(got->thread, want->thread);
	assert_int_equal(got->addr, want->addr);
	assert_int_equal(got->freed_by, want->freed_by);
}

/* Compares the events of a window, read one at a time or in batches. */
static inline void assert_window(
	struct recording *recording, const struct truth *truth, size_t from, size_t to, bool by_one)
{
	struct record_cursor *cursor;
	const struct record_event *events;
	struct record_event event;
	size_t at = from, count = 1;

	assert_int_equal(record_cursor_open(&cursor, recording, from, to, NULL), 0);
	for (;;) {
		int rc = by_one ? record_next(cursor, &event, NULL) :
				  record_next_events(cursor, &events, &count, NULL);

		if (!rc)
			break;
		assert_int_equal(rc, 1);
		assert_true(count && at + count <= to);
		for (size_t i = 0; i < count; i++)
			assert_event(by_one ? &event : &events[i], &truth->events[at++]);
	}
	assert_int_equal(at, to);
	assert_int_equal(record_next(cursor, &event, NULL), 0);
	record_cursor_close(cursor);
}

/* Counters of all kinds, indexed by the kind's number. */
struct truth_state {
	uint64_t allocated[TRUTH_KINDS_MAX], live[TRUTH_KINDS_MAX];
};

static inline void truth_go(struct truth_state *state, const struct record_event *event)
{
	if (event->type == RECORD_ALLOC) {
		state->allocated[event->kind]++;
		state->live[event->kind]++;
	} else {
		state->live[event->kind]--;
	}
}

static inline void assert_state(struct recording *recording, const struct truth *truth,
	const struct truth_state *want, size_t position)
{
	struct record_state state;

	assert_int_equal(recording_state(recording, position, &state, NULL), 0);
	assert_int_equal(state.position, position);
	assert_int_equal(state.time_ms, position ? truth->events[position - 1].time_ms : 0);
	assert_int_equal(state.kind_count, truth->kind_count);
	for (size_t i = 0; i < state.kind_count; i++) {
		assert_int_equal(state.allocated[i], want->allocated[i]);
		assert_int_equal(state.live[i], want->live[i]);
	}
	record_state_release(&state);
}

static inline uint64_t position_of(
	struct recording *recording, const char *moment, uint64_t *time_ms)
{
	uint64_t position = UINT64_MAX;

	assert_int_equal(recording_position(recording, moment, &position, time_ms, NULL), 0);
	return position;
}

static inline uint64_t count_until(const struct truth *truth, uint64_t ms)
{
	uint64_t count = 0;

	while (count < truth->count && truth->events[count].time_ms <= ms)
		count++;
	return count;
}

#endif
