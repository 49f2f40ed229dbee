#include "tests/unit/t.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/fake_heaps.h"
#include "tests/unit/fake_tracer.h"

#include "core/base/os.h"
#include "snapshot/capture/capture.h"

#define STACKS 50
#define TABLE_PAGES 1

/* Forms of the tracer's entry for a block of the heaps. */
enum said {
	TRUTH,
	TRUTH_TOO,
	NOTHING,
	OTHER_SIZE,
	OTHER_HEAP,
	NO_STACK,
	NO_SUCH_STACK,
};

struct scene {
	struct snapshot snapshot;
	struct capture_options options;
	struct capture_stats stats;
	struct err err;
	uint32_t stacks[STACKS];
	/* The word at `busy_addr` differs from `calm_value` until the process was suspended
	 * `busy_until` times. */
	uint64_t busy_until, busy_addr, calm_value;
};

static struct scene scene;

/* Makes the tracer's size or heap wrong for less than one block in a hundred. More errors would
 * suggest a wrong heap layout. */
static enum said said_of(size_t i)
{
	static const enum said often[] = {TRUTH, TRUTH_TOO, NOTHING, NO_STACK, NO_SUCH_STACK};

	if (i % 256 < 2)
		return i % 256 ? OTHER_HEAP : OTHER_SIZE;
	return often[i * 2654435761u % 1000 % 5];
}

static uint32_t depth_of(size_t stack)
{
	return 1 + (uint32_t)stack % TRACER_DEPTH_MAX;
}

static uint64_t first_frame_of(size_t stack)
{
	return 0x140001000 + stack * 0x10000;
}

static void messages(size_t i)
{
	const struct placed *placed = &truth.blocks[i];
	struct made_block block = {.addr = placed->addr,
		.size_bytes = placed->requested_bytes,
		.heap = placed->heap,
		.stack = scene.stacks[i % STACKS]};

	switch (said_of(i)) {
	case NOTHING: return;
	case OTHER_SIZE: block.size_bytes++; break;
	case OTHER_HEAP: block.heap = HEAP_C; break;
	case NO_STACK: block.stack = 0; break;
	case NO_SUCH_STACK: block.stack = 0x7ffffff; break;
	default: break;
	}
	tracer_write_block((unsigned)i % 24, (unsigned)i / 24, &block);
}

static int set_up(void **state)
{
	const struct made_block gone = {.addr = 0x99990000, .size_bytes = 8, .heap = HEAP_A};

	(void)state;
	memset(&scene, 0, sizeof(scene));
	image_make(42);
	tracer_place();
	for (size_t i = 0; i < STACKS; i++)
		scene.stacks[i] = tracer_write_stack(first_frame_of(i), depth_of(i));
	for (unsigned shard = 0; shard < 25; shard++)
		tracer_place_table(shard, TABLE_PAGES);
	assert_true(truth.block_count < 24 * 256 * TABLE_PAGES);
	for (size_t i = 0; i < truth.block_count; i++)
		messages(i);
	tracer_write_block(24, 3, &gone); /* in the tracer's table, but in no heap */
	snapshot_init(&scene.snapshot);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	snapshot_release(&scene.snapshot);
	image_free();
	return 0;
}

/* Captures one snapshot into a fresh struct. Afterwards the process must be running. */
static int take(void)
{
	int rc;

	snapshot_release(&scene.snapshot);
	snapshot_init(&scene.snapshot);
	fake.reads = fake.late_reads = fake.suspends = fake.resumes = 0;
	fake.may_look = true;
	scene.err = (struct err){0};
	rc = capture_target(
		&fake.target, &scene.options, &scene.snapshot, &scene.stats, &scene.err);
	assert_int_equal(fake.suspends, fake.resumes);
	assert_false(fake.is_held);
	assert_int_equal(fake.loose_reads, 0);
	if (rc)
		assert_int_equal(scene.err.code, -rc);
	return rc;
}

/* assertions */

static void assert_stack(uint32_t index, size_t stack)
{
	const struct stack *found = &scene.snapshot.stacks.stacks[index];

	assert_true(index < scene.snapshot.stacks.count);
	assert_int_equal(found->frame_count, depth_of(stack));
	for (uint32_t k = 0; k < found->frame_count; k++)
		assert_int_equal(stack_frame(found, k), first_frame_of(stack) + 16 * k);
}

