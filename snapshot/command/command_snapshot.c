/* hsnap snapshot, the default command: takes one snapshot of a process or a minidump
 * (snapshot/capture/snapshot_file.h), or a series of them (command_series.c). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/os.h"
#include "core/base/text.h"
#include "snapshot/capture/snapshot_file.h"
#include "snapshot/command/command.h"
#include "snapshot/live/process.h"

enum {
	OPT_DUMP = 1,
	OPT_OUT,
	OPT_EVERY,
	OPT_COMPARE,
};

static const struct opt options[] = {
	PROCESS_OPTIONS("take a snapshot of"),
	{OPT_DUMP, "z", "dump", "FILE", "take a snapshot of the process in this minidump"},
	{OPT_OUT, "f", "output", "OUT", "write to OUT instead of standard output"},
	{OPT_EVERY, NULL, "every", "T", "take one every T (30s, 30m, 1h30m, 2d)"},
	SERIES_OPTIONS,
	READ_OPTIONS,
	DUMP_OPTIONS,
	HELP_OPTION,
	{OPT_COMPARE, "d", NULL, NULL, NULL},
	{0},
};

static const char usage[] =
	"usage: hsnap -p PID | -pn NAME | -z FILE [-f OUT] [--stacks SOURCE] [--walk]\n"
	"             [-g] [--interior yes|no] [--sample-content N] [--by-stack] [--gzip]\n"
	"             [--overwrite] [--force] [-v]\n"
	"       hsnap -p PID | -pn NAME -f OUT [--every T] [--count N] [--keep N]\n"
	"             [--max-bytes SIZE] [--on-exit stop | wait] [--all] [--log FILE]\n"
	"             [--stacks SOURCE] [--walk] [-g] [--interior yes|no]\n"
	"             [--sample-content N] [--by-stack]\n"
	"             [--gzip] [--overwrite] [--force] [-v]\n"
	"\n"
	"Write every live heap block of a process, with its stack, as text.\n"
	"hdiff compares two such files: hdiff a.txt b.txt\n"
	"In OUT, {name} stands for the program, {pid} for the process's id, {time} for the\n"
	"time (UTC), {n} for the number of the file in its series, and {{ for a brace.\n";

struct one_request {
	struct series_request series;
	const char *dump;
};

/* Makes the file's name from the process's name. Standard output has no name. The pattern was
 * checked before. */
static int name_file(const struct one_request *request, const struct target *target,
	struct buf *path, struct err *err)
{
	struct file_names names = {
		.program = target->image, .pid = target->pid, .time_ms = target->time_ms};
	const char *out = request->series.out;

	if (!out || !strcmp(out, "-"))
		return 0;
	dump_name_add(path, out, &names, request->series.take.is_packed);
	/* The dump must not replace the minidump that it is made from. */
	if (request->dump && !os_is_special(path->data) && os_same_file(request->dump, path->data))
		return err_set(err, ERR_USAGE, path->data, "input and output are the same file");
	return 0;
}

/* Prints a summary of a written file. The percentage is rounded down, so 100 % means all blocks. */
static void print_written(const char *path, const struct snapshot_result *taken)
{
	const uint64_t count = taken->block_count, with = count - taken->stackless_count;
	char name[1600]; /* a fixed buffer: the file already exists, so nothing may fail now */

	snprintf(name, sizeof(name), "%s", path);
	fprintf(stderr,
		"hsnap: %s: %" PRIu64 " block%s (%" PRIu64 " %% with stacks), %" PRIu64 " byte%s",
		text_harmless(name), count, text_plural(count), count ? with * 100 / count : 0,
		taken->requested_bytes, text_plural(taken->requested_bytes));
	if (taken->has_reach)
		fprintf(stderr, "; lost: %" PRIu64 " block%s, %" PRIu64 " byte%s",
			taken->lost_count, text_plural(taken->lost_count), taken->lost_bytes,
			text_plural(taken->lost_bytes));
	fputc('\n', stderr);
}

static int capture_one(const struct one_request *request, struct err *err)
{
	struct snapshot_result taken;
	struct target target;
	struct buf path;
	uint32_t pid = 0;
	int rc = 0;

	snapshot_guard_interrupts();
	if (!request->dump)
		rc = process_choose(&request->series.process, true, &pid, err);
	if (!rc)
		rc = request->dump ? target_open_minidump(&target, request->dump, err) :
				     target_open_live(&target, pid, err);
	if (rc)
		return rc;
	buf_init(&path);
	rc = name_file(request, &target, &path, err);
	if (!rc)
		rc = snapshot_capture(&request->series.take, &target, path.data, &taken, err);
	target.ops->close(&target);
	if (!rc && path.data && !request->series.take.is_verbose)
		print_written(path.data, &taken);
	buf_release(&path);
	return rc;
}

static int check_one(const struct one_request *request, unsigned words, struct err *err)
{
	const struct series_request *series = &request->series;

	if (request->dump && series->given)
		return err_set(err, ERR_USAGE, series->given,
			"applies only to a process, by -p or -pn: a minidump never changes");
	if (request->dump && words & PATTERN_NUMBER)
		return err_set(
			err, ERR_USAGE, series->out, "{n} is only for processes, -p and -pn");
	return dump_check_out(&series->take, series->out, "-f OUT", err);
}

static int snapshot(struct one_request *request)
{
	struct series_request *series = &request->series;
	struct err err = {0};
	unsigned words = 0;
	int rc = 0;

	if (series->process.count != 1)
		rc = err_set(&err, ERR_USAGE, series->process.count ? "-p, -pn and -z" : "hsnap",
			series->process.count ? "give one of them, once" :
						"name the process: -p PID, -pn NAME or -z FILE");
	if (!rc && series->out && strcmp(series->out, "-") != 0)
		rc = file_pattern_check(series->out, &words, &err);
	series->take.makes_folders = words != 0;
	if (!rc && !request->dump && (series->given || words))
		return series_main(series);
	if (!rc)
		rc = check_one(request, words, &err);
	if (!rc)
		rc = capture_one(request, &err);
	return rc ? command_fail(&err) : 0;
}

static int set_option(void *ctx, int id, const char *value, struct err *err)
{
	struct one_request *request = ctx;
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
			"no such command; hdiff compares snapshots: hdiff a.txt b.txt");
	default: return series_option(series, id, value, err);
	}
}

int command_snapshot(int argc, char **argv)
{
	static const struct command_form form = {usage, options, .set = set_option};
	struct one_request request = {.series = SERIES_REQUEST_INIT};
	struct err err = {0};
	int rc = command_read(&form, argc, argv, &request, &err);

	if (rc)
		return rc < 0 ? command_fail(&err) : 0;
	return snapshot(&request);
}
