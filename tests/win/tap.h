/* TAP: the output of tests under Wine. */
#ifndef TESTS_WIN_TAP_H
#define TESTS_WIN_TAP_H

#include <stdbool.h>
#include <stdio.h>

static int ok_count, ok_failed;

static inline bool ok(bool good, const char *what)
{
	ok_count++;
	ok_failed += !good;
	printf("%sok %d - %s\n", good ? "" : "not ", ok_count, what);
	fflush(stdout);
	return good;
}

/* Prints the plan; returns the program's status. */
static inline int ok_end(void)
{
	printf("1..%d\n", ok_count);
	return ok_failed != 0;
}

#endif
