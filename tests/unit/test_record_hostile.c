#include "tests/unit/record_made.h"

#include <zlib.h>
#include <zstd.h>

/* ---------------------------------------------------------------- a file built from hrec(5) */

enum {
	START = 1,
	MODULES,
	STACKS,
	HEAPS,
	THREADS,
	KINDS,
	EVENTS,
	CHECKPOINT,
	MARK,
	END,
	INDEX,
	LOADS,
	THREAD_STACKS = 14,
	THREAD_NAME,
};

struct made_chunk {
	unsigned type, packing;
	uint64_t time_ms;
	unsigned char payload[400]; /* contents before compression */
	size_t len;
	uint32_t unpacked_bytes; /* size that the chunk's head states; 0: the true size */
};

struct made_file {
	struct made_chunk chunks[20];
	size_t count;
};

static const unsigned char file_head[16] = "\x89hrc\r\n\x1a\n\x01";
static const unsigned char chunk_word[4] = {'h', 'r', 'c', 0x1a},
			   trailer_word[4] = {'h', 'r', 'c', '.'};

static void write_le(unsigned char *to, unsigned bytes, uint64_t value)
{
	while (bytes--) {
		*to++ = (unsigned char)value;
		value >>= 8;
	}
}

static struct made_chunk *add(struct made_file *file, unsigned type, uint64_t time_ms)
{
	struct made_chunk *chunk = &file->chunks[file->count++];

	*chunk = (struct made_chunk){.type = type, .time_ms = time_ms};
	return chunk;
}

/* Appends a varint of seven bits per byte. */
static void put(struct made_chunk *chunk, uint64_t value)
{
	for (; value > 127; value /= 128)
		chunk->payload[chunk->len++] = (unsigned char)(value % 128 + 128);
	chunk->payload[chunk->len++] = (unsigned char)value;
}

static void write_text(struct made_chunk *chunk, const char *text)
{
	memcpy(chunk->payload + chunk->len, text, strlen(text));
	chunk->len += strlen(text);
}

static void write_all(struct made_chunk *chunk, const uint64_t *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		put(chunk, values[i]);
}

