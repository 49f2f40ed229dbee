/* Series of snapshots in a simulated world: a clock that advances only during waits and work,
 * processes with given lifetimes in place of process_ref_posix.c, and a record of all calls. Covers
 * when snapshots are due, failures and ends; the choice of the process, including reused pids; and
 * waiting for processes. The expected times are computed by arithmetic. */
#include "tests/unit/t.h"

#include "core/base/os.h"
#include "snapshot/live/process_ref.h"
#include "snapshot/series/series.h"

#define NEVER INT64_MAX
#define MINUTE_MS INT64_C(60000)
#define HOUR_MS (60 * MINUTE_MS)

struct made_process {
	uint32_t pid;
	/* Identifies the process, whose start on the simulated clock is from_ms. */
	int64_t start_ms;
	int64_t from_ms, until_ms;
	enum err_code refuses; /* error that process_ref_open() returns */
	uint64_t bytes, bytes_per_s; /* private bytes: initial, and growth per second */
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
	int64_t take_ms; /* duration of a snapshot */
	int64_t interrupt_ms; /* time of Ctrl-C */
	struct made_process processes[40];
	size_t process_count;
	/* Calls of take() from number fail_from to fail_to - 1 fail with the error `fails`. If
	 * fail_ends is set, they end the process first. */
	uint64_t takes, fail_from, fail_to;
	uint64_t fail_every; /* only the first two of every N calls fail; 0: all fail */
	uint32_t fail_pid; /* only snapshots of this process fail; 0: of any process */
	enum err_code fails;
	int fail_ends;
	uint64_t incomplete_at; /* number of the take() that is incomplete; 0: none */
	unsigned names_taken; /* number of names that are already in use */
	uint64_t looks_taken; /* number of take() calls that held the process */
	int64_t find_fails_from_ms;
	/* Once this process has ended, the next search finds its successor. */
	struct made_process *restarts;
	struct made_shot shots[SHOTS_MAX];
	size_t shot_count;
	char said[SAID_MAX][300];
	size_t said_count;
	uint64_t waits, looks;
	struct series_result result;
	struct err err;
};

static struct scene scene;
static enum balance_figure scene_figure; /* figure that the plan watches */

static int64_t scene_clock(void)
{
	return scene.clock_ms;
}

static int scene_is_there(const struct made_process *process)
{
	return scene.clock_ms >= process->from_ms && scene.clock_ms < process->until_ms;
}

/* Advances to the next event that ends the wait. Waiting for a time in the past is an error,
 * because the loop would spin. */
static void scene_wait(int64_t until_ms, const intptr_t *handles, size_t count)
{
	int64_t to = until_ms;

	assert_true(until_ms > scene.clock_ms);
	assert_true(count <= OS_WAIT_MAX);
	assert_true(++scene.waits < 100000);
	for (size_t i = 0; i < count; i++) {
		const struct made_process *process = &scene.processes[handles[i]];

		assert_true(scene_is_there(process));
		to = process->until_ms < to ? process->until_ms : to;
	}
	if (scene.interrupt_ms > scene.clock_ms && scene.interrupt_ms < to)
		to = scene.interrupt_ms;
	assert_true(to != NEVER);
	scene.clock_ms = to;
}

static bool scene_is_interrupted(void)
{
	return scene.clock_ms >= scene.interrupt_ms;
}

static uint64_t scene_bytes(const struct made_process *process)
{
	return process->bytes +
	       (uint64_t)(scene.clock_ms - process->from_ms) / 1000 * process->bytes_per_s;
}

/* Replaces a process with a new one that lives as long. */
static void scene_restart(struct made_process *process)
{
	int64_t life_ms = process->until_ms - process->from_ms;

	if (scene_is_there(process) || process->open_count)
		return;
	process->start_ms++;
	process->from_ms = scene.clock_ms;
	process->until_ms = scene.clock_ms + life_ms;
}

