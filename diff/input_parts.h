/* Which files are meant, and reading them: the parts of inputs. */
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
 * Reads of a dump what tells of which process it is, and when it was taken: pid, time_ms, start_ms, image,
 * or the modules in its place, and has_wall_time, as sums_read() and sums_take_banner() tell them; at most
 * DUMP_HEAD_BYTES are looked at. 0; 1: there may be more of that behind them; or an error, also
 * -ERR_BAD_LINE where sums_read() passes a line over. The caller releases sums in any case.
 */
int sums_read_head(
	struct dump_sums *sums, const char *path, struct source *source, struct err *err);

/*
 * Which files are meant: arguments may be files, folders, and patterns that no shell has expanded.
 *
 * Of a folder it is the files in it, not those in folders in it, and not what others than dumps are
 * called there: "*.tmp" (somebody is writing it), "*.log" and "*.log.1", names that start with a dot.
 * A link is what it leads to, and one that leads nowhere is in the list; so nothing found is a pipe or a
 * device. A pattern has '*' or '?' in its last part, and counts when no file has that very name; it finds
 * no "*.tmp" and no "*.log" either unless it ends so itself. Upper and lower case of ASCII
 * are alike in patterns. FILE@MOMENT is a moment of a recording when nothing has the whole name; FILE ends
 * at the last '@', and may be a pattern.
 */

#define FILES_MAX 60000 /* a year of them each ten minutes */

struct file_item {
	const char *path; /* "-": standard input; of a moment FILE@MOMENT */
	const char *file; /* that is opened: the path, or FILE */
	struct recording_part part; /* if it is a recording */
	bool is_found; /* in a folder or by a pattern, and not asked for by its own name */
	bool is_double; /* the same path is in the list before: */
	size_t twin; /* its number there */
};

struct file_list {
	struct file_item *
		items; /* in the order of the arguments, and in a folder in that of the names: input_parts.h */
	size_t count, cap;
	bool has_found; /* an argument was a folder or a pattern */
	struct arena arena; /* paths that were found */
};

/* Fills *list, whose storage is the caller's; release it in any case. paths must outlive it. 0;
 * -ERR_OPEN: a pattern matches nothing; -ERR_READ: a folder cannot be read; -ERR_USAGE: more than
 * FILES_MAX files. */
int file_list_make(struct file_list *list, const char *const *paths, size_t count, struct err *err);
void file_list_release(struct file_list *list);

/* Leaves out those that keep() does not want, of the numbers that they have up to then. */
void file_list_keep(struct file_list *list,
	bool (*keep)(const struct file_item *item, size_t number, void *ctx), void *ctx);

/* Finds out what the source of path is, and words for a refusal or NULL. 0; -ERR_EMPTY, -ERR_READ. */
int input_kind(const char *path, struct source *source, enum file_kind *kind, const char **words,
	struct err *err);

/* Whether it is a log that hsnap wrote: the first line is a time and some words. */
bool input_is_log(struct source *source);

/*
 * Reading dumps. Those of a trend go into a store: a file for each thread at a time. Nothing is said while they
 * are read.
 *
 * Where only dumps of some time are wanted, the heads of all are looked at first, and a file whose head
 * says that it is outside is not read any further. The window may be told by the newest snapshot, and that
 * is one that can be used: so the newest file is read, wherever the window ends, and when it turns out to
 * be damaged the window is that of the next one. What is behind the head of other files outside is not
 * known then, and they count as if it were sound. Whatever has no sound head that tells a time is read.
 */

/* Returns true if all files are printed comparisons, and more than one. */
bool chain_is(const struct file_list *list);

/* Reads such files, each of which goes on where the one before it ends, into one dump for each moment. 0, -ERR_USAGE where they
 * do not join, or an error of comparison_read(). */
int chain_read(struct inputs *inputs, const struct file_list *list, struct err *err);

/* Warns where limits are asked for that a comparison which was read cannot be held against. */
void inputs_judge_printed(struct inputs *inputs, const struct comparison *comparison);

#define READ_MAX 20000 /* a year of them each half hour */

struct read_file {
	const struct file_item *item;
	enum file_kind kind;
	int rc; /* 0: a whole dump; -ERR_CUT: the start of one; else why it is none */
	struct err *err; /* NULL: all is well */
	/* When rc is one of these; what a banner says counts. */
	struct dump_sums sums;
	/* Only the head was, and it says that the dump is outside: sums has its process and its time, a
	 * path that is the item's, and nothing else. */
	bool is_unread;
	bool is_log; /* one of hsnap's, that was found beside dumps; then rc is -ERR_NOT_DUMP */
	struct source *printed; /* it is a comparison, which is to be read from there; or NULL */
	bool is_used; /* for whoever uses them: sums is empty, as they have it */
};

struct time_filter {
	struct moment since, until;
	bool takes_damaged; /* a dump that is damaged can be used */
};

/* Reads each item into its own file, all of which the caller releases in any case (see read_files_release)
 * before the store. With a store, in which dumps have their stacks: all items but doubles. Without one: one
 * after another, up to the first that is no dump; a comparison is left open. 0, or -ERR_USAGE: more than
 * READ_MAX files were to be read whole. */
int read_files(struct read_file *files, const struct file_item *items, size_t count,
	const struct time_filter *window, struct stack_store *store, struct err *err);
void read_files_release(struct read_file *files, size_t count);

/* Whether there is something that is no whole dump, or its end, or some of its lines, is missing. */
bool read_file_is_damaged(const struct read_file *file);

#endif
