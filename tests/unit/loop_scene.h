/*
 * A made world for the loop of snapshots: a clock that goes on only when somebody waits or works,
 * processes that come and go at given times, in the place of process_ref_posix.c, and a record of all that was
 * done.
 */
#ifndef TESTS_LOOP_SCENE_H
#define TESTS_LOOP_SCENE_H

#include "tests/unit/t.h"

#include "core/base/os.h"
#include "snapshot/live/process_ref.h"
#include "snapshot/series/series.h"

#define NEVER INT64_MAX

struct made_process {
	uint32_t pid;
	int64_t start_ms; /* its identity; what the clock says is from_ms */
	int64_t from_ms, until_ms;
	enum err_code refuses; /* process_ref_open() */
	uint64_t bytes, bytes_per_s; /* private: at first, and what is added */
	unsigned open_count;
};

struct made_shot {
	int64_t at_ms;
	uint32_t pid;
	int64_t start_ms;
	char path[40];
};

#define SHOTS_MAX 4000
#define SAID_MAX 12000

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
	uint64_t waits, looks;
};

static struct scene *world; /* of the run at hand */

static inline int64_t scene_clock(void)
{
	return world->clock_ms;
}

static inline int scene_is_there(const struct scene *scene, const struct made_process *process)
{
	return scene->clock_ms >= process->from_ms && scene->clock_ms < process->until_ms;
}

/* Jumps to the next thing that ends the wait. Nobody may wait for what is already there: the loop would
 * spin. */
static inline void scene_wait(int64_t until_ms, const intptr_t *handles, size_t count)
{
	int64_t to = until_ms;

	assert_true(until_ms > world->clock_ms);
	assert_true(count <= OS_WAIT_MAX);
	assert_true(++world->waits < 100000);
	for (size_t i = 0; i < count; i++) {
		const struct made_process *process = &world->processes[handles[i]];

		assert_true(scene_is_there(world, process));
		to = process->until_ms < to ? process->until_ms : to;
	}
	if (world->interrupt_ms > world->clock_ms && world->interrupt_ms < to)
		to = world->interrupt_ms;
	assert_true(to != NEVER);
	world->clock_ms = to;
}

static inline bool scene_is_interrupted(void)
{
	return world->clock_ms >= world->interrupt_ms;
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

/* Those that are called so, which all are; or of this pid. */
static inline int scene_find(
	uint32_t pid, struct process_seen **seen, size_t *count, struct err *err)
{
	world->looks++;
	if (world->restarts)
		scene_restart(world, world->restarts);
	if (world->clock_ms >= world->find_fails_from_ms)
		return err_set(err, ERR_SYSTEM, "the list", NULL);
	*seen = calloc(world->process_count + 1, sizeof(**seen));
	assert_non_null(*seen);
	*count = 0;
	for (size_t i = 0; i < world->process_count; i++) {
		const struct made_process *process = &world->processes[i];

		if (scene_is_there(world, process) && (!pid || process->pid == pid))
			(*seen)[(*count)++] = (struct process_seen){
				process->pid, process->start_ms, scene_bytes(world, process)};
	}
	return 0;
}

int process_ref_find(const char *name, struct process_seen **seen, size_t *count, struct err *err)
{
	assert_non_null(name);
	return scene_find(0, seen, count, err);
}

int process_ref_find_pid(uint32_t pid, struct process_seen **seen, size_t *count, struct err *err)
{
	return scene_find(pid, seen, count, err);
}

int process_ref_open(struct process_ref *kept, uint32_t pid, int64_t start_ms, struct err *err)
{
	for (size_t i = 0; i < world->process_count; i++) {
		struct made_process *made = &world->processes[i];
		char place[40];

		if (made->pid != pid || made->start_ms != start_ms || !scene_is_there(world, made))
			continue;
		snprintf(place, sizeof(place), "pid %u", made->pid);
		if (made->refuses)
			return err_set(err, made->refuses, place, NULL);
		assert_int_equal(made->open_count, 0); /* never twice */
		made->open_count++;
		*kept = (struct process_ref){
			.handle = (intptr_t)i, .pid = pid, .start_ms = start_ms};
		return 0;
	}
	return err_set(err, ERR_GONE, "a process", NULL);
}

static inline struct made_process *scene_process(const struct process_ref *kept)
{
	return &world->processes[kept->handle];
}

void process_ref_close(struct process_ref *kept)
{
	assert_int_equal(scene_process(kept)->open_count, 1);
	scene_process(kept)->open_count--;
}

bool process_ref_has_ended(const struct process_ref *kept)
{
	return !scene_is_there(world, scene_process(kept));
}

int process_ref_private_bytes(const struct process_ref *kept, uint64_t *bytes, struct err *err)
{
	if (process_ref_has_ended(kept))
		return err_set(err, ERR_GONE, "a process", NULL);
	*bytes = scene_bytes(world, scene_process(kept));
	return 0;
}

static inline int scene_take(void *ctx, const struct process_ref *process, const char *path,
	const struct out_names *names, struct series_taken *taken, struct err *err)
{
	struct scene *scene = ctx;
	struct made_process *made = scene_process(process);
	uint64_t number = scene->takes;

	assert_true(made->open_count);
	assert_true(scene_is_there(scene, made)); /* its end has been seen */
	scene->looks_taken++;
	for (unsigned i = 0; i < scene->names_taken; i++) {
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
	*taken = (struct series_taken){
		100 + made->pid, 5000, 7, scene->takes == scene->incomplete_at};
	return 0;
}

static inline void scene_say(void *ctx, const char *line)
{
	struct scene *scene = ctx;

	assert_null(strchr(line, '\n'));
	assert_true(scene->said_count < SAID_MAX);
	snprintf(scene->said[scene->said_count++], sizeof(scene->said[0]), "%s", line);
}

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

/* Runs a plan, and checks what is true of every run. Files are called as the plan says, or "{pid}". */
static inline int scene_run(struct scene *scene, const struct series_plan *plan,
	struct series_result *result, struct err *err)
{
	const struct series_calls calls = {
		scene_clock, scene_wait, scene_is_interrupted, scene_take, scene_say, scene};
	struct series_plan named = *plan;
	int rc;

	world = scene;
	named.out = plan->out ? plan->out : "{pid}";
	named.limits = (struct series_limits){UINT64_MAX, UINT64_MAX};
	rc = series_run(&named, &calls, result, err);
	for (size_t i = 0; i < scene->process_count; i++)
		assert_int_equal(scene->processes[i].open_count, 0);
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
