/*
 * Encodes and decodes the elements of a recording: heads with checksums, varints, strings, columns,
 * and chunks packed by zstd. Every length is checked before it is used.
 */
#include "core/record/chunk.h"

#include <stdlib.h>
#include <string.h>

#include <zlib.h>
#include <zstd.h>

#include "core/record/record.h"

#define LIST_ANY_BYTES ((size_t)64 << 10)
#define LIST_RATIO 1000

static const unsigned char file_magic[8] = {0x89, 'h', 'r', 'c', '\r', '\n', 0x1a, '\n'};
static const unsigned char chunk_magic[4] = {'h', 'r', 'c', 0x1a};
static const unsigned char trailer_magic[4] = {'h', 'r', 'c', '.'};

static void write_number(unsigned char *to, unsigned bytes, uint64_t value)
{
	for (unsigned i = 0; i < bytes; i++)
		to[i] = (unsigned char)(value >> 8 * i);
}

static uint64_t parse_number(const unsigned char *from, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)from[i] << 8 * i;
	return value;
}

uint32_t chunk_crc(const void *bytes, size_t len)
{
	return (uint32_t)crc32(0, bytes, (uInt)len);
}

void file_head_write(unsigned char to[FILE_HEAD_BYTES])
{
	memcpy(to, file_magic, sizeof(file_magic));
	write_number(to + 8, 4, RECORD_FORMAT);
	write_number(to + 12, 4, 0);
}

int file_head_check(const unsigned char from[FILE_HEAD_BYTES])
{
	if (memcmp(from, file_magic, sizeof(file_magic)) != 0)
		return -ERR_NOT_RECORDING;
	return parse_number(from + 8, 8) == RECORD_FORMAT ? 0 : -ERR_VERSION;
}

void file_trailer_write(unsigned char to[FILE_TRAILER_BYTES], uint64_t index_offset)
{
	write_number(to, 8, index_offset);
	memcpy(to + 8, trailer_magic, sizeof(trailer_magic));
	write_number(to + 12, 4, chunk_crc(to, 12));
}

bool file_trailer_parse(const unsigned char from[FILE_TRAILER_BYTES], uint64_t *index_offset)
{
	if (memcmp(from + 8, trailer_magic, sizeof(trailer_magic)) != 0 ||
		parse_number(from + 12, 4) != chunk_crc(from, 12))
		return false;
	*index_offset = parse_number(from, 8);
	return true;
}

void chunk_head_write(unsigned char to[CHUNK_HEAD_BYTES], const struct chunk_head *head)
{
	memcpy(to, chunk_magic, sizeof(chunk_magic));
	to[4] = (unsigned char)head->type;
	to[5] = (unsigned char)head->packing;
	write_number(to + 6, 2, 0);
	write_number(to + 8, 4, head->bytes);
	write_number(to + 12, 4, head->unpacked_bytes);
	write_number(to + 16, 8, head->time_ms);
	write_number(to + 24, 4, head->crc);
	write_number(to + 28, 4, chunk_crc(to, 28));
}

/* Returns false if the head is invalid. */
static bool head_parse(const unsigned char from[CHUNK_HEAD_BYTES], struct chunk_head *head)
{
	if (memcmp(from, chunk_magic, sizeof(chunk_magic)) != 0 ||
		parse_number(from + 28, 4) != chunk_crc(from, 28) || from[5] > CHUNK_ZSTD ||
		parse_number(from + 6, 2))
		return false;
	head->type = from[4];
	head->packing = from[5];
	head->bytes = (uint32_t)parse_number(from + 8, 4);
	head->unpacked_bytes = (uint32_t)parse_number(from + 12, 4);
	head->time_ms = parse_number(from + 16, 8);
	head->crc = (uint32_t)parse_number(from + 24, 4);
	if (head->packing == CHUNK_PLAIN && head->bytes != head->unpacked_bytes)
		return false;
	return head->unpacked_bytes <= CHUNK_UNPACKED_MAX && head->bytes <= CHUNK_UNPACKED_MAX &&
	       chunk_is_fit(head);
}

bool chunk_is_fit(const struct chunk_head *head)
{
	bool is_list = (head->type >= CHUNK_MODULES && head->type <= CHUNK_KINDS) ||
		       (head->type >= CHUNK_LOADS && head->type <= CHUNK_THREAD_NAME);

	return !is_list || head->unpacked_bytes <= LIST_ANY_BYTES ||
	       head->unpacked_bytes / LIST_RATIO <= head->bytes;
}

