/* Where there are no Windows processes: what is left is reading files. */
#include "snapshot/command/command.h"
#include "snapshot/live/process.h"

static int refuse(const char *what)
{
	struct err err;

	err_set(&err, ERR_PLATFORM, what, NULL);
	return command_fail(&err);
}

int command_run(int argc, char **argv)
{
	(void)argc;
	return refuse(argv[0]);
}

int command_attach(int argc, char **argv)
{
	(void)argc;
	return refuse(argv[0]);
}

int command_detach(int argc, char **argv)
{
	(void)argc;
	return refuse(argv[0]);
}

int command_ust(int argc, char **argv)
{
	(void)argc;
	return refuse(argv[0]);
}

int command_os(int argc, char **argv)
{
	(void)argc;
	return refuse(argv[0]);
}

int command_ps(int argc, char **argv)
{
	(void)argc;
	return refuse(argv[0]);
}

int command_doctor(int argc, char **argv)
{
	(void)argc;
	return refuse(argv[0]);
}

int guard_main(int argc, char **argv)
{
	return refuse(argc > 1 ? argv[1] : "hsnap");
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
