/* hsnap schedule: adds and removes tasks of Task Scheduler. */
#include <stdio.h>
#include <string.h>

#include "core/base/opt.h"
#include "core/base/os.h"
#include "core/base/parse.h"
#include "core/io/out.h"
#include "snapshot/command/command.h"
#include "snapshot/schedule/scheduler.h"
#include "snapshot/schedule/task.h"

enum {
	OPT_EVERY = 1,
	OPT_DIR,
	OPT_KEEP,
	OPT_MAX_BYTES,
	OPT_FULL,
	OPT_GZIP,
	OPT_START,
	OPT_AT_START,
	OPT_TIME_LIMIT,
	OPT_AS_USER,
	OPT_PROGRAM,
	OPT_REPLACE,
	OPT_PRINT_XML,
	OPT_OUT,
};

static const struct opt options[] = {
	{OPT_EVERY, NULL, "every", "T", "how often: 30m, 1h30m, 1d (whole minutes)"},
	{OPT_DIR, NULL, "dir", "D", "folder for the dumps and the log; created if missing"},
	{OPT_KEEP, NULL, "keep", "N",
		"keep the newest N files of each process (default: " TASK_KEEP_DEFAULT ")"},
	{OPT_MAX_BYTES, NULL, "max-bytes", "SIZE",
		"keep the newest files of each process, up to SIZE (500M, 2G)"},
	{OPT_FULL, NULL, "full", NULL,
		"write one line for each block, not for each stack and heap"},
	{OPT_GZIP, NULL, "gzip", NULL, "compress the dumps; their names end in .gz"},
	{OPT_START, NULL, "start", "TIME",
		"first run: 2026-11-20T10:00, local, or UTC with Z (default: soon)"},
	{OPT_AT_START, NULL, "at-start", NULL, "also run a minute after the system starts"},
	{OPT_TIME_LIMIT, NULL, "time-limit", "T", "end a run that takes longer (default: 1h)"},
	{OPT_AS_USER, NULL, "as-user", NULL, "run as the current user, not as the system"},
	{OPT_PROGRAM, NULL, "program", "FILE",
		"run this hsnap.exe instead of the one you are using"},
	{OPT_REPLACE, NULL, "replace", NULL, "replace an existing task"},
	{OPT_PRINT_XML, NULL, "print-xml", NULL,
		"print the XML for schtasks /create, and add nothing"},
	{OPT_OUT, "f", "output", "OUT",
		"with --print-xml: write to OUT instead of standard output"},
	HELP_OPTION,
	{0},
};

static const char usage[] =
	"usage: hsnap schedule add NAME --every T --dir D [--keep N] [--max-bytes SIZE]\n"
	"             [--full] [--gzip] [--start TIME] [--at-start] [--time-limit T]\n"
	"             [--as-user] [--program FILE] [--replace] [--print-xml] [-f OUT]\n"
	"       hsnap schedule remove NAME\n"
	"\n"
	"Have Windows' Task Scheduler write dumps of every process called NAME (app.exe),\n"
	"or remove this task.\n";

struct schedule {
	const char *verb; /* NULL: not given */
	struct task_request request; /* paths as they were given */
	const char *output; /* NULL: standard output */
	const char *add_option; /* an option that is valid only for add, or NULL */
	bool is_as_user, may_replace, prints_xml;
};

static int set_option(void *ctx, int id, const char *value, struct err *err)
{
	struct schedule *schedule = ctx;
	struct task_request *request = &schedule->request;

	if (id == OPT_ARGUMENT && !schedule->verb) {
		schedule->verb = value;
		return 0;
	}
	if (id == OPT_ARGUMENT && request->name)
		return err_set(err, ERR_USAGE, value, "one name at a time");
	for (const struct opt *opt = options; opt->id; opt++) {
		if (opt->id == id)
			schedule->add_option = opt->long_name;
	}
	switch (id) {
	case OPT_ARGUMENT: request->name = value; break;
	case OPT_EVERY: request->every = value; break;
	case OPT_DIR: request->folder = value; break;
	case OPT_KEEP: request->keep = value; break;
	case OPT_MAX_BYTES: request->max_bytes = value; break;
	case OPT_FULL: request->is_full = true; break;
	case OPT_GZIP: request->is_packed = true; break;
	case OPT_START: request->start = value; break;
	case OPT_AT_START: request->at_boot = true; break;
	case OPT_TIME_LIMIT: request->limit = value; break;
	case OPT_AS_USER: schedule->is_as_user = true; break;
	case OPT_PROGRAM: request->program = value; break;
	case OPT_REPLACE: schedule->may_replace = true; break;
	case OPT_PRINT_XML: schedule->prints_xml = true; break;
	case OPT_OUT: schedule->output = value; break;
	default: return id;
	}
	return 0;
}