static void assert_block(size_t i, bool has_overhead)
{
	const struct placed *placed = &truth.blocks[i];
	const struct block *block = block_at(&scene.snapshot, placed->addr);

	assert_non_null(block);
	assert_int_equal(block->requested_bytes, placed->requested_bytes);
	assert_int_equal(block->overhead_bytes, has_overhead ? placed->overhead_bytes : 0);
	assert_int_equal(scene.snapshot.heaps[block->heap].addr, placed->heap);
	assert_stack(block->stack, i % STACKS);
}

static struct block_totals stackless_of(uint64_t heap)
{
	struct block_totals totals = {0};

	for (size_t i = 0; i < truth.block_count; i++) {
		const struct placed *placed = &truth.blocks[i];

		if (placed->heap != heap || said_of(i) <= TRUTH_TOO)
			continue;
		totals.block_count++;
		totals.requested_bytes += placed->requested_bytes;
		totals.overhead_bytes += placed->overhead_bytes;
	}
	return totals;
}

static void assert_whole(void)
{
	const struct snapshot *snapshot = &scene.snapshot;
	size_t count = 0;

	for (size_t i = 0; i < truth.block_count; i++) {
		if (said_of(i) > TRUTH_TOO)
			continue;
		assert_block(i, true);
		count++;
	}
	assert_int_equal(snapshot->block_count, count);
	assert_int_equal(snapshot->heap_count, truth.heap_count);
	for (size_t i = 0; i < snapshot->heap_count; i++) {
		const struct block_totals want = stackless_of(snapshot->heaps[i].addr);

		assert_memory_equal(&snapshot->heaps[i].stackless, &want, sizeof(want));
	}
	assert_int_equal(snapshot_total(snapshot).block_count, truth.block_count);
}

/* a busy heap */

static void be_busy(void)
{
	bool is_busy = fake.suspends <= scene.busy_until;

	fake_write(scene.busy_addr, is_busy ? 0x24 : scene.calm_value, 8);
}

static void be_busy_at(uint64_t addr, uint64_t until)
{
	fake.on_suspend = be_busy;
	scene.busy_addr = addr;
	scene.busy_until = until;
	scene.calm_value = fake_get(addr, 8);
}

static bool warns(const char *words)
{
	return has_warning(&scene.snapshot, words);
}

#undef TEST_AROUND
#define TEST_AROUND set_up, tear_down

static long set_back_s; /* seconds by which each query of the wall clock sets it back */

int clock_gettime(clockid_t clock_id, struct timespec *tp)
{
	static long back_s;
	int rc = (int)syscall(SYS_clock_gettime, clock_id, tp);

	if (clock_id == CLOCK_REALTIME)
		tp->tv_sec -= back_s += set_back_s;
	return rc;
}

/* combining the walk and the tracer's tables */

TEST(each_block_gets_stack_tracer_has_for_it)
{
	assert_int_equal(take(), 0);
	assert_whole();
	assert_null(block_at(&scene.snapshot, 0x99990000));
	assert_true(warns("1 block was freed without the tracer noticing, and is not listed"));
	assert_int_equal(scene.stats.tries, 1);
	assert_int_equal(fake.suspends, 1);
	assert_true(scene.stats.held_ms >= 0);
}

TEST(snapshot_identifies_its_process)
{
	const struct snapshot *snapshot = &scene.snapshot;

	snprintf(fake.target.image, sizeof(fake.target.image), "C:\\app\\app.exe");
	snprintf(fake.target.host, sizeof(fake.target.host), "node7");
	fake.target.start_ms = 1234;
	assert_int_equal(take(), 0);
	assert_int_equal(snapshot->pid, 12);
	assert_int_equal(snapshot->bits, 64);
	assert_int_equal(snapshot->start_ms, 1234);
	assert_true(snapshot->time_ms > 1234);
	assert_string_equal(snapshot->image, "C:\\app\\app.exe");
	assert_null(snapshot->os);
	assert_string_equal(snapshot->host, "node7");
	assert_string_equal(snapshot->stack_source, "tracer");
	assert_int_equal(snapshot->module_count, 2);
	assert_false(snapshot->modules[0].has_identity); /* the module's headers are unreadable */
	assert_true(snapshot->modules[1].has_identity);
	assert_int_equal(snapshot->modules[1].timestamp, 0x65432100);
}

