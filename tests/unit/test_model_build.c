#include "tests/unit/t.h"

#include "tests/unit/fake_tracer.h"
#include "tests/unit/fake_ust.h"

#include "snapshot/capture/capture_parts.h"

#define HEAP 0x1000000u
#define OTHER_HEAP 0x1100000u
#define UNWALKED 0x1200000u
#define FRAME (CODE_BASE + 0x1000u)
#define TRACED_FRAME (CODE_BASE + 0x80000u)

struct scene {
	struct memory memory;
	struct raw_capture captured;
	struct snapshot snapshot;
};

static struct scene scene;

static void begin_capture(const struct heap heaps[2])
{
	memset(&scene, 0, sizeof(scene));
	tracer_place();
	scene.captured.ust = ust_new();
	walk_init(&scene.captured.walk);
	tracer_copy_init(&scene.captured.tracer);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(walk_add_heap(&scene.captured.walk, &heaps[i]), 0);
	snapshot_init(&scene.snapshot);
	assert_int_equal(memory_init(&scene.memory, &fake.target), 0);
}

static int set_up(void **state)
{
	static const struct heap heaps[] = {{.addr = OTHER_HEAP, .bits = 64, .kind = "nt"},
		{.addr = HEAP, .bits = 64, .kind = "nt", .layout = "row"}};

	(void)state;
	ust_place(64);
	begin_capture(heaps);
	tracer_place_table(0, 1);
	scene.captured.wants_ust = true;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	memory_release(&scene.memory);
	walk_release(&scene.captured.walk);
	tracer_copy_release(&scene.captured.tracer);
	free(scene.captured.stackless);
	ust_free(scene.captured.ust);
	snapshot_release(&scene.snapshot);
	fake_release();
	return 0;
}

/* Writes a record with `depth` frames, beginning with `first`. 0 frames are invalid. */
static uint64_t write_stack(unsigned i, unsigned depth, uint64_t first)
{
	uint64_t addr = RECORDS + i * 0x100;

	write_record(64, addr,
		&(struct made_record){.index = 0xffff,
			.depth = depth,
			.frame_count = depth,
			.first_frame = first});
	return addr;
}

static void add(uint64_t addr, uint64_t bytes, uint64_t record)
{
	assert_int_equal(walk_add_block(&scene.captured.walk, addr, bytes, 8, record), 0);
}

static void trace(unsigned entry, const struct made_block *block)
{
	tracer_write_block(0, entry, block);
	scene.captured.source.has_tracer = true;
}

static void join_all(void)
{
	struct raw_capture *captured = &scene.captured;

	if (captured->source.has_tracer)
		assert_int_equal(
			take_tables(&captured->tracer, &fake.target, TRACER_AREA, NULL), 0);
	assert_int_equal(ust_read(captured->ust, &scene.memory, &captured->walk, fake.modules,
				 fake.module_count, 0),
		0);
	model_add_blocks(&scene.snapshot, captured);
	describe_stacks(&(struct target){0}, &scene.snapshot, captured);
}

static void assert_block(uint64_t addr, const char *id, uint32_t depth, uint64_t first)
{
	const struct snapshot *snapshot = &scene.snapshot;

	for (size_t i = 0; i < snapshot->block_count; i++) {
		const struct block *block = &snapshot->blocks[i];
		const struct stack *stack = &snapshot->stacks.stacks[block->stack];

		if (block->addr != addr)
			continue;
		assert_string_equal(stack->id, id);
		assert_int_equal(stack->frame_count, depth);
		for (uint32_t k = 0; k < depth; k++)
			assert_int_equal(stack_frame(stack, k), first + 16 * k);
		return;
	}
	fail_msg("no block at %llX", (unsigned long long)addr);
}

static bool warns(const char *words)
{
	return has_warning(&scene.snapshot, words);
}

#undef TEST_AROUND
#define TEST_AROUND set_up, tear_down

TEST(blocks_have_stacks_of_their_records)
{
	uint64_t one = write_stack(0, 4, FRAME), two = write_stack(1, 7, FRAME + 0x500);
	uint64_t broken = write_stack(2, 0, 0);

	add(0x3000, 10, one);
	add(0x3100, 20, one);
	add(0x3200, 30, two);
	add(0x3300, 40, 0);
	add(0x3400, 50, broken);
	add(0x3500, 60, one);
	join_all();
	assert_int_equal(scene.snapshot.block_count, 4);
	assert_block(0x3000, "20000010", 4, FRAME);
	assert_block(0x3100, "20000010", 4, FRAME);
	assert_block(0x3500, "20000010", 4, FRAME);
	assert_block(0x3200, "20000110", 7, FRAME + 0x500);
	assert_int_equal(scene.snapshot.heaps[1].stackless.block_count, 2);
	assert_int_equal(scene.snapshot.heaps[1].stackless.requested_bytes, 90);
	assert_int_equal(scene.snapshot.heaps[1].stackless.overhead_bytes, 16);
	assert_int_equal(scene.snapshot.heaps[0].stackless.block_count, 0);
	assert_string_equal(scene.snapshot.heaps[1].layout, "row");
	assert_string_equal(scene.snapshot.stack_source, "ust");
	assert_int_equal(scene.snapshot.records.record_count, 3);
	assert_int_equal(scene.snapshot.records.broken_count, 1);
	assert_true(warns("invalid stack records: 1 of 3"));
	assert_int_equal(scene.snapshot.warning_count, 1);
}

