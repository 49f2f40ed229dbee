/*
 * Records of stacks that blocks point to: how many frames each has, by what makes sense, whatever
 * stands in it.
 */
#include "tests/unit/fake_ust.h"
#include "tests/unit/layout_listing.h"

#include "snapshot/stacks/ust_layout.h"

#define FRAME (CODE_BASE + 0x1000u)
#define HEAP_32 0x1000000u
#define HEAP_64 0x2000000u

struct scene {
	struct fake fake;
	struct memory memory;
	struct walk walk;
	struct ust *ust;
	unsigned bits;
};

static int set_up(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	assert_non_null(scene);
	ust_place(&scene->fake, 64);
	walk_init(&scene->walk);
	scene->ust = ust_new();
	assert_non_null(scene->ust);
	assert_int_equal(memory_init(&scene->memory, &scene->fake.target), 0);
	scene->bits = 64;
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	ust_free(scene->ust);
	walk_release(&scene->walk);
	memory_release(&scene->memory);
	fake_release(&scene->fake);
	free(scene);
	return 0;
}

static void add_heap(struct scene *scene, unsigned bits)
{
	struct heap heap = {.addr = bits == 64 ? HEAP_64 : HEAP_32, .bits = bits, .kind = "nt"};

	assert_int_equal(walk_add_heap(&scene->walk, &heap), 0);
}

static void add_block(struct scene *scene, uint64_t record)
{
	uint64_t addr = 0x3000000 + scene->walk.block_count * 32;

	assert_int_equal(walk_add_block(&scene->walk, addr, 16, 16, record), 0);
}

static void take(struct scene *scene)
{
	assert_int_equal(ust_take(scene->ust, &scene->memory, &scene->walk, scene->fake.modules,
				 scene->fake.module_count, false),
		0);
	assert_int_equal(scene->fake.loose_reads, 0);
}

/* The number of the record at addr that a block of a heap of scene->bits points to. */
static uint32_t number_of(const struct scene *scene, uint64_t addr)
{
	for (size_t i = 0; i < scene->walk.block_count; i++) {
		const struct walked_block *block = &scene->walk.blocks[i];

		if (block->record == addr && scene->walk.heaps[block->heap].bits == scene->bits)
			return ust_number(scene->ust, i);
	}
	fail_msg("no block points to %llX", (unsigned long long)addr);
	return UST_NONE;
}

/* How many frames the record at addr is found to have; each has to be what was placed. */
static uint32_t depth_of(struct scene *scene, uint64_t addr, uint64_t first_frame)
{
	uint32_t number = number_of(scene, addr), count;
	const uint64_t *frames;
	uint64_t first_slot;

	assert_true(number < ust_record_count(scene->ust));
	count = ust_frames(scene->ust, number, &frames, &first_slot);
	assert_true(first_slot == slot_at(scene->bits, addr));
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(frames[i], first_frame + i * 16);
	return count;
}

/* The same for a record alone in a process of 64 and in one of 32 bits. */
static void assert_depth(struct scene *scene, struct made_record record, uint32_t expected)
{
	record.first_frame = record.first_frame ? record.first_frame : FRAME;
	for (scene->bits = 32; scene->bits <= 64; scene->bits += 32) {
		walk_clear(&scene->walk);
		memory_clear(&scene->memory);
		memset(fake_bytes(&scene->fake, RECORDS, 0x400), 0, 0x400);
		put_record(&scene->fake, scene->bits, RECORDS + 0x100, &record);
		add_heap(scene, scene->bits);
		add_block(scene, RECORDS + 0x100);
		take(scene);
		assert_int_equal(depth_of(scene, RECORDS + 0x100, record.first_frame), expected);
		assert_int_equal(ust_record_count(scene->ust), 1);
		assert_int_equal(ust_broken_count(scene->ust), expected == 0);
	}
}

/* ---------------------------------------------------------------- how many frames */

static void depth_counts_when_index_is_no_number_of_frames(void **state)
{
	assert_depth(
		*state, (struct made_record){.index = 0x4711, .depth = 12, .frame_count = 12}, 12);
	assert_depth(*state, (struct made_record){.index = 0, .depth = 32, .frame_count = 32}, 32);
	/* so many frames are not there: what follows is no code */
	assert_depth(*state, (struct made_record){.index = 20, .depth = 12, .frame_count = 12}, 12);
}

static void index_counts_when_depth_is_no_number_of_frames(void **state)
{
	assert_depth(*state, (struct made_record){.index = 9, .depth = 0, .frame_count = 9}, 9);
	assert_depth(
		*state, (struct made_record){.index = 9, .depth = 0xffff, .frame_count = 9}, 9);
	assert_depth(*state, (struct made_record){.index = 9, .depth = 10, .frame_count = 9}, 9);
}

static void of_two_the_one_with_room_in_the_block_counts(void **state)
{
	assert_depth(*state,
		(struct made_record){
			.index = 20, .depth = 10, .block_depth = 10, .frame_count = 24},
		10);
	assert_depth(*state,
		(struct made_record){
			.index = 10, .depth = 20, .block_depth = 10, .frame_count = 24},
		10);
}

