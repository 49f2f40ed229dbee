/* The tracer's table of live blocks inside a process. At every moment, and for any reader, the
 * table must contain every live block. */
#include "tests/unit/t.h"

#include <signal.h>
#include <ucontext.h>

#include "tests/unit/fake_memory.h"

#include "snapshot/tracer/tables.h"

/* A model of the table's contents in plain arrays, and its comparison with the table. The
 * comparison reads the table as shared.h defines it for readers outside the process. */

static uint64_t seed;

static struct tracer_block *table_of(const struct tracer_shard *shard, uint64_t *count)
{
	*count = shard->pages * TRACER_PAGE / sizeof(struct tracer_block);
	return (struct tracer_block *)(uintptr_t)shard->table;
}

#define BLOCKS_MAX 400000

/* Expected contents. Block i is at addrs[i], and may be live or not. */
static struct {
	uint64_t addrs[BLOCKS_MAX];
	uint32_t versions[BLOCKS_MAX]; /* 0: not live */
	uint32_t seen[BLOCKS_MAX]; /* number of the last scan that saw the block */
	uint32_t count, live_count, last_version, scan;
	uint32_t changing; /* block that is being put or taken, or none */
	unsigned wrong; /* number of scans that found an error */
} model;

#define NONE UINT32_MAX
#define ANY_ENTRY ((uint64_t)1 << 40)

static struct tracer_block block_of(uint32_t index, uint32_t version)
{
	return tracer_block_make(
		model.addrs[index], version % (1u << TRACER_HEAPS_LOG2), index, version);
}

static bool is_block(const struct tracer_block *entry, uint32_t index, uint32_t version)
{
	struct tracer_block block = block_of(index, version);

	return entry->key == block.key && entry->what == block.what;
}

/* Counts the live blocks of one shard in *found, each of them once. Returns false if an entry is
 * wrong. */
static bool scan_shard(const struct tracer_shard *shard, uint32_t *found)
{
	uint64_t count;
	const struct tracer_block *table = table_of(shard, &count);

	for (uint64_t i = 0; i < count; i++) {
		uint32_t index = tracer_block_stack(&table[i]);

		if (!table[i].key)
			continue;
		if (index >= model.count || model.addrs[index] != tracer_block_addr(&table[i]))
			return false;
		if (index == model.changing)
			continue;
		if (!model.versions[index] || !is_block(&table[i], index, model.versions[index]))
			return false;
		*found += model.seen[index] != model.scan;
		model.seen[index] = model.scan;
	}
	return true;
}

/* Checks the promises to readers. Every live block must be present and whole at least once, and no
 * other block may be. The changing block may be present or not. */
static bool is_promise_kept(unsigned first_shard, unsigned last_shard)
{
	uint32_t found = 0, expected = model.live_count;

	model.scan++;
	if (model.changing != NONE)
		expected -= model.versions[model.changing] != 0;
	for (unsigned i = first_shard; i <= last_shard; i++) {
		if (!scan_shard(&area.shards[i], &found))
			return false;
	}
	return found == expected;
}

static void model_init(void)
{
	memset(&model, 0, sizeof(model));
	model.changing = NONE;
}

/* Adds unique multiples of 16, which resemble a heap's addresses. */
static void model_add_anywhere(uint32_t count)
{
	uint64_t addr = 0x7ff000000000;

	for (; count; count--) {
		addr += 16 + fake_dice(&seed) % 64 * 16;
		model.addrs[model.count++] = addr;
	}
}

/* Finds out by experiment whether an address belongs to shard 0, which entry it gets there, and how
 * many homes there are. The table must be empty. */
static bool probe_addr(uint64_t addr, uint64_t *entry, uint64_t *home_count)
{
	struct tracer_block block = tracer_block_make(addr, 0, 0, 0);
	bool is_ours;

	blocktable_add(&area, &block);
	is_ours = area.shards[0].count != 0;
	if (is_ours) {
		const struct tracer_block *table = table_of(&area.shards[0], home_count);

		*home_count = area.shards[0].lines * (uint64_t)BLOCKTABLE_LINE;
		for (*entry = 0; table[*entry].key != addr; ++*entry)
			assert_true(*entry < *home_count);
	}
	assert_true(blocktable_remove(&area, addr, &block));
	return is_ours;
}

