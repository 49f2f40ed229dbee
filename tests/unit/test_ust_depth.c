/*
 * How many frames records have, by what all records of a process show: whatever stands in the slot
 * that is not used, and where the code that stacks lead through is gone.
 */
#include "tests/unit/t.h"

#include "tests/unit/ust_scene.h"

#define MANY 200
#define APART 0x140u
#define GONE 0x66660000u /* where a DLL was */

static uint64_t record_at(unsigned i)
{
	return RECORDS + i * APART;
}

static void start(struct scene *scene, unsigned bits)
{
	walk_clear(&scene->walk);
	memory_clear(&scene->memory);
	memset(fake_bytes(&scene->fake, RECORDS, RECORDS_BYTES), 0, RECORDS_BYTES);
	scene->bits = bits;
	add_heap(scene, bits);
}

static void put(struct scene *scene, unsigned i, struct made_record record)
{
	record.first_frame = FRAME;
	put_record(&scene->fake, scene->bits, record_at(i), &record);
	add_block(scene, record_at(i));
}

static void put_frame(struct scene *scene, unsigned i, unsigned at, uint64_t frame)
{
	unsigned size = scene->bits / 8;

	fake_put(&scene->fake, slot_at(scene->bits, record_at(i)) + at * size, frame, size);
}

static uint32_t frames_of(const struct scene *scene, unsigned i)
{
	const uint64_t *frames;
	uint64_t first_slot;

	return ust_frames(scene->ust, number_of(scene, record_at(i)), &frames, &first_slot);
}

/* ---------------------------------------------------------------- the slot that is not used */

enum other {
	ZERO,
	ONE,
	NINE,
	REFERENCES, /* mostly small */
	RANDOM,
	NUMBER, /* of the record in its database */
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
	unsigned gone_percent; /* of stacks that lead through code that is gone */
};

static unsigned count_of(unsigned i)
{
	return 2 + i * 7 % 31;
}

static void put_process(struct scene *scene, const struct kind *kind)
{
	uint64_t seed = 7;

	for (unsigned i = 0; i < MANY; i++) {
		unsigned count = count_of(i), other = other_value(kind->other, i, &seed);

		put(scene, i,
			(struct made_record){.index = kind->is_index ? count : other,
				.depth = kind->is_index ? other : count,
				.block_depth = room_value(kind->room, count, &seed),
				.frame_count = count});
		if (i % 100 < kind->gone_percent)
			put_frame(scene, i, 1 + i % (count - 1), GONE + i * 16);
	}
}

static void assert_process(struct scene *scene, const struct kind *kind)
{
	for (scene->bits = 32; scene->bits <= 64; scene->bits += 32) {
		start(scene, scene->bits);
		put_process(scene, kind);
		take(scene);
		for (unsigned i = 0; i < MANY; i++)
			assert_int_equal(frames_of(scene, i), count_of(i));
		assert_int_equal(ust_facts(scene->ust)->broken_count, 0);
		assert_int_equal(ust_facts(scene->ust)->cut_count, 0);
	}
}

static void assert_processes(struct scene *scene, unsigned gone_percent)
{
	static const uint32_t flags[] = {0, 0x1000, 0x2001000};

	for (unsigned i = 0; i < 2 * OTHERS * ROOMS * 3; i++) {
		struct kind kind = {.is_index = i % 2,
			.other = i / 2 % OTHERS,
			.room = i / 2 / OTHERS % ROOMS,
			.gone_percent = gone_percent};

		scene->global_flag = flags[i / 2 / OTHERS / ROOMS];
		assert_process(scene, &kind);
	}
}

TEST(stacks_are_whole_whatever_stands_in_the_other_slot)
{
	assert_processes(*state, 0);
}

TEST(stacks_through_code_that_is_gone_are_whole_even_when_most_are_such)
{
	assert_processes(*state, 10);
	assert_processes(*state, 85);
}

/* ---------------------------------------------------------------- the habit of a process */

