/* The walker of Wine's heaps: nothing that a process holds makes it crash, hang or grow. */
#include "tests/unit/t.h"

#include "tests/unit/fake_heaps.h"

#define ENDLESS 0x100000000000u

/* ---------------------------------------------------------------- hostile processes */

/* Many subheaps that share the blocks behind them: each but one is wrong. */
TEST(blocks_that_many_subheaps_claim_are_found_once)
{
	const unsigned headers = 200, blocks = 4000;
	struct image *image = image_new(9);
	struct fake *fake = &image->fake;
	uint64_t base = 0x5000000, data = base + headers * (uint64_t)SUBHEAP_DATA - 8;
	size_t before = image->truth.block_count;

	fake_map(fake, base, (headers * SUBHEAP_DATA + blocks * 16 + 0xfff) & ~(size_t)0xfff)
		->needs_hold = true;
	for (unsigned i = 0; i < headers; i++) {
		uint64_t part = base + i * (uint64_t)SUBHEAP_DATA;
		uint64_t first = part + SUBHEAP_FIRST_BLOCK, bytes = data + blocks * 16 + 8 - first;

		fake_put(fake, part + SUBHEAP_BLOCK_SIZE, bytes, 8);
		fake_put(fake, part + SUBHEAP_DATA_SIZE, bytes - 8, 8);
		fake_put(fake, part + SUBHEAP_HEAP, HEAP_B, 8);
		fake_put(fake, first, (data - first) / 16, 2);
		fake_put(fake, first + 2, FLAG_FREE, 1);
		fake_put(fake, first + 6, TYPE_FREE, 2);
		if (i == headers - 1)
			break; /* its first block is one of those that are shared */
		fake_list_add(fake, HEAP_B + HEAP_SUBHEAPS, part + SUBHEAP_LINKS);
	}
	for (unsigned i = 0; i < blocks; i++)
		fake_put(fake, data + i * 16, (uint64_t)TYPE_USED << 48 | 1, 8);
	image_walk(image);
	assert_int_equal(image->walk.block_count, before + blocks);
	assert_int_equal(image->walk.broken_count, headers - 2);
	image_free(image);
}

/* Large blocks without end, each well linked to the next. */
static bool endless_large(struct fake *fake, uint64_t addr, unsigned char *bytes, size_t len)
{
	struct fake made = {.range_count = 1};
	unsigned char block[0x40] = {0};
	uint64_t base = addr & ~(uint64_t)0x3f, links = base + LARGE_LINKS;

	(void)fake;
	if (addr < ENDLESS || addr - base + len > sizeof(block))
		return false;
	made.ranges[0] = (struct fake_range){.addr = base, .len = sizeof(block), .bytes = block};
	fake_put(&made, links, links + 0x40, 8);
	fake_put(&made, links + 8, base == ENDLESS ? HEAP_B + HEAP_LARGES : links - 0x40, 8);
	fake_put(&made, base + LARGE_DATA_SIZE, 0x1000, 8);
	fake_put(&made, base + LARGE_BLOCK_SIZE, 0x2000, 8);
	fake_put(&made, base + LARGE_BLOCK + 6, TYPE_LARGE, 2);
	memcpy(bytes, block + (addr - base), len);
	return true;
}

TEST(a_list_without_end_is_left_after_a_million_reads)
{
	struct image *image = image_new(10);

	image->fake.made_up = endless_large;
	fake_put(&image->fake, HEAP_B + HEAP_LARGES, ENDLESS + LARGE_LINKS, 8);
	image_walk(image);
	assert_int_equal(image->walk.broken_count, 1);
	assert_true(image->fake.reads < 1100000);
	assert_int_equal(image->walk.heap_count, 3);
	image_free(image);
}

/* Claims more than an address space can hold, a little at a time. */
TEST(heaps_cannot_hold_more_than_an_address_space)
{
	struct image *image = image_new(11);

	for (unsigned i = 0; i < EACH_LARGE; i++)
		fake_put(&image->fake, LARGE_A + i * LARGE_STEP + LARGE_BLOCK_SIZE, 1ull << 46, 8);
	image_walk(image);
	assert_true(image->walk.broken_count > 0);
	assert_true(image->walk.heaps[0].committed_bytes < 1ull << 47);
	image_free(image);
}

/* ---------------------------------------------------------------- fuzz */

#define PARTS (6 + 2 * EACH_LARGE) /* ranges behind the PEB's: heaps, subheaps, large blocks */

static const uint64_t links[] = {HEAP_A + HEAP_RING, HEAP_B + HEAP_RING, HEAP_C + HEAP_RING,
	HEAP_A + HEAP_SUBHEAPS, HEAP_A + HEAP_FIRST_SUBHEAP + SUBHEAP_LINKS, SUB_A1 + SUBHEAP_LINKS,
	SUB_A2 + SUBHEAP_LINKS, SUB_B1 + SUBHEAP_LINKS, HEAP_B + HEAP_LARGES, LARGE_A + LARGE_LINKS,
	LARGE_B + LARGE_LINKS, LARGE_B + LARGE_STEP + LARGE_LINKS};

struct flip {
	unsigned char *at, bytes[8];
};

/* Some bytes of the image, more often of the structures at the beginning of a range. */
static struct flip flip(struct image *image, uint64_t *seed)
{
	uint64_t dice = fake_random(seed);
	struct fake_range *range = &image->fake.ranges[1 + dice % PARTS];
	size_t span = dice >> 8 & 1 ? 0xe8 : dice >> 9 & 1 ? 0x400 : range->len;
	size_t offset = fake_random(seed) % (span - 8);
	struct flip flipped = {.at = range->bytes + offset};

	memcpy(flipped.bytes, flipped.at, 8);
	if (dice >> 10 & 1) { /* a link of one list where another should be */
		uint64_t wrong = links[(dice >> 16) % (sizeof(links) / sizeof(*links))];

		flipped.at -= offset & 7;
		memcpy(flipped.bytes, flipped.at, 8);
		for (unsigned i = 0; i < 8; i++)
			flipped.at[i] = (unsigned char)(wrong >> 8 * i);
	} else {
		flipped.at[0] ^= (unsigned char)(dice >> 24 | 1);
	}
	return flipped;
}

static void assert_bounded(const struct image *image)
{
	assert_true(image->fake.reads < 200);
	/* What cannot be read as a whole is read once more, page by page. */
	assert_true(image->fake.got_bytes <= 2 * image->mapped_bytes + 200 * 0x100);
	assert_true(image->walk.heap_count <= 3);
	assert_true(image->walk.block_count <= image->mapped_bytes / 16);
	for (size_t i = 0; i < image->walk.heap_count; i++)
		assert_true(image->walk.heaps[i].committed_bytes < 1ull << 47);
}

TEST(no_damage_makes_it_hang_crash_or_read_on_and_on)
{
	struct image *image = image_new(12);
	uint64_t seed = 20240607;

	assert_int_equal(image->fake.range_count, 1 + PARTS);
	for (unsigned round = 0; round < 20000; round++) {
		struct flip flips[8];
		unsigned count = 1 + fake_random(&seed) % 8;

		for (unsigned i = 0; i < count; i++)
			flips[i] = flip(image, &seed);
		image->fake.reads = image->fake.got_bytes = 0;
		image_walk(image);
		assert_bounded(image);
		while (count--)
			memcpy(flips[count].at, flips[count].bytes, 8);
	}
	image_walk(image);
	assert_broken(image, 0, 0);
	assert_blocks(image);
	image_free(image);
}
