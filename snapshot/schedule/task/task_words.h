/* A command line taken apart into words, as Windows' programs read theirs. */
#ifndef SNAPSHOT_TASK_WORDS_H
#define SNAPSHOT_TASK_WORDS_H

#include <stdbool.h>

#include "core/buf.h"

/*
 * The next word of *line, which moves behind it, in place of what word held: 1, 0 when none is left, or
 * -ERR_NOMEM. By the rules of "Parsing C command-line arguments", Microsoft Learn: backslashes before a
 * quote count half, and an odd one makes the quote a character; a quote that is missing ends with the line.
 */
int task_word(const char **line, struct buf *word);

/* Sets *value (emptied first; data may be NULL) to the word behind the first one that is name: 1, 0 when
 * there is none, or -ERR_NOMEM. */
int task_word_after(const char *line, const char *name, struct buf *value);

#endif
