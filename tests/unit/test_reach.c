#include "tests/unit/t.h"

#include "snapshot/reach/reach.h"

#define BLOCKS 60
#define WORDS_MAX 6
#define AT UINT64_C(0x20000000000)
#define ROOTS UINT64_C(0x10000)
#define ROOT_WORDS 8

/* A process: its blocks, their words, and words outside blocks. */
static struct scene {
	unsigned word_bytes;
	bool by_middle;
	size_t count;
	struct {
		uint64_t addr, bytes;
		uint64_t words[WORDS_MAX];
	} blocks[BLOCKS];
	/* Between: lies between two blocks, so it is not a root. */
	uint64_t roots[ROOT_WORDS], between;
} scene;

static bool links[BLOCKS][BLOCKS], leads[BLOCKS][BLOCKS];
static bool held[BLOCKS], by_start[BLOCKS];
static uint64_t seed = 1;

static uint64_t next(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 11) % below;
}

static size_t words_of(size_t block)
{
	return scene.blocks[block].bytes / scene.word_bytes;
}

static void put(unsigned char *to, uint64_t word)
{
	for (unsigned i = 0; i < scene.word_bytes; i++)
		to[i] = (unsigned char)(word >> 8 * i);
}

/* The naive search: every word against every block. */
static int block_at(uint64_t word)
{
	for (size_t i = 0; i < scene.count; i++) {
		uint64_t bytes = scene.blocks[i].bytes ? scene.blocks[i].bytes : 1;

		if (word >= scene.blocks[i].addr && word - scene.blocks[i].addr < bytes &&
			(scene.by_middle || word == scene.blocks[i].addr))
			return (int)i;
	}
	return -1;
}

static void hold(size_t i)
{
	if (held[i])
		return;
	held[i] = true;
	for (size_t k = 0; k < scene.count; k++) {
		if (links[i][k])
			hold(k);
	}
}

static void search(void)
{
	memset(links, 0, sizeof(links));
	memset(held, 0, sizeof(held));
	memset(by_start, 0, sizeof(by_start));
	for (size_t i = 0; i < scene.count; i++) {
		for (size_t w = 0; w < words_of(i); w++) {
			int to = block_at(scene.blocks[i].words[w]);

			if (to >= 0 && (size_t)to != i)
				links[i][to] = true;
		}
	}
	for (size_t w = 0; w < ROOT_WORDS; w++) {
		int to = block_at(scene.roots[w]);

		if (to >= 0)
			hold((size_t)to);
		if (to >= 0 && scene.roots[w] == scene.blocks[to].addr)
			by_start[to] = true;
	}
	for (size_t i = 0; i < scene.count; i++) {
		for (size_t w = 0; held[i] && w < words_of(i); w++) {
			int to = block_at(scene.blocks[i].words[w]);

			if (to >= 0 && (size_t)to != i &&
				scene.blocks[i].words[w] == scene.blocks[to].addr)
				by_start[to] = true;
		}
	}
	memcpy(leads, links, sizeof(leads));
	for (size_t k = 0; k < scene.count; k++) {
		for (size_t i = 0; i < scene.count; i++) {
			for (size_t j = 0; j < scene.count; j++)
				leads[i][j] |= leads[i][k] && leads[k][j];
		}
	}
}

/* Returns true if the lost block must be reported: every block that leads to it is in the same
 * cycle and comes later. */
static bool is_first(size_t i)
{
	for (size_t k = 0; k < scene.count; k++) {
		if (k != i && !held[k] && leads[k][i] &&
			(!leads[i][k] || scene.blocks[k].addr < scene.blocks[i].addr))
			return false;
	}
	return true;
}

static size_t block_from(uint64_t addr)
{
	for (size_t i = 0; i < scene.count; i++) {
		if (scene.blocks[i].addr == addr)
			return i;
	}
	fail();
	return 0;
}

static void check(const struct reach *reach)
{
	search();
	for (size_t i = 0; i < scene.count; i++) {
		struct reach_found found = reach_of(reach, i);

		if (held[i]) {
			assert_int_equal(found.reach, by_start[i] ? BLOCK_HELD : BLOCK_INTERIOR);
		} else if (is_first(i)) {
			assert_int_equal(found.reach, BLOCK_LOST);
		} else {
			size_t with = block_from(found.with);

			assert_int_equal(found.reach, BLOCK_LOST_WITH);
			assert_true(!held[with] && is_first(with) && leads[with][i]);
		}
	}
}

