/*
 * Tests in plain C: each test is a mark in hsnap's recording.
 *
 *	hsnap record -o run.hrec -- plain_marks.exe
 *	hdiff --by-mark run.hrec
 *
 * The other tests keep nothing:
 *
 * truth: parse_long keeps 20 blocks of 100 bytes in leak_node
 * truth: fill_cache keeps 3 blocks of 5000 bytes in leak_page
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <hsnap-mark.h>

#define NOINLINE __attribute__((noinline))

static void *volatile leaked; /* so that compilers keep the allocations */

static NOINLINE void leak_node(void)
{
	leaked = malloc(100);
}

static NOINLINE void leak_page(void)
{
	leaked = malloc(5000);
}

static bool parse_short(void)
{
	leaked = malloc(77);
	free(leaked);
	return true;
}

static bool parse_long(void)
{
	for (volatile int i = 0; i < 20; i++)
		leak_node();
	return true;
}

static bool fill_cache(void)
{
	for (volatile int i = 0; i < 3; i++)
		leak_page();
	return true;
}

static bool empty_cache(void)
{
	leaked = malloc(1234);
	free(leaked);
	return true;
}

int main(void)
{
	static const struct {
		const char *name;
		bool (*run)(void);
	} tests[] = {
		{"parse_short", parse_short},
		{"parse_long", parse_long},
		{"fill_cache", fill_cache},
		{"empty_cache", empty_cache},
	};
	int failures = 0;

	for (unsigned i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		hsnap_mark(tests[i].name);
		if (!tests[i].run()) {
			printf("%s failed\n", tests[i].name);
			failures++;
		}
	}
	hsnap_mark("(end)");
	return failures != 0;
}