TEST(of_heaps_that_cannot_be_walked_traced_blocks_are_listed)
{
	const uint64_t list = FAKE_PEB + 0x400;
	size_t count = 0, traced = 0;

	fake_write(HEAP_A + HEAP_MAGIC, 0, 4);
	fake_write(FAKE_PEB + FAKE_PEB_HEAP_COUNT, 2, 4);
	fake_write(FAKE_PEB + FAKE_PEB_HEAP_LIST, list, 8);
	fake_write(list, HEAP_A, 8);
	fake_write(list + 8, HEAP_B, 8);
	assert_int_equal(take(), 0);
	assert_int_equal(scene.snapshot.heap_count, 3); /* only the tracer knows HEAP_C */
	for (size_t i = 0; i < truth.block_count; i++) {
		if (said_of(i) <= TRUTH_TOO)
			assert_block(i, false);
		count += said_of(i) <= OTHER_HEAP && said_of(i) != NOTHING;
	}
	assert_int_equal(scene.snapshot.block_count, count);
	for (size_t i = 0; i < 3; i++) {
		const struct heap *heap = &scene.snapshot.heaps[i];

		assert_true(heap->unwalked);
		assert_true(heap->is_complete);
		count += heap->stackless.block_count;
		traced += heap->traced_only;
	}
	assert_int_equal(traced, count);
	assert_int_equal(scene.stats.tries, 1); /* no walk can succeed */
	assert_true(warns("3 heaps were not walked, the first at 110000; their blocks are listed"));
	assert_int_equal(scene.snapshot.missing_count, 0);
}

TEST(blocks_from_before_tracer_are_missing_from_unwalked_heaps)
{
	fake_write(HEAP_A + HEAP_MAGIC, 0, 4);
	fake_write(TRACER_AREA + offsetof(struct tracer_area, flags), TRACER_FLAG_ATTACHED, 4);
	assert_int_equal(take(), 0);
	assert_true(warns("blocks older than the tracer are missing"));
	assert_int_equal(scene.snapshot.missing_count, 1);
	assert_false(scene.snapshot.heaps[0].is_complete);
	assert_int_equal(scene.stats.tries, 1);
}

/* Ends HEAP_A's walk early, at its first subheap. The walk finds no block in that subheap or in the
 * later ones. */
static void damage_heap_a(void)
{
	fake_write(HEAP_A + HEAP_FIRST_SUBHEAP + SUBHEAP_FIRST_BLOCK, 0, 8);
}

/* Returns the number of the tracer's blocks that the walk of the damaged heap does not find,
 * including the block that is in no heap. */
static size_t damaged_count(void)
{
	size_t count = 0;

	for (size_t i = 0; i < truth.block_count; i++)
		count += truth.blocks[i].part == HEAP_A + HEAP_FIRST_SUBHEAP &&
			 said_of(i) != NOTHING && said_of(i) != OTHER_HEAP;
	return count;
}

TEST(traced_blocks_of_damaged_heap_are_listed)
{
	damage_heap_a();
	assert_int_equal(take(), 0);
	for (size_t i = 0; i < truth.block_count; i++) {
		bool is_found = truth.blocks[i].part != HEAP_A + HEAP_FIRST_SUBHEAP;

		if (said_of(i) <= TRUTH_TOO)
			assert_block(i, is_found);
	}
	assert_true(warns("1 place in the heaps is inconsistent"));
	assert_true(warns("all blocks that the tracer recorded in those heaps are listed"));
	assert_int_equal(scene.snapshot.missing_count, 0);
	assert_int_equal(scene.snapshot.heaps[0].traced_only, damaged_count() + 1);
	assert_int_equal(scene.snapshot.heaps[1].traced_only, 0);
}

TEST(damaged_heap_of_attached_process_lacks_blocks)
{
	damage_heap_a();
	fake_write(TRACER_AREA + offsetof(struct tracer_area, flags), TRACER_FLAG_ATTACHED, 4);
	assert_int_equal(take(), 0);
	assert_int_equal(scene.snapshot.missing_count, 1);
	assert_int_equal(scene.snapshot.heaps[0].traced_only, damaged_count() + 1);
}

