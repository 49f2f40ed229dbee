#include "snapshot/command.h"

int command_doctor(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return 2;
}

void command_doctor_help(FILE *to)
{
	(void)to;
}
