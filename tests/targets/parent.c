/* parent STATUS [PROGRAM STATUS...]: leaks STATUS blocks of 77 bytes in parent_leak, prints "parent
 * STATUS pid P", starts PROGRAM with the remaining words, and waits for it. Ends with STATUS, or
 * with 99 if the child's status was wrong. */
#include <stdio.h>
#include <stdlib.h>

#include "samples/step.h"

#define BYTES 77
#define CHILD_FAILED 99

static NOINLINE void parent_leak(void)
{
	step_leak(malloc(BYTES));
}

static int start_child(int count, char **words)
{
	STARTUPINFOA startup = {.cb = sizeof(startup)};
	PROCESS_INFORMATION info;
	static char line[4096];
	size_t len = 0;
	DWORD status;

	for (int i = 0; i < count; i++)
		len += (size_t)snprintf(line + len, sizeof(line) - len, "\"%s\" ", words[i]);
	if (!CreateProcessA(words[0], line, NULL, NULL, TRUE, 0, NULL, NULL, &startup, &info)) {
		fprintf(stderr, "parent: %s: error %lu\n", words[0], GetLastError());
		return -1;
	}
	WaitForSingleObject(info.hProcess, INFINITE);
	return GetExitCodeProcess(info.hProcess, &status) ? (int)status : -1;
}

int main(int argc, char **argv)
{
	int status = argc > 1 ? atoi(argv[1]) : CHILD_FAILED;

	for (volatile int i = 0; i < status; i++)
		parent_leak();
	printf("parent %d pid %lu\n", status, GetCurrentProcessId());
	fflush(stdout);
	if (argc > 3 && start_child(argc - 2, argv + 2) != atoi(argv[3]))
		return CHILD_FAILED;
	return status;
}