TEST(nothing_is_called_lost_where_heap_was_not_walked)
{
	damage_heap_a();
	fake_know_regions();
	scene.options.finds_lost = true;
	assert_int_equal(take(), 0);
	assert_false(scene.snapshot.has_reach);
	assert_true(warns("no block is marked as lost or held"));
	assert_int_equal(scene.snapshot.missing_count, 1);
}

/* Moves every block in the tracer's tables by 16 bytes, so that the walk finds none of them. */
TEST(layout_that_tracer_contradicts_is_not_believed)
{
	size_t count = 0;

	for (size_t i = 0; i < truth.block_count; i++) {
		truth.blocks[i].addr += 1;
		messages(i);
		count += said_of(i) != NOTHING;
	}
	assert_int_equal(take(), 0);
	assert_true(
		warns("(layout wine 8.0 x64 was tried, but does not match the tracer's blocks)"));
	for (size_t i = 0; i < truth.block_count; i++) {
		if (said_of(i) <= TRUTH_TOO)
			assert_block(i, false);
	}
	assert_int_equal(snapshot_total(&scene.snapshot).block_count, count + 1);
	assert_true(scene.snapshot.heaps[0].unwalked);
	assert_int_equal(scene.snapshot.heaps[0].committed_bytes, 0);
}

/* frees that the tracer does not see */

/* In Windows 7 and 8, ntdll frees some blocks unseen by the tracer. Under Wine, a program may do
 * so. */
TEST(frees_may_go_unseen_before_windows_10)
{
	static const struct {
		uint32_t build;
		bool is_wine, may;
	} cases[] = {{7601, false, true}, {9200, false, true}, {9600, false, true},
		{10240, false, false}, {19045, false, false}, {26100, false, false},
		{0, false, false}, {0, true, true}, {19045, true, true}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct target target = {
			.os_build = cases[i].build, .is_wine = cases[i].is_wine};

		assert_int_equal(target_may_free_unseen(&target), cases[i].may);
	}
}

/* The tracer's tables claim to be complete but lack blocks. hsnap would accept the claim only under
 * Wine. */
TEST(tables_without_walk_are_not_believed_on_windows)
{
	AREA_PUT(flags, TRACER_FLAG_LISTED);
	assert_int_equal(take(), 0);
	assert_whole();
}

/* ---------------------------------------------------------------- modules loaded and unloaded */

static void load(uint64_t base, uint64_t size, const char *path)
{
	fake.modules[fake.module_count++] =
		(struct module){.base = base, .size_bytes = size, .path = path};
}

static void load_two(void)
{
	load(0x70000000, 0x4000, "C:\\late\\late.dll");
	load(0x1000, 0x1000, "C:\\late\\low.dll");
}

TEST(what_is_loaded_before_process_is_held_is_listed)
{
	const struct snapshot *snapshot = &scene.snapshot;

	fake.on_suspend = load_two;
	assert_int_equal(take(), 0);
	assert_int_equal(snapshot->module_count, 4);
	assert_string_equal(snapshot->modules[0].path, "C:\\late\\low.dll");
	assert_string_equal(
		module_at(snapshot->modules, 4, 0x70003fff)->path, "C:\\late\\late.dll");
	for (size_t i = 1; i < 4; i++)
		assert_true(snapshot->modules[i - 1].base < snapshot->modules[i].base);
	assert_int_equal(
		/* One for wrong sizes and heaps, one for a block in no heap. */
		snapshot->warning_count, 2);
	assert_whole();
}

static void replace(void)
{
	struct module *modules = fake.modules;

	modules[fake.module_count - 1] = (struct module){
		.base = 0x70001000, .size_bytes = 0x800, .path = "C:\\app\\inside.dll"};
	load(0x6fff0000, 0x10001, "C:\\app\\over.dll");
	load(0x80000000, 0x2000, "C:\\app\\same.dll");
	load(0x90000000, 0x2000, "C:\\app\\other.dll");
}

