/* Which files are to be read, as far as their heads tell. */
#ifndef DIFF_READ_WINDOW_H
#define DIFF_READ_WINDOW_H

#include "diff/inputs/read_files.h"

/* Looks at the head of a file: is_unread becomes true, and sums are filled, when it tells a time. 0 or
 * -ERR_NOMEM. */
int read_window_look(struct read_file *file, struct stack_store *store);

/* Puts into numbers[] those of files that are unread and must not stay so, now that so much is known: how
 * many, 0 when all is done. */
size_t read_window_find(const struct read_file *files, size_t count,
	const struct read_wishes *wishes, size_t *numbers);

#endif
