/*
 * Suppressions: stacks that are known to grow and are hidden, in LeakSanitizer's or Valgrind's
 * notation.
 *
 * A line is "leak:PATTERN". PATTERN matches every text that contains it. In PATTERN, '*' matches
 * any text, a leading '^' the start of the text and a final '$' its end. PATTERN is matched against
 * the function, "module!function", the source file and the module of each frame. Frames that start
 * a program or a thread are in all stacks. For such a frame, only the function and
 * "module!function" are used, and PATTERN must match the whole text, with '^' and '$'.
 *
 * "INNER < OUTER" matches a frame and its caller. More frames can follow, and "..." stands for any
 * number of frames. Rows without a stack match only NO_STACK. If several lines match a stack, the
 * stack counts for the first of them.
 *
 * A frame in no module has the texts "(no module)" and "at:0xADDRESS"; a line may also be
 * "at:0xADDRESS". "leak:PATTERN max=LIMIT" suppresses its rows only if together they grew by at most
 * LIMIT, which is a size, or a number of blocks. A block of Valgrind's list is a line with its
 * frames, which may begin at any frame of a stack. */
#ifndef DIFF_QUERY_SUPPRESS_H
#define DIFF_QUERY_SUPPRESS_H

#include "core/base/err.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "diff/match/match.h"
#include "diff/query/pattern.h"
#include "diff/query/strip.h"
#include "diff/read/frame.h"

struct suppression {
	const char *text, *place; /* place: "file:line" */
	/* patterns of consecutive frames, innermost first; NULL: any number of frames */
	const char **globs;
	size_t glob_count;
	bool is_of_stackless;
	bool is_shipped; /* from the built-in list, which usually has lines that match nothing */
	/* known reasons why it removes nothing: an earlier suppression removes a stack that it
	 * matches; it matches a part of the name of a function that starts a program or a thread;
	 * it matches only if case is ignored */
	bool is_late, is_part_of_start, differs_in_case;
	/* Growth of its rows that grew in the current view, and limits for it. UINT64_MAX: no
	 * limit. If the growth is over a limit, the rows are not removed. */
	uint64_t grown_bytes, grown_blocks, max_bytes, max_blocks;
	/* growth in the last view where it was over a limit */
	uint64_t over_bytes, over_blocks;
	bool is_over; /* in some view */
	/* number of removed rows */
	size_t row_count;
	int64_t requested_bytes, block_count; /* growth of the removed rows */
	bool lacks_blocks; /* `block_count` is unknown */
};

struct suppressions {
	struct suppression *items;
	size_t count, cap;
	struct arena arena;
	/* Caches results. Maps a text to the index of the first suppression that consists of a
	 * single pattern and matches the text. Maps it to `count` if no such suppression exists.
	 * "\t" precedes the text of a frame that starts a program or thread. */
	struct table known;
	/* frames that start programs and threads; NULL: unknown. Borrowed. */
	struct strip *start_up;
	struct buf names[FRAME_SPELLINGS], key;
	/* block of Valgrind's list that is being read */
	struct valgrind_block {
		size_t line; /* from 1; 0: not in a block */
		const char *place;
		bool is_leak;
		struct buf name, pattern;
	} block;
	struct buf files[MODULE_EXTENSIONS];
};

void suppressions_init(struct suppressions *suppressions);
void suppressions_release(struct suppressions *suppressions);

/* Adds the lines of a file, or of the built-in list if `path` is "runtime". Must be called before
 * the first match. Returns 0, -ERR_USAGE with file:line, or an error of pattern_list_read(). */
int suppressions_add_file(struct suppressions *suppressions, const char *path, struct err *err);

/* Returns the suppression that removes a row with these frames, or NULL. The names of the frames
 * must have been looked up. */
struct suppression *suppressions_match(struct suppressions *suppressions,
	const struct comparison *comparison, const struct row *row, const struct frames *frames);

#endif