TEST(module_replaced_by_another_stays_and_is_reported)
{
	const struct snapshot *snapshot = &scene.snapshot;

	load(0x80000000, 0x2000, "C:\\App\\same.dll");
	load(0x90000000, 0x2000, "C:\\app\\one.dll");
	load(0x70000000, 0x4000, "C:\\app\\app.dll");
	modules_sort(fake.modules, fake.module_count);
	fake.on_suspend = NULL;
	assert_int_equal(take(), 0);
	assert_int_equal(snapshot->module_count, 5);
	assert_int_equal(snapshot->warning_count, 2);
	fake.on_suspend = replace;
	assert_int_equal(take(), 0);
	assert_int_equal(snapshot->module_count, 5);
	assert_string_equal(module_at(snapshot->modules, 5, 0x70001000)->path, "C:\\app\\app.dll");
	assert_true(warns("3 modules were loaded at the place of an earlier one"));
}

static void lose_modules(void)
{
	fake.modules_rc = -ERR_TARGET;
}

TEST(modules_that_cannot_be_listed_twice_are_those_of_first_time)
{
	fake.on_suspend = lose_modules;
	assert_int_equal(take(), 0);
	assert_int_equal(scene.snapshot.module_count, 2);
	assert_whole();
}

/* ---------------------------------------------------------------- retries */

TEST(heap_that_is_busy_or_half_changed_is_tried_again)
{
	const struct {
		uint64_t addr, until; /* number of suspensions during which the heap is busy */
		unsigned tries;
		const char *words; /* warning if the heap stays busy and is walked anyway */
	} cases[] = {
		{HEAP_B + HEAP_LOCK_COUNT, 7, 8, NULL},
		{HEAP_A + HEAP_LOCK_COUNT, UINT64_MAX, 100,
			"locked on every try, and walked anyway"},
		{SUB_A2 + SUBHEAP_LINKS + 8, 2, 3, NULL},
		{SUB_A2 + SUBHEAP_LINKS + 8, UINT64_MAX, 3,
			"1 place in the heaps is inconsistent; the first: broken list at 600020"},
	};
	uint64_t calm;

	assert_int_equal(take(), 0);
	calm = fake.reads;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		be_busy_at(cases[i].addr, cases[i].until);
		assert_int_equal(take(), 0);
		assert_int_equal(scene.stats.tries, cases[i].tries);
		assert_int_equal(fake.suspends, cases[i].tries);
		assert_int_equal(warns(cases[i].words ? cases[i].words : " inconsistent"),
			cases[i].words != NULL);
		if (i < 3)
			assert_whole();
		if (i == 1) /* a hundred tries must cost only one more walk and a few reads each */
			assert_in_range(fake.reads, 2 * calm, 2 * calm + 99 * 8);
		fake_write(scene.busy_addr, scene.calm_value, 8);
	}
}

/* Makes the target report one more second of hold. A hold may begin long after hsnap requested it,
 * and only the target knows when. Earlier time, such as the start of the helper, must neither be
 * counted nor limit the retries. */
static void hold_for_a_second(void)
{
	be_busy();
	fake.target.held_from_ms = os_clock_ms() - 1000;
}

TEST(target_reports_start_of_hold)
{
	be_busy_at(HEAP_B + HEAP_LOCK_COUNT, 7);
	fake.on_suspend = hold_for_a_second;
	assert_int_equal(take(), 0);
	assert_int_equal(scene.stats.tries, 2); /* the hold was too long for retries */
	assert_in_range(scene.stats.held_ms, 2000, 2999);
}

/* Another program or daylight saving may set the clock. */
TEST(clock_that_is_set_meanwhile_makes_no_time)
{
	static const long back_s[] = {3600, -3600};

	for (size_t i = 0; i < 2; i++) {
		set_back_s = back_s[i];
		be_busy_at(HEAP_B + HEAP_LOCK_COUNT, 7);
		assert_int_equal(take(), 0);
		assert_true(scene.stats.tries > 2); /* the hold was short enough for retries */
		assert_in_range(scene.stats.held_ms, 0, 60000);
		assert_in_range(scene.stats.walk_ms, 0, 60000);
		assert_in_range(scene.stats.join_ms, 0, 60000);
	}
	set_back_s = 0;
}

/* ---------------------------------------------------------------- errors */

