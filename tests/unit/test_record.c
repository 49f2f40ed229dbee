#include "tests/unit/record_made.h"

#include <signal.h>
#include <sys/resource.h>

#include "core/base/parse.h"

static const char wall[] = "2026-11-20T10:00:00.000Z"; /* date and time of moment 0 */

static struct record_facts some_facts(void)
{
	struct record_facts facts = {.pid = 42,
		.parent_pid = 7,
		.bits = 64,
		.image = "C:\\a b\\\"x\".exe",
		.os = "Windows 10",
		.sample_bytes = 0};

	assert_int_equal(date_parse(wall, &facts.time_ms), 0);
	facts.start_ms = facts.time_ms - 1234;
	return facts;
}

static void add_kinds(struct truth *truth, size_t count)
{
	struct record_frame frames[3] = {{0x10, 0}, {0x7f0000001234, RECORD_NO_MODULE}, {0x30, 1}};
	uint32_t heap = recorder_heap(truth->recorder, 0x650000);

	recorder_module(truth->recorder, &(struct module){.path = "a.exe", .base = 0x140000000});
	recorder_module(truth->recorder, &(struct module){.path = "b.dll", .base = 0x180000000});
	for (size_t i = truth->kind_count; i < count; i++) {
		enum record_memory memory =
			i % 5 ? RECORD_HEAP : (enum record_memory)(i / 5 % RECORD_MEMORIES);

		frames[0].offset = i / 3;
		truth_kind(truth, &(struct record_kind){.bytes = i * i,
					  .stack = recorder_stack(truth->recorder, frames, 3),
					  .heap = memory == RECORD_HEAP ? heap : RECORD_NO_HEAP,
					  .memory = memory});
	}
}

/* Adds `count` random events. Each kind has its own rule by which a block is chosen to be freed. */
static void run_at_random(struct truth *truth, size_t count, unsigned flush_each)
{
	for (size_t i = 0; i < count; i++) {
		size_t which = random_below(truth->kind_count);
		struct truth_kind *kind = &truth->kinds[which];
		uint64_t live = kind->live_count;

		if (!random_below(20))
			truth_time(truth,
				truth->now_ms + 1 + (random_below(10) ? 0 : random_below(700)));
		if (!random_below(9))
			truth_thread(truth,
				recorder_thread(truth->recorder, (uint32_t)random_below(5) * 4));
		if (!live || random_below(100) < 52)
			truth_alloc(truth, which);
		else
			truth_free(truth, which,
				which % 3 == 0 ? 0 :
				which % 3 == 1 ? live - 1 :
						 random_below(live));
		if (flush_each && !random_below(flush_each))
			assert_int_equal(recorder_flush(truth->recorder, NULL), 0);
		if (truth->mark_count < 20 && !random_below(count / 10)) {
			char label[40];

			snprintf(label, sizeof(label), "mark %zu", truth->mark_count / 2);
			truth_mark(truth, label);
		}
	}
}

static uint64_t bytes_in_use(const struct truth *truth, const struct truth_state *state)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < truth->kind_count; i++) {
		if (truth->kinds[i].kind.memory != RECORD_RESERVED)
			sum += state->live[i] * truth->kinds[i].kind.bytes;
	}
	return sum;
}

static void assert_peak(const struct record_facts *facts, const struct truth *truth)
{
	static struct truth_state state;
	uint64_t most = 0, position = 0;

	memset(&state, 0, sizeof(state));
	for (size_t i = 0; i < truth->count; i++) {
		truth_go(&state, &truth->events[i]);
		if (bytes_in_use(truth, &state) > most) {
			most = bytes_in_use(truth, &state);
			position = i + 1;
		}
	}
	assert_int_equal(facts->peak.bytes, most);
	assert_int_equal(facts->peak.position, position);
	assert_int_equal(facts->peak.time_ms, position ? truth->events[position - 1].time_ms : 0);
}

