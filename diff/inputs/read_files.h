/*
 * Reading the dumps of a trend: a file for each thread at a time. Nothing is said while they are read.
 *
 * Where only dumps of some time are wanted, the heads of all are looked at first, and a file whose head
 * says that it is outside is not read any further. The window may be told by the newest snapshot, and that
 * is one that can be used: so the newest file is read, wherever the window ends, and when it turns out to
 * be damaged the window is that of the next one. What is behind the head of other files outside is not
 * known then, and they count as if it were sound. Whatever has no sound head that tells a time is read.
 */
#ifndef DIFF_READ_FILES_H
#define DIFF_READ_FILES_H

#include "core/err.h"
#include "diff/inputs/file_list.h"
#include "diff/inputs/input_kind.h"
#include "diff/inputs/moment.h"
#include "diff/read/stack_store.h"

#define READ_MAX 20000 /* a year of them each half hour */

struct read_file {
	const struct file_item *item;
	enum file_kind kind;
	int rc; /* 0: a whole dump; -ERR_CUT: the start of one; else why it is none */
	struct err *err; /* NULL: all is well */
	/* When rc is one of these; what a banner says counts. */
	struct sums sums;
	/* Only the head was, and it says that the dump is outside: sums has its process and its time, a
	 * path that is the item's, and nothing else. */
	bool is_unread;
	bool is_log; /* one of hsnap's, that was found beside dumps; then rc is -ERR_NOT_DUMP */
	bool is_taken; /* for whoever uses them: sums is empty, as they have it */
};

struct read_wishes {
	struct moment since, until;
	bool takes_damaged; /* a dump that is damaged can be used */
};

/* Reads each item but doubles into its own file, all of which the caller releases in any case (see
 * read_files_release), before the store, in which they have their stacks. 0; -ERR_USAGE: more than
 * READ_MAX files were to be read whole, and err says so; -ERR_NOMEM. */
int read_files(struct read_file *files, const struct file_item *items, size_t count,
	const struct read_wishes *wishes, struct stack_store *store, struct err *err);
void read_files_release(struct read_file *files, size_t count);

/* Whether there is something that is no whole dump, or its end, or some of its lines, is missing. */
bool read_file_is_damaged(const struct read_file *file);

#endif
