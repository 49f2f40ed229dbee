/*
 * A process with heaps and a tracer, of which captures are taken; and what is true of them.
 */
#ifndef TESTS_UNIT_CAPTURE_SCENE_H
#define TESTS_UNIT_CAPTURE_SCENE_H

#include "tests/unit/t.h"

#include "tests/unit/fake_heaps.h"
#include "tests/unit/fake_tracer.h"

#include "snapshot/capture/capture.h"

#define STACKS 50
#define TABLE_LOG2 7

/* What the tracer says about a block of the heaps. */
enum said {
	TRUTH,
	TRUTH_TOO,
	NOTHING,
	OTHER_SIZE,
	OTHER_HEAP,
	NO_STACK,
	NO_SUCH_STACK,
	SAID_COUNT,
};

struct scene {
	struct image *image;
	struct fake *fake;
	struct snapshot snapshot;
	struct capture_options options;
	struct capture_stats stats;
	struct err err;
	uint32_t stacks[STACKS];
	/* Up to that many suspends something else is at an address, then what should be there. */
	uint64_t busy_until, busy_addr, calm_value;
};

static struct scene *current; /* for callbacks that get no more than the fake */

static inline enum said said_of(size_t i)
{
	return i * 2654435761u % 1000 % SAID_COUNT;
}

static inline uint32_t depth_of(size_t stack)
{
	return 1 + (uint32_t)stack % TRACER_DEPTH_MAX;
}

static inline uint64_t first_frame_of(size_t stack)
{
	return 0x140001000 + stack * 0x10000;
}

static inline void say(struct scene *scene, size_t i)
{
	const struct placed *placed = &scene->image->truth.blocks[i];
	struct made_block block = {.addr = placed->addr,
		.size_bytes = placed->requested_bytes,
		.heap = placed->heap,
		.stack = scene->stacks[i % STACKS]};

	switch (said_of(i)) {
	case NOTHING: return;
	case OTHER_SIZE: block.size_bytes++; break;
	case OTHER_HEAP: block.heap = HEAP_C; break;
	case NO_STACK: block.stack = 0; break;
	case NO_SUCH_STACK: block.stack = 0x7ffffff; break;
	default: break;
	}
	tracer_put_block(scene->fake, (unsigned)i % 24, (unsigned)i / 24, &block);
}

static inline int set_up(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	const struct made_block gone = {.addr = 0x99990000, .size_bytes = 8, .heap = HEAP_A};

	assert_non_null(scene);
	scene->image = image_new(42);
	scene->fake = &scene->image->fake;
	tracer_place(scene->fake);
	for (size_t i = 0; i < STACKS; i++)
		scene->stacks[i] = tracer_put_stack(scene->fake, first_frame_of(i), depth_of(i));
	for (unsigned shard = 0; shard < 25; shard++)
		tracer_place_table(scene->fake, shard, TABLE_LOG2);
	assert_true(scene->image->truth.block_count < 24u << TABLE_LOG2);
	for (size_t i = 0; i < scene->image->truth.block_count; i++)
		say(scene, i);
	tracer_put_block(scene->fake, 24, 3, &gone); /* traced, but in no heap */
	snapshot_init(&scene->snapshot);
	current = scene;
	*state = scene;
	return 0;
}

static inline int tear_down(void **state)
{
	struct scene *scene = *state;

	snapshot_release(&scene->snapshot);
	image_free(scene->image);
	free(scene);
	return 0;
}

/* One capture into a fresh snapshot; the process must run after it. */
static inline int take(struct scene *scene)
{
	struct fake *fake = scene->fake;
	int rc;

	snapshot_release(&scene->snapshot);
	snapshot_init(&scene->snapshot);
	fake->reads = fake->suspends = fake->resumes = 0;
	fake->may_look = true;
	scene->err = (struct err){0};
	rc = capture_target(
		&fake->target, &scene->options, &scene->snapshot, &scene->stats, &scene->err);
	assert_int_equal(fake->suspends, fake->resumes);
	assert_false(fake->is_held);
	assert_int_equal(fake->loose_reads, 0);
	if (rc)
		assert_int_equal(scene->err.code, -rc);
	return rc;
}

