/* The doctor's comparison. Data that agree with the truth are ok. Each kind of mistake by a walker
 * or by a stack source marks exactly one row as off. A few differences that Windows causes are only
 * noted. */
#include "tests/unit/t.h"

#include "snapshot/doctor/doctor.h"

#define PROCESS 0x10000u
#define GROWABLE 0x20000u
#define UNLOCKED 0x30000u
#define LIVE_BIG 0x300000u
#define FREED 0x210040u
#define OUTER_FRAME 0x140005010u
#define MAIN_FRAME 0x140006020u
#define SYSTEM_FRAME 0x7ff000001000u

/* Indexes of the heaps that a source found. */
enum { IN_PROCESS, IN_GROWABLE, IN_UNLOCKED };

/* A truth with blocks in three heaps, and a source's correct result. Tests plant mistakes into the
 * result. */
struct scene {
	struct doctor doctor;
	struct snapshot found;
	uint32_t stacks[DOCTOR_SITES + 1]; /* stack that passes through each site */
};

static struct scene scene;

static struct doctor_range site_code(unsigned site)
{
	return (struct doctor_range){0x140001000 + site * 0x100, 0x140001080 + site * 0x100};
}

static uint32_t write_stack(const uint64_t *frames, uint32_t count)
{
	const struct stack stack = {.id = "A1", .frames = frames, .frame_count = count};
	uint32_t index = 0;

	stackset_add(&scene.found.stacks, &stack, 2, &index);
	return index;
}

static void put(uint64_t addr, uint64_t bytes, enum doctor_heap heap, enum doctor_group group)
{
	struct doctor_truth *truth = scene.doctor.truth;
	const struct doctor_block block = {.addr = addr,
		.requested_bytes = bytes,
		.heap = (uint8_t)heap,
		.group = (uint8_t)group,
		.site = (uint8_t)(truth->block_count % DOCTOR_SITES),
		.was_bytes = group == DOCTOR_RESIZED ? 9 : 0};

	assert_true(doctor_truth_add(truth, &block));
}

static void write_freed(uint64_t addr)
{
	const struct doctor_block freed = {
		.addr = addr, .requested_bytes = 20, .heap = DOCTOR_GROWABLE, .is_freed = true};

	assert_true(doctor_truth_add(scene.doctor.truth, &freed));
}

static void find(uint64_t addr, uint64_t bytes, uint32_t heap, uint32_t stack)
{
	struct block *block = snapshot_add_block(&scene.found);

	assert_non_null(block);
	*block = (struct block){addr, bytes, 16, heap, stack};
}

/* Makes the source find all live blocks, and one more block in the process heap. */
static void find_all(void)
{
	struct doctor_truth *truth = scene.doctor.truth;

	doctor_truth_sort(truth);
	assert_true(doctor_truth_is_sound(truth));
	scene.found.block_count = 0;
	for (uint32_t i = 0; i < truth->block_count; i++) {
		const struct doctor_block *block = &truth->blocks[i];
		uint32_t heap = block->heap == DOCTOR_PROCESS_HEAP ? IN_PROCESS :
				block->heap == DOCTOR_GROWABLE	   ? IN_GROWABLE :
								     IN_UNLOCKED;

		if (!block->is_freed)
			find(block->addr, block->requested_bytes, heap, scene.stacks[block->site]);
	}
	find(0x110100, 7, IN_PROCESS, scene.stacks[0]);
}

