/*
 * A truth with blocks in three heaps, and what a source finds of it that makes no mistake; tests then
 * plant mistakes.
 */
#ifndef TESTS_UNIT_DOCTOR_SCENE_H
#define TESTS_UNIT_DOCTOR_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "snapshot/doctor/doctor.h"

#define PROCESS 0x10000u
#define GROWABLE 0x20000u
#define UNLOCKED 0x30000u
#define LIVE_BIG 0x300000u
#define FREED 0x210040u
#define OUTER_FRAME 0x140005010u
#define MAIN_FRAME 0x140006020u
#define SYSTEM_FRAME 0x7ff000001000u

struct scene {
	struct doctor_truth truth;
	struct doctor_found found;
	struct doctor_report report;
	struct heap heaps[3];
	struct doctor_found_block blocks[600];
	uint64_t frames[DOCTOR_SITES + 1][4]; /* stacks through each site */
};

static inline struct doctor_range site_code(unsigned site)
{
	return (struct doctor_range){0x140001000 + site * 0x100, 0x140001080 + site * 0x100};
}

static inline void put(struct scene *scene, uint64_t addr, uint64_t bytes, enum doctor_heap heap,
	enum doctor_group group)
{
	struct doctor_truth *truth = &scene->truth;
	const struct doctor_block block = {.addr = addr,
		.requested_bytes = bytes,
		.heap = (uint8_t)heap,
		.group = (uint8_t)group,
		.site = (uint8_t)(truth->block_count % DOCTOR_SITES),
		.was_bytes = group == DOCTOR_RESIZED ? 9 : 0};

	assert_true(doctor_truth_add(truth, &block));
}

static inline void put_all(struct scene *scene)
{
	const struct doctor_block freed = {
		.addr = FREED, .requested_bytes = 20, .heap = DOCTOR_GROWABLE, .is_freed = true};

	put(scene, 0x110000, 0, DOCTOR_PROCESS_HEAP, DOCTOR_SMALL);
	put(scene, 0x110020, 100, DOCTOR_PROCESS_HEAP, DOCTOR_SMALL);
	put(scene, 0x210000, 1, DOCTOR_GROWABLE, DOCTOR_SMALL);
	put(scene, 0x210020, 24, DOCTOR_GROWABLE, DOCTOR_SMALL);
	put(scene, 0x210060, 2000, DOCTOR_GROWABLE, DOCTOR_MIDDLE);
	put(scene, 0x211000, 70000, DOCTOR_GROWABLE, DOCTOR_RESIZED);
	put(scene, LIVE_BIG, 0x100000, DOCTOR_GROWABLE, DOCTOR_BIG);
	put(scene, 0x410000, 20, DOCTOR_UNLOCKED, DOCTOR_SMALL);
	assert_true(doctor_truth_add(&scene->truth, &freed));
	doctor_truth_settle(&scene->truth);
}

/* What a source finds that makes no mistake: all live blocks, and one more in the process heap. */
static inline void find_all(struct scene *scene)
{
	struct doctor_found *found = &scene->found;

	found->blocks = scene->blocks;
	found->block_count = 0;
	for (uint32_t i = 0; i < scene->truth.block_count; i++) {
		const struct doctor_block *block = &scene->truth.blocks[i];

		if (block->is_freed)
			continue;
		found->blocks[found->block_count++] =
			(struct doctor_found_block){.addr = block->addr,
				.requested_bytes = block->requested_bytes,
				.overhead_bytes = 16,
				.heap = scene->truth.heaps[block->heap],
				.frames = scene->frames[block->site],
				.frame_count = 4};
	}
	found->blocks[found->block_count++] = (struct doctor_found_block){
		.addr = 0x110100, .requested_bytes = 7, .heap = PROCESS};
	doctor_found_sort(found);
}

static inline int set_up(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	assert_non_null(scene);
	scene->truth.magic = DOCTOR_MAGIC;
	scene->truth.heaps[DOCTOR_PROCESS_HEAP] = PROCESS;
	scene->truth.heaps[DOCTOR_GROWABLE] = GROWABLE;
	scene->truth.heaps[DOCTOR_UNLOCKED] = UNLOCKED;
	scene->truth.image = (struct doctor_range){0x140000000, 0x140010000};
	scene->truth.outer = (struct doctor_range){0x140005000, 0x140005100};
	for (unsigned i = 0; i <= DOCTOR_SITES; i++) {
		const uint64_t frames[4] = {SYSTEM_FRAME, site_code(i).to, OUTER_FRAME, MAIN_FRAME};

		scene->truth.sites[i] = site_code(i);
		memcpy(scene->frames[i], frames, sizeof(frames));
	}
	put_all(scene);
	scene->heaps[0].addr = PROCESS;
	scene->heaps[1].addr = GROWABLE;
	scene->heaps[2].addr = UNLOCKED;
	scene->found = (struct doctor_found){
		.source = "test", .has_stacks = true, .heaps = scene->heaps, .heap_count = 3};
	find_all(scene);
	assert_true(doctor_truth_is_sound(&scene->truth));
	*state = scene;
	return 0;
}

static inline int tear_down(void **state)
{
	struct scene *scene = *state;

	doctor_report_release(&scene->report);
	free(scene);
	return 0;
}

static inline struct doctor_found_block *at(struct scene *scene, uint64_t addr)
{
	for (size_t i = 0; i < scene->found.block_count; i++) {
		if (scene->found.blocks[i].addr == addr)
			return &scene->found.blocks[i];
	}
	fail_msg("no block at %llx", (unsigned long long)addr);
	return NULL;
}

static inline void find(struct scene *scene, const struct doctor_found_block *block)
{
	scene->blocks[scene->found.block_count++] = *block;
	doctor_found_sort(&scene->found);
}

static inline void lose(struct scene *scene, uint64_t addr)
{
	struct doctor_found_block *block = at(scene, addr);

	*block = scene->blocks[--scene->found.block_count];
	doctor_found_sort(&scene->found);
}

static inline const struct doctor_row *row(
	const struct scene *scene, enum doctor_heap heap, const char *what)
{
	for (size_t i = 0; i < scene->report.count; i++) {
		const struct doctor_row *row = &scene->report.rows[i];

		if (!strcmp(row->heap, doctor_heap_name(heap)) && !strcmp(row->what, what))
			return row;
	}
	fail_msg("no row for %s", what);
	return NULL;
}

/* The rows named are off, with a word why, and no other. */
static inline void judge_off(
	struct scene *scene, enum doctor_heap heap, const char *what, const char *also)
{
	assert_int_equal(doctor_judge(&scene->report, &scene->truth, &scene->found, NULL), 0);
	assert_int_equal(doctor_report_off(&scene->report), also ? 2 : 1);
	assert_int_equal(row(scene, heap, what)->verdict, DOCTOR_OFF);
	assert_true(row(scene, heap, what)->detail[0]);
	if (also)
		assert_int_equal(row(scene, heap, also)->verdict, DOCTOR_OFF);
}

static inline const char *group(enum doctor_group group)
{
	return doctor_group_name(group);
}

#define SCENE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
