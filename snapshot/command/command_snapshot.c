/* hsnap snapshot, the command when none is named: one snapshot, or many. */
#include <stdio.h>
#include <string.h>

#include "core/os.h"
#include "snapshot/command/series_options.h"
#include "snapshot/live/process.h"

enum {
	OPT_DUMP = 1,
	OPT_OUT,
	OPT_EVERY,
	OPT_COMPARE,
	OPT_HELP,
};

static const struct opt options[] = {
	PROCESS_OPTIONS("take a snapshot of"),
	{OPT_DUMP, "z", "dump", "FILE", "take a snapshot of the process in this minidump"},
	{OPT_OUT, "f", "output", "OUT", "write it to OUT instead of standard output"},
	{OPT_EVERY, NULL, "every", "T", "take one each time T (30s, 30m, 1h30m, 2d) has passed"},
	SERIES_OPTIONS,
	STACKS_OPTION,
	DUMP_OPTIONS,
	{OPT_HELP, "h", "help", NULL, "print this help"},
	{OPT_COMPARE, "d", NULL, NULL, NULL},
	{0},
};

static void snapshot_help(FILE *to)
{
	fprintf(to,
		"usage: hsnap -p PID | -pn NAME | -z FILE [-f OUT] [--stacks SOURCE] [--by-stack]\n"
		"             [--gzip] [--force] [-v]\n"
		"       hsnap -p PID | -pn NAME -f OUT [--every T] [--count N] [--keep N]\n"
		"             [--max-bytes SIZE] [--on-exit stop | wait] [--all] [--log FILE]\n"
		"             [--stacks SOURCE] [--by-stack] [--gzip] [--force] [-v]\n"
		"\n"
		"Writes every live heap block of a process, with its stack, as text.\n"
		"hdiff compares two of them: hdiff a.txt b.txt\n"
		"In OUT {name} and {pid} stand for the program and process, {time} for the time\n"
		"(UTC), {n} for the number of the file in its series, {{ for a brace.\n"
		"\n");
	opt_help(options, to);
}

struct request {
	struct series_request series;
	const char *dump;
};

static int open_live(const struct series_request *request, struct target *target, struct err *err)
{
	uint32_t pid = 0;
	int rc = process_choose(&request->process, true, &pid, err);

	return rc ? rc : target_open_live(target, pid, err);
}

/* The file's name, from that of the process; of standard output none. The pattern has been checked. */
static int name_file(const struct request *request, const struct target *target, struct buf *path,
	struct err *err)
{
	struct file_names names = {
		.program = target->image, .pid = target->pid, .time_ms = target->time_ms};
	const char *out = request->series.out;

	if (!out || !strcmp(out, "-"))
		return 0;
	if (dump_name_add(path, out, &names, request->series.take.is_packed))
		return err_set(err, ERR_NOMEM, out, NULL);
	/* It must not take the place of what it is made from. */
	if (request->dump && !os_is_special(path->data) && os_same_file(request->dump, path->data))
		return err_set(err, ERR_USAGE, path->data, "it is the minidump");
	return 0;
}

static int take_one(const struct request *request, struct err *err)
{
	struct target target;
	struct buf path;
	int rc;

	take_guard_interrupts();
	rc = request->dump ? target_open_minidump(&target, request->dump, err) :
			     open_live(&request->series, &target, err);
	if (rc)
		return rc;
	buf_init(&path);
	rc = name_file(request, &target, &path, err);
	if (!rc)
		rc = take(&request->series.take, &target, path.data, NULL, err);
	buf_release(&path);
	target.ops->close(&target);
	return rc;
}

/* What is asked of one snapshot to standard output or a file. */
static int check_one(const struct request *request, unsigned words, struct err *err)
{
	const struct series_request *series = &request->series;

	if (request->dump && series->given)
		return err_set(err, ERR_USAGE, series->given,
			"a minidump does not change: it is for processes, -p and -pn");
	if (request->dump && words & PATTERN_NUMBER)
		return err_set(err, ERR_USAGE, series->out, "{n} is for processes, -p and -pn");
	return dump_check_out(&series->take, series->out, "-f OUT", err);
}

static int snapshot(const struct request *request)
{
	const struct series_request *series = &request->series;
	struct err err = {0};
	unsigned words = 0;
	int rc = 0;

	if (series->process.count != 1)
		rc = err_set(&err, ERR_USAGE, series->process.count ? "-p, -pn and -z" : "hsnap",
			series->process.count ? "give one of them, once" :
						"say which process: -p PID, -pn NAME or -z FILE");
	if (!rc && series->out && strcmp(series->out, "-") != 0)
		rc = file_pattern_check(series->out, &words, &err);
	if (!rc && !request->dump && (series->given || words))
		return series_main(series);
	if (!rc)
		rc = check_one(request, words, &err);
	if (!rc)
		rc = take_one(request, &err);
	return rc ? command_fail(&err) : 0;
}

/* Takes one option: 0, or an error. */
static int set_option(struct request *request, int id, const char *value, struct err *err)
{
	struct series_request *series = &request->series;

	switch (id) {
	case OPT_DUMP:
		request->dump = value;
		series->process.count++;
		return 0;
	case OPT_OUT: series->out = value; return 0;
	case OPT_EVERY:
		series->given = "--every";
		return series_span_parse("--every", value, &series->every_ms, err);
	case OPT_COMPARE:
		return err_set(
			err, ERR_USAGE, "-d", "hdiff compares snapshots: hdiff -d a.txt b.txt");
	case OPT_ARGUMENT:
		return err_set(err, ERR_USAGE, value,
			"there is no such command; hdiff compares snapshots: hdiff a.txt b.txt");
	default: return series_option(series, id, value, err);
	}
}

int command_snapshot(int argc, char **argv)
{
	struct request request = {.series = SERIES_REQUEST_INIT};
	struct opt_state state;
	struct err err = {0};
	int id;

	opt_init(&state, options, argc, argv);
	while ((id = opt_next(&state, &err))) {
		if (id == OPT_HELP) {
			snapshot_help(stdout);
			return 0;
		}
		if (set_option(&request, id, state.value, &err))
			return command_fail(&err);
	}
	return snapshot(&request);
}
