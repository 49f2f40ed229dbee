/* hsnap watch: a snapshot each time a process has grown. */
#include <stdio.h>

#include "snapshot/command/series_options.h"

#define POLL_MS 1000 /* without --poll */
#define PATTERN "{name}-{pid}-{time}.txt" /* without -f */

enum {
	OPT_PID = 1,
	OPT_NAME,
	OPT_OUT,
	OPT_GROWTH,
	OPT_POLL,
	OPT_BY_STACK,
	OPT_GZIP,
	OPT_STACKS,
	OPT_VERBOSE,
	OPT_HELP,
};

static const struct opt options[] = {
	{OPT_PID, "p", "pid", "PID", "watch this process"},
	{OPT_NAME, "pn", "name", "NAME", "watch the process with this image name"},
	{OPT_GROWTH, NULL, "growth", "SIZE",
		"take a snapshot when SIZE was added since the last one (50M, 1G)"},
	{OPT_OUT, "f", "output", "PATTERN", "write them to files of such names; else " PATTERN},
	{OPT_POLL, NULL, "poll", "T", "look how large it is each time T has passed; else 1s"},
	SERIES_OPTIONS,
	{OPT_BY_STACK, NULL, "by-stack", NULL,
		"one line for each stack and heap, not for each block"},
	{OPT_GZIP, NULL, "gzip", NULL, "pack the files; their names end in .gz"},
	{OPT_STACKS, NULL, "stacks", "SOURCE", "where stacks come from: auto ust os tracer"},
	{OPT_VERBOSE, "v", "verbose", NULL, "say on standard error what was found"},
	{OPT_HELP, "h", "help", NULL, "print this help"},
	{0},
};

void command_watch_help(FILE *to)
{
	fprintf(to, "usage: hsnap watch -p PID | -pn NAME --growth SIZE [-f PATTERN] [--poll T]\n"
		    "                   [--count N] [--keep N] [--max-bytes SIZE] [--by-stack] "
		    "[--gzip]\n"
		    "                   [--on-exit stop | wait] [--all] [--log FILE] ...\n"
		    "\n"
		    "Takes a snapshot of a process, and then one each time its private bytes have\n"
		    "grown by SIZE since the last one.\n"
		    "\n");
	opt_help(options, to);
}

struct request {
	struct series_request series;
	unsigned process_count; /* how often one was named */
};

/* Takes one option: 0, or an error. */
static int set_option(struct request *request, int id, const char *value, struct err *err)
{
	struct series_request *series = &request->series;

	request->process_count += id == OPT_PID || id == OPT_NAME;
	switch (id) {
	case OPT_PID: series->pid = value; return 0;
	case OPT_NAME: series->name = value; return 0;
	case OPT_OUT: series->out = value; return 0;
	case OPT_GROWTH: return series_growth_parse(value, &series->growth_bytes, err);
	case OPT_POLL: return series_span_parse("--poll", value, &series->every_ms, err);
	case OPT_BY_STACK: series->take.by_stack = true; return 0;
	case OPT_GZIP: series->take.is_packed = true; return 0;
	case OPT_STACKS: return capture_stacks_parse(value, &series->take.options.stacks, err);
	case OPT_VERBOSE: series->take.is_verbose = true; return 0;
	case OPT_ARGUMENT: return err_set(err, ERR_USAGE, value, "watch takes options only");
	default: return series_option(series, id, value, err);
	}
}

static int check(const struct request *request, struct err *err)
{
	if (request->process_count != 1)
		return err_set(err, ERR_USAGE, "watch",
			request->process_count ? "give one of -p and -pn, once" :
						 "say which process: -p PID or -pn NAME");
	if (!request->series.growth_bytes)
		return err_set(err, ERR_USAGE, "watch", "say how much is growth: --growth SIZE");
	return 0;
}

int command_watch(int argc, char **argv)
{
	struct request request = {.series = SERIES_REQUEST_INIT};
	struct opt_state state;
	struct err err = {0};
	int id, rc = 0;

	request.series.out = PATTERN;
	request.series.every_ms = POLL_MS;
	request.series.given = "watch";
	opt_init(&state, options, argc, argv);
	while (!rc && (id = opt_next(&state, &err))) {
		if (id == OPT_HELP) {
			command_watch_help(stdout);
			return 0;
		}
		rc = set_option(&request, id, state.value, &err);
	}
	if (!rc)
		rc = check(&request, &err);
	return rc ? command_fail(&err) : series_main(&request.series);
}