TEST(cut_stack_is_kept_and_reported)
{
	uint64_t cut = write_stack(0, 7, FRAME);

	fake_write(cut + 0x10 + 3 * 8, 0x66, 8); /* the record's fourth frame */
	add(0x3000, 10, cut);
	add(0x3100, 10, write_stack(1, 7, FRAME));
	join_all();
	assert_block(0x3000, "20000010", 3, FRAME);
	assert_block(0x3100, "20000110", 7, FRAME);
	assert_int_equal(scene.snapshot.records.cut_count, 1);
	assert_true(warns("stacks cut short: 1 of 2"));
	assert_int_equal(scene.snapshot.warning_count, 1);
}

TEST(what_tracer_knows_counts_before_records)
{
	uint32_t id = tracer_write_stack(TRACED_FRAME, 5);
	uint64_t one = write_stack(0, 4, FRAME);
	char text[16];

	snprintf(text, sizeof(text), "%X", id);
	trace(0, &(struct made_block){0x3000, 10, HEAP, id});
	trace(1, &(struct made_block){0x3100, 21, HEAP, id}); /* another block's size */
	trace(2, &(struct made_block){0x3200, 30, OTHER_HEAP, id});
	trace(3, &(struct made_block){0x3300, 40, HEAP, 0x7ffffff}); /* this stack does not exist */
	for (uint64_t i = 0; i < 5; i++)
		add(0x3000 + i * 0x100, 10 + i * 10, one);
	add(0x3500, 60, 0);
	join_all();
	assert_block(0x3000, text, 5, TRACED_FRAME);
	for (uint64_t i = 1; i < 5; i++)
		assert_block(0x3000 + i * 0x100, "20000010", 4, FRAME);
	assert_int_equal(scene.snapshot.block_count, 5);
	assert_int_equal(scene.snapshot.heaps[1].stackless.block_count, 1);
	assert_string_equal(scene.snapshot.stack_source, "tracer");
	assert_true(warns("2 blocks have a different size or heap"));
}

/* An overrun may change the size in the next block's header. */
TEST(tracer_knows_sizes_in_heap_whose_walk_was_not_sound)
{
	uint32_t id = tracer_write_stack(TRACED_FRAME, 5);
	char text[16];

	snprintf(text, sizeof(text), "%X", id);
	trace(0, &(struct made_block){0x3000, 100, HEAP, id});
	trace(1, &(struct made_block){0x3100, 30, OTHER_HEAP, id}); /* another block's heap */
	add(0x3000, 0x7f0, 0);
	add(0x3100, 30, 0);
	scene.captured.walk.heaps[1].is_partial = true;
	join_all();
	assert_block(0x3000, text, 5, TRACED_FRAME);
	assert_int_equal(scene.snapshot.blocks[0].requested_bytes, 100);
	assert_int_equal(scene.snapshot.block_count, 1);
	assert_int_equal(scene.snapshot.heaps[1].stackless.block_count, 1);
	assert_true(warns("1 block has a different size or heap"));
}

/* The tracer numbers only a few thousand heaps. In other heaps only the size identifies a block. */
TEST(heap_that_tracer_has_no_number_for_may_be_any)
{
	uint32_t id = tracer_write_stack(TRACED_FRAME, 5);
	char text[16];

	snprintf(text, sizeof(text), "%X", id);
	trace(0, &(struct made_block){0x3000, 10, 0, id});
	trace(1, &(struct made_block){0x3100, 21, 0, id}); /* another block's size */
	add(0x3000, 10, 0);
	add(0x3100, 20, 0);
	join_all();
	assert_int_equal(scene.snapshot.block_count, 1);
	assert_block(0x3000, text, 5, TRACED_FRAME);
	assert_true(warns("1 block has a different size or heap"));
}

TEST(records_that_are_not_wanted_are_not_shown)
{
	scene.captured.wants_ust = false;
	add(0x3000, 10, write_stack(0, 4, FRAME));
	join_all();
	assert_int_equal(scene.snapshot.block_count, 0);
	assert_int_equal(scene.snapshot.heaps[1].stackless.block_count, 1);
	assert_string_equal(scene.snapshot.stack_source, "none");
	assert_false(scene.snapshot.records.is_known);
}

/* ---------------------------------------------------------------- fill level of the database */

