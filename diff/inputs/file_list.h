/*
 * Which files are meant: arguments may be files, folders, and patterns that no shell has expanded.
 *
 * Of a folder it is the files in it, not those in folders in it, and not what others than dumps are
 * called there: "*.tmp" (somebody is writing it), "*.log" and "*.log.1", names that start with a dot.
 * A link is what it leads to, and one that leads nowhere is in the list; so nothing found is a pipe or a
 * device. A pattern has '*' or '?' in its last part, and counts when no file has that very name; it finds
 * no "*.tmp" and no "*.log" either unless it ends so itself. Upper and lower case of ASCII
 * are alike in patterns.
 */
#ifndef DIFF_FILE_LIST_H
#define DIFF_FILE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "core/arena.h"
#include "core/err.h"

#define FILES_MAX 60000 /* a year of them each ten minutes */

struct file_item {
	const char *path; /* "-": standard input */
	bool is_found; /* in a folder or by a pattern, and not asked for by its own name */
	bool is_double; /* the same path is in the list before: */
	size_t twin; /* its number there */
};

struct file_list {
	struct file_item *items; /* in the order of the arguments, and of the names in a folder */
	size_t count, cap;
	bool has_found; /* an argument was a folder or a pattern */
	struct arena arena; /* paths that were found */
};

/* Fills *list, whose storage is the caller's; release it in any case. paths must outlive it. 0;
 * -ERR_OPEN: a pattern matches nothing; -ERR_READ: a folder cannot be read; -ERR_USAGE: more than
 * FILES_MAX files; -ERR_NOMEM. */
int file_list_make(struct file_list *list, const char *const *paths, size_t count, struct err *err);
void file_list_release(struct file_list *list);

#endif
