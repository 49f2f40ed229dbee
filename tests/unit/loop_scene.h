/*
 * A made world for the loop of snapshots: a clock that goes on only when somebody waits or works,
 * processes that come and go at given times, a folder of names, and a record of all that was done.
 */
#ifndef TESTS_LOOP_SCENE_H
#define TESTS_LOOP_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "snapshot/series/series.h"

#define NEVER INT64_MAX

struct made_process {
	uint32_t pid;
	int64_t start_ms; /* its identity; what the clock says is from_ms */
	int64_t from_ms, until_ms;
	enum err_code refuses; /* open() */
	uint64_t bytes, bytes_per_s; /* private: at first, and what is added */
	uint64_t shots;
	unsigned open_count;
};

struct made_shot {
	int64_t at_ms;
	uint32_t pid;
	int64_t start_ms;
	char path[40];
};

#define SHOTS_MAX 4000
#define SAID_MAX 1200

struct scene {
	int64_t clock_ms;
	int64_t take_ms; /* how long a snapshot takes */
	int64_t interrupt_ms; /* when Ctrl-C is pressed */
	struct made_process processes[40];
	size_t process_count;
	/* take() calls from number fail_from to fail_to - 1 fail with fails; it ends the process first when
	 * fail_ends. */
	uint64_t takes, fail_from, fail_to;
	enum err_code fails;
	int fail_ends;
	uint64_t incomplete_at; /* the take() of that number lacks something; 0: none does */
	unsigned names_taken; /* so many names are not free */
	uint64_t looks_taken; /* calls of take(), each of which holds the process */
	int64_t find_fails_from_ms;
	struct made_process
		*restarts; /* when it is looked for and has ended, another one is just there */
	struct made_shot shots[SHOTS_MAX];
	size_t shot_count;
	char said[SAID_MAX][300];
	size_t said_count;
	uint64_t written_calls, waits, looks;
	char last_path[40]; /* of the last take() that was well */
};

static inline int64_t scene_clock(void *ctx)
{
	return ((struct scene *)ctx)->clock_ms;
}

static inline int scene_is_there(const struct scene *scene, const struct made_process *process)
{
	return scene->clock_ms >= process->from_ms && scene->clock_ms < process->until_ms;
}

/* Jumps to the next thing that ends the wait. Nobody may wait for what is already there: the loop would
 * spin. */
static inline void scene_wait(void *ctx, int64_t until_ms, void *const *processes, size_t count)
{
	struct scene *scene = ctx;
	int64_t to = until_ms;

	assert_true(until_ms > scene->clock_ms);
	assert_true(count <= SERIES_WAIT_MAX);
	assert_true(++scene->waits < 100000);
	for (size_t i = 0; i < count; i++) {
		const struct made_process *process = processes[i];

		assert_true(scene_is_there(scene, process));
		to = process->until_ms < to ? process->until_ms : to;
	}
	if (scene->interrupt_ms > scene->clock_ms && scene->interrupt_ms < to)
		to = scene->interrupt_ms;
	assert_true(to != NEVER);
	scene->clock_ms = to;
}

static inline bool scene_is_interrupted(void *ctx)
{
	struct scene *scene = ctx;

	return scene->clock_ms >= scene->interrupt_ms;
}

static inline uint64_t scene_bytes(const struct scene *scene, const struct made_process *process)
{
	return process->bytes +
	       (uint64_t)(scene->clock_ms - process->from_ms) / 1000 * process->bytes_per_s;
}

/* It lives as long as the one before. */
static inline void scene_restart(const struct scene *scene, struct made_process *process)
{
	int64_t life_ms = process->until_ms - process->from_ms;

	if (scene_is_there(scene, process) || process->open_count)
		return;
	process->start_ms++;
	process->from_ms = scene->clock_ms;
	process->until_ms = scene->clock_ms + life_ms;
}

static inline int scene_find(void *ctx, struct series_found *found, struct err *err)
{
	struct scene *scene = ctx;

	scene->looks++;
	if (scene->restarts)
		scene_restart(scene, scene->restarts);
	if (scene->clock_ms >= scene->find_fails_from_ms)
		return err_set(err, ERR_SYSTEM, "the list", NULL);
	for (size_t i = 0; i < scene->process_count; i++) {
		const struct made_process *process = &scene->processes[i];

		if (!scene_is_there(scene, process))
			continue;
		assert_int_equal(array_grow((void **)&found->items, &found->cap, found->count,
					 sizeof(*found->items)),
			0);
		found->items[found->count++] = (struct series_process){
			process->pid, process->start_ms, scene_bytes(scene, process)};
	}
	return 0;
}

static inline int scene_open(
	void *ctx, const struct series_process *id, void **process, struct err *err)
{
	struct scene *scene = ctx;

	for (size_t i = 0; i < scene->process_count; i++) {
		struct made_process *made = &scene->processes[i];
		char place[40];

		if (made->pid != id->pid || made->start_ms != id->start_ms ||
			!scene_is_there(scene, made))
			continue;
		snprintf(place, sizeof(place), "pid %u", made->pid);
		if (made->refuses)
			return err_set(err, made->refuses, place, NULL);
		assert_int_equal(made->open_count, 0); /* never twice */
		made->open_count++;
		*process = made;
		return 0;
	}
	return err_set(err, ERR_GONE, "a process", NULL);
}

static inline void scene_close(void *ctx, void *process)
{
	struct made_process *made = process;

	(void)ctx;
	assert_int_equal(made->open_count, 1);
	made->open_count--;
}

static inline bool scene_has_ended(void *ctx, void *process)
{
	return !scene_is_there(ctx, process);
}

