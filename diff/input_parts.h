/* The parts of inputs: listing the input files, and reading them. */
#ifndef DIFF_INPUT_PARTS_H
#define DIFF_INPUT_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/dump/source.h"
#include "diff/hdiff.h"
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

/*
 * Listing the input files: arguments may be files, folders, and patterns that no shell has
 * expanded.
 *
 * A folder stands for the files directly in it, except names that dumps do not have: "*.tmp" (still
 * being written), "*.log" and "*.log.1", and names that start with a dot. Links to files are
 * listed, even if their target is missing. Pipes and devices are not listed.
 *
 * A pattern has '*' or '?' in its last part, and is used if no file has exactly that name. It skips
 * "*.tmp" and "*.log", too, unless the pattern itself ends in them. Patterns ignore the case of
 * ASCII letters. FILE@MOMENT is a moment of a recording, if no file has the whole name. FILE ends
 * at the last '@' and may be a pattern. */

#define FILES_MAX 60000 /* a year of dumps, one every ten minutes */

struct file_item {
	const char *path; /* "-": standard input; FILE@MOMENT for a moment */
	const char *file; /* file to open: `path`, or FILE in FILE@MOMENT */
	struct recording_part part; /* part to read, if the file is a recording */
	bool is_found; /* found in a folder or by a pattern, not named */
	bool is_double; /* the path occurs earlier in the list */
	size_t twin; /* index of the earlier item */
};

struct file_list {
	struct file_item *items; /* in the order of the arguments, and within a folder by name */
	size_t count, cap;
	bool has_found; /* an argument was a folder or a pattern */
	struct arena arena; /* storage of found paths */
};

/* Fills `*list`, which the caller must release even after an error. `paths` must outlive the list.
 * Returns 0; -ERR_OPEN if a pattern matches nothing; -ERR_READ if a folder cannot be read;
 * -ERR_USAGE for more than FILES_MAX files. */
int file_list_make(struct file_list *list, const char *const *paths, size_t count, struct err *err);
void file_list_release(struct file_list *list);

/* Removes the items for which keep() returns false. `number` is the item's index before any
 * removal. */
void file_list_filter(struct file_list *list,
	bool (*keep)(const struct file_item *item, size_t number, void *ctx), void *ctx);

/* Finds the kind of a source. Sets `*words` to the reason for refusing the file, or NULL. Returns
 * 0, -ERR_EMPTY or -ERR_READ. */
int input_kind(const char *path, struct source *source, enum file_kind *kind, const char **words,
	struct err *err);

/* Returns true for a log that hsnap wrote, which begins with a time. */
bool input_is_log(struct source *source);

/*
 * Reading dumps. The dumps of a trend go into a store, and each thread reads one file at a time. No
 * messages are printed during this.
 *
 * If a time window is requested, all heads are read first. A file whose head is outside the window
 * is not read further. The window may depend on the time of the newest usable snapshot. So the
 * newest file is always read whole. If it turns out to be damaged, the window depends on the next
 * newest one. Files outside the window count as sound, because the rest of them is unknown. A file
 * is read whole if its head is not sound or has no time. */

/* Returns true if all files are printed comparisons, and there are two or more. */
bool chain_is(const struct file_list *list);

/* Reads printed comparisons into one dump for each moment. Each file must continue where the
 * previous one ends. Returns 0, -ERR_USAGE if the files do not join, or an error of
 * comparison_read(). */
int chain_read(struct inputs *inputs, const struct file_list *list, struct err *err);

/* Warns if limits are requested that cannot be checked against a printed comparison. */
void inputs_judge_printed(struct inputs *inputs, const struct comparison *comparison);

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
