/* Commands on systems without Windows processes. Only commands that read files work. */
#include "snapshot/command/command.h"
#include "snapshot/control/control.h"
#include "snapshot/live/process.h"

static int refuse(const char *what)
{
	struct err err;

	err_set(&err, ERR_PLATFORM, what, NULL);
	return command_fail(&err);
}

#define NEEDS_WINDOWS(command)                                                                     \
	int command(int argc, char **argv)                                                         \
	{                                                                                          \
		(void)argc;                                                                        \
		return refuse(argv[0]);                                                            \
	}

NEEDS_WINDOWS(command_run)
NEEDS_WINDOWS(command_attach)
NEEDS_WINDOWS(command_detach)
NEEDS_WINDOWS(command_mark)
NEEDS_WINDOWS(command_ust)
NEEDS_WINDOWS(command_ps)
NEEDS_WINDOWS(command_doctor)

int command_record(int argc, char **argv)
{
	return command_is_of_log(argc, argv) ? command_record_log(argc, argv) : refuse(argv[0]);
}

const char *command_parts(void)
{
	return "";
}

int guard_main(int argc, char **argv)
{
	return refuse(argc > 1 ? argv[1] : "hsnap");
}

int control_parse_follow(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return -ERR_PLATFORM;
}

bool process_is_changing(uint32_t pid)
{
	(void)pid;
	return false;
}

int target_open_live(struct target *target, uint32_t pid, struct err *err)
{
	(void)target;
	(void)pid;
	return err_set(err, ERR_PLATFORM, "-p", NULL);
}
