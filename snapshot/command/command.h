/* The commands of hsnap, and the options that several of them share. */
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

/* Shared parts of hsnap's commands: their names, and taking one snapshot into one file. */

/* Run "hsnap NAME ...", where argv[0] is NAME. Each prints its own errors, and its help on --help,
 * and returns the exit status. */
int command_snapshot(int argc, char **argv);
int command_watch(int argc, char **argv);
int command_run(int argc, char **argv);
int command_attach(int argc, char **argv);
int command_record(int argc, char **argv);
/* Returns true for 'hsnap record --from LOG', which command_record() leaves to
 * command_record_log(). */
bool command_is_of_log(int argc, char **argv);
int command_record_log(int argc, char **argv);
int command_mark(int argc, char **argv);
int command_detach(int argc, char **argv);
int command_ps(int argc, char **argv);
int command_schedule(int argc, char **argv);
int command_ust(int argc, char **argv);
int command_doctor(int argc, char **argv);

/* Returns the libraries that only this system's hsnap is linked with, for --version: ", NAME
 * VERSION" or nothing. */
const char *command_parts(void);

/* Prints an error in one line. Returns the exit status for it. */
int command_fail(const struct err *err);

/* Prints the error -rc about a process and returns the exit status for it. For a 32-bit process,
 * starts the 32-bit hsnap with the same arguments instead and returns its exit status. */
int command_fail_or_delegate(int rc, uint32_t pid, struct err *err);

struct command_form {
	const char *usage; /* printed by --help above the options */
	const struct opt *options; /* including HELP_OPTION */
	bool stops_at_argument; /* see struct opt_state */
	/* Handles an option or (OPT_ARGUMENT) an argument. Returns 0 or an error. */
	int (*set)(void *request, int id, const char *value, struct err *err);
};

#define OPT_COMMAND_HELP 400
#define HELP_OPTION                                                                                \
	{                                                                                          \
		OPT_COMMAND_HELP, "h", "help", NULL, "print this help"                             \
	}

/* Parses the words after argv[0] into the request. Returns 0, an error, or 1 after printing the
 * help. */
int command_read(
	const struct command_form *form, int argc, char **argv, void *request, struct err *err);

struct snapshot_request {
	struct capture_options options;
	bool is_forced; /* incomplete data is no error */
	bool is_verbose; /* prints a report on standard error */
	bool by_stack; /* one line for each stack and heap instead of one for each block */
	bool is_packed; /* compresses the file by gzip; the caller names it */
	/* makes missing folders of the file's path, which came from a pattern */
	bool makes_folders;
	bool is_new; /* -ERR_EXISTS instead of replacing a file */
	const struct out_names *names; /* other names of a new file, if its own is taken; or NULL */
	void (*warn)(void *ctx,
		const char *line); /* prints a warning about the dump; NULL: on standard error */
	void *warn_ctx;
};

struct snapshot_result {
	/* without address space that is only reserved */
	uint64_t block_count, requested_bytes;
	uint64_t stackless_count; /* blocks without a stack */
	bool has_reach; /* pointers to the blocks were searched: */
	uint64_t lost_count, lost_bytes; /* blocks that nothing leads to; their requested bytes */
	int64_t held_ms;
};

/* Takes a snapshot of an open target and writes it to path (NULL: standard output). Prints warnings
 * on standard error. An interrupt meanwhile lets the target go. taken may be NULL. Returns 0 or an
 * error; after -ERR_INCOMPLETE and -ERR_NO_HEAPS the file exists, and taken is filled. */
int snapshot_take(const struct snapshot_request *take, struct target *target, const char *path,
	struct snapshot_result *taken, struct err *err);

/* Prepares snapshot_take() for interrupts. To be called once before it. */
void snapshot_guard_interrupts(void);

/* -p and -pn: the process that a command is about. */

/* Ids in a command's table; the command's own ids are below. */
enum {
	OPT_PROCESS_PID = 300,
	OPT_PROCESS_NAME,
};

/* Rows of these options; what is the verb before "this process", such as "trace". */
#define PROCESS_OPTIONS(what)                                                                      \
	{OPT_PROCESS_PID, "p", "pid", "PID", what " this process"},                                \
	{                                                                                          \
		OPT_PROCESS_NAME, "pn", "name", "NAME", what " the process with this image name"   \
	}

struct process_choice {
	const char *pid, *name; /* NULL: not given */
	unsigned count; /* number of times that a process was named */
};

/* Handles one of the options above. Returns 0 or -ERR_IMAGE_NAME (a path), or any other id
 * unchanged. */
int process_option(struct process_choice *choice, int id, const char *value, struct err *err);

/* Checks that one process was named, and once; place is the command, for messages. Returns 0 or
 * -ERR_USAGE. */
int process_choice_check(const struct process_choice *choice, const char *place, struct err *err);

/* Finds the process. with_all: the command also has --all. Returns 0 and *pid; -ERR_USAGE (not a
 * number), -ERR_NO_PROCESS, -ERR_MANY (with a list of them), -ERR_SYSTEM. */
int process_choose(
	const struct process_choice *choice, bool with_all, uint32_t *pid, struct err *err);