static int set_up(void **state)
{
	static const uint64_t heaps[] = {PROCESS, GROWABLE, UNLOCKED};
	struct doctor_truth *truth;

	(void)state;
	memset(&scene, 0, sizeof(scene));
	doctor_init(&scene.doctor);
	truth = scene.doctor.truth;
	snapshot_init(&scene.found);
	truth->heaps[DOCTOR_PROCESS_HEAP] = PROCESS;
	truth->heaps[DOCTOR_GROWABLE] = GROWABLE;
	truth->heaps[DOCTOR_UNLOCKED] = UNLOCKED;
	truth->image = (struct doctor_range){0x140000000, 0x140010000};
	truth->outer = (struct doctor_range){0x140005000, 0x140005100};
	for (unsigned i = 0; i <= DOCTOR_SITES; i++) {
		const uint64_t frames[] = {SYSTEM_FRAME, site_code(i).to, OUTER_FRAME, MAIN_FRAME};

		truth->sites[i] = site_code(i);
		scene.stacks[i] = write_stack(frames, 4);
	}
	for (unsigned i = 0; i < 3; i++)
		snapshot_add_heap(&scene.found)->addr = heaps[i];
	put(0x110000, 0, DOCTOR_PROCESS_HEAP, DOCTOR_SMALL);
	put(0x110020, 100, DOCTOR_PROCESS_HEAP, DOCTOR_SMALL);
	put(0x210000, 1, DOCTOR_GROWABLE, DOCTOR_SMALL);
	put(0x210020, 24, DOCTOR_GROWABLE, DOCTOR_SMALL);
	put(0x210060, 2000, DOCTOR_GROWABLE, DOCTOR_MIDDLE);
	put(0x211000, 70000, DOCTOR_GROWABLE, DOCTOR_RESIZED);
	put(LIVE_BIG, 0x100000, DOCTOR_GROWABLE, DOCTOR_BIG);
	put(0x410000, 20, DOCTOR_UNLOCKED, DOCTOR_SMALL);
	write_freed(FREED);
	find_all();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	doctor_release(&scene.doctor);
	snapshot_release(&scene.found);
	return 0;
}

static struct block *at(uint64_t addr)
{
	for (size_t i = 0; i < scene.found.block_count; i++) {
		if (scene.found.blocks[i].addr == addr)
			return &scene.found.blocks[i];
	}
	fail_msg("no block at %llx", (unsigned long long)addr);
	return NULL;
}

static void lose(uint64_t addr)
{
	*at(addr) = scene.found.blocks[scene.found.block_count - 1];
	scene.found.block_count--;
}

static struct doctor_block *truth_at(uint64_t addr)
{
	for (uint32_t i = 0; i < scene.doctor.truth->block_count; i++) {
		if (scene.doctor.truth->blocks[i].addr == addr)
			return &scene.doctor.truth->blocks[i];
	}
	fail_msg("no truth at %llx", (unsigned long long)addr);
	return NULL;
}

static void compare(void)
{
	scene.doctor.row_count = 0;
	doctor_compare(&scene.doctor, "test", &scene.found, true);
}

/* Compares the result as if a walk had given it, without stacks. */
static void compare_walk(void)
{
	scene.doctor.row_count = 0;
	doctor_compare(&scene.doctor, "test", &scene.found, false);
}

static size_t count_off(void)
{
	return doctor_count(&scene.doctor, NULL, DOCTOR_OFF);
}

static const struct doctor_row *row(enum doctor_heap heap, const char *what)
{
	for (size_t i = 0; i < scene.doctor.row_count; i++) {
		const struct doctor_row *row = &scene.doctor.rows[i];

		if (!strcmp(row->heap, doctor_heap_names[heap]) && !strcmp(row->what, what))
			return row;
	}
	fail_msg("no row for %s", what);
	return NULL;
}

/* Asserts that these rows are off, each with a reason, and that all other rows are not. */
static void assert_off(enum doctor_heap heap, const char *what, const char *also)
{
	assert_int_equal(row(heap, what)->verdict, DOCTOR_OFF);
	assert_true(row(heap, what)->detail[0]);
	if (also)
		assert_int_equal(row(heap, also)->verdict, DOCTOR_OFF);
	assert_int_equal(count_off(), also ? 2 : 1);
}

/* Calls assert_off() for a snapshot and for a walk, which has no stacks. */
static void compare_off(enum doctor_heap heap, const char *what, const char *also)
{
	compare_walk();
	assert_off(heap, what, also && strcmp(also, "stacks") != 0 ? also : NULL);
	compare();
	assert_off(heap, what, also);
}

static const char *group(enum doctor_group group)
{
	return doctor_group_names[group];
}

/* Returns the site that allocated the child's block at addr, if the child allocated one there. */
static unsigned truth_site(uint64_t addr)
{
	const struct doctor_truth *truth = scene.doctor.truth;
	uint32_t i = 0;

	while (i < truth->block_count && truth->blocks[i].addr != addr)
		i++;
	return i < truth->block_count ? truth->blocks[i].site : 0;
}

