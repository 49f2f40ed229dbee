/*
 * Opens a recording: reads all definitions, and the places of event chunks and check-points
 * (recording_contents.c). A finished file has an index, which is read first. If that index is
 * missing or invalid, all chunks are read in order, up to the first invalid chunk.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/record/recording_read.h"

int recording_bad(const struct recording *recording, int rc, uint64_t offset, const char *detail,
	struct err *err)
{
	struct buf place;

	buf_init(&place);
	buf_printf(&place, "%s, byte %" PRIu64, recording->path, offset);
	err_set(err, (enum err_code) - rc, place.data, detail ? "%s" : NULL, detail);
	buf_release(&place);
	return rc;
}

/* Reads the chunk at opening->offset and parses its contents. */
static int look_at(struct recording_opening *opening, const struct chunk_head *head)
{
	struct payload payload;
	int rc = chunk_read(&opening->reader, opening->offset, head, &payload);

	return rc ? rc : recording_add_chunk(opening, head, &payload);
}

/* Reads an entry of the index. The entry must agree with its chunk. */
static int read_entry(struct recording_opening *opening, struct payload *index, uint64_t end)
{
	uint64_t type = varint_parse_upto(index, UINT8_MAX);
	uint64_t bytes = varint_parse_upto(index, end - opening->offset);
	uint64_t time_ms = varint_parse(index), position = varint_parse(index);
	struct chunk_head head;
	int rc;

	if (!index->at || bytes < CHUNK_HEAD_BYTES)
		return -ERR_BAD_RECORDING;
	if (type == CHUNK_EVENTS || type == CHUNK_CHECKPOINT) {
		rc = !opening->has_start ?
			     -ERR_BAD_RECORDING :
			     recording_add_place(opening, (unsigned)type,
				     &(struct record_place){opening->offset, time_ms, position});
	} else {
		rc = chunk_read_head(&opening->reader, opening->offset, &head);
		if (!rc && (head.type != type || head.bytes + CHUNK_HEAD_BYTES != bytes ||
				   head.time_ms != time_ms))
			rc = -ERR_BAD_RECORDING;
		if (!rc)
			rc = look_at(opening, &head);
	}
	opening->offset += bytes;
	return rc;
}

/* Finds the index with the help of the trailer, and reads it into `*copy`. A copy is needed because
 * other chunks are read while the index is in use. */
static int read_index(struct recording_opening *opening, uint64_t *index_offset, struct buf *copy)
{
	uint64_t file_bytes = opening->recording->facts.file_bytes;
	unsigned char trailer[FILE_TRAILER_BYTES];
	struct chunk_head head;
	struct payload payload;
	int rc;

	if (file_bytes < FILE_HEAD_BYTES + FILE_TRAILER_BYTES)
		return -ERR_BAD_RECORDING;
	if (os_read_at(&opening->recording->file, file_bytes - FILE_TRAILER_BYTES, trailer,
		    sizeof(trailer)))
		return -ERR_READ;
	if (!file_trailer_parse(trailer, index_offset))
		return -ERR_BAD_RECORDING;
	rc = chunk_read_head(&opening->reader, *index_offset, &head);
	if (rc || head.type != CHUNK_INDEX)
		return rc ? rc : -ERR_BAD_RECORDING;
	rc = chunk_read(&opening->reader, *index_offset, &head, &payload);
	if (!rc)
		buf_add(copy, payload.at, (size_t)(payload.end - payload.at));
	return rc;
}

static int open_by_index(struct recording_opening *opening)
{
	struct buf copy;
	struct payload index;
	uint64_t end;
	int rc;

	buf_init(&copy);
	rc = read_index(opening, &end, &copy);
	if (!rc) {
		opening->is_by_index = true;
		opening->offset = FILE_HEAD_BYTES;
		index.at = (const unsigned char *)copy.data;
		index.end = index.at + copy.len;
		while (!rc && !opening->has_end && index.at < index.end)
			rc = read_entry(opening, &index, end);
		if (!rc && (!opening->has_end || index.at != index.end || opening->offset != end))
			rc = -ERR_BAD_RECORDING;
	}
	buf_release(&copy);
	return rc;
}

/* Reads all chunks in order, up to the first invalid one. */
static int open_by_chunks(struct recording_opening *opening)
{
	struct record_facts *facts = &opening->recording->facts;
	int rc = 0;

	opening->offset = FILE_HEAD_BYTES;
	while (!rc && !opening->has_end) {
		struct chunk_head head;

		rc = chunk_read_head(&opening->reader, opening->offset, &head);
		if (!rc)
			rc = look_at(opening, &head);
		if (!rc)
			opening->offset += CHUNK_HEAD_BYTES + (uint64_t)head.bytes;
	}
	if (rc == -ERR_BAD_RECORDING && opening->has_start) {
		facts->is_cut = true;
		facts->cut_bytes = opening->offset;
		rc = 0;
	}
	return rc;
}