static void assert_marks(struct recording *recording, const struct truth *truth)
{
	const struct record_facts *facts = recording_facts(recording);

	assert_int_equal(facts->mark_count, truth->mark_count);
	for (size_t i = 0; i < truth->mark_count; i++) {
		size_t same = 0;
		uint64_t position, ms;

		assert_string_equal(facts->marks[i].label, truth->labels[i]);
		assert_int_equal(facts->marks[i].position, truth->marks[i].position);
		assert_int_equal(facts->marks[i].time_ms, truth->marks[i].time_ms);
		for (size_t k = 0; k < truth->mark_count; k++)
			same += !strcmp(truth->labels[k], truth->labels[i]);
		assert_int_equal(
			recording_position(recording, truth->labels[i], &position, &ms, NULL),
			same > 1 ? -ERR_MOMENT : 0);
		if (same > 1)
			continue;
		assert_int_equal(position, truth->marks[i].position);
		assert_int_equal(ms, truth->marks[i].time_ms);
	}
}

static void assert_blocks(struct recording *recording, const struct truth *truth, size_t position)
{
	struct record_block *blocks;
	size_t count, at = 0;

	assert_int_equal(recording_blocks(recording, position, &blocks, &count, NULL), 0);
	for (size_t i = 0; i < position; i++) {
		const struct record_event *event = &truth->events[i];
		size_t end = i + 1;

		if (event->type == RECORD_FREE)
			continue;
		while (end < position && (truth->events[end].type != RECORD_FREE ||
						 truth->events[end].kind != event->kind ||
						 truth->events[end].number != event->number))
			end++;
		if (end < position)
			continue;
		assert_true(at < count);
		assert_int_equal(blocks[at].addr, event->addr);
		assert_int_equal(blocks[at++].kind, event->kind);
	}
	assert_int_equal(at, count);
	free(blocks);
}

/* Checks all queries, at each position and in each ms. */
static void assert_all(const struct truth *truth)
{
	struct recording *recording;
	static struct truth_state state;
	const struct record_facts *facts;

	assert_int_equal(recording_open(&recording, path, NULL), 0);
	facts = recording_facts(recording);
	assert_false(facts->is_cut);
	assert_int_equal(facts->event_count, truth->count);
	assert_int_equal(facts->length_ms, truth->now_ms);
	assert_int_equal(facts->kind_count, truth->kind_count);
	for (size_t i = 0; i < truth->kind_count; i++)
		assert_memory_equal(&facts->kinds[i].bytes, &truth->kinds[i].kind.bytes, 8);
	assert_peak(facts, truth);
	assert_marks(recording, truth);
	memset(&state, 0, sizeof(state));
	assert_state(recording, truth, &state, 0);
	for (size_t i = 0; i < truth->count; i++) {
		truth_go(&state, &truth->events[i]);
		assert_state(recording, truth, &state, i + 1);
	}
	for (size_t i = 0; i < 300; i++) {
		size_t from = random_below(truth->count + 1);

		assert_window(recording, truth, from, from + random_below(truth->count - from + 1),
			i % 2);
	}
	assert_int_equal(facts->has_addresses, truth->has_addresses);
	for (size_t position = 0; position <= truth->count; position += truth->count / 7)
		assert_blocks(recording, truth, position);
	for (uint64_t ms = 0; ms <= truth->now_ms; ms++) {
		char moment[30];
		uint64_t at;

		snprintf(moment, sizeof(moment), "%llus%llums", (unsigned long long)ms / 1000,
			(unsigned long long)ms % 1000);
		assert_int_equal(position_of(recording, moment, &at), count_until(truth, ms));
		assert_int_equal(at, ms);
	}
	recording_close(recording);
}

TEST(every_position_of_random_recording_is_as_it_was)
{
	static const unsigned flush_each[] = {0, 1, 7, 60, 400};

	for (size_t i = 0; i < sizeof(flush_each) / sizeof(*flush_each); i++) {
		struct record_facts facts = some_facts();
		static struct truth truth;

		facts.has_addresses = i % 2 == 0;
		truth_open(&truth, &facts);
		add_kinds(&truth, 1 + i * 7);
		run_at_random(&truth, 700, flush_each[i]);
		/* Some kinds are added later. The last kinds need two bytes. */
		add_kinds(&truth, 3 + i * 73);
		run_at_random(&truth, 800, flush_each[i]);
		truth_end(&truth);
		assert_all(&truth);
		truth_release(&truth);
	}
}

