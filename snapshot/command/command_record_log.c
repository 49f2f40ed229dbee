/* hsnap record --from: makes a recording of one process from an ETW log. It also works on systems
 * other than Windows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/os.h"
#include "core/base/terminal.h"
#include "core/etw/etw.h"
#include "core/io/temp.h"
#include "snapshot/command/command.h"

enum { OPT_OUTPUT = 1, OPT_ADDRESSES, OPT_FROM, OPT_PROCESS, OPT_NAME };

static const struct opt options[] = {
	{OPT_OUTPUT, "o", "output", "FILE", "write the recording to FILE"},
	{OPT_FROM, NULL, "from", "LOG",
		"an ETW log (.etl, .zip); repeat it for each log of a session"},
	{OPT_PROCESS, "p", "pid", "PID", "select the process by its pid"},
	{OPT_NAME, "pn", "name", "NAME", "select the process by its image"},
	{OPT_ADDRESSES, NULL, "addresses", NULL, "record the address of each block"},
	OVERWRITE_OPTION,
	HELP_OPTION,
	{0},
};

static const char usage[] =
	"usage: hsnap record -o FILE [-p PID | -pn NAME] [--addresses] --from LOG [--overwrite]\n"
	"\n"
	"Convert the events of one process in an ETW log to a recording, which is smaller "
	"and\nquicker to read. hdiff --list LOG lists the processes.\n";

struct log_request {
	const char **logs;
	size_t log_count, log_cap;
	const char *process;
	struct etw_record_options how;
};

static int set_option(void *ctx, int id, const char *value, struct err *err)
{
	struct log_request *request = ctx;

	switch (id) {
	case OPT_OUTPUT: request->how.path = value; return 0;
	case OPT_DUMP_OVERWRITE: out_protect(NULL); return 0;
	case OPT_ADDRESSES: request->how.keeps_addresses = true; return 0;
	case OPT_PROCESS:
	case OPT_NAME: request->process = value; return 0;
	case OPT_FROM:
		array_grow((void **)&request->logs, &request->log_cap, request->log_count,
			sizeof(const char *));
		request->logs[request->log_count++] = value;
		return 0;
	default: return err_set(err, ERR_USAGE, value, "--from does not start a program");
	}
}

struct reading_progress {
	struct progress line;
	const char *path;
};

static void show_progress(void *ctx, uint64_t done, uint64_t total)
{
	struct reading_progress *progress = ctx;

	progress_report(&progress->line, progress->path, (size_t)done, (size_t)total, os_time_ms());
}

static int check(const struct log_request *request, struct err *err)
{
	if (!request->how.path)
		return err_set(err, ERR_USAGE, "record", "needs -o FILE");
	for (size_t i = 0; i < request->log_count; i++) {
		if (os_same_file(request->logs[i], request->how.path))
			return err_set(err, ERR_USAGE, request->how.path,
				"input and output are the same file");
	}
	/* check before reading the log, which takes a long time */
	return out_check(request->how.path, err);
}

bool command_is_of_log(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (!strncmp(argv[i], "--from", 6))
			return true;
	}
	return false;
}

int command_record_log(int argc, char **argv)
{
	static const struct command_form form = {usage, options, .set = set_option};
	struct log_request request = {0};
	struct reading_progress progress;
	const struct etw_process *process;
	struct etw_log *log = NULL;
	struct err err = {0};
	int rc = command_read(&form, argc, argv, &request, &err);

	if (!rc)
		rc = check(&request, &err);
	if (!rc) {
		progress.path = request.logs[0];
		progress_begin(&progress.line, stderr, "hsnap: reading", os_time_ms());
		rc = etw_open(&log, request.logs, request.log_count, &err);
		if (!rc)
			rc = etw_scan(log, false, show_progress, &progress, &err);
		if (!rc)
			rc = etw_choose(log, request.process, &process, &err);
		if (!rc)
			rc = etw_record(log, process, &request.how, show_progress, &progress, &err);
		progress_wipe(&progress.line);
		etw_close(log);
		temp_remove_all();
	}
	free(request.logs);
	return rc < 0 ? command_fail(&err) : 0;
}
