/*
 * The name of a file for each process: in a pattern {name} stands for what its program is called,
 * without the folder and ".exe", {pid} for its number, and {{ for a brace.
 */
#ifndef SNAPSHOT_OUT_PATTERN_H
#define SNAPSHOT_OUT_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"

/* Returns 0 and whether the names of two processes differ; -ERR_USAGE: it has another word in braces,
 * or a brace that is not closed. */
int out_pattern_check(const char *pattern, bool *has_pid, struct err *err);

/* Adds the name for the process whose image is the file program, in whatever folder; the pattern has
 * been checked. 0 or -ERR_NOMEM. */
int out_pattern_add(struct buf *path, const char *pattern, const char *program, uint32_t pid);

#endif
