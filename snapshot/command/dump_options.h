/*
 * What every command that writes a dump lets be said about it: its form, where its stacks come from, and
 * what the file is called.
 */
#ifndef SNAPSHOT_DUMP_OPTIONS_H
#define SNAPSHOT_DUMP_OPTIONS_H

#include <stdbool.h>

#include "core/buf.h"
#include "core/opt.h"
#include "snapshot/command/command.h"
#include "snapshot/series/file_pattern.h"

/* Their ids in a command's table; its own are below. */
enum {
	OPT_DUMP_STACKS = 200,
	OPT_DUMP_BY_STACK,
	OPT_DUMP_GZIP,
	OPT_DUMP_FORCE,
	OPT_DUMP_VERBOSE,
};

/* Rows of a command's table: of those that read a process as it is, both. */
#define STACKS_OPTION                                                                              \
	{                                                                                          \
		OPT_DUMP_STACKS, NULL, "stacks", "SOURCE",                                         \
			"where stacks come from: auto ust os tracer"                               \
	}
#define DUMP_OPTIONS                                                                               \
	{OPT_DUMP_BY_STACK, NULL, "by-stack", NULL,                                                \
		"one line for each stack and heap, not for each block"},                           \
		{OPT_DUMP_GZIP, NULL, "gzip", NULL, "pack the file; its name ends in .gz"},        \
		{OPT_DUMP_FORCE, NULL, "force", NULL,                                              \
			"an incomplete snapshot is no error: status 0"},                           \
	{                                                                                          \
		OPT_DUMP_VERBOSE, "v", "verbose", NULL, "say on standard error what was found"     \
	}

/* Takes one of the options above: 0, or an error with *err filled. Any other id is returned as it is. */
int dump_option(struct take *take, int id, const char *value, struct err *err);

/* Whether a packed dump may go to out (NULL: standard output), which the option (as "-f OUT") names: 0 or
 * -ERR_USAGE. */
int dump_check_out(const struct take *take, const char *out, const char *option, struct err *err);

/* Adds what the file is called, by a pattern that was checked; a packed one's name ends in .gz. 0 or
 * -ERR_NOMEM. */
int dump_name_add(
	struct buf *path, const char *pattern, const struct file_names *names, bool is_packed);

#endif