/* Adds addresses that all belong to the last homes of shard 0. */
static void model_add_crowd(uint32_t count, uint64_t last_homes)
{
	static uint64_t addr;
	uint64_t entry, home_count;

	assert_int_equal(area.shards[0].count, 0);
	addr = model.count ? addr : 0x550000000000;
	while (count) {
		addr += 16;
		if (!probe_addr(addr, &entry, &home_count) || entry + last_homes < home_count)
			continue;
		model.addrs[model.count++] = addr;
		count--;
	}
}

static volatile bool is_stepping;
static struct fake_copy copy; /* copy of shard 0, taken during the current change */
static bool is_copied;

static int set_up_stepping(void **state)
{
	seed = 20240607;
	set_up(state);
	return 0;
}

/* ---------------------------------------------------------------- at every instruction */

/* While the trap flag is set, the processor stops after each instruction. A thread could be
 * suspended at the same points. */
#define TRAP_FLAG 0x100

/* Instructions so far; the table is checked after every `every` of them (0: never). */
static uint64_t steps, every;

static void on_step(int signal, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)signal;
	(void)info;
	registers[REG_EFL] &= ~(greg_t)TRAP_FLAG;
	if (!is_stepping)
		return;
	registers[REG_EFL] |= TRAP_FLAG;
	steps++;
	if (steps % every)
		return;
	model.wrong += !is_promise_kept(0, 0);
	if (!is_copied || fake_dice(&seed) % 16 == 0)
		fake_copy_take(&copy, 0);
	is_copied = true;
}

static void steps_begin(void)
{
	is_stepping = every != 0;
	if (is_stepping)
		raise(SIGTRAP);
}

static void steps_end(void)
{
	is_stepping = false;
	model.wrong += is_copied && !fake_copy_is_right(&copy, 0);
	is_copied = false;
}

static void put(uint32_t index)
{
	struct tracer_block block = block_of(index, ++model.last_version);

	model.changing = index;
	steps_begin();
	blocktable_add(&area, &block);
	steps_end();
	model.live_count += !model.versions[index];
	model.versions[index] = model.last_version;
	model.changing = NONE;
}

static void take(uint32_t index)
{
	struct tracer_block block = {0};
	bool was_there;

	model.changing = index;
	steps_begin();
	was_there = blocktable_remove(&area, model.addrs[index], &block);
	steps_end();
	assert_int_equal(was_there, model.versions[index] != 0);
	if (was_there) {
		assert_true(is_block(&block, index, model.versions[index]));
		model.live_count--;
	} else {
		assert_int_equal(block.key, 0); /* take() did not change the block */
	}
	model.versions[index] = 0;
	model.changing = NONE;
}

/* ---------------------------------------------------------------- blocks, one thread */

#undef TEST_AROUND
#define TEST_AROUND set_up_stepping, tear_down

TEST(crowded_table_equals_model)
{
	model_init();
	model_add_crowd(5000, ANY_ENTRY);
	for (unsigned phase = 0; phase < 6; phase++) {
		for (unsigned i = 0; i < 20000; i++) {
			uint32_t index = fake_dice(&seed) % model.count;

			/* The table grows, then shrinks. Sometimes a present block is put again. */
			if (fake_dice(&seed) % 8 < (phase % 2 ? 2 : 6))
				put(index);
			else
				take(index);
			if (fake_dice(&seed) % 1000 == 0)
				assert_true(is_promise_kept(0, 0));
		}
		assert_true(is_promise_kept(0, TRACER_SHARDS - 1));
		assert_int_equal(area.shards[0].count, model.live_count);
	}
	for (uint32_t i = 0; i < model.count; i++)
		take(i);
	assert_int_equal(area.shards[0].count, 0);
	assert_true(is_promise_kept(0, TRACER_SHARDS - 1));
	assert_int_equal(area.dropped_blocks, 0);
}

