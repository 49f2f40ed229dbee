/*
 * What a tracer knows beside blocks in heaps, in a snapshot: virtual memory, modules that are gone,
 * and samples, whose figures are estimates.
 */
#include "tests/unit/t.h"

#include "tests/unit/fake_tracer.h"

#include "snapshot/capture/capture_parts.h"

#define HEAP 0x1000000u
#define UNWALKED 0x1100000u

struct scene {
	struct fake fake;
	struct raw_capture captured;
	struct snapshot snapshot;
};

static int set_up(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	const struct heap heaps[] = {{.addr = HEAP, .bits = 64, .kind = "nt"},
		{.addr = UNWALKED, .bits = 64, .kind = "unknown", .unwalked = true}};

	assert_non_null(scene);
	fake_init(&scene->fake);
	tracer_place(&scene->fake);
	tracer_place_others(&scene->fake);
	tracer_place_table(&scene->fake, 0, 12);
	scene->fake.is_held = true;
	scene->captured = (struct raw_capture){.source.has_tracer = true, .ust = ust_new()};
	walk_init(&scene->captured.walk);
	tracer_copy_init(&scene->captured.tracer);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(walk_add_heap(&scene->captured.walk, &heaps[1 - i]), 0);
	snapshot_init(&scene->snapshot);
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	walk_release(&scene->captured.walk);
	tracer_copy_release(&scene->captured.tracer);
	ust_free(scene->captured.ust);
	snapshot_release(&scene->snapshot);
	fake_release(&scene->fake);
	free(scene);
	return 0;
}

static void join_all(struct scene *scene)
{
	struct raw_capture *captured = &scene->captured;

	assert_int_equal(take_tables(&captured->tracer, &scene->fake.target, TRACER_AREA, NULL), 0);
	assert_int_equal(model_add_blocks(&scene->snapshot, captured), 0);
	describe_stacks(&(struct target){0}, &scene->snapshot, captured);
	describe_gaps(&scene->snapshot, captured);
}

static bool has_warning(const struct scene *scene, const char *words)
{
	for (size_t i = 0; i < scene->snapshot.warning_count; i++) {
		if (strstr(scene->snapshot.warnings[i], words))
			return true;
	}
	return false;
}

static const struct heap *heap_at(const struct scene *scene, uint64_t addr)
{
	for (size_t i = 0; i < scene->snapshot.heap_count; i++) {
		if (scene->snapshot.heaps[i].addr == addr)
			return &scene->snapshot.heaps[i];
	}
	return NULL;
}

static const struct block *block_at(const struct scene *scene, uint64_t addr)
{
	for (size_t i = 0; i < scene->snapshot.block_count; i++) {
		if (scene->snapshot.blocks[i].addr == addr)
			return &scene->snapshot.blocks[i];
	}
	return NULL;
}

/* ---------------------------------------------------------------- virtual memory */

static void assert_range(
	const struct scene *scene, uint64_t addr, uint64_t bytes, uint64_t heap, uint64_t frame)
{
	const struct block *block = block_at(scene, addr);

	assert_non_null(block);
	assert_int_equal(block->requested_bytes, bytes);
	assert_int_equal(block->overhead_bytes, 0);
	assert_int_equal(scene->snapshot.heaps[block->heap].addr, heap);
	assert_int_equal(scene->snapshot.stacks.stacks[block->stack].frames[0], frame);
}

#undef TEST_AROUND
#define TEST_AROUND set_up, tear_down

