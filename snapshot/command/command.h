/* The commands of hsnap, and options that several of them have. */
#ifndef SNAPSHOT_COMMAND_COMMAND_H
#define SNAPSHOT_COMMAND_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/base/opt.h"
#include "core/io/out.h"
#include "snapshot/capture/capture.h"
#include "snapshot/series/file_pattern.h"
#include "snapshot/series/series.h"

/*
 * What hsnap's commands share: their names, and taking one snapshot into one file.
 */

/* "hsnap NAME ...": argv[0] is the name. Each prints its own errors, and its help on --help, and
 * returns the exit status. */
int command_snapshot(int argc, char **argv);
int command_watch(int argc, char **argv);
int command_run(int argc, char **argv);
int command_attach(int argc, char **argv);
int command_record(int argc, char **argv);
/* Whether it is 'hsnap record --from LOG', which command_record() leaves to command_record_log(). */
bool command_is_of_log(int argc, char **argv);
int command_record_log(int argc, char **argv);
int command_mark(int argc, char **argv);
int command_detach(int argc, char **argv);
int command_ps(int argc, char **argv);
int command_schedule(int argc, char **argv);
int command_ust(int argc, char **argv);
int command_doctor(int argc, char **argv);

/* What only this system's hsnap is linked with, for --version: ", NAME VERSION" or nothing. */
const char *command_parts(void);

/* Prints an error as a line of hsnap's; returns the exit status for it. */
int command_fail(const struct err *err);

/* Prints the error -rc about a process and returns the exit status for it. For a 32-bit process, starts the 32-bit hsnap
 * with the same arguments instead and returns its exit status. */
int command_fail_or_delegate(int rc, uint32_t pid, struct err *err);

/* How a command is called. */
struct command_form {
	const char *usage; /* what --help prints above the options */
	const struct opt *options; /* HELP_OPTION among them */
	bool stops_at_argument; /* see struct opt_state */
	/* Takes an option or (OPT_ARGUMENT) an argument of the request: 0 or an error. */
	int (*set)(void *request, int id, const char *value, struct err *err);
};

#define OPT_COMMAND_HELP 400
#define HELP_OPTION                                                                                \
	{                                                                                          \
		OPT_COMMAND_HELP, "h", "help", NULL, "print this help"                             \
	}

/* Reads the words behind argv[0] into the request: 0; an error; 1 when help was asked for, and printed. */
int command_read(
	const struct command_form *form, int argc, char **argv, void *request, struct err *err);

struct snapshot_request {
	struct capture_options options;
	bool is_forced; /* to lack something is no error */
	bool is_verbose; /* say on standard error what was found */
	bool by_stack; /* one line for each stack and heap instead of one for each block */
	bool is_packed; /* the file, by gzip; whoever calls names it */
	bool makes_folders; /* that are missing in the file's path, which a pattern gave */
	bool is_new; /* -ERR_EXISTS instead of another file in the place of one */
	const struct out_names *names; /* of a new one, should its own be taken; NULL: none */
	void (*warn)(void *ctx,
		const char *line); /* says what the dump lacks; NULL: on standard error */
	void *warn_ctx;
};

/* What was written. */
struct snapshot_result {
	/* Without address space that is only reserved. */
	uint64_t block_count, requested_bytes;
	uint64_t stackless_count; /* of the blocks */
	bool has_reach; /* what leads to them was looked at: */
	uint64_t lost_count, lost_bytes; /* of the blocks, requested */
	int64_t held_ms;
};

/* Takes a snapshot of an open target and writes it to path (NULL: standard output). Warnings go to
 * standard error. On an interrupt meanwhile the target is let go. taken may be NULL. 0, or an
 * error; after -ERR_INCOMPLETE and -ERR_NO_HEAPS the file is there, and taken is filled. */
int snapshot_take(const struct snapshot_request *take, struct target *target, const char *path,
	struct snapshot_result *taken, struct err *err);

/* To be called once before snapshot_take(). */
void snapshot_guard_interrupts(void);

/*
 * -p and -pn: the one process that a command is about.
 */

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
 * -ERR_NO_PROCESS, -ERR_MANY (with a list, and none of them), -ERR_SYSTEM. */
