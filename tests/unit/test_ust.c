/*
 * Records of stacks that blocks point to: how many frames each has, by what makes sense, whatever
 * stands in it.
 */
#include "tests/unit/t.h"

#include "tests/unit/ust_scene.h"

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
		assert_int_equal(ust_facts(scene->ust)->record_count, 1);
		assert_int_equal(ust_facts(scene->ust)->broken_count, expected == 0);
	}
}

/* ---------------------------------------------------------------- how many frames */

TEST(depth_counts_when_index_is_no_number_of_frames)
{
	assert_depth(
		*state, (struct made_record){.index = 0x4711, .depth = 12, .frame_count = 12}, 12);
	assert_depth(*state, (struct made_record){.index = 0, .depth = 32, .frame_count = 32}, 32);
	/* so many frames are not there: what follows is no code */
	assert_depth(*state, (struct made_record){.index = 20, .depth = 12, .frame_count = 12}, 12);
}

TEST(index_counts_when_depth_is_no_number_of_frames)
{
	assert_depth(*state, (struct made_record){.index = 9, .depth = 0, .frame_count = 9}, 9);
	assert_depth(
		*state, (struct made_record){.index = 9, .depth = 0xffff, .frame_count = 9}, 9);
	assert_depth(*state, (struct made_record){.index = 9, .depth = 10, .frame_count = 9}, 9);
}

TEST(one_that_is_possible_counts_whatever_the_block_has_room_for)
{
	assert_depth(
		*state, (struct made_record){.depth = 12, .block_depth = 3, .frame_count = 12}, 12);
	assert_depth(
		*state, (struct made_record){.index = 12, .block_depth = 3, .frame_count = 12}, 12);
}

/* As programs that were tested on Windows read it; and without flags Depth, as symbols call it. */
TEST(of_two_that_are_possible_the_processs_flags_choose)
{
	struct scene *scene = *state;
	struct made_record records[] = {{.index = 5, .depth = 10, .frame_count = 12},
		{.index = 10, .depth = 5, .frame_count = 12},
		{.index = 5, .depth = 10, .block_depth = 31, .frame_count = 12}};

	for (size_t i = 0; i < 3; i++) {
		scene->global_flag = 0x1070;
		assert_depth(scene, records[i], records[i].index);
		scene->global_flag = 0x2001000;
		assert_depth(scene, records[i], records[i].depth);
		scene->global_flag = 0x2000000;
		assert_depth(scene, records[i], records[i].depth);
		scene->global_flag = 0;
		assert_depth(scene, records[i], records[i].depth);
	}
}

TEST(of_two_that_are_possible_the_one_counts_that_ends_with_the_code)
{
	for (unsigned flag = 0; flag <= 0x1000; flag += 0x1000) {
		((struct scene *)*state)->global_flag = flag;
		assert_depth(*state,
			(struct made_record){.index = 1, .depth = 12, .frame_count = 12}, 12);
		assert_depth(*state,
			(struct made_record){.index = 12, .depth = 1, .frame_count = 12}, 12);
		assert_depth(*state,
			(struct made_record){
				.index = 12, .depth = 4, .block_depth = 4, .frame_count = 12},
			12);
	}
}

TEST(at_last_frames_count_as_far_as_they_are_code)
{
	assert_depth(*state,
		(struct made_record){.index = 0xffff, .depth = 0xffff, .frame_count = 7}, 7);
	assert_depth(*state,
		(struct made_record){
			.index = 0xffff, .depth = 0, .block_depth = 4, .frame_count = 7},
		7);
	assert_depth(*state,
		(struct made_record){.index = 33, .depth = 40, .block_depth = 20, .frame_count = 7},
		7);
	assert_depth(*state, (struct made_record){.depth = 0xffff, .frame_count = 40}, 32);
}

TEST(what_leads_to_no_code_is_no_stack)
{
	assert_depth(*state,
		(struct made_record){.depth = 4, .frame_count = 4, .first_frame = RECORDS}, 0);
	assert_depth(*state, (struct made_record){.depth = 4, .frame_count = 0}, 0);
}

/* ---------------------------------------------------------------- what is code */

TEST(a_call_at_the_end_of_a_module_returns_behind_it)
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

TEST(executable_memory_outside_of_modules_is_code)
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

TEST(each_record_is_one_and_bears_umdhs_id)
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
	assert_int_equal(ust_facts(scene->ust)->record_count, 10);
	assert_int_equal(ust_facts(scene->ust)->broken_count, 0);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(depth_of(scene, RECORDS + i * 0x40, FRAME), 3);
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(ust_number(scene->ust, i), ust_number(scene->ust, i % 10));
	take(scene); /* what was there before is gone */
	assert_int_equal(ust_facts(scene->ust)->record_count, 10);
}

TEST(values_that_mean_no_stack_are_no_records)
{
	struct scene *scene = *state;
	const uint64_t nothing[] = {0, 0x01010000, 0x0101000000000000};

	add_heap(scene, 64);
	for (size_t i = 0; i < 3; i++)
		add_block(scene, nothing[i]);
	take(scene);
	assert_int_equal(ust_facts(scene->ust)->record_count, 0);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(ust_number(scene->ust, i), UST_NONE);
}

/* One address, pointed to from heaps of both widths: two records, each laid out as its heap's. */
TEST(a_record_is_laid_out_as_its_heap)
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
	assert_int_equal(ust_facts(scene->ust)->record_count, 4);
	scene->bits = 64;
	assert_int_equal(depth_of(scene, RECORDS, FRAME), 4);
	scene->bits = 32;
	assert_int_equal(depth_of(scene, RECORDS + 0x400, FRAME), 5);
	assert_int_not_equal(ust_number(scene->ust, 0), ust_number(scene->ust, 3));
}
