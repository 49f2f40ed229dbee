#include "tests/unit/t.h"

#include "tests/unit/fake_tracer.h"

#include "core/base/os.h"
#include "snapshot/capture/capture.h"
#include "snapshot/stacks/tracer_read.h"

struct scene {
	struct tracer_copy copy;
	struct err err;
	uint64_t frames[TRACER_DEPTH_MAX];
};

static struct scene scene;

static int set_up(void **state)
{
	(void)state;
	memset(&scene, 0, sizeof(scene));
	fake_init();
	tracer_place();
	tracer_copy_init(&scene.copy);
	fake.is_held = true;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tracer_copy_release(&scene.copy);
	fake_release();
	return 0;
}

static int take(void)
{
	scene.err = (struct err){0};
	return take_tables(&scene.copy, &fake.target, TRACER_AREA, &scene.err);
}

static int find(uint64_t *addr)
{
	const struct snapshot modules = {
		.modules = fake.modules, .module_count = fake.module_count};
	struct capture_source source;
	int rc;

	scene.err = (struct err){0};
	rc = capture_source_find(&fake.target, &modules, STACKS_TRACER, &source, &scene.err);
	assert_int_equal(source.has_tracer, !rc);
	if (!rc)
		*addr = source.area_addr;
	return rc;
}

/* ---------------------------------------------------------------- search */

#undef TEST_AROUND
#define TEST_AROUND set_up, tear_down

TEST(it_is_found_by_its_export_however_its_path_is_spelt)
{
	static const char *const paths[] = {"C:\\tools\\hsnap-tracer64.dll",
		"C:\\TOOLS\\HSNAP-TRACER64.DLL", "Z:/x/Hsnap-Tracer64.dll", "hsnap-tracer64.dll"};

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		uint64_t addr = 0;

		fake.modules[1].path = paths[i];
		assert_int_equal(find(&addr), 0);
		assert_int_equal(addr, TRACER_AREA);
	}
}

TEST(process_without_it_is_not_traced)
{
	static const char *const paths[] = {"C:\\tools\\hsnap-tracer64.dll.bak",
		"C:\\tools\\hsnap-tracer6", "C:\\hsnap-tracer64.dll\\x.dll", ""};
	uint64_t addr = 7;

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		fake.modules[1].path = paths[i];
		assert_int_equal(find(&addr), -ERR_NOT_TRACED);
	}
	fake.module_count = 0;
	assert_int_equal(find(&addr), -ERR_NOT_TRACED);
	assert_int_equal(addr, 7);
}

TEST(damaged_tracer_dll_is_error)
{
	const unsigned offsets[] = {0, 60, 0x80, 0x80 + 24, 0x1000 + 20, 0x1000 + 28, 0x1070};
	uint64_t addr = 7;

	for (size_t i = 0; i < sizeof(offsets) / sizeof(*offsets); i++) {
		uint64_t at = TRACER_BASE + offsets[i], was = fake_get(at, 4);

		fake_write(at, 0xfffffff0, 4);
		assert_int_equal(find(&addr), -ERR_TARGET);
		fake_write(at, was, 4);
	}
	fake_unmap(TRACER_BASE);
	assert_int_equal(find(&addr), -ERR_TARGET);
	fake.is_dead = true;
	assert_int_equal(find(&addr), -ERR_GONE);
	assert_int_equal(addr, 7);
}

/* ---------------------------------------------------------------- state */

TEST(tracer_of_another_version_is_refused_by_name)
{
	char words[80];

	assert_int_equal(take(), 0);
	AREA_PUT(magic, 0x325243415254);
	assert_int_equal(take(), -ERR_TARGET);
	AREA_PUT(magic, 0x54534e4148435254);
	AREA_PUT(version, TRACER_VERSION + 1);
	assert_int_equal(take(), -ERR_TARGET);
	snprintf(words, sizeof(words), "its tracer has version %d, and this hsnap reads version %d",
		TRACER_VERSION + 1, TRACER_VERSION);
	assert_non_null(strstr(scene.err.detail, words));
	AREA_PUT(version, TRACER_VERSION);
	AREA_PUT(area_bytes, sizeof(struct tracer_area) + 8);
	assert_int_equal(take(), -ERR_TARGET);
	AREA_PUT(area_bytes, sizeof(struct tracer_area));
	AREA_PUT(pointer_bytes, 4);
	assert_int_equal(take(), -ERR_TARGET);
	AREA_PUT(pointer_bytes, 8);
	assert_int_equal(take(), 0);
	fake_unmap(TRACER_AREA);
	assert_int_equal(take(), -ERR_TARGET);
	fake.is_dead = true;
	assert_int_equal(take(), -ERR_GONE);
}

