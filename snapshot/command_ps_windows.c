#include "snapshot/command.h"

int command_ps(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return 2;
}

void command_ps_help(FILE *to)
{
	(void)to;
}
