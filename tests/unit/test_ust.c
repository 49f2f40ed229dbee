/* Stack records to which blocks point. Whatever a record contains, the number of its frames is
 * derived from its plausible fields. */
#include "tests/unit/t.h"

#include "tests/unit/fake_ust.h"
#include "tests/unit/layout_listing.h"

#include "snapshot/stacks/ust_layout.h"

#define FRAME (CODE_BASE + 0x1000u)
#define HEAP_32 0x1000000u
#define HEAP_64 0x2000000u

struct scene {
	struct memory memory;
	struct walk walk;
	struct ust *ust;
	unsigned bits;
	uint32_t global_flag;
};

static struct scene scene;

static int set_up(void **state)
{
	(void)state;
	memset(&scene, 0, sizeof(scene));
	ust_place(64);
	walk_init(&scene.walk);
	scene.ust = ust_new();
	assert_non_null(scene.ust);
	assert_int_equal(memory_init(&scene.memory, &fake.target), 0);
	scene.bits = 64;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ust_free(scene.ust);
	walk_release(&scene.walk);
	memory_release(&scene.memory);
	fake_release();
	return 0;
}

static void add_heap(unsigned bits)
{
	struct heap heap = {.addr = bits == 64 ? HEAP_64 : HEAP_32, .bits = bits, .kind = "nt"};

	assert_int_equal(walk_add_heap(&scene.walk, &heap), 0);
}

static void add_block(uint64_t record)
{
	uint64_t addr = 0x3000000 + scene.walk.block_count * 32;

	assert_int_equal(walk_add_block(&scene.walk, addr, 16, 16, record), 0);
}

static void take(void)
{
	assert_int_equal(ust_read(scene.ust, &scene.memory, &scene.walk, fake.modules,
				 fake.module_count, scene.global_flag),
		0);
	assert_int_equal(fake.loose_reads + fake.late_reads, 0);
}

/* Returns the number of the record at addr, for a block of a heap with scene.bits bits. */
static uint32_t number_of(uint64_t addr)
{
	for (size_t i = 0; i < scene.walk.block_count; i++) {
		uint32_t number = scene.walk.blocks[i].stack;

		if (number != STACK_NONE && scene.walk.records[number].addr == addr &&
			scene.walk.records[number].bits == scene.bits)
			return number;
	}
	fail_msg("no block points to %llX", (unsigned long long)addr);
	return STACK_NONE;
}

/* Returns the number of frames found at addr. Each frame must be the one that the test placed. */
static uint32_t depth_of(uint64_t addr, uint64_t first_frame)
{
	uint32_t number = number_of(addr), count;
	const uint64_t *frames;
	uint64_t first_slot;

	assert_true(number < ust_facts(scene.ust)->record_count);
	count = ust_frames(scene.ust, number, &frames, &first_slot);
	assert_true(first_slot == slot_at(scene.bits, addr));
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(frames[i], first_frame + i * 16);
	return count;
}

#undef TEST_AROUND
#define TEST_AROUND set_up, tear_down

/* Checks a single record in a 64-bit and in a 32-bit process. */
static void assert_depth(struct made_record record, uint32_t expected)
{
	record.first_frame = record.first_frame ? record.first_frame : FRAME;
	for (scene.bits = 32; scene.bits <= 64; scene.bits += 32) {
		walk_clear(&scene.walk);
		memory_clear(&scene.memory);
		memset(fake_bytes(RECORDS, 0x400), 0, 0x400);
		write_record(scene.bits, RECORDS + 0x100, &record);
		add_heap(scene.bits);
		add_block(RECORDS + 0x100);
		take();
		assert_int_equal(depth_of(RECORDS + 0x100, record.first_frame), expected);
		assert_int_equal(ust_facts(scene.ust)->record_count, 1);
		assert_int_equal(ust_facts(scene.ust)->broken_count, expected == 0);
	}
}

/* ---------------------------------------------------------------- number of frames */