TEST(tracer_in_no_known_state_is_refused)
{
	AREA_PUT(state, UINT32_MAX);
	assert_int_equal(take(), -ERR_TARGET);
}

TEST(tracer_that_is_not_on_traces_nothing)
{
	uint64_t addr = 7;

	AREA_PUT(state, TRACER_OFF);
	assert_int_equal(find(&addr), -ERR_NOT_TRACED);
	assert_non_null(strstr(scene.err.detail, "detached"));
	assert_int_equal(take(), -ERR_NOT_TRACED);
	AREA_PUT(state, TRACER_LOADED);
	assert_int_equal(find(&addr), -ERR_NOT_TRACED);
	assert_non_null(strstr(scene.err.detail, "never switched on"));
	assert_int_equal(addr, 7);
	assert_int_equal(
		tracer_find(&fake.target, fake.modules, fake.module_count, &addr, &scene.err), 0);
	assert_int_equal(addr, TRACER_AREA);
}

TEST(process_of_32_bits_has_its_own_tracer)
{
	uint64_t addr = 0;

	fake.target.bits = 32;
	assert_int_equal(find(&addr), -ERR_NOT_TRACED);
	fake.modules[1].path = "C:\\tools\\hsnap-tracer32.dll";
	assert_int_equal(find(&addr), -ERR_TARGET); /* the process contains a 64-bit tracer */
	assert_int_equal(take(), -ERR_TARGET);
	AREA_PUT(pointer_bytes, 4);
	assert_int_equal(find(&addr), 0);
	assert_int_equal(take(), 0);
}

/* Each table alone is acceptable, but together they exceed the limit. */
TEST(tables_larger_than_half_of_memory_are_refused)
{
	const uint64_t shard_bytes = (uint64_t)1 << 30; /* 2^18 pages */
	uint64_t first = TRACER_ROOM + TRACER_ROOM_BYTES;

	if (os_memory_bytes() / 2 >= TRACER_SHARDS * shard_bytes)
		skip();
	AREA_PUT(reserved_bytes, TRACER_ROOM_BYTES + TRACER_SHARDS * shard_bytes);
	for (unsigned shard = 0; shard < TRACER_SHARDS; shard++) {
		SHARD_PUT(shard, table, first + shard * shard_bytes);
		SHARD_PUT(shard, pages, 1 << 18);
	}
	assert_int_equal(take(), -ERR_TARGET);
	assert_non_null(strstr(scene.err.detail, "of this machine's memory"));
	assert_null(strchr(scene.err.detail, '\n'));
}

TEST(it_is_busy_while_its_ranges_change)
{
	assert_false(tracer_is_busy(&fake.target, TRACER_AREA, false));
	AREA_PUT(ranges.changing, 7);
	assert_true(tracer_is_busy(&fake.target, TRACER_AREA, false));
	AREA_PUT(ranges.changing, 8);
	assert_false(tracer_is_busy(&fake.target, TRACER_AREA, false));
	assert_false(tracer_is_busy(&fake.target, 0x1000, true));
	SHARD_PUT(5, reallocating, 1);
	assert_false(tracer_is_busy(&fake.target, TRACER_AREA, false));
	assert_true(tracer_is_busy(&fake.target, TRACER_AREA, true));
	SHARD_PUT(5, reallocating, 0);
	assert_false(tracer_is_busy(&fake.target, TRACER_AREA, true));
	/* A terminated thread left the count odd: it will never become even. */
	AREA_PUT(ranges.changing, 9);
	AREA_PUT(ranges.broken, 1);
	assert_false(tracer_is_busy(&fake.target, TRACER_AREA, false));
}

/* ---------------------------------------------------------------- tables */

static struct made_block block_of(unsigned i)
{
	return (struct made_block){.addr = 0x1000 + i * 48ull,
		.size_bytes = i,
		.heap = 0x110000 + i % 3 * 0x10000,
		.stack = i};
}