static void describe_with(uint64_t failures, uint64_t used_bytes, uint64_t reserved_bytes)
{
	struct ust_database *database;

	snapshot_release(&scene.snapshot);
	snapshot_init(&scene.snapshot);
	walk_clear(&scene.captured.walk);
	walk_add_heap(&scene.captured.walk, &(struct heap){.addr = HEAP, .bits = 64});
	add(0x3000, 10, write_stack(0, 4, FRAME));
	assert_int_equal(ust_read(scene.captured.ust, &scene.memory, &scene.captured.walk,
				 fake.modules, fake.module_count, 0),
		0);
	database = (struct ust_database *)&ust_facts(scene.captured.ust)->database;
	*database = (struct ust_database){.addr = 0x5000,
		.entry_count = 100,
		.failure_count = (uint32_t)failures,
		.used_bytes = used_bytes,
		.reserved_bytes = reserved_bytes};
	model_add_blocks(&scene.snapshot, &scene.captured);
	describe_stacks(&(struct target){0}, &scene.snapshot, &scene.captured);
}

TEST(database_that_is_full_is_warned_of)
{
	describe_with(0, 95000000, 100000000);
	assert_int_equal(scene.snapshot.warning_count, 0);
	assert_int_equal(scene.snapshot.records.database, 0x5000);
	assert_int_equal(scene.snapshot.records.used_bytes, 95000000);
	describe_with(0, 95000200, 100000000);
	assert_true(warns("nearly full: 95000200 of 100000000 bytes"));
	assert_true(warns("--db-mb"));
	describe_with(17, 1000, 100000000);
	assert_true(warns("no room for the stacks of 17 allocations"));
	assert_true(warns("--db-mb"));
	assert_int_equal(scene.snapshot.warning_count, 1);
}

TEST(many_heaps_of_unknown_kind_are_one_warning)
{
	for (uint64_t i = 0; i < 1000; i++)
		walk_add_heap(&scene.captured.walk,
			&(struct heap){.addr = 0x5000000 + i * 0x10000, .unwalked = true});
	describe_gaps(&scene.snapshot, &scene.captured);
	assert_int_equal(scene.snapshot.warning_count, 1);
	assert_true(warns(
		"1000 heaps were not walked, the first at 5000000; their blocks are missing"));
	assert_int_equal(scene.snapshot.missing_count, 1);
}

/* If a layout fits one heap, hsnap knows that layout for all heaps, unless no heap was walked. */
TEST(heaps_are_of_unknown_kind_where_none_was_walked)
{
	struct walk *walk = &scene.captured.walk;

	walk_add_heap(walk, &(struct heap){.addr = 0x5010000, .unwalked = true});
	describe_gaps(&scene.snapshot, &scene.captured);
	assert_true(warns("1 heap was not walked, the first at 5010000"));
	assert_false(warns("does not know the heaps"));
	for (size_t i = 0; i < walk->heap_count; i++)
		walk->heaps[i].unwalked = true;
	describe_gaps(&scene.snapshot, &scene.captured);
	assert_true(warns("does not know the heaps"));
}

TEST_WITH(doubtful_places_are_reported_by_known_facts, NULL, NULL)
{
	struct raw_capture captured = {0};
	struct snapshot snapshot;

	snapshot_init(&snapshot);
	describe_gaps(&snapshot, &captured);
	assert_int_equal(snapshot.warning_count, 0);
	walk_doubt(&captured.walk, 0xabc000, "odd thing");
	walk_doubt(&captured.walk, 0xdef000, "other thing");
	describe_gaps(&snapshot, &captured);
	assert_int_equal(snapshot.warning_count, 1);
	assert_string_equal(snapshot.warnings[0],
		"2 places in the heaps may be damaged; the first: odd thing at ABC000");
	assert_int_equal(snapshot.missing_count, 0);
	walk_broken(&captured.walk, 0x123000, "bad thing");
	describe_gaps(&snapshot, &captured);
	assert_int_equal(snapshot.warning_count, 3);
	assert_string_equal(snapshot.warnings[1],
		"1 place in the heaps is inconsistent; the first: bad thing at 123000");
	assert_int_equal(snapshot.missing_count, 1);
	walk_missing(&captured.walk, 0x456000, "a list");
	walk_missing(&captured.walk, 0x789000, "a page");
	describe_gaps(&snapshot, &captured);
	assert_int_equal(snapshot.warning_count, 6);
	assert_string_equal(snapshot.warnings[4],
		"2 places in the heaps point to missing memory; the first: a list at 456000");
	assert_int_equal(snapshot.missing_count, 3);
	walk_clear(&captured.walk);
	assert_int_equal(captured.walk.doubt_count, 0);
	snapshot_release(&snapshot);
}

/* Other facts from a tracer: virtual memory, unloaded modules, and samples, whose sums are
 * estimates. */