/* Lists the processes with the name, which is that of all processes, or with this pid. */
static int scene_find(uint32_t pid, struct process_seen **seen, size_t *count, struct err *err)
{
	scene.looks++;
	if (scene.restarts)
		scene_restart(scene.restarts);
	if (scene.clock_ms >= scene.find_fails_from_ms)
		return err_set(err, ERR_SYSTEM, "the list", NULL);
	*seen = xcalloc(scene.process_count, sizeof(**seen));
	*count = 0;
	for (size_t i = 0; i < scene.process_count; i++) {
		const struct made_process *process = &scene.processes[i];

		if (scene_is_there(process) && (!pid || process->pid == pid))
			(*seen)[(*count)++] = (struct process_seen){
				process->pid, process->start_ms, scene_bytes(process)};
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

int process_ref_open(struct process_ref *ref, uint32_t pid, int64_t start_ms, struct err *err)
{
	for (size_t i = 0; i < scene.process_count; i++) {
		struct made_process *made = &scene.processes[i];
		char place[40];

		if (made->pid != pid || made->start_ms != start_ms || !scene_is_there(made))
			continue;
		snprintf(place, sizeof(place), "pid %u", made->pid);
		if (made->refuses)
			return err_set(err, made->refuses, place, NULL);
		assert_int_equal(made->open_count, 0); /* no process is opened twice */
		made->open_count++;
		*ref = (struct process_ref){
			.handle = (intptr_t)i, .pid = pid, .start_ms = start_ms};
		return 0;
	}
	return err_set(err, ERR_GONE, "a process", NULL);
}

static struct made_process *scene_process(const struct process_ref *ref)
{
	return &scene.processes[ref->handle];
}

void process_ref_close(struct process_ref *ref)
{
	assert_int_equal(scene_process(ref)->open_count, 1);
	scene_process(ref)->open_count--;
}

bool process_ref_has_ended(const struct process_ref *ref)
{
	return !scene_is_there(scene_process(ref));
}

int process_ref_figure(
	const struct process_ref *ref, enum balance_figure figure, uint64_t *value, struct err *err)
{
	assert_int_equal(figure, scene_figure);
	if (process_ref_has_ended(ref))
		return err_set(err, ERR_GONE, "a process", NULL);
	*value = scene_bytes(scene_process(ref));
	return 0;
}

static int scene_take(void *ctx, const struct process_ref *process, const char *path,
	const struct out_names *names, struct series_taken *taken, struct err *err)
{
	struct made_process *made = scene_process(process);
	uint64_t number = scene.takes;

	(void)ctx;
	assert_true(made->open_count);
	assert_true(scene_is_there(made)); /* the loop must have noticed if the process ended */
	scene.looks_taken++;
	for (unsigned i = 0; i < scene.names_taken; i++) {
		int rc = names->next(names->ctx, &path, err);

		if (rc)
			return rc;
	}
	scene.takes++;
	scene.clock_ms += scene.take_ms;
	if (number >= scene.fail_from && number < scene.fail_to &&
		(!scene.fail_every || number % scene.fail_every < 2) &&
		(!scene.fail_pid || scene.fail_pid == made->pid)) {
		if (scene.fail_ends)
			made->until_ms = scene.clock_ms;
		return err_set(err, scene.fails, path, NULL);
	}
	assert_true(scene.shot_count < SHOTS_MAX);
	scene.shots[scene.shot_count] = (struct made_shot){.at_ms = scene.clock_ms - scene.take_ms,
		.pid = made->pid,
		.start_ms = made->start_ms};
	snprintf(scene.shots[scene.shot_count++].path, 40, "%s", path);
	*taken =
		(struct series_taken){100 + made->pid, 5000, 7, scene.takes == scene.incomplete_at};
	return 0;
}

static void scene_print(void *ctx, const char *line)
{
	(void)ctx;
	assert_null(strchr(line, '\n'));
	assert_true(scene.said_count < SAID_MAX);
	snprintf(scene.said[scene.said_count++], sizeof(scene.said[0]), "%s", line);
}

#define START_MS 5000123 /* the clock's zero has no meaning */

static int scene_begin(void **state)
{
	(void)state;
	memset(&scene, 0, sizeof(scene));
	scene.clock_ms = START_MS;
	scene.interrupt_ms = NEVER;
	scene.find_fails_from_ms = NEVER;
	return 0;
}

/* Adds a process that lives between these times, in ms after the scene's start. */
static struct made_process *add(uint32_t pid, int64_t start_ms, int64_t from_ms, int64_t until_ms)
{
	struct made_process *process = &scene.processes[scene.process_count++];

	*process = (struct made_process){.pid = pid,
		.start_ms = start_ms,
		.from_ms = START_MS + from_ms,
		.until_ms = until_ms == NEVER ? NEVER : START_MS + until_ms};
	return process;
}

static struct made_process *add_one(void)
{
	return add(12, 77, 0, NEVER);
}

static void fail_takes(uint64_t from, uint64_t to, enum err_code code)
{
	scene.fail_from = from;
	scene.fail_to = to;
	scene.fails = code;
}

/* Runs a plan, by name if it has no pid, and checks what is true for every run. The plan's pattern,
 * or "{pid}", names the files. Returns the error of series_run(), or the exit status. */
static int run(struct series_plan plan)
{
	const struct series_calls calls = {scene_clock, os_time_ms, scene_wait,
		scene_is_interrupted, scene_take, scene_print, NULL};
	int rc;

	plan.name = plan.pid ? NULL : "app.exe";
	plan.out = plan.out ? plan.out : "{pid}";
	plan.limits = (struct series_limits){UINT64_MAX, UINT64_MAX};
	rc = series_run(&plan, &calls, &scene.result, &scene.err);
	for (size_t i = 0; i < scene.process_count; i++)
		assert_int_equal(scene.processes[i].open_count, 0);
	if (rc)
		return rc;
	assert_int_equal(scene.result.written, scene.shot_count);
	return series_exit_status(&scene.result);
}

#define RUN(...) run((struct series_plan){__VA_ARGS__})
/* Runs a plan and requires this status and number of files. */
#define RUNS(status, files, ...)                                                                   \
	do {                                                                                       \
		assert_int_equal(RUN(__VA_ARGS__), status);                                        \
		assert_int_equal(scene.shot_count, files);                                         \
	} while (0)

static size_t said(const char *words)
{
	size_t count = 0;

	for (size_t i = 0; i < scene.said_count; i++)
		count += strstr(scene.said[i], words) != NULL;
	return count;
}

/* Returns when a snapshot was started, in ms after the scene's start. */
static int64_t at(size_t shot)
{
	assert_true(shot < scene.shot_count);
	return scene.shots[shot].at_ms - START_MS;
}

static void check_pids(const uint32_t *pids, size_t count)
{
	assert_int_equal(scene.shot_count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(scene.shots[i].pid, pids[i]);
}

#undef TEST_AROUND
#define TEST_AROUND scene_begin, NULL

/* ---------------------------------------------------------------- times and ends */

TEST(test_thousand_snapshots_do_not_drift)
{
	add_one();
	scene.take_ms = 1234567;
	RUNS(0, 1000, .every_ms = HOUR_MS, .file_count = 1000);
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(at(i), (int64_t)i * HOUR_MS);
	assert_int_equal(said("skipped"), 0);
}

TEST(test_missed_times_are_skipped_and_reported)
{
	static const struct {
		int64_t take_ms, step_ms;
		const char *words;
	} cases[] = {
		{10000, 10000, NULL}, /* each finishes exactly when the next is due */
		{10001, 20000, "1 snapshot skipped: the previous one was done 10s after"},
		{20000, 20000, "1 snapshot skipped"},
		{25000, 30000, "2 snapshots skipped: the previous one was done 25s after"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		scene_begin(NULL);
		add_one();
		scene.take_ms = cases[i].take_ms;
		RUNS(0, 5, .every_ms = 10000, .file_count = 5);
		for (size_t shot = 0; shot < 5; shot++)
			assert_int_equal(at(shot), (int64_t)shot * cases[i].step_ms);
		assert_int_equal(said("skipped"), cases[i].words ? 4 : 0);
		if (cases[i].words)
			assert_int_equal(said(cases[i].words), 4);
	}
}

TEST(test_one_that_fails_is_tried_again_when_next_is_due)
{
	add_one();
	fail_takes(2, 5, ERR_WRITE);
	RUNS(2, 5, .every_ms = 10000, .file_count = 5);
	assert_int_equal(at(1), 10000);
	assert_int_equal(at(2), 50000); /* the snapshots due at 20, 30 and 40 s failed */
	assert_int_equal(at(4), 70000);
	assert_int_equal(said("12: cannot write"), 3);
	assert_int_equal(scene.takes, 8);
	assert_int_equal(scene.result.failed, 3);
}

/* An incomplete file counts as usual: the next snapshot may be complete. */
TEST(test_one_that_lacks_something_is_written_and_makes_status_2)
{
	add_one();
	scene.incomplete_at = 2;
	RUNS(2, 3, .every_ms = 10000, .file_count = 3);
	assert_int_equal(at(2), 20000);
	assert_int_equal(scene.result.failed, 0);
	assert_int_equal(scene.result.incomplete, 1);
}

/* The disk stays full. hsnap tries once each time a snapshot is due, and the series continues. */
TEST(test_what_fails_for_good_never_spins)
{
	add_one();
	fail_takes(0, UINT64_MAX, ERR_CREATE);
	scene.interrupt_ms = START_MS + 1000001;
	assert_int_equal(RUN(.every_ms = 10000, .file_count = 5), 2);
	assert_int_equal(scene.takes, 101); /* at 0, 10, ... 1000 s */
	assert_true(scene.waits <= 102);
	assert_int_equal(said("interrupted: 0 files written"), 1);
}

/* ---------------------------------------------------------------- permanent faults */

TEST(fault_of_request_ends_series_at_once)
{
	static const enum err_code codes[] = {
		ERR_NOT_TRACED, ERR_NO_STACKS, ERR_BITS, ERR_64_BITS, ERR_PLATFORM, ERR_USAGE};

	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
		scene_begin(NULL);
		add_one();
		fail_takes(2, UINT64_MAX, codes[i]);
		RUNS(2, 2, .every_ms = 10000, .file_count = 5);
		assert_int_equal(scene.takes, 3);
		assert_int_equal(said("pid 12: given up after 1 failure in a row; 2 files"), 1);
		assert_string_equal(scene.said[scene.said_count - 1], "2 files written");
	}
}

TEST(unreadable_process_ends_series_after_three_failures_in_row)
{
	static const enum err_code codes[] = {ERR_TARGET, ERR_RIGHTS, ERR_NO_HEAPS};

	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
		scene_begin(NULL);
		add_one();
		fail_takes(0, UINT64_MAX, codes[i]);
		RUNS(2, 0, .every_ms = 10000, .file_count = 5);
		assert_int_equal(scene.takes, 3);
		assert_int_equal(scene.result.failed, 3);
		assert_int_equal(said("pid 12: given up after 3 failures in a row; 0 files"), 1);
	}
}

TEST(two_failures_of_unreadable_process_end_nothing)
{
	add_one();
	fail_takes(0, 2, ERR_TARGET);
	RUNS(2, 3, .every_ms = 10000, .file_count = 3);
	assert_int_equal(scene.result.failed, 2);
	assert_int_equal(said("given up"), 0);
}

/* A success resets the count of failures: a series of 200 tries survives 40 pairs of failures. */
TEST(failures_count_only_in_row)
{
	add_one();
	scene.fail_every = 5;
	fail_takes(0, UINT64_MAX, ERR_TARGET);
	RUNS(2, 120, .every_ms = 10000, .file_count = 120);
	assert_int_equal(scene.takes, 200);
	assert_int_equal(scene.result.failed, 80);
}

TEST(full_disk_ends_series_after_day_and_ten_failures)
{
	static const struct {
		int64_t every_ms;
		uint64_t takes;
	} cases[] = {{HOUR_MS, 25}, {MINUTE_MS, 1441}, {48 * HOUR_MS, 10}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		scene_begin(NULL);
		add_one();
		fail_takes(0, UINT64_MAX, ERR_WRITE);
		RUNS(2, 0, .every_ms = cases[i].every_ms);
		assert_int_equal(scene.takes, cases[i].takes);
		assert_int_equal(said("given up"), 1);
	}
}

TEST(watch_ends_when_its_process_stays_unreadable)
{
	add_one();
	fail_takes(0, UINT64_MAX, ERR_TARGET);
	RUNS(2, 0, .every_ms = 1000, .growth = 1000);
	assert_int_equal(scene.takes, 3);
}

TEST(one_unreadable_process_of_several_leaves_others)
{
	static const uint32_t pids[] = {2, 2, 2, 2};

	add(1, 1, 0, NEVER);
	add(2, 1, 0, NEVER);
	scene.fail_pid = 1;
	fail_takes(0, UINT64_MAX, ERR_NOT_TRACED);
	RUNS(2, 4, .every_ms = 10000, .takes_all = true, .file_count = 4);
	check_pids(pids, 4);
	assert_int_equal(scene.takes, 1 + 4);
	assert_int_equal(said("pid 1: given up"), 1);
}

/* The unreadable process lives for 35 s; another process follows. */
TEST(series_that_waits_takes_next_process)
{
	static const uint32_t pids[] = {2};

	add(1, 1, 0, 35000);
	add(2, 2, 60000, 69000);
	scene.fail_pid = 1;
	fail_takes(0, UINT64_MAX, ERR_NOT_TRACED);
	scene.interrupt_ms = START_MS + 100000;
	RUNS(2, 1, .every_ms = 10000, .waits = true);
	check_pids(pids, 1);
	assert_int_equal(scene.takes, 2);
	assert_int_equal(said("pid 1: given up"), 1);
}

TEST(test_taken_name_is_followed_by_next)
{
	add_one();
	scene.names_taken = SERIES_TRIES - 1;
	assert_int_equal(RUN(.out = "{pid}-{time}", .every_ms = 10000, .file_count = 2), 0);
	for (size_t i = 0; i < 2; i++)
		assert_string_equal(scene.shots[i].path + strlen("12-20261120T102548"), "Z_10");
	/* The process was not held while names were searched. */
	assert_int_equal(scene.looks_taken, 2);
}

TEST(test_names_are_not_tried_for_ever)
{
	add_one();
	scene.names_taken = SERIES_TRIES;
	RUNS(2, 0, .out = "{pid}-{time}");
	assert_int_equal(scene.looks_taken, 1);
	assert_int_equal(said("Z_10: already exists"), 1);
}

TEST(test_interrupt_ends_wait_at_once)
{
	add_one();
	scene.interrupt_ms = START_MS + HOUR_MS + 5;
	assert_int_equal(RUN(.every_ms = HOUR_MS, .file_count = 9), 0); /* the user ended it */
	assert_int_equal(scene.clock_ms, scene.interrupt_ms);
	assert_int_equal(scene.shot_count, 2);
	assert_string_equal(scene.said[scene.said_count - 1], "interrupted: 2 files written");
}

TEST(test_interrupt_lets_file_at_hand_be_finished)
{
	for (uint32_t pid = 1; pid <= 3; pid++)
		add(pid, 77, 0, NEVER);
	scene.take_ms = 1000;
	scene.interrupt_ms = START_MS + 1500; /* during the second snapshot */
	RUNS(0, 2, .every_ms = HOUR_MS, .takes_all = true);
	assert_int_equal(scene.clock_ms - START_MS, 2000);
	assert_int_equal(scene.waits, 0);
	assert_string_equal(scene.said[scene.said_count - 1], "interrupted: 2 files written");
}

TEST(test_each_file_is_reported)
{
	add_one();
	assert_int_equal(RUN(.every_ms = 1000, .file_count = 2), 0);
	assert_int_equal(scene.said_count, 3);
	assert_string_equal(scene.said[0], "12: 112 blocks, 5000 bytes, held 7 ms");
	assert_string_equal(scene.said[1], "12: 112 blocks, 5000 bytes, held 7 ms");
	assert_string_equal(scene.said[2], "2 files written");
}

TEST(test_once_is_once)
{
	add_one();
	RUNS(0, 1);
	assert_int_equal(scene.waits, 0);
	assert_int_equal(scene.said_count, 1); /* the file's line only */
}

/* hsnap takes the first snapshot immediately, and another whenever the process has grown by the
 * limit since the last one. */
TEST(test_growth_is_what_is_watched)
{
	add_one();
	scene.processes[0].bytes = 50000;
	scene.processes[0].bytes_per_s = 300;
	RUNS(0, 5, .every_ms = 1000, .growth = 1000, .file_count = 5);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(at(i), (int64_t)i * 4000); /* 1200 snapshots */
	assert_string_equal(
		scene.said[0], "12: 112 blocks, 5000 bytes, held 7 ms, private bytes 50000");
	assert_string_equal(scene.said[1],
		"12: 112 blocks, 5000 bytes, held 7 ms, private bytes 50000 to 51200");
	assert_string_equal(scene.said[4],
		"12: 112 blocks, 5000 bytes, held 7 ms, private bytes 53600 to 54800");
}

TEST(test_growth_of_just_so_much_is_enough_and_less_is_not)
{
	static const struct {
		uint64_t bytes_per_s;
		size_t shots;
	} cases[] = {{100, 2}, {99, 1}, {0, 1}, {UINT64_MAX, 1} /* shrinks */};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		scene_begin(NULL);
		add(12, 77, 0, 10500);
		scene.processes[0].bytes = 50000;
		scene.processes[0].bytes_per_s = cases[i].bytes_per_s;
		RUNS(0, cases[i].shots, .every_ms = 1000, .growth = 1000);
	}
}

/* If the disk is full, a process that has grown must not be held every second. */
TEST(test_watching_tries_again_after_minute)
{
	add_one();
	fail_takes(0, UINT64_MAX, ERR_WRITE);
	scene.interrupt_ms = START_MS + 3600500;
	assert_int_equal(RUN(.every_ms = 1000, .growth = 1000), 2);
	assert_int_equal(scene.takes, 1 + 60);
	assert_int_equal(scene.result.failed, scene.takes);
}

/* ---------------------------------------------------------------- processes */

TEST(test_nobody_is_error_at_once)
{
	add(12, 77, 500, NEVER);
	assert_int_equal(RUN(.every_ms = 1000), -ERR_NO_PROCESS);
	assert_string_equal(scene.err.place, "app.exe");
	assert_int_equal(scene.waits, 0);
	assert_int_equal(scene.said_count, 0); /* the caller prints the error */
}

TEST(test_several_are_listed_and_none_is_touched)
{
	for (int waits = 0; waits < 2; waits++) {
		scene_begin(NULL);
		add(12, 1700000000123, 0, NEVER)->bytes = 4096;
		add(1300, 0, 0, NEVER)->bytes = KEPT_UNKNOWN_BYTES;
		assert_int_equal(RUN(.every_ms = 1000, .waits = waits), -ERR_MANY);
		assert_string_equal(scene.err.detail,
			"pid 12 started 2023-11-14T22:13:20.123Z "
			"with 4096 private bytes, pid 1300; use --all for all of them");
		assert_int_equal(scene.takes, 0);
	}
}

TEST(test_long_list_ends_with_number_of_others)
{
	unsigned shown = 0, more;

	for (uint32_t pid = 1000; pid < 1040; pid++)
		add(pid, 1700000000000 + pid, 0, NEVER);
	assert_int_equal(RUN(), -ERR_MANY);
	for (const char *one = scene.err.detail; (one = strstr(one, "pid ")); one++)
		shown++;
	assert_non_null(strstr(scene.err.detail, ", and "));
	more = (unsigned)strtoul(strstr(scene.err.detail, ", and ") + 6, NULL, 10);
	assert_true(shown > 4);
	assert_int_equal(shown + more, 40);
}

TEST(test_all_are_taken_once)
{
	for (uint32_t pid = 1; pid <= 40; pid++)
		add(pid, pid, 0, NEVER);
	RUNS(0, 40, .takes_all = true);
	for (uint32_t i = 0; i < 40; i++)
		assert_int_equal(scene.shots[i].pid, i + 1);
}

TEST(test_those_that_come_and_go_are_series_of_their_own)
{
	static const uint32_t pids[] = {1, 2, /* 10 s */ 1, 2, 3, /* 20 s */ 2, 3, /* 30 s */ 3};

	add(1, 1, 0, 15000);
	add(2, 1, 0, 25000);
	add(3, 1, 3000, 35000);
	assert_int_equal(RUN(.every_ms = 10000, .takes_all = true), 0);
	check_pids(pids, sizeof(pids) / sizeof(*pids));
	assert_int_equal(said("pid 1: the process has ended; 2 files written"), 1);
	assert_int_equal(said("pid 2: the process has ended; 3 files written"), 1);
	assert_int_equal(said("pid 3: the process has ended; 3 files written"), 1);
	/* The end of the process is noticed immediately. */
	assert_int_equal(scene.clock_ms - START_MS, 35000);
}

TEST(test_files_are_counted_for_each_series)
{
	static const uint32_t pids[] = {1, 1, 2, 1, 2, /* process 1 has its 3 files */ 2};

	add(1, 1, 0, NEVER);
	add(2, 1, 5000, NEVER);
	assert_int_equal(RUN(.every_ms = 10000, .takes_all = true, .file_count = 3), 0);
	check_pids(pids, sizeof(pids) / sizeof(*pids));
}

TEST(test_end_of_process_is_end)
{
	static const struct {
		uint64_t file_count;
		int status;
	} cases[] = {{0, 0}, {3, 2}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		scene_begin(NULL);
		add(12, 77, 0, 15000);
		RUNS(cases[i].status, 2, .every_ms = 10000, .file_count = cases[i].file_count);
		assert_int_equal(scene.clock_ms - START_MS, 15000);
		assert_int_equal(said("pid 12: the process has ended; 2 files written"), 1);
		assert_string_equal(scene.said[scene.said_count - 1], "2 files written");
	}
}

TEST(test_pid_that_is_used_again_ends_series)
{
	add(12, 77, 0, 15000);
	add(12, 15000, 15000, NEVER);
	RUNS(0, 2, .pid = 12, .every_ms = 10000);
}

TEST(test_end_in_middle_of_snapshot_is_no_failure)
{
	add_one();
	scene.take_ms = 100;
	fail_takes(1, 2, ERR_GONE);
	scene.fail_ends = 1;
	assert_int_equal(RUN(.every_ms = 10000), 0);
	assert_int_equal(scene.result.failed, 0);
	assert_int_equal(scene.shot_count, 1);
	assert_int_equal(said("has ended; 1 file written"), 1);
	assert_int_equal(scene.said_count, 3);
}

/* The process is killed during its first snapshot. Without a file the series is no success, at any
 * interval. */
TEST(test_end_before_first_file_is_reported_by_status)
{
	static const int64_t every_ms[] = {0, 10000};

	for (size_t i = 0; i < 2; i++) {
		scene_begin(NULL);
		add_one();
		scene.take_ms = 100;
		fail_takes(0, 1, ERR_GONE);
		scene.fail_ends = 1;
		RUNS(2, 0, .every_ms = every_ms[i]);
		assert_int_equal(scene.result.failed, 0);
		assert_int_equal(said("has ended; 0 files written"), 1);
	}
}

/* For example, the disk is full when the process ends. */
TEST(test_other_errors_are_reported_even_after_end)
{
	add_one();
	fail_takes(1, 2, ERR_WRITE);
	scene.fail_ends = 1;
	RUNS(2, 1, .every_ms = 10000);
	assert_int_equal(said("12: cannot write"), 1);
	assert_int_equal(said("has ended; 1 file written"), 1);
}

TEST(test_inaccessible_process_is_reported_once)
{
	add(1, 1, 0, NEVER)->refuses = ERR_RIGHTS;
	add(2, 1, 0, NEVER);
	add(3, 1, 0, NEVER)->refuses = ERR_RIGHTS;
	RUNS(2, 4, .every_ms = 10000, .takes_all = true, .file_count = 4);
	assert_int_equal(said("pid 1: no right"), 1);
	assert_int_equal(said("pid 3: no right"), 1);
	assert_int_equal(scene.result.failed, 2);
}

/* The next process with the pid is another process, and is reported too. */
TEST(test_who_lets_nobody_in_is_known_by_its_start_too)
{
	add(1, 1, 0, 15000)->refuses = ERR_RIGHTS;
	add(1, 15000, 15000, NEVER)->refuses = ERR_RIGHTS;
	add(2, 1, 0, NEVER);
	assert_int_equal(RUN(.every_ms = 10000, .takes_all = true, .file_count = 4), 2);
	assert_int_equal(said("pid 1: no right"), 2);
}

TEST(test_when_all_let_nobody_in_that_is_end)
{
	add(1, 1, 0, NEVER)->refuses = ERR_RIGHTS;
	add(2, 1, 0, NEVER)->refuses = ERR_BITS;
	assert_int_equal(RUN(.every_ms = 10000, .takes_all = true, .waits = true), 2);
	assert_int_equal(scene.result.failed, 2);
	assert_int_equal(said("pid 1: no right"), 1);
	assert_int_equal(said("pid 2: "), 1);
	assert_int_equal(scene.waits, 0);
}

TEST(test_failing_list_is_reported_and_does_not_end_series)
{
	add(1, 1, 0, NEVER);
	scene.find_fails_from_ms = START_MS + 1;
	RUNS(0, 4, .every_ms = 10000, .takes_all = true, .file_count = 4);
	assert_int_equal(scene.looks, 1 + 4);
	assert_int_equal(said("the list: the system refused"), 1);
}

TEST(test_list_that_fails_at_first_is_error)
{
	add(1, 1, 0, NEVER);
	scene.find_fails_from_ms = START_MS;
	assert_int_equal(RUN(.every_ms = 10000, .waits = true), -ERR_SYSTEM);
	assert_int_equal(scene.said_count, 0);
}

/* ---------------------------------------------------------------- waiting (--on-exit wait) */

/* The processes' private bytes change continuously, but the list of processes does not. */
TEST(test_several_are_listed_once_while_it_waits)
{
	add(12, 77, 1000, NEVER)->bytes_per_s = 4096;
	add(13, 78, 1000, NEVER)->bytes_per_s = 1;
	scene.interrupt_ms = START_MS + 60000;
	assert_int_equal(RUN(.every_ms = 1000, .waits = true), 0);
	assert_int_equal(scene.takes, 0);
	assert_true(scene.looks > 50);
	assert_int_equal(said("several processes have this name"), 1);
}

/* The new process is its own series: it begins when the process is found, and it has its own
 * count. */
TEST(test_process_is_waited_for)
{
	static const int64_t starts[] = {2000, 12000, 31000, 41000, 51000};

	add(12, 77, 1500, 15000);
	add(13, 99, 30900, NEVER);
	RUNS(0, 5, .every_ms = 10000, .file_count = 3, .waits = true);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(at(i), starts[i]);
		assert_int_equal(scene.shots[i].pid, i < 2 ? 12 : 13);
	}
	assert_int_equal(said("app.exe: waiting for a process with this name"), 2);
	/* once a second: from 0 to 2 s, and from 22 s (ten after the last snapshot) to 31 s */
	assert_int_equal(scene.looks, 3 + 10);
}

