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

void command_run_help(FILE *to)
{
	fprintf(to, "hsnap run, on Windows: starts a program with the tracer in it\n");
}

void command_attach_help(FILE *to)
{
	fprintf(to, "hsnap attach, on Windows: loads the tracer into a process that runs\n");
}

void command_detach_help(FILE *to)
{
	fprintf(to, "hsnap detach, on Windows: takes the tracer out of a process\n");
}

void command_ust_help(FILE *to)
{
	fprintf(to,
		"hsnap ust, on Windows: lets the system record the stacks of an image's blocks\n");
}

void command_os_help(FILE *to)
{
	fprintf(to, "hsnap os, on Windows: switches the system's own recording of stacks\n");
}

void command_ps_help(FILE *to)
{
	fprintf(to, "hsnap ps, on Windows: lists processes and where their stacks come from\n");
}

void command_doctor_help(FILE *to)
{
	fprintf(to,
		"hsnap doctor, on Windows: finds out whether hsnap reads this system rightly\n");
}

int target_open_live(struct target *target, uint32_t pid, struct err *err)
{
	(void)target;
	(void)pid;
	return err_set(err, ERR_PLATFORM, "-p", NULL);
}