TEST(all_shards_grow_and_lose_nothing)
{
	model_init();
	model_add_anywhere(300000);
	for (uint32_t i = 0; i < model.count; i++)
		put(i);
	assert_true(is_promise_kept(0, TRACER_SHARDS - 1));
	for (unsigned i = 0; i < TRACER_SHARDS; i++) /* no shard has much more than its share */
		assert_in_range(area.shards[i].count, 300000 / 64 / 2, 300000 / 64 * 2);
	for (unsigned i = 0; i < 300000; i++)
		take(fake_dice(&seed) % model.count);
	assert_true(is_promise_kept(0, TRACER_SHARDS - 1));
	assert_int_equal(area.dropped_blocks, 0);
}

TEST(what_was_never_put_is_not_found)
{
	struct tracer_block block = {.key = 1};

	model_init();
	assert_false(blocktable_remove(&area, 0x1000, &block)); /* the table does not exist yet */
	model_add_anywhere(1000);
	for (uint32_t i = 0; i < model.count; i++)
		put(i);
	for (uint32_t i = 0; i < model.count; i++) {
		assert_false(blocktable_remove(&area, model.addrs[i] + 8, &block));
		assert_false(blocktable_remove(&area, model.addrs[i] - 8, &block));
	}
	assert_int_equal(block.key, 1);
	assert_true(is_promise_kept(0, TRACER_SHARDS - 1));
}

/* ---------------------------------------------------------------- blocks, as read from outside */

/* Runs check() and examines the table after every n-th instruction. */
static void stepping(void (*check)(void), uint64_t n)
{
	const struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
	struct sigaction before;

	steps = 0;
	every = n;
	assert_int_equal(sigaction(SIGTRAP, &action, &before), 0);
	check();
	every = 0;
	assert_int_equal(sigaction(SIGTRAP, &before, NULL), 0);
	assert_int_equal(model.wrong, 0);
}

#define CROWD_AT_END 24
#define CROWD 8

static void check_write_and_read(void)
{
	for (unsigned i = 0; i < 80; i++) {
		uint32_t index = fake_dice(&seed) % (CROWD_AT_END + CROWD);

		if (model.versions[index] && fake_dice(&seed) % 4)
			take(index);
		else
			put(index);
	}
}

TEST(while_entries_move_nothing_live_is_missing)
{
	model_init();
	model_add_crowd(CROWD_AT_END, 6); /* the entries continue after the last home */
	model_add_crowd(CROWD, ANY_ENTRY);
	for (uint32_t i = 0; i < model.count; i++)
		put(i);
	stepping(check_write_and_read, 1);
	assert_true(steps > 5000);
}

/* A table of PAGES pages has HOMES homes, and grows to PAGES_MORE pages. */
#define PAGES 8
#define HOMES (PAGES * 256 - 32)
#define FULL (HOMES / 5 * 4)
#define PAGES_MORE 10

/* Fills shard 0 so that the next block makes it grow. */
static void model_at_growth(void)
{
	model_init();
	model_add_crowd(FULL + 1, ANY_ENTRY);
	while (model.live_count < FULL)
		put(model.live_count);
	assert_int_equal(area.shards[0].pages, PAGES);
}

static void check_growth(void)
{
	put(model.live_count);
	assert_int_equal(area.shards[0].pages, PAGES_MORE);
}

TEST(while_table_grows_nothing_live_is_missing)
{
	model_at_growth();
	stepping(check_growth, 97);
	assert_true(is_promise_kept(0, TRACER_SHARDS - 1));
}

TEST(table_that_grew_has_changed)
{
	model_at_growth();
	fake_copy_take(&copy, 0);
	check_growth();
	assert_true(fake_copy_is_right(&copy, 0));
}

static void check_shrinking(void)
{
	take(model.live_count - 1);
	assert_in_range(area.shards[0].pages, 1, PAGES - 1);
}

TEST(while_table_shrinks_nothing_live_is_missing)
{
	model_at_growth();
	put(model.live_count);
	/* The table shrinks at the next multiple of 64 below a third of its homes. */
	while (model.live_count > (PAGES_MORE * 256 - 32) / 3 / 64 * 64)
		take(model.live_count - 1);
	assert_int_equal(area.shards[0].pages, PAGES_MORE);
	stepping(check_shrinking, 97);
	assert_true(is_promise_kept(0, TRACER_SHARDS - 1));
}

