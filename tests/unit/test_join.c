/*
 * Blocks joined with stacks of every source: which one counts, and that nothing is lost.
 */
#include "tests/unit/t.h"

#include "tests/unit/fake_tracer.h"
#include "tests/unit/fake_ust.h"

#include "snapshot/capture/capture_parts.h"
#include "snapshot/stacks/os_stacks.h"

#define HEAP 0x1000000u
#define OTHER_HEAP 0x1100000u
#define FRAME (CODE_BASE + 0x1000u)
#define TRACED_FRAME (CODE_BASE + 0x80000u)

struct scene {
	struct fake fake;
	struct memory memory;
	struct raw_capture captured;
	struct snapshot snapshot;
};

static int set_up(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	const struct heap heaps[] = {{.addr = OTHER_HEAP, .bits = 64, .kind = "nt"},
		{.addr = HEAP, .bits = 64, .kind = "nt", .layout = "row"}};

	assert_non_null(scene);
	ust_place(&scene->fake, 64);
	tracer_place(&scene->fake);
	tracer_place_table(&scene->fake, 0, 6);
	scene->captured = (struct raw_capture){.wants_ust = true, .ust = ust_new()};
	walk_init(&scene->captured.walk);
	tracer_copy_init(&scene->captured.tracer);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(walk_add_heap(&scene->captured.walk, &heaps[i]), 0);
	snapshot_init(&scene->snapshot);
	assert_int_equal(memory_init(&scene->memory, &scene->fake.target), 0);
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	memory_release(&scene->memory);
	walk_release(&scene->captured.walk);
	tracer_copy_release(&scene->captured.tracer);
	ust_free(scene->captured.ust);
	os_stacks_free(scene->captured.os);
	snapshot_release(&scene->snapshot);
	fake_release(&scene->fake);
	free(scene);
	return 0;
}

/* A record with that many frames from first on; 0 frames: it makes no sense. */
static uint64_t put_stack(struct scene *scene, unsigned i, unsigned depth, uint64_t first)
{
	uint64_t addr = RECORDS + i * 0x100;

	put_record(&scene->fake, 64, addr,
		&(struct made_record){.index = 0xffff,
			.depth = depth,
			.frame_count = depth,
			.first_frame = first});
	return addr;
}

static void add(struct scene *scene, uint64_t addr, uint64_t bytes, uint64_t record)
{
	assert_int_equal(walk_add_block(&scene->captured.walk, addr, bytes, 8, record), 0);
}

static void trace(struct scene *scene, unsigned entry, const struct made_block *block)
{
	tracer_put_block(&scene->fake, 0, entry, block);
	scene->captured.source.has_tracer = true;
}

static void join_all(struct scene *scene)
{
	struct raw_capture *captured = &scene->captured;

	if (captured->source.has_tracer)
		assert_int_equal(
			take_tables(&captured->tracer, &scene->fake.target, TRACER_AREA, NULL), 0);
	assert_int_equal(ust_take(captured->ust, &scene->memory, &captured->walk,
				 scene->fake.modules, scene->fake.module_count, 0),
		0);
	assert_int_equal(model_add_blocks(&scene->snapshot, captured), 0);
	describe_stacks(&(struct target){0}, &scene->snapshot, captured);
}

/* The block at addr has that stack. */
static void assert_block(
	const struct scene *scene, uint64_t addr, const char *id, uint32_t depth, uint64_t first)
{
	const struct snapshot *snapshot = &scene->snapshot;

	for (size_t i = 0; i < snapshot->block_count; i++) {
		const struct block *block = &snapshot->blocks[i];
		const struct stack *stack = &snapshot->stacks.stacks[block->stack];

		if (block->addr != addr)
			continue;
		assert_string_equal(stack->id, id);
		assert_int_equal(stack->frame_count, depth);
		for (uint32_t k = 0; k < depth; k++)
			assert_int_equal(stack->frames[k], first + 16 * k);
		return;
	}
	fail_msg("no block at %llX", (unsigned long long)addr);
}

static bool has_warning(const struct scene *scene, const char *words)
{
	for (size_t i = 0; i < scene->snapshot.warning_count; i++) {
		if (strstr(scene->snapshot.warnings[i], words))
			return true;
	}
	return false;
}

#undef TEST_AROUND
#define TEST_AROUND set_up, tear_down

