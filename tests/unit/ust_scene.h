/*
 * A process whose blocks point to records of stacks.
 */
#ifndef TESTS_UNIT_UST_SCENE_H
#define TESTS_UNIT_UST_SCENE_H

#include "tests/unit/t.h"

#include "tests/unit/fake_ust.h"

#define FRAME (CODE_BASE + 0x1000u)
#define HEAP_32 0x1000000u
#define HEAP_64 0x2000000u

struct scene {
	struct fake fake;
	struct memory memory;
	struct walk walk;
	struct ust *ust;
	unsigned bits;
	uint32_t global_flag;
};

static inline int set_up(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	assert_non_null(scene);
	ust_place(&scene->fake, 64);
	walk_init(&scene->walk);
	scene->ust = ust_new();
	assert_non_null(scene->ust);
	assert_int_equal(memory_init(&scene->memory, &scene->fake.target), 0);
	scene->bits = 64;
	*state = scene;
	return 0;
}

static inline int tear_down(void **state)
{
	struct scene *scene = *state;

	ust_free(scene->ust);
	walk_release(&scene->walk);
	memory_release(&scene->memory);
	fake_release(&scene->fake);
	free(scene);
	return 0;
}

static inline void add_heap(struct scene *scene, unsigned bits)
{
	struct heap heap = {.addr = bits == 64 ? HEAP_64 : HEAP_32, .bits = bits, .kind = "nt"};

	assert_int_equal(walk_add_heap(&scene->walk, &heap), 0);
}

static inline void add_block(struct scene *scene, uint64_t record)
{
	uint64_t addr = 0x3000000 + scene->walk.block_count * 32;

	assert_int_equal(walk_add_block(&scene->walk, addr, 16, 16, record), 0);
}

static inline void take(struct scene *scene)
{
	assert_int_equal(ust_take(scene->ust, &scene->memory, &scene->walk, scene->fake.modules,
				 scene->fake.module_count, scene->global_flag),
		0);
	assert_int_equal(scene->fake.loose_reads, 0);
}

/* The number of the record at addr that a block of a heap of scene->bits points to. */
static inline uint32_t number_of(const struct scene *scene, uint64_t addr)
{
	for (size_t i = 0; i < scene->walk.block_count; i++) {
		const struct walked_block *block = &scene->walk.blocks[i];

		if (block->record == addr && scene->walk.heaps[block->heap].bits == scene->bits)
			return ust_number(scene->ust, i);
	}
	fail_msg("no block points to %llX", (unsigned long long)addr);
	return UST_NONE;
}

/* How many frames the record at addr is found to have; each has to be what was placed. */
static inline uint32_t depth_of(struct scene *scene, uint64_t addr, uint64_t first_frame)
{
	uint32_t number = number_of(scene, addr), count;
	const uint64_t *frames;
	uint64_t first_slot;

	assert_true(number < ust_facts(scene->ust)->record_count);
	count = ust_frames(scene->ust, number, &frames, &first_slot);
	assert_true(first_slot == slot_at(scene->bits, addr));
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(frames[i], first_frame + i * 16);
	return count;
}

#undef TEST_AROUND
#define TEST_AROUND set_up, tear_down

#endif