TEST(errors_come_out_as_they_are_and_nothing_is_held)
{
	fake.modules_rc = -ERR_GONE;
	assert_int_equal(take(), -ERR_GONE);
	fake.modules_rc = 0;
	fake.suspend_rc = -ERR_RIGHTS;
	assert_int_equal(take(), -ERR_RIGHTS);
	fake.suspend_rc = 0;
	AREA_PUT(version, TRACER_VERSION + 1);
	assert_int_equal(take(), -ERR_TARGET);
	AREA_PUT(version, TRACER_VERSION);
	SHARD_PUT(5, table, 0xdead0000);
	assert_int_equal(take(), -ERR_TARGET);
	fake.is_dead = true;
	assert_int_equal(take(), -ERR_GONE);
	fake.module_count = 1;
	assert_int_equal(take(), -ERR_GONE);
	fake.is_dead = false;
	scene.options.stacks = STACKS_TRACER;
	assert_int_equal(take(), -ERR_NOT_TRACED);
	assert_int_equal(fake.suspends, 0);
}

/* Asserts that a successful capture despite failing reads contains only true data, and that it
 * warns if data are missing. */
static void assert_honest(void)
{
	uint64_t found = snapshot_total(&scene.snapshot).block_count;

	for (size_t i = 0; i < scene.snapshot.block_count; i++)
		assert_true(scene.snapshot.blocks[i].stack < scene.snapshot.stacks.count);
	assert_true(found <= truth.block_count);
	if (found < truth.block_count)
		assert_true(warns(" inconsistent") || warns("not walked"));
	else
		assert_whole();
}

/* Makes each read fail in turn, alone or together with the next read, the next two reads, or all
 * later reads. */
TEST(whichever_read_fails_process_goes_on)
{
	const uint64_t counts[] = {1, 2, 3, UINT64_MAX};
	unsigned successes = 0, errors = 0;
	uint64_t reads;

	assert_int_equal(take(), 0);
	reads = fake.reads;
	assert_true(reads > 30);
	for (size_t k = 0; k < sizeof(counts) / sizeof(*counts); k++) {
		for (uint64_t n = 1; n <= reads + 1; n++) {
			int rc;

			fake.fail_from = n;
			fake.fail_count = counts[k];
			rc = take();
			successes += !rc;
			errors += rc == -ERR_TARGET;
			assert_true(!rc || rc == -ERR_TARGET);
			if (!rc)
				assert_honest();
		}
	}
	fake.fail_from = 0;
	assert_true(successes && errors);
	assert_int_equal(take(), 0);
	assert_whole();
}

/* ---------------------------------------------------------------- before and after the hold */

#define LATE_SUB 0x50000000u
#define LATE_LARGE 0x60000000u

/* Overwrites all memory, as if the process had run on and changed it. */
static void spoil(void)
{
	for (size_t i = 0; i < fake.range_count; i++) {
		if (fake.ranges[i].needs_hold)
			memset(fake.ranges[i].bytes, 0xee, fake.ranges[i].len);
	}
}

TEST(what_process_does_later_is_not_seen)
{
	fake.on_resume = spoil;
	assert_int_equal(take(), 0);
	assert_whole();
	assert_int_equal(scene.stats.tries, 1);
}

static void add_late(void)
{
	struct filling fill;

	if (fake.suspends > 1)
		return;
	fill = heap_extend(HEAP_B, LATE_SUB, 0x300000, 0x400000);
	for (unsigned i = 0; i < 500; i++)
		fill_used(&fill, 100 + i * 10, 0);
	fill_rest(&fill);
	large_place(HEAP_A, LATE_LARGE, 0x123456);
}

/* If the tracer does not know a block, only its size and number are available. */
TEST(what_comes_before_hold_is_there)
{
	uint64_t requested = 0, overhead = 0;
	struct block_totals total;

	fake.on_suspend = add_late;
	fake.on_resume = spoil;
	assert_int_equal(take(), 0);
	for (size_t i = 0; i < truth.block_count; i++) {
		requested += truth.blocks[i].requested_bytes;
		overhead += truth.blocks[i].overhead_bytes;
	}
	total = snapshot_total(&scene.snapshot);
	assert_int_equal(total.block_count, truth.block_count);
	assert_int_equal(total.requested_bytes, requested);
	assert_int_equal(total.overhead_bytes, overhead);
	assert_false(warns(" inconsistent"));
}

