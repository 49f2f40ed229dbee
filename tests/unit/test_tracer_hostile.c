/*
 * A tracer's area and tables, damaged at random: whatever they say, reading them ends soon, takes no
 * more memory than there is to read, and what comes out is in itself sound.
 */
#include "tests/unit/t.h"

#include "tests/unit/fake_tracer.h"

#include "snapshot/capture/capture_parts.h"

#define ROUNDS 1500
#define HEAP 0x1000000u

/* Of the made area: what may be damaged, from the head to the shards. */
#define AREA_BYTES offsetof(struct tracer_area, heaps)

static void place(struct fake *fake)
{
	uint32_t stacks[8];

	fake_init(fake);
	tracer_place(fake);
	tracer_place_others(fake);
	for (unsigned i = 0; i < 8; i++)
		stacks[i] = tracer_put_stack(fake, 0x180000000 + 0x1000 * i, 1 + i * 9);
	for (unsigned shard = 0; shard < 6; shard++) {
		tracer_place_table(fake, shard, 5);
		for (unsigned i = 0; i < 20; i++)
			tracer_put_block(fake, shard, i,
				&(struct made_block){0x2000000 + shard * 0x10000 + i * 0x100,
					i * 10, HEAP, stacks[i % 8]});
	}
	for (unsigned i = 0; i < 20; i++)
		tracer_put_range(fake, 0x10000 * i, 0x10000 * i + 0x8000, i % 4, stacks[i % 8]);
	for (unsigned i = 0; i < 6; i++)
		tracer_put_unload(fake, "C:\\plug.dll", 0x180000000 + 0x1000 * i, 0x8000);
	fake->is_held = true;
}

/* Numbers that are at the edge of something more often than others. */
static uint64_t wild(uint64_t *seed)
{
	static const uint64_t edges[] = {0, 1, 7, 8, 63, 64, 0xffff, 0x10000, UINT32_MAX,
		TRACER_ROOM, TRACER_STACKS, TRACER_TABLES | 5, TRACER_TABLES | 26, TRACER_RANGES,
		TRACER_ROOM + TRACER_ROOM_BYTES - 1, 1ull << 40, 1ull << 47, INT64_MAX, UINT64_MAX,
		UINT64_MAX - 63};
	uint64_t random = fake_random(seed);

	return random % 3 ? edges[random % (sizeof(edges) / sizeof(*edges))] :
			    fake_random(seed) << 16 ^ random;
}

static void damage(struct fake *fake, uint64_t *seed)
{
	static const struct {
		uint64_t addr, bytes;
	} parts[] = {{TRACER_AREA + 24, AREA_BYTES - 24}, {TRACER_AREA + 24, 320},
		{TRACER_STACKS, 0x1000}, {TRACER_TABLES, 512}, {TRACER_RANGES, 1000},
		{TRACER_MODULES, 400}, {TRACER_UNLOADS, 144}};

	for (unsigned i = 0; i <= fake_random(seed) % 4; i++) {
		size_t part = fake_random(seed) % (sizeof(parts) / sizeof(*parts));
		uint64_t at =
			parts[part].addr + fake_random(seed) % (parts[part].bytes - 8) / 4 * 4;

		fake_put(fake, at, wild(seed), fake_random(seed) % 2 ? 8 : 4);
	}
}

static void assert_sound(const struct tracer_copy *copy)
{
	uint64_t frames[TRACER_DEPTH_MAX];

	for (size_t i = 1; i < copy->block_count; i++)
		assert_true(tracer_block_addr(&copy->blocks[i - 1]) <
			    tracer_block_addr(&copy->blocks[i]));
	for (size_t i = 0; i < copy->ranges.count; i++) {
		assert_true(copy->ranges.items[i].start < copy->ranges.items[i].end);
		assert_true(!i || copy->ranges.items[i - 1].end <= copy->ranges.items[i].start);
	}
	for (uint32_t id = 0; id < 600; id++)
		assert_true(tracer_copy_stack(copy, id, frames) <= TRACER_DEPTH_MAX);
}

static int join_it(struct raw_capture *captured)
{
	struct snapshot snapshot;
	int rc;

	snapshot_init(&snapshot);
	rc = model_add_blocks(&snapshot, captured);
	if (!rc)
		assert_true(snapshot.block_count <= captured->walk.block_count +
							    captured->tracer.block_count +
							    captured->tracer.ranges.count);
	snapshot_release(&snapshot);
	return rc;
}

TEST(a_damaged_tracer_harms_nobody)
{
	uint64_t seed = 20261120;
	unsigned sound = 0, refused = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		struct raw_capture captured = {.source.has_tracer = true, .ust = ust_new()};
		const struct heap heap = {.addr = HEAP, .kind = "unknown", .unwalked = true};
		struct fake fake;
		int rc;

		place(&fake);
		damage(&fake, &seed);
		walk_init(&captured.walk);
		tracer_copy_init(&captured.tracer);
		assert_int_equal(walk_add_heap(&captured.walk, &heap), 0);
		rc = take_tables(&captured.tracer, &fake.target, TRACER_AREA, NULL);
		assert_true(!rc || rc == -ERR_TARGET);
		assert_true(fake.reads < 200);
		assert_true(fake.got_bytes < 1 << 20);
		if (!rc) {
			tracer_copy_sort(&captured.tracer);
			assert_sound(&captured.tracer);
			assert_int_equal(join_it(&captured), 0);
		}
		sound += !rc;
		refused += rc != 0;
		walk_release(&captured.walk);
		tracer_copy_release(&captured.tracer);
		ust_free(captured.ust);
		fake_release(&fake);
	}
	assert_true(sound > ROUNDS / 10 && refused > ROUNDS / 10);
}