static int set_up_traced(void **state)
{
	static const struct heap heaps[] = {
		{.addr = UNWALKED, .bits = 64, .kind = "unknown", .unwalked = true},
		{.addr = HEAP, .bits = 64, .kind = "nt"}};

	(void)state;
	fake_init();
	begin_capture(heaps);
	tracer_place_others();
	tracer_place_table(0, 16);
	fake.is_held = true;
	scene.captured.source.has_tracer = true;
	return 0;
}

static void join_traced(void)
{
	struct raw_capture *captured = &scene.captured;

	assert_int_equal(take_tables(&captured->tracer, &fake.target, TRACER_AREA, NULL), 0);
	model_add_blocks(&scene.snapshot, captured);
	describe_stacks(&(struct target){0}, &scene.snapshot, captured);
	describe_gaps(&scene.snapshot, captured);
}

static const struct heap *heap_at(uint64_t addr)
{
	for (size_t i = 0; i < scene.snapshot.heap_count; i++) {
		if (scene.snapshot.heaps[i].addr == addr)
			return &scene.snapshot.heaps[i];
	}
	return NULL;
}

/* ---------------------------------------------------------------- virtual memory */

static void assert_range(uint64_t addr, uint64_t bytes, uint64_t heap, uint64_t frame)
{
	const struct block *block = block_at(&scene.snapshot, addr);

	assert_non_null(block);
	assert_int_equal(block->requested_bytes, bytes);
	assert_int_equal(block->overhead_bytes, 0);
	assert_int_equal(scene.snapshot.heaps[block->heap].addr, heap);
	assert_int_equal(stack_frame(&scene.snapshot.stacks.stacks[block->stack], 0), frame);
}

#undef TEST_AROUND
#define TEST_AROUND set_up_traced, tear_down

TEST(each_range_is_block_under_its_heading)
{
	uint32_t one = tracer_write_stack(0x140001000, 3), two = tracer_write_stack(0x140002000, 3);
	const struct heap *heap;

	tracer_write_range(0x30000, 0x50000, RANGE_COMMITTED, one);
	tracer_write_range(0x50000, 0x90000, RANGE_RESERVED, two);
	tracer_write_range(0x10000, 0x11000, RANGE_COMMITTED, two);
	tracer_write_range(0x900000, 0xa00000, RANGE_MAPPED, one);
	tracer_write_range(0x700000, 0x800000, RANGE_NONE, one);
	tracer_write_range(0xb00000, 0xb01000, RANGE_COMMITTED, 0);
	join_traced();
	assert_int_equal(scene.snapshot.block_count, 4);
	assert_range(0x30000, 0x20000, HEAP_VIRTUAL, 0x140001000);
	assert_range(0x10000, 0x1000, HEAP_VIRTUAL, 0x140002000);
	assert_range(0x50000, 0x40000, HEAP_RESERVED, 0x140002000);
	assert_range(0x900000, 0x100000, HEAP_MAPPED, 0x140001000);
	heap = heap_at(HEAP_VIRTUAL);
	assert_string_equal(heap->kind, "virtual");
	assert_int_equal(heap->committed_bytes, 0x22000);
	assert_int_equal(heap->reserved_bytes, 0x22000);
	assert_int_equal(heap->stackless.block_count, 1);
	assert_int_equal(heap->stackless.requested_bytes, 0x1000);
	heap = heap_at(HEAP_RESERVED);
	assert_string_equal(heap->kind, "reserved");
	assert_int_equal(heap->committed_bytes, 0);
	assert_int_equal(heap->reserved_bytes, 0x40000);
	assert_string_equal(heap_at(HEAP_MAPPED)->kind, "mapped");
}

static void write_thread(uint64_t start, uint64_t committed, uint64_t end, uint32_t stack)
{
	for (int i = 0; i < 2; i++) {
		uint64_t at = TRACER_RANGES + AREA_GET(ranges.node_count) * 48;

		tracer_write_range(i ? committed : start, i ? end : committed,
			i ? RANGE_STACK : RANGE_RESERVED, stack);
		fake_write(at + offsetof(struct tracer_range, allocation), start, 8);
	}
}

/* The sizes are those of the live thread, not those of its creation. A thread that is not live is
 * not listed, and neither is one whose stack merely contains the address. */
