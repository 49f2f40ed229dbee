#include "tests/unit/t.h"

#include "snapshot/target/target.h"

#define PAGE 4096
#define MIB ((uint64_t)1 << 20)

/* Memory whose bytes depend on their addresses. Pages whose number ends in 7 are unreadable. */
static const struct target_region regions[] = {
	{0x10000, 0x20000, TARGET_READ | TARGET_WRITE, false, false},
	{0x20000, 0x28000, TARGET_READ, true, false}, /* constants of a module: not copied */
	{0x28000, 0x30000, TARGET_READ, false, true}, /* a file mapped read-only: not copied */
	{0x30000, 0x31000, 0, false, false}, /* a guard page */
	{0x40000, 0x44000, TARGET_READ | TARGET_WRITE, true, false},
	{16 * MIB - PAGE, 19 * MIB, TARGET_READ, false, false},
};

static unsigned char byte_at(uint64_t addr)
{
	return (unsigned char)(addr ^ addr >> 8 ^ addr >> 16);
}

static bool is_there(uint64_t addr)
{
	for (size_t i = 0; i < sizeof(regions) / sizeof(*regions); i++) {
		if (addr >= regions[i].addr && addr < regions[i].end)
			return regions[i].access && (addr / PAGE) % 16 != 7;
	}
	return false;
}

static int made_read(struct target *target, uint64_t addr, void *bytes, size_t len)
{
	(void)target;
	for (size_t i = 0; i < len; i++) {
		if (!is_there(addr + i))
			return -ERR_READ;
		((unsigned char *)bytes)[i] = byte_at(addr + i);
	}
	return 0;
}

static int made_region(struct target *target, uint64_t addr, struct target_region *region)
{
	(void)target;
	for (size_t i = 0; i < sizeof(regions) / sizeof(*regions); i++) {
		*region = regions[i];
		if (addr < region->end)
			return 0;
	}
	return -ERR_READ;
}

static int made_threads(struct target *target,
	int (*each)(void *ctx, const struct target_thread *thread), void *ctx, struct err *err)
{
	unsigned char context[16] = "registers";
	struct target_thread known = {context, sizeof(context), 0x40000, 0x10800};
	struct target_thread unknown = {NULL, 0, 0, 0};
	int rc = each(ctx, &known);

	(void)target;
	(void)err;
	memset(context, 0, sizeof(context));
	return rc ? rc : each(ctx, &unknown);
}

static const struct target_ops ops = {
	.read = made_read, .slow_region = made_region, .threads = made_threads};
static struct target made = {.ops = &ops, .bits = 64, .name = "pid 1"};

TEST(copies_what_is_there)
{
	struct target *copy = target_copy(&made, NULL, 0, 64 * MIB);
	static const uint64_t starts[] = {0x10000, 0x20000, 0x30000, 0x40000, 16 * MIB - 2 * PAGE};

	assert_non_null(copy);
	assert_int_equal(copy->bits, 64);
	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		for (uint64_t at = starts[i]; at < starts[i] + 3 * MIB + 2 * PAGE; at += PAGE / 2) {
			bool is_left_out = at >= 0x20000 && at < 0x30000;
			unsigned char bytes[PAGE];
			uint64_t end = at + sizeof(bytes) - 1;
			bool is_known = is_there(at) && is_there(end) && !is_left_out &&
					!(end >= 0x20000 && end < 0x30000);

			assert_int_equal(!target_read(copy, at, bytes, sizeof(bytes)), is_known);
			for (size_t k = 0; is_known && k < sizeof(bytes); k++)
				assert_int_equal(bytes[k], byte_at(at + k));
		}
	}
	target_copy_free(copy);
}

static int see_thread(void *ctx, const struct target_thread *thread)
{
	unsigned *count = ctx;

	if (!(*count)++) {
		assert_int_equal(thread->context_bytes, 16);
		assert_string_equal((const char *)thread->context, "registers");
		assert_int_equal(thread->teb, 0x40000);
		assert_int_equal(thread->sp, 0x10800);
	} else {
		assert_int_equal(thread->context_bytes, 0);
	}
	return 0;
}

TEST(has_threads_and_regions)
{
	struct target *copy = target_copy(&made, NULL, 0, 64 * MIB);
	struct target_region region;
	unsigned count = 0;

	assert_int_equal(copy->ops->threads(copy, see_thread, &count, NULL), 0);
	assert_int_equal(count, 2);
	assert_int_equal(copy->ops->region(copy, 0, &region), 0);
	assert_int_equal(region.addr, 0x10000);
	assert_int_equal(copy->ops->region(copy, 0x20000, &region), 0);
	assert_int_equal(region.addr, 0x40000);
	assert_true(region.is_image);
	assert_int_equal(copy->ops->region(copy, 19 * MIB, &region), -ERR_READ);
	copy->ops->close(copy);
}

/* Copied bytes: 0x10000, 0x4000, 3 MiB and a page. */
TEST(has_limit)
{
	const uint64_t bytes = 0x14000 + 3 * MIB + PAGE;
	struct target *copy = target_copy(&made, NULL, 0, bytes);
	struct target none = made;
	static const struct target_ops blind = {.read = made_read};

	assert_non_null(copy);
	target_copy_free(copy);
	assert_null(target_copy(&made, NULL, 0, bytes - 1));
	none.ops = &blind;
	assert_null(target_copy(&none, NULL, 0, 64 * MIB));
	target_copy_free(NULL);
}

/* An excluded range may end at a region's end, within a region, or beyond all regions. */
TEST(leaves_out_what_is_not_wanted)
{
	static const struct target_range except[] = {{0x11000, 0x12000}, {5, 5}, {0x13000, 0x14000},
		{0x3f000, 0x41000}, {17 * MIB, 30 * MIB}};
	const uint64_t bytes = 0x14000 + 3 * MIB + PAGE - 0x3000 - 2 * MIB;
	struct target *copy = target_copy(&made, except, 5, bytes);
	unsigned char byte;

	assert_null(target_copy(&made, except, 5, bytes - 1));
	assert_non_null(copy);
	for (size_t i = 0; i < 5; i++) {
		bool is_empty = except[i].from == except[i].end;

		assert_int_equal(!target_read(copy, except[i].from - 1, &byte, 1),
			is_there(except[i].from - 1));
		assert_int_equal(target_read(copy, except[i].from, &byte, 1), -ERR_READ);
		assert_int_equal(target_read(copy, except[i].end - 1, &byte, 1), -ERR_READ);
		assert_int_equal(!target_read(copy, except[i].end, &byte, 1),
			!is_empty && is_there(except[i].end));
	}
	target_copy_free(copy);
}