static void one_that_is_possible_counts_whatever_the_block_has_room_for(void **state)
{
	assert_depth(
		*state, (struct made_record){.depth = 12, .block_depth = 3, .frame_count = 12}, 12);
	assert_depth(
		*state, (struct made_record){.index = 12, .block_depth = 3, .frame_count = 12}, 12);
}

static void of_two_with_room_depth_counts_in_a_process_that_tells_nothing(void **state)
{
	assert_depth(*state, (struct made_record){.index = 5, .depth = 10, .frame_count = 12}, 10);
	assert_depth(*state, (struct made_record){.index = 10, .depth = 5, .frame_count = 12}, 5);
	assert_depth(*state,
		(struct made_record){.index = 5, .depth = 10, .block_depth = 31, .frame_count = 12},
		10);
}

/* Two records leave the choice, three others do not: what holds for those holds for all. */
static void of_two_with_room_the_one_counts_that_is_possible_more_often(void **state)
{
	struct scene *scene = *state;

	for (int is_index = 0; is_index < 2; is_index++) {
		walk_clear(&scene->walk);
		memory_clear(&scene->memory);
		add_heap(scene, 64);
		for (unsigned i = 0; i < 5; i++) {
			struct made_record record = {
				.frame_count = 14, .index = 14, .depth = 3, .first_frame = FRAME};

			if (i < 3 && is_index)
				record.depth = 0x1234;
			else if (i < 3)
				record.index = 0x1234;
			put_record(&scene->fake, 64, RECORDS + i * 0x200, &record);
			add_block(scene, RECORDS + i * 0x200);
		}
		take(scene);
		assert_int_equal(depth_of(scene, RECORDS + 0x600, FRAME), is_index ? 14 : 3);
		assert_int_equal(depth_of(scene, RECORDS + 0x800, FRAME), is_index ? 14 : 3);
	}
}

static void at_last_frames_count_as_far_as_they_are_code(void **state)
{
	assert_depth(*state,
		(struct made_record){.index = 0xffff, .depth = 0xffff, .frame_count = 7}, 7);
	assert_depth(*state,
		(struct made_record){
			.index = 0xffff, .depth = 0, .block_depth = 4, .frame_count = 7},
		4);
	assert_depth(*state,
		(struct made_record){.index = 33, .depth = 40, .block_depth = 20, .frame_count = 7},
		7);
	assert_depth(*state, (struct made_record){.depth = 0xffff, .frame_count = 40}, 32);
}

static void what_leads_to_no_code_is_no_stack(void **state)
{
	assert_depth(*state,
		(struct made_record){.depth = 4, .frame_count = 4, .first_frame = RECORDS}, 0);
	assert_depth(*state, (struct made_record){.depth = 4, .frame_count = 0}, 0);
}

/* ---------------------------------------------------------------- what is code */

static void a_call_at_the_end_of_a_module_returns_behind_it(void **state)
{
	struct made_record record = {.index = 0xffff,
		.depth = 1,
		.frame_count = 1,
		.first_frame = CODE_BASE + CODE_BYTES};

	assert_depth(*state, record, 1);
	record.first_frame++;
	assert_depth(*state, record, 0);
	record.first_frame = CODE_BASE; /* the call before it would lie outside */
	assert_depth(*state, record, 0);
}

static int jit_region(struct target *target, uint64_t addr, struct target_region *region)
{
	static const struct target_region regions[] = {
		{RECORDS, RECORDS + RECORDS_BYTES, TARGET_READ | TARGET_WRITE, false},
		{0x30000000, 0x30002000, TARGET_READ | TARGET_EXECUTE, false},
		{0x40000000, 0x40001000, TARGET_READ, false},
	};

	(void)target;
	for (size_t i = 0; i < sizeof(regions) / sizeof(*regions); i++) {
		if (addr < regions[i].end) {
			*region = regions[i];
			return 0;
		}
	}
	return -ERR_READ;
}

static void executable_memory_outside_of_modules_is_code(void **state)
{
	struct scene *scene = *state;
	struct target_ops ops = *scene->fake.target.ops;
	struct made_record record = {.index = 0xffff, .depth = 6, .frame_count = 6};

	ops.region = jit_region;
	scene->fake.target.ops = &ops;
	record.first_frame = 0x30001000;
	assert_depth(scene, record, 6);
	record.first_frame = 0x40000100;
	assert_depth(scene, record, 0);
}

/* ---------------------------------------------------------------- records */

static void each_record_is_one_and_bears_umdhs_id(void **state)
{
	struct scene *scene = *state;
	struct made_record record = {
		.index = 0xffff, .depth = 3, .frame_count = 3, .first_frame = FRAME};

	add_heap(scene, 64);
	for (unsigned i = 0; i < 10; i++)
		put_record(&scene->fake, 64, RECORDS + i * 0x40, &record);
	for (unsigned i = 0; i < 1000; i++)
		add_block(scene, RECORDS + i * 7 % 10 * 0x40);
	take(scene);
	assert_int_equal(ust_record_count(scene->ust), 10);
	assert_int_equal(ust_broken_count(scene->ust), 0);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(depth_of(scene, RECORDS + i * 0x40, FRAME), 3);
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(ust_number(scene->ust, i), ust_number(scene->ust, i % 10));
	take(scene); /* what was there before is gone */
	assert_int_equal(ust_record_count(scene->ust), 10);
}

