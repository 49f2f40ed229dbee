#include <stdio.h>

#include "core/opt.h"
#include "core/out.h"
#include "snapshot/command/command.h"
#include "snapshot/live/process.h"

enum {
	OPT_AT_EXIT = 1,
	OPT_VERBOSE,
	OPT_HELP,
};

static const struct opt options[] = {
	{OPT_AT_EXIT, NULL, "at-exit", "OUT", "write a snapshot to OUT when PROG ends"},
	{OPT_VERBOSE, "v", "verbose", NULL, "say on standard error what was found"},
	{OPT_HELP, "h", "help", NULL, "print this help"},
	{0},
};

void command_run_help(FILE *to)
{
	fprintf(to, "usage: hsnap run [-v] [--at-exit OUT] [--] PROG [ARG ...]\n"
		    "\n"
		    "Starts PROG with the tracer in it and ends with its exit status.\n"
		    "\n");
	opt_help(options, to);
}

/* Whether a file can be written to path: better known before the program runs than after. */
static int check_output(const char *path, struct err *err)
{
	struct out out;
	int rc = out_open(&out, path, err);

	if (!rc)
		out_abort(&out);
	return rc;
}

static struct take at_exit;

static int snapshot_at_exit(struct target *target, const char *path, struct err *err)
{
	return take(&at_exit, target, path, err);
}

int command_run(int argc, char **argv)
{
	struct opt_state state;
	struct run request = {.snapshot = snapshot_at_exit};
	struct err err = {0};
	uint32_t exit_status = 2;
	int id;

	opt_init(&state, options, argc, argv);
	state.stop_at_argument = true;
	while ((id = opt_next(&state, &err)) && id != OPT_ARGUMENT) {
		if (id < 0)
			return command_fail(&err);
		if (id == OPT_HELP) {
			command_run_help(stdout);
			return 0;
		}
		if (id == OPT_VERBOSE)
			at_exit.is_verbose = true;
		else
			request.at_exit = state.value;
	}
	if (!id) {
		err_set(&err, ERR_USAGE, "run", "it needs a program to start");
		return command_fail(&err);
	}
	if (request.at_exit && check_output(request.at_exit, &err))
		return command_fail(&err);
	request.argv = argv + state.at - 1;
	if (run(&request, &exit_status, &err)) {
		command_fail(&err);
		/* A program that ran has a status of its own; one that failed keeps it. */
		return exit_status ? (int)exit_status : 2;
	}
	return (int)exit_status;
}
