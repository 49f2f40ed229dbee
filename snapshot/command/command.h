/* The commands of hsnap, and the options that several commands share. */
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
#include "snapshot/capture/snapshot_file.h"
#include "snapshot/series/file_pattern.h"
#include "snapshot/series/series.h"

/* Run "hsnap NAME ..."; argv[0] is NAME. Each command prints its own errors, prints its help if
 * --help is given, and returns the exit status. */
int command_snapshot(int argc, char **argv);
int command_watch(int argc, char **argv);
int command_run(int argc, char **argv);
int command_attach(int argc, char **argv);
int command_record(int argc, char **argv);
/* Returns true for 'hsnap record --from LOG'. command_record_log() handles this form instead of
 * command_record(). */
bool command_is_of_log(int argc, char **argv);
int command_record_log(int argc, char **argv);
int command_mark(int argc, char **argv);
int command_detach(int argc, char **argv);
int command_ps(int argc, char **argv);
int command_schedule(int argc, char **argv);
int command_ust(int argc, char **argv);
int command_doctor(int argc, char **argv);

/* Returns the additional libraries of hsnap on this system, for --version: ", NAME VERSION", or an
 * empty string. */
const char *command_parts(void);

/* Prints an error in one line. Returns the exit status for the error. */
int command_fail(const struct err *err);

/* Prints the error `-rc` about a process and returns the exit status for it. If the process is
 * 32-bit, starts the 32-bit hsnap with the same arguments instead, and returns its exit status. */
int command_fail_or_delegate(int rc, uint32_t pid, struct err *err);

struct command_form {
	const char *usage; /* text that --help prints above the options */
	const struct opt *options; /* must include HELP_OPTION */
	bool stops_at_argument; /* see struct opt_state */
	/* Handles an option, or an argument (OPT_ARGUMENT). Returns 0 or an error. */
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

/* -p and -pn: the process that a command works on. */

/* Ids of these options in a command's table. The ids of the command's own options are lower. */
enum {
	OPT_PROCESS_PID = 300,
	OPT_PROCESS_NAME,
};

/* Rows of these options. `what` is the verb before "this process", such as "trace". */
#define PROCESS_OPTIONS(what)                                                                      \
	{OPT_PROCESS_PID, "p", "pid", "PID", what " this process"},                                \
	{                                                                                          \
		OPT_PROCESS_NAME, "pn", "name", "NAME", what " the process with this image name"   \
	}

struct process_choice {
	const char *pid, *name; /* NULL: not given */
	unsigned count; /* number of options that name a process */
};

/* Handles one of the options above. Returns 0 or -ERR_IMAGE_NAME (the name is a path). Returns
 * other ids unchanged. */
int process_option(struct process_choice *choice, int id, const char *value, struct err *err);

/* Checks that exactly one option names a process. `place` is the name of the command, for messages.
 * Returns 0 or -ERR_USAGE. */
int process_choice_check(const struct process_choice *choice, const char *place, struct err *err);

/* Finds the process. `with_all`: the command also has --all. Returns 0 and `*pid`; -ERR_USAGE (not
 * a number), -ERR_NO_PROCESS, -ERR_MANY (several processes, which the error lists) or
 * -ERR_SYSTEM. */
int process_choose(
	const struct process_choice *choice, bool with_all, uint32_t *pid, struct err *err);

/* Parses a decimal pid. Returns 0 or -ERR_USAGE. */
int process_pid_parse(const char *text, uint32_t *pid, struct err *err);

/* Options of every command that writes a dump: the dump's format, the source of its stacks, and the
 * file's name. */

/* Ids of these options in a command's table. The ids of the command's own options are lower. */
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

/* Rows of a command's table. Commands that read a process without running it have all of these
 * rows. */
#define LOST_OPTIONS                                                                               \
	{OPT_DUMP_LOST, "g", "lost", NULL, "find the blocks that nothing points to"},              \
		{OPT_DUMP_INTERIOR, NULL, "interior", "yes|no",                                    \
			"count pointers into a block's middle (default: yes)"},                    \
	{                                                                                          \
		OPT_DUMP_CONTENT, NULL, "sample-content", "N",                                     \
			"write the first bytes of N blocks of each stack"                          \
	}
#define READ_OPTIONS                                                                               \
	{OPT_DUMP_STACKS, NULL, "stacks", "SOURCE",                                                \
		"source of the stacks: auto (the default), ust or tracer"},                        \
		{OPT_DUMP_WALK, NULL, "walk", NULL,                                                \
			"hold the process while its heaps are walked"},                            \
		LOST_OPTIONS
#define OVERWRITE_OPTION                                                                           \
	{                                                                                          \
		OPT_DUMP_OVERWRITE, NULL, "overwrite", NULL, "replace any file of the same name"   \
	}
#define DUMP_OPTIONS                                                                               \
	{OPT_DUMP_BY_STACK, NULL, "by-stack", NULL,                                                \
		"write one line for each stack and heap, not for each block"},                     \
		{OPT_DUMP_GZIP, NULL, "gzip", NULL, "compress the file, and add .gz to its name"}, \
		OVERWRITE_OPTION,                                                                  \
		{OPT_DUMP_FORCE, NULL, "force", NULL,                                              \
			"exit with 0 even if the snapshot is incomplete"},                         \
	{                                                                                          \
		OPT_DUMP_VERBOSE, "v", "verbose", NULL,                                            \
			"print figures of the snapshot on standard error"                          \
	}

/* Handles one of the options above. Returns 0, or an error and sets *err. Returns other ids
 * unchanged. */
int dump_option(struct snapshot_request *take, int id, const char *value, struct err *err);

/* Checks whether a compressed dump may be written to `out` (NULL: standard output). `option` is the
 * option that specifies `out`, such as "-f OUT". Returns 0 or -ERR_USAGE. */
int dump_check_out(
	const struct snapshot_request *take, const char *out, const char *option, struct err *err);

/* Appends the name of the file, made from a pattern that was checked before. The name of a
 * compressed file ends in .gz. */
void dump_name_add(
	struct buf *path, const char *pattern, const struct file_names *names, bool is_packed);

/* Options of run and attach that concern the tracer's tables. */

/* The 32-bit value is lower because a 32-bit program has little address space. */
#define TABLES_DEFAULT_BYTES ((uint64_t)(sizeof(void *) == 8 ? 4096 : 128) << 20)

/* Parse --max-mb and --sample. The results are in bytes. Return 0 or -ERR_USAGE. */
int table_limit_parse(const char *text, uint64_t *bytes, struct err *err);
int table_sample_parse(const char *text, uint64_t *bytes, struct err *err);

/*
 * Returns true if `name` matches `pattern`. A pattern that contains '*' (any text) or '?' (any one
 * byte) must match the whole name; any other pattern must match a part of the name. Ignores the
 * case of ASCII letters. In the worst case, takes time proportional to the product of both lengths.
 */
bool command_name_is_like(const char *name, const char *pattern);

/* Options of repeated snapshots, which are triggered by time or by growth. This part also checks
 * that the options fit together. */

/* Ids of these options in a command's table. The ids of the command's own options are lower. */
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
			"when the process ends: stop (the default), or wait for a new one"},       \
		{OPT_SERIES_ALL, NULL, "all", NULL,                                                \
			"take a snapshot of every process with that name"},                        \
	{                                                                                          \
		OPT_SERIES_LOG, NULL, "log", "FILE", "append each message to FILE"                 \
	}