TEST(test_wait_for_nobody_ends_by_interrupt)
{
	scene.interrupt_ms = START_MS + 4321;
	assert_int_equal(RUN(.every_ms = 10000, .waits = true), 0);
	assert_int_equal(scene.clock_ms, scene.interrupt_ms);
	assert_int_equal(said("interrupted: 0 files written"), 1);
}

TEST(test_one_that_is_gone_when_it_is_opened_is_waited_for)
{
	static const enum err_code codes[] = {ERR_GONE, ERR_NO_PROCESS};

	for (size_t i = 0; i < 2; i++) {
		scene_begin(NULL);
		add(12, 77, 0, 500)->refuses = codes[i];
		add(13, 99, 1500, NEVER);
		RUNS(0, 1, .every_ms = 10000, .file_count = 1, .waits = true);
		assert_int_equal(at(0), 2000);
	}
}

/* A process dies immediately and is restarted when hsnap searches for it. It gives no more files
 * than a process that lives: one per interval, or one per ten minutes if growth is watched. */
TEST(test_crash_loop_is_taken_no_more_often_than_one_that_lives)
{
	static const struct {
		int64_t every_ms;
		uint64_t growth;
		size_t least, most; /* files in ten hours; a second passes before each search */
	} cases[] = {{10000, 0, 3272, 3600}, {60000, 0, 590, 600}, {30 * MINUTE_MS, 0, 20, 20},
		{1000, 1 << 20, 59, 60}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		scene_begin(NULL);
		scene.take_ms = 10;
		scene.restarts = add(12, 77, 0, 50);
		scene.interrupt_ms = START_MS + 10 * HOUR_MS;
		assert_int_equal(RUN(.every_ms = cases[i].every_ms, .growth = cases[i].growth,
					 .waits = true),
			0);
		assert_in_range(scene.shot_count, cases[i].least, cases[i].most);
		for (size_t shot = 1; shot < scene.shot_count; shot++)
			assert_true(scene.shots[shot].start_ms != scene.shots[shot - 1].start_ms);
	}
}

