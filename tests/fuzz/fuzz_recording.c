/* Recordings. All events refer to entries of the recording, are sorted by time, and add up to each
 * state. Every request succeeds or returns an error. The mutator changes one chunk at a time and
 * corrects lengths and checksums. */
#include "tests/fuzz/fuzz.h"

#include <zstd.h>

#include "core/base/memory.h"
#include "core/record/chunk.h"
#include "core/record/record.h"
#include "diff/query/lives.h"
#include "diff/read/dump_sums.h"

/* ---------------------------------------------------------------- mutator */

#define CHUNKS_MAX 100
#define PAYLOAD_MAX ((size_t)64 << 10)

struct split_chunk {
	uint8_t head[CHUNK_HEAD_BYTES];
	uint8_t *payload; /* freed by the owner; not compressed, if possible */
	size_t len, unpacked_bytes;
};

static uint64_t number_at(const uint8_t *at, unsigned bytes)
{
	struct fuzz_input input = {at, at + bytes};

	return fuzz_number(&input, bytes);
}

/* Reads the chunk at *at, and advances *at. Returns false at the end. */
static bool split(struct split_chunk *chunk, const uint8_t *bytes, size_t len, size_t *at)
{
	size_t left = len - *at - CHUNK_HEAD_BYTES, plain;

	if (len - *at < CHUNK_HEAD_BYTES)
		return false;
	memcpy(chunk->head, bytes + *at, CHUNK_HEAD_BYTES);
	*at += CHUNK_HEAD_BYTES;
	chunk->len = (size_t)number_at(chunk->head + 8, 4);
	chunk->len = chunk->len < left ? chunk->len : left;
	chunk->payload = xmalloc(PAYLOAD_MAX);
	plain = ZSTD_decompress(chunk->payload, PAYLOAD_MAX, bytes + *at, chunk->len);
	*at += chunk->len;
	if (chunk->head[5] == CHUNK_ZSTD && !ZSTD_isError(plain)) {
		chunk->head[5] = CHUNK_PLAIN;
		chunk->len = plain;
	} else {
		chunk->len = chunk->len < PAYLOAD_MAX ? chunk->len : PAYLOAD_MAX;
		memcpy(chunk->payload, bytes + *at - chunk->len, chunk->len);
	}
	return true;
}

static void add_chunk(struct buf *to, const struct split_chunk *chunk)
{
	uint8_t head[CHUNK_HEAD_BYTES];

	memcpy(head, chunk->head, sizeof(head));
	memcpy(head, (const uint8_t[]){'h', 'r', 'c', 0x1a}, 4);
	fuzz_write(head + 6, 0, 2);
	fuzz_write(head + 8, chunk->len, 4);
	if (head[5] == CHUNK_PLAIN)
		fuzz_write(head + 12, chunk->len, 4);
	fuzz_write(head + 24, chunk_crc(chunk->payload, chunk->len), 4);
	fuzz_write(head + 28, chunk_crc(head, 28), 4);
	buf_add(to, head, sizeof(head));
	buf_add(to, chunk->payload, chunk->len);
}

static size_t change(struct split_chunk *chunks, size_t count, unsigned seed)
{
	struct split_chunk *chunk = &chunks[seed / 16 % count],
			   *other = &chunks[seed / 256 % count];
	uint8_t spare[4];

	switch (seed % 16) {
	case 0:
		memcpy(spare, chunk->head + 4, 2);
		memcpy(spare + 2, chunk->head + 16, 2);
		LLVMFuzzerMutate(spare, 4, 4);
		memcpy(chunk->head + 4, spare, 2);
		memcpy(chunk->head + 16, spare + 2, 2);
		break;
	case 1: {
		struct split_chunk moved = *chunk;

		*chunk = *other;
		*other = moved;
		break;
	}
	case 2:
		free(chunk->payload);
		*chunk = chunks[--count];
		break;
	default: chunk->len = LLVMFuzzerMutate(chunk->payload, chunk->len, PAYLOAD_MAX);
	}
	return count;
}

