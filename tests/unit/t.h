/* Macros of unit tests. TEST(name) { ... } is a test; the program runs the tests of its file in
 * order. TEST_WITH(name, begin, end) adds a fixture. TEST_AROUND, a pair defined above the first
 * test, is a fixture for all tests of a file. GROUP(begin, end) is a fixture for the whole
 * program. */
#ifndef TESTS_UNIT_T_H
#define TESTS_UNIT_T_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct CMUnitTest t_all[100];
static size_t t_count;
static CMFixtureFunction t_begin, t_end;

#define TEST_AROUND NULL, NULL
#define TEST(name) TEST_WITH(name, TEST_AROUND)
#define TEST_WITH(name, ...)                                                                       \
	static void name(void **state);                                                            \
	__attribute__((constructor)) static void t_add_##name(void)                                \
	{                                                                                          \
		t_all[t_count++] = (struct CMUnitTest){#name, name, __VA_ARGS__, NULL};            \
	}                                                                                          \
	static void name(void **state __attribute__((unused)))
#define GROUP(begin, end)                                                                          \
	__attribute__((constructor)) static void t_group(void)                                     \
	{                                                                                          \
		t_begin = begin;                                                                   \
		t_end = end;                                                                       \
	}

int main(void)
{
	return _cmocka_run_group_tests(__FILE__, t_all, t_count, t_begin, t_end);
}

#endif
