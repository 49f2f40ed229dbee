/* Writes the chunks of a recording: compresses the payload, and adds the chunk to the index. The
 * first error is stored, and nothing is written after it. */
#include <string.h>

#include "core/record/recorder_parts.h"

bool recorder_is_broken(const struct recorder *recorder)
{
	return recorder->err.code != ERR_OK;
}

void recorder_write_bytes(struct recorder *recorder, const void *bytes, size_t len)
{
	if (recorder_is_broken(recorder) ||
		os_write(&recorder->file, bytes, len, recorder->path, &recorder->err))
		return;
	recorder->bytes += len;
}

void recorder_write_chunk(
	struct recorder *recorder, enum chunk_type type, uint64_t time_ms, uint64_t position)
{
	const struct buf *payload = &recorder->payload;
	struct buf *chunk = &recorder->chunk;
	size_t bound = ZSTD_compressBound(payload->len), packed;
	struct chunk_head head = {.time_ms = time_ms,
		.type = type,
		.packing = CHUNK_ZSTD,
		.unpacked_bytes = (uint32_t)payload->len};
	unsigned char *bytes;

	buf_clear(chunk);
	buf_reserve(chunk, CHUNK_HEAD_BYTES + bound);
	bytes = (unsigned char *)chunk->data;
	packed = ZSTD_compress2(
		recorder->zstd, bytes + CHUNK_HEAD_BYTES, bound, payload->data, payload->len);
	head.bytes = (uint32_t)packed;
	if (ZSTD_isError(packed) || packed >= payload->len || !chunk_is_fit(&head)) {
		head.packing = CHUNK_PLAIN;
		packed = payload->len;
		head.bytes = (uint32_t)packed;
		memcpy(bytes + CHUNK_HEAD_BYTES, payload->data, packed);
	}
	head.crc = chunk_crc(bytes + CHUNK_HEAD_BYTES, packed);
	chunk_head_write(bytes, &head);
	recorder_write_bytes(recorder, bytes, CHUNK_HEAD_BYTES + packed);
	varint_write(&recorder->index, type);
	varint_write(&recorder->index, CHUNK_HEAD_BYTES + packed);
	varint_write(&recorder->index, time_ms);
	varint_write(&recorder->index, position);
}

struct buf *recorder_begin_payload(struct recorder *recorder)
{
	buf_clear(&recorder->payload);
	return &recorder->payload;
}

void recorder_write_text(struct buf *to, const char *text)
{
	size_t len = text ? strlen(text) : 0;

	len = len < RECORD_TEXT_MAX ? len : RECORD_TEXT_MAX;
	varint_write(to, len);
	buf_add(to, text, len);
}

void recorder_set_limit(struct recorder *recorder, size_t count, const char *what)
{
	if (!recorder_is_broken(recorder))
		err_set(&recorder->err, ERR_LIMIT, recorder->path,
			"%zu %s; record for a shorter time", count, what);
}

bool recorder_add_text(struct recorder *recorder, size_t bytes)
{
	if (bytes > RECORD_ALL_TEXTS_MAX - recorder->text_bytes) {
		recorder_set_limit(recorder, recorder->text_bytes, "bytes of names");
		return false;
	}
	recorder->text_bytes += bytes;
	return true;
}
