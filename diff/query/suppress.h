/*
 * Suppressions: stacks that are known to grow and are not to be shown, written as for LeakSanitizer.
 *
 * A line is "leak:PATTERN". PATTERN matches a text that contains it, where '*' stands for any text,
 * '^' in front for the text's start and '$' at the end for its end. It is held against the function,
 * "module!function", the source file and the module of every frame; of those that start a program or a thread, which all stacks
 * have, only against the names, and it must be a whole name with '^' and '$'. "INNER < OUTER" are two patterns for
 * a frame and the next one outwards, and so on; "..." stands for any frames. What has no stack is
 * suppressed by NO_STACK alone. A stack is counted to the first line of all that matches.
 */
#ifndef DIFF_QUERY_SUPPRESS_H
#define DIFF_QUERY_SUPPRESS_H

#include "core/base/err.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "diff/match/match.h"
#include "diff/query/strip.h"
#include "diff/read/frame.h"

struct suppression {
	const char *text, *place; /* place: "file:line" */
	const char **
		globs; /* of frames that follow each other, innermost first; NULL: any number of them */
	size_t glob_count;
	bool is_of_stackless;
	bool is_shipped; /* one of many that most programs have no use for */
	/* What it took away. */
	size_t row_count;
	int64_t requested_bytes, block_count; /* growth */
};

struct suppressions {
	struct suppression *items;
	size_t count, cap;
	struct arena arena;
	/* Text, or "\t" and the text of a frame that starts something -> the first suppression with one glob that matches;
	 * count: none. */
	struct table known;
	struct strip *start_up; /* such frames; NULL: none are known. Borrowed. */
	struct buf name, key;
};

void suppressions_init(struct suppressions *suppressions);
void suppressions_release(struct suppressions *suppressions);

/* Adds a file's lines, or of "runtime" those that are built in; before the first match. 0, -ERR_USAGE with
 * file:line, or an error of pattern_list_read(). */
int suppressions_add_file(struct suppressions *suppressions, const char *path, struct err *err);

/* The suppression that takes a row of comparison away, whose named frames these are, or NULL. */
struct suppression *suppressions_match(struct suppressions *suppressions,
	const struct comparison *comparison, const struct row *row, const struct frames *frames);

#endif
