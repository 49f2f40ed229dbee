#include "tests/unit/t.h"

#include "tests/unit/fake_target.h"

#include "snapshot/target/target_memory.h"

#define PIECE ((uint64_t)MEMORY_PIECE_BYTES)
#define BASE ((uint64_t)0x7ff600000000)

static struct {
	struct target_ops ops;
	struct memory memory;
} scene;

/* Number of the fake's first ranges that are unreadable. */
static unsigned unreadable;

static int region(struct target *target, uint64_t addr, struct target_region *region)
{
	int rc = fake_region(target, addr, region);

	if (!rc && fake_range_at(region->addr) <= &fake.ranges[unreadable])
		region->access = TARGET_EXECUTE;
	return rc;
}

static unsigned views; /* number of requests */

static const unsigned char *view(struct target *target, uint64_t addr, size_t *len)
{
	const struct fake_range *range = fake_range_at(addr);

	(void)target;
	views++;
	if (!range)
		return NULL;
	*len = range->len - (size_t)(addr - range->addr);
	return range->bytes + (addr - range->addr);
}

static int close_scene(void **state)
{
	(void)state;
	memory_release(&scene.memory);
	fake_release();
	return 0;
}

/* Replaces the open scene. The last scene is closed after the test. */
static void open_scene(bool knows_regions, bool is_mapped)
{
	close_scene(NULL);
	unreadable = 0; /* fake_init() maps the PEB first */
	fake_init();
	scene.ops = *fake.target.ops;
	scene.ops.region = knows_regions ? region : NULL;
	scene.ops.view = is_mapped ? view : NULL;
	fake.target.ops = &scene.ops;
	assert_int_equal(memory_init(&scene.memory, &fake.target), 0);
}

#undef TEST_AROUND
#define TEST_AROUND NULL, close_scene

static unsigned char byte_at(uint64_t addr)
{
	return (unsigned char)(addr * 0x9e3779b97f4a7c15u >> 56);
}

static void map(uint64_t addr, size_t len)
{
	const struct fake_range *range = fake_map(addr, len);

	for (size_t i = 0; i < len; i++)
		range->bytes[i] = byte_at(addr + i);
}

static void assert_bytes(const unsigned char *bytes, uint64_t addr, size_t len)
{
	assert_non_null(bytes);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(bytes[i], byte_at(addr + i));
}

TEST(bytes_are_those_at_address_however_they_are_cut)
{
	for (unsigned kind = 0; kind < 4; kind++) {
		uint64_t seed = 7 + kind;

		open_scene(kind & 1, kind & 2);
		map(BASE + 0x3000, 0x5000);
		map(BASE + 0x8000, 3 * PIECE);
		for (unsigned i = 0; i < 2000; i++) {
			size_t len = 1 + fake_random(&seed) % (i % 100 ? 64 : MEMORY_AT_MAX);
			uint64_t addr =
				BASE + 0x3000 + fake_random(&seed) % (0x5000 + 3 * PIECE - len + 1);

			assert_bytes(memory_at(&scene.memory, addr, len), addr, len);
		}
	}
}

TEST(what_is_not_there_is_not_given)
{
	for (unsigned kind = 0; kind < 4; kind++) {
		uint64_t value = 77;
		size_t len;

		open_scene(kind & 1, kind & 2);
		map(BASE, 0x1000);
		map(BASE + 0x3000, 0x1000);
		assert_null(memory_at(&scene.memory, BASE - 1, 1));
		assert_null(memory_at(&scene.memory, BASE - 1, 2));
		assert_null(memory_at(&scene.memory, BASE + 0xfff, 2));
		assert_null(memory_at(&scene.memory, BASE + 0x1000, 1));
		assert_null(memory_from(&scene.memory, BASE + 0x2fff, &len));
		assert_null(memory_at(&scene.memory, UINT64_MAX, 1));
		assert_null(memory_at(&scene.memory, UINT64_MAX - 2, 8));
		assert_int_equal(memory_u64(&scene.memory, BASE + 0xff9, &value), -ERR_READ);
		assert_int_equal(value, 77);
		/* Mapped memory is still found afterwards. */
		assert_bytes(memory_at(&scene.memory, BASE + 0xff8, 8), BASE + 0xff8, 8);
		assert_bytes(memory_at(&scene.memory, BASE + 0x3000, 8), BASE + 0x3000, 8);
		assert_bytes(memory_from(&scene.memory, BASE + 0x3ffe, &len), BASE + 0x3ffe, 2);
		assert_int_equal(len, 2);
	}
}