TEST(modules_come_and_go_when_they_did)
{
	struct record_facts told = some_facts();
	static struct record_load loads[500];
	struct recorder *recorder;
	struct recording *recording;
	const struct record_facts *facts;
	uint64_t ms = 0;

	assert_int_equal(recorder_open(&recorder, path, &told, NULL), 0);
	for (size_t i = 0; i < 500; i++) {
		char name[20];

		snprintf(name, sizeof(name), "%u.dll", (unsigned)random_below(200));
		ms += random_below(4) ? 0 : random_below(5000);
		recorder_time(recorder, ms);
		loads[i] = (struct record_load){ms,
			recorder_module(recorder, &(struct module){.path = name}), random_below(2)};
		recorder_module_is(recorder, loads[i].module, loads[i].is_loaded);
		if (!random_below(30))
			assert_int_equal(recorder_flush(recorder, NULL), 0);
	}
	assert_int_equal(recorder_end(recorder, NULL), 0);
	assert_int_equal(recording_open(&recording, path, NULL), 0);
	facts = recording_facts(recording);
	assert_int_equal(facts->load_count, 500);
	assert_int_equal(facts->length_ms, ms);
	for (size_t i = 0; i < 500; i++) {
		assert_int_equal(facts->loads[i].time_ms, loads[i].time_ms);
		assert_int_equal(facts->loads[i].module, loads[i].module);
		assert_int_equal(facts->loads[i].is_loaded, loads[i].is_loaded);
	}
	recording_close(recording);
}