static void values_that_mean_no_stack_are_no_records(void **state)
{
	struct scene *scene = *state;
	const uint64_t nothing[] = {0, 0x01010000, 0x0101000000000000};

	add_heap(scene, 64);
	for (size_t i = 0; i < 3; i++)
		add_block(scene, nothing[i]);
	take(scene);
	assert_int_equal(ust_record_count(scene->ust), 0);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(ust_number(scene->ust, i), UST_NONE);
}

/* One address, pointed to from heaps of both widths: two records, each laid out as its heap's. */
static void a_record_is_laid_out_as_its_heap(void **state)
{
	struct scene *scene = *state;

	put_record(&scene->fake, 64, RECORDS,
		&(struct made_record){
			.index = 0xffff, .depth = 4, .frame_count = 4, .first_frame = FRAME});
	put_record(&scene->fake, 32, RECORDS + 0x400,
		&(struct made_record){
			.index = 0xffff, .depth = 5, .frame_count = 5, .first_frame = FRAME});
	add_heap(scene, 32);
	add_block(scene, RECORDS);
	add_block(scene, RECORDS + 0x400);
	add_heap(scene, 64);
	add_block(scene, RECORDS + 0x400);
	add_block(scene, RECORDS);
	take(scene);
	assert_int_equal(ust_record_count(scene->ust), 4);
	scene->bits = 64;
	assert_int_equal(depth_of(scene, RECORDS, FRAME), 4);
	scene->bits = 32;
	assert_int_equal(depth_of(scene, RECORDS + 0x400, FRAME), 5);
	assert_int_not_equal(ust_number(scene->ust, 0), ust_number(scene->ust, 3));
}

/* ---------------------------------------------------------------- hostile */

static void wild_pointers_are_records_without_frames(void **state)
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
		assert_int_equal(ust_record_count(scene->ust), sizeof(wild) / sizeof(*wild));
		assert_int_equal(ust_broken_count(scene->ust), sizeof(wild) / sizeof(*wild));
		for (uint32_t i = 0; i < ust_record_count(scene->ust); i++)
			assert_int_equal(ust_frames(scene->ust, i, &frames, &slot), 0);
	}
}

static void a_record_at_the_end_of_memory_has_what_is_there(void **state)
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
static void records_that_lie_in_each_other_do_not_multiply_memory(void **state)
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
	assert_int_equal(ust_record_count(scene->ust), RECORDS_BYTES / 8);
	for (uint32_t i = 0; i < ust_record_count(scene->ust); i++)
		frames += ust_frames(scene->ust, i, &list, &slot);
	assert_in_range(frames, RECORDS_BYTES / 8, RECORDS_BYTES / 4);
	assert_true(ust_broken_count(scene->ust) > 0);
}

static void random_memory_harms_nobody(void **state)
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
		for (uint32_t i = 0; i < ust_record_count(scene->ust); i++)
			assert_in_range(ust_frames(scene->ust, i, &frames, &slot), 0, 32);
	}
}

/* ---------------------------------------------------------------- layout */

static void assert_row(const char *listing, const struct ust_layout *row)
{
	const char *entry = "_RTL_STACK_TRACE_ENTRY", *database = "_STACK_TRACE_DATABASE";
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
}

static void both_rows_are_as_public_symbols_have_them(void **state)
{
	(void)state;
	assert_int_equal(ust_layout(32)->bits, 32);
	assert_int_equal(ust_layout(64)->bits, 64);
	listings_or_skip();
	assert_row("r2_ntdll_Win7x86", ust_layout(32));
	assert_row("r2_ntdll_Win10x64", ust_layout(64));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(depth_counts_when_index_is_no_number_of_frames),
		TEST(index_counts_when_depth_is_no_number_of_frames),
		TEST(of_two_the_one_with_room_in_the_block_counts),
		TEST(one_that_is_possible_counts_whatever_the_block_has_room_for),
		TEST(of_two_with_room_depth_counts_in_a_process_that_tells_nothing),
		TEST(of_two_with_room_the_one_counts_that_is_possible_more_often),
		TEST(at_last_frames_count_as_far_as_they_are_code),
		TEST(what_leads_to_no_code_is_no_stack),
		TEST(a_call_at_the_end_of_a_module_returns_behind_it),
		TEST(executable_memory_outside_of_modules_is_code),
		TEST(each_record_is_one_and_bears_umdhs_id),
		TEST(values_that_mean_no_stack_are_no_records),
		TEST(a_record_is_laid_out_as_its_heap),
		TEST(wild_pointers_are_records_without_frames),
		TEST(a_record_at_the_end_of_memory_has_what_is_there),
		TEST(records_that_lie_in_each_other_do_not_multiply_memory),
		TEST(random_memory_harms_nobody),
		cmocka_unit_test(both_rows_are_as_public_symbols_have_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
