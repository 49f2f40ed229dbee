/*
 * Listing the input files: arguments may be files, folders, and patterns that no shell has
 * expanded.
 *
 * A folder stands for the files directly in it. Names that dumps never have are skipped: "*.tmp"
 * (files still being written) and names that start with a dot. Links to files are listed, even if
 * the target is missing. Pipes and devices are not listed.
 *
 * An argument is a pattern if its last part contains '*' or '?' and no file has exactly that name.
 * A pattern skips "*.tmp" unless it ends in ".tmp". Patterns ignore the case of ASCII letters.
 * FILE@MOMENT is a moment of a recording, unless a file has that whole name. FILE ends at the last
 * '@' and may be a pattern. */
#ifndef DIFF_FILE_LIST_H
#define DIFF_FILE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/dump/source.h"
#include "diff/printed/printed.h"
#include "diff/read/dump_sums.h"

#define FILES_MAX 60000 /* a year of dumps, one every ten minutes */

struct file_item {
	const char *path; /* "-": standard input; FILE@MOMENT for a moment */
	const char *file; /* file to open: `path`, or the FILE part of FILE@MOMENT */
	struct recording_part part; /* part to read, if the file is a recording */
	bool is_found; /* found in a folder or by a pattern, not named */
	bool is_double; /* the path occurs earlier in the list */
	size_t twin; /* index of the earlier item */
};

struct file_list {
	struct file_item *items; /* in the order of the arguments, and within a folder by name */
	size_t count, cap;
	bool has_found; /* an argument was a folder or a pattern */
	/* Three or more files were named in alphabetic order, in which a shell expands patterns, and
	 * are sorted like those of a folder. */
	bool is_expanded;
	struct arena arena; /* storage of found paths */
};

/* Fills `*list`, which the caller must release even after an error. `paths` must outlive the list.
 * Returns 0; -ERR_OPEN if a pattern matches nothing; -ERR_READ if a folder cannot be read;
 * -ERR_USAGE for more than FILES_MAX files. */
int file_list_make(struct file_list *list, const char *const *paths, size_t count, struct err *err);
void file_list_release(struct file_list *list);

/* Compares names for qsort(): numbers by value, and the extension last, so that copies follow their
 * original: "x.txt", "x (2).txt". In ASCII, ' ' and '(' come before '.'. Names that differ only in
 * notation ("1", "01") are compared byte by byte, so only identical names are equal. */
int file_list_name_order(const char *a, const char *b);

/* Removes the items for which keep() returns false. keep() receives the item's original index. */
void file_list_filter(struct file_list *list,
	bool (*keep)(const struct file_item *item, size_t number, void *ctx), void *ctx);

/* Finds the kind of a file. If the file must be refused, sets `*words` to the reason, otherwise to
 * NULL. Returns 0, -ERR_EMPTY or -ERR_READ. */
int input_kind(const char *path, struct source *source, enum file_kind *kind, const char **words,
	struct err *err);

/* Returns true for a log written by hsnap. Such logs begin with a time. */
bool input_is_log(struct source *source);

#endif
