/*
 * Reading the dumps of a trend: a file for each thread at a time. Nothing is said while they are read.
 */
#ifndef DIFF_READ_FILES_H
#define DIFF_READ_FILES_H

#include "core/err.h"
#include "diff/inputs/file_list.h"
#include "diff/inputs/input_kind.h"
#include "diff/read/stack_store.h"

struct read_file {
	const struct file_item *item;
	enum file_kind kind;
	int rc; /* 0: a whole dump; -ERR_CUT: the start of one; else why it is none */
	struct err err;
	struct sums sums; /* when rc is one of these */
	bool is_taken; /* for whoever uses them: sums is empty, as they have it */
};

/* Reads each item but doubles into its own file, all of which the caller releases in any case (see
 * read_files_release), before the store, in which they have their stacks. 0 or -ERR_NOMEM. */
int read_files(struct read_file *files, const struct file_item *items, size_t count,
	struct stack_store *store);
void read_files_release(struct read_file *files, size_t count);

#endif