void varint_write(struct buf *to, uint64_t value)
{
	unsigned char bytes[10];
	size_t len = 0;

	for (; value >= 0x80; value >>= 7)
		bytes[len++] = (unsigned char)(value | 0x80);
	bytes[len++] = (unsigned char)value;
	buf_add(to, bytes, len);
}

void column_write(struct buf *to, const uint64_t *values, size_t count)
{
	uint64_t all = 0;
	unsigned char width = 0;

	for (size_t i = 0; i < count; i++)
		all |= values[i];
	for (; all; all >>= 8)
		width++;
	buf_add(to, &width, 1);
	buf_reserve(to, width * count);
	for (unsigned char byte = 0; byte < width; byte++) {
		unsigned char *plane = (unsigned char *)to->data + to->len;

		for (size_t i = 0; i < count; i++)
			plane[i] = (unsigned char)(values[i] >> 8 * byte);
		to->len += count;
	}
}

uint64_t varint_parse(struct payload *from)
{
	uint64_t value = 0;

	for (unsigned shift = 0; from->at && from->at < from->end; shift += 7) {
		unsigned char byte = *from->at++;

		if (shift == 63 && byte > 1)
			break;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
	from->at = NULL;
	return 0;
}

uint64_t varint_parse_upto(struct payload *from, uint64_t max)
{
	uint64_t value = varint_parse(from);

	if (value <= max)
		return value;
	from->at = NULL;
	return 0;
}

const char *payload_text(struct payload *from, size_t max, size_t *len)
{
	const char *text;

	*len = (size_t)varint_parse_upto(from, max);
	if (!from->at || *len > (size_t)(from->end - from->at) || memchr(from->at, '\0', *len)) {
		from->at = NULL;
		*len = 0;
		return "";
	}
	text = (const char *)from->at;
	from->at += *len;
	return text;
}

struct column column_parse(struct payload *from, size_t count)
{
	struct column column = {.count = count};

	if (from->at && from->at < from->end)
		column.width = *from->at++;
	else
		from->at = NULL;
	if (!from->at || column.width > 8 ||
		(column.width && count > (size_t)(from->end - from->at) / column.width)) {
		from->at = NULL;
		return (struct column){.count = count};
	}
	column.bytes = from->at;
	from->at += column.width * count;
	return column;
}

void chunk_reader_init(struct chunk_reader *reader, struct os_file *file, uint64_t file_bytes)
{
	*reader = (struct chunk_reader){.file = file, .file_bytes = file_bytes};
}

void chunk_reader_release(struct chunk_reader *reader)
{
	ZSTD_freeDCtx(reader->zstd);
	buf_release(&reader->packed);
	buf_release(&reader->unpacked);
}

int chunk_read_head(struct chunk_reader *reader, uint64_t offset, struct chunk_head *head)
{
	unsigned char bytes[CHUNK_HEAD_BYTES];

	if (offset > reader->file_bytes || reader->file_bytes - offset < CHUNK_HEAD_BYTES)
		return -ERR_BAD_RECORDING;
	if (os_read_at(reader->file, offset, bytes, sizeof(bytes)))
		return -ERR_READ;
	return head_parse(bytes, head) &&
			       head->bytes <= reader->file_bytes - offset - CHUNK_HEAD_BYTES ?
		       0 :
		       -ERR_BAD_RECORDING;
}

static bool unpack(struct chunk_reader *reader, const struct chunk_head *head)
{
	if (!reader->zstd)
		reader->zstd = ZSTD_createDCtx();
	if (!reader->zstd)
		memory_out();
	buf_clear(&reader->unpacked);
	buf_reserve(&reader->unpacked, head->unpacked_bytes);
	return ZSTD_decompressDCtx(reader->zstd, reader->unpacked.data, head->unpacked_bytes,
		       reader->packed.data, head->bytes) == head->unpacked_bytes;
}

int chunk_read(struct chunk_reader *reader, uint64_t offset, const struct chunk_head *head,
	struct payload *payload)
{
	const char *bytes;

	buf_clear(&reader->packed);
	buf_reserve(&reader->packed, head->bytes);
	if (os_read_at(reader->file, offset + CHUNK_HEAD_BYTES, reader->packed.data, head->bytes))
		return -ERR_READ;
	if (chunk_crc(reader->packed.data, head->bytes) != head->crc)
		return -ERR_BAD_RECORDING;
	bytes = reader->packed.data;
	if (head->packing == CHUNK_ZSTD) {
		if (!unpack(reader, head))
			return -ERR_BAD_RECORDING;
		bytes = reader->unpacked.data;
	}
	payload->at = (const unsigned char *)bytes;
	payload->end = payload->at + head->unpacked_bytes;
	return 0;
}
