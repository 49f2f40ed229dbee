#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/opt.h"
#include "snapshot/command/command.h"
#include "snapshot/stacks/os_stacks.h"

enum {
	OPT_HELP = 1,
};

static const struct opt options[] = {
	PROCESS_OPTIONS("for"),
	{OPT_HELP, "h", "help", NULL, "print this help"},
	{0},
};

static void os_help(FILE *to)
{
	fprintf(to,
		"usage: hsnap os on | off -p PID | -pn NAME\n"
		"\n"
		"Have Windows record a stack for every heap block that a running process\n"
		"allocates from now on, for --stacks=os. Windows 10 1607 and later; experimental.\n"
		"\n");
	opt_help(options, to);
}

struct os_request {
	const char *what;
	struct process_choice process;
};

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
	struct os_request request = {0};
	struct opt_state state;
	struct err err = {0};
	int id, rc = 0;

	opt_init(&state, options, argc, argv);
	while (!rc && (id = opt_next(&state, &err))) {
		switch (id) {
		case OPT_HELP: os_help(stdout); return 0;
		case OPT_ARGUMENT:
			if (request.what)
				rc = err_set(
					&err, ERR_USAGE, state.value, "it takes on or off, once");
			request.what = state.value;
			break;
		default: rc = process_option(&request.process, id, state.value, &err); break;
		}
	}
	if (!rc)
		rc = switch_it(&request, &err);
	return rc ? command_fail(&err) : 0;
}