TEST(records_of_process_without_flags_have_so_many_frames)
{
	static const struct {
		struct made_record record;
		uint32_t expected;
	} cases[] = {
		/* If Index cannot be a number of frames, Depth is used. */
		{{.index = 0x4711, .depth = 12, .frame_count = 12}, 12},
		{{.index = 0, .depth = 32, .frame_count = 32}, 32},
		/* Index is too large: the words after the frames are not code. */
		{{.index = 20, .depth = 12, .frame_count = 12}, 12},
		/* If Depth cannot be a number of frames, Index is used. */
		{{.index = 9, .depth = 0, .frame_count = 9}, 9},
		{{.index = 9, .depth = 0xffff, .frame_count = 9}, 9},
		{{.index = 9, .depth = 10, .frame_count = 9}, 9},
		/* A plausible number is used, whatever the block's size is. */
		{{.depth = 12, .block_depth = 3, .frame_count = 12}, 12},
		{{.index = 12, .block_depth = 3, .frame_count = 12}, 12},
		/* If no field is plausible, the leading frames in code are counted. */
		{{.index = 0xffff, .depth = 0xffff, .frame_count = 7}, 7},
		{{.index = 0xffff, .depth = 0, .block_depth = 4, .frame_count = 7}, 7},
		{{.index = 33, .depth = 40, .block_depth = 20, .frame_count = 7}, 7},
		{{.depth = 0xffff, .frame_count = 40}, 32},
		/* No frame is in code, so there is no stack. */
		{{.depth = 4, .frame_count = 4, .first_frame = RECORDS}, 0},
		{{.depth = 4, .frame_count = 0}, 0},
		/* A call at the end of a module returns to the address after the module. A call
		 * before the module's start would be outside. */
		{{.index = 0xffff,
			 .depth = 1,
			 .frame_count = 1,
			 .first_frame = CODE_BASE + CODE_BYTES},
			1},
		{{.index = 0xffff,
			 .depth = 1,
			 .frame_count = 1,
			 .first_frame = CODE_BASE + CODE_BYTES + 1},
			0},
		{{.index = 0xffff, .depth = 1, .frame_count = 1, .first_frame = CODE_BASE}, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_depth(cases[i].record, cases[i].expected);
}

/* With the process's flags, the field is the one that programs tested on Windows read. Without
 * flags it is Depth, as in the symbols. A number at which the code ends takes precedence. */
TEST(of_two_that_are_possible_processs_flags_choose)
{
	static const struct {
		struct made_record record;
		uint32_t with_ust, without;
	} cases[] = {
		{{.index = 5, .depth = 10, .frame_count = 12}, 5, 10},
		{{.index = 10, .depth = 5, .frame_count = 12}, 10, 5},
		{{.index = 5, .depth = 10, .block_depth = 31, .frame_count = 12}, 5, 10},
		{{.index = 1, .depth = 12, .frame_count = 12}, 12, 12},
		{{.index = 12, .depth = 1, .frame_count = 12}, 12, 12},
		{{.index = 12, .depth = 4, .block_depth = 4, .frame_count = 12}, 12, 12},
	};
	static const uint32_t flags[] = {0x1070, 0x2001000, 0x2000000, 0};

	for (size_t i = 0; i < 4 * sizeof(cases) / sizeof(*cases); i++) {
		scene.global_flag = flags[i % 4];
		assert_depth(
			cases[i / 4].record, i % 4 ? cases[i / 4].without : cases[i / 4].with_ust);
	}
}

/* ---------------------------------------------------------------- code addresses */

static int jit_region(struct target *target, uint64_t addr, struct target_region *region)
{
	static const struct target_region regions[] = {
		{RECORDS, RECORDS + RECORDS_BYTES, TARGET_READ | TARGET_WRITE, false, false},
		{0x30000000, 0x30002000, TARGET_READ | TARGET_EXECUTE, false, false},
		{0x40000000, 0x40001000, TARGET_READ, false, false},
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
	struct target_ops ops = *fake.target.ops;
	struct made_record record = {.index = 0xffff, .depth = 6, .frame_count = 6};

	ops.region = jit_region;
	fake.target.ops = &ops;
	record.first_frame = 0x30001000;
	assert_depth(record, 6);
	record.first_frame = 0x40000100;
	assert_depth(record, 0);
}

/* ---------------------------------------------------------------- records */

TEST(each_record_is_one_and_bears_umdhs_id)
{
	struct made_record record = {
		.index = 0xffff, .depth = 3, .frame_count = 3, .first_frame = FRAME};

	add_heap(64);
	for (unsigned i = 0; i < 10; i++)
		write_record(64, RECORDS + i * 0x40, &record);
	for (unsigned i = 0; i < 1000; i++)
		add_block(RECORDS + i * 7 % 10 * 0x40);
	take();
	assert_int_equal(ust_facts(scene.ust)->record_count, 10);
	assert_int_equal(ust_facts(scene.ust)->broken_count, 0);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(depth_of(RECORDS + i * 0x40, FRAME), 3);
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(scene.walk.blocks[i].stack, scene.walk.blocks[i % 10].stack);
	take(); /* replaces the previous result */
	assert_int_equal(ust_facts(scene.ust)->record_count, 10);
}

TEST(values_that_mean_no_stack_are_no_records)
{
	const uint64_t nothing[] = {0, 0x01010000, 0x0101000000000000};

	add_heap(64);
	for (size_t i = 0; i < 3; i++)
		add_block(nothing[i]);
	take();
	assert_int_equal(ust_facts(scene.ust)->record_count, 0);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(scene.walk.blocks[i].stack, STACK_NONE);
}

/* Heaps of both widths point to one address. There are two records, each with its heap's layout. */
TEST(record_is_laid_out_as_its_heap)
{
	write_record(64, RECORDS,
		&(struct made_record){
			.index = 0xffff, .depth = 4, .frame_count = 4, .first_frame = FRAME});
	write_record(32, RECORDS + 0x400,
		&(struct made_record){
			.index = 0xffff, .depth = 5, .frame_count = 5, .first_frame = FRAME});
	add_heap(32);
	add_block(RECORDS);
	add_block(RECORDS + 0x400);
	add_heap(64);
	add_block(RECORDS + 0x400);
	add_block(RECORDS);
	take();
	assert_int_equal(ust_facts(scene.ust)->record_count, 4);
	scene.bits = 64;
	assert_int_equal(depth_of(RECORDS, FRAME), 4);
	scene.bits = 32;
	assert_int_equal(depth_of(RECORDS + 0x400, FRAME), 5);
	assert_int_not_equal(scene.walk.blocks[0].stack, scene.walk.blocks[3].stack);
}

/* All records of a process together show the number of frames, whatever the unused slot contains,
 * and even if the code of the stacks was unloaded. */

#define MANY 200
#define APART 0x140u
#define GONE 0x66660000u /* base of an unloaded DLL */

static uint64_t record_at(unsigned i)
{
	return RECORDS + i * APART;
}

static void start(unsigned bits)
{
	walk_clear(&scene.walk);
	memory_clear(&scene.memory);
	memset(fake_bytes(RECORDS, RECORDS_BYTES), 0, RECORDS_BYTES);
	scene.bits = bits;
	add_heap(bits);
}

static void put(unsigned i, struct made_record record)
{
	record.first_frame = FRAME;
	write_record(scene.bits, record_at(i), &record);
	add_block(record_at(i));
}

static void write_frame(unsigned i, unsigned at, uint64_t frame)
{
	unsigned size = scene.bits / 8;

	fake_write(slot_at(scene.bits, record_at(i)) + at * size, frame, size);
}

static uint32_t frames_of(unsigned i)
{
	const uint64_t *frames;
	uint64_t first_slot;

	return ust_frames(scene.ust, number_of(record_at(i)), &frames, &first_slot);
}

/* ---------------------------------------------------------------- contents of the unused slot */

enum other {
	ZERO,
	ONE,
	NINE,
	REFERENCES, /* mostly small */
	RANDOM,
	NUMBER, /* number of the record in its database */
	OTHERS,
};

enum room {
	ROOM_RIGHT,
	ROOM_NONE,
	ROOM_ALL,
	ROOM_RANDOM,
	ROOMS,
};

static unsigned other_value(enum other other, unsigned i, uint64_t *seed)
{
	switch (other) {
	case ZERO: return 0;
	case ONE: return 1;
	case NINE: return 9;
	case REFERENCES: return 1 + (unsigned)(fake_random(seed) % (1 + fake_random(seed) % 64));
	case RANDOM: return (unsigned)(fake_random(seed) % 0x10000);
	default: return i + 1;
	}
}

static unsigned room_value(enum room room, unsigned count, uint64_t *seed)
{
	switch (room) {
	case ROOM_RIGHT: return count % 32;
	case ROOM_NONE: return 0;
	case ROOM_ALL: return 31;
	default: return (unsigned)(fake_random(seed) % 32);
	}
}

struct kind {
	bool is_index;
	enum other other;
	enum room room;
	unsigned gone_percent; /* percentage of stacks that pass through unloaded code */
};

static unsigned count_of(unsigned i)
{
	return 2 + i * 7 % 31;
}

static void write_process(const struct kind *kind)
{
	uint64_t seed = 7;

	for (unsigned i = 0; i < MANY; i++) {
		unsigned count = count_of(i), other = other_value(kind->other, i, &seed);

		put(i, (struct made_record){.index = kind->is_index ? count : other,
			       .depth = kind->is_index ? other : count,
			       .block_depth = room_value(kind->room, count, &seed),
			       .frame_count = count});
		if (i % 100 < kind->gone_percent)
			write_frame(i, 1 + i % (count - 1), GONE + i * 16);
	}
}

static void assert_process(const struct kind *kind)
{
	for (scene.bits = 32; scene.bits <= 64; scene.bits += 32) {
		start(scene.bits);
		write_process(kind);
		take();
		for (unsigned i = 0; i < MANY; i++)
			assert_int_equal(frames_of(i), count_of(i));
		assert_int_equal(ust_facts(scene.ust)->broken_count, 0);
		assert_int_equal(ust_facts(scene.ust)->cut_count, 0);
	}
}

static void assert_processes(unsigned gone_percent)
{
	static const uint32_t flags[] = {0, 0x1000, 0x2001000};

	for (unsigned i = 0; i < 2 * OTHERS * ROOMS * 3; i++) {
		struct kind kind = {.is_index = i % 2,
			.other = i / 2 % OTHERS,
			.room = i / 2 / OTHERS % ROOMS,
			.gone_percent = gone_percent};

		scene.global_flag = flags[i / 2 / OTHERS / ROOMS];
		assert_process(&kind);
	}
}

TEST(stacks_are_whole_whatever_stands_in_other_slot)
{
	assert_processes(0);
}

TEST(stacks_through_code_that_is_gone_are_whole_even_when_most_are_such)
{
	assert_processes(10);
	assert_processes(85);
}

/* ---------------------------------------------------------------- majority in a process */

/* Puts `count` records that store their number in one field only. */
static unsigned write_habit(unsigned count, bool is_index)
{
	for (unsigned i = 0; i < count; i++)
		put(i, (struct made_record){.index = is_index ? 9 : 0x1234,
			       .depth = is_index ? 0x1234 : 9,
			       .frame_count = 9});
	return count;
}

TEST(clear_habit_is_followed_where_other_slot_is_possible)
{
	for (int is_index = 0; is_index < 2; is_index++) {
		unsigned i;

		start(64);
		i = write_habit(8, is_index);
		put(i, (struct made_record){.index = is_index ? 9 : 1,
			       .depth = is_index ? 1 : 9,
			       .frame_count = 9});
		write_frame(i, 2, GONE);
		write_frame(i, 8, GONE + 16); /* even the last frame is in unloaded code */
		take();
		assert_int_equal(frames_of(i), 9);
		assert_int_equal(ust_facts(scene.ust)->cut_count, 0);
	}
}

TEST(without_clear_habit_frames_that_are_gone_at_end_are_cut_and_counted)
{
	for (unsigned others = 7; others <= 8; others++) {
		for (int is_index = 0; is_index < 2; is_index++) {
			start(64);
			write_habit(others + 1, is_index);
			write_frame(0, 2, GONE);
			write_frame(0, 8, GONE);
			take();
			assert_int_equal(frames_of(0), others < 8 ? 2 : 9);
			assert_int_equal(ust_facts(scene.ust)->cut_count, others < 8);
			assert_int_equal(frames_of(1), 9);
		}
	}
}

TEST(what_is_no_address_cuts_stack_and_is_counted)
{
	start(64);
	write_habit(20, false);
	write_frame(3, 2, 0x66);
	write_frame(5, 0, 0x66); /* the whole stack is invalid */
	put(20, (struct made_record){.index = 1, .depth = 0xffff, .frame_count = 7});
	take();
	assert_int_equal(frames_of(3), 2);
	assert_int_equal(frames_of(5), 0);
	assert_int_equal(frames_of(20), 7); /* the number of its frames is not stored */
	assert_int_equal(ust_facts(scene.ust)->cut_count, 1);
	assert_int_equal(ust_facts(scene.ust)->broken_count, 1);
}

/* Records of both kinds leave it open which field has the number. BlockDepth may or may not have
 * its documented meaning. */
static unsigned write_rooms(bool has_room)
{
	for (unsigned i = 0; i < 40; i++)
		put(i, (struct made_record){.index = i % 2 ? 12 : 0x1234,
			       .depth = i % 2 ? 0x1234 : 12,
			       .block_depth = has_room ? 12 : i % 24,
			       .frame_count = 12});
	return 40;
}

TEST(room_in_record_decides_where_it_agrees_in_process)
{
	scene.global_flag = 0x1000;
	for (int has_room = 0; has_room < 2; has_room++) {
		unsigned i;

		start(64);
		i = write_rooms(has_room);
		put(i, (struct made_record){
			       .index = 20, .depth = 10, .block_depth = 10, .frame_count = 24});
		put(i + 1, (struct made_record){
				   .index = 10, .depth = 20, .block_depth = 10, .frame_count = 24});
		put(i + 2,
			(struct made_record){
				.index = 0xffff, .depth = 0, .block_depth = 4, .frame_count = 7});
		take();
		assert_int_equal(frames_of(i), has_room ? 10 : 20);
		assert_int_equal(frames_of(i + 1), 10);
		assert_int_equal(frames_of(i + 2), has_room ? 4 : 7);
	}
}

/* ---------------------------------------------------------------- traces of a page heap */

struct made_trace {
	uint32_t number, size;
	uint64_t frames; /* address of the frames; 0: they follow the block */
	unsigned frame_count;
};

/* RTL_TRACE_BLOCK: Magic, Count, Size, UserCount, UserSize, UserContext, Next, Trace. */
static void write_trace(unsigned i, const struct made_trace *trace)
{
	unsigned size = scene.bits / 8;
	uint64_t addr = record_at(i), trace_at = addr + (size == 8 ? 0x30 : 0x1c);
	uint64_t frames = trace->frames ? trace->frames : trace_at + size;

	fake_write(addr, 0xabcd1234, 4);
	fake_write(addr + 4, trace->number, 4);
	fake_write(addr + 8, trace->size, 4);
	fake_write(addr + (size == 8 ? 0x10 : 0xc), 3, size);
	fake_write(addr + (size == 8 ? 0x18 : 0x10), 300, size);
	fake_write(addr + (size == 8 ? 0x28 : 0x18), RECORDS, size);
	fake_write(trace_at, frames, size);
	for (unsigned k = 0; k < trace->frame_count; k++)
		fake_write(frames + k * size, FRAME + k * 16, size);
	add_block(addr);
}

static void assert_trace(struct made_trace trace, uint32_t expected)
{
	for (unsigned bits = 32; bits <= 64; bits += 32) {
		const uint64_t *frames;
		uint64_t slot;

		start(bits);
		write_trace(0, &trace);
		take();
		assert_int_equal(ust_frames(scene.ust, 0, &frames, &slot), expected);
		assert_int_equal(ust_facts(scene.ust)->broken_count, !expected);
		if (expected)
			assert_true(slot == (trace.frames ? trace.frames :
							    RECORDS + (bits == 64 ? 0x38 : 0x20)));
		for (uint32_t i = 0; i < expected; i++)
			assert_int_equal(frames[i], FRAME + i * 16);
	}
}

TEST(trace_that_leads_to_its_frames_is_stack)
{
	const struct made_trace traces[] = {{.number = 12, .size = 500, .frame_count = 12},
		{.number = 12, .size = 1, .frame_count = 12},
		{.number = 1, .size = 12, .frame_count = 12},
		{.number = 0x12345, .size = 12, .frame_count = 12},
		{.number = 12, .size = 12, .frames = RECORDS + 0x8000, .frame_count = 12},
		{.number = 32, .size = 0, .frame_count = 32}};

	for (size_t i = 0; i < sizeof(traces) / sizeof(*traces); i++)
		assert_trace(traces[i], traces[i].frame_count);
}

TEST(what_only_looks_like_trace_is_none)
{
	const struct made_trace traces[] = {{.number = 12, .size = 12, .frame_count = 0},
		{.number = 0, .size = 0, .frame_count = 12},
		{.number = 33, .size = 0x10008, .frame_count = 12},
		{.number = 13, .size = 14, .frame_count = 12},
		{.number = 12, .size = 12, .frames = RECORDS + 0x8001, .frame_count = 12}};

	for (size_t i = 0; i < sizeof(traces) / sizeof(*traces); i++)
		assert_trace(traces[i], 0);
}

/* If a record is in the database, it is read as a database record, even if its frames look like a
 * trace. */
TEST(traces_and_entries_of_one_process_do_not_mix)
{
	start(64);
	write_habit(20, true);
	for (unsigned i = 20; i < 40; i++)
		write_trace(
			i, &(struct made_trace){.number = 1 + i % 3, .size = 8, .frame_count = 8});
	take();
	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(frames_of(i), i < 20 ? 9 : 8);
	assert_int_equal(ust_facts(scene.ust)->broken_count, 0);
}

/* ---------------------------------------------------------------- hostile memory */

TEST(wild_pointers_are_records_without_frames)
{
	const uint64_t wild[] = {1, 0x1000, 0x7fffffffffff, UINT64_MAX, UINT64_MAX - 7,
		UINT64_C(1) << 63, UINT64_C(1) << 47, RECORDS + 4, RECORDS + 1,
		RECORDS + RECORDS_BYTES, RECORDS + RECORDS_BYTES - 8, 0xfffffff8};
	const uint64_t *frames;
	uint64_t slot;

	for (scene.bits = 32; scene.bits <= 64; scene.bits += 32) {
		walk_clear(&scene.walk);
		add_heap(scene.bits);
		for (size_t i = 0; i < sizeof(wild) / sizeof(*wild); i++)
			add_block(wild[i]);
		take();
		assert_int_equal(ust_facts(scene.ust)->record_count, sizeof(wild) / sizeof(*wild));
		assert_int_equal(ust_facts(scene.ust)->broken_count, sizeof(wild) / sizeof(*wild));
		for (uint32_t i = 0; i < ust_facts(scene.ust)->record_count; i++)
			assert_int_equal(ust_frames(scene.ust, i, &frames, &slot), 0);
	}
}

TEST(record_at_end_of_memory_has_what_is_there)
{
	uint64_t addr = RECORDS + RECORDS_BYTES - 0x10 - 5 * 8;

	add_heap(64);
	write_record(64, addr,
		&(struct made_record){
			.index = 0xffff, .depth = 5, .frame_count = 5, .first_frame = FRAME});
	add_block(addr);
	take();
	assert_int_equal(depth_of(addr, FRAME), 5);
	fake_write(addr + 0xe, 32, 2); /* exceeds the mapped memory */
	memory_clear(&scene.memory);
	take();
	assert_int_equal(depth_of(addr, FRAME), 5);
}

static int small_region(struct target *target, uint64_t addr, struct target_region *region)
{
	(void)target;
	if (addr >= RECORDS + RECORDS_BYTES)
		return -ERR_READ;
	*region = (struct target_region){
		RECORDS, RECORDS + RECORDS_BYTES, TARGET_READ | TARGET_WRITE, false, false};
	return 0;
}

/* Blocks point to every word of an area that contains code addresses, as if each were a record of
 * 32 frames. */
TEST(records_that_lie_in_each_other_do_not_multiply_memory)
{
	struct target_ops ops = *fake.target.ops;
	const uint64_t *list;
	uint64_t frames = 0, slot;

	ops.region = small_region;
	fake.target.ops = &ops;
	add_heap(64);
	for (uint64_t at = RECORDS; at < RECORDS + RECORDS_BYTES; at += 8) {
		fake_write(at, FRAME, 8);
		add_block(at);
	}
	take();
	assert_int_equal(ust_facts(scene.ust)->record_count, RECORDS_BYTES / 8);
	for (uint32_t i = 0; i < ust_facts(scene.ust)->record_count; i++)
		frames += ust_frames(scene.ust, i, &list, &slot);
	assert_in_range(frames, RECORDS_BYTES / 8, RECORDS_BYTES / 4);
	assert_true(ust_facts(scene.ust)->broken_count > 0);
}

TEST(random_memory_harms_nobody)
{
	uint64_t seed = 99, slot;
	const uint64_t *frames;

	for (int round = 0; round < 50; round++) {
		unsigned char *bytes = fake_bytes(RECORDS, RECORDS_BYTES);

		for (size_t i = 0; i < RECORDS_BYTES; i += 8) {
			uint64_t dice = fake_random(&seed), value = dice;

			if (dice % 4)
				value = CODE_BASE + dice % CODE_BYTES;
			memcpy(bytes + i, &value, sizeof(value));
		}
		walk_clear(&scene.walk);
		memory_clear(&scene.memory);
		add_heap(round % 2 ? 32 : 64);
		for (int i = 0; i < 2000; i++)
			add_block(RECORDS + fake_random(&seed) % RECORDS_BYTES);
		take();
		for (uint32_t i = 0; i < ust_facts(scene.ust)->record_count; i++)
			assert_in_range(ust_frames(scene.ust, i, &frames, &slot), 0, 32);
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