/* Parses a decimal pid. Returns 0 or -ERR_USAGE. */
int process_pid_parse(const char *text, uint32_t *pid, struct err *err);

/*
 * Options of every command that writes a dump: its form, the source of its stacks, and the name of
 * the file.
 */

/* Ids in a command's table; the command's own ids are below. */
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

/* Rows of a command's table. Commands that read a process as it is have them all. */
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

/* Handles one of the options above. Returns 0, or an error with *err filled, or any other id
 * unchanged. */
int dump_option(struct snapshot_request *take, int id, const char *value, struct err *err);

/* Checks that a compressed dump may go to out (NULL: standard output), which the option names (such
 * as "-f OUT"). Returns 0 or -ERR_USAGE. */
int dump_check_out(
	const struct snapshot_request *take, const char *out, const char *option, struct err *err);

/* Returns OUT_OVERWRITE if path is a dump of hsnap's that another one may replace, like UMDH's: a
 * dump of a process other than the target, or of the same moment. target NULL: the process is not
 * started yet. Otherwise returns 0. */
unsigned dump_out_flags(const char *path, const struct target *target);

/* Appends the file's name, by a pattern that was checked. A compressed file's name ends in .gz. */
void dump_name_add(
	struct buf *path, const char *pattern, const struct file_names *names, bool is_packed);

/* Options of run and attach about the tracer's tables. */

/* A 32-bit program has little address space. */
#define TABLES_DEFAULT_BYTES ((uint64_t)(sizeof(void *) == 8 ? 4096 : 128) << 20)

/* Parse --max-mb and --sample, each in bytes. Return 0 or -ERR_USAGE. */
int table_limit_parse(const char *text, uint64_t *bytes, struct err *err);
int table_sample_parse(const char *text, uint64_t *bytes, struct err *err);

/*
 * Returns true if name matches pattern: all of name if pattern contains '*' (any text) or '?' (any
 * one byte), otherwise a part of it. Ignores the case of ASCII letters. Takes time in proportion to
 * the product of both lengths at worst.
 */
bool command_name_is_like(const char *name, const char *pattern);

/*
 * Options of repeated snapshots, by time or by growth, which are also checked against each other.
 */

/* Ids in a command's table; the command's own ids are below. */
enum {
	OPT_SERIES_COUNT = 100,
	OPT_SERIES_KEEP,
	OPT_SERIES_MAX_BYTES,
	OPT_SERIES_ON_EXIT,
	OPT_SERIES_ALL,
	OPT_SERIES_LOG,
};

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
	const char *out, *log; /* NULL: not given */
	struct snapshot_request take;
	int64_t every_ms; /* by time: 0 for once; by growth: time between two looks */
	uint64_t growth_bytes; /* 0: by time */
	uint64_t file_count; /* 0: no end */
	struct series_limits limits;
	bool waits, takes_all;
	const char *given; /* the last of these options that was given, or NULL */
};

#define SERIES_REQUEST_INIT                                                                        \
	{                                                                                          \
		.limits = { UINT64_MAX, UINT64_MAX }                                               \
	}

/* Handles one of the options above, or an option of the process or the dump. Returns 0, or an error
 * with *err filled. */
int series_option(struct series_request *request, int id, const char *value, struct err *err);

/* Parse --every and --poll, within their bounds, and --growth. Return 0 or -ERR_USAGE. */
int series_span_parse(const char *option, const char *text, int64_t *ms, struct err *err);
int series_growth_parse(const char *text, uint64_t *bytes, struct err *err);

/* Checks that the options fit together. Returns 0 and the words of the pattern (enum PATTERN_*), or
 * -ERR_USAGE. */
int series_check(const struct series_request *request, unsigned *words, struct err *err);

/* Returns true if the dump at path would also be the log: a dump needs a file of its own. */
bool series_is_log(const struct series_request *request, const char *path);
#define SERIES_IS_LOG "it is the log, too"

/* Takes the series. Returns the exit status; all messages are printed then. */
int series_main(const struct series_request *request);

/* Rows of 'hsnap ps'. */

struct ps_row {
	uint32_t pid;
	unsigned bits; /* 0: the process could not be opened */
	int64_t heap_count; /* -1: unknown */
	/* Source of its stacks: "tracer", "attached" (traced later), "ust", "none", "detached"
	 * (none any more); NULL: unknown. */
	const char *stacks;
	uint64_t private_bytes; /* KEPT_UNKNOWN_BYTES: unknown */
	int64_t start_ms; /* 0: unknown */
	const char *name; /* hostile */
	const char *command_line; /* hostile; NULL: unknown */
};

/* Prints a header line, and one line for each row, in columns. Makes characters harmless that a
 * terminal would obey. With columns of a terminal, the command line lacks the program, whose name
 * precedes it, and lines are cut to fit; 0: nothing is left out. */
void ps_print(FILE *to, const struct ps_row *rows, size_t count, unsigned columns);

/* Prints a line for each kind of process that could not be opened: those that hsnap has no right to
 * open, 64-bit ones if hsnap is 32-bit, and those that had exited. */
void ps_print_missing(FILE *to, size_t closed_count, size_t other_count, size_t ended_count);

#endif
