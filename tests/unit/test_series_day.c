/* A day of --every 10s: 8,640 snapshots on a simulated clock, with small dumps written normally and
 * a log. No snapshot is late. Names follow the wall clock, which is changed during the day. The
 * newest dumps are kept. Memory, files and log do not grow. */
#include "tests/unit/t.h"

#include <time.h>
#include <unistd.h>

#include "core/base/parse.h"
#include "core/dump/dump.h"
#include "core/io/file.h"
#include "snapshot/live/process_ref.h"
#include "snapshot/series/series.h"
#include "tests/unit/scratch.h"

#define SNAPSHOTS 8640
#define EVERY_MS 10000
#define KEPT 2
#define START_MS INT64_C(5000123)
#define NIGHT_MS                                                                                   \
	INT64_C(1792886400000) /* 2026-10-25T00:00:00Z; in Berlin 02:00 to 03:00 occurs twice */

size_t __sanitizer_get_current_allocated_bytes(void); /* declared by libasan */
const char *__asan_default_options(void);

/* The default quarantine of freed memory would double the run time. */
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=1";
}

static int64_t clock_ms;
static uint64_t taken_count;
static char newest[KEPT + 1][60]; /* newest first */
static size_t settled_bytes;
static struct series_log day_log;

/* ---------------------------------------------------------------- environment */

static int64_t day_clock(void)
{
	return clock_ms;
}

/* The clock is set back twenty seconds at six and an hour at noon, and is set forward two hours at
 * eighteen. */
static int64_t day_time(void)
{
	int64_t since = clock_ms - START_MS, hour = 3600000;

	return NIGHT_MS + since - (since >= 6 * hour ? 20000 : 0) -
	       (since >= 12 * hour ? hour : 0) + (since >= 18 * hour ? 2 * hour : 0);
}

static void day_wait(int64_t until_ms, const intptr_t *handles, size_t count)
{
	(void)handles;
	assert_int_equal(count, 1);
	assert_true(until_ms > clock_ms);
	clock_ms = until_ms;
}

static bool day_is_over(void)
{
	return taken_count == SNAPSHOTS;
}

int process_ref_find_pid(uint32_t pid, struct process_seen **seen, size_t *count, struct err *err)
{
	(void)err;
	*seen = xcalloc(1, sizeof(**seen));
	**seen = (struct process_seen){pid, NIGHT_MS, KEPT_UNKNOWN_BYTES};
	*count = 1;
	return 0;
}

int process_ref_find(const char *name, struct process_seen **seen, size_t *count, struct err *err)
{
	(void)name;
	return process_ref_find_pid(0, seen, count, err);
}

int process_ref_open(struct process_ref *ref, uint32_t pid, int64_t start_ms, struct err *err)
{
	(void)err;
	*ref = (struct process_ref){.pid = pid, .start_ms = start_ms, .image = "C:\\app.exe"};
	return 0;
}

void process_ref_close(struct process_ref *ref)
{
	(void)ref;
}

bool process_ref_has_ended(const struct process_ref *ref)
{
	(void)ref;
	return false;
}

int process_ref_figure(
	const struct process_ref *ref, enum balance_figure figure, uint64_t *value, struct err *err)
{
	(void)ref;
	(void)figure;
	(void)value;
	return err_set(err, ERR_SYSTEM, "nobody asks", NULL);
}

/* ---------------------------------------------------------------- checks of each snapshot */

/* Computes the name for this second, or the first unused name after it. */
static void name_now(char name[60])
{
	time_t seconds = (time_t)(day_time() / 1000);
	char second[32];
	struct tm tm;

	strftime(second, sizeof(second), "%Y%m%dT%H%M%SZ", gmtime_r(&seconds, &tm));
	snprintf(name, 60, "app-12-%s.txt", second);
	for (size_t i = 0; i < KEPT; i++) {
		if (!strcmp(newest[i], name))
			snprintf(name, 60, "app-12-%s_2.txt", second);
	}
}

static void check_folder(void)
{
	struct folder_list list;
	size_t logs = 0;

	assert_int_equal(folder_list_read(dir, &list, NULL), 0);
	for (size_t i = 0; i < list.count; i++) {
		const struct folder_entry *entry = &list.entries[i];
		size_t at = 0;

		if (!strncmp(entry->name, "log", 3)) {
			assert_true(entry->size_bytes <= SERIES_LOG_BYTES);
			logs++;
			continue;
		}
		while (at < KEPT && strcmp(entry->name, newest[at]) != 0)
			at++;
		assert_true(at < KEPT);
	}
	assert_int_equal(list.count, (taken_count < KEPT ? taken_count : KEPT) + logs);
	assert_in_range(logs, 0, 2);
	folder_list_release(&list);
}