#define PUT(chunk, ...)                                                                            \
	write_all(chunk, (const uint64_t[]){__VA_ARGS__},                                          \
		sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static size_t pack(const struct made_chunk *chunk, unsigned char *to)
{
	unsigned char *payload = to + 32;
	size_t len = chunk->len;

	memcpy(payload, chunk->payload, len);
	if (chunk->packing)
		len = ZSTD_compress(payload, 900, chunk->payload, chunk->len, 1);
	memcpy(to, chunk_word, 4);
	to[4] = (unsigned char)chunk->type;
	to[5] = (unsigned char)chunk->packing;
	write_le(to + 6, 2, 0);
	write_le(to + 8, 4, len);
	write_le(to + 12, 4, chunk->unpacked_bytes ? chunk->unpacked_bytes : chunk->len);
	write_le(to + 16, 8, chunk->time_ms);
	write_le(to + 24, 4, crc32(0, payload, (unsigned)len));
	write_le(to + 28, 4, crc32(0, to, 28));
	return 32 + len;
}

/* Writes the file with its true index, or with the index that the caller passes. */
static void write_made(const struct made_file *file, bool has_index, const struct made_chunk *lie)
{
	static unsigned char bytes[20000];
	struct made_chunk index = {.type = INDEX};
	size_t at = 16;

	memcpy(bytes, file_head, 16);
	for (size_t i = 0; i < file->count; i++) {
		const struct made_chunk *chunk = &file->chunks[i];
		size_t len = pack(chunk, bytes + at);
		bool has_position = chunk->type == EVENTS || chunk->type == CHECKPOINT;

		/* Positions are below 128, so their first byte is the whole number. */
		PUT(&index, chunk->type, len, chunk->time_ms, has_position ? chunk->payload[0] : 0);
		at += len;
	}
	if (has_index) {
		unsigned char *trailer;

		trailer = bytes + at + pack(lie ? lie : &index, bytes + at);
		write_le(trailer, 8, at);
		memcpy(trailer + 8, trailer_word, 4);
		write_le(trailer + 12, 4, crc32(0, trailer, 12));
		at = (size_t)(trailer - bytes) + 16;
	}
	file_write(path, bytes, at);
}

/* Returns a file with two kinds, of 10 and 300 bytes. At 5 ms thread 8 allocates two blocks of the
 * first kind. At 7 ms thread 0 allocates one of the second kind. After a check-point, at 9 ms,
 * stack 0 frees block 1 of the first kind, and another block of the second kind is allocated. The
 * recording ends at 20 ms. The blocks are at 1008h, 1000h, 40h and 3000h. */
static struct made_file good_file(void)
{
	struct made_file file = {0};
	struct made_chunk *chunk;

	write_text(add(&file, START, 0), "pid=5 bits=64 addresses=1");
	chunk = add(&file, MODULES, 0);
	PUT(chunk, 0, 1, 0x1000, 0x2000, 0, 0, 0, 0, 5);
	write_text(chunk, "a.exe");
	PUT(chunk, 0, 0);
	PUT(add(&file, STACKS, 0), 0, 1, 2, 1, 0x10, 0, 0x7fff);
	PUT(add(&file, HEAPS, 0), 0, 1, 0x650000);
	PUT(add(&file, THREADS, 0), 0, 2, 0, 8);
	PUT(add(&file, KINDS, 0), 0, 2, 10, 1, 1, 0, 300, 0, 0, 1);
	chunk = add(&file, EVENTS, 5);
	PUT(chunk, 0, 3, 0, 0, 1, 1, 0, 1, 2, 0, 320, 3, 7); /* the chunk's head */
	PUT(chunk, 1, 0, 0, 2); /* codes of one byte each */
	PUT(chunk, 0); /* no block has an age */
	PUT(chunk, 1, 1, 1, 1); /* 2 ms pass before event 2 */
	PUT(chunk, 1, 1, 1, 0); /* event 2 also changes to thread number 0 */
	PUT(chunk, 0, 0); /* no free has a stack */
	/* Addresses, as differences: +1008h, -8, -FC0h. */
	PUT(chunk, 2, 0x10, 0x0f, 0x7f, 0x20, 0, 0x1f);
	PUT(add(&file, CHECKPOINT, 7), 3, 2, 320, 1, 2, 1, 1, 2, 1);
	chunk = add(&file, EVENTS, 9);
	PUT(chunk, 3, 2, 1, 0, 0, 0, 1, 1, 0, 0, 610, 5, 9);
	PUT(chunk, 1, 1, 2);
	PUT(chunk, 32); /* the freed block's age is 0 */
	PUT(chunk, 0, 0, 0, 0, 0);
	PUT(chunk, 1, 0, 1, 0); /* the first event is a free; its stack is 0 */
	PUT(chunk, 2, 0, 0x60); /* the address is +3000h */
	chunk = add(&file, MARK, 12);
	PUT(chunk, 0, 5, 4);
	write_text(chunk, "here");
	/* Module 0 was unloaded at 15 ms and loaded at 18 ms. */
	PUT(add(&file, LOADS, 13), 2, 1, 2, 0, 3);
	PUT(add(&file, THREAD_NAME, 13), 1, 4); /* thread number 1 */
	write_text(&file.chunks[file.count - 1], "pool");
	PUT(add(&file, END, 20), 5, 0, 610, 5, 9);
	return file;
}

/* ---------------------------------------------------------------- queries of each file */

static bool was_cut; /* the last file that was read was cut */

/* Makes all queries. Results without an error must be consistent. Returns the first error, or 0. */
static int read_all(uint64_t *event_count)
{
	struct recording *recording;
	struct record_cursor *cursor;
	struct record_event event;
	struct record_state counters;
	struct record_block *blocks;
	const struct record_facts *facts;
	size_t block_count;
	struct err err = {0};
	uint64_t count = 0, ms = 0, at;
	int rc = recording_open(&recording, path, &err);

	*event_count = 0;
	if (rc) {
		assert_int_equal(rc, -(int)err.code);
		assert_int_equal(strncmp(err.place, path, strlen(path)), 0);
		return rc;
	}
	facts = recording_facts(recording);
	was_cut = facts->is_cut;
	assert_true(facts->event_count < 1000000 || facts->event_count < facts->file_bytes << 20);
	rc = record_cursor_open(&cursor, recording, 0, facts->event_count, &err);
	if (!rc) {
		while ((rc = record_next(cursor, &event, &err)) == 1) {
			assert_true(event.kind < facts->kind_count);
			assert_true(event.thread < facts->thread_count);
			assert_true(
				event.freed_by == RECORD_NO_STACK ||
				(event.type == RECORD_FREE && event.freed_by < facts->stack_count));
			assert_true(event.time_ms >= ms && event.time_ms <= facts->length_ms);
			ms = event.time_ms;
			count++;
		}
		record_cursor_close(cursor);
	}
	if (!rc)
		assert_int_equal(count, facts->event_count);
	*event_count = count;
	if (!rc)
		rc = recording_blocks(recording, count, &blocks, &block_count, &err);
	if (!rc) {
		assert_true(block_count <= count);
		free(blocks);
	}
	for (uint64_t position = 0; !rc && position <= count; position++) {
		rc = recording_state(recording, position, &counters, &err);
		for (size_t i = 0; !rc && i < counters.kind_count; i++)
			assert_true(counters.live[i] <= counters.allocated[i] &&
				    counters.allocated[i] <= position);
		if (!rc)
			record_state_release(&counters);
	}
	for (size_t i = 0; !rc && i < 4; i++) {
		static const char *const moments[] = {"start", "50%", "peak", "end"};

		rc = recording_position(recording, moments[i], &at, &ms, &err);
		if (!rc)
			assert_true(at <= facts->event_count && ms <= facts->length_ms);
	}
	if (rc) {
		assert_int_equal(rc, -(int)err.code);
		assert_int_equal(strncmp(err.place, path, strlen(path)), 0);
	}
	recording_close(recording);
	return rc;
}

TEST(file_made_by_manual_is_read)
{
	static const struct record_event want[] = {
		{0, 5, 0x1008, 0, 1, RECORD_ALLOC, RECORD_NO_STACK},
		{1, 5, 0x1000, 0, 1, RECORD_ALLOC, RECORD_NO_STACK},
		{0, 7, 0x40, 1, 0, RECORD_ALLOC, RECORD_NO_STACK},
		{1, 9, 0, 0, 1, RECORD_FREE, 0},
		{1, 9, 0x3000, 1, 1, RECORD_ALLOC, RECORD_NO_STACK},
	};
	struct made_file file = good_file();

	for (int i = 0; i < 8; i++) {
		struct recording *recording;
		struct record_cursor *cursor;
		const struct record_facts *facts;
		uint64_t count, ms;

		for (size_t k = 0; k < file.count; k++)
			file.chunks[k].packing = i & 1;
		if (i == 4) { /* the chunk lacks its addresses */
			file.chunks[0].len -= strlen(" addresses=1");
			file.chunks[6].len -= 7;
			file.chunks[8].len -= 3;
		}
		write_made(&file, i & 2, NULL);
		assert_int_equal(read_all(&count), 0);
		assert_int_equal(recording_open(&recording, path, NULL), 0);
		facts = recording_facts(recording);
		assert_false(facts->is_cut);
		assert_int_equal(facts->event_count, 5);
		assert_int_equal(facts->length_ms, 20);
		assert_int_equal(facts->peak.bytes, 610);
		assert_int_equal(facts->load_count, 2);
		assert_true(!facts->loads[0].is_loaded && facts->loads[1].is_loaded);
		assert_int_equal(facts->loads[0].time_ms, 15);
		assert_int_equal(facts->loads[1].time_ms, 18);
		assert_null(facts->thread_names[0]);
		assert_string_equal(facts->thread_names[1], "pool");
		assert_int_equal(facts->stacks[0].frames[0].module, 0);
		assert_int_equal(facts->stacks[0].frames[0].offset, 0x10);
		assert_int_equal(facts->stacks[0].frames[1].module, RECORD_NO_MODULE);
		assert_int_equal(position_of(recording, "here", &ms), 5);
		assert_int_equal(ms, 12);
		assert_int_equal(recording_checkpoint(recording, 4), 3);
		for (size_t from = 0; from <= 5; from++) {
			struct record_event event, wanted;

			assert_int_equal(record_cursor_open(&cursor, recording, from, 5, NULL), 0);
			for (size_t at = from; at < 5; at++) {
				wanted = want[at];
				wanted.addr = i < 4 ? wanted.addr : 0;
				assert_int_equal(record_next(cursor, &event, NULL), 1);
				assert_event(&event, &wanted);
			}
			assert_int_equal(record_next(cursor, &event, NULL), 0);
			record_cursor_close(cursor);
		}
		recording_close(recording);
	}
}

/* Adds a list of thread stacks before the end, and reads the file. Returns the memory of kind 1, or
 * RECORD_MEMORIES if the list is refused. */
static enum record_memory memory_with(const uint64_t *list, size_t count)
{
	struct made_file file = good_file();
	struct made_chunk end = file.chunks[--file.count];
	struct recording *recording;
	enum record_memory memory;
	uint64_t events;

	write_all(add(&file, THREAD_STACKS, 13), list, count);
	file.chunks[file.count++] = end;
	write_made(&file, true, NULL);
	assert_int_equal(read_all(&events), 0);
	assert_int_equal(recording_open(&recording, path, NULL), 0);
	memory = was_cut ? RECORD_MEMORIES : recording_facts(recording)->kinds[1].memory;
	recording_close(recording);
	return memory;
}

TEST(only_committed_kinds_are_thread_stacks)
{
	static const struct {
		uint64_t list[4];
		size_t count;
		enum record_memory memory;
	} cases[] = {
		{{0, 1, 1}, 3, RECORD_STACK}, {{0, 0}, 2, RECORD_COMMITTED},
		{{0, 1, 0}, 3, RECORD_MEMORIES}, /* a kind of a heap */
		{{0, 1, 2}, 3, RECORD_MEMORIES}, /* no such kind */
		{{0, 2, 1, 1}, 4, RECORD_MEMORIES}, /* a kind twice */
		{{1, 1, 1}, 3, RECORD_MEMORIES}, /* does not begin at 0 */
		{{0, 2, 1}, 3, RECORD_MEMORIES}, /* cut short */
		{{0, 1, 1, 1}, 4, RECORD_MEMORIES}, /* too long */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(memory_with(cases[i].list, cases[i].count), cases[i].memory);
}

/* ---------------------------------------------------------------- truncation and damage */

static char *small_file(struct truth *truth, size_t *len)
{
	struct record_facts facts = {.pid = 1, .image = "a.exe", .has_addresses = true};

	truth_open(truth, &facts);
	recorder_module(truth->recorder, &(struct module){.path = "a.exe", .base = 0x1000});
	for (uint64_t i = 0; i < 6; i++) {
		struct record_frame frame = {i, 0};

		truth_kind(truth,
			&(struct record_kind){10 + i, recorder_stack(truth->recorder, &frame, 1),
				recorder_heap(truth->recorder, i % 2), RECORD_HEAP});
	}
	for (size_t i = 0; i < 120; i++) {
		truth_time(truth, i / 3);
		truth_thread(truth, recorder_thread(truth->recorder, (uint32_t)(i / 7 % 3)));
		if (i % 3 == 2 && truth->kinds[i % 5].live_count)
			truth_free(truth, i % 5, random_below(truth->kinds[i % 5].live_count));
		else
			truth_alloc(truth, i % 6);
		if (i % 40 == 39)
			assert_int_equal(recorder_flush(truth->recorder, NULL), 0);
		if (i == 50)
			truth_mark(truth, "half");
	}
	truth_end(truth);
	return file_get(path, len);
}

static void assert_right_or_error(const struct truth *truth)
{
	struct recording *recording;
	struct record_cursor *cursor;
	struct record_event event;
	uint64_t count, at = 0;

	read_all(&count);
	if (recording_open(&recording, path, NULL))
		return;
	assert_true(recording_facts(recording)->event_count <= truth->count);
	assert_int_equal(record_cursor_open(&cursor, recording, 0,
				 recording_facts(recording)->event_count, NULL),
		0);
	while (record_next(cursor, &event, NULL) == 1)
		assert_event(&event, &truth->events[at++]);
	record_cursor_close(cursor);
	recording_close(recording);
}

TEST(cut_at_any_byte_leaves_what_is_before_it)
{
	static struct truth truth;
	size_t len;
	char *bytes = small_file(&truth, &len);
	uint64_t last = 0, count;

	for (size_t cut = 0; cut < len; cut++) {
		struct recording *recording;
		int rc;

		file_write(path, bytes, cut);
		rc = read_all(&count);
		if (rc) {
			assert_true(cut < 300); /* only a file that is cut in its START chunk */
			assert_int_equal(rc, !cut     ? -ERR_EMPTY :
					     cut < 16 ? -ERR_NOT_RECORDING :
							-ERR_BAD_RECORDING);
			continue;
		}
		assert_true(count >= last && count % 40 == 0);
		last = count;
		assert_int_equal(recording_open(&recording, path, NULL), 0);
		if (recording_facts(recording)->is_cut)
			assert_true(recording_facts(recording)->cut_bytes <= cut);
		else
			assert_int_equal(count, truth.count);
		recording_close(recording);
		assert_right_or_error(&truth);
	}
	assert_int_equal(last, truth.count);
	free(bytes);
	truth_release(&truth);
}

TEST(any_byte_that_changed_is_noticed_or_means_nothing)
{
	static struct truth truth;
	size_t len;
	char *bytes = small_file(&truth, &len);

	for (size_t at = 0; at < len; at++) {
		static const unsigned char flips[] = {1, 0x80, 0xff};
		char was = bytes[at];

		for (size_t i = 0; i < sizeof(flips); i++) {
			bytes[at] = (char)(was ^ flips[i]);
			file_write(path, bytes, len);
			assert_right_or_error(&truth);
		}
		bytes[at] = was;
	}
	free(bytes);
	truth_release(&truth);
}

/* With an index, the reader can read the chunks before the damage and after the next
 * check-point. */
TEST(damage_in_middle_is_reported_with_place_and_time)
{
	struct made_file file = good_file();
	struct recording *recording;
	struct record_cursor *cursor;
	struct record_state counters;
	struct record_event event;
	struct err err;
	size_t len, at;
	char *bytes, place[500];

	/* Without an index, reading ends at the damage. */
	write_made(&file, false, NULL);
	bytes = file_get(path, &len);
	for (at = 0; memcmp(bytes + at, "hrc\x1a\x07", 5) != 0;)
		at++;
	for (at++; memcmp(bytes + at, "hrc\x1a\x07", 5) != 0;)
		at++;
	bytes[at + 40] ^= 1;
	file_write(path, bytes, len);
	assert_int_equal(recording_open(&recording, path, NULL), 0);
	assert_true(recording_facts(recording)->is_cut);
	assert_int_equal(recording_facts(recording)->cut_bytes, at);
	assert_int_equal(recording_facts(recording)->event_count, 3);
	assert_int_equal(recording_facts(recording)->length_ms, 7);
	recording_close(recording);
	free(bytes);

	write_made(&file, true, NULL);
	bytes = file_get(path, &len);
	bytes[at + 40] ^= 1;
	file_write(path, bytes, len);
	assert_int_equal(recording_open(&recording, path, NULL), 0);
	assert_false(recording_facts(recording)->is_cut);
	assert_int_equal(recording_state(recording, 3, &counters, NULL), 0);
	record_state_release(&counters);
	assert_int_equal(recording_state(recording, 4, &counters, &err), -ERR_BAD_RECORDING);
	assert_int_equal(record_cursor_open(&cursor, recording, 0, 5, NULL), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(record_next(cursor, &event, &err), 1);
	assert_int_equal(record_next(cursor, &event, &err), -ERR_BAD_RECORDING);
	snprintf(place, sizeof(place), "%s, byte %zu", path, at);
	assert_string_equal(err.place, place);
	assert_string_equal(err.detail, "readable up to 0.007 s");
	assert_int_equal(record_next(cursor, &event, &err), 0);
	record_cursor_close(cursor);
	recording_close(recording);
	free(bytes);
}

TEST(random_bytes_are_no_recording)
{
	uint64_t count;

	for (int i = 0; i < 3000; i++) {
		unsigned char bytes[600];
		size_t len = random_below(sizeof(bytes));

		for (size_t k = 0; k < len; k++)
			bytes[k] = (unsigned char)random_next();
		if (i % 2 && len >= 16)
			memcpy(bytes, file_head, 16);
		file_write(path, bytes, len);
		assert_true(read_all(&count) < 0);
		assert_int_equal(count, 0);
	}
	file_write(path, "\x89hrc\r\n\x1a\n\x02\0\0\0\0\0\0\0", 16);
	assert_int_equal(read_all(&count), -ERR_VERSION);
}

/* ---------------------------------------------------------------- wrong data, right checksums */

/* Harmful payloads: each byte in turn gets values that are likely to cause harm. */
TEST(no_byte_of_payload_is_trusted)
{
	static const unsigned char values[] = {0, 1, 2, 0x7f, 0x80, 0xff};
	const struct made_file good = good_file();

	for (size_t k = 0; k < good.count; k++) {
		for (size_t at = 0; at < good.chunks[k].len; at++) {
			for (size_t i = 0; i < sizeof(values); i++) {
				struct made_file file = good;
				uint64_t count;

				file.chunks[k].payload[at] = values[i];
				write_made(&file, i % 2, NULL);
				read_all(&count);
				file.chunks[k].len = at; /* reading ends at the removed bytes */
				write_made(&file, i % 2, NULL);
				read_all(&count);
			}
		}
	}
}

TEST(what_does_not_fit_together_is_error)
{
	/* Changes to the valid file: chunk, byte, and the byte's new value. */
	static const struct {
		const char *what;
		size_t chunk, at;
		unsigned char value;
	} lies[] = {
		{"a kind that there is not", 6, 17, 4},
		{"a free of what is not live", 6, 15, 1},
		{"a free where none is told", 8, 16, 3},
		{"an allocation without an address", 8, 15, 0},
		{"an age that is too large", 8, 17, 34},
		{"the one before the first", 8, 17, 16},
		{"a thread that there is not", 6, 7, 2},
		{"a change to such a thread", 6, 26, 2},
		{"a tick behind the last event", 6, 20, 2},
		{"a tick that is too long", 6, 22, 2},
		{"a tick that is too short", 6, 22, 0},
		{"more events than codes", 6, 1, 4},
		{"a free by a stack that there is not", 8, 26, 1},
		{"an allocation by whom it was freed", 8, 24, 1},
		{"a free behind the last event", 8, 24, 2},
		{"more stacks of frees than frees", 8, 6, 2},
		{"a check-point of other counts", 7, 6, 3},
		{"a check-point with more live", 7, 9, 2},
		{"a check-point of another total", 7, 2, 0xc1},
		{"a check-point of other kinds", 7, 1, 3},
		{"a check-point elsewhere", 7, 0, 2},
		{"a mark behind the end", 9, 1, 6},
		{"a module that there is not comes", 10, 3, 2},
		{"a module comes behind the end", 10, 4, 6},
		{"more modules come than there are", 10, 0, 3},
		{"a thread that there is not has a name", 11, 0, 2},
		{"a name beyond its chunk", 11, 1, 5},
		{"an end with fewer events", 12, 0, 4},
		{"a wrong peak", 12, 2, 0xe1},
		{"a peak behind the end", 12, 4, 6},
		{"a gap between events", 8, 0, 4},
		{"the same events again", 8, 0, 2},
	};
	const struct made_file good = good_file();

	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		struct made_file file = good;
		uint64_t count;
		int rc;

		file.chunks[lies[i].chunk].payload[lies[i].at] = lies[i].value;
		write_made(&file, true, NULL);
		rc = read_all(&count);
		/* If the chunks are inconsistent with each other, reading ends there. */
		if (rc != -ERR_BAD_RECORDING && !was_cut)
			fail_msg("%s: %d", lies[i].what, rc);
		write_made(&file, false, NULL);
		rc = read_all(&count);
		if (rc != -ERR_BAD_RECORDING && !was_cut)
			fail_msg("%s, without an index: %d", lies[i].what, rc);
	}
}

/* A file has two halves, before and after its check-point. Reads each half with its own cursor, and
 * returns the number of unreadable halves. */
static unsigned bad_halves(const struct made_file *file)
{
	static const uint64_t ends[] = {0, 3, 5};
	struct recording *recording;
	struct record_cursor *cursor;
	struct record_event event;
	struct err err;
	unsigned bad = 0;

	write_made(file, true, NULL);
	assert_int_equal(recording_open(&recording, path, NULL), 0);
	for (int i = 0; i < 2; i++) {
		int rc = record_cursor_open(&cursor, recording, ends[i], ends[i + 1], &err);

		assert_int_equal(rc, 0);
		while ((rc = record_next(cursor, &event, &err)) > 0)
			;
		if (rc) {
			assert_int_equal(rc, -ERR_BAD_RECORDING);
			assert_non_null(strstr(err.place, ", byte "));
			assert_int_equal(record_next(cursor, &event, &err), 0);
			bad++;
		}
		record_cursor_close(cursor);
	}
	recording_close(recording);
	return bad;
}

/* If several cursors share a file, each cursor ends at the check-point where the next one
 * begins. */
TEST(check_point_that_lies_is_noticed_by_who_ends_there)
{
	struct made_file file = good_file();
	unsigned char *counters = file.chunks[7].payload + 5; /* allocated, a width, live */

	assert_int_equal(bad_halves(&file), 0);
	counters[0] = 3; /* one more allocated; the live count stays */
	assert_int_equal(bad_halves(&file), 1);
	/* 32 blocks of 10 bytes in place of 2, and 32 of 300 bytes in place of 1. */
	counters[0] = counters[3] = 32;
	counters[4] = 0;
	assert_int_equal(bad_halves(&file), 1);
}

TEST(index_that_lies_is_not_believed)
{
	const struct made_file good = good_file();
	static unsigned char bytes[20000];
	struct made_chunk index = {.type = INDEX};
	uint64_t count;

	/* Builds the true index, and then changes each byte. */
	for (size_t i = 0; i < good.count; i++) {
		const struct made_chunk *chunk = &good.chunks[i];

		PUT(&index, chunk->type, pack(chunk, bytes), chunk->time_ms,
			chunk->type == EVENTS || chunk->type == CHECKPOINT ? chunk->payload[0] : 0);
	}
	write_made(&good, true, &index);
	assert_int_equal(read_all(&count), 0);
	assert_int_equal(count, 5);
	for (size_t at = 0; at < index.len; at++) {
		for (unsigned value = 0; value < 256; value += at % 4 == 3 ? 1 : 5) {
			struct made_chunk lie = index;
			int rc;

			lie.payload[at] = (unsigned char)value;
			write_made(&good, true, &lie);
			rc = read_all(&count);
			assert_true(rc == -ERR_BAD_RECORDING || (!rc && count == 5));
		}
	}
}

TEST(what_is_claimed_is_not_allocated)
{
	static const size_t lists[] = {1, 2, 3, 4, 5};
	const struct made_file good = good_file();
	uint64_t count;

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		struct made_file file = good;
		struct made_chunk *chunk = &file.chunks[lists[i]];

		chunk->len = 0;
		PUT(chunk, 0, UINT64_MAX);
		write_made(&file, false, NULL);
		assert_int_equal(read_all(&count), 0);
		assert_int_equal(count, 0);
		chunk->len = 0;
		PUT(chunk, 0, 0xffff, 3, 3);
		write_made(&file, true, NULL);
		read_all(&count);
	}
	for (unsigned packing = 0; packing < 2; packing++) {
		static const uint32_t sizes[] = {1, 0x1000, 0x4000000, 0x4000001, UINT32_MAX};

		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			struct made_file file = good;

			file.chunks[6].packing = packing;
			file.chunks[6].unpacked_bytes = sizes[i];
			write_made(&file, true, NULL);
			assert_int_equal(read_all(&count), -ERR_BAD_RECORDING);
			write_made(&file, false, NULL);
			assert_int_equal(read_all(&count), 0); /* reading ends at the damage */
			assert_int_equal(count, 0);
		}
	}
}