TEST(each_range_is_a_block_under_its_heading)
{
	struct scene *scene = *state;
	uint32_t one = tracer_put_stack(&scene->fake, 0x140001000, 3),
		 two = tracer_put_stack(&scene->fake, 0x140002000, 3);
	const struct heap *heap;

	tracer_put_range(&scene->fake, 0x30000, 0x50000, RANGE_COMMITTED, one);
	tracer_put_range(&scene->fake, 0x50000, 0x90000, RANGE_RESERVED, two);
	tracer_put_range(&scene->fake, 0x10000, 0x11000, RANGE_COMMITTED, two);
	tracer_put_range(&scene->fake, 0x900000, 0xa00000, RANGE_MAPPED, one);
	tracer_put_range(&scene->fake, 0x700000, 0x800000, RANGE_NONE, one);
	tracer_put_range(&scene->fake, 0xb00000, 0xb01000, RANGE_COMMITTED, 0);
	join_all(scene);
	assert_int_equal(scene->snapshot.block_count, 4);
	assert_range(scene, 0x30000, 0x20000, HEAP_VIRTUAL, 0x140001000);
	assert_range(scene, 0x10000, 0x1000, HEAP_VIRTUAL, 0x140002000);
	assert_range(scene, 0x50000, 0x40000, HEAP_RESERVED, 0x140002000);
	assert_range(scene, 0x900000, 0x100000, HEAP_MAPPED, 0x140001000);
	heap = heap_at(scene, HEAP_VIRTUAL);
	assert_string_equal(heap->kind, "virtual");
	assert_int_equal(heap->committed_bytes, 0x22000);
	assert_int_equal(heap->reserved_bytes, 0x22000);
	assert_int_equal(heap->stackless.block_count, 1);
	assert_int_equal(heap->stackless.requested_bytes, 0x1000);
	heap = heap_at(scene, HEAP_RESERVED);
	assert_string_equal(heap->kind, "reserved");
	assert_int_equal(heap->committed_bytes, 0);
	assert_int_equal(heap->reserved_bytes, 0x40000);
	assert_string_equal(heap_at(scene, HEAP_MAPPED)->kind, "mapped");
}

TEST(headings_are_there_when_virtual_memory_is_recorded)
{
	struct scene *scene = *state;

	join_all(scene);
	assert_null(heap_at(scene, HEAP_VIRTUAL));
	snapshot_release(&scene->snapshot);
	snapshot_init(&scene->snapshot);
	fake_put(&scene->fake,
		TRACER_AREA + offsetof(struct tracer_area, hooks) +
			HOOK_VIRTUAL_ALLOCATE * sizeof(struct tracer_hook) +
			offsetof(struct tracer_hook, patch_bytes),
		12, 4);
	join_all(scene);
	assert_int_equal(scene->snapshot.heap_count, 5);
	assert_int_equal(heap_at(scene, HEAP_MAPPED)->reserved_bytes, 0);
}

TEST(ranges_that_make_no_sense_are_left_out_and_counted)
{
	struct scene *scene = *state;
	uint32_t stack = tracer_put_stack(&scene->fake, 0x140001000, 3);

	tracer_put_range(&scene->fake, 0x30000, 0x50000, RANGE_COMMITTED, stack);
	tracer_put_range(&scene->fake, 0x4f000, 0x60000, RANGE_COMMITTED, stack);
	tracer_put_range(&scene->fake, 0x70000, 0x70000, RANGE_COMMITTED, stack);
	tracer_put_range(&scene->fake, 0x90000, 0x80000, RANGE_MAPPED, stack);
	tracer_put_range(&scene->fake, 0xa0000, 0xb0000, 4, stack);
	tracer_put_range(&scene->fake, 0xc0000, UINT64_MAX, RANGE_RESERVED, stack);
	join_all(scene);
	assert_int_equal(scene->snapshot.block_count, 1);
	assert_range(scene, 0x30000, 0x20000, HEAP_VIRTUAL, 0x140001000);
	assert_true(has_warning(scene, "5 ranges of virtual memory in the tracer's table"));
}

/* A range that is just being freed is listed, but where somebody else has got its memory by now. */
TEST(ranges_that_are_being_freed_yield_to_live_ones)
{
	struct scene *scene = *state;
	uint32_t dead = tracer_put_stack(&scene->fake, 0x140001000, 3);
	uint32_t live = tracer_put_stack(&scene->fake, 0x140002000, 3);

	tracer_put_range(&scene->fake, 0x30000, 0x50000, RANGE_COMMITTED | RANGE_TAKEN, dead);
	tracer_put_range(&scene->fake, 0x40000, 0x60000, RANGE_COMMITTED, live);
	tracer_put_range(&scene->fake, 0x70000, 0x80000, RANGE_COMMITTED | RANGE_TAKEN, dead);
	tracer_put_range(&scene->fake, 0x70000, 0x80000, RANGE_COMMITTED, live);
	tracer_put_range(&scene->fake, 0x90000, 0x94000, RANGE_COMMITTED, live);
	tracer_put_range(&scene->fake, 0x93000, 0x95000, RANGE_COMMITTED | RANGE_TAKEN, dead);
	/* Freed twice, and refused or not yet asked for: */
	tracer_put_range(&scene->fake, 0xa0000, 0xb0000, RANGE_COMMITTED | RANGE_TAKEN, dead);
	tracer_put_range(&scene->fake, 0xa0000, 0xb0000, RANGE_COMMITTED | RANGE_TAKEN, dead);
	tracer_put_range(&scene->fake, 0x10000, 0x20000, RANGE_MAPPED | RANGE_TAKEN, dead);
	join_all(scene);
	assert_int_equal(scene->snapshot.block_count, 5);
	assert_range(scene, 0x10000, 0x10000, HEAP_MAPPED, 0x140001000);
	assert_range(scene, 0x40000, 0x20000, HEAP_VIRTUAL, 0x140002000);
	assert_range(scene, 0x70000, 0x10000, HEAP_VIRTUAL, 0x140002000);
	assert_range(scene, 0x90000, 0x4000, HEAP_VIRTUAL, 0x140002000);
	assert_range(scene, 0xa0000, 0x10000, HEAP_VIRTUAL, 0x140001000);
	assert_false(has_warning(scene, "make no sense"));
}