static inline int scene_private_bytes(void *ctx, void *process, uint64_t *bytes, struct err *err)
{
	if (scene_has_ended(ctx, process))
		return err_set(err, ERR_GONE, "a process", NULL);
	*bytes = scene_bytes(ctx, process);
	return 0;
}

/* Names count the shots of a process; a name that is taken gets a letter. */
static inline int scene_name(
	void *ctx, void *process, unsigned tries, struct buf *path, struct err *err)
{
	const struct made_process *made = process;

	(void)ctx;
	(void)err;
	return buf_printf(path, "%u-%llu-%u", made->pid, (unsigned long long)made->shots, tries);
}

/* Which name of a file it is. */
static inline unsigned scene_try(const char *path)
{
	return (unsigned)strtoul(strrchr(path, '-') + 1, NULL, 10);
}

static inline int scene_take(void *ctx, void *process, const char *path,
	const struct out_names *names, struct series_taken *taken, struct err *err)
{
	struct scene *scene = ctx;
	struct made_process *made = process;
	uint64_t number = scene->takes;

	assert_true(made->open_count);
	assert_true(scene_is_there(scene, made)); /* its end has been seen */
	scene->looks_taken++;
	while (scene_try(path) < scene->names_taken) {
		int rc = names->next(names->ctx, &path, err);

		if (rc)
			return rc;
	}
	scene->takes++;
	scene->clock_ms += scene->take_ms;
	if (number >= scene->fail_from && number < scene->fail_to) {
		if (scene->fail_ends)
			made->until_ms = scene->clock_ms;
		return err_set(err, scene->fails, path, NULL);
	}
	assert_true(scene->shot_count < SHOTS_MAX);
	scene->shots[scene->shot_count] =
		(struct made_shot){.at_ms = scene->clock_ms - scene->take_ms,
			.pid = made->pid,
			.start_ms = made->start_ms};
	snprintf(scene->shots[scene->shot_count++].path, 40, "%s", path);
	snprintf(scene->last_path, sizeof(scene->last_path), "%s", path);
	made->shots++;
	*taken = (struct series_taken){
		100 + made->pid, 5000, 7, scene->takes == scene->incomplete_at};
	return 0;
}

static inline void scene_written(void *ctx, void *process, const char *path)
{
	struct scene *scene = ctx;

	(void)process;
	scene->written_calls++;
	assert_int_equal(
		scene->written_calls, scene->shot_count); /* once for each, right after it */
	assert_string_equal(path, scene->last_path);
}

static inline void scene_say(void *ctx, const char *line)
{
	struct scene *scene = ctx;

	assert_null(strchr(line, '\n'));
	assert_true(scene->said_count < SAID_MAX);
	snprintf(scene->said[scene->said_count++], sizeof(scene->said[0]), "%s", line);
}

static const struct series_ops scene_ops = {
	.clock_ms = scene_clock,
	.wait = scene_wait,
	.is_interrupted = scene_is_interrupted,
	.find = scene_find,
	.open = scene_open,
	.close = scene_close,
	.has_ended = scene_has_ended,
	.private_bytes = scene_private_bytes,
	.name = scene_name,
	.take = scene_take,
	.written = scene_written,
	.say = scene_say,
};

#define SCENE_START_MS 5000123 /* the clock's zero means nothing */

static inline struct scene *scene_new(void)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	assert_non_null(scene);
	scene->clock_ms = SCENE_START_MS;
	scene->interrupt_ms = NEVER;
	scene->find_fails_from_ms = NEVER;
	return scene;
}

/* Lives from and until so many ms after the scene's start. Returns it. */
static inline struct made_process *scene_add(
	struct scene *scene, uint32_t pid, int64_t start_ms, int64_t from_ms, int64_t until_ms)
{
	struct made_process *process = &scene->processes[scene->process_count++];

	*process = (struct made_process){.pid = pid,
		.start_ms = start_ms,
		.from_ms = SCENE_START_MS + from_ms,
		.until_ms = until_ms == NEVER ? NEVER : SCENE_START_MS + until_ms};
	return process;
}

/* Runs a plan, and checks what is true of every run. */
static inline int scene_run(struct scene *scene, const struct series_plan *plan,
	struct series_result *result, struct err *err)
{
	int rc = series_loop_run(plan, &scene_ops, scene, result, err);

	for (size_t i = 0; i < scene->process_count; i++)
		assert_int_equal(scene->processes[i].open_count, 0);
	assert_int_equal(scene->written_calls, scene->shot_count);
	if (!rc)
		assert_int_equal(result->written, scene->shot_count);
	return rc;
}

/* What became of a plan. */
struct outcome {
	int rc, status;
	struct err err;
	struct series_result result;
};

static inline struct outcome scene_outcome(struct scene *scene, const struct series_plan *plan)
{
	struct outcome outcome = {0};

	outcome.rc = scene_run(scene, plan, &outcome.result, &outcome.err);
	outcome.status = outcome.rc ? 2 : series_exit_status(&outcome.result);
	return outcome;
}

/* How many lines have these words. */
static inline size_t scene_said(const struct scene *scene, const char *words)
{
	size_t count = 0;

	for (size_t i = 0; i < scene->said_count; i++)
		count += strstr(scene->said[i], words) != NULL;
	return count;
}

/* When a shot began, in ms after the scene's start. */
static inline int64_t scene_at(const struct scene *scene, size_t shot)
{
	assert_true(shot < scene->shot_count);
	return scene->shots[shot].at_ms - SCENE_START_MS;
}

#endif
