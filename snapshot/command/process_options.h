/*
 * -p and -pn: the one process that a command is about.
 */
#ifndef SNAPSHOT_PROCESS_OPTIONS_H
#define SNAPSHOT_PROCESS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/opt.h"

/* Their ids in a command's table; its own are below. */
enum {
	OPT_PROCESS_PID = 300,
	OPT_PROCESS_NAME,
};

/* Their rows; what is done with it, as "trace", stands in front of "this process". */
#define PROCESS_OPTIONS(what)                                                                      \
	{OPT_PROCESS_PID, "p", "pid", "PID", what " this process"},                                \
	{                                                                                          \
		OPT_PROCESS_NAME, "pn", "name", "NAME", what " the process with this image name"   \
	}

struct process_choice {
	const char *pid, *name; /* what was not given is NULL */
	unsigned count; /* how often one was named */
};

/* Takes one of the options above: 0, or -ERR_IMAGE_NAME (a path). Any other id is returned as it is. */
int process_option(struct process_choice *choice, int id, const char *value, struct err *err);

/* Whether one was named, and once; place is the command, for messages. 0 or -ERR_USAGE. */
int process_choice_check(const struct process_choice *choice, const char *place, struct err *err);

/* Finds it. with_all: the command has --all, too. Returns 0 and *pid; -ERR_USAGE (no number),
 * -ERR_NO_PROCESS, -ERR_MANY (with a list, and none of them), -ERR_SYSTEM, -ERR_NOMEM. */
int process_choose(
	const struct process_choice *choice, bool with_all, uint32_t *pid, struct err *err);

/* A pid as people write it: 0 or -ERR_USAGE. */
int process_pid_parse(const char *text, uint32_t *pid, struct err *err);

#endif