static struct reach *take(void)
{
	struct reach *reach = reach_new(8 * scene.word_bytes, scene.by_middle, scene.count);
	unsigned char bytes[WORDS_MAX * 8];
	size_t order[BLOCKS];
	struct err err;

	for (size_t i = 0; i < scene.count; i++) {
		reach_add(reach, scene.blocks[i].addr, scene.blocks[i].bytes);
		order[i] = i;
	}
	reach_ready(reach);
	for (size_t i = 0; i < ROOT_WORDS / 2; i++) {
		put(bytes, scene.roots[i]);
		reach_show(reach, ROOTS + i * scene.word_bytes, bytes, scene.word_bytes, true);
	}
	for (size_t i = ROOT_WORDS / 2; i < ROOT_WORDS; i++)
		reach_root(reach, scene.roots[i]);
	for (size_t i = 1; i < scene.count; i++) { /* sorts by address */
		for (size_t k = i;
			k && scene.blocks[order[k]].addr < scene.blocks[order[k - 1]].addr; k--) {
			size_t other = order[k];

			order[k] = order[k - 1];
			order[k - 1] = other;
		}
	}
	for (size_t i = 0; i < scene.count; i++) {
		size_t block = order[i], words = words_of(block);

		for (size_t w = 0; w < words; w++)
			put(bytes + w * scene.word_bytes, scene.blocks[block].words[w]);
		reach_show(
			reach, scene.blocks[block].addr, bytes, words * scene.word_bytes, next(2));
		if (words * scene.word_bytes < sizeof(bytes)) { /* between blocks in a heap */
			put(bytes, scene.between);
			reach_show(reach, scene.blocks[block].addr + (words + 1) * scene.word_bytes,
				bytes, scene.word_bytes, false);
		}
	}
	assert_int_equal(reach_resolve(reach, "made", &err), 0);
	return reach;
}

static uint64_t some_word(void)
{
	size_t block = next(scene.count);

	switch (next(8)) {
	case 0: return next(1000000);
	case 1: return scene.blocks[block].addr - 1 - next(8);
	case 2: return scene.blocks[block].addr + scene.blocks[block].bytes;
	case 3:
	case 4: return scene.blocks[block].addr + next(scene.blocks[block].bytes + 1);
	default: return scene.blocks[block].addr;
	}
}

/* Makes blocks side by side or far apart, in any order. */
static void make(uint64_t gap)
{
	scene.word_bytes = next(3) ? 8 : 4;
	scene.by_middle = next(4);
	scene.count = 1 + next(BLOCKS);
	for (size_t i = 0; i < scene.count; i++) {
		uint64_t at = scene.word_bytes == 8 ? AT : 0x400000;

		scene.blocks[i].addr =
			at + i * ((WORDS_MAX + 2) * 8 + (scene.word_bytes == 8 ? gap : 0));
		scene.blocks[i].bytes = next(WORDS_MAX + 1) * scene.word_bytes;
	}
	for (size_t i = 0; i < scene.count; i++) {
		size_t other = next(scene.count);
		uint64_t addr = scene.blocks[i].addr;

		scene.blocks[i].addr = scene.blocks[other].addr;
		scene.blocks[other].addr = addr;
	}
	for (size_t i = 0; i < scene.count; i++) {
		for (size_t w = 0; w < WORDS_MAX; w++)
			scene.blocks[i].words[w] = next(3) ? 0 : some_word();
	}
	for (size_t w = 0; w < ROOT_WORDS; w++)
		scene.roots[w] = next(4) ? 0 : some_word();
	scene.between = scene.blocks[next(scene.count)].addr;
}

TEST(random_graphs_are_what_plain_search_finds)
{
	static const uint64_t gaps[] = {0, 4096, 1 << 20, (uint64_t)1 << 27, (uint64_t)1 << 33};

	for (int i = 0; i < 2000; i++) {
		struct reach *reach;

		make(gaps[i % 5]);
		reach = take();
		check(reach);
		reach_free(reach);
	}
}

/* A chain, a cycle with a tail, and a tree. Roots hold only the part to which the second root
 * leads. */
