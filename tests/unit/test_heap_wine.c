#include "tests/unit/t.h"

#include "tests/unit/fake_heaps.h"

static int close_image(void **state)
{
	(void)state;
	image_free();
	shape = shapes;
	return 0;
}

#undef TEST_AROUND
#define TEST_AROUND NULL, close_image

/* ---------------------------------------------------------------- valid heaps */

static void assert_heaps(void)
{
	assert_int_equal(image.walk.heap_count, truth.heap_count);
	for (size_t i = 0; i < image.walk.heap_count; i++) {
		const struct heap *heap = &image.walk.heaps[i];
		const struct placed_heap *placed = truth_heap(heap->addr);

		assert_non_null(placed);
		assert_string_equal(heap->kind, "wine");
		assert_string_equal(heap->layout, shape->name);
		assert_int_equal(heap->bits, shape->pointer * 8);
		assert_false(heap->unwalked);
		assert_false(heap->is_partial);
		assert_int_equal(heap->committed_bytes, placed->committed_bytes);
		assert_int_equal(heap->reserved_bytes, placed->reserved_bytes);
	}
}

TEST(every_live_block_is_found_with_its_sizes_and_its_heap)
{
	for (size_t i = 0; i < SHAPE_COUNT; i++) {
		shape = &shapes[i];
		for (uint64_t seed = 0; seed < 100; seed++) {
			image_make(seed);
			image_walk();
			assert_broken(0, 0);
			assert_true(truth.block_count > 500);
			assert_blocks();
		}
	}
}

TEST(heaps_are_as_large_as_memory_they_took)
{
	for (size_t i = 0; i < SHAPE_COUNT; i++) {
		shape = &shapes[i];
		image_make(1);
		image_walk();
		assert_heaps();
	}
}

TEST(heap_with_damaged_first_subheap_keeps_its_layout)
{
	for (size_t i = 0; i < SHAPE_COUNT; i++) {
		shape = &shapes[i];
		image_make(1);
		fake_write(HEAP_A + HEAP_FIRST_SUBHEAP + SUBHEAP_HEAP, 0, POINTER);
		lose(HEAP_A + HEAP_FIRST_SUBHEAP, 0);
		assert_one_wound(HEAP_A + HEAP_FIRST_SUBHEAP);
		assert_string_equal(image.walk.heaps[0].layout, shape->name);
		assert_true(image.walk.heaps[0].is_partial);
		assert_false(image.walk.heaps[1].is_partial);
	}
}

TEST(heap_of_other_bitness_has_no_layout)
{
	for (size_t i = 0; i < SHAPE_COUNT; i++) {
		shape = &shapes[i];
		image_make(1);
		assert_true(wine_heap_is_ring(&fake.target, HEAP_A, shape->pointer * 8));
		assert_false(wine_heap_is_ring(&fake.target, HEAP_A, 96 - shape->pointer * 8));
		assert_int_equal(wine_heap_count(&fake.target, HEAP_A, shape->pointer * 8), 3);
	}
}

/* ---------------------------------------------------------------- groups */

#define GROUP_LARGE 0x30000000u

static struct filling group_fill;

/* Makes a process with one heap; returns false if the version has no groups. */
static bool begin_groups(size_t number)
{
	shape = &shapes[number];
	if (!shape->has_groups)
		return false;
	image_begin();
	group_fill = heap_place(HEAP_A, 0x20000, 0x20000);
	fill_used(&group_fill, 100, 0);
	return true;
}

static void end_groups(void)
{
	fill_used(&group_fill, 200, 0);
	fill_rest(&group_fill);
}

static void assert_container(size_t number, enum container_kind kind, uint64_t addr, uint64_t bytes)
{
	const struct walk_container *container = &image.walk.containers[number];

	assert_true(number < image.walk.container_count);
	assert_int_equal(container->kind, kind);
	assert_int_equal(container->addr, addr);
	assert_int_equal(container->bytes, bytes);
	assert_false(container->is_sparse);
}

