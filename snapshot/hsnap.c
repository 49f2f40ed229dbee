#include <stdio.h>
#include <string.h>

#include "core/os.h"
#include "snapshot/command/command.h"
#include "snapshot/live/process.h"

static const struct command {
	const char *name;
	int (*main)(int argc, char **argv);
	void (*help)(FILE *to);
} commands[] = {
	{"watch", command_watch, command_watch_help},
	{"run", command_run, command_run_help},
	{"attach", command_attach, command_attach_help},
	{"detach", command_detach, command_detach_help},
	{"ust", command_ust, command_ust_help},
	{"os", command_os, command_os_help},
	{"ps", command_ps, command_ps_help},
	{"doctor", command_doctor, command_doctor_help},
	{"schedule", command_schedule, command_schedule_help},
};

#define COMMANDS (sizeof(commands) / sizeof(*commands))

static void print_help(FILE *to)
{
	command_snapshot_help(to);
	for (size_t i = 0; i < COMMANDS; i++) {
		fputc('\n', to);
		commands[i].help(to);
	}
}

int main(int argc, char **argv)
{
	struct err err;

	if (os_start(&argc, &argv)) {
		err_set(&err, ERR_NOMEM, NULL, NULL);
		return command_fail(&err);
	}
	if (argc < 2) {
		print_help(stderr);
		return 2;
	}
	if (!strcmp(argv[1], GUARD_COMMAND))
		return guard_main(argc, argv);
	for (size_t i = 0; i < COMMANDS; i++) {
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].main(argc - 1, argv + 1);
	}
	return command_snapshot(argc, argv, print_help);
}