static void assert_has(unsigned i)
{
	const struct made_block block = block_of(i);
	const struct tracer_block *found = tracer_copy_find(&scene.copy, block.addr);

	assert_non_null(found);
	assert_int_equal(tracer_block_bytes(found), block.size_bytes);
	assert_int_equal(tracer_copy_heap(&scene.copy, found), block.heap);
	assert_int_equal(tracer_block_stack(found), block.stack);
	assert_null(tracer_copy_find(&scene.copy, block.addr + 16));
}

TEST(every_block_of_every_shard_is_found)
{
	unsigned count = 0;

	for (unsigned shard = 0; shard < TRACER_SHARDS; shard += 2) {
		unsigned pages = 1 + shard / 4, entries = pages * 256;

		tracer_place_table(shard, pages);
		for (unsigned i = 0; i < entries; i += shard % 3 + 1) {
			const struct made_block block = block_of(count++);

			tracer_write_block(shard, i, &block);
		}
	}
	for (unsigned round = 0; round < 2; round++) {
		assert_int_equal(take(), 0);
		tracer_copy_sort(&scene.copy);
		assert_int_equal(scene.copy.block_count, count);
		for (unsigned i = 0; i < count; i++)
			assert_has(i);
	}
}

TEST(entry_that_is_being_moved_counts_once)
{
	tracer_place_table(5, 1);
	for (unsigned i = 0; i < 20; i++) {
		const struct made_block block = block_of(i);

		tracer_write_block(5, 3 * i, &block);
		if (i % 3 == 0)
			tracer_write_block(5, 3 * i + 1, &block);
	}
	assert_int_equal(take(), 0);
	tracer_copy_sort(&scene.copy);
	assert_int_equal(scene.copy.block_count, 20);
	for (unsigned i = 0; i < 20; i++)
		assert_has(i);
}

TEST(tracer_that_has_seen_nothing_has_nothing)
{
	uint32_t id = tracer_write_stack(0x1000, 4);

	assert_int_equal(take(), 0);
	assert_int_equal(tracer_copy_stack(&scene.copy, id, scene.frames), 4);
	AREA_PUT(stacks_committed, 0); /* fake_init()'s initial state */
	AREA_PUT(stacks_top, 8);
	assert_int_equal(take(), 0);
	tracer_copy_sort(&scene.copy);
	assert_int_equal(scene.copy.block_count, 0);
	assert_null(tracer_copy_find(&scene.copy, 0x1000));
	assert_int_equal(tracer_copy_stack(&scene.copy, id, scene.frames), 0);
}

TEST(shards_that_were_left_locked_are_counted_and_not_believed)
{
	struct made_block block = {.addr = 0x1000, .size_bytes = 8, .stack = 1};

	tracer_place_table(63, 1);
	tracer_write_block(63, 3, &block);
	assert_int_equal(take(), 0);
	assert_int_equal(scene.copy.block_count, 1);
	SHARD_PUT(0, broken, 1);
	SHARD_PUT(63, broken, 0x100);
	assert_int_equal(take(), 0);
	assert_int_equal(scene.copy.block_count, 0);
	assert_int_equal(scene.copy.broken_shards, 2);
	assert_int_equal(take(), 0);
	assert_int_equal(scene.copy.broken_shards, 2);
}

/* ---------------------------------------------------------------- repeated reads */

#define AGAIN_PAGES 512 /* 2 MiB: each count covers two pieces */
#define PIECE_ENTRIES (8192 / 16)

static int read_tables(void)
{
	return tracer_copy_read(&scene.copy, &fake.target, TRACER_AREA, &scene.err);
}

/* Writes a block into the first entry of each piece. The block's size is the version. */
static void write_version(unsigned shard, unsigned piece, unsigned version)
{
	const struct made_block block = {
		.addr = (piece + 1) * 64ull, .size_bytes = version, .heap = 0x110000, .stack = 1};

	tracer_write_block(shard, piece * PIECE_ENTRIES, &block);
}

static uint64_t version_read(unsigned piece)
{
	const struct tracer_block *found = tracer_copy_find(&scene.copy, (piece + 1) * 64ull);

	return found ? tracer_block_bytes(found) : 0;
}

/* If a change is counted, all pieces that share the count are read again. An uncounted change shows
 * that no other piece is read. */