/* Many stacks of many equal frames, which compress to almost nothing. */
TEST(little_in_file_is_not_much_in_memory)
{
	enum { STACKS_MADE = 20000, FRAMES_MADE = 1000, ROW = 2 + 2 * FRAMES_MADE };
	size_t len = 4 + (size_t)STACKS_MADE * ROW, packed, bound = ZSTD_compressBound(len);
	unsigned char *rows = calloc(1, len), *bytes = malloc(bound + 500), *larger;
	struct made_chunk start = good_file().chunks[0], count = {.len = 0};
	struct recording *recording;
	size_t at = 16;

	assert_non_null(rows);
	assert_non_null(bytes);
	PUT(&count, 0, STACKS_MADE);
	assert_int_equal(count.len, 4);
	memcpy(rows, count.payload, 4);
	for (size_t i = 0; i < STACKS_MADE; i++) {
		rows[4 + i * ROW] = FRAMES_MADE % 128 + 128;
		rows[4 + i * ROW + 1] = FRAMES_MADE / 128;
	}
	memcpy(bytes, file_head, 16);
	at += pack(&start, bytes + at);
	packed = ZSTD_compress(bytes + at + 32, bound, rows, len, 3);
	assert_true(packed < len / 1000);
	memcpy(bytes + at, chunk_word, 4);
	bytes[at + 4] = STACKS;
	bytes[at + 5] = 1;
	write_le(bytes + at + 6, 2, 0);
	write_le(bytes + at + 8, 4, packed);
	write_le(bytes + at + 12, 4, len);
	write_le(bytes + at + 16, 8, 0);
	write_le(bytes + at + 24, 4, crc32(0, bytes + at + 32, (unsigned)packed));
	write_le(bytes + at + 28, 4, crc32(0, bytes + at, 28));
	file_write(path, bytes, at + 32 + packed);
	assert_int_equal(recording_open(&recording, path, NULL), 0);
	assert_int_equal(recording_facts(recording)->stack_count, 0);
	assert_int_equal(recording_facts(recording)->cut_bytes, at);
	recording_close(recording);
	/* Without compression the chunk is as large as its contents. */
	larger = realloc(bytes, at + 32 + len);
	assert_non_null(larger);
	bytes = larger;
	memcpy(bytes + at + 32, rows, len);
	bytes[at + 5] = 0;
	write_le(bytes + at + 8, 4, len);
	write_le(bytes + at + 24, 4, crc32(0, rows, (unsigned)len));
	write_le(bytes + at + 28, 4, crc32(0, bytes + at, 28));
	file_write(path, bytes, at + 32 + len);
	assert_int_equal(recording_open(&recording, path, NULL), 0);
	assert_int_equal(recording_facts(recording)->stack_count, STACKS_MADE);
	recording_close(recording);
	free(rows);
	free(bytes);
}

TEST(sums_that_overflow_are_error)
{
	struct made_file file = good_file();
	struct made_chunk *kinds = &file.chunks[5];
	struct record_state counters;
	struct recording *recording;
	struct err err;

	kinds->len = 0;
	PUT(kinds, 0, 2, UINT64_MAX, 1, 1, 0, 300, 0, 0, 1);
	write_made(&file, true, NULL);
	assert_int_equal(recording_open(&recording, path, NULL), 0);
	assert_int_equal(recording_state(recording, 2, &counters, &err), -ERR_BAD_RECORDING);
	assert_int_equal(recording_state(recording, 3, &counters, &err), -ERR_BAD_RECORDING);
	recording_close(recording);
}