/* So many records with their number in one place only. */
static unsigned put_habit(struct scene *scene, unsigned count, bool is_index)
{
	for (unsigned i = 0; i < count; i++)
		put(scene, i,
			(struct made_record){.index = is_index ? 9 : 0x1234,
				.depth = is_index ? 0x1234 : 9,
				.frame_count = 9});
	return count;
}

TEST(a_clear_habit_is_followed_where_the_other_slot_is_possible)
{
	struct scene *scene = *state;

	for (int is_index = 0; is_index < 2; is_index++) {
		unsigned i;

		start(scene, 64);
		i = put_habit(scene, 8, is_index);
		put(scene, i,
			(struct made_record){.index = is_index ? 9 : 1,
				.depth = is_index ? 1 : 9,
				.frame_count = 9});
		put_frame(scene, i, 2, GONE);
		put_frame(scene, i, 8, GONE + 16); /* the last one, too */
		take(scene);
		assert_int_equal(frames_of(scene, i), 9);
		assert_int_equal(ust_facts(scene->ust)->cut_count, 0);
	}
}

TEST(without_a_clear_habit_frames_that_are_gone_at_the_end_are_cut_and_counted)
{
	struct scene *scene = *state;

	for (unsigned others = 7; others <= 8; others++) {
		for (int is_index = 0; is_index < 2; is_index++) {
			start(scene, 64);
			put_habit(scene, others + 1, is_index);
			put_frame(scene, 0, 2, GONE);
			put_frame(scene, 0, 8, GONE);
			take(scene);
			assert_int_equal(frames_of(scene, 0), others < 8 ? 2 : 9);
			assert_int_equal(ust_facts(scene->ust)->cut_count, others < 8);
			assert_int_equal(frames_of(scene, 1), 9);
		}
	}
}

TEST(what_is_no_address_cuts_a_stack_and_is_counted)
{
	struct scene *scene = *state;

	start(scene, 64);
	put_habit(scene, 20, false);
	put_frame(scene, 3, 2, 0x66);
	put_frame(scene, 5, 0, 0x66); /* that one makes no sense at all */
	put(scene, 20, (struct made_record){.index = 1, .depth = 0xffff, .frame_count = 7});
	take(scene);
	assert_int_equal(frames_of(scene, 3), 2);
	assert_int_equal(frames_of(scene, 5), 0);
	assert_int_equal(frames_of(scene, 20), 7); /* how many it has is not said */
	assert_int_equal(ust_facts(scene->ust)->cut_count, 1);
	assert_int_equal(ust_facts(scene->ust)->broken_count, 1);
}

/* Records are of either kind, so the place is open; whether BlockDepth is what it is called is not. */
static unsigned put_rooms(struct scene *scene, bool has_room)
{
	for (unsigned i = 0; i < 40; i++)
		put(scene, i,
			(struct made_record){.index = i % 2 ? 12 : 0x1234,
				.depth = i % 2 ? 0x1234 : 12,
				.block_depth = has_room ? 12 : i % 24,
				.frame_count = 12});
	return 40;
}

TEST(room_in_the_record_decides_where_it_agrees_in_the_process)
{
	struct scene *scene = *state;

	scene->global_flag = 0x1000;
	for (int has_room = 0; has_room < 2; has_room++) {
		unsigned i;

		start(scene, 64);
		i = put_rooms(scene, has_room);
		put(scene, i,
			(struct made_record){
				.index = 20, .depth = 10, .block_depth = 10, .frame_count = 24});
		put(scene, i + 1,
			(struct made_record){
				.index = 10, .depth = 20, .block_depth = 10, .frame_count = 24});
		put(scene, i + 2,
			(struct made_record){
				.index = 0xffff, .depth = 0, .block_depth = 4, .frame_count = 7});
		take(scene);
		assert_int_equal(frames_of(scene, i), has_room ? 10 : 20);
		assert_int_equal(frames_of(scene, i + 1), 10);
		assert_int_equal(frames_of(scene, i + 2), has_room ? 4 : 7);
	}
}