TEST(stacks_of_live_threads_are_blocks)
{
	struct thread_stack live[] = {{0x500000, 0x10000, 0x4000}, {0x604000, 0x1000, 0x1000},
		{0x700000, 0x10000, 0x10000}, {0x900000, 0x10000, 0x10000}};
	uint32_t one = tracer_write_stack(0x140001000, 3), two = tracer_write_stack(0x140002000, 3);

	write_thread(0x400000, 0x40e000, 0x410000, one);
	write_thread(0x500000, 0x50e000, 0x510000, one);
	write_thread(0x600000, 0x604000, 0x610000, one);
	write_thread(0x700000, 0x70c000, 0x710000, two);
	tracer_write_range(0x800000, 0x810000, RANGE_COMMITTED, two);
	join_traced();
	assert_int_equal(scene.snapshot.block_count, 9);
	assert_range(0x50e000, 0x2000, HEAP_STACKS, 0x140001000);
	assert_range(0x500000, 0xe000, HEAP_RESERVED, 0x140001000);
	snapshot_release(&scene.snapshot);
	snapshot_init(&scene.snapshot);
	scene.captured.thread_stacks = live;
	scene.captured.thread_stack_count = 4;
	join_traced();
	assert_int_equal(scene.snapshot.block_count, 4);
	assert_range(0x700000, 0x10000, HEAP_STACKS, 0x140002000);
	assert_range(0x800000, 0x10000, HEAP_VIRTUAL, 0x140002000);
	assert_int_equal(heap_at(HEAP_STACKS)->committed_bytes, 0x14000);
	assert_int_equal(heap_at(HEAP_RESERVED)->reserved_bytes, 0xc000);
	assert_string_equal(heap_at(HEAP_STACKS)->kind, "stack");
}

TEST(headings_are_there_when_virtual_memory_is_recorded)
{
	join_traced();
	assert_null(heap_at(HEAP_VIRTUAL));
	snapshot_release(&scene.snapshot);
	snapshot_init(&scene.snapshot);
	fake_write(TRACER_AREA + offsetof(struct tracer_area, hooks) +
			   HOOK_VIRTUAL_ALLOCATE * sizeof(struct tracer_hook) +
			   offsetof(struct tracer_hook, patch_bytes),
		12, 4);
	join_traced();
	assert_int_equal(scene.snapshot.heap_count, 6);
	assert_int_equal(heap_at(HEAP_MAPPED)->reserved_bytes, 0);
}

TEST(ranges_that_make_no_sense_are_left_out_and_counted)
{
	uint32_t stack = tracer_write_stack(0x140001000, 3);

	tracer_write_range(0x30000, 0x50000, RANGE_COMMITTED, stack);
	tracer_write_range(0x4f000, 0x60000, RANGE_COMMITTED, stack);
	tracer_write_range(0x70000, 0x70000, RANGE_COMMITTED, stack);
	tracer_write_range(0x90000, 0x80000, RANGE_MAPPED, stack);
	tracer_write_range(0xa0000, 0xb0000, RANGE_STACK + 1, stack);
	tracer_write_range(0xc0000, UINT64_MAX, RANGE_RESERVED, stack);
	join_traced();
	assert_int_equal(scene.snapshot.block_count, 1);
	assert_range(0x30000, 0x20000, HEAP_VIRTUAL, 0x140001000);
	assert_true(warns("5 invalid ranges of virtual memory in the tracer's table"));
}

/* A range that is being freed is listed, except where its memory was already reused. */
TEST(ranges_that_are_being_freed_yield_to_live_ones)
{
	uint32_t dead = tracer_write_stack(0x140001000, 3);
	uint32_t live = tracer_write_stack(0x140002000, 3);

	tracer_write_range(0x30000, 0x50000, RANGE_COMMITTED | RANGE_TAKEN, dead);
	tracer_write_range(0x40000, 0x60000, RANGE_COMMITTED, live);
	tracer_write_range(0x70000, 0x80000, RANGE_COMMITTED | RANGE_TAKEN, dead);
	tracer_write_range(0x70000, 0x80000, RANGE_COMMITTED, live);
	tracer_write_range(0x90000, 0x94000, RANGE_COMMITTED, live);
	tracer_write_range(0x93000, 0x95000, RANGE_COMMITTED | RANGE_TAKEN, dead);
	/* Frees: one range twice, one still pending, one refused. */
	tracer_write_range(0xa0000, 0xb0000, RANGE_COMMITTED | RANGE_TAKEN, dead);
	tracer_write_range(0xa0000, 0xb0000, RANGE_COMMITTED | RANGE_TAKEN, dead);
	tracer_write_range(0x10000, 0x20000, RANGE_MAPPED | RANGE_TAKEN, dead);
	join_traced();
	assert_int_equal(scene.snapshot.block_count, 5);
	assert_range(0x10000, 0x10000, HEAP_MAPPED, 0x140001000);
	assert_range(0x40000, 0x20000, HEAP_VIRTUAL, 0x140002000);
	assert_range(0x70000, 0x10000, HEAP_VIRTUAL, 0x140002000);
	assert_range(0x90000, 0x4000, HEAP_VIRTUAL, 0x140002000);
	assert_range(0xa0000, 0x10000, HEAP_VIRTUAL, 0x140001000);
	assert_false(warns("make no sense"));
}

/* ---------------------------------------------------------------- unloaded modules */