TEST(facts_and_lists_are_read_back)
{
	struct record_facts told = some_facts();
	struct module module = {.base = UINT64_MAX,
		.size_bytes = 1,
		.path = "C:\\\xc3\xa4\n.dll",
		.pdb = "x.pdb",
		.pdb_guid = "0123456789ABCDEF0123456789ABCDEF",
		.pdb_age = UINT32_MAX,
		.timestamp = 5,
		.checksum = 6,
		.has_identity = true};
	struct module other = {.path = "C:\\\xc3\xa4\n.dll", .base = 1};
	struct record_frame frames[RECORD_FRAMES_MAX + 1];
	struct recorder *recorder;
	struct recording *recording;
	const struct record_facts *facts;

	told.is_attached = true;
	told.sample_bytes = 524288;
	assert_int_equal(recorder_open(&recorder, path, &told, NULL), 0);
	assert_int_equal(recorder_module(recorder, &module), 0);
	assert_int_equal(recorder_module(recorder, &other), 1);
	assert_int_equal(recorder_module(recorder, &module), 0);
	for (size_t i = 0; i <= RECORD_FRAMES_MAX; i++)
		frames[i] =
			(struct record_frame){i * 0x123456789, i % 3 ? i % 2 : RECORD_NO_MODULE};
	assert_int_equal(recorder_stack(recorder, frames, RECORD_FRAMES_MAX + 1), 0);
	assert_int_equal(recorder_stack(recorder, frames, RECORD_FRAMES_MAX), 0);
	assert_int_equal(recorder_stack(recorder, frames, 0), 1);
	assert_int_equal(recorder_stack(recorder, frames, 1), 2);
	assert_int_equal(recorder_heap(recorder, 0), 0);
	assert_int_equal(recorder_heap(recorder, UINT64_MAX), 1);
	assert_int_equal(recorder_heap(recorder, 0), 0);
	assert_int_equal(recorder_thread(recorder, 0), 0);
	assert_int_equal(recorder_thread(recorder, UINT32_MAX), 1);
	recorder_thread_name(recorder, 1, "first");
	recorder_thread_name(recorder, 1, "\xc3\xa4\n");
	recorder_thread_name(recorder, 1, "");
	recorder_thread_name(recorder, 0, "nobody");
	assert_int_equal(recorder_kind(recorder, &(struct record_kind){UINT64_MAX, RECORD_NO_STACK,
							 1, RECORD_HEAP}),
		0);
	assert_int_equal(
		recorder_kind(recorder, &(struct record_kind){8, 2, RECORD_NO_HEAP, RECORD_MAPPED}),
		1);
	assert_int_equal(recorder_kind(recorder, &(struct record_kind){UINT64_MAX, RECORD_NO_STACK,
							 1, RECORD_HEAP}),
		0);
	assert_int_equal(
		recorder_kind(recorder, &(struct record_kind){8, 2, RECORD_NO_HEAP, RECORD_STACK}),
		2);
	recorder_alloc(recorder, 1, 0);
	recorder_alloc(recorder, 1, 0);
	recorder_start(recorder);
	recorder_lost(recorder, 5);
	recorder_alloc(recorder, 1, 0);
	recorder_free(recorder, 1, 77); /* not counted, because the block does not exist */
	recorder_mark(recorder, "");
	recorder_time(recorder, 90);
	recorder_time(recorder, 89);
	assert_int_equal(recorder_end(recorder, NULL), 0);

	assert_int_equal(recording_open(&recording, path, NULL), 0);
	facts = recording_facts(recording);
	assert_int_equal(facts->pid, 42);
	assert_int_equal(facts->parent_pid, 7);
	assert_int_equal(facts->bits, 64);
	assert_string_equal(facts->image, told.image);
	assert_string_equal(facts->os, "Windows 10");
	assert_int_equal(facts->start_ms, told.start_ms);
	assert_int_equal(facts->time_ms, told.time_ms);
	assert_int_equal(facts->sample_bytes, 524288);
	assert_true(facts->is_attached);
	assert_int_equal(facts->length_ms, 90);
	assert_int_equal(facts->event_count, 3);
	assert_int_equal(facts->start_position, 2);
	assert_int_equal(facts->lost_count, 6);
	assert_int_equal(facts->mark_count, 0);
	assert_int_equal(facts->module_count, 2);
	assert_int_equal(facts->modules[0].base, UINT64_MAX);
	assert_string_equal(facts->modules[0].path, module.path);
	assert_string_equal(facts->modules[0].pdb, "x.pdb");
	assert_string_equal(facts->modules[0].pdb_guid, module.pdb_guid);
	assert_int_equal(facts->modules[0].pdb_age, UINT32_MAX);
	assert_int_equal(facts->modules[0].timestamp, 5);
	assert_int_equal(facts->modules[0].checksum, 6);
	assert_true(facts->modules[0].has_identity);
	assert_false(facts->modules[1].has_identity);
	assert_null(facts->modules[1].pdb);
	assert_null(facts->modules[1].pdb_guid);
	assert_int_equal(facts->stack_count, 3);
	assert_int_equal(facts->stacks[0].frame_count, RECORD_FRAMES_MAX);
	for (size_t i = 0; i < RECORD_FRAMES_MAX; i++) {
		assert_int_equal(facts->stacks[0].frames[i].module, frames[i].module);
		assert_int_equal(facts->stacks[0].frames[i].offset, frames[i].offset);
	}
	assert_int_equal(facts->stacks[1].frame_count, 0);
	assert_int_equal(facts->heap_count, 2);
	assert_int_equal(facts->heaps[1], UINT64_MAX);
	assert_int_equal(facts->thread_count, 2);
	assert_int_equal(facts->threads[0], 0);
	assert_int_equal(facts->threads[1], UINT32_MAX);
	assert_null(facts->thread_names[0]);
	assert_string_equal(facts->thread_names[1], "\xc3\xa4\n");
	assert_int_equal(facts->kind_count, 3);
	assert_int_equal(facts->kinds[0].bytes, UINT64_MAX);
	assert_int_equal(facts->kinds[0].stack, RECORD_NO_STACK);
	assert_int_equal(facts->kinds[1].heap, RECORD_NO_HEAP);
	assert_int_equal(facts->kinds[1].memory, RECORD_MAPPED);
	assert_int_equal(facts->kinds[2].memory, RECORD_STACK);
	recording_close(recording);
}