/* ---------------------------------------------------------------- modules that are gone */

TEST(frames_in_modules_that_are_gone_keep_module_and_offset)
{
	struct scene *scene = *state;
	uint32_t before = tracer_put_stack(&scene->fake, 0x180000123, 2), after;
	const struct snapshot *snapshot = &scene->snapshot;
	const struct stack *stacks;
	const struct module *module;

	tracer_put_unload(&scene->fake, "C:\\app\\plug.dll", 0x180000000, 0x20000);
	tracer_put_unload(&scene->fake, "C:\\app\\unused.dll", 0x190000000, 0x20000);
	after = tracer_put_stack(&scene->fake, 0x180000123, 2);
	fake_put(&scene->fake, TRACER_STACKS + after * 8ull + offsetof(struct tracer_stack, born),
		2, 4);
	tracer_put_range(&scene->fake, 0x10000, 0x20000, RANGE_COMMITTED, before);
	tracer_put_range(&scene->fake, 0x20000, 0x30000, RANGE_COMMITTED, after);
	join_all(scene);
	stacks = snapshot->stacks.stacks;
	assert_int_equal(snapshot->module_count, 1);
	module = &snapshot->modules[0];
	assert_string_equal(module->path, "C:\\app\\plug.dll");
	assert_int_equal(module->unloaded_at, 0x180000000);
	assert_int_equal(stacks[block_at(scene, 0x10000)->stack].frames[0], module->base + 0x123);
	assert_int_equal(stacks[block_at(scene, 0x10000)->stack].frames[1], module->base + 0x133);
	assert_int_equal(stacks[block_at(scene, 0x20000)->stack].frames[0], 0x180000123);
}

TEST(frames_where_unloads_found_no_room_are_in_no_module)
{
	struct scene *scene = *state;
	uint32_t stack = tracer_put_stack(&scene->fake, 0x180000123, 2);
	const struct snapshot *snapshot = &scene->snapshot;

	AREA_PUT(&scene->fake, unload_limit, 0);
	AREA_PUT(&scene->fake, unload_count, 3);
	AREA_PUT(&scene->fake, lost_from, 0x180000000);
	AREA_PUT(&scene->fake, lost_to, 0x180000130);
	tracer_put_range(&scene->fake, 0x10000, 0x20000, RANGE_COMMITTED, stack);
	join_all(scene);
	assert_int_equal(snapshot->stacks.stacks[0].frames[0], TRACER_LOST_BASE + 0x180000123);
	assert_int_equal(snapshot->stacks.stacks[0].frames[1], 0x180000133);
}

TEST(blocks_of_heaps_that_were_destroyed_are_not_there)
{
	struct scene *scene = *state;
	uint32_t stack = tracer_put_stack(&scene->fake, 0x140001000, 2);
	unsigned index = tracer_heap_index(&scene->fake, UNWALKED);

	tracer_put_block(&scene->fake, 0, 0, &(struct made_block){0x5000, 50, UNWALKED, stack});
	AREA_PUT(&scene->fake, heaps[index], UNWALKED + TRACER_HEAP_DEAD);
	join_all(scene);
	assert_int_equal(scene->captured.tracer.block_count, 0);
	assert_int_equal(scene->snapshot.block_count, 0);
}

/* ---------------------------------------------------------------- samples */

