/*
 * The elements of a recording (chunks, varints, columns), for the writer and the readers of a file.
 * man/hrec.5 is the specification. Numbers in heads are little-endian. A varint has 7 bits per
 * byte, lowest bits first.
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

/* Limits of a recording. They limit how much memory a file can make its reader allocate. */
#define RECORD_MODULES_MAX ((size_t)1 << 20)
#define RECORD_HEAPS_MAX ((size_t)1 << 20)
#define RECORD_THREADS_MAX ((size_t)1 << 22)
#define RECORD_STACKS_MAX ((size_t)1 << 24)
#define RECORD_ALL_FRAMES_MAX ((size_t)1 << 26)
#define RECORD_KINDS_MAX ((size_t)1 << 22)
#define RECORD_MARKS_MAX ((size_t)1 << 20)
#define RECORD_LOADS_MAX ((size_t)1 << 22)
#define RECORD_REMARKS_MAX ((size_t)1000)
#define RECORD_THREAD_NAMES_MAX ((size_t)1 << 16) /* a thread may have several, one after another */
/* total bytes of the strings of all modules and marks */
#define RECORD_ALL_TEXTS_MAX ((size_t)256 << 20)

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
	CHUNK_THREAD_STACKS,
	CHUNK_THREAD_NAME,
};

enum { MODULE_HAS_IDENTITY = 1, MODULE_HAS_PDB = 2, MODULE_HAS_GUID = 4 }; /* module flags */
enum { MARK_LABEL, MARK_START }; /* mark types */

/* A free contains one byte that identifies the freed allocation. `last` is the number of the
 * previously freed allocation of that kind.
 *   AGE_AHEAD + n: number last + 1 + n
 *   AGE_BACK + n: number last - 1 - n
 *   AGE_NEAR + n: age n; the kind's newest allocation has age 0
 *   AGE_FAR: the age is in a separate column */
enum { AGE_AHEAD = 0, AGE_BACK = 16, AGE_NEAR = 32, AGE_FAR = 255 };

/* Value of `last` at the start and after each check-point. Adding 1 gives 0, so AGE_AHEAD + 0 means
 * number 0. */
#define NUMBER_NONE UINT64_MAX

enum chunk_packing { CHUNK_PLAIN, CHUNK_ZSTD };

struct chunk_head {
	uint64_t time_ms;
	uint32_t type; /* enum chunk_type, or an unknown type */
	enum chunk_packing packing;
	uint32_t bytes, unpacked_bytes;
	uint32_t crc; /* checksum of the payload as stored */
};

void file_head_write(unsigned char to[FILE_HEAD_BYTES]);
/* Returns 0, -ERR_NOT_RECORDING or -ERR_VERSION. */
int file_head_check(const unsigned char from[FILE_HEAD_BYTES]);

/* Write and read the trailer, which ends the file and contains the offset of the index. */
void file_trailer_write(unsigned char to[FILE_TRAILER_BYTES], uint64_t index_offset);
bool file_trailer_parse(const unsigned char from[FILE_TRAILER_BYTES], uint64_t *index_offset);

void chunk_head_write(unsigned char to[CHUNK_HEAD_BYTES], const struct chunk_head *head);

/* Returns true if the compression ratio of a list (of modules and so on) is plausible. Readers
 * refuse other lists, because a small file could make them allocate a lot of memory. */
bool chunk_is_fit(const struct chunk_head *head);

uint32_t chunk_crc(const void *bytes, size_t len);

void varint_write(struct buf *to, uint64_t value);

/* Encodes a column of numbers. The first byte is the width in bytes of the largest number (0 if all
 * are 0). The lowest bytes of all numbers follow, then their second bytes, and so on. */
void column_write(struct buf *to, const uint64_t *values, size_t count);

/*
 * A payload that is being read. The first error sets payload.at to NULL; after that, all reads
 * return 0.
 */

struct payload {
	const unsigned char *at, *end;
};

uint64_t varint_parse(struct payload *from);
/* Reads a varint no greater than `max`. */
uint64_t varint_parse_upto(struct payload *from, uint64_t max);
/* Returns the start of a string of at most `max` bytes that contains no NUL. */
const char *payload_text(struct payload *from, size_t max, size_t *len);

struct column {
	const unsigned char *bytes; /* points into the payload */
	size_t count;
	unsigned width; /* bytes per number, 0 to 8 */
};

struct column column_parse(struct payload *from, size_t count);

static inline uint64_t column_get(const struct column *column, size_t at)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < column->width; i++)
		value |= (uint64_t)column->bytes[i * column->count + at] << 8 * i;
	return value;
}

/* Reads the chunks of a file, one at a time. */
struct chunk_reader {
	struct os_file *file; /* owned by the caller */
	uint64_t file_bytes;
	struct ZSTD_DCtx_s *zstd; /* NULL until it is needed */
	struct buf packed, unpacked;
};

void chunk_reader_init(struct chunk_reader *reader, struct os_file *file, uint64_t file_bytes);
void chunk_reader_release(struct chunk_reader *reader);

/* Reads the head of the chunk at offset; the chunk's payload must lie within the file. Returns 0,
 * -ERR_BAD_RECORDING or -ERR_READ. */
int chunk_read_head(struct chunk_reader *reader, uint64_t offset, struct chunk_head *head);

/* Reads the payload of the chunk at offset; the payload is valid until the next read. Returns the
 * same values as chunk_read_head(). */
int chunk_read(struct chunk_reader *reader, uint64_t offset, const struct chunk_head *head,
	struct payload *payload);

#endif