TEST(second_time_only_what_has_changed_is_read)
{
	const unsigned pieces = (AGAIN_PAGES * 4096) / 8192;
	uint64_t all;

	tracer_place_table(9, AGAIN_PAGES);
	for (unsigned piece = 0; piece < pieces; piece++)
		write_version(9, piece, 1);
	assert_int_equal(read_tables(), 0);
	all = scene.copy.read_bytes;
	assert_true(all >= AGAIN_PAGES * 4096);
	assert_int_equal(read_tables(), 0);
	assert_in_range(scene.copy.read_bytes, 0, all - (AGAIN_PAGES * 4096));
	for (unsigned piece = 0; piece < pieces; piece++)
		write_version(9, piece, 2);
	for (unsigned piece = 3; piece < pieces; piece += 7)
		tracer_count_change(9, piece * 8192ull);
	assert_int_equal(take(), 0);
	tracer_copy_sort(&scene.copy);
	assert_int_equal(scene.copy.block_count, pieces);
	for (unsigned piece = 0; piece < pieces; piece++) {
		bool is_counted = false;

		for (unsigned other = piece % 128; other < pieces; other += 128)
			is_counted = is_counted || other % 7 == 3;
		assert_int_equal(version_read(piece), is_counted ? 2 : 1);
	}
}

TEST(table_whose_lock_somebody_has_is_read_again)
{
	tracer_place_table(9, 4);
	write_version(9, 0, 1);
	assert_int_equal(read_tables(), 0);
	write_version(9, 0, 2);
	SHARD_PUT(9, lock, 0x1234);
	assert_int_equal(take(), 0);
	assert_int_equal(scene.copy.blocks[0].what >> 27, 2);
}

TEST(table_in_another_place_or_of_another_size_is_read_again)
{
	const uint64_t addr = tracer_place_table(9, 4), other = tracer_place_table(8, 4);

	SHARD_PUT(8, table, 0);
	write_version(9, 0, 1);
	write_version(8, 0, 2);
	assert_int_equal(read_tables(), 0);
	SHARD_PUT(9, table, other);
	assert_int_equal(read_tables(), 0);
	SHARD_PUT(9, pages, 2);
	write_version(8, 0, 3);
	assert_int_equal(read_tables(), 0);
	SHARD_PUT(9, table, addr);
	SHARD_PUT(9, pages, 4);
	write_version(9, 0, 4);
	assert_int_equal(take(), 0);
	assert_int_equal(scene.copy.block_count, 1);
	assert_int_equal(scene.copy.blocks[0].what >> 27, 4);
}

TEST(of_tracer_that_was_turned_on_again_everything_is_read)
{
	tracer_place_table(9, 4);
	write_version(9, 0, 1);
	AREA_PUT(session, 1);
	assert_int_equal(read_tables(), 0);
	write_version(9, 0, 2);
	AREA_PUT(session, 2);
	assert_int_equal(take(), 0);
	assert_int_equal(scene.copy.blocks[0].what >> 27, 2);
}

TEST(stacks_that_were_added_are_read_and_others_if_they_have_changed)
{
	uint32_t first = tracer_write_stack(0x1000, 4), second, third;

	second = tracer_write_stack(0x2000, 4);
	assert_int_equal(read_tables(), 0);
	third = tracer_write_stack(0x3000, 4);
	fake_write(TRACER_STACKS + first * 8ull + 16, 0x7000, 8); /* this change is not counted */
	assert_int_equal(read_tables(), 0);
	assert_int_equal(tracer_copy_stack(&scene.copy, first, scene.frames), 4);
	assert_int_equal(scene.frames[0], 0x1000);
	assert_int_equal(tracer_copy_stack(&scene.copy, third, scene.frames), 4);
	assert_int_equal(scene.frames[0], 0x3000);
	fake_write(TRACER_STACKS + second * 8ull + 16, 0x8000, 8);
	tracer_count_change(TRACER_STACKS_NUMBER, second * 8ull);
	/* There are fewer stacks than before. The removed stack is not read. */
	AREA_PUT(stacks_top, third * 8ull);
	assert_int_equal(take(), 0);
	assert_int_equal(tracer_copy_stack(&scene.copy, second, scene.frames), 4);
	assert_int_equal(scene.frames[0], 0x8000);
	assert_int_equal(tracer_copy_stack(&scene.copy, third, scene.frames), 0);
}

/* ---------------------------------------------------------------- blocks at any address */

#define ADDR_MAX (((uint64_t)1 << TRACER_ADDR_BITS) - 1)
#define COUNT_MAX 70000u

