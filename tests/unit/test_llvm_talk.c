/* What is asked of llvm-symbolizer, and how long it is waited for. A script of this test runs in its place
 * and answers what arithmetic says. */
#include "tests/unit/t.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbolize/backend/llvm.h"

#define COUNT 20000
#define PATH_BYTES 900
#define MOST_BYTES (2 << 20) /* of questions that wait; all are 18 MB */

static char dir[PATH_MAX], program[PATH_MAX + 10];

static int make_dir(void **state)
{
	char name[400];

	(void)state;
	snprintf(name, sizeof(name), "%s/test_llvm_talk.XXXXXX",
		getenv("TMPDIR") ? getenv("TMPDIR") : "build");
	if (!mkdtemp(name) || !realpath(name, dir))
		return -1;
	snprintf(program, sizeof(program), "%s/helper", dir);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	unlink(program);
	return rmdir(dir);
}

static void write_program(const char *script)
{
	FILE *file = fopen(program, "w");

	assert_non_null(file);
	assert_true(fputs(script, file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(program, 0755), 0);
}

/* ctx counts how often it is asked; the third time it stops. */
static bool stop_third(void *ctx)
{
	unsigned *asked = ctx;

	return ++*asked == 3;
}

TEST(the_listener_can_stop_the_wait_for_a_version)
{
	unsigned asked = 0;
	struct symbol_options options = {.listener = {.ctx = &asked, .is_cancelled = stop_third}};

	write_program("#!/bin/sh\nexec sleep 30\n");
	assert_int_equal(llvm_program_version(program, &options), 0);
	assert_int_equal(asked, 3);
}

struct batches {
	struct llvm_talk talk;
	size_t taken, most_bytes;
};

static int take(void *ctx, struct lookup *lookup, const struct llvm_frame *frames, size_t count)
{
	struct batches *batches = ctx;
	size_t bytes = batches->talk.questions.cap;

	assert_int_equal(count, 1);
	assert_int_equal(strtoull(frames[0].function + 1, NULL, 16), lookup->rva);
	batches->taken++;
	if (bytes > batches->most_bytes)
		batches->most_bytes = bytes;
	return 0;
}

/* Each holds the whole path, so they are not all made before the first is answered. */
TEST(questions_are_made_as_they_are_sent)
{
	static const char *const no_args[] = {NULL};
	static const struct symbol_options options;
	static struct lookup lookups[COUNT];
	static char file[PATH_BYTES + 1];
	struct batches batches = {.talk = {.options = &options,
					  .module = "m",
					  .file = file,
					  .lookups = lookups,
					  .count = COUNT,
					  .patience_ms = 20000,
					  .take = take,
					  .ctx = &batches}};

	memset(file, 'p', PATH_BYTES);
	for (uint32_t i = 0; i < COUNT; i++)
		lookups[i].rva = 3 * i;
	write_program("#!/usr/bin/perl\n$| = 1;\n"
		      "while (<STDIN>) {\n"
		      "\tprint \"$1\\nf$1\\n  Filename: s.c\\n  Line: 7\\n\\n\" if / (0x\\w+)$/;\n"
		      "}\n");
	batches.talk.helper = helper_start(program, no_args);
	assert_non_null(batches.talk.helper);
	assert_int_equal(llvm_talk(&batches.talk), 0);
	helper_stop(batches.talk.helper);
	assert_int_equal(batches.taken, COUNT);
	assert_in_range(batches.most_bytes, 1, MOST_BYTES);
}

GROUP(make_dir, remove_dir)