TEST(what_one_stands_for_is_as_likely_as_it_was_recorded)
{
	/* 1 / (1 - exp(-s / m)), worked out to 12 digits with bc. */
	assert_true(sample_weight(1024, 1024) > 1.581976706869 - 1e-11);
	assert_true(sample_weight(1024, 1024) < 1.581976706869 + 1e-11);
	assert_true(sample_weight(10, 1000) > 100.500833331944 - 1e-9);
	assert_true(sample_weight(10, 1000) < 100.500833331944 + 1e-9);
	assert_true(sample_weight(5000, 1000) > 1.006783654906 - 1e-11);
	assert_true(sample_weight(5000, 1000) < 1.006783654906 + 1e-11);
	assert_true(sample_weight(UINT64_MAX, 1) == 1);
	/* Seldom: m / s + 1 / 2. */
	assert_true(sample_weight(1, 1u << 30) > (1u << 30) + 0.499);
	assert_true(sample_weight(1, 1u << 30) < (1u << 30) + 0.501);
	assert_true(sample_weight(0, 512) == sample_weight(1, 512));
}

static void add(struct scene *scene, uint64_t addr, uint64_t bytes)
{
	assert_int_equal(walk_add_block(&scene->captured.walk, addr, bytes, 8 + bytes % 8, 0), 0);
}

TEST(estimates_add_up_to_what_was_recorded_scaled)
{
	struct scene *scene = *state;
	uint32_t stacks[5];
	double count = 0, bytes = 0;
	uint64_t got_count = 0, got_bytes = 0, largest = 0, seed = 7;
	struct block_totals exact = {0};

	AREA_PUT(&scene->fake, sample_bytes, 4096);
	for (unsigned i = 0; i < 5; i++)
		stacks[i] = tracer_put_stack(&scene->fake, 0x140001000 + i * 0x1000, 3);
	for (unsigned i = 0; i < 3000; i++) {
		uint64_t size = fake_random(&seed) % 40 * (fake_random(&seed) % 100);

		add(scene, 0x2000000 + i * 0x2000, size);
		block_totals_add(&exact, &(struct block_totals){1, size, 8 + size % 8});
		if (i % 7)
			continue;
		tracer_put_block(&scene->fake, 0, i,
			&(struct made_block){0x2000000 + i * 0x2000, size, HEAP, stacks[i % 5]});
		count += sample_weight(size, 4096);
		bytes += sample_weight(size, 4096) * (double)size;
		largest = size > largest ? size : largest;
	}
	join_all(scene);
	assert_int_equal(scene->snapshot.block_count, 0);
	for (size_t i = 0; i < scene->snapshot.sum_count; i++) {
		const struct block_sum *sum = &scene->snapshot.sums[i];

		assert_true(sum->block_count > 0);
		assert_int_equal(sum->requested_bytes % sum->block_count, 0);
		assert_int_equal(sum->overhead_bytes,
			sum->block_count * (8 + sum->requested_bytes / sum->block_count % 8));
		got_count += sum->block_count;
		got_bytes += sum->requested_bytes;
	}
	assert_true((double)got_count > count - 0.51 && (double)got_count < count + 0.51);
	assert_true((double)got_bytes > bytes - 0.51 * (double)largest);
	assert_true((double)got_bytes < bytes + 0.51 * (double)largest);
	assert_true(heap_at(scene, HEAP)->has_exact);
	assert_memory_equal(&heap_at(scene, HEAP)->exact, &exact, sizeof(exact));
	assert_int_equal(heap_at(scene, HEAP)->stackless.block_count, 0);
	assert_true(has_warning(scene, "figures are estimates: one in 4096 bytes"));
}

TEST(what_was_recorded_in_a_heap_without_a_number_is_scaled_too)
{
	struct scene *scene = *state;
	uint32_t stack = tracer_put_stack(&scene->fake, 0x140001000, 3);

	AREA_PUT(&scene->fake, sample_bytes, 1);
	add(scene, 0x2000000, 4096);
	add(scene, 0x2002000, 4096);
	tracer_put_block(&scene->fake, 0, 0, &(struct made_block){0x2000000, 4096, 0, stack});
	tracer_put_block(&scene->fake, 0, 1, &(struct made_block){0x2002000, 4095, 0, stack});
	join_all(scene);
	assert_int_equal(scene->snapshot.sum_count, 1);
	assert_int_equal(scene->snapshot.sums[0].block_count, 1);
	assert_int_equal(scene->snapshot.sums[0].requested_bytes, 4096);
}