static uint64_t scattered(unsigned scatter, size_t i, uint64_t *seed)
{
	uint64_t random = fake_random(seed);

	switch (scatter) {
	case 0: return 0x20000 + random % COUNT_MAX * 16; /* adjacent addresses */
	case 1: return (random & 1 ? ADDR_MAX - 0xfffff : 0x10) + random / 2 % 0xffff0;
	case 2: return 0x123456780; /* all at the same address */
	case 3: return ADDR_MAX - i * 48; /* descending addresses */
	case 4: return (uint64_t)1 << random % TRACER_ADDR_BITS;
	default: return random & ADDR_MAX;
	}
}

static void assert_each_is_found(
	const struct tracer_copy *copy, const uint64_t *addrs, size_t count)
{
	const struct tracer_block *blocks = copy->blocks;

	for (size_t i = 0; i < count; i++) {
		const struct tracer_block *found = tracer_copy_find(copy, addrs[i]);

		assert_non_null(found);
		assert_int_equal(tracer_block_addr(found), addrs[i]);
		/* The index moved with its address. */
		assert_int_equal(addrs[found->what], addrs[i]);
	}
	for (size_t i = 0; i < copy->block_count; i++) {
		uint64_t behind = tracer_block_addr(&blocks[i]) + 1;

		if (i)
			assert_true(tracer_block_addr(&blocks[i - 1]) < behind - 1);
		if (i + 1 == copy->block_count || tracer_block_addr(&blocks[i + 1]) != behind)
			assert_null(tracer_copy_find(copy, behind));
	}
	assert_null(tracer_copy_find(copy, tracer_block_addr(blocks) - 1));
	assert_null(tracer_copy_find(copy, UINT64_MAX));
}

TEST(blocks_are_ordered_and_each_is_found)
{
	const size_t counts[] = {1, 2, 63, 64, 65, 66, 1000, COUNT_MAX};
	struct tracer_copy *copy = &scene.copy;
	uint64_t *addrs = calloc(COUNT_MAX, sizeof(*addrs)), seed = 31;

	assert_non_null(addrs);
	copy->blocks = calloc(COUNT_MAX, sizeof(*copy->blocks));
	assert_non_null(copy->blocks);
	for (size_t k = 0; k < 6 * sizeof(counts) / sizeof(*counts); k++) {
		size_t count = copy->block_count = counts[k / 6];

		for (size_t i = 0; i < count; i++) {
			addrs[i] = scattered(k % 6, i, &seed);
			copy->blocks[i].key = addrs[i] | fake_random(&seed) << TRACER_ADDR_BITS;
			copy->blocks[i].what = i;
		}
		tracer_copy_sort(copy);
		assert_true(copy->index.part_count <= count);
		assert_each_is_found(copy, addrs, count);
		free(copy->index.starts); /* simulates a lack of memory */
		copy->index.starts = NULL;
		assert_each_is_found(copy, addrs, count);
	}
	free(addrs);
}

/* ---------------------------------------------------------------- stacks */

TEST(stacks_of_every_depth_come_out_as_they_went_in)
{
	uint32_t ids[TRACER_DEPTH_MAX + 1];

	for (uint32_t depth = 1; depth <= TRACER_DEPTH_MAX; depth++)
		ids[depth] = tracer_write_stack(depth << 20, depth);
	assert_int_equal(take(), 0);
	for (uint32_t depth = 1; depth <= TRACER_DEPTH_MAX; depth++) {
		assert_int_equal(tracer_copy_stack(&scene.copy, ids[depth], scene.frames), depth);
		for (uint32_t i = 0; i < depth; i++)
			assert_int_equal(scene.frames[i], (depth << 20) + 16 * i);
	}
}