TEST(moments_are_read)
{
	static const struct {
		const char *text;
		uint64_t position, ms;
	} good[] = {
		{"start", 0, 0}, {"0s", 1, 0}, {"9ms", 1, 9}, {"10ms", 3, 10}, {"2s", 4, 2000},
		{"1m", 5, 60000}, {"1m20s", 5, 80000}, {"0%", 1, 0}, {"2.5%", 4, 2000},
		{"00002.500000000009%", 4, 2000}, {"100%", 5, 80000}, {"100.000%", 5, 80000},
		{"peak", 3, 10}, {"end", 5, 80000}, {"2026-11-20T10:01", 5, 60000},
		{"2026-11-20T10:00:02Z", 4, 2000}, {"2026-11-20T10:00:01.999", 3, 1999},
		{"noon", 2, 10}, {"100.1", 3, 10}, {"50 %", 4, 2000}, {"1.999s", 3, 1999},
		{"2.000 s", 4, 2000}, {"0.5m", 4, 30000}, {"1.5", 3, 10}, {"-1s", 5, 79000},
		{"-80s", 1, 0}, {"end-20.001s", 4, 59999}, {"peak-1ms", 1, 9},
		{"peak+1.99s", 4, 2000}, {"noon+0s", 3, 10}, {"start+1m", 5, 60000},
		{"noon-1s", 4, 2000}, /* the mark's name looks like an offset */
	};
	static const char *const bad[] = {"", "1m20s1ms", "100.1%", "101%", "%", ".5%", "1.%",
		"-1%", "-81s", "end+1ms", "peak-11ms", "start-1ms", "late-1s", "peak-1", "+1s",
		"peak--1s", "1s-1s", "peak-9223372036854775807ms", "peak+9223372036854775807ms",
		"2.5", "80.001s", "2026-11-20T09:59", "2026-11-20T10:02", "2026-11-20", "Noon",
		"10", "later", "99999999999999999999%", "9223372036854775807ms", "twice",
		"twice-1ms"};
	struct record_facts facts = some_facts();
	static struct truth truth;
	struct recording *recording;

	truth_open(&truth, &facts);
	truth_kind(&truth,
		&(struct record_kind){100, RECORD_NO_STACK, RECORD_NO_HEAP, RECORD_COMMITTED});
	truth_alloc(&truth, 0);
	truth_time(&truth, 10);
	truth_alloc(&truth, 0);
	truth_mark(&truth, "noon");
	truth_alloc(&truth, 0);
	truth_mark(&truth, "100.1");
	truth_mark(&truth, "1.5");
	truth_mark(&truth, "twice");
	truth_mark(&truth, "twice");
	truth_time(&truth, 2000);
	truth_free(&truth, 0, 1);
	truth_mark(&truth, "50 %");
	truth_mark(&truth, "noon-1s");
	truth_mark(&truth, "start"); /* "start" keeps its own meaning */
	truth_time(&truth, 60000);
	truth_free(&truth, 0, 0);
	truth_time(&truth, 80000);
	truth_end(&truth);
	assert_int_equal(recording_open(&recording, path, NULL), 0);
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		uint64_t ms;

		assert_int_equal(position_of(recording, good[i].text, &ms), good[i].position);
		assert_int_equal(ms, good[i].ms);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		uint64_t position = 77, ms = 78;
		struct err err;

		assert_int_equal(
			recording_position(recording, bad[i], &position, &ms, &err), -ERR_MOMENT);
		assert_int_equal(position, 77);
		assert_int_equal(ms, 78);
		assert_string_equal(err.place, path);
	}
	recording_close(recording);
	truth_release(&truth);
}

TEST(recording_of_nothing_is_one)
{
	struct record_facts facts = {0};
	static struct truth truth;
	struct recording *recording;
	uint64_t ms;

	truth_open(&truth, &facts);
	assert_int_equal(recorder_flush(truth.recorder, NULL), 0);
	truth_end(&truth);
	assert_int_equal(recording_open(&recording, path, NULL), 0);
	assert_int_equal(position_of(recording, "start", &ms), 0);
	assert_int_equal(position_of(recording, "peak", &ms), 0);
	assert_int_equal(position_of(recording, "end", &ms), 0);
	assert_int_equal(position_of(recording, "50%", &ms), 0);
	assert_window(recording, &truth, 0, 0, true);
	recording_close(recording);
}

