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
 * Reads from a dump's head its process and time: pid, time_ms, start_ms, image or the modules in
 * its place, and has_wall_time, as sums_read() and sums_take_banner() set them. Reads at most
 * DUMP_HEAD_BYTES. Returns 0; 1 if more of these may follow; or an error, also -ERR_BAD_LINE where
 * sums_read() skips a line. The caller releases sums in any case.
 */
int sums_read_head(
	struct dump_sums *sums, const char *path, struct source *source, struct err *err);

/*
 * Listing the input files: arguments may be files, folders, and patterns that no shell has
 * expanded.
 *
 * A folder stands for the files directly in it, except names that dumps do not have: "*.tmp" (still
 * being written), "*.log" and "*.log.1", and names that start with a dot. Links are followed; a
 * dangling link is listed. Pipes and devices are not. A pattern has '*' or '?' in its last part,
 * and is used if no file has exactly that name. It skips "*.tmp" and "*.log", too, unless it ends
 * so itself. Patterns ignore the case of ASCII letters. FILE@MOMENT is a moment of a recording, if
 * no file has the whole name; FILE ends at the last '@' and may be a pattern.
 */

#define FILES_MAX 60000 /* a year of dumps, one every ten minutes */

struct file_item {
	const char *path; /* "-": standard input; FILE@MOMENT for a moment */
	const char *file; /* file to open: the path, or FILE */
	struct recording_part part; /* if it is a recording */
	bool is_found; /* found in a folder or by a pattern, not named */
	bool is_double; /* the path occurs earlier in the list: */
	size_t twin; /* index of that item */
};

struct file_list {
	struct file_item *items; /* in the order of the arguments, and within a folder by name */
	size_t count, cap;
	bool has_found; /* an argument was a folder or a pattern */
	struct arena arena; /* storage of found paths */
};

/* Fills *list, which the caller releases in any case. paths must outlive it. Returns 0; -ERR_OPEN
 * if a pattern matches nothing; -ERR_READ if a folder cannot be read; -ERR_USAGE for more than
 * FILES_MAX files. */
int file_list_make(struct file_list *list, const char *const *paths, size_t count, struct err *err);
void file_list_release(struct file_list *list);

/* Removes the items for which keep() returns false. number is the item's index before that. */
void file_list_keep(struct file_list *list,
	bool (*keep)(const struct file_item *item, size_t number, void *ctx), void *ctx);

/* Finds the kind of source. words is set to the reason for a refusal, or NULL. Returns 0,
 * -ERR_EMPTY or -ERR_READ. */
int input_kind(const char *path, struct source *source, enum file_kind *kind, const char **words,
	struct err *err);

/* Returns true for a log that hsnap wrote: its first line is a time and some words. */
bool input_is_log(struct source *source);

/*
 * Reading dumps. Dumps of a trend go into a store; each thread reads one file at a time. No
 * messages are printed while they are read.
 *
 * If a time window is requested, all heads are read first. A file whose head is outside the window
 * is not read further. The window may depend on the time of the newest usable snapshot. So the
 * newest file is read wherever the window ends; if it turns out to be damaged, the window depends
 * on the next one. Files outside the window count as sound, because the rest of them is unknown. A
 * file without a sound head that has a time is read whole.
 */

/* Returns true if all files are printed comparisons, and there are two or more. */
bool chain_is(const struct file_list *list);

/* Reads such files, each of which continues where the previous one ends, into one dump for each
 * moment. Returns 0, -ERR_USAGE if they do not join, or an error of comparison_read(). */
int chain_read(struct inputs *inputs, const struct file_list *list, struct err *err);

/* Warns if limits are requested that cannot be checked against a printed comparison. */
void inputs_judge_printed(struct inputs *inputs, const struct comparison *comparison);

#define READ_MAX 20000 /* a year of dumps, one every half hour */

struct read_file {
	const struct file_item *item;
	enum file_kind kind;
	int rc; /* 0: a whole dump; -ERR_CUT: a dump that is cut short; otherwise the error */
	struct err *err; /* NULL: no error */
	/* Valid if rc is 0 or -ERR_CUT; includes pid and time from a banner. */
	struct dump_sums sums;
	/* Only the head was read, because the dump is outside the window. sums has only its
	 * process, its time and the item's path. */
	bool is_unread;
	bool is_log; /* a log of hsnap that was found beside dumps; rc is -ERR_NOT_DUMP */
	struct source *printed; /* open source of a printed comparison, or NULL */
	bool is_used; /* set by users that move sums away, which leaves it empty */
};

struct time_filter {
	struct moment since, until;
	bool takes_damaged;
};

/*
 * Reads each item into its own file. The caller releases all files in any case, before the store.
 * With a store, which receives the stacks: all items except doubles. Without a store: one after
 * another, up to the first that is not a dump; a comparison is left open. Returns 0, or -ERR_USAGE
 * if more than READ_MAX files would be read whole.
 */
int read_files(struct read_file *files, const struct file_item *items, size_t count,
	const struct time_filter *window, struct stack_store *store, struct err *err);
void read_files_release(struct read_file *files, size_t count);

/* Returns true if the file is a dump that is cut short or has malformed lines. */
bool read_file_is_damaged(const struct read_file *file);

#endif
