/* stand_in [ARG...]: stands in for a program that another program starts. It prints its arguments
 * in brackets and the first line of its input, and ends with status 77. */
#include <stdio.h>

int main(int argc, char **argv)
{
	char line[100];

	for (int i = 1; i < argc; i++)
		printf("[%s]\n", argv[i]);
	if (fgets(line, sizeof(line), stdin))
		fputs(line, stdout);
	return 77;
}