TEST(memory_that_may_not_be_read_is_not_read)
{
	uint64_t reads;

	open_scene(true, false);
	map(BASE, 0x1000);
	unreadable = 1;
	reads = fake.reads;
	assert_null(memory_at(&scene.memory, BASE, 4));
	assert_int_equal(fake.reads, reads);
}

TEST(walk_upwards_costs_one_read_piece)
{
	open_scene(true, false);
	map(BASE, 8 * PIECE);
	for (uint64_t at = 0; at + 16 <= 8 * PIECE; at += 24)
		assert_bytes(memory_at(&scene.memory, BASE + at, 16), BASE + at, 16);
	assert_int_equal(fake.reads, 8);
	for (uint64_t at = 0; at < 8 * PIECE; at += PIECE / 2)
		assert_bytes(memory_at(&scene.memory, BASE + at, 16), BASE + at, 16);
	assert_int_equal(fake.reads, 8); /* everything is still cached */
}

TEST(what_was_cleared_is_read_again)
{
	open_scene(true, false);
	map(BASE, 0x1000);
	assert_bytes(memory_at(&scene.memory, BASE, 16), BASE, 16);
	fake_write(BASE, 0x1122334455667788, 8);
	memory_clear(&scene.memory);
	assert_int_equal(bytes_u64(memory_at(&scene.memory, BASE, 8)), 0x1122334455667788);
}

TEST(numbers_are_little_endian_and_as_wide_as_process)
{
	uint64_t wide = 0;
	uint32_t word = 0;
	uint16_t half = 0;
	uint8_t byte = 0;

	open_scene(false, false);
	fake_map(BASE, 0x1000);
	fake_write(BASE, 0x8899aabbccddeeff, 8);
	assert_int_equal(memory_u8(&scene.memory, BASE + 7, &byte), 0);
	assert_int_equal(byte, 0x88);
	assert_int_equal(memory_u16(&scene.memory, BASE, &half), 0);
	assert_int_equal(half, 0xeeff);
	assert_int_equal(memory_u32(&scene.memory, BASE + 4, &word), 0);
	assert_int_equal(word, 0x8899aabb);
	assert_int_equal(memory_ptr(&scene.memory, 32, BASE, &wide), 0);
	assert_int_equal(wide, 0xccddeeff);
	assert_int_equal(memory_ptr(&scene.memory, 64, BASE, &wide), 0);
	assert_int_equal(wide, 0x8899aabbccddeeff);
}

TEST(large_copies_go_over_any_number_of_pieces)
{
	size_t len = 3 * MEMORY_PIECE_BYTES;
	unsigned char *bytes = malloc(len);

	assert_non_null(bytes);
	open_scene(true, false);
	map(BASE + 0x1000, len);
	assert_int_equal(memory_copy(&scene.memory, BASE + 0x1000, bytes, len), 0);
	assert_bytes(bytes, BASE + 0x1000, len);
	assert_int_equal(memory_copy(&scene.memory, BASE + 0x1001, bytes, len), -ERR_READ);
	free(bytes);
}

TEST(committed_bytes_are_counted_over_all_regions)
{
	open_scene(true, false);
	map(BASE, 0x1000);
	map(BASE + 0x1000, 0x3000);
	map(BASE + 0x10000, 0x2000);
	/* The PEB's page is included. */
	assert_int_equal(target_committed_bytes(&fake.target), 0x7000);
	open_scene(false, false);
	assert_int_equal(target_committed_bytes(&fake.target), TARGET_SPACE_BYTES);
}

TEST(going_to_and_fro_in_mapped_file_costs_two_looks)
{
	open_scene(false, true);
	map(BASE, 0x20000);
	map(BASE + PIECE, 0x20000);
	views = 0;
	for (uint64_t i = 0; i < 1000; i++) {
		uint64_t back = BASE + 0xff00 - i * 16, forth = BASE + PIECE + i * 16;

		assert_bytes(memory_at(&scene.memory, back, 16), back, 16);
		assert_bytes(memory_at(&scene.memory, forth, 16), forth, 16);
	}
	assert_int_equal(views, 2);
	assert_null(memory_at(&scene.memory, BASE - 1, 1));
	assert_null(memory_at(&scene.memory, BASE + 0x20000, 1));
}