TEST(frames_in_modules_that_are_gone_keep_module_and_offset)
{
	uint32_t before = tracer_write_stack(0x180000123, 2), after;
	const struct snapshot *snapshot = &scene.snapshot;
	const struct stack *stacks;
	const struct module *module;

	tracer_write_unload("C:\\app\\plug.dll", 0x180000000, 0x20000);
	tracer_write_unload("C:\\app\\unused.dll", 0x190000000, 0x20000);
	after = tracer_write_stack(0x180000123, 2);
	fake_write(TRACER_STACKS + after * 8ull + offsetof(struct tracer_stack, born), 2, 4);
	tracer_write_range(0x10000, 0x20000, RANGE_COMMITTED, before);
	tracer_write_range(0x20000, 0x30000, RANGE_COMMITTED, after);
	join_traced();
	stacks = snapshot->stacks.stacks;
	assert_int_equal(snapshot->module_count, 1);
	module = &snapshot->modules[0];
	assert_string_equal(module->path, "C:\\app\\plug.dll");
	assert_int_equal(module->unloaded_at, 0x180000000);
	assert_int_equal(stack_frame(&stacks[block_at(&scene.snapshot, 0x10000)->stack], 0),
		module->base + 0x123);
	assert_int_equal(stack_frame(&stacks[block_at(&scene.snapshot, 0x10000)->stack], 1),
		module->base + 0x133);
	assert_int_equal(
		stack_frame(&stacks[block_at(&scene.snapshot, 0x20000)->stack], 0), 0x180000123);
}

TEST(frames_where_unloads_found_no_room_are_in_no_module)
{
	uint32_t stack = tracer_write_stack(0x180000123, 2);
	const struct snapshot *snapshot = &scene.snapshot;

	AREA_PUT(unload_limit, 0);
	AREA_PUT(unload_count, 3);
	AREA_PUT(lost_from, 0x180000000);
	AREA_PUT(lost_to, 0x180000130);
	tracer_write_range(0x10000, 0x20000, RANGE_COMMITTED, stack);
	join_traced();
	assert_int_equal(
		stack_frame(&snapshot->stacks.stacks[0], 0), TRACER_LOST_BASE + 0x180000123);
	assert_int_equal(stack_frame(&snapshot->stacks.stacks[0], 1), 0x180000133);
}

TEST(blocks_of_heaps_that_were_destroyed_are_not_there)
{
	uint32_t stack = tracer_write_stack(0x140001000, 2);
	unsigned index = tracer_heap_index(UNWALKED);

	tracer_write_block(0, 0, &(struct made_block){0x5000, 50, UNWALKED, stack});
	AREA_PUT(heaps[index], UNWALKED + TRACER_HEAP_DEAD);
	join_traced();
	assert_int_equal(scene.captured.tracer.block_count, 0);
	assert_int_equal(scene.snapshot.block_count, 0);
}

/* ---------------------------------------------------------------- samples */

TEST(what_one_stands_for_is_as_likely_as_it_was_recorded)
{
	/* The expected values of 1 / (1 - exp(-s / m)) were computed to 12 digits with bc. */
	assert_true(block_sample_weight(1024, 1024) > 1.581976706869 - 1e-11);
	assert_true(block_sample_weight(1024, 1024) < 1.581976706869 + 1e-11);
	assert_true(block_sample_weight(10, 1000) > 100.500833331944 - 1e-9);
	assert_true(block_sample_weight(10, 1000) < 100.500833331944 + 1e-9);
	assert_true(block_sample_weight(5000, 1000) > 1.006783654906 - 1e-11);
	assert_true(block_sample_weight(5000, 1000) < 1.006783654906 + 1e-11);
	assert_true(block_sample_weight(UINT64_MAX, 1) == 1);
	/* If samples are rare, the weight is close to m / s + 1 / 2. */
	assert_true(block_sample_weight(1, 1u << 30) > (1u << 30) + 0.499);
	assert_true(block_sample_weight(1, 1u << 30) < (1u << 30) + 0.501);
	assert_true(block_sample_weight(0, 512) == block_sample_weight(1, 512));
}

static void add_traced(uint64_t addr, uint64_t bytes)
{
	assert_int_equal(walk_add_block(&scene.captured.walk, addr, bytes, 8 + bytes % 8, 0), 0);
}

