/*
 * What a recording is made of, for its writer and its readers: chunks, varints, columns. man/hrec.5 is the law.
 * Numbers in heads are little-endian; a varint has 7 bits a byte, the lowest first.
 */
#ifndef CORE_RECORD_CHUNK_H
#define CORE_RECORD_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/record/record.h"

#define FILE_HEAD_BYTES RECORD_HEAD_BYTES
#define CHUNK_HEAD_BYTES 32
#define FILE_TRAILER_BYTES 16
#define CHUNK_UNPACKED_MAX ((size_t)64 << 20)
#define CHUNK_EVENTS_MAX ((size_t)256 << 10)

/* What a recording may have of each, so that no file takes memory without end. */
#define RECORD_MODULES_MAX ((size_t)1 << 20)
#define RECORD_HEAPS_MAX ((size_t)1 << 20)
#define RECORD_THREADS_MAX ((size_t)1 << 22)
#define RECORD_STACKS_MAX ((size_t)1 << 24)
#define RECORD_ALL_FRAMES_MAX ((size_t)1 << 26)
#define RECORD_KINDS_MAX ((size_t)1 << 22)
#define RECORD_MARKS_MAX ((size_t)1 << 20)
#define RECORD_LOADS_MAX ((size_t)1 << 22)
#define RECORD_REMARKS_MAX ((size_t)1000)
#define RECORD_ALL_TEXTS_MAX ((size_t)256 << 20) /* bytes, of modules and marks */

enum chunk_type {
	CHUNK_START = 1,
	CHUNK_MODULES,
	CHUNK_STACKS,
	CHUNK_HEAPS,
	CHUNK_THREADS,
	CHUNK_KINDS,
	CHUNK_EVENTS,
	CHUNK_CHECKPOINT,
	CHUNK_MARK,
	CHUNK_END,
	CHUNK_INDEX,
	CHUNK_LOADS,
	CHUNK_REMARK,
};

enum { MODULE_HAS_IDENTITY = 1, MODULE_HAS_PDB = 2, MODULE_HAS_GUID = 4 }; /* flags of a module */
enum { MARK_LABEL, MARK_START }; /* what a mark is */

/*
 * How a free tells which allocation it frees, in a byte: how far it is behind the one of its kind that was freed
 * last (from AGE_AHEAD on; 0 is the next one), how far before it (from AGE_BACK on; 0 is the one before), or its age
 * (from AGE_NEAR on; 0 is the newest). AGE_FAR: its age is in a column of its own.
 */
enum { AGE_AHEAD = 0, AGE_BACK = 16, AGE_NEAR = 32, AGE_FAR = 255 };

/* Before anything was freed, and again behind each check-point, the allocation freed last is the one
 * before number 0. */
#define NUMBER_NONE UINT64_MAX

enum chunk_packing { CHUNK_PLAIN, CHUNK_ZSTD };

struct chunk_head {
	uint64_t time_ms;
	uint32_t type; /* enum chunk_type, or one that is not known */
	enum chunk_packing packing;
	uint32_t bytes, unpacked_bytes;
	uint32_t crc; /* of the payload as it stands */
};

void file_head_put(unsigned char to[FILE_HEAD_BYTES]);
/* 0, -ERR_NOT_RECORDING, -ERR_VERSION. */
int file_head_check(const unsigned char from[FILE_HEAD_BYTES]);

/* The end of the file tells where the index is. */
void file_trailer_put(unsigned char to[FILE_TRAILER_BYTES], uint64_t index_offset);
bool file_trailer_take(const unsigned char from[FILE_TRAILER_BYTES], uint64_t *index_offset);

void chunk_head_put(unsigned char to[CHUNK_HEAD_BYTES], const struct chunk_head *head);
/* False when it is none. */
bool chunk_head_take(const unsigned char from[CHUNK_HEAD_BYTES], struct chunk_head *head);

/* Whether it is packed as it may be: lists, of modules or the like, not so that little in the file becomes much in
 * memory. */
bool chunk_is_fit(const struct chunk_head *head);

uint32_t chunk_crc(const void *bytes, size_t len);

void varint_put(struct buf *to, uint64_t value);

/* A column of numbers: a byte, how many bytes the largest of them has (0: all are 0), then the lowest bytes of all,
 * the next ones, and so on. */
void column_put(struct buf *to, const uint64_t *values, size_t count);

/*
 * Reading of a payload. The first thing that is wrong ends it: at is then NULL, and whatever is taken is 0.
 */

struct payload {
	const unsigned char *at, *end;
};

uint64_t varint_take(struct payload *from);
/* The same for what is at most max. */
uint64_t varint_take_upto(struct payload *from, uint64_t max);
/* Of bytes without a NUL, at most max: where they are. */
const char *payload_text(struct payload *from, size_t max, size_t *len);

struct column {
	const unsigned char *bytes; /* where it lies */
	size_t count;
	unsigned width; /* bytes of a number, 0 to 8 */
};

struct column column_take(struct payload *from, size_t count);

static inline uint64_t column_get(const struct column *column, size_t at)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < column->width; i++)
		value |= (uint64_t)column->bytes[i * column->count + at] << 8 * i;
	return value;
}

/* Chunks of a file, one at a time. */
struct chunk_reader {
	struct os_file *file; /* borrowed */
	uint64_t file_bytes;
	struct ZSTD_DCtx_s *zstd; /* NULL: not needed yet */
	struct buf packed, unpacked;
};

void chunk_reader_init(struct chunk_reader *reader, struct os_file *file, uint64_t file_bytes);
void chunk_reader_release(struct chunk_reader *reader);

/* Reads the head at offset, whose payload lies in the file: 0, -ERR_BAD_RECORDING, -ERR_READ. */
int chunk_read_head(struct chunk_reader *reader, uint64_t offset, struct chunk_head *head);

/* Reads the payload of the chunk at offset, valid until the next is read. The same. */
int chunk_read(struct chunk_reader *reader, uint64_t offset, const struct chunk_head *head,
	struct payload *payload);

#endif