TEST(of_a_sample_what_has_no_stack_is_scaled_too)
{
	struct scene *scene = *state;
	uint32_t stack = tracer_put_stack(&scene->fake, 0x140001000, 3);

	AREA_PUT(&scene->fake, sample_bytes, 100000);
	add(scene, 0x3000, 1000);
	add(scene, 0x4000, 1000);
	tracer_put_block(&scene->fake, 0, 0, &(struct made_block){0x3000, 1000, HEAP, 0});
	tracer_put_block(&scene->fake, 0, 1, &(struct made_block){0x4000, 999, HEAP, stack});
	tracer_put_block(&scene->fake, 0, 2, &(struct made_block){0x5000, 50, UNWALKED, stack});
	join_all(scene);
	/* 1 / (1 - exp(-1 / 100)) is 100.5, 1 / (1 - exp(-1 / 2000)) is 2000.5. */
	assert_int_equal(scene->snapshot.sum_count, 1);
	assert_int_equal(
		scene->snapshot.sums[0].block_count + heap_at(scene, HEAP)->stackless.block_count,
		2101);
	assert_true(heap_at(scene, HEAP)->stackless.block_count - 100 <= 1);
	assert_int_equal(
		scene->snapshot.sums[0].requested_bytes, 50 * scene->snapshot.sums[0].block_count);
	assert_int_equal(scene->snapshot.sums[0].overhead_bytes, 0);
	assert_false(heap_at(scene, UNWALKED)->has_exact);
}

TEST(an_absurd_sample_is_damage)
{
	struct scene *scene = *state;

	AREA_PUT(&scene->fake, sample_bytes, (1ull << 40) + 1);
	assert_int_equal(
		take_tables(&scene->captured.tracer, &scene->fake.target, TRACER_AREA, NULL),
		-ERR_TARGET);
}

/* ---------------------------------------------------------------- what is said of it */

TEST(blocks_from_before_it_came_are_counted_and_no_gap)
{
	struct scene *scene = *state;
	uint32_t stack = tracer_put_stack(&scene->fake, 0x140001000, 3);

	AREA_PUT(&scene->fake, flags, TRACER_FLAG_ATTACHED);
	add(scene, 0x3000, 1000);
	add(scene, 0x4000, 1001);
	add(scene, 0x5000, 1002);
	tracer_put_block(&scene->fake, 0, 1, &(struct made_block){0x4000, 1001, HEAP, stack});
	scene->captured.walk.heaps[0].unwalked = false;
	join_all(scene);
	assert_true(scene->snapshot.tracer.is_attached);
	assert_int_equal(scene->snapshot.tracer.before.block_count, 2);
	assert_int_equal(scene->snapshot.tracer.before.requested_bytes, 2002);
	assert_int_equal(scene->snapshot.warning_count, 0);
}

TEST(whatever_it_dropped_is_said_with_the_remedy)
{
	struct scene *scene = *state;

	AREA_PUT(&scene->fake, dropped_blocks, 11);
	AREA_PUT(&scene->fake, dropped_stacks, 12);
	AREA_PUT(&scene->fake, dropped_ranges, 13);
	AREA_PUT(&scene->fake, dropped_unloads, 14);
	AREA_PUT(&scene->fake, unwind_mismatches, 15);
	scene->captured.walk.heaps[0].unwalked = false;
	join_all(scene);
	assert_true(has_warning(scene, "no room for 11 blocks"));
	assert_true(has_warning(scene, "the stacks of 12 blocks; give its tables more room with "
				       "--max-mb"));
	assert_true(has_warning(scene, "no room for 13 ranges"));
	assert_true(has_warning(scene, "no room for 14 modules"));
	assert_true(has_warning(scene, "15 times"));
	assert_int_equal(scene->snapshot.warning_count, 5);
}

/* More room would not help: what came after counts as dropped, and was not for want of it. */
TEST(ranges_left_locked_are_said_without_the_wrong_remedy)
{
	struct scene *scene = *state;

	AREA_PUT(&scene->fake, dropped_ranges, 13);
	AREA_PUT(&scene->fake, ranges.broken, 1);
	scene->captured.walk.heaps[0].unwalked = false;
	join_all(scene);
	assert_true(has_warning(scene, "left locked by a thread that ended; ranges are as they "
				       "were then"));
	assert_true(has_warning(scene, "13 changes"));
	assert_false(has_warning(scene, "--max-mb"));
	assert_int_equal(scene->snapshot.warning_count, 1);
}