static void check_memory(void)
{
	size_t bytes = __sanitizer_get_current_allocated_bytes();

	if (taken_count == 2 * KEPT)
		settled_bytes = bytes;
	if (taken_count > 2 * KEPT) /* a name may be two bytes longer */
		assert_in_range(bytes, 0, settled_bytes + 2 * (KEPT + 1));
}

/* Writes a dump's head without struct snapshot, which the sanitizers make slow. */
static void write_head(struct out *out)
{
	char start[DATE_TEXT_BYTES], now[DATE_TEXT_BYTES];

	out_printf(out,
		"// hsnap: dump format=1 tool=0.1.0 time=%s\r\n// hsnap: process id=12 start=%s "
		"bits=64\r\n",
		date_text(day_time(), now), date_text(NIGHT_MS, start));
}

static void write_dump(struct out *out)
{
	struct snapshot snapshot;

	snapshot_init(&snapshot);
	snapshot.pid = 12;
	snapshot.bits = 64;
	snapshot.start_ms = NIGHT_MS;
	snapshot.time_ms = day_time();
	snapshot_copy_module(&snapshot,
		&(struct module){
			.base = 0x140000000, .size_bytes = 0x10000, .path = "C:\\app.exe"});
	*snapshot_add_heap(&snapshot) = (struct heap){.addr = 0x340000,
		.kind = "nt",
		.bits = 64,
		.stackless = {taken_count + 1, 16 * (taken_count + 1), 0}};
	dump_write(out, &snapshot);
	snapshot_release(&snapshot);
}

static int day_take(void *ctx, const struct process_ref *process, const char *path,
	const struct out_names *names, struct series_taken *taken, struct err *err)
{
	char name[60];
	struct out out;
	int rc;

	(void)ctx;
	(void)process;
	assert_int_equal(clock_ms - START_MS, (int64_t)taken_count * EVERY_MS);
	check_memory();
	if (taken_count % 100 == 0)
		check_folder();
	name_now(name);
	rc = out_open_as(&out, path, OUT_NEW, err);
	while (rc == -ERR_EXISTS && !names->next(names->ctx, &path, err))
		rc = out_open_as(&out, path, OUT_NEW, err);
	assert_int_equal(rc, 0);
	(taken_count % 16 ? write_head : write_dump)(&out);
	assert_int_equal(out_commit_as(&out, names, err), 0);
	assert_string_equal(path + strlen(dir) + 1, name);
	memmove(newest[1], newest[0], KEPT * sizeof(*newest));
	memcpy(newest[0], name, sizeof(name));
	*taken = (struct series_taken){.block_count = ++taken_count};
	clock_ms += (int64_t)(taken_count * 7919 % EVERY_MS); /* duration of the snapshot */
	return 0;
}

static void day_print(void *ctx, const char *line)
{
	(void)ctx;
	assert_true(strstr(line, ".txt: ") || strstr(line, "8640 files written"));
	assert_int_equal(series_log_add(&day_log, day_time(), line, NULL), 0);
}

/* ---------------------------------------------------------------- the day */

TEST(test_day_of_snapshots_is_on_time_and_leaves_nothing_behind)
{
	const struct series_calls calls = {
		day_clock, day_time, day_wait, day_is_over, day_take, day_print, NULL};
	struct series_plan plan = {.pid = 12,
		.every_ms = EVERY_MS,
		.limits = {.keep_count = KEPT, .keep_bytes = UINT64_MAX}};
	struct series_result result;
	char out[350], log[350];
	int file = dup(0);

	setenv("TZ", "Europe/Berlin", 1); /* proves that names are in UTC */
	tzset();
	close(file);
	snprintf(out, sizeof(out), "%s/{name}-{pid}-{time}.txt", dir);
	snprintf(log, sizeof(log), "%s/log", dir);
	plan.out = out;
	clock_ms = START_MS;
	assert_int_equal(series_log_start(&day_log, log, NULL), 0);
	assert_int_equal(series_run(&plan, &calls, &result, NULL), 0);
	assert_int_equal(result.written, SNAPSHOTS);
	assert_int_equal(result.failed, 0);
	check_folder();
	assert_int_equal(dup(0), file);
	close(file);
}

GROUP(scratch_begin, scratch_end)