TEST(id_that_names_no_sound_record_has_no_frames)
{
	const uint32_t depths[] = {0, 65, 0x1fff, 0x2000, 0x8000, 0xffff};
	uint32_t id = tracer_write_stack(0x1000, 4), past;

	past = (uint32_t)(AREA_GET(stacks_top) / 8);
	assert_int_equal(take(), 0);
	assert_int_equal(tracer_copy_stack(&scene.copy, 0, scene.frames), 0);
	for (uint32_t wild = past - 2; wild < past + 1000; wild++)
		assert_int_equal(tracer_copy_stack(&scene.copy, wild, scene.frames), 0);
	assert_int_equal(tracer_copy_stack(&scene.copy, UINT32_MAX, scene.frames), 0);
	for (size_t i = 0; i < sizeof(depths) / sizeof(*depths); i++) {
		fake_write(TRACER_STACKS + id * 8ull + 8, depths[i], 2);
		tracer_count_change(TRACER_STACKS_NUMBER, id * 8ull);
		assert_int_equal(take(), 0);
		assert_int_equal(tracer_copy_stack(&scene.copy, id, scene.frames), 0);
	}
	fake_write(TRACER_STACKS + id * 8ull + 8, 5, 2); /* one frame more than up to the top */
	tracer_count_change(TRACER_STACKS_NUMBER, id * 8ull);
	assert_int_equal(take(), 0);
	assert_int_equal(tracer_copy_stack(&scene.copy, id, scene.frames), 0);
}

/* ---------------------------------------------------------------- malicious tables */

TEST(tables_that_cannot_be_are_error)
{
	uint64_t good = tracer_place_table(9, 8);
	const struct {
		uint64_t table;
		uint32_t pages;
	} wild[] = {{64, 8}, {0xdead0000, 8}, {UINT64_MAX, 8}, {UINT64_MAX - 4095, 8},
		{1ull << 63, 8}, {TRACER_ROOM - 4096, 8},
		{TRACER_ROOM + TRACER_ROOM_BYTES - 4096, 8}, {good, 9}, {good, 1 << 18},
		{good, (1 << 18) + 1}, {good, UINT32_MAX}};

	for (size_t i = 0; i < sizeof(wild) / sizeof(*wild); i++) {
		SHARD_PUT(9, table, wild[i].table);
		SHARD_PUT(9, pages, wild[i].pages);
		fake.reads = 0;
		assert_int_equal(take(), -ERR_TARGET);
		assert_true(fake.reads < 10);
	}
	SHARD_PUT(9, table, good);
	SHARD_PUT(9, pages, 8);
	assert_int_equal(take(), 0);
}

/* If tables could be shared, one table could be read and stored 64 times. */
TEST(shards_that_share_table_are_error)
{
	uint64_t table = tracer_place_table(9, 8);
	const uint64_t shared[] = {table, table - 0x1000, table + 0x4000, table + 0x7fc0};

	SHARD_PUT(3, pages, 2);
	SHARD_PUT(33, pages, 2);

	for (size_t i = 0; i < sizeof(shared) / sizeof(*shared); i++) {
		SHARD_PUT(3, table, shared[i]);
		assert_int_equal(take(), -ERR_TARGET);
		SHARD_PUT(3, table, 0);
		SHARD_PUT(33, table, shared[i]);
		assert_int_equal(take(), -ERR_TARGET);
		SHARD_PUT(33, table, 0);
	}
	assert_int_equal(take(), 0);
}

TEST(stack_areas_that_cannot_be_are_error)
{
	const struct {
		uint64_t addr, top, committed, limit;
	} wild[] = {
		{TRACER_STACKS, 0x10001, 0x10000, 1 << 30},
		{TRACER_STACKS, 0x1000, 0x10000, 0x800},
		{TRACER_STACKS, 7, 0x10000, 1 << 30},
		{TRACER_STACKS, 0x20000, 0x20000, 1 << 30},
		{TRACER_STACKS, UINT64_MAX, UINT64_MAX, UINT64_MAX},
		{TRACER_STACKS, 1ull << 34, 1ull << 34, 1ull << 34},
		{TRACER_STACKS - 8, 0x1000, 0x10000, 1 << 30},
		{TRACER_ROOM - 0x800, 0x1000, 0x10000, 1 << 30},
		{0, 0x1000, 0x10000, 1 << 30},
		{UINT64_MAX - 0xfff, 0x1000, 0x10000, 1 << 30},
		{UINT64_MAX, 0x1000, 0x10000, 1 << 30},
	};

	for (size_t i = 0; i < sizeof(wild) / sizeof(*wild); i++) {
		AREA_PUT(stacks, wild[i].addr);
		AREA_PUT(stacks_top, wild[i].top);
		AREA_PUT(stacks_committed, wild[i].committed);
		AREA_PUT(stacks_limit, wild[i].limit);
		assert_int_equal(take(), -ERR_TARGET);
		assert_int_equal(tracer_copy_stack(&scene.copy, 1, scene.frames), 0);
	}
	fake.is_dead = true;
	assert_int_equal(take(), -ERR_GONE);
}