TEST(live_blocks_of_groups_are_found_and_groups_are_not_blocks)
{
	const uint64_t strides[] = {16, 32, 48, 0x100, 0x110, 0x400, 0x7f0};
	const uint32_t live[] = {0, 1, 1u << 30, 0x7fffffff, 0x2aaaaaaa};

	for (size_t i = 0; i < SHAPE_COUNT; i++) {
		for (size_t k = 0; k < 5 && begin_groups(i); k++) {
			uint64_t first = fill_group(&group_fill, strides[k], live[k]);
			uint64_t second = fill_group(&group_fill, strides[k + 2], live[4 - k]);

			end_groups();
			large_group(HEAP_A, GROUP_LARGE, 0x8000, live[k]);
			image_walk();
			assert_int_equal(image.walk.container_count, 4);
			assert_container(0, CONTAINER_SEGMENT, HEAP_A, 0x20000);
			assert_container(1, CONTAINER_LFH, first, group_bytes(strides[k]));
			assert_container(2, CONTAINER_LFH, second, group_bytes(strides[k + 2]));
			assert_container(3, CONTAINER_LFH, image.walk.containers[3].addr,
				group_bytes(0x8000));
			assert_broken(0, 0);
			assert_blocks();
			assert_heaps();
		}
	}
}

TEST(group_that_is_just_being_made_has_no_blocks)
{
	for (size_t i = 0; i < SHAPE_COUNT; i++) {
		for (unsigned made = 1; made < GROUP_BLOCKS && begin_groups(i); made++) {
			uint64_t group = fill_group(&group_fill, 64, 0);

			for (unsigned k = made; k < GROUP_BLOCKS; k++)
				memset(fake_bytes(group + shape->group_first + k * 64, 64), 0x5a,
					64);
			end_groups();
			image_walk();
			assert_broken(0, 0);
			assert_blocks();
		}
	}
}

TEST(group_is_read_by_types_of_its_blocks_and_not_by_its_bits)
{
	for (size_t i = 0; i < SHAPE_COUNT; i++) {
		if (!begin_groups(i))
			continue;
		fake_write(fill_group(&group_fill, 64, 0x0f0f0f0f) + shape->group_bits, 0, 4);
		end_groups();
		image_walk();
		assert_broken(0, 0);
		assert_blocks();
	}
}

/* Overwrites len bytes at `offset` in a block's header. The block is in a group of live blocks. */
static void damage_group(size_t number, unsigned offset, uint64_t value, size_t len)
{
	uint64_t group, header;

	if (!begin_groups(number))
		return;
	group = fill_group(&group_fill, 64, 0x7fffffff);
	header = group + shape->group_first + 7 * 64;
	fake_write(header + offset, value, len);
	for (size_t i = 0; i < truth.block_count; i++) {
		if (truth.blocks[i].addr == header + 8)
			truth.blocks[i].is_lost = true;
	}
	end_groups();
	assert_one_wound(header);
	assert_true(image.walk.heaps[0].is_partial);
}

TEST(damaged_block_of_group_costs_itself_only)
{
	for (size_t i = 0; i < SHAPE_COUNT; i++) {
		damage_group(i, 0, 0, 2); /* size */
		damage_group(i, 0, 5, 2);
		damage_group(i, 2, 0xffff, 2); /* tail */
		damage_group(i, 4, 8, 2); /* number */
		damage_group(i, 6, 'x', 1); /* type */
		damage_group(i, 7, 0, 1); /* flags */
		damage_group(i, 0, UINT64_MAX, 8);
	}
}

TEST(group_of_impossible_size_costs_itself_only)
{
	const uint64_t units[] = {0, 0xffff, 9};

	for (size_t i = 0; i < SHAPE_COUNT; i++) {
		for (size_t k = 0; k < 3 && begin_groups(i); k++) {
			size_t before = truth.block_count;
			uint64_t group = fill_group(&group_fill, 64, 0x7fffffff);

			for (size_t b = before; b < truth.block_count; b++)
				truth.blocks[b].is_lost = true;
			fake_write(group + shape->group_first, units[k], 2);
			end_groups();
			assert_one_wound(group);
		}
	}
}

