#include "snapshot/command.h"

int command_ust(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return 2;
}

void command_ust_help(FILE *to)
{
	(void)to;
}