#define CROWD_MANY 400

/* Adds blocks whose homes are among the last ones in tables of any size. */
static void model_add_crowd_at_end(void)
{
	model_init();
	model_add_crowd(CROWD_MANY, 6);
}

/* The crowd's changes that resize the table, as the last run found them. */
static bool is_resizing[2 * CROWD_MANY];

/* Puts and takes the crowd. Only changes that resize the table are executed step by step: each step
 * is a signal, and the other changes would need ten million. */
static void check_crowd_at_end(void)
{
	uint64_t n = every;

	for (unsigned i = 0; i < 2 * CROWD_MANY; i++) {
		uint64_t pages = area.shards[0].pages;

		every = is_resizing[i] ? n : 0;
		if (i < CROWD_MANY)
			put(i);
		else
			take(i * 7 % CROWD_MANY);
		is_resizing[i] = area.shards[0].pages != pages;
	}
}

TEST(crowd_at_end_has_pages_behind_it)
{
	model_add_crowd_at_end();
	check_crowd_at_end();
	tear_down(state);
	set_up_stepping(state);
	model_add_crowd_at_end();
	stepping(check_crowd_at_end, 997);
	assert_true(steps > 100000);
	assert_int_equal(area.dropped_blocks, 0);
	assert_in_range(area.shards[0].pages, 1, 2);
	assert_int_equal(fake_committed_bytes(), area.committed_bytes);
}

/* Memory runs out at any commit: of a page after the last one, of a larger table, or in the middle
 * of making that table. */
TEST(without_memory_for_crowd_at_end_drops_are_counted)
{
	for (unsigned commits = 1; commits < 12; commits++) {
		model_add_crowd_at_end();
		memory.commits_left = commits;
		for (uint32_t i = 0; i < CROWD_MANY; i++) {
			uint64_t dropped = area.dropped_blocks;

			put(i);
			if (area.dropped_blocks != dropped) {
				model.versions[i] = 0;
				model.live_count--;
			}
			assert_true(is_promise_kept(0, TRACER_SHARDS - 1));
		}
		assert_true(commits > 3 || area.dropped_blocks != 0);
		memory.commits_left = FAKE_ALWAYS;
		for (uint32_t i = 0; i < CROWD_MANY; i++)
			put(i);
		for (uint32_t i = 0; i < CROWD_MANY; i++)
			take(i);
		assert_true(is_promise_kept(0, TRACER_SHARDS - 1));
		tear_down(state);
		set_up_stepping(state);
	}
}

/* ---------------------------------------------------------------- costs */

/* Asserts that a live block needs at most 64 bytes, by the table's own count and by the true
 * count. */
static void assert_cheap(void)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < TRACER_SHARDS; i++) {
		uint64_t count;

		table_of(&area.shards[i], &count);
		bytes += count * sizeof(struct tracer_block);
	}
	assert_int_equal(area.committed_bytes, bytes);
	assert_true(bytes <= 64 * (uint64_t)model.live_count);
}

TEST(block_costs_64_bytes_at_most_whatever_their_number)
{
	const uint32_t few = 20000, many = 300000;

	model_init();
	model_add_anywhere(many);
	while (model.live_count < few)
		put(model.live_count);
	for (unsigned round = 0; round < 3; round++) {
		while (model.live_count < many) {
			put(model.live_count);
			assert_cheap();
		}
		assert_in_range(area.committed_bytes, 20 * many, 26 * many);
		assert_int_equal(fake_committed_bytes(), area.committed_bytes);
		while (model.live_count > few) {
			take(model.live_count - 1);
			assert_cheap();
		}
		assert_int_equal(fake_committed_bytes(), area.committed_bytes);
	}
	assert_true(is_promise_kept(0, TRACER_SHARDS - 1));
}