TEST(blocks_have_the_stacks_of_their_records)
{
	struct scene *scene = *state;
	uint64_t one = put_stack(scene, 0, 4, FRAME), two = put_stack(scene, 1, 7, FRAME + 0x500);
	uint64_t broken = put_stack(scene, 2, 0, 0);

	add(scene, 0x3000, 10, one);
	add(scene, 0x3100, 20, one);
	add(scene, 0x3200, 30, two);
	add(scene, 0x3300, 40, 0);
	add(scene, 0x3400, 50, broken);
	add(scene, 0x3500, 60, one);
	join_all(scene);
	assert_int_equal(scene->snapshot.block_count, 4);
	assert_block(scene, 0x3000, "20000010", 4, FRAME);
	assert_block(scene, 0x3100, "20000010", 4, FRAME);
	assert_block(scene, 0x3500, "20000010", 4, FRAME);
	assert_block(scene, 0x3200, "20000110", 7, FRAME + 0x500);
	assert_int_equal(scene->snapshot.heaps[1].stackless.block_count, 2);
	assert_int_equal(scene->snapshot.heaps[1].stackless.requested_bytes, 90);
	assert_int_equal(scene->snapshot.heaps[1].stackless.overhead_bytes, 16);
	assert_int_equal(scene->snapshot.heaps[0].stackless.block_count, 0);
	assert_string_equal(scene->snapshot.heaps[1].layout, "row");
	assert_string_equal(scene->snapshot.stack_source, "ust");
	assert_int_equal(scene->snapshot.records.record_count, 3);
	assert_int_equal(scene->snapshot.records.broken_count, 1);
	assert_true(has_warning(scene, "1 of 3 records of stacks make no sense"));
	assert_int_equal(scene->snapshot.warning_count, 1);
}

TEST(a_stack_that_is_cut_is_there_and_said)
{
	struct scene *scene = *state;
	uint64_t cut = put_stack(scene, 0, 7, FRAME);

	fake_put(&scene->fake, cut + 0x10 + 3 * 8, 0x66, 8); /* its fourth frame */
	add(scene, 0x3000, 10, cut);
	add(scene, 0x3100, 10, put_stack(scene, 1, 7, FRAME));
	join_all(scene);
	assert_block(scene, 0x3000, "20000010", 3, FRAME);
	assert_block(scene, 0x3100, "20000110", 7, FRAME);
	assert_int_equal(scene->snapshot.records.cut_count, 1);
	assert_true(has_warning(scene, "1 of 2 stacks are cut"));
	assert_int_equal(scene->snapshot.warning_count, 1);
}

TEST(what_the_tracer_knows_counts_before_records)
{
	struct scene *scene = *state;
	uint32_t id = tracer_put_stack(&scene->fake, TRACED_FRAME, 5);
	uint64_t one = put_stack(scene, 0, 4, FRAME);
	char text[16];

	snprintf(text, sizeof(text), "%X", id);
	trace(scene, 0, &(struct made_block){0x3000, 10, HEAP, id});
	trace(scene, 1, &(struct made_block){0x3100, 21, HEAP, id}); /* another block's */
	trace(scene, 2, &(struct made_block){0x3200, 30, OTHER_HEAP, id});
	trace(scene, 3, &(struct made_block){0x3300, 40, HEAP, 0x7ffffff}); /* no such stack */
	for (uint64_t i = 0; i < 5; i++)
		add(scene, 0x3000 + i * 0x100, 10 + i * 10, one);
	add(scene, 0x3500, 60, 0);
	join_all(scene);
	assert_block(scene, 0x3000, text, 5, TRACED_FRAME);
	for (uint64_t i = 1; i < 5; i++)
		assert_block(scene, 0x3000 + i * 0x100, "20000010", 4, FRAME);
	assert_int_equal(scene->snapshot.block_count, 5);
	assert_int_equal(scene->snapshot.heaps[1].stackless.block_count, 1);
	assert_string_equal(scene->snapshot.stack_source, "tracer");
	assert_true(has_warning(scene, "2 blocks have another size or heap"));
}

/* It has numbers for a few thousand heaps; then the size alone says whether it is the same block. */
TEST(a_heap_that_the_tracer_has_no_number_for_may_be_any)
{
	struct scene *scene = *state;
	uint32_t id = tracer_put_stack(&scene->fake, TRACED_FRAME, 5);
	char text[16];

	snprintf(text, sizeof(text), "%X", id);
	trace(scene, 0, &(struct made_block){0x3000, 10, 0, id});
	trace(scene, 1, &(struct made_block){0x3100, 21, 0, id}); /* another block's */
	add(scene, 0x3000, 10, 0);
	add(scene, 0x3100, 20, 0);
	join_all(scene);
	assert_int_equal(scene->snapshot.block_count, 1);
	assert_block(scene, 0x3000, text, 5, TRACED_FRAME);
	assert_true(has_warning(scene, "1 blocks have another size or heap"));
}

TEST(records_that_are_not_wanted_are_not_shown)
{
	struct scene *scene = *state;

	scene->captured.wants_ust = false;
	add(scene, 0x3000, 10, put_stack(scene, 0, 4, FRAME));
	join_all(scene);
	assert_int_equal(scene->snapshot.block_count, 0);
	assert_int_equal(scene->snapshot.heaps[1].stackless.block_count, 1);
	assert_string_equal(scene->snapshot.stack_source, "none");
	assert_false(scene->snapshot.records.is_known);
}