#define SMALL "blocks of 0 to 1024 bytes"
#define OVERLAP "blocks that overlap"

#undef TEST_AROUND
#define TEST_AROUND set_up, tear_down

TEST(test_truth_is_ok)
{
	compare();
	assert_int_equal(count_off(), 0);
	assert_int_equal(row(DOCTOR_GROWABLE, group(DOCTOR_SMALL))->expected, 2);
	assert_int_equal(row(DOCTOR_GROWABLE, group(DOCTOR_SMALL))->found, 2);
	assert_int_equal(row(DOCTOR_GROWABLE, "freed blocks gone")->expected, 1);
	assert_int_equal(row(DOCTOR_GROWABLE, "freed blocks gone")->found, 1);
	assert_int_equal(row(DOCTOR_GROWABLE, "stacks")->expected, 5);
	assert_int_equal(row(DOCTOR_PROCESS_HEAP, "stacks")->found, 2);
	assert_int_equal(row(DOCTOR_PROCESS_HEAP, "blocks that overlap")->found, 0);
	/* Rows: groups of live blocks; freed and other blocks of two heaps; overlaps and stacks of
	 * three heaps. */
	assert_int_equal(scene.doctor.row_count, 1 + 4 + 1 + 2 * 2 + 3 + 3);
}

TEST(test_walk_has_no_row_for_stacks)
{
	compare_walk();
	assert_int_equal(count_off(), 0);
	assert_int_equal(scene.doctor.row_count, 1 + 4 + 1 + 2 * 2 + 3);
	for (size_t i = 0; i < scene.doctor.row_count; i++)
		assert_string_not_equal(scene.doctor.rows[i].what, "stacks");
}