TEST(block_may_end_right_before_last_8_bytes)
{
	struct filling fill;

	image_begin();
	fill = heap_place(HEAP_A, 0x1000, 0x10000);
	while (fill_room(&fill) > 16)
		fill_used(&fill, fill_room(&fill) > 256 ? 100 : 1, 0);
	fill_used(&fill, 8, 0);
	assert_int_equal(fill.at, HEAP_A + 0x1000 - 8);
	image_walk();
	assert_broken(0, 0);
	assert_blocks();
}

TEST(subheaps_may_lie_side_by_side)
{
	const uint64_t base = 0x50000000, size = 0x10000;
	image_make(4);
	for (unsigned i = 0; i < 8; i++) {
		struct filling fill =
			heap_extend(i % 2 ? HEAP_A : HEAP_B, base + i * size, size, size);

		fill_used(&fill, 1000 + i, 0);
		fill_free(&fill, fill.reserved_end - 8 - fill.at);
	}
	image_walk();
	assert_broken(0, 0);
	assert_blocks();
}

TEST(heap_with_its_lock_held_counts_as_busy)
{
	image_make(2);
	image_walk();
	assert_int_equal(image.walk.busy_count, 0);
	fake_write(HEAP_B + HEAP_LOCK_COUNT, 0, 4);
	image_walk();
	assert_int_equal(image.walk.busy_count, 1);
	fake_write(HEAP_A + HEAP_LOCK_COUNT, 0, 4);
	image_walk();
	assert_int_equal(image.walk.busy_count, 2);
	assert_broken(0, 0);
	assert_blocks();
}

TEST(walking_costs_one_read_for_each_list_entry)
{
	const unsigned count = 2000;
	image_make(3);
	uint64_t before, base = 0x40000000;

	image_walk();
	before = fake.reads;
	fake_map(base, count * (size_t)0x1000)->needs_hold = true;
	for (unsigned i = 0; i < count; i++)
		large_place(HEAP_B, base + i * 0x1000, 0x100000 + i);
	fake.reads = 0;
	image_walk();
	assert_blocks();
	assert_int_equal(fake.reads, before + count);
}

/* ---------------------------------------------------------------- damaged lists */

struct list {
	uint64_t head, entries[3];
	uint64_t parts[3]; /* part that becomes unreachable with each entry; 0: the whole heap */
};

static const struct list *list_of_kind(unsigned kind)
{
	static struct list list;
	const struct list kinds[] = {
		{HEAP_A + HEAP_SUBHEAPS,
			{HEAP_A + HEAP_FIRST_SUBHEAP + SUBHEAP_LINKS, SUB_A1 + SUBHEAP_LINKS,
				SUB_A2 + SUBHEAP_LINKS},
			{HEAP_A + HEAP_FIRST_SUBHEAP, SUB_A1, SUB_A2}},
		{HEAP_B + HEAP_LARGES,
			{LARGE_B + LARGE_LINKS, LARGE_B + LARGE_STEP + LARGE_LINKS,
				LARGE_B + 2 * LARGE_STEP + LARGE_LINKS},
			{LARGE_B, LARGE_B + LARGE_STEP, LARGE_B + 2 * LARGE_STEP}},
	};

	list = kinds[kind];
	return &list;
}

#define LIST_KINDS 2

/* Damages a link at addr of the list. Entries number `lost` and later become unreachable. */
static void damage_list(
	const struct list *list, uint64_t addr, uint64_t value, unsigned lost, uint64_t broken_addr)
{
	image_make(4);
	fake_write(addr, value, 8);
	for (; lost < 3; lost++)
		lose(list->parts[lost], 0);
	assert_one_wound(broken_addr);
}

TEST(list_ends_where_its_next_link_makes_no_sense)
{
	const uint64_t wild[] = {0, 1, 8, 0x7fff0000, 0xdeadbeef0000, 1ull << 47, UINT64_MAX / 2,
		UINT64_MAX - 0x3f, UINT64_MAX - 7, UINT64_MAX};

	for (unsigned k = 0; k < LIST_KINDS; k++) {
		const struct list *list = list_of_kind(k);

		for (size_t i = 0; i < sizeof(wild) / sizeof(*wild); i++) {
			damage_list(list, list->head, wild[i], 0, wild[i]);
			damage_list(list, list->entries[0], wild[i], 1, wild[i]);
			damage_list(list, list->entries[2], wild[i], 3, wild[i]);
		}
	}
}

