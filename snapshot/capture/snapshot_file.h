/* One snapshot of a target, written to one file. */
#ifndef SNAPSHOT_CAPTURE_SNAPSHOT_FILE_H
#define SNAPSHOT_CAPTURE_SNAPSHOT_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/io/out.h"
#include "snapshot/capture/capture.h"

struct snapshot_request {
	struct capture_options options;
	bool is_forced; /* incomplete data does not count as an error */
	bool is_verbose; /* prints a report to standard error */
	bool by_stack; /* one line for each stack and heap instead of one for each block */
	bool is_packed; /* compresses the file with gzip; the caller chooses its name accordingly */
	/* creates missing folders in the path, which was made from a pattern */
	bool makes_folders;
	bool is_new; /* returns -ERR_EXISTS instead of replacing a file */
	/* names to try if the name of a new file already exists, or NULL */
	const struct out_names *names;
	void (*warn)(void *ctx,
		const char *line); /* prints a warning about the dump; NULL: to standard error */
	void *warn_ctx;
};

struct snapshot_result {
	/* reserved address space is not included */
	uint64_t block_count, requested_bytes;
	uint64_t stackless_count; /* number of blocks without a stack */
	/* hsnap has searched for pointers to the blocks, so the next two fields are valid */
	bool has_reach;
	/* number and requested bytes of the blocks to which no pointer leads */
	uint64_t lost_count, lost_bytes;
	int64_t held_ms;
};

/*
 * Takes a snapshot of an open target and writes it to `path` (NULL: standard output). Prints
 * warnings to standard error. An interrupt during the snapshot releases the target. `taken` may be
 * NULL. Returns 0 or an error. After -ERR_INCOMPLETE and -ERR_NO_HEAPS, the file exists and
 * `*taken` is set.
 */
int snapshot_capture(const struct snapshot_request *take, struct target *target, const char *path,
	struct snapshot_result *taken, struct err *err);

/* Prepares snapshot_capture() for interrupts. Must be called once, before snapshot_capture(). */
void snapshot_guard_interrupts(void);

/*
 * Returns OUT_OVERWRITE if `path` is a dump that may be replaced, as UMDH does; otherwise 0. The
 * file must have been written by hsnap. It must also be a dump of another process than the target,
 * or of the same moment. `target` is NULL if the process has not been started yet.
 */
unsigned snapshot_out_flags(const char *path, const struct target *target);

#endif
