/* hsnap without a command: one snapshot, or many. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/os.h"
#include "snapshot/command/packed_name.h"
#include "snapshot/command/series_options.h"
#include "snapshot/live/kept.h"
#include "snapshot/live/process.h"
#include "snapshot/series/file_pattern.h"
#include "snapshot/series/series_loop.h"

enum {
	OPT_PID = 1,
	OPT_NAME,
	OPT_DUMP,
	OPT_OUT,
	OPT_EVERY,
	OPT_BY_STACK,
	OPT_GZIP,
	OPT_STACKS,
	OPT_VERBOSE,
	OPT_HELP,
	OPT_VERSION,
};

static const struct opt options[] = {
	{OPT_PID, "p", "pid", "PID", "take a snapshot of this process"},
	{OPT_NAME, "pn", "name", "NAME", "take a snapshot of the process with this image name"},
	{OPT_DUMP, "z", "dump", "FILE", "take a snapshot of the process in this minidump"},
	{OPT_OUT, "f", "output", "OUT", "write it to OUT instead of standard output"},
	{OPT_EVERY, NULL, "every", "T", "take one each time T (30s, 30m, 1h30m, 2d) has passed"},
	SERIES_OPTIONS,
	{OPT_BY_STACK, NULL, "by-stack", NULL,
		"one line for each stack and heap, not for each block"},
	{OPT_GZIP, NULL, "gzip", NULL, "pack the file; its name ends in .gz"},
	{OPT_STACKS, NULL, "stacks", "SOURCE", "where stacks come from: auto ust os tracer"},
	{OPT_VERBOSE, "v", "verbose", NULL, "say on standard error what was found"},
	{OPT_HELP, "h", "help", NULL, "print this help"},
	{OPT_VERSION, NULL, "version", NULL, "print the version"},
	{OPT_HELP, "?", NULL, NULL, NULL},
	{0},
};

void command_snapshot_help(FILE *to)
{
	fprintf(to,
		"usage: hsnap -p PID | -pn NAME | -z FILE [-v] [--stacks SOURCE]\n"
		"             [--by-stack] [--gzip] [-f OUT]\n"
		"       hsnap -p PID | -pn NAME -f OUT [--every T] [--count N] [--keep N]\n"
		"             [--max-bytes SIZE] [--on-exit stop | wait] [--all] [--log FILE] ...\n"
		"\n"
		"Writes every live heap block of a process, with its stack, as text.\n"
		"hdiff compares two such snapshots.\n"
		"In OUT {name} and {pid} stand for the program and process, {time} for the time\n"
		"(UTC), {n} for the number of the file in its series, {{ for a brace.\n"
		"\n");
	opt_help(options, to);
}

struct request {
	struct series_request series;
	const char *dump;
	unsigned process_count; /* how often one was named */
};

static int find_named(const char *name, uint32_t *pid, struct err *err)
{
	struct series_found found = {0};
	struct kept_seen *seen = NULL;
	size_t count = 0;
	int rc = kept_find(name, &seen, &count, err);

	if (rc)
		return rc;
	found.items = calloc(count + 1, sizeof(*found.items));
	for (; found.items && found.count < count; found.count++)
		found.items[found.count] = (struct series_process){seen[found.count].pid,
			seen[found.count].start_ms, seen[found.count].private_bytes};
	if (!found.items)
		rc = err_set(err, ERR_NOMEM, name, NULL);
	else if (!count)
		rc = err_set(err, ERR_NO_PROCESS, name, NULL);
	else if (count > 1)
		rc = series_several(name, &found, err);
	else
		*pid = seen[0].pid;
	free(found.items);
	free(seen);
	return rc;
}

static int open_live(const struct series_request *request, struct target *target, struct err *err)
{
	uint32_t pid = 0;
	int rc = request->name ? find_named(request->name, &pid, err) :
				 command_pid_parse(request->pid, &pid, err);

	return rc ? rc : target_open_live(target, pid, err);
}

/* The file's name, from that of the process; of standard output none. The pattern has been checked. */
static int name_file(const struct request *request, const struct target *target, struct buf *path,
	struct err *err)
{
	struct file_names names = {
		.program = target->image, .pid = target->pid, .time_ms = target->time_ms};
	const char *out = request->series.out;
	struct buf name;
	int rc;

	if (!out || !strcmp(out, "-"))
		return 0;
	buf_init(&name);
	if (file_pattern_add(&name, out, &names) ||
		(request->series.take.is_packed ? packed_name_add(path, name.data) :
						  buf_add_text(path, name.data)))
		rc = err_set(err, ERR_NOMEM, out, NULL);
	/* It must not take the place of what it is made from. */
	else if (request->dump && !os_is_special(path->data) &&
		 os_same_file(request->dump, path->data))
		rc = err_set(err, ERR_USAGE, path->data, "it is the minidump");
	else
		rc = 0;
	buf_release(&name);
	return rc;
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
	bool is_file = series->out && strcmp(series->out, "-") != 0;

	if (request->dump && series->given)
		return err_set(err, ERR_USAGE, series->given,
			"a minidump does not change: it is for processes, -p and -pn");
	if (request->dump && words & PATTERN_NUMBER)
		return err_set(err, ERR_USAGE, series->out, "{n} is for processes, -p and -pn");
	if (series->take.is_packed && !is_file && os_is_terminal(stdout))
		return err_set(
			err, ERR_USAGE, "--gzip", "nobody reads that on a terminal; give -f OUT");
	return 0;
}

static int snapshot(const struct request *request)
{
	const struct series_request *series = &request->series;
	struct err err = {0};
	unsigned words = 0;
	int rc = 0;

	if (request->process_count != 1)
		rc = err_set(&err, ERR_USAGE, request->process_count ? "-p, -pn and -z" : "hsnap",
			request->process_count ? "give one of them, once" :
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

	request->process_count += id == OPT_PID || id == OPT_NAME || id == OPT_DUMP;
	switch (id) {
	case OPT_PID: series->pid = value; return 0;
	case OPT_NAME: series->name = value; return 0;
	case OPT_DUMP: request->dump = value; return 0;
	case OPT_OUT: series->out = value; return 0;
	case OPT_EVERY:
		series->given = "--every";
		return series_span_parse("--every", value, &series->every_ms, err);
	case OPT_BY_STACK: series->take.by_stack = true; return 0;
	case OPT_GZIP: series->take.is_packed = true; return 0;
	case OPT_STACKS: return capture_stacks_parse(value, &series->take.options.stacks, err);
	case OPT_VERBOSE: series->take.is_verbose = true; return 0;
	case OPT_ARGUMENT: return err_set(err, ERR_USAGE, value, "there is no such command");
	default: return series_option(series, id, value, err);
	}
}

int command_snapshot(int argc, char **argv, void (*help)(FILE *to))
{
	struct request request = {.series = SERIES_REQUEST_INIT};
	struct opt_state state;
	struct err err = {0};
	int id;

	opt_init(&state, options, argc, argv);
	while ((id = opt_next(&state, &err))) {
		if (id == OPT_HELP) {
			help(stdout);
			return 0;
		}
		if (id == OPT_VERSION) {
			printf("hsnap %s\n", HSNAP_VERSION);
			return 0;
		}
		if (set_option(&request, id, state.value, &err))
			return command_fail(&err);
	}
	return snapshot(&request);
}