/* A file without an index is read like a file whose writer was killed. */
static void join(struct buf *to, const struct split_chunk *chunks, size_t count, bool has_index)
{
	unsigned char head[FILE_HEAD_BYTES], trailer[FILE_TRAILER_BYTES];
	size_t index = 0;

	file_head_write(head);
	buf_add(to, head, sizeof(head));
	for (size_t i = 0; i < count; i++) {
		if (chunks[i].head[4] == CHUNK_INDEX && !has_index)
			continue;
		if (chunks[i].head[4] == CHUNK_INDEX)
			index = to->len;
		add_chunk(to, &chunks[i]);
	}
	if (index) {
		file_trailer_write(trailer, index);
		buf_add(to, trailer, sizeof(trailer));
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t len, size_t max, unsigned seed)
{
	static struct split_chunk chunks[CHUNKS_MAX];
	size_t count = 0, at = FILE_HEAD_BYTES;
	struct buf joined = {0};

	if (seed % 64 == 0 || len < FILE_HEAD_BYTES)
		return LLVMFuzzerMutate(bytes, len, max);
	while (count < CHUNKS_MAX && split(&chunks[count], bytes, len, &at))
		count++;
	if (count > 1)
		count = change(chunks, count, seed / 64);
	join(&joined, chunks, count, seed % 3 == 0);
	if (joined.len <= max) {
		memcpy(bytes, joined.data, joined.len);
		len = joined.len;
	}
	buf_release(&joined);
	while (count)
		free(chunks[--count].payload);
	return len;
}

/* ---------------------------------------------------------------- reader */

static void check_event(const struct record_facts *facts, const struct record_event *event)
{
	HOLDS(event->kind < facts->kind_count && event->thread < facts->thread_count);
	HOLDS(event->time_ms <= facts->length_ms);
	HOLDS(event->freed_by == RECORD_NO_STACK ||
		(event->type == RECORD_FREE && event->freed_by < facts->stack_count));
}

/* Counts events by kind and compares the sums with the recorded state. */
static int replay(struct recording *recording, const struct record_facts *facts)
{
	uint64_t *allocated = xcalloc(facts->kind_count, sizeof(*allocated));
	uint64_t *live = xcalloc(facts->kind_count, sizeof(*live)), count = 0, ms = 0;
	struct record_cursor *cursor = NULL;
	struct record_event event;
	struct record_state state = {0};
	int rc = record_cursor_open(&cursor, recording, 0, facts->event_count, NULL);

	while (!rc && (rc = record_next(cursor, &event, NULL)) == 1) {
		check_event(facts, &event);
		HOLDS(event.time_ms >= ms);
		ms = event.time_ms;
		allocated[event.kind] += event.type == RECORD_ALLOC;
		live[event.kind] += event.type == RECORD_ALLOC ? 1 : UINT64_MAX;
		count++;
		rc = 0;
	}
	record_cursor_close(cursor);
	if (!rc) {
		HOLDS(count == facts->event_count);
		rc = recording_state(recording, count, &state, NULL);
	}
	if (!rc) {
		HOLDS(!memcmp(state.allocated, allocated, facts->kind_count * sizeof(*live)));
		HOLDS(!memcmp(state.live, live, facts->kind_count * sizeof(*live)));
		record_state_release(&state);
	}
	free(allocated);
	free(live);
	return rc;
}

static void ask(struct recording *recording, const struct record_facts *facts)
{
	static const char *const moments[] = {
		"start", "end", "peak", "5ms", "40%", "here", "2026-11-20T10:00"};
	struct record_state state;
	struct record_block *blocks;
	uint64_t position, ms;
	size_t count;

	for (size_t i = 0; i < sizeof(moments) / sizeof(*moments); i++) {
		if (recording_position(recording, moments[i], &position, &ms, NULL))
			continue;
		HOLDS(position <= facts->event_count && ms <= facts->length_ms);
		HOLDS(recording_checkpoint(recording, position) <= position);
		if (recording_state(recording, position, &state, NULL))
			continue;
		for (size_t k = 0; k < state.kind_count; k++)
			HOLDS(state.live[k] <= state.allocated[k] &&
				state.allocated[k] <= position);
		record_state_release(&state);
	}
	if (facts->has_addresses &&
		!recording_blocks(recording, facts->event_count, &blocks, &count, NULL)) {
		HOLDS(count <= facts->event_count);
		free(blocks);
	}
}

static void check_facts(const struct record_facts *facts)
{
	for (size_t i = 0; i < facts->stack_count; i++) {
		HOLDS(facts->stacks[i].frame_count <= RECORD_FRAMES_MAX);
		for (uint32_t k = 0; k < facts->stacks[i].frame_count; k++)
			HOLDS(facts->stacks[i].frames[k].module == RECORD_NO_MODULE ||
				facts->stacks[i].frames[k].module < facts->module_count);
	}
	for (size_t i = 0; i < facts->kind_count; i++) {
		HOLDS(facts->kinds[i].stack == RECORD_NO_STACK ||
			facts->kinds[i].stack < facts->stack_count);
		HOLDS(facts->kinds[i].heap == RECORD_NO_HEAP ||
			facts->kinds[i].heap < facts->heap_count);
		HOLDS(facts->kinds[i].memory < RECORD_MEMORIES);
	}
	for (size_t i = 0; i < facts->load_count; i++)
		HOLDS(facts->loads[i].module < facts->module_count);
	HOLDS(facts->start_position <= facts->event_count || facts->is_cut);
}

/* Makes the table of births and deaths of the whole recording. Its entries refer to its edges. */
static void make_lives(struct recording *recording, const struct record_facts *facts)
{
	const struct life_window window = {.facts = facts,
		.row_count = facts->kind_count,
		.to_position = facts->event_count,
		.to_ms = facts->length_ms};
	struct life_maker *maker = lives_begin(&window);
	struct record_cursor *cursor = NULL;
	struct record_event event;
	struct lives *lives;
	uint64_t position = 0;

	for (uint32_t i = 0; i < facts->kind_count; i++)
		lives_add_kind(maker, &(struct life_kind){.number = i, .row = i});
	if (!record_cursor_open(&cursor, recording, 0, facts->event_count, NULL)) {
		while (record_next(cursor, &event, NULL) == 1) {
			lives_advance(maker, position++, event.time_ms);
			if (event.type == RECORD_ALLOC)
				lives_alloc(maker, event.kind);
			else
				lives_free(maker, event.kind, event.number);
		}
	}
	record_cursor_close(cursor);
	lives = lives_end(maker);
	HOLDS(lives->edge_count >= 2 && lives->edge_count <= LIFE_SPANS_MAX + 2);
	for (size_t i = 0; i < lives->entry_count; i++) {
		const struct life_entry *entry = &lives->entries[i];

		HOLDS(entry->row < facts->kind_count || entry->row == LIFE_OTHER);
		HOLDS(entry->birth <= entry->death && entry->death <= lives->edge_count);
	}
	lives_release(lives);
}

static void read_as_sums(const char *path, enum block_fate fate, bool by_thread)
{
	struct recording_part part = {
		.fate = fate, .wants_blocks = fate == FATE_LIVE, .by_thread = by_thread};
	struct dump_sums sums;
	struct err err = {0};
	int rc;

	sums_init(&sums);
	rc = sums_read_recording(&sums, path, path, &part, &err);
	HOLDS(!rc || (int)err.code == -rc);
	sums_release(&sums);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const char *path = fuzz_file(0, bytes, len);
	struct recording *recording;
	struct err err = {0};
	int rc = recording_open(&recording, path, &err);

	HOLDS(!rc || (int)err.code == -rc);
	if (rc)
		return 0;
	check_facts(recording_facts(recording));
	if (!replay(recording, recording_facts(recording))) {
		ask(recording, recording_facts(recording));
		make_lives(recording, recording_facts(recording));
	}
	recording_close(recording);
	read_as_sums(path, (enum block_fate)(len % BLOCK_FATES), false);
	read_as_sums(path, (enum block_fate)(len % BLOCK_FATES), true);
	return 0;
}