TEST(test_each_mistake_turns_off_row_about_it)
{
	static const struct {
		uint64_t lost, found, bytes;
		uint32_t in;
		enum doctor_heap heap;
		const char *what, *also; /* labels of the rows that must be off; NULL: none */
	} cases[] = {
		{.lost = 0x210060,
			.heap = DOCTOR_GROWABLE,
			.what = "blocks to 16 KiB",
			.also = "stacks"},
		{.lost = 0x110000, .heap = DOCTOR_PROCESS_HEAP, .what = SMALL, .also = "stacks"},
		/* a block listed twice */
		{0, 0x210020, 24, IN_GROWABLE, DOCTOR_GROWABLE, OVERLAP, NULL},
		/* One block extends into the child's first block; another ends just before it. */
		{0, 0x10ff00, 0x101, IN_PROCESS, DOCTOR_PROCESS_HEAP, OVERLAP, NULL},
		{0, 0x10ff00, 0x100, IN_PROCESS, DOCTOR_PROCESS_HEAP, NULL, NULL},
		/* An overlapping block in another heap. */
		{0, LIVE_BIG - 8, 9, IN_PROCESS, DOCTOR_GROWABLE, OVERLAP, NULL},
		/* One block lies in the last byte of a foreign block, another just after it. */
		{0, 0x110106, 1, IN_PROCESS, DOCTOR_PROCESS_HEAP, OVERLAP, NULL},
		{0, 0x110107, 1, IN_PROCESS, DOCTOR_PROCESS_HEAP, NULL, NULL},
		/* a block that was never allocated */
		{0, 0x210900, 5, IN_GROWABLE, DOCTOR_GROWABLE, "other blocks", NULL},
		/* A freed block. Another heap may reuse its address. */
		{0, FREED, 20, IN_GROWABLE, DOCTOR_GROWABLE, "freed blocks gone", NULL},
		{0, FREED, 20, IN_PROCESS, DOCTOR_GROWABLE, NULL, NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		tear_down(state);
		set_up(state);
		if (cases[i].lost)
			lose(cases[i].lost);
		else
			find(cases[i].found, cases[i].bytes, cases[i].in,
				scene.stacks[truth_site(cases[i].found)]);
		if (cases[i].what) {
			compare_off(cases[i].heap, cases[i].what, cases[i].also);
		} else {
			compare();
			assert_int_equal(count_off(), 0);
		}
	}
}

TEST(test_no_blocks_at_all_are_off)
{
	scene.found.block_count = 0;
	compare_walk();
	assert_int_equal(count_off(), 1 + 4 + 1); /* all groups of the three heaps */
	assert_int_equal(row(DOCTOR_GROWABLE, group(DOCTOR_BIG))->found, 0);
}

TEST(test_wrong_size_is_off)
{
	at(LIVE_BIG)->requested_bytes--;
	compare_off(DOCTOR_GROWABLE, group(DOCTOR_BIG), NULL);
	at(LIVE_BIG)->requested_bytes += 2;
	compare_off(DOCTOR_GROWABLE, group(DOCTOR_BIG), NULL);
}

TEST(test_wrong_place_is_off)
{
	at(LIVE_BIG)->addr += 8;
	compare_walk();
	assert_off(DOCTOR_GROWABLE, group(DOCTOR_BIG), "other blocks");
	compare();
	assert_int_equal(count_off(), 3); /* the third is the block's stack */
}

TEST(test_block_in_wrong_heap_is_off)
{
	at(0x410000)->heap = IN_GROWABLE;
	compare_off(DOCTOR_UNLOCKED, group(DOCTOR_SMALL), NULL);
}

/* The block's end must not wrap around: the block overlaps with every later block. */
TEST(test_block_without_end_overlaps)
{
	find(0x110101, UINT64_MAX, IN_PROCESS, 0);
	compare();
	assert_int_equal(row(DOCTOR_PROCESS_HEAP, "blocks that overlap")->found, 1);
	assert_int_equal(row(DOCTOR_GROWABLE, "blocks that overlap")->found, 5);
	assert_int_equal(row(DOCTOR_UNLOCKED, "blocks that overlap")->found, 1);
}

TEST(test_heap_that_is_not_walked_is_off_but_for_segment_heaps)
{
	struct doctor_truth *truth = scene.doctor.truth;

	lose(0x410000);
	scene.found.heaps[IN_UNLOCKED].unwalked = true;
	compare_off(DOCTOR_UNLOCKED, "walking it", NULL);
	truth_at(0x410000)->heap = DOCTOR_SEGMENT;
	truth->heaps[DOCTOR_SEGMENT] = UNLOCKED;
	truth->heaps[DOCTOR_UNLOCKED] = 0;
	compare();
	assert_int_equal(count_off(), 0);
	assert_int_equal(row(DOCTOR_SEGMENT, "walking it")->verdict, DOCTOR_NOT_THERE);
}

TEST(segment_heaps_of_unknown_layout_prove_nothing)
{
	scene.found.heaps[IN_UNLOCKED].unwalked = true;
	scene.found.heaps[IN_UNLOCKED].kind = "segment";
	lose(0x410000);
	compare();
	assert_int_equal(count_off(), 0);
	assert_int_equal(row(DOCTOR_UNLOCKED, "walking it")->verdict, DOCTOR_NOT_THERE);
}

/* The tracer also knows the blocks of such heaps. */
TEST(test_heap_that_is_not_walked_may_have_tracers_blocks)
{
	scene.found.heaps[IN_UNLOCKED].unwalked = true;
	compare();
	assert_int_equal(count_off(), 0);
	assert_int_equal(row(DOCTOR_UNLOCKED, "stacks")->found, 1);
}

TEST(test_heap_that_is_not_listed_is_off)
{
	lose(0x410000);
	scene.found.heap_count = 2;
	compare_off(DOCTOR_UNLOCKED, group(DOCTOR_SMALL), "stacks");
}

static bool may_have(uint64_t bytes, uint64_t was_bytes, uint64_t overhead_bytes)
{
	truth_at(LIVE_BIG)->requested_bytes = bytes;
	truth_at(LIVE_BIG)->was_bytes = was_bytes;
	at(LIVE_BIG)->requested_bytes = bytes;
	at(LIVE_BIG)->overhead_bytes = overhead_bytes;
	compare();
	assert_int_equal(
		count_off(), row(DOCTOR_GROWABLE, group(DOCTOR_BIG))->verdict == DOCTOR_OFF);
	return !count_off();
}

TEST(test_overhead_may_be_what_real_heaps_have_and_not_absurd)
{
	/* Extended prefix with header and rounding; a page; Windows' unit of 64 KiB. */
	assert_true(may_have(0, 0, 0x30 + 16 + 15));
	assert_true(may_have(20000, 0, 0x1000 + 0x60));
	assert_true(may_have(0x80000, 0, 0x10000 + 0x60));
	assert_false(may_have(100, 0, 0x1000));
	/* The rest of a block that was shrunk in place. */
	assert_true(may_have(100, 1000, 900 + 0x30 + 16 + 15));
	assert_true(may_have(300, 2000000, 2000000 - 300 + 0x10000));
}

TEST(test_more_blocks_without_stack_are_off)
{
	scene.found.heaps[IN_GROWABLE].stackless.block_count = 3;
	compare();
	assert_off(DOCTOR_GROWABLE, "other blocks", NULL);
	assert_int_equal(row(DOCTOR_GROWABLE, "other blocks")->found, 3);
}

TEST(test_block_without_stack_is_no_other_block)
{
	lose(0x210000);
	scene.found.heaps[IN_GROWABLE].stackless.block_count = 1;
	compare();
	assert_off(DOCTOR_GROWABLE, group(DOCTOR_SMALL), "stacks");
}

/* Returns true if this stack is valid for a block that was allocated at this site and possibly
 * reallocated. */
static bool fits(uint8_t site, uint64_t was_bytes, uint32_t stack)
{
	truth_at(LIVE_BIG)->site = site;
	truth_at(LIVE_BIG)->was_bytes = was_bytes;
	at(LIVE_BIG)->stack = stack;
	compare();
	if (count_off())
		assert_off(DOCTOR_GROWABLE, "stacks", NULL);
	assert_int_equal(row(DOCTOR_GROWABLE, "stacks")->found, count_off() ? 4 : 5);
	return !count_off();
}

static bool frames_fit(const uint64_t *frames, uint32_t count)
{
	return fits(1, 0, write_stack(frames, count));
}

TEST(test_stack_is_its_innermost_own_frame_and_outer_function)
{
	const struct doctor_range code = site_code(1);
	uint64_t frames[4] = {SYSTEM_FRAME, code.from + 1, OUTER_FRAME, MAIN_FRAME};

	assert_true(frames_fit(frames, 4));
	frames[1] = code.to; /* the call may be the last instruction */
	assert_true(frames_fit(frames, 4));
	assert_true(frames_fit(frames, 3));
	assert_true(frames_fit(frames + 1, 3));
	assert_false(frames_fit(frames, 2)); /* cut before the outer function */
	assert_false(frames_fit(frames, 1));
	frames[2] = MAIN_FRAME;
	assert_false(frames_fit(frames, 4));
	frames[2] = OUTER_FRAME;
	frames[1] = code.from; /* no call lies before a function's first byte */
	assert_false(frames_fit(frames, 4));
	frames[1] = code.to + 1;
	assert_false(frames_fit(frames, 4));
	frames[0] = MAIN_FRAME; /* a further inner frame of its own */
	frames[1] = code.to;
	assert_false(frames_fit(frames, 4));
}

TEST(test_either_site_may_be_on_reallocated_blocks_stack)
{
	assert_true(fits(2, 5, scene.stacks[2]));
	assert_true(fits(2, 5, scene.stacks[DOCTOR_RESIZE_SITE]));
	assert_false(fits(2, 5, scene.stacks[1]));
	assert_false(fits(2, 0, scene.stacks[DOCTOR_RESIZE_SITE]));
}

enum {
	/* With 5 more live blocks: 3 blocks of the row "other blocks" are few, 4 are not. */
	MANY_LIVE = 192,
	/* With 1 more freed block: 8 freed blocks still listed are few, 9 are not. */
	MANY_FREED = 63,
};

static uint64_t live_addr(unsigned i)
{
	return 0x500000 + i * 0x100;
}

static uint64_t freed_addr(unsigned i)
{
	return live_addr(MANY_LIVE + i);
}

static uint64_t other_addr(unsigned i)
{
	return live_addr(MANY_LIVE + MANY_FREED + i);
}

/* Sets up the scene with many more blocks in the growable heap, a heap of Windows. */
static int set_up_many(void **state)
{
	set_up(state);
	for (unsigned i = 0; i < MANY_LIVE; i++)
		put(live_addr(i), 32, DOCTOR_GROWABLE, DOCTOR_SMALL);
	for (unsigned i = 0; i < MANY_FREED; i++)
		write_freed(freed_addr(i));
	find_all();
	scene.found.heaps[IN_GROWABLE].kind = "nt";
	return 0;
}

/* Asserts that this row of the growable heap has this verdict and text, for a snapshot and a walk,
 * and that all other rows are ok. */
static const struct doctor_row *compare_one(
	const char *what, enum doctor_verdict verdict, const char *text)
{
	for (unsigned i = 0; i < 2; i++) {
		(i ? compare : compare_walk)();
		assert_int_equal(row(DOCTOR_GROWABLE, what)->verdict, verdict);
		assert_int_equal(
			doctor_count(&scene.doctor, NULL, DOCTOR_OK) + 1, scene.doctor.row_count);
		assert_non_null(strstr(row(DOCTOR_GROWABLE, what)->detail, text));
	}
	return row(DOCTOR_GROWABLE, what);
}

TEST_WITH(test_a_few_blocks_of_the_heaps_own_are_a_note_and_more_are_off, set_up_many, tear_down)
{
	for (unsigned i = 0; i < 3; i++)
		find(other_addr(i), 48, IN_GROWABLE, 0);
	assert_int_equal(compare_one("other blocks", DOCTOR_NOTE, "the heap's own")->found, 3);
	find(other_addr(3), 48, IN_GROWABLE, 0);
	compare_one("other blocks", DOCTOR_OFF, "");
}

TEST_WITH(test_a_few_blocks_without_a_stack_are_a_note, set_up_many, tear_down)
{
	scene.found.heaps[IN_GROWABLE].stackless.block_count = 3;
	compare();
	assert_int_equal(count_off(), 0);
	assert_int_equal(row(DOCTOR_GROWABLE, "other blocks")->verdict, DOCTOR_NOTE);
}

TEST_WITH(
	test_a_block_inside_one_of_the_childs_is_no_block_of_the_heaps_own, set_up_many, tear_down)
{
	find(live_addr(7) + 16, 48, IN_GROWABLE, 0);
	compare_off(DOCTOR_GROWABLE, "blocks that overlap", NULL);
}

TEST_WITH(test_wine_has_no_such_blocks, set_up_many, tear_down)
{
	scene.found.heaps[IN_GROWABLE].kind = "wine";
	find(other_addr(0), 48, IN_GROWABLE, 0);
	compare_one("other blocks", DOCTOR_OFF, "");
	lose(other_addr(0));
	find(freed_addr(0), 48, IN_GROWABLE, 0);
	compare_one("freed blocks gone", DOCTOR_OFF, "");
}

TEST_WITH(test_a_few_freed_blocks_that_are_put_aside_are_a_note_and_more_are_off, set_up_many,
	tear_down)
{
	const struct doctor_row *freed;

	for (unsigned i = 0; i < 8; i++)
		find(freed_addr(i), 48, IN_GROWABLE, 0);
	freed = compare_one("freed blocks gone", DOCTOR_NOTE, "freed blocks in a cache");
	assert_int_equal(freed->expected, MANY_FREED + 1);
	assert_int_equal(freed->found, MANY_FREED + 1 - 8);
	find(freed_addr(8), 48, IN_GROWABLE, 0);
	compare_one("freed blocks gone", DOCTOR_OFF, "");
	/* An eighth of 320 is 40, but at most 32 are few. */
	for (unsigned i = MANY_FREED; i < 319; i++)
		write_freed(freed_addr(i));
	find_all();
	for (unsigned i = 0; i < 32; i++)
		find(freed_addr(i), 48, IN_GROWABLE, 0);
	compare_one("freed blocks gone", DOCTOR_NOTE, "freed blocks in a cache");
	find(freed_addr(32), 48, IN_GROWABLE, 0);
	compare_one("freed blocks gone", DOCTOR_OFF, "");
}

/* The other heap has one live block: one more block is not a small part. */
TEST(test_nothing_is_few_in_small_heap)
{
	scene.found.heaps[IN_UNLOCKED].kind = "nt";
	find(0x410100, 5, IN_UNLOCKED, 0);
	compare_off(DOCTOR_UNLOCKED, "other blocks", NULL);
}

/* Compares the heaps of a walk. They are the child's heaps, with some heaps added or removed. */
static void compare_heaps(const uint64_t *addrs, size_t count, const char *kind)
{
	struct heap heaps[8] = {{.addr = 0}};

	assert_true(count <= 8);
	for (size_t i = 0; i < count; i++)
		heaps[i] = (struct heap){.addr = addrs[i], .kind = kind, .bits = 64};
	scene.doctor.row_count = 0;
	doctor_compare_heaps(&scene.doctor, "test", heaps, count, 64);
}

static const struct doctor_row *heaps_row(const char *what)
{
	for (size_t i = 0; i < scene.doctor.row_count; i++) {
		if (!strcmp(scene.doctor.rows[i].what, what))
			return &scene.doctor.rows[i];
	}
	fail_msg("no row for %s", what);
	return NULL;
}

#define NAMED "heaps of GetProcessHeaps()"
#define UNNAMED "other heaps"

static void state_heaps(void)
{
	static const uint64_t listed[] = {PROCESS, GROWABLE, UNLOCKED};

	memcpy(scene.doctor.truth->listed, listed, sizeof(listed));
	scene.doctor.truth->listed_count = 3;
}

TEST(equal_lists_of_heaps_are_ok)
{
	const uint64_t found[] = {UNLOCKED, PROCESS, GROWABLE};

	state_heaps();
	compare_heaps(found, 3, "nt");
	assert_int_equal(count_off(), 0);
	assert_int_equal(heaps_row(NAMED)->expected, 3);
	assert_int_equal(heaps_row(NAMED)->found, 3);
	assert_int_equal(heaps_row(UNNAMED)->found, 0);
}

TEST(missing_heap_is_off)
{
	const uint64_t found[] = {PROCESS, UNLOCKED};

	state_heaps();
	compare_heaps(found, 2, "nt");
	assert_int_equal(count_off(), 1);
	assert_int_equal(heaps_row(NAMED)->verdict, DOCTOR_OFF);
	assert_int_equal(heaps_row(NAMED)->found, 2);
	assert_non_null(strstr(heaps_row(NAMED)->detail, "the heap at 20000 was not found"));
}

TEST(heap_of_other_half_does_not_stand_for_missing_one)
{
	struct heap heaps[] = {{.addr = PROCESS, .bits = 32}, {.addr = GROWABLE, .bits = 64},
		{.addr = 0x7000000, .bits = 64}};

	scene.doctor.truth->listed[0] = PROCESS;
	scene.doctor.truth->listed[1] = GROWABLE;
	scene.doctor.truth->listed_count = 2;
	doctor_compare_heaps(&scene.doctor, "test", heaps, 3, 32);
	assert_int_equal(heaps_row(NAMED)->found, 1);
	assert_int_equal(heaps_row(UNNAMED)->found, 0);
}

TEST(additional_heap_is_noted_and_off_under_wine)
{
	const uint64_t found[] = {PROCESS, GROWABLE, 0x50000, UNLOCKED};

	state_heaps();
	compare_heaps(found, 4, "nt");
	assert_int_equal(count_off(), 0);
	assert_int_equal(heaps_row(UNNAMED)->verdict, DOCTOR_NOTE);
	assert_int_equal(heaps_row(UNNAMED)->found, 1);
	assert_non_null(strstr(heaps_row(UNNAMED)->detail, "does not return the heap at 50000"));
	compare_heaps(found, 4, "wine");
	assert_int_equal(count_off(), 1);
	assert_int_equal(heaps_row(UNNAMED)->verdict, DOCTOR_OFF);
}

TEST(process_that_states_no_heaps_has_no_row_about_them)
{
	const uint64_t found[] = {PROCESS};

	compare_heaps(found, 1, "nt");
	assert_int_equal(scene.doctor.row_count, 0);
}
