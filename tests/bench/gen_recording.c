/*
 * gen_recording WHAT COUNT FILE: writes a recording of an imaginary program and reads it back.
 * Prints the number of events, bytes per event, events per second written and read, and the average
 * time in ms to reach the state of a random moment.
 *
 *   maps     two threads in turn insert COUNT strings of 1 to 40 characters into a map; one in ten
 *            is erased at random, and the rest at the end, in the order of the keys
 *   queues   like maps, with rising keys, so that old entries are erased first
 *   buffers  COUNT buffers of a script, with five short-lived auxiliary blocks each; a collector
 *            frees hundreds at once
 *   pairs    COUNT allocations by eight threads, each freed immediately
 */
#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/record/record.h"

#define SIZES 41
#define FRAMES 24
#define EVENTS_A_MS 2000
#define SWITCH 500 /* average number of events before the thread changes */

struct made {
	uint64_t number;
	uint32_t kind;
};

static struct recorder *recorder;
static uint64_t event_count, random_word = 88172645463325252u;
static uint32_t threads[8];
static double sorting; /* seconds spent sorting */

/* xorshift64 by Marsaglia */
static uint64_t random_below(uint64_t n)
{
	random_word ^= random_word << 13;
	random_word ^= random_word >> 7;
	random_word ^= random_word << 17;
	return random_word % n;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void die(const struct err *err)
{
	err_print(stderr, "gen_recording", err);
	exit(2);
}

static void step(unsigned thread_count)
{
	static uint64_t ms, next_switch;

	if (!random_below(EVENTS_A_MS))
		recorder_time(recorder, ++ms);
	if (event_count++ >= next_switch) {
		recorder_thread_is(recorder, threads[random_below(thread_count)]);
		next_switch = event_count + random_below((uint64_t)2 * SWITCH);
	}
}

/* Looks up the kind for each allocation, as the recorder does for each event of a target. */
static struct made take(uint32_t heap, uint32_t stack, uint64_t bytes, unsigned thread_count)
{
	struct made block = {.kind = recorder_kind(recorder,
				     &(struct record_kind){bytes, stack, heap, RECORD_HEAP})};

	step(thread_count);
	block.number = recorder_alloc(recorder, block.kind, 0);
	return block;
}

static void give(const struct made *block, unsigned thread_count)
{
	step(thread_count);
	recorder_free(recorder, block->kind, block->number);
}

static uint32_t make_stack(uint32_t module, uint64_t salt)
{
	struct record_frame frames[FRAMES];

	for (unsigned i = 0; i < FRAMES; i++)
		frames[i] = (struct record_frame){
			0x1000 + (i < 4 ? salt * 0x30 : 0) + (uint64_t)i * 0x128, module};
	return recorder_stack(recorder, frames, FRAMES);
}

struct entry {
	uint64_t key;
	struct made node, text; /* text.kind is UINT32_MAX if the node contains the string */
};

static int compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

static void erase_entry(struct entry *entry)
{
	if (entry->text.kind != UINT32_MAX)
		give(&entry->text, 2);
	give(&entry->node, 2);
}

static void run_maps(uint64_t count, uint32_t heap, uint32_t module, int is_random)
{
	uint32_t text_stack = make_stack(module, 1), node_stack = make_stack(module, 2);
	struct entry *entries = calloc(count + 1, sizeof(*entries));
	uint64_t live = 0;

	if (!entries)
		exit(2);
	for (uint64_t i = 0; i < count; i++) {
		struct entry *entry = &entries[live++];
		uint64_t len = 1 + random_below(SIZES - 1);

		entry->key = is_random ? random_below(UINT64_MAX) : i;
		entry->text.kind = UINT32_MAX;
		if (len > 15)
			entry->text = take(heap, text_stack, len + 1, 2);
		entry->node = take(heap, node_stack, 72, 2);
		if (!random_below(10)) {
			uint64_t at = random_below(live);

			erase_entry(&entries[at]);
			entries[at] = entries[--live];
		}
	}
	sorting = now();
	qsort(entries, live, sizeof(*entries), compare);
	sorting = now() - sorting;
	for (uint64_t i = 0; i < live; i++)
		erase_entry(&entries[i]);
	free(entries);
}

static void run_buffers(uint64_t count, uint32_t heap, uint32_t module)
{
	enum { POOL = 400 };
	static struct made pool[POOL];
	uint32_t stacks[12], buffer_stack = make_stack(module, 100);
	size_t used = 0;

	for (uint64_t i = 0; i < 12; i++)
		stacks[i] = make_stack(module, i);
	for (uint64_t i = 0; i < count; i++) {
		struct made helpers[5];

		for (unsigned k = 0; k < 5; k++) {
			uint64_t which = random_below(20);

			helpers[k] = take(heap, stacks[which < 12 ? which : 0],
				16 + which * 8 * (1 + (uint64_t)k), 4);
			if (random_below(3)) {
				give(&helpers[k], 4);
				helpers[k].kind = UINT32_MAX;
			}
		}
		pool[used++] = take(heap, buffer_stack, 1024 + 64 * random_below(16), 4);
		for (unsigned k = 5; k-- > 0;) {
			if (helpers[k].kind != UINT32_MAX)
				give(&helpers[k], 4);
		}
		if (used < POOL)
			continue;
		for (size_t k = 0; k < POOL - 20; k++)
			give(&pool[k], 4);
		memmove(pool, pool + POOL - 20, 20 * sizeof(*pool));
		used = 20;
	}
	while (used)
		give(&pool[--used], 4);
}

static void run_pairs(uint64_t count, uint32_t heap, uint32_t module)
{
	uint32_t stacks[16];

	for (uint64_t i = 0; i < 16; i++)
		stacks[i] = make_stack(module, i);
	for (uint64_t i = 0; i < count; i++) {
		struct made block = take(heap, stacks[random_below(16)], 16 << random_below(8), 8);

		give(&block, 8);
	}
}

static void read_back(const char *path)
{
	enum { LOOKS = 20 };
	struct recording *recording;
	struct record_cursor *cursor;
	const struct record_event *events;
	const struct record_facts *facts;
	struct err err;
	double start = now(), took;
	uint64_t total = 0;
	size_t count;

	if (recording_open(&recording, path, &err))
		die(&err);
	facts = recording_facts(recording);
	if (record_cursor_open(&cursor, recording, 0, facts->event_count, &err))
		die(&err);
	while (record_next_events(cursor, &events, &count, &err) == 1)
		total += count;
	record_cursor_close(cursor);
	took = now() - start;
	printf("events=%llu bytes=%llu bytes-an-event=%.3f kinds=%zu read-per-second=%.0f",
		(unsigned long long)total, (unsigned long long)facts->file_bytes,
		(double)facts->file_bytes / (double)total, facts->kind_count, (double)total / took);
	recording_close(recording);
	start = now();
	for (int i = 0; i < LOOKS; i++) {
		struct record_state state;

		if (recording_open(&recording, path, &err) ||
			recording_state(recording,
				random_below(recording_facts(recording)->event_count), &state,
				&err))
			die(&err);
		record_state_release(&state);
		recording_close(recording);
	}
	printf(" ms-to-a-state=%.1f\n", (now() - start) * 1000 / LOOKS);
}

int main(int argc, char **argv)
{
	struct record_facts facts = {.pid = 1, .bits = 64, .image = "made"};
	struct err err;
	uint32_t heap, module;
	uint64_t count;
	double start = now();

	if (argc != 4)
		return 2;
	count = strtoull(argv[2], NULL, 10);
	if (recorder_open(&recorder, argv[3], &facts, &err))
		die(&err);
	heap = recorder_heap(recorder, 0x650000);
	module = recorder_module(recorder, &(struct module){.path = "made.exe"});
	for (uint32_t i = 0; i < 8; i++)
		threads[i] = recorder_thread(recorder, 4 + 4 * i);
	if (!strcmp(argv[1], "maps") || !strcmp(argv[1], "queues"))
		run_maps(count, heap, module, argv[1][0] == 'm');
	else if (!strcmp(argv[1], "buffers"))
		run_buffers(count, heap, module);
	else
		run_pairs(count, heap, module);
	if (recorder_end(recorder, &err))
		die(&err);
	printf("written-per-second=%.0f ", (double)event_count / (now() - start - sorting));
	read_back(argv[3]);
	return 0;
}