/* Clears everything except the file, its name and its size. */
static void recording_clear(struct recording *recording)
{
	arena_release(&recording->arena);
	free(recording->events);
	free(recording->checkpoints);
	free(recording->modules);
	free(recording->stacks);
	free(recording->heaps);
	free(recording->threads);
	free(recording->thread_names);
	free(recording->kinds);
	free(recording->marks);
	free(recording->loads);
	free(recording->remarks);
	*recording = (struct recording){.path = recording->path,
		.file = recording->file,
		.facts.file_bytes = recording->facts.file_bytes};
}

static int read_all(struct recording *recording, bool is_by_index, struct err *err)
{
	struct recording_opening opening = {.recording = recording};
	struct record_facts *facts = &recording->facts;
	int rc;

	chunk_reader_init(&opening.reader, &recording->file, facts->file_bytes);
	rc = is_by_index ? open_by_index(&opening) : open_by_chunks(&opening);
	chunk_reader_release(&opening.reader);
	if (rc)
		return recording_bad(recording, rc, opening.offset, NULL, err);
	if (!opening.has_end) {
		facts->length_ms =
			opening.event_ms > opening.mark_ms ? opening.event_ms : opening.mark_ms;
		if (opening.load_ms > facts->length_ms)
			facts->length_ms = opening.load_ms;
	}
	facts->modules = recording->modules;
	facts->stacks = recording->stacks;
	facts->heaps = recording->heaps;
	facts->threads = recording->threads;
	facts->thread_names = recording->thread_names;
	facts->kinds = recording->kinds;
	facts->marks = recording->marks;
	facts->loads = recording->loads;
	facts->remarks = recording->remarks;
	return 0;
}

static int read_head(struct recording *recording, struct err *err)
{
	unsigned char head[FILE_HEAD_BYTES];
	int rc;

	if (!recording->facts.file_bytes)
		return err_set(err, ERR_EMPTY, recording->path, NULL);
	if (recording->facts.file_bytes < sizeof(head))
		return err_set(err, ERR_NOT_RECORDING, recording->path, NULL);
	if (os_read_at(&recording->file, 0, head, sizeof(head)))
		return err_set(err, ERR_READ, recording->path, NULL);
	rc = file_head_check(head);
	return rc ? err_set(err, (enum err_code) - rc, recording->path, NULL) : 0;
}

bool record_is_head(const void *bytes, size_t len)
{
	return len >= FILE_HEAD_BYTES && file_head_check(bytes) != -ERR_NOT_RECORDING;
}

int recording_open(struct recording **recording, const char *path, struct err *err)
{
	struct recording *made = xcalloc(1, sizeof(*made));
	int rc = os_open(&made->file, path, err);

	if (rc) {
		free(made);
		return rc;
	}
	made->path = xstrdup(path);
	made->facts.file_bytes = os_size(&made->file);
	rc = read_head(made, err);
	if (!rc && read_all(made, true, NULL)) {
		recording_clear(made);
		rc = read_all(made, false, err);
	}
	if (rc) {
		recording_close(made);
		return rc;
	}
	*recording = made;
	return 0;
}

void recording_close(struct recording *recording)
{
	if (!recording)
		return;
	recording_clear(recording);
	os_close(&recording->file);
	free(recording->path);
	free(recording);
}

const struct record_facts *recording_facts(const struct recording *recording)
{
	return &recording->facts;
}

static double weight_of(const struct record_facts *facts, uint32_t kind)
{
	return facts->sample_bytes && facts->kinds[kind].memory == RECORD_HEAP ?
		       block_sample_weight(facts->kinds[kind].bytes, facts->sample_bytes) :
		       1;
}

/* Rounds down. Returns 2^62 for larger numbers, which cannot occur. */
static uint64_t round_down(double number)
{
	return number < 0x1p62 ? (uint64_t)number : (uint64_t)1 << 62;
}

uint64_t record_kind_stands_for(const struct record_facts *facts, uint32_t kind, uint64_t count)
{
	/* A multiple of the golden ratio. The fractions of such multiples are evenly
	 * distributed. */
	double weight = weight_of(facts, kind), part = kind * 0.6180339887498949;

	return weight > 1 && count ?
		       round_down((double)count * weight + part - (double)(uint64_t)part) :
		       count;
}

uint64_t record_kind_bytes(const struct record_facts *facts, uint32_t kind)
{
	uint64_t bytes = facts->kinds[kind].bytes;
	double weight = weight_of(facts, kind);

	return weight > 1 ? round_down((double)bytes * weight + 0.5) : bytes;
}