/* If a watched process restarts and the last snapshot was long ago, hsnap captures the new process
 * immediately. */
TEST(test_restart_is_taken_soon)
{
	add(12, 77, 0, 900000);
	add(13, 99, 900000, NEVER);
	scene.interrupt_ms = START_MS + 1000000;
	RUNS(0, 2, .every_ms = 1000, .growth = 1 << 20, .waits = true);
	assert_int_equal(at(1), 900000);
}

TEST(test_pid_that_is_used_again_is_another_series)
{
	for (int is_all = 0; is_all < 2; is_all++) {
		scene_begin(NULL);
		add(12, 77, 0, 15000);
		add(12, 15000, 15000, NEVER);
		RUNS(0, 5, .every_ms = 10000, .file_count = 3, .takes_all = is_all, .waits = true);
		for (size_t i = 0; i < 5; i++)
			assert_int_equal(scene.shots[i].start_ms, i < 2 ? 77 : 15000);
		assert_int_equal(at(2), 20000); /* ten seconds after the last snapshot */
	}
}

TEST(test_once_with_wait_is_until_there_is_file)
{
	add_one();
	add(13, 99, 5500, NEVER);
	scene.take_ms = 100;
	fail_takes(0, 1, ERR_GONE);
	scene.fail_ends = 1;
	RUNS(0, 1, .waits = true);
	assert_int_equal(scene.shots[0].pid, 13);
	assert_in_range(at(0), 5500, 6500);
}

TEST(test_once_with_wait_fails_once)
{
	add_one();
	fail_takes(0, UINT64_MAX, ERR_WRITE);
	assert_int_equal(RUN(.waits = true), 2);
	assert_int_equal(scene.takes, 1);
	assert_int_equal(scene.waits, 0);
}
