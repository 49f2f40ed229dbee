#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/opt.h"
#include "snapshot/command/command.h"
#include "snapshot/stacks/os_stacks.h"

static const struct opt options[] = {
	PROCESS_OPTIONS("for"),
	HELP_OPTION,
	{0},
};

static const char usage[] =
	"usage: hsnap os on | off -p PID | -pn NAME\n"
	"\n"
	"Have Windows record a stack for every heap block that a running process\n"
	"allocates from now on, for --stacks=os. Windows 10 1607 and later; experimental.\n";

struct os_request {
	const char *what;
	struct process_choice process;
};

static int set_option(void *ctx, int id, const char *value, struct err *err)
{
	struct os_request *request = ctx;

	if (id != OPT_ARGUMENT)
		return process_option(&request->process, id, value, err);
	if (request->what)
		return err_set(err, ERR_USAGE, value, "it takes on or off, once");
	request->what = value;
	return 0;
}

static int switch_it(const struct os_request *request, struct err *err)
{
	bool on = request->what && !strcmp(request->what, "on");
	uint32_t pid = 0;
	int rc;

	if (!request->what || (!on && strcmp(request->what, "off") != 0))
		return err_set(
			err, ERR_USAGE, request->what ? request->what : "os", "it takes on or off");
	rc = process_choice_check(&request->process, "os", err);
	if (!rc)
		rc = process_choose(&request->process, false, &pid, err);
	if (!rc)
		rc = os_stacks_switch(pid, on, err);
	if (!rc)
		printf("os stacks are %s for pid %" PRIu32 "%s\n", request->what, pid,
			on ? ": blocks allocated from now on have one" : "");
	return rc;
}

int command_os(int argc, char **argv)
{
	static const struct command_form form = {usage, options, .set = set_option};
	struct os_request request = {0};
	struct err err = {0};
	int rc = command_read(&form, argc, argv, &request, &err);

	if (!rc)
		rc = switch_it(&request, &err);
	return rc < 0 ? command_fail(&err) : 0;
}
