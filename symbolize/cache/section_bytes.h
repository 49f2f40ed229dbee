/* How a section of the cache of names lies in its bytes: for section.c, which reads, and
 * section_build.c, which writes. The layout is told in section.h. */
#ifndef SYMBOLIZE_CACHE_SECTION_BYTES_H
#define SYMBOLIZE_CACHE_SECTION_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SECTION_MAGIC UINT32_C(0x736d6e68) /* "hnms" */
#define HEAD_CHECKED_BYTES 32 /* of the head; its own check follows */
#define SYMBOL_BYTES 20
#define NO_TEXT UINT32_MAX

static inline uint32_t le32(const unsigned char *bytes)
{
	return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

static inline uint64_t le64(const unsigned char *bytes)
{
	return le32(bytes) | (uint64_t)le32(bytes + 4) << 32;
}

static inline void put_le32(unsigned char *bytes, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		bytes[i] = (unsigned char)(value >> (8 * i));
}

static inline void put_le64(unsigned char *bytes, uint64_t value)
{
	put_le32(bytes, (uint32_t)value);
	put_le32(bytes + 4, (uint32_t)(value >> 32));
}

/* A step is one to one in either number while the other stays: a change within one word changes the
 * result for certain. Against accidents, not against people. */
static inline uint64_t check_step(uint64_t sum, uint64_t word)
{
	sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return sum << 29 | sum >> 35;
}

static inline uint64_t check_of(const unsigned char *bytes, size_t len)
{
	uint64_t sum = check_step(len, 1);
	unsigned char last[8] = {0};

	for (; len >= 8; bytes += 8, len -= 8)
		sum = check_step(sum, le64(bytes));
	if (len)
		memcpy(last, bytes, len);
	return check_step(sum, le64(last));
}

#endif
