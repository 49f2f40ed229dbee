/* Which stacks are wanted, and filters that name nothing. */
#ifndef DIFF_QUERY_FILTER_H
#define DIFF_QUERY_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/memory.h"
#include "diff/match/match.h"
#include "diff/query/naming.h"
#include "diff/query/pattern.h"
#include "diff/read/frame.h"

/*
 * Which stacks are wanted. What can be told without names is asked first: names take time.
 */

struct filter {
	/* A stack is kept when any frame of it matches include (when there is any) and none does
	 * exclude. A frame is its "module!function", its source file, and its raw forms
	 * "module+OFFSET" and "ADDRESS". */
	struct patterns include, exclude;
	/* Kept: stacks with a frame in one of them, with or without the extension, in either case. */
	const char *const *modules;
	size_t module_count;
	/* The growth's magnitude, of both; of a trend how far the lowest and the highest snapshot of
	 * a process are apart. */
	uint64_t min_bytes, min_blocks;
	unsigned trend_verdicts; /* of a trend: a bit for each that is wanted; 0: all */
	struct buf name, addr;
};

enum verdict {
	VERDICT_DROP,
	VERDICT_KEEP,
	VERDICT_NAMES, /* names must tell */
	VERDICT_NAMES_EXCLUDE, /* it is included; names must tell whether it is excluded */
};

void filter_init(struct filter *filter);
void filter_release(struct filter *filter);

/* Whether anything can be left out. */
bool filter_is_active(const struct filter *filter);

/* Whether what a row adds up to is wanted: its change is large enough, and its verdict right. */
bool filter_change(
	const struct filter *filter, const struct comparison *comparison, const struct row *row);

/* Says what can be said of a row whose frames have no names yet. 0 or as patterns_match(). */
int filter_raw(struct filter *filter, const struct comparison *comparison, const struct row *row,
	const struct frames *frames, enum verdict *verdict, struct err *err);

/* Goes on from a verdict of filter_raw() with frames that have names: drop or keep. */
int filter_named(
	struct filter *filter, const struct frames *frames, enum verdict *verdict, struct err *err);

/* The file name of a frame's module, with extension, or NULL where that is not known. Borrowed. */
const char *filter_frame_file(
	const struct comparison *comparison, const struct row *row, const struct frame *frame);

/*
 * Filters that name nothing: a module or a heap that no dump has, a pattern that nothing matches.
 * Most likely they are mistyped, and a limit of growth that looks at nothing passes always.
 */

/* Is told of a value of an option, and what is wrong with it. */
typedef void unmatched_say(void *ctx, const char *option, const char *value, const char *what);

/* --module, of the comparison's dumps or, when it was read, of its frames. */
void unmatched_modules(
	const struct filter *filter, const struct naming *naming, unmatched_say *say, void *ctx);

/* --heap; nothing is said of a comparison that was read, which does not tell. */
void unmatched_heaps(const struct comparison *comparison, const uint64_t *heaps, size_t count,
	unmatched_say *say, void *ctx);

/*
 * -i, when the rows were selected. Patterns that decided on nothing are held against all rows that
 * the other filters leave, whose names are looked for; of a pattern that cannot be matched against a
 * text nothing is said, nor when there are no rows. is_part: the comparison's rows are not of all
 * blocks. say is NULL: they are held against the rows, and nothing is said.
 */
void unmatched_patterns(
	struct filter *filter, struct naming *naming, bool is_part, unmatched_say *say, void *ctx);

#endif