TEST(list_that_runs_in_circle_is_left)
{
	for (unsigned k = 0; k < LIST_KINDS; k++) {
		const struct list *list = list_of_kind(k);
		const uint64_t *entries = list->entries;

		damage_list(list, entries[0], entries[0], 1, entries[0]);
		damage_list(list, entries[2], entries[2], 3, entries[2]);
		damage_list(list, entries[2], entries[0], 3, entries[0]);
		damage_list(list, entries[2], entries[1], 3, entries[1]);
	}
}

TEST(list_ends_where_its_back_link_makes_no_sense)
{
	for (unsigned k = 0; k < LIST_KINDS; k++) {
		const struct list *list = list_of_kind(k);
		const uint64_t *entries = list->entries;

		for (unsigned i = 0; i < 3; i++) {
			damage_list(list, entries[i] + 8, 0, i, entries[i]);
			damage_list(list, entries[i] + 8, entries[i], i, entries[i]);
		}
		/* The link skips one entry. */
		damage_list(list, list->head, entries[1], 0, entries[1]);
	}
}

TEST(list_that_ends_too_early_is_noticed)
{
	for (unsigned k = 0; k < LIST_KINDS; k++) {
		const struct list *list = list_of_kind(k);

		damage_list(list, list->head, list->head, 0, list->head);
		damage_list(list, list->entries[1], list->head, 2, list->head);
	}
}

TEST(broken_ring_of_heaps_keeps_heaps_before_it)
{
	const uint64_t wild[] = {0, UINT64_MAX, HEAP_B + HEAP_RING, 0x7fff0000};

	for (size_t i = 0; i < sizeof(wild) / sizeof(*wild); i++) {
		image_make(5);
		fake_write(HEAP_B + HEAP_RING, wild[i], 8);
		image_walk();
		assert_int_equal(image.walk.heap_count, 2);
		assert_broken(1, wild[i]);
		assert_blocks();
	}
}

TEST(thing_in_ring_that_is_no_heap_is_passed_over)
{
	const uint64_t places[] = {HEAP_B + HEAP_SIGNATURE, HEAP_B + HEAP_MAGIC};

	for (size_t i = 0; i < 2; i++) {
		image_make(6);
		fake_write(places[i], 0x12345678, 4);
		lose_heap(HEAP_B);
		image_walk();
		assert_int_equal(image.walk.heap_count, 2);
		assert_int_equal(image.walk.heaps[1].addr, HEAP_C);
		assert_broken(1, HEAP_B);
		assert_blocks();
	}
}

/* ---------------------------------------------------------------- damaged blocks */

/* Overwrites len bytes at `offset` in a block's header, which ends the walk of the block's
 * subheap. */
static void damage_block(uint64_t seed, unsigned offset, uint64_t value, size_t len)
{
	image_make(seed);
	const struct placed *block = NULL;
	uint64_t addr;

	while (!block || (block->part != SUB_A1 && block->part != SUB_B1)) {
		seed += 7;
		block = &truth.blocks[seed % truth.block_count];
	}
	addr = block->addr;
	fake_write(addr - 8 + offset, value, len);
	lose(block->part, addr);
	assert_one_wound(addr - 8);
}

TEST(broken_block_ends_its_subheap_only)
{
	for (uint64_t seed = 10; seed < 60; seed++) {
		damage_block(seed, 0, 0, 2); /* size is 0 */
		damage_block(seed, 0, 0xffff, 2); /* size extends beyond the subheap's end */
		damage_block(seed, 0, 0xff000001, 4); /* size is smaller than the tail */
		damage_block(seed, 2, FLAG_FREE, 1); /* flag is free, but type is used */
		damage_block(seed, 6, 0x1234, 2);
		damage_block(seed, 6, TYPE_FREE, 2);
		damage_block(seed, 6, TYPE_LARGE, 2);
		damage_block(seed, 0, UINT64_MAX, 8);
		damage_block(seed, 0, TYPE_FREE * 0x1000000000000u | 0xff010000, 8); /* size is 0 */
		/* Size is too large. */
		damage_block(seed, 0, TYPE_FREE * 0x1000000000000u | 0xff010001, 8);
	}
}

