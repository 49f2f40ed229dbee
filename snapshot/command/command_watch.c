/* hsnap watch: a snapshot each time a process has grown. */
#include <stdio.h>

#include "snapshot/command/series_options.h"

#define POLL_MS 1000 /* without --poll */
#define OUT "{name}-{pid}-{time}.txt" /* without -f */

enum {
	OPT_OUT = 1,
	OPT_GROWTH,
	OPT_POLL,
	OPT_HELP,
};

static const struct opt options[] = {
	PROCESS_OPTIONS("watch"),
	{OPT_GROWTH, NULL, "growth", "SIZE",
		"take a snapshot when SIZE was added since the last one (50M, 1G)"},
	{OPT_OUT, "f", "output", "OUT", "write them to files of such names; else " OUT},
	{OPT_POLL, NULL, "poll", "T", "look how large it is each time T has passed; else 1s"},
	SERIES_OPTIONS,
	STACKS_OPTION,
	DUMP_OPTIONS,
	{OPT_HELP, "h", "help", NULL, "print this help"},
	{0},
};

static void watch_help(FILE *to)
{
	fprintf(to,
		"usage: hsnap watch -p PID | -pn NAME --growth SIZE [-f OUT] [--poll T] [--count "
		"N]\n"
		"                   [--keep N] [--max-bytes SIZE] [--on-exit stop | wait] [--all]\n"
		"                   [--log FILE] [--stacks SOURCE] [--by-stack] [--gzip] [--force] "
		"[-v]\n"
		"\n"
		"Takes a snapshot of a process, and then one each time its private bytes have\n"
		"grown by SIZE since the last one.\n"
		"\n");
	opt_help(options, to);
}

/* Takes one option: 0, or an error. */
static int set_option(struct series_request *request, int id, const char *value, struct err *err)
{
	switch (id) {
	case OPT_OUT: request->out = value; return 0;
	case OPT_GROWTH: return series_growth_parse(value, &request->growth_bytes, err);
	case OPT_POLL: return series_span_parse("--poll", value, &request->every_ms, err);
	case OPT_ARGUMENT: return err_set(err, ERR_USAGE, value, "watch takes options only");
	default: return series_option(request, id, value, err);
	}
}

static int check(const struct series_request *request, struct err *err)
{
	int rc = process_choice_check(&request->process, "watch", err);

	if (!rc && !request->growth_bytes)
		rc = err_set(err, ERR_USAGE, "watch", "say how much is growth: --growth SIZE");
	return rc;
}

int command_watch(int argc, char **argv)
{
	struct series_request request = SERIES_REQUEST_INIT;
	struct opt_state state;
	struct err err = {0};
	int id, rc = 0;

	request.out = OUT;
	request.every_ms = POLL_MS;
	request.given = "watch";
	opt_init(&state, options, argc, argv);
	while (!rc && (id = opt_next(&state, &err))) {
		if (id == OPT_HELP) {
			watch_help(stdout);
			return 0;
		}
		rc = set_option(&request, id, state.value, &err);
	}
	if (!rc)
		rc = check(&request, &err);
	return rc ? command_fail(&err) : series_main(&request);
}