int process_choose(
	const struct process_choice *choice, bool with_all, uint32_t *pid, struct err *err);

/* A pid as people write it: 0 or -ERR_USAGE. */
int process_pid_parse(const char *text, uint32_t *pid, struct err *err);

/*
 * What every command that writes a dump lets be said about it: its form, where its stacks come from, and
 * what the file is called.
 */

/* Their ids in a command's table; its own are below. */
enum {
	OPT_DUMP_STACKS = 200,
	OPT_DUMP_WALK,
	OPT_DUMP_LOST,
	OPT_DUMP_INTERIOR,
	OPT_DUMP_CONTENT,
	OPT_DUMP_BY_STACK,
	OPT_DUMP_GZIP,
	OPT_DUMP_OVERWRITE,
	OPT_DUMP_FORCE,
	OPT_DUMP_VERBOSE,
};

/* Rows of a command's table: of those that read a process as it is, all. */
#define LOST_OPTIONS                                                                               \
	{OPT_DUMP_LOST, "g", "lost", NULL, "find the blocks that nothing leads to"},               \
		{OPT_DUMP_INTERIOR, NULL, "interior", "yes|no",                                    \
			"whether a pointer into a block's middle counts (yes)"},                   \
	{                                                                                          \
		OPT_DUMP_CONTENT, NULL, "sample-content", "N",                                     \
			"write the first bytes of N blocks of each stack"                          \
	}
#define READ_OPTIONS                                                                               \
	{OPT_DUMP_STACKS, NULL, "stacks", "SOURCE", "where stacks come from: auto ust os tracer"}, \
		{OPT_DUMP_WALK, NULL, "walk", NULL,                                                \
			"hold the process while its heaps are walked"},                            \
		LOST_OPTIONS
#define OVERWRITE_OPTION                                                                           \
	{                                                                                          \
		OPT_DUMP_OVERWRITE, NULL, "overwrite", NULL,                                       \
			"replace any dump or recording that has the file's name"                   \
	}
#define DUMP_OPTIONS                                                                               \
	{OPT_DUMP_BY_STACK, NULL, "by-stack", NULL,                                                \
		"write one line for each stack and heap, not for each block"},                     \
		{OPT_DUMP_GZIP, NULL, "gzip", NULL, "compress the file; its name ends in .gz"},    \
		OVERWRITE_OPTION,                                                                  \
		{OPT_DUMP_FORCE, NULL, "force", NULL,                                              \
			"exit with 0 even if the snapshot is incomplete"},                         \
	{                                                                                          \
		OPT_DUMP_VERBOSE, "v", "verbose", NULL, "print on standard error what was found"   \
	}

/* Takes one of the options above: 0, or an error with *err filled. Any other id is returned as it is. */
int dump_option(struct snapshot_request *take, int id, const char *value, struct err *err);

/* Whether a packed dump may go to out (NULL: standard output), which the option (as "-f OUT") names: 0 or
 * -ERR_USAGE. */
int dump_check_out(
	const struct snapshot_request *take, const char *out, const char *option, struct err *err);

/* Returns OUT_OVERWRITE if path is a dump of hsnap's that another one may replace, as UMDH's do: it is of another process than
 * the target, or of the same moment. target NULL: the process is not started yet. Otherwise 0. */
unsigned dump_out_flags(const char *path, const struct target *target);

/* Adds what the file is called, by a pattern that was checked; a packed one's name ends in .gz. */
void dump_name_add(
	struct buf *path, const char *pattern, const struct file_names *names, bool is_packed);

/*
 * What run and attach let be said about the tracer's tables.
 */

/* A 32-bit program has little address space. */
#define TABLES_DEFAULT_BYTES ((uint64_t)(sizeof(void *) == 8 ? 4096 : 128) << 20)

/* --max-mb and --sample, each in bytes: 0, or -ERR_USAGE. */
int table_limit_parse(const char *text, uint64_t *bytes, struct err *err);
int table_sample_parse(const char *text, uint64_t *bytes, struct err *err);

/* Names of processes as people ask for them. */

