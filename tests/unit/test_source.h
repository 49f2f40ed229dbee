/* For the tests of core/source: a file in some packing, read to its end. */
#ifndef TESTS_UNIT_TEST_SOURCE_H
#define TESTS_UNIT_TEST_SOURCE_H

#include "tests/unit/scratch.h"

#include <zlib.h>

#include "core/base/memory.h"
#include "core/dump/dump.h"
#include "core/dump/source.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static char path[340];

/* Reads the file to its end, step bytes at once; the caller releases text. */
static inline int read_all(struct buf *text, size_t step, struct err *err)
{
	char *part = malloc(step);
	struct source *source;
	int64_t got = source_open(&source, path, err);

	buf_init(text);
	assert_int_equal(got, 0);
	assert_non_null(part);
	while ((got = source_read(source, part, step, err)) > 0) {
		assert_true((size_t)got <= step);
		buf_add(text, part, (size_t)got);
	}
	/* it stays the end, or the error */
	assert_int_equal(source_read(source, part, step, NULL), got);
	source_close(source);
	free(part);
	return (int)got;
}

/* The file reads as text in any steps, and then rc comes. */
static inline void expect_text(const char *text, size_t len, int rc)
{
	static const size_t steps[] = {1, 7, 4095, 4096, 1 << 20};

	for (size_t i = 0; i < COUNT(steps); i++) {
		struct err err = {0};
		struct buf got;

		assert_int_equal(read_all(&got, steps[i], &err), rc);
		assert_int_equal(err.code, -rc);
		if (rc)
			assert_string_equal(err.place, path);
		assert_int_equal(got.len, len);
		if (len)
			assert_memory_equal(got.data, text, len);
		buf_release(&got);
	}
}

/* Appends a gzip member. */
static inline void pack(struct buf *packed, const char *text, size_t len)
{
	z_stream stream = {0};
	size_t bound;

	assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	bound = deflateBound(&stream, len) + 64;
	buf_reserve(packed, bound);
	stream.next_in = (unsigned char *)(uintptr_t)text;
	stream.avail_in = (uInt)len;
	stream.next_out = (unsigned char *)packed->data + packed->len;
	stream.avail_out = (uInt)bound;
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	packed->len += stream.total_out;
	deflateEnd(&stream);
}

/* Numbers, one a line, from a seed: text that does not shrink to nothing. */
static inline char *some_text(size_t len)
{
	char *text = malloc(len + 16);
	uint32_t seed = 1;

	assert_non_null(text);
	for (size_t at = 0; at < len; at += strlen(text + at)) {
		seed = seed * 1103515245 + 12345;
		snprintf(text + at, 16, "%x\n", seed >> 8);
	}
	return text;
}

#endif
