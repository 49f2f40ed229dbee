#include <stdio.h>

#include "core/opt.h"
#include "core/out.h"
#include "snapshot/command/command.h"
#include "snapshot/command/table_options.h"
#include "snapshot/series/file_pattern.h"
#include "snapshot/control/run_windows.h"

enum {
	OPT_AT_EXIT = 1,
	OPT_CHILDREN,
	OPT_KEEP_BSTR_CACHE,
	OPT_MAX_MB,
	OPT_SAMPLE,
	OPT_VERBOSE,
	OPT_HELP,
};

static const struct opt options[] = {
	{OPT_AT_EXIT, NULL, "at-exit", "OUT", "write a snapshot to OUT when PROG ends"},
	{OPT_CHILDREN, NULL, "children", NULL, "trace the processes that it starts, too"},
	{OPT_KEEP_BSTR_CACHE, NULL, "keep-bstr-cache", NULL,
		"do not set OANOCACHE=1 for PROG: COM keeps freed strings"},
	{OPT_MAX_MB, NULL, "max-mb", "N", "memory that the tracer's tables may take, in MiB"},
	{OPT_SAMPLE, NULL, "sample", "BYTES", "record one block in about so many bytes (512K, 1M)"},
	{OPT_VERBOSE, "v", "verbose", NULL, "say on standard error what was found"},
	{OPT_HELP, "h", "help", NULL, "print this help"},
	{0},
};

void command_run_help(FILE *to)
{
	fprintf(to, "usage: hsnap run [-v] [--at-exit OUT] [--children] [--keep-bstr-cache]\n"
		    "                 [--max-mb N] [--sample BYTES] [--] PROG [ARG ...]\n"
		    "\n"
		    "Starts PROG with the tracer in it and ends with its exit status.\n"
		    "In OUT {name} and {pid} stand for PROG's image and process, {{ for a brace.\n"
		    "\n");
	opt_help(options, to);
}

/* Whether files can be written: better known before the program runs than after. */
static int check_output(const struct run *request, struct err *err)
{
	const struct file_names names = {.program = request->argv[0], .pid = (uint32_t)os_pid()};
	unsigned words = 0;
	struct buf path;
	struct out out;
	int rc = file_pattern_check(request->at_exit, &words, err);

	if (!rc && words & (PATTERN_TIME | PATTERN_NUMBER))
		rc = err_set(err, ERR_USAGE, request->at_exit,
			"a process ends once: it knows {name}, {pid}, and {{ for a brace");
	if (!rc && request->with_children && !(words & PATTERN_PID))
		rc = err_set(err, ERR_USAGE, request->at_exit,
			"with --children each process needs a file of its own: put {pid} into it");
	if (rc)
		return rc;
	buf_init(&path);
	if (file_pattern_add(&path, request->at_exit, &names))
		rc = err_set(err, ERR_NOMEM, request->at_exit, NULL);
	else if (!(rc = out_open(&out, path.data, err)))
		out_abort(&out);
	buf_release(&path);
	return rc;
}

static struct take at_exit;

static int snapshot_at_exit(struct target *target, const char *path, struct err *err)
{
	return take(&at_exit, target, path, NULL, err);
}

/* Takes one option: 0, or an error. */
static int set_option(struct run *request, int id, const struct opt_state *state, struct err *err)
{
	switch (id) {
	case OPT_AT_EXIT: request->at_exit = state->value; return 0;
	case OPT_CHILDREN: request->with_children = true; return 0;
	case OPT_KEEP_BSTR_CACHE: request->keep_bstr_cache = true; return 0;
	case OPT_MAX_MB: return table_limit_parse(state->value, &request->limit_bytes, err);
	case OPT_SAMPLE: return table_sample_parse(state->value, &request->sample_bytes, err);
	case OPT_VERBOSE: at_exit.is_verbose = true; return 0;
	default: return id;
	}
}

static int start(const struct run *request)
{
	uint32_t exit_status = 0;
	struct err err = {0};

	if (run(request, &exit_status, &err)) {
		command_fail(&err);
		/* A program that ran has a status of its own; one that failed keeps it. */
		return exit_status ? (int)exit_status : 2;
	}
	return (int)exit_status;
}

int command_run(int argc, char **argv)
{
	struct opt_state state;
	struct run request = {.limit_bytes = TABLES_DEFAULT_BYTES, .snapshot = snapshot_at_exit};
	struct err err = {0};
	int id, rc = 0;

	opt_init(&state, options, argc, argv);
	state.stop_at_argument = true;
	while (!rc && (id = opt_next(&state, &err)) && id != OPT_ARGUMENT) {
		if (id == OPT_HELP) {
			command_run_help(stdout);
			return 0;
		}
		rc = set_option(&request, id, &state, &err);
	}
	if (!rc && !id)
		rc = err_set(&err, ERR_USAGE, "run", "it needs a program to start");
	if (!rc) {
		request.argv = (const char *const *)argv + state.at - 1;
		rc = request.at_exit ? check_output(&request, &err) : 0;
	}
	return rc ? command_fail(&err) : start(&request);
}