/*
 * Whether name is as pattern says: with '*' (any text) or '?' (any one byte) in it all of name, else
 * some part of it. Letters of ASCII are alike in either case. Takes time in proportion to the product
 * of both lengths at worst.
 */
bool command_name_is_like(const char *name, const char *pattern);

/*
 * The options that taking snapshots again and again has, by time or by growth: read, and checked against
 * each other.
 */

/* Their ids in a command's table; its own are below. */
enum {
	OPT_SERIES_COUNT = 100,
	OPT_SERIES_KEEP,
	OPT_SERIES_MAX_BYTES,
	OPT_SERIES_ON_EXIT,
	OPT_SERIES_ALL,
	OPT_SERIES_LOG,
};

/* Their rows. */
#define SERIES_OPTIONS                                                                             \
	{OPT_SERIES_COUNT, NULL, "count", "N", "end after N files of each series"},                \
		{OPT_SERIES_KEEP, NULL, "keep", "N", "keep the newest N files of each series"},    \
		{OPT_SERIES_MAX_BYTES, NULL, "max-bytes", "SIZE",                                  \
			"keep the newest files of each series, up to SIZE (500M, 2G)"},            \
		{OPT_SERIES_ON_EXIT, NULL, "on-exit", "DO",                                        \
			"when the process ends: stop (the default) or wait for it"},               \
		{OPT_SERIES_ALL, NULL, "all", NULL, "take every process of that name"},            \
	{                                                                                          \
		OPT_SERIES_LOG, NULL, "log", "FILE", "append each message to FILE"                 \
	}

struct series_request {
	struct process_choice process;
	const char *out, *log; /* what was not given is NULL */
	struct snapshot_request take;
	int64_t every_ms; /* by time: 0 for once; by growth: between two looks */
	uint64_t growth_bytes; /* 0: by time */
	uint64_t file_count; /* 0: no end */
	struct series_limits limits;
	bool waits, takes_all;
	const char *given; /* the last of these options that was given; NULL: none */
};

/* As it is without options. */
#define SERIES_REQUEST_INIT                                                                        \
	{                                                                                          \
		.limits = { UINT64_MAX, UINT64_MAX }                                               \
	}

/* Takes one of the options above, or of those about the process and the dump: 0, or an error with *err
 * filled. */
int series_option(struct series_request *request, int id, const char *value, struct err *err);

/* --every and --poll, within their bounds; and --growth: 0 or -ERR_USAGE. */
int series_span_parse(const char *option, const char *text, int64_t *ms, struct err *err);
int series_growth_parse(const char *text, uint64_t *bytes, struct err *err);

/* Whether what was asked for fits together: 0 and which words are in the pattern (enum PATTERN_*), or
 * -ERR_USAGE. */
int series_check(const struct series_request *request, unsigned *words, struct err *err);

/* Whether the dump at path would be the log, too: it needs a file of its own. */
bool series_is_log(const struct series_request *request, const char *path);
#define SERIES_IS_LOG "it is the log, too"

/* Takes them: the exit status. All is said. */
int series_main(const struct series_request *request);

/* What 'hsnap ps' prints about processes. */

struct ps_row {
	uint32_t pid;
	unsigned bits; /* 0: the process could not be looked at */
	int64_t heap_count; /* -1: not known */
	/* Where they would come from: "tracer", "attached" (it was traced later), "ust", "none",
	 * "detached" (none any more); NULL: not known. */
	const char *stacks;
	uint64_t private_bytes; /* KEPT_UNKNOWN_BYTES: not known */
	int64_t start_ms; /* 0: not known */
	const char *name; /* hostile */
	const char *command_line; /* hostile; NULL: not known */
};

/* A header line, and one line for each row, in columns. Characters that a terminal would obey are
 * made harmless. On a terminal of so many columns a command line has no program, whose name stands before it, and
 * lines are cut to fit; 0: nothing is left out. */
void ps_print(FILE *to, const struct ps_row *rows, size_t count, unsigned columns);

/* Prints a line for each kind of process that could not be opened: those that hsnap has no right to open, 64-bit ones where
 * hsnap is 32-bit, and those that had exited. */
void ps_print_missing(FILE *to, size_t closed_count, size_t other_count, size_t ended_count);

#endif
