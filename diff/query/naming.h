/*
 * The frames of the rows to be shown, with their modules and names.
 *
 * Names are requested in batches, because looking them up is slow and much of the cost is per
 * batch. Each distinct address is looked up once, however often it is requested and even if
 * matching has requested it. A naming borrows the comparison, which owns the names. In a printed
 * comparison nothing is looked up: its rows have their frames.
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
	bool by_name; /* false: names are not even taken from the dumps */
	bool *is_asked; /* by row: naming_find() was called */
	const char ***modules; /* short names by dump and module; NULL without dumps */
	struct frame **texts; /* frames parsed from texts, by dump and text */
	struct shown_functions *shown; /* results of function_shown() */
	struct arena arena;
};

void naming_make(struct naming *naming, const struct comparison *comparison, bool by_name);
void naming_release(struct naming *naming);

/* Looks up the names of rows that have not been looked up yet. Large batches are faster.
 * symbol_options_check() must have accepted the comparison's options. */
void naming_find(struct naming *naming, const uint32_t *rows, size_t count);

/* Stores all frames of row number index in frames, innermost first, with the names found, as
 * function_shown() shows them. Replaces the content of frames; stores none if the row has no stack.
 * Texts live as long as the naming and the comparison. */
void naming_frames(const struct naming *naming, size_t index, struct frames *frames);

/* Stores the frames without names, except names that the stack itself contains. */
void naming_raw_frames(const struct naming *naming, size_t index, struct frames *frames);

/* Look up names, and store frames, of stacks in a dump of the comparison that have no row. */
void naming_find_stacks(
	struct naming *naming, size_t dump, const struct stack *stacks, size_t count);
void naming_stack_frames(const struct naming *naming, const struct dump_sums *dump,
	const struct stack *stack, struct frames *frames);

/* Looks up the name of a return address of a dump. Returns true if it has one. */
bool naming_find_addr(struct naming *naming, size_t dump, uint64_t addr);

/* Appends a message about frames whose names were not found: their number, their modules, and the
 * command that explains why, for the first dump with such frames. Appends nothing if all frames
 * have names. If is_stopped, the lookup was interrupted, and the message has only the number. */
void naming_missing(const struct naming *naming, bool is_stopped, struct buf *words);

#endif