static void take_out(uint64_t entry)
{
	uint64_t next = fake_get(entry, 8), back = fake_get(entry + 8, 8);

	fake_write(back, next, 8);
	fake_write(next + 8, back, 8);
}

static void lose_some(void)
{
	if (fake.suspends > 1)
		return;
	for (size_t i = 0; i < truth.block_count; i++) {
		if (truth.blocks[i].part == SUB_A2 || truth.blocks[i].part == LARGE_B + LARGE_STEP)
			tracer_write_block((unsigned)i % 24, (unsigned)i / 24,
				&(struct made_block){.addr = 0});
	}
	take_out(SUB_A2 + SUBHEAP_LINKS);
	for (unsigned shard = 0; shard < 24; shard++)
		tracer_count_change(shard, 0);
	fake_unmap(SUB_A2);
	take_out(LARGE_B + LARGE_STEP + LARGE_LINKS);
	fake_unmap(LARGE_B + LARGE_STEP);
}

TEST(what_goes_before_hold_is_not_there)
{
	size_t kept = 0;

	fake.on_suspend = lose_some;
	fake.on_resume = spoil;
	assert_int_equal(take(), 0);
	for (size_t i = 0; i < truth.block_count; i++)
		kept += truth.blocks[i].part != SUB_A2 &&
			truth.blocks[i].part != LARGE_B + LARGE_STEP;
	assert_true(kept < truth.block_count);
	assert_int_equal(snapshot_total(&scene.snapshot).block_count, kept);
	assert_false(warns(" inconsistent"));
}

TEST(size_that_cannot_be_is_never_asked_for)
{
	const uint64_t lies[] = {1ull << 46, 1ull << 40, (uint64_t)1 << 33};

	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		fake_write(SUB_B1 + SUBHEAP_BLOCK_SIZE, lies[i], 8);
		fake_write(SUB_B1 + SUBHEAP_DATA_SIZE, lies[i] - 0x40, 8);
		assert_int_equal(take(), 0);
		assert_true(warns(" inconsistent"));
		assert_true(fake.got_bytes < (uint64_t)1 << 30);
	}
}

#define PEB_GLOBAL_FLAG 0xbc /* offset of PEB.NtGlobalFlag on x64 */

/* ---------------------------------------------------------------- sources of stacks */

static void assert_totals_of_all(void)
{
	assert_int_equal(scene.snapshot.block_count, 0);
	assert_int_equal(scene.snapshot.heap_count, truth.heap_count);
	assert_int_equal(snapshot_total(&scene.snapshot).block_count, truth.block_count);
	assert_string_equal(scene.snapshot.stack_source, "none");
}

TEST(process_without_stacks_gives_totals_only)
{
	fake.module_count = 1;
	assert_int_equal(take(), 0);
	assert_totals_of_all();
	assert_true(warns("no block has a stack"));
	assert_int_equal(scene.snapshot.warning_count, 1);
	assert_false(scene.snapshot.records.is_known);
}

TEST(flag_of_ust_without_records_is_reported)
{
	fake.module_count = 1;
	fake_write(FAKE_PEB + PEB_GLOBAL_FLAG, 0x1070, 4);
	assert_int_equal(take(), 0);
	assert_string_equal(scene.snapshot.stack_source, "ust");
	assert_true(warns("started with +ust, but no stack was found for any block"));
	assert_true(scene.snapshot.records.is_known);
	assert_int_equal(scene.snapshot.records.record_count, 0);
}

TEST(traced_process_with_flag_of_ust_is_as_without)
{
	fake_write(FAKE_PEB + PEB_GLOBAL_FLAG, 0x1000, 4);
	assert_int_equal(take(), 0);
	assert_whole();
	assert_string_equal(scene.snapshot.stack_source, "tracer");
	/* the warnings about a process without the flag */
	assert_int_equal(scene.snapshot.warning_count, 2);
}