TEST(blocks_that_come_and_go_cost_no_more_with_time)
{
	const uint32_t live = 30000;

	model_init();
	model_add_anywhere(400000);
	while (model.live_count < live)
		put(model.live_count);
	for (uint32_t i = 0; i < 2000000; i++) { /* another stack replaces the oldest one */
		take(i % model.count);
		put((i + live) % model.count);
		assert_true(area.committed_bytes <= 64 * (uint64_t)live);
	}
	assert_int_equal(model.live_count, live);
	assert_cheap();
	while (model.live_count)
		take(fake_dice(&seed) % model.count);
	assert_true(area.committed_bytes <= TRACER_SHARDS * TRACER_PAGE);
	assert_int_equal(fake_committed_bytes(), area.committed_bytes);
}

TEST(without_memory_table_shrinks)
{
	model_at_growth();
	memory.commits_left = 0;
	while (model.live_count)
		take(model.live_count - 1);
	assert_int_equal(area.shards[0].pages, 1);
}

/* ---------------------------------------------------------------- faults */

TEST(without_memory_table_stays_and_drops_are_counted)
{
	struct tracer_block late, taken;

	for (int is_limit = 0; is_limit < 2; is_limit++) {
		model_init();
		model_add_crowd(HOMES / 8 * 7 + 1, ANY_ENTRY);
		while (model.live_count < FULL)
			put(model.live_count);
		if (is_limit)
			area.limit_bytes = area.committed_bytes + TRACER_PAGE - 1;
		else
			memory.commits_left = 0;
		while (model.live_count < model.count - 1) /* beyond the usual fill level */
			put(model.live_count);
		assert_int_equal(area.dropped_blocks, 0);
		late = block_of(model.count - 1, 1);
		for (uint64_t i = 1; i <= 3; i++) {
			blocktable_add(&area, &late);
			assert_int_equal(area.dropped_blocks, i);
			assert_true(is_promise_kept(0, TRACER_SHARDS - 1));
		}
		assert_false(blocktable_remove(&area, tracer_block_addr(&late), &taken));
		put(0); /* a present block can be replaced */
		assert_int_equal(area.dropped_blocks, 3);
		assert_int_equal(area.shards[0].pages, PAGES);
		area.limit_bytes = LIMIT;
		memory.commits_left = FAKE_ALWAYS;
		put(model.count - 1); /* memory is available again */
		assert_true(is_promise_kept(0, TRACER_SHARDS - 1));
		assert_int_equal(area.dropped_blocks, 3);
		tear_down(state);
		set_up_stepping(state);
	}
}

TEST(first_table_may_find_no_memory_either)
{
	struct tracer_block block = tracer_block_make(0x1000, 0, 1, 8);

	memory.commits_left = 0;
	blocktable_add(&area, &block);
	assert_int_equal(area.dropped_blocks, 1);
	assert_false(blocktable_remove(&area, 0x1000, &block));
	memory.commits_left = FAKE_ALWAYS;
	blocktable_add(&area, &block);
	assert_true(blocktable_remove(&area, 0x1000, &block));
}

TEST(lock_that_is_never_given_back_breaks_its_shard_only)
{
	const uint32_t patience = 100000; /* far more than any wait may take */
	struct tracer_block block;
	uint32_t waited;

	model_init();
	model_add_crowd(100, ANY_ENTRY);
	for (uint32_t i = 0; i < model.count; i++)
		put(i);
	area.shards[0].lock = 1; /* a thread was terminated while it held the lock */
	block = block_of(0, 7);
	blocktable_add(&area, &block);
	waited = memory.waits;
	assert_in_range(waited, 1, patience);
	assert_int_equal(area.shards[0].broken, 1);
	assert_int_equal(area.dropped_blocks, 1);
	for (unsigned i = 0; i < 1000; i++) { /* must not wait again */
		assert_false(blocktable_remove(&area, model.addrs[i % 100], &block));
		blocktable_add(&area, &block);
	}
	assert_int_equal(memory.waits, waited);
	assert_int_equal(area.dropped_blocks, 1001);
	assert_true(is_promise_kept(0, 0)); /* the table is outdated but valid */
	model_init();
	model_add_anywhere(1000);
	for (uint32_t i = 0; i < model.count; i++) {
		block = block_of(i, 1);
		blocktable_add(&area, &block);
	}
	assert_in_range(area.dropped_blocks, 1001, 1001 + 1000 / 64 * 3);
}