/* ---------------------------------------------------------------- traces of a page heap */

struct made_trace {
	uint32_t number, size;
	uint64_t frames; /* where they are; 0: behind it */
	unsigned frame_count;
};

/* RTL_TRACE_BLOCK: Magic, Count, Size, UserCount, UserSize, UserContext, Next, Trace. */
static void put_trace(struct scene *scene, unsigned i, const struct made_trace *trace)
{
	struct fake *fake = &scene->fake;
	unsigned size = scene->bits / 8;
	uint64_t addr = record_at(i), trace_at = addr + (size == 8 ? 0x30 : 0x1c);
	uint64_t frames = trace->frames ? trace->frames : trace_at + size;

	fake_put(fake, addr, 0xabcd1234, 4);
	fake_put(fake, addr + 4, trace->number, 4);
	fake_put(fake, addr + 8, trace->size, 4);
	fake_put(fake, addr + (size == 8 ? 0x10 : 0xc), 3, size);
	fake_put(fake, addr + (size == 8 ? 0x18 : 0x10), 300, size);
	fake_put(fake, addr + (size == 8 ? 0x28 : 0x18), RECORDS, size);
	fake_put(fake, trace_at, frames, size);
	for (unsigned k = 0; k < trace->frame_count; k++)
		fake_put(fake, frames + k * size, FRAME + k * 16, size);
	add_block(scene, addr);
}

static void assert_trace(struct scene *scene, struct made_trace trace, uint32_t expected)
{
	for (unsigned bits = 32; bits <= 64; bits += 32) {
		const uint64_t *frames;
		uint64_t slot;

		start(scene, bits);
		put_trace(scene, 0, &trace);
		take(scene);
		assert_int_equal(ust_frames(scene->ust, 0, &frames, &slot), expected);
		assert_int_equal(ust_facts(scene->ust)->broken_count, !expected);
		if (expected)
			assert_true(slot == (trace.frames ? trace.frames :
							    RECORDS + (bits == 64 ? 0x38 : 0x20)));
		for (uint32_t i = 0; i < expected; i++)
			assert_int_equal(frames[i], FRAME + i * 16);
	}
}

TEST(a_trace_that_leads_to_its_frames_is_a_stack)
{
	const struct made_trace traces[] = {{.number = 12, .size = 500, .frame_count = 12},
		{.number = 12, .size = 1, .frame_count = 12},
		{.number = 1, .size = 12, .frame_count = 12},
		{.number = 0x12345, .size = 12, .frame_count = 12},
		{.number = 12, .size = 12, .frames = RECORDS + 0x8000, .frame_count = 12},
		{.number = 32, .size = 0, .frame_count = 32}};

	for (size_t i = 0; i < sizeof(traces) / sizeof(*traces); i++)
		assert_trace(*state, traces[i], traces[i].frame_count);
}

TEST(what_only_looks_like_a_trace_is_none)
{
	const struct made_trace traces[] = {{.number = 12, .size = 12, .frame_count = 0},
		{.number = 0, .size = 0, .frame_count = 12},
		{.number = 33, .size = 0x10008, .frame_count = 12},
		{.number = 13, .size = 14, .frame_count = 12},
		{.number = 12, .size = 12, .frames = RECORDS + 0x8001, .frame_count = 12}};

	for (size_t i = 0; i < sizeof(traces) / sizeof(*traces); i++)
		assert_trace(*state, traces[i], 0);
}

/* A record of the database is read as one, whatever its frames look like. */
TEST(traces_and_entries_of_one_process_do_not_mix)
{
	struct scene *scene = *state;

	start(scene, 64);
	put_habit(scene, 20, true);
	for (unsigned i = 20; i < 40; i++)
		put_trace(scene, i,
			&(struct made_trace){.number = 1 + i % 3, .size = 8, .frame_count = 8});
	take(scene);
	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(frames_of(scene, i), i < 20 ? 9 : 8);
	assert_int_equal(ust_facts(scene->ust)->broken_count, 0);
}
