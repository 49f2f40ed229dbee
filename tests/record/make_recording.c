/*
 * make_recording EVENTS FILE.hrec: converts a text to a recording.
 *
 * A line is a word and its values, separated by blanks; numbers of heaps and addresses are
 * hexadecimal, others decimal. Later lines refer to named items by NAME:
 *
 *   process PID PARENT BITS START-MS WALL-MS SAMPLE ATTACHED IMAGE [addresses]
 *   module NAME BASE SIZE TIMESTAMP PATH
 *   stack NAME MODULE+OFFSET|ADDRESS ...
 *   heap NAME HANDLE
 *   kind NAME BYTES STACK|- HEAP|committed|reserved|mapped|stack
 *   thread TID
 *   name TID NAME
 *   time MS
 *   alloc KIND [ADDRESS]
 *   free KIND NUMBER [STACK]
 *   start
 *   mark LABEL
 *   lost EVENTS
 *   flush
 *   stop            the writer dies here: unflushed events are lost, and there is no end
 *
 * Status 0, or 1 with a line that contains the reason.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/record/record.h"

#define WORDS_MAX 1100

struct maker {
	struct recorder *recorder;
	const char *path;
	struct table names; /* numbers by "kind NAME" and so on */
	char *words[WORDS_MAX];
	size_t count;
	bool is_stopped;
};

static _Noreturn void fail(const char *what, const char *why)
{
	fprintf(stderr, "make_recording: %s: %s\n", what, why);
	exit(1);
}

static void check(int rc, const struct err *err)
{
	char text[sizeof(*err)];

	if (rc)
		fail("recording", err_text(err, text, sizeof(text)));
}

static uint64_t number(const char *text, int base)
{
	char *end;
	uint64_t value = strtoull(text, &end, base);

	if (!*text || *end)
		fail(text, "no number");
	return value;
}

static void name_add(struct maker *maker, uint64_t value)
{
	char key[200];
	int len = snprintf(key, sizeof(key), "%s %s", maker->words[0], maker->words[1]);

	table_add(&maker->names, key, (size_t)len, value);
}

static uint32_t name_find(const struct maker *maker, const char *sort, const char *name)
{
	char key[200];
	int len = snprintf(key, sizeof(key), "%s %s", sort, name);
	const uint64_t *found = table_find(&maker->names, key, (size_t)len);

	if (!found)
		fail(key, "no such name");
	return (uint32_t)*found;
}

static void make_process(struct maker *maker)
{
	char **words = maker->words;
	struct record_facts facts = {
		.pid = (uint32_t)number(words[1], 10),
		.parent_pid = (uint32_t)number(words[2], 10),
		.bits = (unsigned)number(words[3], 10),
		.start_ms = (int64_t)number(words[4], 10),
		.time_ms = (int64_t)number(words[5], 10),
		.sample_bytes = number(words[6], 10),
		.is_attached = number(words[7], 10) != 0,
		.image = words[8],
		.has_addresses = maker->count > 9,
	};
	struct err err;

	check(recorder_open(&maker->recorder, maker->path, &facts, &err), &err);
}

static void make_module(struct maker *maker)
{
	char **words = maker->words;
	struct module module = {
		.base = number(words[2], 16),
		.size_bytes = number(words[3], 16),
		.timestamp = (uint32_t)number(words[4], 10),
		.checksum = 1,
		.has_identity = true,
		.path = words[5],
	};

	name_add(maker, recorder_module(maker->recorder, &module));
}

static void make_stack(struct maker *maker)
{
	struct record_frame frames[WORDS_MAX];
	unsigned count = 0;

	for (size_t i = 2; i < maker->count; i++) {
		char *plus = strchr(maker->words[i], '+');

		if (plus)
			*plus = '\0';
		frames[count++] = (struct record_frame){
			.offset = number(plus ? plus + 1 : maker->words[i], 16),
			.module = plus ? name_find(maker, "module", maker->words[i]) :
					 RECORD_NO_MODULE};
	}
	name_add(maker, recorder_stack(maker->recorder, frames, count));
}

