/* Series of snapshots of running processes: the loop, its messages and its log. Also hsnap watch,
 * which takes a snapshot whenever a process has grown. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stdatomic.h>

#include "core/base/os.h"
#include "core/io/interrupt.h"
#include "snapshot/capture/snapshot_file.h"
#include "snapshot/command/command.h"
#include "snapshot/live/process_ref.h"
#include "snapshot/series/series.h"

struct series_run {
	const struct series_request *request;
	struct snapshot_request take;
	struct series_log log;
};

static void print_line(void *ctx, const char *line)
{
	struct series_run *series = ctx;
	struct err err;

	fprintf(stderr, "hsnap: %s\n", line);
	fflush(stderr);
	if (series_log_add(&series->log, os_time_ms(), line, &err))
		command_fail(&err);
}

static int fail(struct series_run *series, const struct err *err)
{
	char text[1600];

	print_line(series, err_text(err, text, sizeof(text)));
	return 2;
}

/* Path of the log. It is needed if hsnap is ended from outside, because the console is closed or
 * the user interrupts a second time. */
static struct interrupt_cleanup ending;

static void on_end(void)
{
	struct series_log log = {.path = interrupt_cleanup_get(&ending)};

	series_log_add(&log, os_time_ms(), "ended from outside: the current file is dropped", NULL);
	interrupt_cleanup_done(&ending);
}

static atomic_bool is_taking;

/* Reports that ending takes some time. Otherwise the user would press Ctrl-C again. */
static void on_held(void)
{
	if (is_taking)
		fprintf(stderr, "hsnap: interrupted: the current file is finished first; another "
				"Ctrl-C drops it\n");
}

static int capture_file(void *ctx, const struct process_ref *process, const char *path,
	const struct out_names *names, struct series_taken *out, struct err *err)
{
	struct series_run *series = ctx;
	struct snapshot_request how = series->take;
	struct snapshot_result taken = {0};
	struct target target;
	int rc;

	if (series_is_log(series->request, path))
		return err_set(err, ERR_USAGE, path, SERIES_IS_LOG);
	rc = process_ref_target(process, &target, err);
	if (rc)
		return rc;
	how.names = names;
	is_taking = true;
	rc = snapshot_capture(&how, &target, path, &taken, err);
	is_taking = false;
	target.ops->close(&target);
	if (rc && rc != -ERR_INCOMPLETE)
		return rc;
	if (rc)
		fail(series, err);
	*out = (struct series_taken){
		taken.block_count, taken.requested_bytes, taken.held_ms, rc != 0};
	return 0;
}

/* Runs the plan. Returns the exit status, or -ERR_* from series_run(). After an interrupt, a single
 * snapshot ends immediately; a longer series first completes its file. */
static int run(struct series_run *series, const struct series_plan *plan, struct err *err)
{
	const struct series_calls calls = {os_clock_ms, os_time_ms, os_wait, os_was_interrupted,
		capture_file, print_line, series};
	struct series_result result = {0};
	int rc;

	interrupt_cleanup_set(&ending, (void *)(uintptr_t)series->log.path);
	snapshot_guard_interrupts();
	os_on_end(on_end);
	os_on_held(on_held);
	os_hold_interrupt(plan->every_ms || plan->waits || plan->takes_all);
	rc = series_run(plan, &calls, &result, err);
	interrupt_cleanup_clear(&ending);
	return rc ? rc : series_exit_status(&result);
}

int series_main(const struct series_request *request)
{
	struct series_run series = {.request = request, .take = request->take};
	struct series_plan plan = {.name = request->process.name,
		.out = request->out,
		.is_packed = request->take.is_packed,
		.limits = request->limits,
		.every_ms = request->every_ms,
		.growth = request->growth,
		.growth_figure = request->growth_figure,
		.file_count = request->file_count,
		.takes_all = request->takes_all,
		.waits = request->waits};
	struct err err = {0};
	unsigned words = 0;
	int rc = series_check(request, &words, &err);

	if (!rc && request->process.pid)
		rc = process_pid_parse(request->process.pid, &plan.pid, &err);
	if (!rc)
		rc = series_log_start(&series.log, request->log, &err);
	if (rc)
		return command_fail(&err);
	series.take.is_new = words & (PATTERN_TIME | PATTERN_NUMBER);
	series.take.warn = print_line;
	series.take.warn_ctx = &series;
	rc = series_files_check(&plan, &err);
	if (!rc)
		rc = run(&series, &plan, &err);
	return rc < 0 ? fail(&series, &err) : rc;
}

/* ---------------------------------------------------------------- hsnap watch */

#define POLL_MS 1000 /* default of --poll */
#define OUT "{name}-{pid}-{time}.txt" /* default of -f */

enum {
	OPT_OUT = 1,
	OPT_GROWTH,
	OPT_POLL,
};

static const struct opt options[] = {
	PROCESS_OPTIONS("watch"),
	{OPT_GROWTH, NULL, "growth", "SIZE",
		"take a snapshot each time it grew by SIZE (50M, 1G), or "
		"handles:1000"},
	{OPT_OUT, "f", "output", "OUT", "name the files OUT (default: " OUT ")"},
	{OPT_POLL, NULL, "poll", "T", "check every T (default: 1s)"},
	SERIES_OPTIONS,
	READ_OPTIONS,
	DUMP_OPTIONS,
	HELP_OPTION,
	{0},
};

static const char usage[] =
	"usage: hsnap watch -p PID | -pn NAME --growth SIZE [-f OUT] [--poll T] [--count N]\n"
	"                   [--keep N] [--max-bytes SIZE] [--on-exit stop | wait] [--all]\n"
	"                   [--log FILE] [--stacks SOURCE] [--walk] [-g]\n"
	"                   [--interior yes|no] [--sample-content N] [--by-stack]\n"
	"                   [--gzip] [--overwrite] [--force] [-v]\n"
	"\n"
	"Take a snapshot of a process, and another each time its private bytes have grown\n"
	"by SIZE, or its threads, handles, GDI or USER objects by a number: threads:10.\n";

static int set_option(void *ctx, int id, const char *value, struct err *err)
{
	struct series_request *request = ctx;

	switch (id) {
	case OPT_OUT: request->out = value; return 0;
	case OPT_GROWTH:
		return series_growth_parse(value, &request->growth_figure, &request->growth, err);
	case OPT_POLL: return series_span_parse("--poll", value, &request->every_ms, err);
	case OPT_ARGUMENT: return err_set(err, ERR_USAGE, value, "watch takes options only");
	default: return series_option(request, id, value, err);
	}
}

int command_watch(int argc, char **argv)
{
	static const struct command_form form = {usage, options, .set = set_option};
	struct series_request request = SERIES_REQUEST_INIT;
	struct err err = {0};
	int rc;

	request.out = OUT;
	request.every_ms = POLL_MS;
	request.given = "watch";
	rc = command_read(&form, argc, argv, &request, &err);
	if (!rc)
		rc = process_choice_check(&request.process, "watch", &err);
	if (!rc && !request.growth)
		rc = err_set(&err, ERR_USAGE, "watch", "give the growth: --growth SIZE");
	if (rc)
		return rc < 0 ? command_fail(&err) : 0;
	return series_main(&request);
}