/* After millions of events the recorder has started new chunks and check-points on its own. */
TEST(millions_of_events_are_cut_into_parts_that_fit)
{
	enum { EVENTS = 5000000, LOOKS = 24 };
	struct record_facts told = some_facts();
	struct recorder *recorder;
	struct recording *recording;
	static uint64_t allocated[TRUTH_KINDS_MAX], freed[TRUTH_KINDS_MAX];
	static struct {
		uint64_t position, allocated[TRUTH_KINDS_MAX], freed[TRUTH_KINDS_MAX];
	} looks[LOOKS];
	size_t look = 0;
	struct record_state counters;
	struct record_cursor *cursor;
	struct record_event event;
	uint64_t replay = 0;

	assert_int_equal(recorder_open(&recorder, path, &told, NULL), 0);
	for (uint32_t i = 0; i < TRUTH_KINDS_MAX; i++)
		assert_int_equal(recorder_kind(recorder, &(struct record_kind){i, RECORD_NO_STACK,
								 RECORD_NO_HEAP, RECORD_HEAP}),
			i);
	for (uint64_t i = 0; i < EVENTS; i++) {
		uint32_t kind = (uint32_t)(i * i / 3 % TRUTH_KINDS_MAX);

		if (look < LOOKS && i == look * (uint64_t)EVENTS / LOOKS + look) {
			looks[look].position = i;
			memcpy(looks[look].allocated, allocated, sizeof(allocated));
			memcpy(looks[look++].freed, freed, sizeof(freed));
		}
		recorder_time(recorder, i / 1000);
		if (i % 3 == 2 && freed[kind] < allocated[kind]) /* frees the oldest block */
			recorder_free(recorder, kind, freed[kind]++);
		else
			assert_int_equal(recorder_alloc(recorder, kind, 0), allocated[kind]++);
	}
	assert_int_equal(recorder_events(recorder), EVENTS);
	assert_int_equal(recorder_end(recorder, NULL), 0);

	assert_int_equal(recording_open(&recording, path, NULL), 0);
	for (look = 0; look < LOOKS; look++) {
		uint64_t near = recording_checkpoint(recording, looks[look].position);

		assert_true(near <= looks[look].position && looks[look].position - near <= 4000000);
		assert_int_equal(
			recording_state(recording, looks[look].position, &counters, NULL), 0);
		for (size_t i = 0; i < TRUTH_KINDS_MAX; i++) {
			assert_int_equal(counters.allocated[i], looks[look].allocated[i]);
			assert_int_equal(
				counters.live[i], looks[look].allocated[i] - looks[look].freed[i]);
		}
		record_state_release(&counters);
	}
	assert_true(recording_checkpoint(recording, EVENTS - 1) > 0);
	assert_int_equal(recording_checkpoint(recording, EVENTS), EVENTS);
	/* Replays all events across check-points. */
	memset(allocated, 0, sizeof(allocated));
	memset(freed, 0, sizeof(freed));
	assert_int_equal(record_cursor_open(&cursor, recording, 0, EVENTS, NULL), 0);
	while (record_next(cursor, &event, NULL) == 1) {
		uint32_t kind = (uint32_t)(replay * replay / 3 % TRUTH_KINDS_MAX);
		bool is_free = replay % 3 == 2 && freed[kind] < allocated[kind];

		if (event.kind != kind || event.time_ms != replay / 1000 || event.thread ||
			event.type != (is_free ? RECORD_FREE : RECORD_ALLOC) ||
			event.number != (is_free ? freed[kind]++ : allocated[kind]++))
			break;
		replay++;
	}
	assert_int_equal(replay, EVENTS);
	record_cursor_close(cursor);
	recording_close(recording);
}