/* ---------------------------------------------------------------- add */

/* Writes the XML to a file, or to standard output. The file is for shells that convert redirected
 * output as text (Windows PowerShell 5.1). */
static int print_xml(const char *xml, const char *path, struct err *err)
{
	struct out out;
	struct buf bytes;
	int rc;

	buf_init(&bytes);
	task_xml_utf16(&bytes, xml);
	rc = out_open(&out, path, err);
	if (rc == -ERR_KEPT) /* this command has no option to replace the file */
		rc = err_set(err, ERR_EXISTS, path, NULL);
	if (!rc) {
		out_write(&out, bytes.data, bytes.len);
		rc = out_commit(&out, err);
	}
	buf_release(&bytes);
	return rc;
}

static int move_into_place(const struct schedule *schedule, const struct task_plan *plan,
	const char *xml, struct err *err)
{
	const char *name = schedule->request.name, *folder = plan->folder.data;
	bool is_system = !schedule->is_as_user;
	int rc = scheduler_places(folder, plan->program.data, plan->home.data, is_system, err);

	if (!rc)
		rc = scheduler_add(name, xml, is_system, schedule->may_replace, err);
	if (!rc)
		printf("%s: takes snapshots every %s from %s on; keeps the newest %s files of each "
		       "process in %s\n",
			name, schedule->request.every, plan->start.data, plan->keep, folder);
	return rc;
}

/* Adds a task. Completes the request with full paths, a start time, and the user. */
static int add(const struct schedule *schedule, struct err *err)
{
	struct task_request request = schedule->request;
	struct buf folder = {0}, program = {0}, user = {0}, xml = {0};
	struct task_plan plan = {0};
	char date[DATE_TEXT_BYTES], start[DATE_TEXT_BYTES];
	int rc = 0;

	/* The next full minute that is at least a minute away. */
	date_text((os_time_ms() / 60000 + 2) * 60000, date);
	snprintf(start, sizeof(start), "%.19sZ", date);
	if (request.folder)
		rc = scheduler_full_path(&folder, request.folder, err);
	if (!rc)
		rc = request.program ? scheduler_full_path(&program, request.program, err) :
				       scheduler_program(&program, err);
	if (!rc && schedule->is_as_user)
		rc = scheduler_user(&user, err);
	request.folder = folder.data;
	request.program = program.data;
	request.user = user.data;
	request.start = request.start ? request.start : start;
	if (!rc)
		rc = task_plan_make(&plan, &request, err);
	if (!rc)
		rc = task_xml_add(&xml, &plan, err);
	if (!rc)
		rc = schedule->prints_xml ? print_xml(xml.data, schedule->output, err) :
					    move_into_place(schedule, &plan, xml.data, err);
	task_plan_release(&plan);
	buf_release(&folder);
	buf_release(&program);
	buf_release(&user);
	buf_release(&xml);
	return rc;
}

/* ---------------------------------------------------------------- verbs */

static int act(const struct schedule *schedule, struct err *err)
{
	const char *verb = schedule->verb ? schedule->verb : "schedule";
	const char *name = schedule->request.name;
	bool is_add = !strcmp(verb, "add");
	int rc;

	if (!strcmp(verb, "list"))
		return err_set(
			err, ERR_USAGE, verb, "use schtasks /query /tn \\hsnap\\ /v /fo list");
	if (!strcmp(verb, "run"))
		return err_set(err, ERR_USAGE, verb, "use schtasks /run /tn \\hsnap\\NAME");
	if (!is_add && strcmp(verb, "remove") != 0)
		return err_set(err, ERR_USAGE, verb, "expected add or remove");
	if (schedule->add_option && !is_add)
		return err_set(
			err, ERR_USAGE, verb, "--%s applies only to add", schedule->add_option);
	if (schedule->output && !schedule->prints_xml)
		return err_set(err, ERR_USAGE, schedule->output, "-f needs --print-xml");
	if (!name)
		return err_set(err, ERR_USAGE, verb, "name the image: NAME, as app.exe");
	rc = task_name_check(name, err);
	if (rc)
		return rc;
	if (is_add)
		return add(schedule, err);
	rc = scheduler_remove(name, err);
	if (!rc)
		printf("%s: the task was removed; its dumps remain\n", name);
	return rc;
}

int command_schedule(int argc, char **argv)
{
	static const struct command_form form = {usage, options, .set = set_option};
	struct schedule schedule = {0};
	struct err err = {0};
	int rc = command_read(&form, argc, argv, &schedule, &err);

	if (!rc)
		rc = act(&schedule, &err);
	return rc < 0 ? command_fail(&err) : 0;
}
