/*
 * What hsnap's commands share: their names, and taking one snapshot into one file.
 */
#ifndef SNAPSHOT_COMMAND_H
#define SNAPSHOT_COMMAND_H

#include <stdbool.h>

#include "snapshot/capture.h"

/* "hsnap NAME ...": argv[0] is the name. Each prints its own errors and returns the exit status. */
int command_run(int argc, char **argv);
int command_attach(int argc, char **argv);
int command_detach(int argc, char **argv);
int command_ust(int argc, char **argv);
int command_os(int argc, char **argv);
int command_ps(int argc, char **argv);
int command_doctor(int argc, char **argv);

/* Each prints how it is used, and its options. */
void command_run_help(FILE *to);
void command_attach_help(FILE *to);
void command_detach_help(FILE *to);
void command_ust_help(FILE *to);
void command_os_help(FILE *to);
void command_ps_help(FILE *to);
void command_doctor_help(FILE *to);

/* Prints an error as a line of hsnap's; returns the exit status for it. */
int command_fail(const struct err *err);

struct take {
	struct capture_options options;
	bool is_verbose; /* say on standard error what was found */
};

/* Takes a snapshot of an open target and writes it to path (NULL: standard output). Warnings go to
 * standard error. On an interrupt meanwhile the target is let go. 0, or an error. */
int take(const struct take *take, struct target *target, const char *path, struct err *err);

/* To be called once before take(). */
void take_guard_interrupts(void);

#endif