/* ---------------------------------------------------------------- the system's own stacks */

static void put_number(unsigned char *to, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = (unsigned char)(value >> 8 * i);
}

/* One block of the system's answer, with its frames. */
static void answer(struct scene *scene, uint64_t addr, uint64_t bytes, uint64_t first)
{
	unsigned char allocation[24] = {0}, frames[64] = {0};

	put_number(allocation, addr, 8);
	put_number(allocation + 16, bytes, 8);
	for (size_t i = 0; i < 3; i++)
		put_number(frames + i * 8, first + i * 16, 8);
	assert_int_equal(os_stacks_put(scene->captured.os, allocation, sizeof(allocation)), 0);
	assert_int_equal(os_stacks_put(scene->captured.os, frames, sizeof(frames)), 0);
}

TEST(the_systems_stacks_are_for_blocks_of_that_size)
{
	struct scene *scene = *state;
	unsigned char init[12] = {3, 0, 0, 0, 3}, header[32] = {1, 0, 8};

	scene->captured.wants_ust = false;
	scene->captured.os = os_stacks_new(1 << 20);
	assert_int_equal(os_stacks_put(scene->captured.os, init, sizeof(init)), 0);
	put_number(header + 8, HEAP, 8);
	assert_int_equal(os_stacks_put(scene->captured.os, header, sizeof(header)), 0);
	answer(scene, 0x3000, 10, FRAME);
	answer(scene, 0x3100, 20, FRAME);
	answer(scene, 0x3200, 31, FRAME + 0x100);
	answer(scene, 0x3300, 40, FRAME + 0x200);
	assert_int_equal(os_stacks_end(scene->captured.os), 0);
	for (uint64_t i = 0; i < 5; i++)
		add(scene, 0x3000 + i * 0x100, 10 + i * 10, 0);
	join_all(scene);
	assert_int_equal(scene->snapshot.block_count, 3);
	assert_block(scene, 0x3000, "1", 3, FRAME);
	assert_block(scene, 0x3100, "1", 3, FRAME);
	assert_block(scene, 0x3300, "2", 3, FRAME + 0x200);
	assert_int_equal(scene->snapshot.heaps[1].stackless.block_count, 2);
	assert_string_equal(scene->snapshot.stack_source, "os");
}

/* ---------------------------------------------------------------- how full the database is */

static void describe_with(
	struct scene *scene, uint64_t failures, uint64_t used_bytes, uint64_t reserved_bytes)
{
	struct ust_database *database;

	snapshot_release(&scene->snapshot);
	snapshot_init(&scene->snapshot);
	walk_clear(&scene->captured.walk);
	walk_add_heap(&scene->captured.walk, &(struct heap){.addr = HEAP, .bits = 64});
	add(scene, 0x3000, 10, put_stack(scene, 0, 4, FRAME));
	assert_int_equal(ust_take(scene->captured.ust, &scene->memory, &scene->captured.walk,
				 scene->fake.modules, scene->fake.module_count, 0),
		0);
	database = (struct ust_database *)&ust_facts(scene->captured.ust)->database;
	*database = (struct ust_database){.addr = 0x5000,
		.entry_count = 100,
		.failure_count = (uint32_t)failures,
		.used_bytes = used_bytes,
		.reserved_bytes = reserved_bytes};
	assert_int_equal(model_add_blocks(&scene->snapshot, &scene->captured), 0);
	describe_stacks(&(struct target){0}, &scene->snapshot, &scene->captured);
}

TEST(a_database_that_is_full_is_warned_of)
{
	struct scene *scene = *state;

	describe_with(scene, 0, 95000000, 100000000);
	assert_int_equal(scene->snapshot.warning_count, 0);
	assert_int_equal(scene->snapshot.records.database, 0x5000);
	assert_int_equal(scene->snapshot.records.used_bytes, 95000000);
	describe_with(scene, 0, 95000200, 100000000);
	assert_true(has_warning(scene, "all but full, at 95000200 of 100000000 bytes"));
	assert_true(has_warning(scene, "--db-mb"));
	describe_with(scene, 17, 1000, 100000000);
	assert_true(has_warning(scene, "no room for those of 17 allocations"));
	assert_true(has_warning(scene, "--db-mb"));
	assert_int_equal(scene->snapshot.warning_count, 1);
}

TEST(of_many_heaps_of_no_known_kind_some_are_named)
{
	struct scene *scene = *state;

	for (uint64_t i = 0; i < 1000; i++)
		walk_add_heap(&scene->captured.walk,
			&(struct heap){.addr = 0x5000000 + i * 0x10000, .unwalked = true});
	describe_gaps(&scene->snapshot, &scene->captured);
	assert_int_equal(scene->snapshot.warning_count, 9);
	assert_true(has_warning(scene, "heap 5000000 is of a kind that cannot be walked"));
	assert_true(has_warning(scene, "992 more heaps are of kinds"));
}