/* ---------------------------------------------------------------- damaged subheaps and blocks */

static void damage_part(uint64_t part, uint64_t offset, uint64_t value)
{
	image_make(7);
	fake_write(part + offset, value, 8);
	lose(part, 0);
	assert_one_wound(part);
}

TEST(sizes_that_cannot_be_are_passed_over)
{
	const uint64_t huge[] = {UINT64_MAX, UINT64_MAX - 15, UINT64_MAX - SUB_A1, 1ull << 63,
		1ull << 62, 1ull << 48};

	for (size_t i = 0; i < sizeof(huge) / sizeof(*huge); i++) {
		damage_part(SUB_A1, SUBHEAP_BLOCK_SIZE, huge[i]);
		damage_part(SUB_A1, SUBHEAP_DATA_SIZE, huge[i]);
		damage_part(LARGE_A, LARGE_BLOCK_SIZE, huge[i]);
		damage_part(LARGE_A, LARGE_DATA_SIZE, huge[i]);
	}
	damage_part(SUB_A1, SUBHEAP_DATA_SIZE, 0);
	damage_part(SUB_A1, SUBHEAP_DATA_SIZE, 15);
	damage_part(SUB_A1, SUBHEAP_BLOCK_SIZE, 0);
	damage_part(LARGE_A, LARGE_BLOCK_SIZE, 0);
	damage_part(LARGE_A, LARGE_BLOCK_SIZE, LARGE_DATA);
	damage_part(LARGE_A, LARGE_BLOCK, (uint64_t)TYPE_USED << 48);
}

TEST(subheap_of_another_heap_is_passed_over)
{
	damage_part(SUB_A1, SUBHEAP_HEAP, HEAP_B);
	damage_part(SUB_B1, SUBHEAP_HEAP, 0);
	damage_part(HEAP_A + HEAP_FIRST_SUBHEAP, SUBHEAP_HEAP, HEAP_A + 1);
}

/* Returns the first header at or after `end` in the subheap at `part`. */
static uint64_t header_from(uint64_t part, uint64_t end)
{
	uint64_t at = part + SUBHEAP_FIRST_BLOCK;

	while (at + 8 <= end) {
		uint64_t units = fake_get(at, 2);

		if (fake_get(at + 2, 1) & FLAG_FREE)
			units += fake_get(at + 3, 1) << 16;
		at += units * 16;
	}
	return at;
}

TEST(memory_that_is_not_there_costs_its_own_blocks_only)
{
	image_make(8);
	uint64_t missing;

	fake_unmap(SUB_A1);
	lose(SUB_A1, 0);
	lose(SUB_A2, 0); /* follows SUB_A1 in the list */
	assert_one_wound(SUB_A1 + SUBHEAP_LINKS);

	image_make(8);
	missing = header_from(SUB_A1, SUB_A1 + 0x1000);
	fake_range_at(SUB_A1)->len = 0x1000;
	lose(SUB_A1, missing);
	assert_one_wound(missing);

	image_make(8);
	fake_unmap(HEAP_B);
	lose_heap(HEAP_B);
	assert_one_wound(HEAP_B + HEAP_RING);
}

/* ---------------------------------------------------------------- unknown heaps */

