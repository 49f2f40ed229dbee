/* hsnap run: starts a program with the tracer loaded, and takes a snapshot at its exit. */
#include <stdio.h>
#include <string.h>

#include "core/io/out.h"
#include "snapshot/capture/snapshot_file.h"
#include "snapshot/command/command.h"
#include "snapshot/control/control.h"

enum {
	OPT_AT_EXIT = 1,
	OPT_CHILDREN,
	OPT_HANDLES,
	OPT_KEEP_BSTR_CACHE,
	OPT_MAX_MB,
	OPT_SAMPLE,
	OPT_TIME_LIMIT,
};

static const struct opt options[] = {
	{OPT_AT_EXIT, NULL, "at-exit", "OUT", "write a snapshot to OUT when PROG ends"},
	{OPT_CHILDREN, NULL, "children", NULL, "also trace the processes that PROG starts"},
	{OPT_HANDLES, NULL, "handles", NULL, "also record who opened each handle"},
	{OPT_KEEP_BSTR_CACHE, NULL, "keep-bstr-cache", NULL,
		"do not set OANOCACHE=1, which stops COM from reusing strings"},
	{OPT_MAX_MB, NULL, "max-mb", "N", "limit the tracer's tables to N MiB"},
	{OPT_SAMPLE, NULL, "sample", "SIZE", "record about one block per SIZE bytes (512K, 1M)"},
	{OPT_TIME_LIMIT, NULL, "time-limit", "T",
		"end PROG after T (30s, 10m, 1h30m), with status 124"},
	LOST_OPTIONS,
	DUMP_OPTIONS,
	HELP_OPTION,
	{OPT_AT_EXIT, "f", "output", "OUT", NULL}, /* the name used by hsnap snapshot */
	{0},
};

static const char usage[] =
	"usage: hsnap run [--at-exit OUT] [--children] [--handles] [--keep-bstr-cache]\n"
	"                 [--max-mb N] [--sample SIZE] [--time-limit T] [-g]\n"
	"                 [--interior yes|no] [--sample-content N] [--by-stack] [--gzip]\n"
	"                 [--overwrite] [--force] [-v] [--] PROG [ARG ...]\n"
	"\n"
	"Start PROG with the tracer loaded, and exit with its status.\n"
	"In OUT {name} and {pid} stand for PROG's image and process, {{ for a brace.\n";

struct run_request {
	struct program_run run;
	int word_count; /* number of words in the command: program and arguments */
	const char *at_exit; /* file for the snapshot at exit, or NULL */
	struct snapshot_request take;
};

static int check_form(struct run_request *request, struct err *err)
{
	struct snapshot_request *take = &request->take;
	unsigned words = 0;
	int rc;

	if (!request->at_exit) {
		if (!take->by_stack && !take->is_packed && !take->is_forced &&
			!take->options.finds_lost && !take->options.content_count)
			return 0;
		return err_set(err, ERR_USAGE,
			take->is_packed		    ? "--gzip" :
			take->by_stack		    ? "--by-stack" :
			take->options.finds_lost    ? "-g" :
			take->options.content_count ? "--sample-content" :
						      "--force",
			"applies to a snapshot: give --at-exit OUT");
	}
	if (take->options.finds_lost && request->run.sample_bytes)
		return err_set(
			err, ERR_USAGE, "-g", "not with --sample, which records only some blocks");
	rc = dump_check_out(take, request->at_exit, "--at-exit OUT", err);
	if (!rc)
		rc = file_pattern_check(request->at_exit, &words, err);
	if (!rc && words & (PATTERN_TIME | PATTERN_NUMBER))
		rc = err_set(err, ERR_USAGE, request->at_exit,
			"{time} and {n} are only for a series; a process ends only once");
	take->makes_folders = words != 0;
	if (!rc && request->run.with_children && !(words & PATTERN_PID))
		rc = err_set(err, ERR_USAGE, request->at_exit,
			"with --children each process needs a file of its own: put {pid} into its "
			"name");
	return rc;
}

static void name_file(
	const struct run_request *request, const char *program, uint32_t pid, struct buf *path)
{
	const struct file_names names = {.program = program, .pid = pid};

	dump_name_add(path, request->at_exit, &names, request->take.is_packed);
}

/* Before the program runs, checks that the files can be written. Only checks files whose folder
 * does not depend on the process. */
static int check_output(const struct run_request *request, struct err *err)
{
	const char *last = file_pattern_last(request->at_exit);
	struct buf path;
	struct out out;
	int rc;

	if (memchr(request->at_exit, '{', (size_t)(last - request->at_exit)))
		return 0;
	buf_init(&path);
	name_file(request, request->run.argv[0], (uint32_t)os_pid(), &path);
	if (request->take.makes_folders)
		out_make_folders(path.data);
	rc = out_open_as(&out, path.data, snapshot_out_flags(path.data, NULL), err);
	if (!rc)
		out_abort(&out);
	/* The pid in this name is hsnap's, not the program's. */
	else if (request->take.makes_folders)
		snprintf(err->place, sizeof(err->place), "%s", request->at_exit);
	buf_release(&path);
	return rc;
}

static int snapshot_at_exit(void *ctx, struct target *target, struct err *err)
{
	const struct run_request *request = ctx;
	struct buf path;
	int rc;

	buf_init(&path);
	name_file(request, target->image, target->pid, &path);
	rc = snapshot_capture(&request->take, target, path.data, NULL, err);
	buf_release(&path);
	return rc;
}

static int set_option(void *ctx, int id, const char *value, struct err *err)
{
	struct run_request *request = ctx;
	struct program_run *run = &request->run;

	switch (id) {
	case OPT_ARGUMENT: request->word_count++; return 0;
	case OPT_AT_EXIT: request->at_exit = value; return 0;
	case OPT_CHILDREN: run->with_children = true; return 0;
	case OPT_HANDLES: run->with_handles = true; return 0;
	case OPT_KEEP_BSTR_CACHE: run->keep_bstr_cache = true; return 0;
	case OPT_MAX_MB: return table_limit_parse(value, &run->limit_bytes, err);
	case OPT_SAMPLE: return table_sample_parse(value, &run->sample_bytes, err);
	case OPT_TIME_LIMIT: return series_span_parse("--time-limit", value, &run->limit_ms, err);
	default: return dump_option(&request->take, id, value, err);
	}
}

static int start(struct run_request *request)
{
	uint32_t exit_status = 0;
	struct err err = {0};

	if (request->at_exit) {
		request->run.snapshot = snapshot_at_exit;
		request->run.ctx = request;
	}
	if (run_program(&request->run, &exit_status, &err)) {
		command_fail(&err);
		/* If the program itself failed, return its exit status. */
		return exit_status ? (int)exit_status : 2;
	}
	return (int)exit_status;
}

int command_run(int argc, char **argv)
{
	static const struct command_form form = {
		usage, options, .stops_at_argument = true, .set = set_option};
	struct run_request request = {.run.limit_bytes = TABLES_DEFAULT_BYTES};
	struct err err = {0};
	int rc = command_read(&form, argc, argv, &request, &err);

	if (!rc && !request.word_count)
		rc = err_set(&err, ERR_USAGE, "run", "needs a program to start");
	request.run.argv = (const char *const *)argv + argc - request.word_count;
	if (!rc)
		rc = check_form(&request, &err);
	if (!rc && request.at_exit)
		rc = check_output(&request, &err);
	if (rc)
		return rc < 0 ? command_fail(&err) : 0;
	return start(&request);
}