static inline bool has_warning(const struct scene *scene, const char *words)
{
	for (size_t i = 0; i < scene->snapshot.warning_count; i++) {
		if (strstr(scene->snapshot.warnings[i], words))
			return true;
	}
	return false;
}

/* ---------------------------------------------------------------- what is expected */

static inline const struct block *block_at(const struct scene *scene, uint64_t addr)
{
	for (size_t i = 0; i < scene->snapshot.block_count; i++) {
		if (scene->snapshot.blocks[i].addr == addr)
			return &scene->snapshot.blocks[i];
	}
	return NULL;
}

static inline void assert_stack(const struct scene *scene, uint32_t index, size_t stack)
{
	const struct stack *found = &scene->snapshot.stacks.stacks[index];

	assert_true(index < scene->snapshot.stacks.count);
	assert_int_equal(found->frame_count, depth_of(stack));
	for (uint32_t k = 0; k < found->frame_count; k++)
		assert_int_equal(found->frames[k], first_frame_of(stack) + 16 * k);
}

static inline void assert_block(const struct scene *scene, size_t i, bool has_overhead)
{
	const struct placed *placed = &scene->image->truth.blocks[i];
	const struct block *block = block_at(scene, placed->addr);

	assert_non_null(block);
	assert_int_equal(block->requested_bytes, placed->requested_bytes);
	assert_int_equal(block->overhead_bytes, has_overhead ? placed->overhead_bytes : 0);
	assert_int_equal(scene->snapshot.heaps[block->heap].addr, placed->heap);
	assert_stack(scene, block->stack, i % STACKS);
}

/* What of a heap's blocks has no stack. */
static inline struct block_totals stackless_of(const struct scene *scene, uint64_t heap)
{
	struct block_totals census = {0};

	for (size_t i = 0; i < scene->image->truth.block_count; i++) {
		const struct placed *placed = &scene->image->truth.blocks[i];

		if (placed->heap != heap || said_of(i) <= TRUTH_TOO)
			continue;
		census.block_count++;
		census.requested_bytes += placed->requested_bytes;
		census.overhead_bytes += placed->overhead_bytes;
	}
	return census;
}

static inline void assert_whole(const struct scene *scene)
{
	const struct truth *truth = &scene->image->truth;
	const struct snapshot *snapshot = &scene->snapshot;
	size_t count = 0;

	for (size_t i = 0; i < truth->block_count; i++) {
		if (said_of(i) > TRUTH_TOO)
			continue;
		assert_block(scene, i, true);
		count++;
	}
	assert_int_equal(snapshot->block_count, count);
	assert_int_equal(snapshot->heap_count, truth->heap_count);
	for (size_t i = 0; i < snapshot->heap_count; i++) {
		const struct block_totals want = stackless_of(scene, snapshot->heaps[i].addr);

		assert_memory_equal(&snapshot->heaps[i].stackless, &want, sizeof(want));
	}
	assert_int_equal(snapshot_total(snapshot).block_count, truth->block_count);
}

/* ---------------------------------------------------------------- a heap that is busy */

static inline void be_busy(struct fake *fake)
{
	bool is_busy = fake->suspends <= current->busy_until;

	fake_put(fake, current->busy_addr, is_busy ? 0x24 : current->calm_value, 8);
}

static inline void be_busy_at(struct scene *scene, uint64_t addr, uint64_t until)
{
	scene->fake->on_suspend = be_busy;
	scene->busy_addr = addr;
	scene->busy_until = until;
	scene->calm_value = fake_get(scene->fake, addr, 8);
}

#undef TEST_AROUND
#define TEST_AROUND set_up, tear_down

#endif