TEST(heaps_of_unknown_kind_are_listed_from_peb)
{
	image_make(13);
	const uint64_t list = FAKE_PEB + 0x400, heaps[] = {HEAP_A, 0x910000, 0, HEAP_B};

	fake_write(HEAP_A + HEAP_SIGNATURE, 0, 4);
	fake_write(HEAP_B + HEAP_SIGNATURE, 0, 4);
	fake_write(FAKE_PEB + FAKE_PEB_HEAP_COUNT, 4, 4);
	fake_write(FAKE_PEB + FAKE_PEB_HEAP_LIST, list, 8);
	for (unsigned i = 0; i < 4; i++)
		fake_write(list + i * 8, heaps[i], 8);
	image_walk();
	assert_int_equal(image.walk.heap_count, 3); /* the null entry is ignored */
	assert_int_equal(image.walk.block_count, 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(image.walk.heaps[i].addr, heaps[i + (i > 1)]);
		assert_true(image.walk.heaps[i].unwalked);
		assert_string_equal(image.walk.heaps[i].kind, "unknown");
	}
	assert_broken(0, 0);
	assert_int_equal(image.walk.missing_count, 1);
	assert_int_equal(image.walk.missing_addr, 0x910000);
	fake_write(FAKE_PEB + FAKE_PEB_HEAP_COUNT, UINT32_MAX, 4);
	image_walk();
	assert_int_equal(
		/* a list with an invalid length ends at its null entry */
		image.walk.heap_count, 2);
	assert_string_equal(image.walk.list_fault, "list of heaps of an impossible length");
	assert_int_equal(image.walk.list_fault_addr, list);
}

TEST(process_without_heap_is_error)
{
	image_make(14);
	fake_write(FAKE_PEB + FAKE_PEB_HEAP, 0, 8);
	assert_int_equal(image_walk_all(), -ERR_TARGET);
	fake_unmap(FAKE_PEB);
	assert_int_equal(image_walk_all(), -ERR_TARGET);
	fake.is_dead = true;
	assert_int_equal(image_walk_all(), -ERR_GONE);
}

/* ---------------------------------------------------------------- hostile processes */

#define ENDLESS 0x100000000000u

/* Many subheaps claim the same blocks: all except one subheap are wrong. */
TEST(blocks_that_many_subheaps_claim_are_found_once)
{
	const unsigned headers = 200, blocks = 4000;
	image_make(9);
	uint64_t base = 0x5000000, data = base + headers * (uint64_t)SUBHEAP_DATA - 8;
	size_t before = truth.block_count;

	fake_map(base, (headers * SUBHEAP_DATA + blocks * 16 + 0xfff) & ~(size_t)0xfff)
		->needs_hold = true;
	for (unsigned i = 0; i < headers; i++) {
		uint64_t part = base + i * (uint64_t)SUBHEAP_DATA;
		uint64_t first = part + SUBHEAP_FIRST_BLOCK, bytes = data + blocks * 16 + 8 - first;

		fake_write(part + SUBHEAP_BLOCK_SIZE, bytes, 8);
		fake_write(part + SUBHEAP_DATA_SIZE, bytes - 8, 8);
		fake_write(part + SUBHEAP_HEAP, HEAP_B, 8);
		fake_write(first, (data - first) / 16, 2);
		fake_write(first + 2, FLAG_FREE, 1);
		fake_write(first + 6, TYPE_FREE, 2);
		if (i == headers - 1)
			break; /* the last subheap begins with a shared block */
		fake_list_add(HEAP_B + HEAP_SUBHEAPS, part + SUBHEAP_LINKS);
	}
	for (unsigned i = 0; i < blocks; i++)
		fake_write(data + i * 16, (uint64_t)TYPE_USED << 48 | 1, 8);
	image_walk();
	assert_int_equal(image.walk.block_count, before + blocks);
	assert_int_equal(image.walk.broken_count, headers - 2);
}

/* Generates an endless chain of correctly linked large blocks. */
static bool endless_large(uint64_t addr, unsigned char *bytes, size_t len)
{
	unsigned char block[0x40] = {0};
	uint64_t base = addr & ~(uint64_t)0x3f, links[2];

	if (addr < ENDLESS || addr - base + len > sizeof(block))
		return false;
	block[LARGE_DATA_SIZE + 1] = 0x10;
	block[LARGE_BLOCK_SIZE + 1] = 0x20;
	block[LARGE_BLOCK + 6] = TYPE_LARGE & 0xff;
	block[LARGE_BLOCK + 7] = TYPE_LARGE >> 8;
	links[0] = base + LARGE_LINKS + 0x40;
	links[1] = base == ENDLESS ? HEAP_B + HEAP_LARGES : base + LARGE_LINKS - 0x40;
	memcpy(block + LARGE_LINKS, links, sizeof(links));
	memcpy(bytes, block + (addr - base), len);
	return true;
}

