/*
 * Records of stacks that are not what they should be, and the table of where their fields lie.
 */
#include "tests/unit/t.h"

#include "tests/unit/layout_listing.h"
#include "tests/unit/ust_scene.h"

#include "snapshot/stacks/ust_layout.h"

/* ---------------------------------------------------------------- hostile */

TEST(wild_pointers_are_records_without_frames)
{
	struct scene *scene = *state;
	const uint64_t wild[] = {1, 0x1000, 0x7fffffffffff, UINT64_MAX, UINT64_MAX - 7,
		UINT64_C(1) << 63, UINT64_C(1) << 47, RECORDS + 4, RECORDS + 1,
		RECORDS + RECORDS_BYTES, RECORDS + RECORDS_BYTES - 8, 0xfffffff8};
	const uint64_t *frames;
	uint64_t slot;

	for (scene->bits = 32; scene->bits <= 64; scene->bits += 32) {
		walk_clear(&scene->walk);
		add_heap(scene, scene->bits);
		for (size_t i = 0; i < sizeof(wild) / sizeof(*wild); i++)
			add_block(scene, wild[i]);
		take(scene);
		assert_int_equal(ust_facts(scene->ust)->record_count, sizeof(wild) / sizeof(*wild));
		assert_int_equal(ust_facts(scene->ust)->broken_count, sizeof(wild) / sizeof(*wild));
		for (uint32_t i = 0; i < ust_facts(scene->ust)->record_count; i++)
			assert_int_equal(ust_frames(scene->ust, i, &frames, &slot), 0);
	}
}

TEST(a_record_at_the_end_of_memory_has_what_is_there)
{
	struct scene *scene = *state;
	uint64_t addr = RECORDS + RECORDS_BYTES - 0x10 - 5 * 8;

	add_heap(scene, 64);
	put_record(&scene->fake, 64, addr,
		&(struct made_record){
			.index = 0xffff, .depth = 5, .frame_count = 5, .first_frame = FRAME});
	add_block(scene, addr);
	take(scene);
	assert_int_equal(depth_of(scene, addr, FRAME), 5);
	fake_put(&scene->fake, addr + 0xe, 32, 2); /* says more than there is memory */
	memory_clear(&scene->memory);
	take(scene);
	assert_int_equal(depth_of(scene, addr, FRAME), 5);
}

static int small_region(struct target *target, uint64_t addr, struct target_region *region)
{
	(void)target;
	if (addr >= RECORDS + RECORDS_BYTES)
		return -ERR_READ;
	*region = (struct target_region){
		RECORDS, RECORDS + RECORDS_BYTES, TARGET_READ | TARGET_WRITE, false};
	return 0;
}

/* Every word of memory that holds nothing but code addresses is pointed to as a record of 32 frames. */
TEST(records_that_lie_in_each_other_do_not_multiply_memory)
{
	struct scene *scene = *state;
	struct target_ops ops = *scene->fake.target.ops;
	const uint64_t *list;
	uint64_t frames = 0, slot;

	ops.region = small_region;
	scene->fake.target.ops = &ops;
	add_heap(scene, 64);
	for (uint64_t at = RECORDS; at < RECORDS + RECORDS_BYTES; at += 8) {
		fake_put(&scene->fake, at, FRAME, 8);
		add_block(scene, at);
	}
	take(scene);
	assert_int_equal(ust_facts(scene->ust)->record_count, RECORDS_BYTES / 8);
	for (uint32_t i = 0; i < ust_facts(scene->ust)->record_count; i++)
		frames += ust_frames(scene->ust, i, &list, &slot);
	assert_in_range(frames, RECORDS_BYTES / 8, RECORDS_BYTES / 4);
	assert_true(ust_facts(scene->ust)->broken_count > 0);
}

TEST(random_memory_harms_nobody)
{
	struct scene *scene = *state;
	uint64_t seed = 99, slot;
	const uint64_t *frames;

	for (int round = 0; round < 50; round++) {
		unsigned char *bytes = fake_bytes(&scene->fake, RECORDS, RECORDS_BYTES);

		for (size_t i = 0; i < RECORDS_BYTES; i += 8) {
			uint64_t dice = fake_random(&seed), value = dice;

			if (dice % 4)
				value = CODE_BASE + dice % CODE_BYTES;
			memcpy(bytes + i, &value, sizeof(value));
		}
		walk_clear(&scene->walk);
		memory_clear(&scene->memory);
		add_heap(scene, round % 2 ? 32 : 64);
		for (int i = 0; i < 2000; i++)
			add_block(scene, RECORDS + fake_random(&seed) % RECORDS_BYTES);
		take(scene);
		for (uint32_t i = 0; i < ust_facts(scene->ust)->record_count; i++)
			assert_in_range(ust_frames(scene->ust, i, &frames, &slot), 0, 32);
	}
}

/* ---------------------------------------------------------------- layout */

static void assert_row(const char *listing, const struct ust_layout *row)
{
	const char *entry = "_RTL_STACK_TRACE_ENTRY", *database = "_STACK_TRACE_DATABASE";
	const char *trace = "_RTL_TRACE_BLOCK";
	const struct {
		const char *structure, *field;
		uint16_t offset;
	} fields[] = {
		{entry, "TraceCount", row->trace_count},
		{entry, "BlockDepth", row->trace_count},
		{entry, "IndexHigh", row->index_high},
		{entry, "Index", row->index},
		{entry, "Depth", row->depth},
		{entry, "BackTrace", row->frames},
		{trace, "Count", row->trace_number},
		{trace, "Size", row->trace_size},
		{trace, "Trace", row->trace_frames},
		{database, "CommitBase", row->commit_base},
		{database, "CurrentLowerCommitLimit", row->lower_commit},
		{database, "CurrentUpperCommitLimit", row->upper_commit},
		{database, "NextFreeLowerMemory", row->lower_free},
		{database, "NextFreeUpperMemory", row->upper_free},
		{database, "NumberOfEntriesLookedUp", row->lookups},
		{database, "NumberOfEntriesAdded", row->added},
		{database, "EntryIndexArray", row->index_array},
		{database, "NumberOfAllocationFailures", row->failures},
		{database, "NumberOfBuckets", row->bucket_count},
		{database, "Buckets", row->buckets},
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		assert_listed(listing, fields[i].structure, fields[i].field, fields[i].offset);
	assert_listed(listing, "_RTL_STD_LIST_HEAD", "Lock", row->bits / 8);
	assert_int_equal(row->bucket_bytes, row->bits / 4);
	assert_int_equal(row->trace_bytes, row->trace_frames + row->bits / 8);
}

TEST_WITH(both_rows_are_as_public_symbols_have_them, NULL, NULL)
{
	assert_int_equal(ust_layout(32)->bits, 32);
	assert_int_equal(ust_layout(64)->bits, 64);
	listings_or_skip();
	assert_row("r2_ntdll_Win7x86", ust_layout(32));
	assert_row("r2_ntdll_Win10x64", ust_layout(64));
}
