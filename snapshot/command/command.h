/*
 * What hsnap's commands share: their names, and taking one snapshot into one file.
 */
#ifndef SNAPSHOT_COMMAND_H
#define SNAPSHOT_COMMAND_H

#include <stdbool.h>

#include "core/out.h"
#include "snapshot/capture.h"

/* "hsnap NAME ...": argv[0] is the name. Each prints its own errors, and its help on --help, and
 * returns the exit status. */
int command_snapshot(int argc, char **argv);
int command_watch(int argc, char **argv);
int command_run(int argc, char **argv);
int command_attach(int argc, char **argv);
int command_detach(int argc, char **argv);
int command_ps(int argc, char **argv);
int command_schedule(int argc, char **argv);
int command_ust(int argc, char **argv);
int command_os(int argc, char **argv);
int command_doctor(int argc, char **argv);

/* Prints an error as a line of hsnap's; returns the exit status for it. */
int command_fail(const struct err *err);

struct take {
	struct capture_options options;
	bool is_forced; /* to lack something is no error */
	bool is_verbose; /* say on standard error what was found */
	bool by_stack; /* one line for each stack and heap instead of one for each block */
	bool is_packed; /* the file, by gzip; whoever calls names it */
	bool is_new; /* -ERR_EXISTS instead of another file in the place of one */
	const struct out_names *names; /* of a new one, should its own be taken; NULL: none */
	void (*warn)(void *ctx,
		const char *line); /* says what the dump lacks; NULL: on standard error */
	void *warn_ctx;
};

/* What was written. */
struct taken {
	uint64_t block_count, requested_bytes; /* without address space that is only reserved */
	int64_t held_ms;
};

/* Takes a snapshot of an open target and writes it to path (NULL: standard output). Warnings go to
 * standard error. On an interrupt meanwhile the target is let go. taken may be NULL. 0, or an
 * error; after -ERR_INCOMPLETE and -ERR_NO_HEAPS the file is there, and taken is filled. */
int take(const struct take *take, struct target *target, const char *path, struct taken *taken,
	struct err *err);

/* To be called once before take(). */
void take_guard_interrupts(void);

#endif