TEST(what_was_flushed_is_there_before_end)
{
	struct record_facts facts = some_facts();
	static struct truth truth;
	struct recording *recording;
	size_t flushed;

	truth_open(&truth, &facts);
	add_kinds(&truth, 20);
	run_at_random(&truth, 500, 0);
	assert_int_equal(recorder_flush(truth.recorder, NULL), 0);
	flushed = truth.count;
	run_at_random(&truth, 100, 0);
	assert_int_equal(recording_open(&recording, path, NULL), 0);
	assert_true(recording_facts(recording)->is_cut);
	assert_int_equal(
		recording_facts(recording)->cut_bytes, recording_facts(recording)->file_bytes);
	assert_int_equal(recorder_bytes(truth.recorder), recording_facts(recording)->file_bytes);
	assert_int_equal(recording_facts(recording)->event_count, flushed);
	assert_window(recording, &truth, 0, flushed, false);
	recording_close(recording);
	truth_end(&truth);
	truth_release(&truth);
}

TEST(older_file_is_replaced_and_folder_is_not)
{
	struct record_facts facts = some_facts();
	static struct truth truth;
	struct recorder *recorder;
	struct err err;
	char bad[500];

	scratch_write("run.hrec", "what was there", 0644);
	truth_open(&truth, &facts);
	add_kinds(&truth, 20);
	run_at_random(&truth, 100, 0);
	truth_end(&truth);
	assert_all(&truth);
	truth_release(&truth);
	assert_int_equal(recorder_open(&recorder, dir, &facts, &err), -ERR_CREATE);
	snprintf(bad, sizeof(bad), "%s/none/run.hrec", dir);
	assert_int_equal(recorder_open(&recorder, bad, &facts, &err), -ERR_CREATE);
	assert_int_equal(recorder_open(&recorder, "/dev/null", &facts, &err), -ERR_NOT_FILE);
}

TEST(full_disk_ends_it_and_leaves_what_was_written)
{
	struct record_facts facts = some_facts();
	static struct truth truth;
	struct recording *recording;
	struct rlimit limit, small;
	struct err err;
	size_t flushed;

	signal(SIGXFSZ, SIG_IGN);
	truth_open(&truth, &facts);
	add_kinds(&truth, 20);
	run_at_random(&truth, 500, 0);
	assert_int_equal(recorder_flush(truth.recorder, NULL), 0);
	flushed = truth.count;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	small = limit;
	small.rlim_cur = recorder_bytes(truth.recorder) + 50;
	run_at_random(&truth, 500, 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(recorder_flush(truth.recorder, &err), -ERR_WRITE);
	run_at_random(&truth, 500, 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	err.code = ERR_OK;
	assert_int_equal(recorder_end(truth.recorder, &err), -ERR_WRITE);
	assert_int_equal(err.code, ERR_WRITE);
	assert_string_equal(err.place, path);
	assert_int_equal(recording_open(&recording, path, NULL), 0);
	assert_true(recording_facts(recording)->is_cut);
	assert_int_equal(recording_facts(recording)->event_count, flushed);
	assert_window(recording, &truth, 0, flushed, true);
	recording_close(recording);
	truth_release(&truth);
}

TEST(what_is_too_much_for_recording_ends_it)
{
	struct record_facts facts = some_facts();
	static struct truth truth;
	struct recording *recording;
	struct err err;
	uint64_t count = 0;
	size_t flushed;

	truth_open(&truth, &facts);
	add_kinds(&truth, 20);
	run_at_random(&truth, 500, 0);
	assert_int_equal(recorder_flush(truth.recorder, NULL), 0);
	flushed = truth.count;
	while (recorder_heap(truth.recorder, count) != RECORD_NO_HEAP)
		count++;
	assert_int_equal(count, (1 << 20) - 1); /* the limit includes the heap of the kinds */
	/* Heaps that exist can still be used. */
	assert_true(recorder_heap(truth.recorder, 0) != RECORD_NO_HEAP);
	run_at_random(&truth, 500, 0);
	assert_int_equal(recorder_flush(truth.recorder, &err), -ERR_LIMIT);
	assert_int_equal(recorder_end(truth.recorder, &err), -ERR_LIMIT);
	assert_string_equal(err.place, path);
	assert_string_equal(err.detail, "1048576 heaps; record for a shorter time");
	assert_int_equal(recording_open(&recording, path, NULL), 0);
	assert_true(recording_facts(recording)->is_cut);
	assert_int_equal(recording_facts(recording)->event_count, flushed);
	assert_window(recording, &truth, 0, flushed, true);
	recording_close(recording);
	truth_release(&truth);
}
