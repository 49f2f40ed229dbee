/*
 * Reading dumps. The stacks of a trend's dumps go into a store, and each thread reads one file at a
 * time. Reading prints no messages.
 *
 * If a time window is requested, the heads of all files are read first. After that, a file is read
 * completely if it is in the window, or if its head is damaged or has no time. The rest of any other
 * file remains unknown, so such a file counts as undamaged.
 *
 * The window may depend on the time of the newest usable snapshot, so the newest file is always
 * read completely. If the newest file is damaged, the next newest file takes its place. */
#ifndef DIFF_READ_FILES_H
#define DIFF_READ_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"
#include "core/base/parse.h"
#include "core/dump/source.h"
#include "diff/file_list.h"
#include "diff/printed/printed.h"
#include "diff/read/dump_sums.h"
#include "diff/read/stack_store.h"

/*
 * Reads the process and time of a dump from its head: `pid`, `time_ms`, `start_ms`,
 * `has_wall_time`, and `image` (or the modules, if no image is recorded). The values are the same
 * as after sums_read() and sums_copy_banner(). Reads at most DUMP_HEAD_BYTES. Returns 0, or 1 if
 * the rest of the file may contain more of these values, or an error. A line that sums_read() would
 * skip is an error, -ERR_BAD_LINE. The caller must release `sums` even after an error. */
int sums_read_head(
	struct dump_sums *sums, const char *path, struct source *source, struct err *err);

#define READ_MAX 20000 /* a year of dumps, one every half hour */

struct read_file {
	const struct file_item *item;
	enum file_kind kind;
	int rc; /* 0: a complete dump; -ERR_CUT: a dump that is cut short; otherwise the error */
	struct err *err; /* NULL: no error */
	/* Valid if `rc` is 0 or -ERR_CUT; includes pid and time from a banner. */
	struct dump_sums sums;
	/* Only the head was read, because the dump is outside the window. `sums` contains only the
	 * process, the time and the path. */
	bool is_unread;
	bool is_log; /* a log of hsnap that was found beside dumps; `rc` is -ERR_NOT_DUMP */
	struct source *printed; /* open source of a printed comparison, or NULL */
	bool is_used; /* the caller moved `sums` away and left it empty */
};

struct time_filter {
	struct moment since, until;
	bool takes_damaged;
};

/*
 * Reads each item into the element of `files` with the same index. With a store, reads all items
 * except duplicates and moves their stacks to the store. Without a store, reads one item after
 * another, and stops after the first item that is not a dump. If this item is a printed comparison,
 * its source remains open in `printed`. The caller must release all files, even after an error, and
 * before the store. Returns 0, or -ERR_USAGE if more than READ_MAX files would be read
 * completely. */
int read_files(struct read_file *files, const struct file_item *items, size_t count,
	const struct time_filter *window, struct stack_store *store, struct err *err);
void read_files_release(struct read_file *files, size_t count);

/* Returns true if the file is a dump that is cut short or has malformed lines. */
bool read_file_is_damaged(const struct read_file *file);

#endif