static void make_kind(struct maker *maker)
{
	static const char *const memories[] = {[RECORD_COMMITTED] = "committed",
		[RECORD_RESERVED] = "reserved",
		[RECORD_MAPPED] = "mapped",
		[RECORD_STACK] = "stack"};
	char **words = maker->words;
	struct record_kind kind = {.bytes = number(words[2], 10),
		.stack = !strcmp(words[3], "-") ? RECORD_NO_STACK :
						  name_find(maker, "stack", words[3]),
		.heap = RECORD_NO_HEAP};

	for (int i = RECORD_COMMITTED; i < RECORD_MEMORIES; i++) {
		if (!strcmp(words[4], memories[i]))
			kind.memory = (enum record_memory)i;
	}
	if (kind.memory == RECORD_HEAP)
		kind.heap = name_find(maker, "heap", words[4]);
	name_add(maker, recorder_kind(maker->recorder, &kind));
}

static void make_heap(struct maker *maker)
{
	name_add(maker, recorder_heap(maker->recorder, number(maker->words[2], 16)));
}

static void make_name(struct maker *maker)
{
	recorder_thread_name(maker->recorder,
		recorder_thread(maker->recorder, (uint32_t)number(maker->words[1], 10)),
		maker->words[2]);
}

static void make_thread(struct maker *maker)
{
	recorder_thread_is(maker->recorder,
		recorder_thread(maker->recorder, (uint32_t)number(maker->words[1], 10)));
}

static void make_time(struct maker *maker)
{
	recorder_time(maker->recorder, number(maker->words[1], 10));
}

static void make_alloc(struct maker *maker)
{
	recorder_alloc(maker->recorder, name_find(maker, "kind", maker->words[1]),
		maker->count > 2 ? number(maker->words[2], 16) : 0);
}

static void make_free(struct maker *maker)
{
	recorder_free_by(maker->recorder, name_find(maker, "kind", maker->words[1]),
		number(maker->words[2], 10),
		maker->count > 3 ? name_find(maker, "stack", maker->words[3]) : RECORD_NO_STACK);
}

static void make_start(struct maker *maker)
{
	recorder_start(maker->recorder);
}

static void make_mark(struct maker *maker)
{
	recorder_mark(maker->recorder, maker->words[1]);
}

static void make_lost(struct maker *maker)
{
	recorder_lost(maker->recorder, number(maker->words[1], 10));
}

static void make_flush(struct maker *maker)
{
	struct err err;

	check(recorder_flush(maker->recorder, &err), &err);
}

static void make_stop(struct maker *maker)
{
	maker->is_stopped = true;
}

static const struct {
	const char *word;
	size_t least; /* minimum number of words on the line */
	void (*make)(struct maker *maker);
} lines[] = {
	{"process", 9, make_process},
	{"module", 6, make_module},
	{"stack", 3, make_stack},
	{"heap", 3, make_heap},
	{"kind", 5, make_kind},
	{"thread", 2, make_thread},
	{"name", 3, make_name},
	{"time", 2, make_time},
	{"alloc", 2, make_alloc},
	{"free", 3, make_free},
	{"start", 1, make_start},
	{"mark", 2, make_mark},
	{"lost", 2, make_lost},
	{"flush", 1, make_flush},
	{"stop", 1, make_stop},
};

static void take_line(struct maker *maker, char *line)
{
	maker->count = 0;
	for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n")) {
		if (maker->count == WORDS_MAX)
			fail(line, "too many words");
		maker->words[maker->count++] = word;
	}
	for (size_t i = 0; maker->count && i < sizeof(lines) / sizeof(*lines); i++) {
		if (strcmp(lines[i].word, maker->words[0]) != 0)
			continue;
		if (maker->count < lines[i].least || (i && !maker->recorder))
			fail(line, "too few words, or no process yet");
		lines[i].make(maker);
		return;
	}
	if (maker->count)
		fail(maker->words[0], "no such line");
}

int main(int argc, char **argv)
{
	static struct maker maker;
	static char line[1 << 16];
	struct err err;
	FILE *from;

	if (argc != 3)
		fail("usage", "make_recording EVENTS FILE.hrec");
	maker.path = argv[2];
	table_init(&maker.names);
	from = fopen(argv[1], "r");
	if (!from)
		fail(argv[1], "cannot open");
	while (!maker.is_stopped && fgets(line, sizeof(line), from))
		take_line(&maker, line);
	(void)fclose(from);
	if (!maker.recorder)
		fail(argv[1], "no process");
	if (!maker.is_stopped)
		check(recorder_end(maker.recorder, &err), &err);
	table_release(&maker.names);
	return 0;
}