TEST(list_without_end_is_left_after_million_reads)
{
	image_make(10);
	fake.made_up = endless_large;
	fake_write(HEAP_B + HEAP_LARGES, ENDLESS + LARGE_LINKS, 8);
	image_walk();
	assert_int_equal(image.walk.broken_count, 1);
	assert_true(fake.reads < 1100000);
	assert_int_equal(image.walk.heap_count, 3);
}

/* Claims, in small steps, more memory than an address space has. */
TEST(heaps_cannot_hold_more_than_address_space)
{
	image_make(11);
	for (unsigned i = 0; i < EACH_LARGE; i++)
		fake_write(LARGE_A + i * LARGE_STEP + LARGE_BLOCK_SIZE, 1ull << 46, 8);
	image_walk();
	assert_true(image.walk.broken_count > 0);
	assert_true(image.walk.heaps[0].committed_bytes < 1ull << 47);
}

/* ---------------------------------------------------------------- fuzz */

/* Ranges after the PEB's, with heaps, subheaps and large blocks. */
#define PARTS (6 + 2 * EACH_LARGE)

struct flip {
	unsigned char *at, bytes[8];
};

/* Changes some bytes of the image, mostly in the structures at the start of a range. */
static struct flip flip(uint64_t *seed)
{
	const uint64_t links[] = {HEAP_A + HEAP_RING, HEAP_B + HEAP_RING, HEAP_C + HEAP_RING,
		HEAP_A + HEAP_SUBHEAPS, HEAP_A + HEAP_FIRST_SUBHEAP + SUBHEAP_LINKS,
		SUB_A1 + SUBHEAP_LINKS, SUB_A2 + SUBHEAP_LINKS, SUB_B1 + SUBHEAP_LINKS,
		HEAP_B + HEAP_LARGES, LARGE_A + LARGE_LINKS, LARGE_B + LARGE_LINKS,
		LARGE_B + LARGE_STEP + LARGE_LINKS};
	uint64_t dice = fake_random(seed);
	struct fake_range *range = &fake.ranges[1 + dice % PARTS];
	size_t span = dice >> 8 & 1 ? 0xe8 : dice >> 9 & 1 ? 0x400 : range->len;
	size_t offset = fake_random(seed) % (span - 8);
	struct flip flipped = {.at = range->bytes + offset};

	memcpy(flipped.bytes, flipped.at, 8);
	if (dice >> 10 & 1) { /* a link of another list */
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

static void assert_bounded(void)
{
	assert_true(fake.reads < 200);
	/* After a failed large read, the walk reads page by page. */
	assert_true(fake.got_bytes <= 2 * image.mapped_bytes + 200 * 0x100);
	assert_true(image.walk.heap_count <= 3);
	assert_true(image.walk.block_count <= image.mapped_bytes / 16);
	for (size_t i = 0; i < image.walk.heap_count; i++)
		assert_true(image.walk.heaps[i].committed_bytes < 1ull << 47);
}

static void damage_at_random(uint64_t seed, unsigned rounds)
{
	image_make(12);
	assert_int_equal(fake.range_count, 1 + PARTS);
	for (unsigned round = 0; round < rounds; round++) {
		struct flip flips[8];
		unsigned count = 1 + fake_random(&seed) % 8;

		for (unsigned i = 0; i < count; i++)
			flips[i] = flip(&seed);
		fake.reads = fake.got_bytes = 0;
		image_walk();
		assert_bounded();
		while (count--)
			memcpy(flips[count].at, flips[count].bytes, 8);
	}
	image_walk();
	assert_broken(0, 0);
	assert_blocks();
}

TEST(no_damage_makes_it_hang_crash_or_read_on_and_on)
{
	for (size_t i = 0; i < SHAPE_COUNT; i++) {
		shape = &shapes[i];
		damage_at_random(20240607 + i, 5000);
	}
}
