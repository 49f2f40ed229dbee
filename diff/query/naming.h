/*
 * The frames of the rows to be shown, with their modules and names.
 *
 * Rows are asked for in batches: finding names is what takes time, and much of it is spent once per
 * batch. However often and for however many rows, each distinct address is looked for once; what
 * matching has found already is not looked for again. A naming borrows the comparison, which owns
 * the names. In a comparison that was read there is nothing to find: its rows have their frames.
 */
#ifndef DIFF_QUERY_NAMING_H
#define DIFF_QUERY_NAMING_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/memory.h"
#include "diff/match/match.h"
#include "diff/read/frame.h"

struct naming {
	const struct comparison *comparison;
	bool by_name; /* false: no name is looked for, not even in the dumps */
	bool *is_asked; /* by row: naming_find() was */
	const char ***modules; /* short names by dump and module; NULL while no dump is there */
	struct frame **texts; /* by dump and text: what frames that are texts say */
	struct shown_functions *shown; /* what function_shown() made of names */
	struct arena arena;
};

/* Starts nothing yet. */
void naming_make(struct naming *naming, const struct comparison *comparison, bool by_name);
void naming_release(struct naming *naming);

/* Looks for the names of the rows with these numbers, where that was not done yet; many at once are
 * faster. symbol_options_check() must have let the comparison's options through. */
void naming_find(struct naming *naming, const uint32_t *rows, size_t count);

/* The frames of row number index with the names that were found, as function_shown() has them, all of
 * them, innermost first.
 * Replaces what frames held; none when the row has no stack. Texts live as long as the naming and
 * the comparison. */
void naming_frames(const struct naming *naming, size_t index, struct frames *frames);

/* The same without names, but for those that the stack itself gives. */
void naming_raw_frames(const struct naming *naming, size_t index, struct frames *frames);

/* The same two of stacks that no row has, of a dump of the comparison. */
void naming_find_stacks(
	struct naming *naming, size_t dump, const struct stack *stacks, size_t count);
void naming_stack_frames(const struct naming *naming, const struct dump_sums *dump,
	const struct stack *stack, struct frames *frames);

/* Looks for the name of a return address of a dump. Returns true if it has one. */
bool naming_find_addr(struct naming *naming, size_t dump, uint64_t addr);

/* Adds a few words on those frames that names were looked for and not found, or nothing when all
 * have names: how many, in which modules, and the command that says why, for the first dump that lacks
 * some. With is_stopped, the looking was ended early, and only how many is said. */
void naming_missing(const struct naming *naming, bool is_stopped, struct buf *words);

#endif
