/*
 * The options that taking snapshots again and again has, by time or by growth: read, and checked against
 * each other.
 */
#ifndef SNAPSHOT_SERIES_OPTIONS_H
#define SNAPSHOT_SERIES_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/opt.h"
#include "snapshot/command/dump_options.h"
#include "snapshot/command/process_options.h"

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
		{OPT_SERIES_ALL, NULL, "all", NULL, "take each process of that name"},             \
	{                                                                                          \
		OPT_SERIES_LOG, NULL, "log", "FILE", "add a line to FILE for each thing said"      \
	}

struct series_request {
	struct process_choice process;
	const char *out, *log; /* what was not given is NULL */
	struct take take;
	int64_t every_ms; /* by time: 0 for once; by growth: between two looks */
	uint64_t growth_bytes; /* 0: by time */
	uint64_t file_count; /* 0: no end */
	size_t keep_count; /* SIZE_MAX: all */
	uint64_t keep_bytes; /* UINT64_MAX: all */
	bool waits, takes_all;
	const char *given; /* the last of these options that was given; NULL: none */
};

/* As it is without options. */
#define SERIES_REQUEST_INIT                                                                        \
	{                                                                                          \
		.keep_count = SIZE_MAX, .keep_bytes = UINT64_MAX                                   \
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

#endif
