/* hsnap attach and hsnap detach: add the tracer to a running process, and turn it off. */
#include <inttypes.h>
#include <stdio.h>

#include <Zydis/Zydis.h>

#include "core/base/opt.h"
#include "snapshot/command/command.h"
#include "snapshot/control/control.h"

enum {
	OPT_HANDLES = 1,
	OPT_MAX_MB,
	OPT_SAMPLE,
	OPT_KEEP_BSTR_CACHE,
	OPT_VERBOSE,
};

static const struct opt attach_options[] = {
	PROCESS_OPTIONS("trace"),
	{OPT_HANDLES, NULL, "handles", NULL, "also record who opens each handle"},
	{OPT_MAX_MB, NULL, "max-mb", "N", "limit the tracer's tables to N MiB"},
	{OPT_SAMPLE, NULL, "sample", "SIZE", "record about one block per SIZE bytes (512K, 1M)"},
	{OPT_KEEP_BSTR_CACHE, NULL, "keep-bstr-cache", NULL,
		"do not stop COM from reusing strings"},
	{OPT_VERBOSE, "v", "verbose", NULL, "print a line when it is traced"},
	HELP_OPTION,
	{0},
};

static const struct opt detach_options[] = {
	PROCESS_OPTIONS("stop tracing"),
	{OPT_VERBOSE, "v", "verbose", NULL, "print a line when it is no longer traced"},
	HELP_OPTION,
	{0},
};

static const char attach_usage[] =
	"usage: hsnap attach -p PID | -pn NAME [--handles] [--max-mb N]\n"
	"                    [--sample SIZE] [--keep-bstr-cache] [-v]\n"
	"\n"
	"Load the tracer into a running process: blocks that it allocates from now on\nwill have "
	"stacks.\n";

static const char detach_usage[] =
	"usage: hsnap detach -p PID | -pn NAME [-v]\n"
	"\n"
	"Remove the tracer's hooks from a process; its stacks are lost.\n";

struct attach_request {
	const char *command;
	struct process_choice process;
	struct attach_options options;
	bool is_verbose;
};

static int set_option(void *ctx, int id, const char *value, struct err *err)
{
	struct attach_request *request = ctx;

	switch (id) {
	case OPT_HANDLES: request->options.with_handles = true; return 0;
	case OPT_MAX_MB: return table_limit_parse(value, &request->options.limit_bytes, err);
	case OPT_SAMPLE: return table_sample_parse(value, &request->options.sample_bytes, err);
	case OPT_KEEP_BSTR_CACHE: request->options.keep_bstr_cache = true; return 0;
	case OPT_VERBOSE: request->is_verbose = true; return 0;
	case OPT_ARGUMENT:
		return err_set(err, ERR_USAGE, value, "%s takes options only", request->command);
	default: return process_option(&request->process, id, value, err);
	}
}

/* Parses the options and finds the process. Returns 1 after printing the help. */
static int read_options(struct attach_request *request, const struct command_form *form, int argc,
	char **argv, uint32_t *pid, struct err *err)
{
	int rc = command_read(form, argc, argv, request, err);

	if (!rc)
		rc = process_choice_check(&request->process, request->command, err);
	return rc ? rc : process_choose(&request->process, false, pid, err);
}

int command_fail_or_delegate(int rc, uint32_t pid, struct err *err)
{
	uint32_t exit_status = 2;
	char name[40];

	snprintf(name, sizeof(name), "pid %" PRIu32, pid);
	if (rc == -ERR_BITS && !run_other_hsnap(name, &exit_status, err))
		return (int)exit_status;
	return command_fail(err);
}

const char *command_parts(void)
{
	static char text[40];
	ZyanU64 version = ZydisGetVersion();

	snprintf(text, sizeof(text), ", Zydis %u.%u.%u", (unsigned)ZYDIS_VERSION_MAJOR(version),
		(unsigned)ZYDIS_VERSION_MINOR(version), (unsigned)ZYDIS_VERSION_PATCH(version));
	return text;
}

int command_attach(int argc, char **argv)
{
	static const struct command_form form = {attach_usage, attach_options, .set = set_option};
	struct attach_request request = {
		.command = argv[0], .options.limit_bytes = TABLES_DEFAULT_BYTES};
	uint64_t limit = 0;
	uint32_t pid = 0;
	char name[20];
	struct err err = {0};
	int rc = read_options(&request, &form, argc, argv, &pid, &err);

	if (rc > 0)
		return 0;
	if (!rc)
		rc = control_attach(pid, &request.options, &limit, &err);
	if (rc)
		return command_fail_or_delegate(rc, pid, &err);
	snprintf(name, sizeof(name), "pid %" PRIu32, pid);
	control_warn_of_limit(name, limit, request.options.limit_bytes);
	if (request.is_verbose)
		fprintf(stderr,
			"hsnap: pid %" PRIu32
			": traced: blocks that it allocates from now on will have stacks\n",
			pid);
	return 0;
}

int command_detach(int argc, char **argv)
{
	static const struct command_form form = {detach_usage, detach_options, .set = set_option};
	struct attach_request request = {.command = argv[0]};
	uint32_t pid = 0;
	struct err err = {0};
	int rc = read_options(&request, &form, argc, argv, &pid, &err);

	if (rc > 0)
		return 0;
	if (!rc)
		rc = control_detach(pid, &err);
	if (rc)
		return command_fail_or_delegate(rc, pid, &err);
	if (request.is_verbose)
		fprintf(stderr, "hsnap: pid %" PRIu32 ": no longer traced: its stacks are lost\n",
			pid);
	return 0;
}