TEST(estimates_add_up_to_what_was_recorded_scaled)
{
	uint32_t stacks[5];
	double count = 0, bytes = 0;
	uint64_t got_count = 0, got_bytes = 0, largest = 0, seed = 7;
	struct block_totals exact = {0};

	AREA_PUT(sample_bytes, 4096);
	for (unsigned i = 0; i < 5; i++)
		stacks[i] = tracer_write_stack(0x140001000 + i * 0x1000, 3);
	for (unsigned i = 0; i < 3000; i++) {
		uint64_t size = fake_random(&seed) % 40 * (fake_random(&seed) % 100);

		add_traced(0x2000000 + i * 0x2000, size);
		block_totals_add(&exact, &(struct block_totals){1, size, 8 + size % 8});
		if (i % 7)
			continue;
		tracer_write_block(0, i,
			&(struct made_block){0x2000000 + i * 0x2000, size, HEAP, stacks[i % 5]});
		count += block_sample_weight(size, 4096);
		bytes += block_sample_weight(size, 4096) * (double)size;
		largest = size > largest ? size : largest;
	}
	join_traced();
	assert_int_equal(scene.snapshot.block_count, 0);
	for (size_t i = 0; i < scene.snapshot.sum_count; i++) {
		const struct block_sum *sum = &scene.snapshot.sums[i];

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
	assert_true(heap_at(HEAP)->has_exact);
	assert_memory_equal(&heap_at(HEAP)->exact, &exact, sizeof(exact));
	assert_int_equal(heap_at(HEAP)->stackless.block_count, 0);
	assert_true(warns("figures are estimates: one in 4096 bytes"));
}

TEST(what_was_recorded_in_heap_without_number_is_scaled_too)
{
	uint32_t stack = tracer_write_stack(0x140001000, 3);

	AREA_PUT(sample_bytes, 1);
	add_traced(0x2000000, 4096);
	add_traced(0x2002000, 4096);
	tracer_write_block(0, 0, &(struct made_block){0x2000000, 4096, 0, stack});
	tracer_write_block(0, 1, &(struct made_block){0x2002000, 4095, 0, stack});
	join_traced();
	assert_int_equal(scene.snapshot.sum_count, 1);
	assert_int_equal(scene.snapshot.sums[0].block_count, 1);
	assert_int_equal(scene.snapshot.sums[0].requested_bytes, 4096);
}

TEST(of_sample_what_has_no_stack_is_scaled_too)
{
	uint32_t stack = tracer_write_stack(0x140001000, 3);

	AREA_PUT(sample_bytes, 100000);
	add_traced(0x3000, 1000);
	add_traced(0x4000, 1000);
	tracer_write_block(0, 0, &(struct made_block){0x3000, 1000, HEAP, 0});
	tracer_write_block(0, 1, &(struct made_block){0x4000, 999, HEAP, stack});
	tracer_write_block(0, 2, &(struct made_block){0x5000, 50, UNWALKED, stack});
	join_traced();
	/* The weights are 1 / (1 - exp(-1 / 100)) = 100.5 and 1 / (1 - exp(-1 / 2000)) = 2000.5. */
	assert_int_equal(scene.snapshot.sum_count, 1);
	assert_int_equal(
		scene.snapshot.sums[0].block_count + heap_at(HEAP)->stackless.block_count, 2101);
	assert_true(heap_at(HEAP)->stackless.block_count - 100 <= 1);
	assert_int_equal(
		scene.snapshot.sums[0].requested_bytes, 50 * scene.snapshot.sums[0].block_count);
	assert_int_equal(scene.snapshot.sums[0].overhead_bytes, 0);
	assert_false(heap_at(UNWALKED)->has_exact);
}

TEST(absurd_sample_is_damage)
{
	AREA_PUT(sample_bytes, (1ull << 40) + 1);
	assert_int_equal(
		take_tables(&scene.captured.tracer, &fake.target, TRACER_AREA, NULL), -ERR_TARGET);
}

/* ---------------------------------------------------------------- warnings */

TEST(blocks_from_before_it_came_are_counted_and_no_gap)
{
	uint32_t stack = tracer_write_stack(0x140001000, 3);

	AREA_PUT(flags, TRACER_FLAG_ATTACHED);
	add_traced(0x3000, 1000);
	add_traced(0x4000, 1001);
	add_traced(0x5000, 1002);
	tracer_write_block(0, 1, &(struct made_block){0x4000, 1001, HEAP, stack});
	scene.captured.walk.heaps[0].unwalked = false;
	join_traced();
	assert_true(scene.snapshot.tracer.is_attached);
	assert_int_equal(scene.snapshot.tracer.before.block_count, 2);
	assert_int_equal(scene.snapshot.tracer.before.requested_bytes, 2002);
	assert_int_equal(scene.snapshot.warning_count, 0);
}

TEST(all_drops_are_reported_with_remedy)
{
	AREA_PUT(dropped_blocks, 11);
	AREA_PUT(dropped_stacks, 12);
	AREA_PUT(dropped_ranges, 13);
	AREA_PUT(dropped_unloads, 14);
	AREA_PUT(unwind_mismatches, 15);
	SHARD_PUT(40, broken, 1);
	scene.captured.walk.heaps[0].unwalked = false;
	join_traced();
	assert_true(warns("no room for 11 blocks"));
	assert_true(warns("the stacks of 12 blocks; give its tables more room with "
			  "--max-mb"));
	assert_true(warns("no room for 13 ranges"));
	assert_true(warns("no room for 14 unloaded modules"));
	assert_true(warns("15 times"));
	assert_true(warns("1 of the 64 locks of the tracer's table"));
	assert_int_equal(scene.snapshot.warning_count, 6);
}

static void add_module(uint64_t base, const char *path)
{
	struct module *module = snapshot_add_module(&scene.snapshot);

	module->base = base;
	module->size_bytes = 0x1000;
	module->path = path;
}

/* Windows' own modules and unknown modules are always ignored. */
TEST(modules_unwound_by_ebp_alone_are_named)
{
	AREA_PUT(bare_images[0], 0x400000);
	AREA_PUT(bare_images[1], 0x77000000);
	AREA_PUT(bare_images[2], 0x10000000);
	AREA_PUT(bare_images[3], 0x12340000);
	add_module(0x400000, "D:\\app\\server.exe");
	add_module(0x10000000, "C:\\windowsapps\\old.dll");
	add_module(0x20000000, "D:\\app\\new.dll");
	add_module(0x77000000, "C:\\WINDOWS\\SysWOW64\\ntdll.dll");
	scene.captured.walk.heaps[0].unwalked = false;
	join_traced();
	assert_true(warns("stacks of 32-bit code may lack callers: no unwind information in "
			  "server.exe, old.dll; build it with frame pointers (/Oy-"));
	assert_int_equal(scene.snapshot.warning_count, 1);
}

TEST(many_modules_unwound_by_ebp_alone_are_counted)
{
	static char paths[TRACER_BARE_IMAGES][20];

	for (uint32_t i = 0; i < TRACER_BARE_IMAGES; i++) {
		snprintf(paths[i], sizeof(paths[i]), "C:\\x\\m%u.dll", i);
		AREA_PUT(bare_images[i], 0x400000 + i * 0x10000);
		add_module(0x400000 + i * 0x10000, paths[i]);
	}
	scene.captured.walk.heaps[0].unwalked = false;
	join_traced();
	assert_true(warns(
		"in m0.dll, m1.dll, m2.dll, m3.dll, m4.dll, m5.dll, m6.dll, m7.dll and 56 more; "));
	assert_int_equal(scene.snapshot.warning_count, 1);
}

/* A larger table would not help. The later ranges count as dropped, but not because of a full
 * table. */
TEST(ranges_left_locked_are_reported_without_wrong_remedy)
{
	AREA_PUT(dropped_ranges, 13);
	AREA_PUT(ranges.broken, 1);
	scene.captured.walk.heaps[0].unwalked = false;
	join_traced();
	assert_true(warns(
		"a thread exited while it held the lock of the tracer's table of virtual memory"));
	assert_true(warns("without 13 later changes"));
	assert_false(warns("--max-mb"));
	assert_int_equal(scene.snapshot.warning_count, 1);
}

/* A tracer's area and tables with random damage. Reading them must end soon, allocate no more than
 * the readable bytes, and return consistent data. */

#define ROUNDS 1500

/* Damaged part of the made area, from the head to the shards. */
#define AREA_BYTES offsetof(struct tracer_area, heaps)

static void place_traced(void)
{
	uint32_t stacks[8];

	set_up_traced(NULL);
	for (unsigned i = 0; i < 8; i++)
		stacks[i] = tracer_write_stack(0x180000000 + 0x1000 * i, 1 + i * 9);
	for (unsigned shard = 0; shard < 6; shard++) {
		if (shard)
			tracer_place_table(shard, 1);
		for (unsigned i = 0; i < 20; i++)
			tracer_write_block(shard, i,
				&(struct made_block){0x2000000 + shard * 0x10000 + i * 0x100,
					i * 10, UNWALKED, stacks[i % 8]});
	}
	for (unsigned i = 0; i < 20; i++)
		tracer_write_range(0x10000 * i, 0x10000 * i + 0x8000, i % 4, stacks[i % 8]);
	for (unsigned i = 0; i < 6; i++)
		tracer_write_unload("C:\\plug.dll", 0x180000000 + 0x1000 * i, 0x8000);
}

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

static void damage(uint64_t *seed)
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

		fake_write(at, wild(seed), fake_random(seed) % 2 ? 8 : 4);
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

TEST_WITH(a_damaged_tracer_harms_nobody, NULL, NULL)
{
	uint64_t seed = 20261120;
	unsigned sound = 0, refused = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		struct raw_capture *captured = &scene.captured;
		int rc;

		place_traced();
		damage(&seed);
		rc = take_tables(&captured->tracer, &fake.target, TRACER_AREA, NULL);
		assert_true(!rc || rc == -ERR_TARGET);
		assert_true(fake.reads < 200);
		assert_true(fake.got_bytes < 1 << 20);
		if (!rc) {
			tracer_copy_sort(&captured->tracer);
			assert_sound(&captured->tracer);
			model_add_blocks(&scene.snapshot, captured);
			assert_true(scene.snapshot.block_count <=
				    captured->tracer.block_count + captured->tracer.ranges.count);
		}
		sound += !rc;
		refused += rc != 0;
		tear_down(NULL);
	}
	assert_true(sound > ROUNDS / 10 && refused > ROUNDS / 10);
}