struct series_request {
	struct process_choice process;
	const char *out, *log; /* NULL: not given */
	struct snapshot_request take;
	/* triggered by time: interval, or 0 for a single snapshot; triggered by growth: time
	 * between two checks */
	int64_t every_ms;
	uint64_t growth; /* 0: triggered by time */
	enum balance_figure growth_figure;
	uint64_t file_count; /* 0: unlimited */
	struct series_limits limits;
	bool waits, takes_all;
	const char *given; /* last option of this series that was given, or NULL */
};

#define SERIES_REQUEST_INIT                                                                        \
	{                                                                                          \
		.limits = { UINT64_MAX, UINT64_MAX }                                               \
	}

/* Handles one of the options above, or an option of the process or the dump. Returns 0, or an error
 * and sets *err. */
int series_option(struct series_request *request, int id, const char *value, struct err *err);

/* Parse --every and --poll, which must be within their bounds, and --growth. Return 0 or
 * -ERR_USAGE. */
int series_span_parse(const char *option, const char *text, int64_t *ms, struct err *err);
int series_growth_parse(
	const char *text, enum balance_figure *figure, uint64_t *growth, struct err *err);

/* Checks the options against each other. Returns 0 and the words used in the pattern (enum
 * PATTERN_*), or -ERR_USAGE. */
int series_check(const struct series_request *request, unsigned *words, struct err *err);

/* Returns true if the dump would be written to the same file as the log. A dump needs its own
 * file. */
bool series_is_log(const struct series_request *request, const char *path);
#define SERIES_IS_LOG "also the log"

/* Takes the series. Prints all messages and returns the exit status. */
int series_main(const struct series_request *request);

/* Rows of 'hsnap ps'. */

struct ps_row {
	uint32_t pid;
	unsigned bits; /* 0: the process could not be opened */
	/* -1: not known */
	int64_t heap_count, thread_count, handle_count, gdi_count;
	/* Source of the stacks of the process: "tracer", "attached" (traced after its start),
	 * "ust", "none", or "detached" (no longer traced). NULL: not known. */
	const char *stacks;
	uint64_t private_bytes; /* KEPT_UNKNOWN_BYTES: not known */
	int64_t start_ms; /* 0: not known */
	const char *name; /* untrusted */
	const char *command_line; /* untrusted; NULL: not known */
};

/*
 * Prints a header line and one line per row, in columns. Omits the column of GDI objects if no row
 * knows their number. Narrow terminals get short start times; `now_ms` decides between time and
 * date. Replaces characters that would control a
 * terminal. `columns` is the width of the terminal, or 0 if lines may have any length. If it is not
 * 0, cuts lines to fit, and prints the command line without its first word, because the name of the
 * program already precedes it.
 */
void ps_print(FILE *to, const struct ps_row *rows, size_t count, unsigned columns, int64_t now_ms);

/* Prints a line for each kind of process that could not be opened: processes that hsnap has no
 * right to open, 64-bit processes if hsnap is 32-bit, and processes that had exited. */
void ps_print_missing(FILE *to, size_t closed_count, size_t other_count, size_t ended_count);

#endif
