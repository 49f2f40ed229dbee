/*
 * Reading dumps. The dumps of a trend go into a store, and each thread reads one file at a time. No
 * messages are printed during this.
 *
 * If a time window is requested, all heads are read first. A file whose head is outside the window
 * is not read further. The window may depend on the time of the newest usable snapshot. So the
 * newest file is always read whole. If it turns out to be damaged, the window depends on the next
 * newest one. Files outside the window count as sound, because the rest of them is unknown. A file
 * is read whole if its head is not sound or has no time. */
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
 * `has_wall_time`, and `image` or the modules in its place. Sets them like sums_read() and
 * sums_copy_banner(). Reads at most DUMP_HEAD_BYTES. Returns 0; 1 if more of these data may follow;
 * or an error. Returns -ERR_BAD_LINE where sums_read() would skip a line. The caller must release
 * `sums` even after an error. */
int sums_read_head(
	struct dump_sums *sums, const char *path, struct source *source, struct err *err);

#define READ_MAX 20000 /* a year of dumps, one every half hour */

struct read_file {
	const struct file_item *item;
	enum file_kind kind;
	int rc; /* 0: a whole dump; -ERR_CUT: a dump that is cut short; otherwise the error */
	struct err *err; /* NULL: no error */
	/* Valid if `rc` is 0 or -ERR_CUT; includes pid and time from a banner. */
	struct dump_sums sums;
	/* Only the head was read, because the dump is outside the window. `sums` has only the
	 * dump's process and time, and the item's path. */
	bool is_unread;
	bool is_log; /* a log of hsnap that was found beside dumps; `rc` is -ERR_NOT_DUMP */
	struct source *printed; /* open source of a printed comparison, or NULL */
	bool is_used; /* set by callers that move `sums` away; `sums` is then empty */
};

struct time_filter {
	struct moment since, until;
	bool takes_damaged;
};

/*
 * Reads each item into the element of `files` with the same index. The caller must release all
 * files, even after an error, before the store. With a store, which receives the stacks: reads all
 * items except doubles. Without a store: reads one item after another, up to the first that is not
 * a dump, and leaves a comparison open. Returns 0, or -ERR_USAGE if more than READ_MAX files would
 * be read whole. */
int read_files(struct read_file *files, const struct file_item *items, size_t count,
	const struct time_filter *window, struct stack_store *store, struct err *err);
void read_files_release(struct read_file *files, size_t count);

/* Returns true if the file is a dump that is cut short or has malformed lines. */
bool read_file_is_damaged(const struct read_file *file);

#endif