TEST(of_chain_first_is_lost_and_others_with_it)
{
	static const int next_of[] = {1, 2, -1, 4, 5, 3, -1};
	struct reach *reach;

	memset(&scene, 0, sizeof(scene));
	scene.word_bytes = 8;
	scene.by_middle = true;
	scene.count = 7;
	for (size_t i = 0; i < scene.count; i++) {
		scene.blocks[i].addr = AT + 64 * i;
		scene.blocks[i].bytes = 16;
		if (next_of[i] >= 0)
			scene.blocks[i].words[0] = AT + 64 * (uint64_t)next_of[i];
	}
	scene.roots[0] = AT + 64 * 6 + 8;
	reach = take();
	for (size_t i = 0; i < 6; i++) {
		struct reach_found found = reach_of(reach, i);

		assert_int_equal(found.reach, i % 3 ? BLOCK_LOST_WITH : BLOCK_LOST);
		assert_int_equal(found.with, i % 3 ? AT + 64 * (i - i % 3) : 0);
	}
	assert_int_equal(reach_of(reach, 6).reach, BLOCK_INTERIOR);
	reach_free(reach);
}

/* Words that contain only a part of an address: one half, which is itself an address below 4 GiB,
 * or the bits below a tag. */
TEST(parts_of_words_lead_to_blocks)
{
	enum { LOW_HALF, HIGH_HALF, MIDDLE, TAGGED, CUT, BY_BLOCK, BY_LOST, WHOLE, COUNT };
	static const bool is_lost[COUNT] = {[CUT] = true, [BY_LOST] = true};
	struct reach *reach;
	uint64_t *roots = scene.roots;

	memset(&scene, 0, sizeof(scene));
	scene.word_bytes = 8;
	scene.by_middle = true;
	scene.count = COUNT;
	for (size_t i = 0; i < COUNT; i++) {
		scene.blocks[i].addr = (i == TAGGED || i == CUT ? AT : 0x700000) + 256 * i;
		scene.blocks[i].bytes = 32;
	}
	roots[0] = UINT64_C(7) << 32 | scene.blocks[LOW_HALF].addr;
	roots[1] = scene.blocks[HIGH_HALF].addr << 32 | 7;
	roots[2] = UINT64_C(0x7ff6) << 32 | (scene.blocks[MIDDLE].addr + 16);
	roots[3] = UINT64_C(0xfffa) << 48 | scene.blocks[TAGGED].addr;
	roots[4] = (uint32_t)scene.blocks[CUT].addr; /* lower half of a high address */
	roots[5] = scene.blocks[WHOLE].addr;
	roots[6] = scene.blocks[WHOLE].addr << 32; /* a register's value */
	scene.blocks[HIGH_HALF].words[1] = AT << 32 | scene.blocks[BY_BLOCK].addr;
	scene.blocks[CUT].words[1] = scene.blocks[BY_LOST].addr << 32;
	reach = take();
	for (size_t i = 0; i < COUNT; i++) {
		enum block_reach found = reach_of(reach, i).reach;

		assert_int_equal(found, !is_lost[i]  ? i == MIDDLE ? BLOCK_INTERIOR : BLOCK_HELD :
					i == BY_LOST ? BLOCK_LOST_WITH :
						       BLOCK_LOST);
	}
	assert_int_equal(reach_part_count(reach), 5);
	reach_free(reach);
}

/* Damaged heaps: blocks at one address, overlapping blocks, blocks without an end, and impossible
 * addresses. */
TEST(blocks_that_cannot_be_are_no_harm)
{
	struct reach *reach = reach_new(64, true, 2);
	unsigned char bytes[64];
	struct err err;

	reach_add(reach, AT, UINT64_MAX);
	reach_add(reach, AT, 16);
	reach_add(reach, AT + 8, 16);
	reach_add(reach, UINT64_MAX - 4, 100);
	reach_add(reach, 0, 0);
	reach_add(reach, (UINT64_C(1) << 47) - 8, 64);
	reach_ready(reach);
	memset(bytes, 0xff, sizeof(bytes));
	reach_show(reach, AT, bytes, sizeof(bytes), true);
	reach_show(reach, UINT64_MAX - 63, bytes, sizeof(bytes), true);
	reach_root(reach, AT + 20);
	reach_root(reach, UINT64_MAX);
	assert_int_equal(reach_resolve(reach, "made", &err), 0);
	for (size_t i = 0; i < 6; i++)
		reach_of(reach, i);
	assert_int_equal(reach_of(reach, 2).reach, BLOCK_INTERIOR);
	reach_free(reach);
	reach = reach_new(32, true, 0);
	reach_ready(reach);
	reach_show(reach, AT, bytes, sizeof(bytes), true);
	assert_int_equal(reach_resolve(reach, "made", &err), 0);
	reach_free(reach);
}

