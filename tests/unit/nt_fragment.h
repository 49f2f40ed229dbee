/*
 * What a real minidump without full memory holds of its process, as a made target: the ranges of its
 * memory list. The files lie beside the checkout, or not at all.
 */
#ifndef TESTS_UNIT_NT_FRAGMENT_H
#define TESTS_UNIT_NT_FRAGMENT_H

#include "tests/unit/fake_target.h"

#define FRAGMENT "../shared/data/dumps/syzygy_notepad-larger-32bit.dmp"
#define FRAGMENT_STREAM_MEMORY 5u

struct fragment {
	unsigned char *bytes;
	size_t len;
};

static inline uint64_t fragment_u(const struct fragment *file, size_t at, size_t len)
{
	uint64_t value = 0;

	assert_true(at <= file->len && file->len - at >= len);
	for (size_t i = 0; i < len; i++)
		value |= (uint64_t)file->bytes[at + i] << 8 * i;
	return value;
}

static inline void fragment_map_range(struct fake *fake, const struct fragment *file, size_t at)
{
	uint64_t addr = fragment_u(file, at, 8);
	size_t len = (size_t)fragment_u(file, at + 8, 4),
	       from = (size_t)fragment_u(file, at + 12, 4);
	struct fake_range *range;

	assert_true(from <= file->len && file->len - from >= len);
	if (!len)
		return;
	range = fake_map(fake, addr, len);
	memcpy(range->bytes, file->bytes + from, len);
}

/* Skips the test, with a word, when the file is not there. */
static inline void fragment_or_skip(void)
{
	FILE *from = fopen(FRAGMENT, "rb");

	if (!from) {
		print_message("skipped: no " FRAGMENT "\n");
		skip();
	}
	fclose(from);
}

static inline void fragment_map(struct fake *fake)
{
	static struct target_ops ops;
	struct fragment file = {0};
	FILE *from = fopen(FRAGMENT, "rb");
	size_t directory, list = 0;

	assert_non_null(from);
	ops = *fake->target.ops;
	ops.region = fake_region;
	fake->target.ops = &ops;
	file.bytes = malloc((size_t)1 << 24);
	assert_non_null(file.bytes);
	file.len = fread(file.bytes, 1, (size_t)1 << 24, from);
	fclose(from);
	assert_memory_equal(file.bytes, "MDMP", 4);
	directory = (size_t)fragment_u(&file, 12, 4);
	for (size_t i = 0; i < fragment_u(&file, 8, 4); i++)
		if (fragment_u(&file, directory + 12 * i, 4) == FRAGMENT_STREAM_MEMORY)
			list = (size_t)fragment_u(&file, directory + 12 * i + 8, 4);
	assert_true(list > 0);
	for (size_t i = 0; i < fragment_u(&file, list, 4); i++)
		fragment_map_range(fake, &file, list + 4 + 16 * i);
	free(file.bytes);
}

#endif
