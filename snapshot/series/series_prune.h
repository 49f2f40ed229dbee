/* Removing the oldest files of a series (series_files.h, which says which those are). */
#ifndef SNAPSHOT_SERIES_PRUNE_H
#define SNAPSHOT_SERIES_PRUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/folder.h"

/* So many heads are read at a time, of the last names; the others another time. */
#define PRUNE_HEADS_MAX 2000

struct series_limits {
	size_t keep_count; /* files; SIZE_MAX: any number */
	uint64_t keep_bytes; /* of all of them; UINT64_MAX: any */
};

struct series_warn {
	void (*warn)(void *ctx, const struct err *why);
	void *ctx;
};

/* What is known of a file. */
struct series_file {
	const char *name;
	uint64_t size_bytes;
	int64_t time_ms; /* when the dump was taken, as it says; known when is_of_series */
	int64_t order_ms; /* the same, made fit to this run's own order; known when there is a turn */
	/* Of those that this run has written: 2, 4 and so on; of others one less than that of the next that it
	 * wrote when they were seen. 0: not known. */
	uint64_t turn;
	bool is_read; /* its head: */
	bool is_of_series;
	bool was_warned_of;
};

struct series_prune {
	uint32_t pid;
	int64_t start_ms;
	struct series_limits limits;
	struct folder_list list; /* as it was last read; owns the names */
	struct series_file *files; /* those whose names fit, in the order of the list */
	size_t count;
	uint64_t turns; /* how many this run has written */
	bool has_last;
	int64_t last_ms; /* order_ms of the last of them, when it has_last */
	bool was_warned_of_newest;
};

/* What prune holds is zeros but for the first three. */
void series_prune_release(struct series_prune *prune);

/* folder is where the files are, with a separator behind it, or ""; last is the pattern's last part;
 * newest the name of the file that was just written. Returns as series_files_written(). */
int series_prune(struct series_prune *prune, const char *folder, const char *last,
	const char *newest, const struct series_warn *warn, struct err *err);

#endif