/* ---------------------------------------------------------------- processes */

#define PAGE 4096

/* Regions of a process, each of one page with one pointer. */
struct made_page {
	struct target_region region;
	uint64_t word;
};

static const struct made_page *pages;
static size_t page_count;

static int made_region(struct target *target, uint64_t addr, struct target_region *region)
{
	(void)target;
	for (size_t i = 0; i < page_count; i++) {
		*region = pages[i].region;
		if (addr < region->end)
			return 0;
	}
	return -ERR_READ;
}

static int made_read(struct target *target, uint64_t addr, void *bytes, size_t len)
{
	(void)target;
	for (size_t i = 0; i < page_count; i++) {
		if (addr != pages[i].region.addr || len > PAGE)
			continue;
		memset(bytes, 0, len);
		for (size_t k = 0; k < 8 && k < len; k++)
			((unsigned char *)bytes)[k] = (unsigned char)(pages[i].word >> 8 * k);
		return 0;
	}
	return -ERR_READ;
}

#define MADE_PAGE(at, access, is_image, is_view, word)                                             \
	{                                                                                          \
		{(at), (at) + PAGE, access, is_image, is_view}, word                               \
	}

static void check_taken(const struct walk *walk, const enum block_reach *wanted, size_t low_count)
{
	static const struct target_ops ops = {.read = made_read, .region = made_region};
	struct target target = {.ops = &ops, .bits = 64, .name = "pid 1"};
	struct reach_taken taken;
	struct err err;

	assert_int_equal(reach_capture(&target, walk, true, NULL, 0, &taken, &err), 0);
	assert_int_equal(taken.low_count, low_count);
	assert_int_equal(reach_resolve(taken.reach, "made", &err), 0);
	for (size_t i = 0; i < walk->block_count; i++)
		assert_int_equal(reach_of(taken.reach, i).reach, wanted[i]);
	reach_free(taken.reach);
}

TEST(read_only_views_lead_nowhere)
{
	static const struct made_page made[] = {
		MADE_PAGE(0x200000, TARGET_READ | TARGET_WRITE, false, false, AT),
		MADE_PAGE(0x210000, TARGET_READ, false, false, AT + 64),
		MADE_PAGE(0x220000, TARGET_READ, false, true, AT + 128),
		MADE_PAGE(0x230000, TARGET_READ | TARGET_EXECUTE, false, true, AT + 192),
		MADE_PAGE(0x240000, TARGET_READ, true, false, AT + 256),
	};
	static const enum block_reach wanted[] = {
		BLOCK_HELD, BLOCK_HELD, BLOCK_LOST, BLOCK_LOST, BLOCK_LOST};
	struct block blocks[5] = {0};
	const struct walk walk = {.blocks = blocks, .block_count = 5};

	for (size_t i = 0; i < 5; i++) {
		blocks[i].addr = AT + 64 * i;
		blocks[i].requested_bytes = 40;
	}
	pages = made;
	page_count = 5;
	check_taken(&walk, wanted, 0);
}

/* A number in the middle of a block of 256 KiB, the block's address, and both for a block at 1 MiB
 * or above. */
TEST(middle_of_low_block_is_number)
{
	static const struct made_page made[] = {
		MADE_PAGE(0x200000000, TARGET_READ | TARGET_WRITE, false, false, 50000),
		MADE_PAGE(0x200010000, TARGET_READ | TARGET_WRITE, false, false, 0x50000),
		MADE_PAGE(0x200020000, TARGET_READ | TARGET_WRITE, false, false, 0x108000),
	};
	static const enum block_reach wanted[] = {BLOCK_LOST, BLOCK_HELD, BLOCK_INTERIOR};
	static struct block blocks[] = {{.addr = 0x8000, .requested_bytes = 0x40000},
		{.addr = 0x50000, .requested_bytes = 0x1000},
		{.addr = 0x100000, .requested_bytes = 0x10000}};
	const struct walk walk = {.blocks = blocks, .block_count = 3};

	pages = made;
	page_count = 3;
	check_taken(&walk, wanted, 2);
}