TEST(stacks_that_were_asked_for_have_to_be_there)
{
	scene.options.stacks = STACKS_UST;
	assert_int_equal(take(), -ERR_NO_STACKS);
	assert_non_null(strstr(scene.err.detail, "not started with +ust"));
	fake_write(FAKE_PEB + PEB_GLOBAL_FLAG, 0x1000, 4);
	assert_int_equal(take(), -ERR_NO_STACKS);
	assert_non_null(strstr(scene.err.detail, "no stack was found for any block"));
	AREA_PUT(version, TRACER_VERSION + 1); /* hsnap must not read a tracer that is not wanted */
	assert_int_equal(take(), -ERR_NO_STACKS);
}

TEST(detached_process_gives_totals_only)
{
	AREA_PUT(state, TRACER_OFF);
	assert_int_equal(take(), 0);
	assert_totals_of_all();
	assert_true(warns("is detached"));
	assert_int_equal(scene.snapshot.warning_count, 1);
	scene.options.stacks = STACKS_TRACER;
	assert_int_equal(take(), -ERR_NOT_TRACED);
	assert_non_null(strstr(scene.err.detail, "detached"));
}

static void detach(void)
{
	AREA_PUT(state, TRACER_OFF);
}

/* hsnap finds a working tracer, but the tracer is removed before hsnap holds the process. */
TEST(process_detached_meanwhile_gives_totals_only)
{
	fake.on_suspend = detach;
	assert_int_equal(take(), 0);
	assert_totals_of_all();
	assert_true(warns("is detached"));
	assert_string_equal(scene.snapshot.stack_source, "none");
	AREA_PUT(state, TRACER_ON);
	scene.options.stacks = STACKS_TRACER;
	assert_int_equal(take(), -ERR_NOT_TRACED);
	assert_non_null(strstr(scene.err.detail, "detached"));
}

static void change_ranges(void)
{
	AREA_PUT(ranges.changing, fake.suspends < 4);
}

TEST(process_that_changes_its_ranges_is_let_go_and_held_again)
{
	fake.on_suspend = change_ranges;
	assert_int_equal(take(), 0);
	assert_int_equal(scene.stats.tries, 4);
	assert_whole();
}

/* ---------------------------------------------------------------- files */

TEST(file_is_walked_once_however_busy_and_broken_it_is)
{
	fake.target.is_file = true;
	be_busy_at(HEAP_A + HEAP_LOCK_COUNT, UINT64_MAX);
	assert_int_equal(take(), 0);
	assert_int_equal(scene.stats.tries, 1);
	assert_true(warns("locked on every try, and walked anyway"));
	assert_whole();
	fake_write(HEAP_A + HEAP_LOCK_COUNT, scene.calm_value, 8);
	be_busy_at(SUB_A2 + SUBHEAP_LINKS + 8, UINT64_MAX);
	assert_int_equal(take(), 0);
	assert_int_equal(scene.stats.tries, 1);
	assert_true(warns("broken list at 600020"));
}

TEST(file_without_heaps_has_traced_blocks_and_warning)
{
	size_t count = 1; /* the block that is in no heap */

	fake_unmap(FAKE_PEB);
	assert_int_equal(take(), -ERR_TARGET);
	fake.target.is_file = true;
	assert_int_equal(take(), 0);
	for (size_t i = 0; i < truth.block_count; i++)
		count += said_of(i) != NOTHING;
	assert_int_equal(scene.snapshot.heap_count, 3);
	assert_int_equal(snapshot_total(&scene.snapshot).block_count, count);
	assert_int_equal(scene.snapshot.module_count, 2);
	assert_true(warns("its heaps could not be walked"));
	assert_true(warns("unreadable PEB at 7FFD0000"));
}

TEST(file_with_unreadable_tracer_gives_totals_only)
{
	fake.target.is_file = true;
	SHARD_PUT(5, table, 0xdead0000);
	assert_int_equal(take(), 0);
	assert_totals_of_all();
	assert_true(warns("its tracer was not read"));
	assert_false(warns("no block has a stack"));
	scene.options.stacks = STACKS_TRACER;
	assert_int_equal(take(), -ERR_TARGET);
}

TEST(time_and_builds_in_file_stay)
{
	fake.target.is_file = true;
	fake.target.time_ms = 123456789;
	fake.modules[1].has_identity = true;
	fake.modules[1].timestamp = 77;
	assert_int_equal(take(), 0);
	assert_int_equal(scene.snapshot.time_ms, 123456789);
	assert_int_equal(scene.snapshot.modules[1].timestamp, 77);
}
